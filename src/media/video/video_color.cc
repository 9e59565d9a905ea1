// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/video_color.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis::media {
namespace {

template <class T> using Name = std::pair<std::string_view, T>;

// ffmpeg's names; "" is no tag.
constexpr std::array kMatrices = {Name<YuvMatrix>{"bt709", YuvMatrix::bt709},
    Name<YuvMatrix>{"smpte170m", YuvMatrix::bt601}, Name<YuvMatrix>{"bt470bg", YuvMatrix::bt601},
    Name<YuvMatrix>{"bt2020nc", YuvMatrix::bt2020}};
constexpr std::array kRanges = {Name<SampleRange>{"tv", SampleRange::limited},
    Name<SampleRange>{"mpeg", SampleRange::limited}, Name<SampleRange>{"pc", SampleRange::full},
    Name<SampleRange>{"jpeg", SampleRange::full}};
constexpr std::array kSitings = {Name<ChromaSiting>{"left", ChromaSiting::left},
    Name<ChromaSiting>{"center", ChromaSiting::center},
    Name<ChromaSiting>{"topleft", ChromaSiting::topleft}};
constexpr std::array kTransfers = {Name<std::uint8_t>{"bt709", 1}, Name<std::uint8_t>{"bt470m", 4},
    Name<std::uint8_t>{"bt470bg", 5}, Name<std::uint8_t>{"smpte170m", 6},
    Name<std::uint8_t>{"smpte240m", 7}, Name<std::uint8_t>{"linear", 8},
    Name<std::uint8_t>{"iec61966-2-1", 13}, Name<std::uint8_t>{"bt2020-10", 14},
    Name<std::uint8_t>{"bt2020-12", 15}};
constexpr std::array kPrimaries = {Name<std::uint8_t>{"bt709", 1}, Name<std::uint8_t>{"bt470m", 4},
    Name<std::uint8_t>{"bt470bg", 5}, Name<std::uint8_t>{"smpte170m", 6},
    Name<std::uint8_t>{"smpte240m", 7}, Name<std::uint8_t>{"bt2020", 9},
    Name<std::uint8_t>{"smpte431", 11}, Name<std::uint8_t>{"smpte432", 12}};

template <class T, class Names>
T choose(const std::optional<T>& chosen, const Names& names, const std::string& said, T otherwise,
    const char* option, const std::string& video) {
  if (chosen) return *chosen;
  if (said.empty() || said == "unknown") return otherwise;
  const auto found = std::find_if(
      names.begin(), names.end(), [&](const auto& name) { return name.first == said; });
  const bool is_hdr = said == "smpte2084" || said == "arib-std-b67";
  require(!is_hdr,
      "the transfer function of {} is {} ({}), which is not supported: ssimulacra2 is defined for "
      "standard dynamic range; tone-map both videos first",
      video, said == "smpte2084" ? "PQ" : "HLG", said);
  require(found != names.end(),
      "the {} of {} is {}, which is not supported; choose one with -m ssimulacra2={}=…", option,
      video, said, option);
  return found->second;
}

// The weights of red and blue in luma.
struct LumaWeights {
  double red, blue;
};

LumaWeights luma_weights(YuvMatrix matrix) {
  switch (matrix) {
    case YuvMatrix::bt601: return {.299, .114};
    case YuvMatrix::bt709: return {.2126, .0722};
    case YuvMatrix::bt2020: return {.2627, .0593};
  }
  return {};
}

// Code values as numbers: luma from 0 to 1, chroma from -1/2 to 1/2.
struct Scaling {
  double luma_black, luma_span, chroma_zero, chroma_span;

  Scaling(SampleRange range, int bit_depth) {
    const double unit = std::ldexp(1.0, bit_depth - 8);  // a step of 8 bits
    const double top = std::ldexp(1.0, bit_depth) - 1;
    const bool is_full = range == SampleRange::full;
    luma_black = is_full ? 0 : 16 * unit;
    luma_span = is_full ? top : 219 * unit;
    chroma_zero = 128 * unit;
    chroma_span = is_full ? top : 224 * unit;
  }
};

// For each luma position along an axis, the two chroma samples around it and the second's weight.
struct Between {
  std::int64_t first, second;
  double weight;
};

std::vector<Between> positions(std::int64_t luma, std::int64_t chroma, int shift, bool is_centred,
    ChromaUpsampling upsampling) {
  std::vector<Between> result(static_cast<std::size_t>(luma));
  const double size = std::ldexp(1.0, shift), offset = is_centred ? (size - 1) / 2 : 0;
  for (std::int64_t i = 0; i < luma; ++i) {
    Between& at = result[static_cast<std::size_t>(i)];
    if (upsampling == ChromaUpsampling::nearest) {
      at = {i >> shift, i >> shift, 0};
      continue;
    }
    const double position = (static_cast<double>(i) - offset) / size;
    const double below = std::floor(position);
    const auto first = static_cast<std::int64_t>(below);
    at = {std::clamp<std::int64_t>(first, 0, chroma - 1),
        std::clamp<std::int64_t>(first + 1, 0, chroma - 1), position - below};
  }
  return result;
}

double sample(const TensorView& plane, std::int64_t y, std::int64_t x) {
  const std::int64_t at = y * plane.strides[0] + x;
  if (plane.dtype == DType::u8) return static_cast<const std::uint8_t*>(plane.data())[at];
  return static_cast<const std::uint16_t*>(plane.data())[at];
}

double between(const TensorView& plane, const Between& y, const Between& x) {
  const double top = (1 - x.weight) * sample(plane, y.first, x.first) +
                     x.weight * sample(plane, y.first, x.second);
  const double bottom = (1 - x.weight) * sample(plane, y.second, x.first) +
                        x.weight * sample(plane, y.second, x.second);
  return (1 - y.weight) * top + y.weight * bottom;
}

float clipped(double value) { return static_cast<float>(std::clamp(value, 0.0, 1.0)); }

}  // namespace

VideoColor resolve_color(
    const VideoFormat& format, const VideoColorChoices& choices, const std::string& name) {
  constexpr std::int64_t kStandardDefinition = 576;  // lines
  const YuvMatrix matrix =
      format.height > kStandardDefinition ? YuvMatrix::bt709 : YuvMatrix::bt601;
  const VideoColor otherwise;
  const ColorTags& tags = format.color;
  return {.matrix = choose(choices.matrix, kMatrices, tags.matrix, matrix, "matrix", name),
      .range = choose(choices.range, kRanges, tags.range, otherwise.range, "range", name),
      .siting = choose(choices.siting, kSitings, tags.siting, otherwise.siting, "siting", name),
      .upsampling = choices.upsampling,
      .transfer =
          choose(choices.transfer, kTransfers, tags.transfer, otherwise.transfer, "transfer", name),
      .primaries = choose(
          choices.primaries, kPrimaries, tags.primaries, otherwise.primaries, "primaries", name)};
}

Tensor to_rgb(const VideoFrame& frame, const VideoFormat& format, const VideoColor& color,
    const Execution& exec) {
  const PixelFormat& pixels = format.pixels;
  const bool is_grey = pixels.color_planes == 1;
  const Scaling scaling(color.range, pixels.bit_depth);
  const LumaWeights weights = luma_weights(color.matrix);
  const double red = weights.red, blue = weights.blue, green = 1 - red - blue;
  const TensorView luma = frame.plane(format, 0);
  const TensorView cb = is_grey ? luma : frame.plane(format, 1);
  const TensorView cr = is_grey ? luma : frame.plane(format, 2);
  const bool is_centred = color.siting == ChromaSiting::center;
  const std::vector<Between> across = positions(
      format.width, cb.shape[1], is_grey ? 0 : pixels.chroma_x_shift, is_centred, color.upsampling);
  const std::vector<Between> down = positions(format.height, cb.shape[0],
      is_grey ? 0 : pixels.chroma_y_shift, color.siting != ChromaSiting::topleft, color.upsampling);
  Tensor rgb = allocate({format.height, format.width, 3}, DType::f32, {}, exec);
  parallel_for(exec, format.height, [&](std::int64_t y) {
    float* out = rgb.elements<float>() + y * format.width * 3;
    const Between& row = down[static_cast<std::size_t>(y)];
    for (std::int64_t x = 0; x < format.width; ++x, out += 3) {
      const double l = (sample(luma, y, x) - scaling.luma_black) / scaling.luma_span;
      double u = 0, v = 0;
      if (!is_grey) {
        const Between& column = across[static_cast<std::size_t>(x)];
        u = (between(cb, row, column) - scaling.chroma_zero) / scaling.chroma_span;
        v = (between(cr, row, column) - scaling.chroma_zero) / scaling.chroma_span;
      }
      const double r = l + 2 * (1 - red) * v, b = l + 2 * (1 - blue) * u;
      out[0] = clipped(r);
      out[1] = clipped(is_grey ? l : (l - red * r - blue * b) / green);
      out[2] = clipped(b);
    }
  });
  return rgb;
}

}  // namespace similis::media
