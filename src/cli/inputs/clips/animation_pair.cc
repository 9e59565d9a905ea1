// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/animation_pair.h"

#include <utility>

#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

// Reads the pictures of a file, or of a sequence, whose unwanted pictures are left empty.
std::function<void(const media::TakePicture&)> reader_of(
    AnimationPair::Side side, const std::function<bool(std::int64_t)>& is_wanted) {
  return [side = std::move(side), is_wanted](const media::TakePicture& take) {
    if (side.files.empty()) return media::read_pictures(side.bytes, side.name, take);
    for (std::size_t i = 0; i < side.files.size(); ++i) {
      media::Image picture;
      if (is_wanted(static_cast<std::int64_t>(i))) picture = media::read_image(side.files[i]);
      require(picture.frames == 1, "{} has {}; a sequence takes pictures of one frame",
          side.files[i], counted(picture.frames, "frame"));
      if (!take(std::move(picture))) return;
    }
  };
}

}  // namespace

AnimationPair::AnimationPair(Side reference, Side distorted, const FrameSelection& selection,
    const std::optional<Color>& background, const std::optional<Adaptation>& adaptation)
    : selection_(selection),
      background_(background),
      adaptation_(adaptation),
      reference_(std::move(reference), [selection](std::int64_t i) { return selection.has(i); }),
      distorted_(std::move(distorted),
          [selection](std::int64_t i) { return selection.has(i - selection.offset); }) {}

AnimationPair::Reader::Reader(Side side, const std::function<bool(std::int64_t)>& is_wanted)
    : name(side.name), frames(side.frames), pictures(reader_of(std::move(side), is_wanted)) {}

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
