// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/animation_pair.h"

#include <utility>

#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {

AnimationPair::AnimationPair(Side reference, Side distorted, const FrameSelection& selection,
    const std::optional<Color>& background, const std::optional<Adaptation>& adaptation)
    : selection_(selection),
      background_(background),
      adaptation_(adaptation),
      reference_{{std::move(reference.bytes), reference.name}, reference.name, reference.frames},
      distorted_{{std::move(distorted.bytes), distorted.name}, distorted.name, distorted.frames} {}

media::Image AnimationPair::Reader::picture(std::int64_t number) {
  for (;;) {
    std::optional<media::Image> taken = pictures.next();
    require(taken.has_value(), "cannot read {}: it says that it has {} but has only {}", name,
        counted(frames, "frame"), read);
    if (read++ == number) return *std::move(taken);
  }
}

std::int64_t AnimationPair::expected_pairs() const {
  return selection_.count(reference_.frames, distorted_.frames);
}

std::optional<PicturePair> AnimationPair::next(const Execution& exec) {
  if (scored_ == expected_pairs()) return std::nullopt;
  const std::int64_t frame = selection_.next(reference_.read);
  media::Image x = reference_.picture(frame);
  media::Image y = distorted_.picture(frame + selection_.offset);
  ++scored_;
  return pair_pictures(
      std::move(x), std::move(y), reference_.name, distorted_.name, background_, adaptation_, exec);
}

}  // namespace similis::cli
