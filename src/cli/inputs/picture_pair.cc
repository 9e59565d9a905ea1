// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/picture_pair.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/cli/inputs/finite_mask.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/media/picture/color.h"

namespace similis::cli {
namespace {

using Pictures = std::shared_ptr<const std::array<PictureAsRead, 2>>;

// A picture on its way to code values: as it was read, or what it was converted to.
class Side {
 public:
  Side(const Pictures& pictures, std::size_t index, const char* side_word, bool is_plain)
      : name((*pictures)[index].name),
        word(side_word),
        had_opaque_alpha(is_plain),
        image_(pictures, &(*pictures)[index].image) {}

  const media::Image& image() const { return *image_; }
  const std::shared_ptr<const media::Image>& owner() const { return image_; }
  void convert(media::Image image) {
    image_ = std::make_shared<const media::Image>(std::move(image));
  }

  std::string name;
  const char* word;  // "reference"
  bool had_opaque_alpha;

 private:
  std::shared_ptr<const media::Image> image_;
};

void require_same_size(const media::Image& reference, const media::Image& distorted,
    const std::string& reference_name, const std::string& distorted_name,
    const std::optional<Adaptation>& adaptation) {
  require(distorted.width == reference.width && distorted.height == reference.height,
      "{} is {}×{} but {} is {}×{}; {}", reference_name, reference.width, reference.height,
      distorted_name, distorted.width, distorted.height, sizes_must_match(adaptation));
}

std::string kind_of_samples(const media::Image& image) {
  return image.has_floats() ? "floating-point samples"
                            : fmt::format("{}-bit code values", image.bit_depth);
}

void require_same_kind(const Side& reference, const Side& distorted) {
  require(reference.image().has_floats() == distorted.image().has_floats(),
      "{} has {} but {} has {}; convert one of them", reference.name,
      kind_of_samples(reference.image()), distorted.name, kind_of_samples(distorted.image()));
}

void require_finite(const Side& side) {
  const media::Image& image = side.image();
  const auto is_odd = [](float sample) { return !std::isfinite(sample); };
  const std::vector<float>& samples = image.samples_float;
  const auto count = std::count_if(samples.begin(), samples.end(), is_odd);
  const auto first = std::find_if(samples.begin(), samples.end(), is_odd) - samples.begin();
  require(count == 0, "{} has {} not finite, the first at x {}, y {}", side.name,
      count == 1 ? "1 value that is" : fmt::format("{} values that are", count),
      first / image.channels % image.width, first / image.channels / image.width);
}

media::Image promoted(const media::Image& image) {
  media::Image deep{.width = image.width,
      .height = image.height,
      .channels = image.channels,
      .bit_depth = 16,
      .source_bit_depth = image.source_bit_depth,
      .samples16 = {image.samples8.begin(), image.samples8.end()},
      .color = image.color,
      .format = image.format,
      .frames = image.frames};
  for (std::uint16_t& sample : deep.samples16) {
    sample = static_cast<std::uint16_t>(sample * 257);  // 255·257 = 65535
  }
  return deep;
}

void unify_depth(Side& reference, Side& distorted, Differences& differences) {
  if (reference.image().bit_depth == distorted.image().bit_depth) return;
  Side& shallow = reference.image().bit_depth == 8 ? reference : distorted;
  shallow.convert(promoted(shallow.image()));
  differences.emplace_back("bit_depth", fmt::format("{} promoted from 8 to 16 bits", shallow.word));
}

void unify_color(const Side& reference, Side& distorted, Differences& differences) {
  const media::ColorSpace &from = distorted.image().color, &to = reference.image().color;
  if (media::same_color(to, from)) return;
  differences.emplace_back(
      "color", fmt::format("{} converted from {} to the reference's {}", distorted.word,
                   media::describe(from), media::describe(to)));
  distorted.convert(media::convert_color(distorted.image(), to, distorted.name));
}

void remove_alpha(Side& side, const std::optional<Color>& background, Differences& differences) {
  const std::string key = fmt::format("{}_alpha", side.word);
  if (side.had_opaque_alpha) differences.emplace_back(key, "opaque, dropped");
  if (!side.image().has_alpha()) return;
  require(background.has_value(),
      "{} has transparent pixels; give the colour behind them with --background COLOR", side.name);
  side.convert(blend(side.image(), *background));
  differences.emplace_back(key, fmt::format("blended over #{:04x}{:04x}{:04x}", (*background)[0],
                                    (*background)[1], (*background)[2]));
}

// Copies interleaved 16-bit samples to planes of f32, which represents them exactly.
Tensor wide_planes(const media::Image& image, const Execution& exec) {
  const Tensor planes =
      allocate({1, image.channels, image.height, image.width}, DType::f32, {}, exec);
  const std::int64_t channels = image.channels, height = image.height, width = image.width;
  parallel_for(exec, height, [&](std::int64_t y) {
    const std::uint16_t* row = image.samples16.data() + y * width * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      float* out = planes.elements<float>() + (c * height + y) * width;
      for (std::int64_t x = 0; x < width; ++x) out[x] = row[x * channels + c];
    }
  });
  return planes;
}

// A grey image in a pair with colour has its one plane three times, with stride 0 between them.
// Samples of 8 bits and floats stay where they are, channels side by side.
Tensor planes_of(const Side& side, int channels, const Execution& exec) {
  const media::Image& image = side.image();
  TensorView view;
  std::shared_ptr<void> owner = std::const_pointer_cast<media::Image>(side.owner());
  if (image.bit_depth == 16) {
    const auto planes = std::make_shared<Tensor>(wide_planes(image, exec));
    view = *planes;
    owner = planes;
  } else {
    const bool is_bytes = image.bit_depth == 8;
    const void* const samples = is_bytes ? static_cast<const void*>(image.samples8.data())
                                         : static_cast<const void*>(image.samples_float.data());
    const std::int64_t row = image.width * image.channels;
    view = {samples, {1, image.channels, image.height, image.width},
        {image.height * row, 1, row, image.channels}, is_bytes ? DType::u8 : DType::f32};
  }
  if (image.channels != channels) view.strides[1] = 0;
  view.shape[1] = channels;
  return {view, std::move(owner)};
}

// Converts both sides to the same kind of code values.
void pair_code_values(Side& reference, Side& distorted, const PictureRules& rules,
    const Execution& exec, PicturePair& pair) {
  require_same_kind(reference, distorted);
  if (!rules.masks_not_finite) {
    for (const Side* side : {&reference, &distorted}) require_finite(*side);
  }
  unify_depth(reference, distorted,
      pair.differences);  // first, so that a colour conversion has the larger depth
  unify_color(reference, distorted, pair.differences);
  remove_alpha(reference, rules.background, pair.differences);
  remove_alpha(distorted, rules.background, pair.differences);
  pair.channels = std::max(reference.image().channels, distorted.image().channels);
  for (const Side* side : {&reference, &distorted}) {
    if (side->image().channels == pair.channels) continue;
    pair.differences.emplace_back(
        "channels", fmt::format("{} promoted from grey to RGB", side->word));
  }
  pair.frames.reference = planes_of(reference, pair.channels, exec);
  pair.frames.distorted = planes_of(distorted, pair.channels, exec);
  if (rules.masks_not_finite && reference.image().has_floats()) mask_not_finite(pair.frames, exec);
}

// Drops an alpha channel that is opaque everywhere.
bool drop_opaque_alpha(media::Image& image) {
  if (!image.has_alpha() || !is_opaque(image)) return false;
  image = drop_alpha(image);
  return true;
}

double data_range(int bit_depth) {
  if (bit_depth == media::kFloatBits) return 1;
  return bit_depth == 8 ? 255 : 65535;
}

}  // namespace

PicturePair pair_pictures(media::Image reference_image, media::Image distorted_image,
    const std::string& reference_name, const std::string& distorted_name, const PictureRules& rules,
    const Execution& exec) {
  PicturePair pair;
  if (rules.adaptation) {
    adapt_pictures(reference_image, distorted_image, reference_name, distorted_name,
        *rules.adaptation, exec, pair.done);
  }
  require_same_size(
      reference_image, distorted_image, reference_name, distorted_name, rules.adaptation);
  pair.bit_depth = std::max(reference_image.bit_depth, distorted_image.bit_depth);
  pair.channels = std::max(reference_image.channels, distorted_image.channels);
  pair.frames.data_range = data_range(pair.bit_depth);
  const bool is_plain_reference = drop_opaque_alpha(reference_image);
  const bool is_plain_distorted = drop_opaque_alpha(distorted_image);
  const auto pictures = std::make_shared<const std::array<PictureAsRead, 2>>(
      std::array{PictureAsRead{std::move(reference_image), reference_name},
          PictureAsRead{std::move(distorted_image), distorted_name}});
  pair.frames.as_read.pictures = pictures;
  Side reference(pictures, 0, "reference", is_plain_reference);
  Side distorted(pictures, 1, "distorted", is_plain_distorted);
  try {
    pair_code_values(reference, distorted, rules, exec, pair);
  } catch (const InvalidArgument& error) {
    pair.frames.refusal = error.what();
  }
  return pair;
}

}  // namespace similis::cli
