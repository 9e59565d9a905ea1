// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/code_mapping.h"

#include <algorithm>
#include <cmath>

namespace similis::media {
namespace {

// The place of the codes of a plane's range: v is the share (v - zero) / span.
struct Codes {
  double zero, span;
};

Codes codes_of(int depth, bool is_full, bool is_chroma) {
  const double step = std::ldexp(1.0, depth - 8), top = std::ldexp(1.0, depth) - 1;
  if (is_full) return {is_chroma ? 128 * step : 0, top};
  return is_chroma ? Codes{128 * step, 224 * step} : Codes{16 * step, 219 * step};
}

std::vector<std::uint16_t> table_of(
    const VideoFormat& from, const VideoFormat& to, bool is_chroma) {
  const int a = from.pixels.bit_depth, b = to.pixels.bit_depth;
  const bool is_full = is_full_range(from);
  Codes x = codes_of(a, is_full, is_chroma), y = codes_of(b, is_full_range(to), is_chroma);
  if (is_full == is_full_range(to)) {  // depth alone: proportional
    x = {0, is_full ? std::ldexp(1.0, a) - 1 : std::ldexp(1.0, a)};
    y = {0, is_full ? std::ldexp(1.0, b) - 1 : std::ldexp(1.0, b)};
  }
  std::vector<std::uint16_t> table(std::size_t{1} << a);
  const double top = std::ldexp(1.0, b) - 1;
  for (std::size_t v = 0; v < table.size(); ++v) {
    const double code = (static_cast<double>(v) - x.zero) * y.span / x.span + y.zero;
    table[v] = static_cast<std::uint16_t>(std::clamp(std::floor(code + 0.5), 0.0, top));
  }
  return table;
}

}  // namespace

bool is_full_range(const VideoFormat& format) {
  return format.color.range == "pc" || format.color.range == "jpeg";
}

CodeMapping::CodeMapping(const VideoFormat& from, const VideoFormat& to)
    : from_(from), to_(to), tables_{table_of(from, to, false), table_of(from, to, true)} {}

void CodeMapping::run(const VideoFrame& frame, VideoFrame& out) const {
  VideoFormat to = from_;
  to.pixels.bit_depth = to_.pixels.bit_depth;
  out.number = frame.number;
  out.bytes.resize(to.frame_bytes());
  for (int plane = 0; plane < from_.pixels.color_planes + from_.pixels.has_alpha; ++plane) {
    const bool is_chroma = plane > 0 && plane < from_.pixels.color_planes;
    const std::vector<std::uint16_t>& table = tables_[is_chroma ? 1 : 0];
    const TensorView in = frame.plane(from_, plane), mapped = out.plane(to, plane);
    const auto codes = [](const TensorView& view) {
      return static_cast<std::uint16_t*>(view.data());
    };
    const auto bytes = [](const TensorView& view) {
      return static_cast<std::uint8_t*>(view.data());
    };
    for (std::int64_t i = 0; i < in.shape.count(); ++i) {
      const std::uint16_t code = table[in.dtype == DType::u8 ? bytes(in)[i] : codes(in)[i]];
      if (mapped.dtype == DType::u8) {
        bytes(mapped)[i] = static_cast<std::uint8_t>(code);
      } else {
        codes(mapped)[i] = code;
      }
    }
  }
}

}  // namespace similis::media
