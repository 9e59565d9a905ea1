// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/picture_pair.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/media/picture/color.h"

namespace similis::cli {
namespace {

struct Side {
  media::Image image;
  std::string name;
  const char* word;  // "reference"
};

void require_same_size(const Side& reference, const Side& distorted) {
  require(distorted.image.width == reference.image.width &&
              distorted.image.height == reference.image.height,
      "{} is {}×{} but {} is {}×{}; sizes must match", reference.name, reference.image.width,
      reference.image.height, distorted.name, distorted.image.width, distorted.image.height);
}

void promote_depth(media::Image& image) {
  image.samples16.assign(image.samples8.begin(), image.samples8.end());
  for (std::uint16_t& sample : image.samples16) {
    sample = static_cast<std::uint16_t>(sample * 257);  // 255·257 = 65535
  }
  image.samples8 = {};
  image.bit_depth = 16;
}

void unify_depth(Side& reference, Side& distorted, Differences& differences) {
  if (reference.image.bit_depth == distorted.image.bit_depth) return;
  Side& shallow = reference.image.bit_depth == 8 ? reference : distorted;
  promote_depth(shallow.image);
  differences.emplace_back("bit_depth", fmt::format("{} promoted from 8 to 16 bits", shallow.word));
}

void unify_color(const Side& reference, Side& distorted, Differences& differences) {
  if (media::same_color(reference.image.color, distorted.image.color)) return;
  differences.emplace_back(
      "color", fmt::format("{} converted from {} to the reference's {}", distorted.word,
                   media::describe(distorted.image.color), media::describe(reference.image.color)));
  distorted.image = media::convert_color(distorted.image, reference.image.color, distorted.name);
}

void remove_alpha(Side& side, const std::optional<Color>& background, Differences& differences) {
  if (!side.image.has_alpha()) return;
  const std::string key = fmt::format("{}_alpha", side.word);
  if (is_opaque(side.image)) {
    side.image = drop_alpha(side.image);
    differences.emplace_back(key, "opaque, dropped");
    return;
  }
  require(background.has_value(),
      "{} has transparent pixels; give the colour behind them with --background COLOR", side.name);
  side.image = blend(side.image, *background);
  differences.emplace_back(key, fmt::format("blended over #{:04x}{:04x}{:04x}", (*background)[0],
                                    (*background)[1], (*background)[2]));
}

// Copies interleaved samples to planes of f32, which represents 16 bits exactly.
template <class T>
void write_planes(const std::vector<T>& samples, const Tensor& planes, const Execution& exec) {
  const std::int64_t channels = planes.shape[1], height = planes.shape[2], width = planes.shape[3];
  parallel_for(exec, height, [&](std::int64_t y) {
    const T* row = samples.data() + y * width * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      float* out = planes.elements<float>() + (c * height + y) * width;
      for (std::int64_t x = 0; x < width; ++x) out[x] = row[x * channels + c];
    }
  });
}

// A grey image in a pair with colour has its one plane three times, with stride 0 between them.
Tensor planes_of(const media::Image& image, int channels, const Execution& exec) {
  const Tensor planes =
      allocate({1, image.channels, image.height, image.width}, DType::f32, {}, exec);
  if (image.bit_depth == 8) {
    write_planes(image.samples8, planes, exec);
  } else {
    write_planes(image.samples16, planes, exec);
  }
  TensorView view = planes;
  if (image.channels != channels) view.strides[1] = 0;
  view.shape[1] = channels;
  return {view, std::make_shared<Tensor>(planes)};
}

// The picture as read, without its alpha channel if every pixel is opaque.
PictureAsRead as_read(const Side& side) {
  const bool is_plain = side.image.has_alpha() && is_opaque(side.image);
  return {is_plain ? drop_alpha(side.image) : side.image, side.name};
}

// Converts both sides to the same kind of code values.
void pair_code_values(Side& reference, Side& distorted, const std::optional<Color>& background,
    const Execution& exec, PicturePair& pair) {
  unify_depth(reference, distorted,
      pair.differences);  // first, so that a colour conversion has the larger depth
  unify_color(reference, distorted, pair.differences);
  remove_alpha(reference, background, pair.differences);
  remove_alpha(distorted, background, pair.differences);
  pair.channels = std::max(reference.image.channels, distorted.image.channels);
  for (const Side* side : {&reference, &distorted}) {
    if (side->image.channels == pair.channels) continue;
    pair.differences.emplace_back(
        "channels", fmt::format("{} promoted from grey to RGB", side->word));
  }
  pair.frames.reference = planes_of(reference.image, pair.channels, exec);
  pair.frames.distorted = planes_of(distorted.image, pair.channels, exec);
}

}  // namespace

PicturePair pair_pictures(media::Image reference_image, media::Image distorted_image,
    const std::string& reference_name, const std::string& distorted_name,
    const std::optional<Color>& background, const Execution& exec) {
  Side reference{std::move(reference_image), reference_name, "reference"};
  Side distorted{std::move(distorted_image), distorted_name, "distorted"};
  PicturePair pair;
  require_same_size(reference, distorted);
  pair.frames.as_read.pictures = std::make_shared<const std::array<PictureAsRead, 2>>(
      std::array{as_read(reference), as_read(distorted)});
  pair.bit_depth = std::max(reference.image.bit_depth, distorted.image.bit_depth);
  pair.channels = std::max(reference.image.channels, distorted.image.channels);
  pair.frames.data_range = pair.bit_depth == 8 ? 255.0 : 65535.0;
  try {
    pair_code_values(reference, distorted, background, exec, pair);
  } catch (const InvalidArgument& error) {
    pair.frames.refusal = error.what();
  }
  return pair;
}

}  // namespace similis::cli
