// SPDX-License-Identifier: Apache-2.0
#include "src/media/video/video.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

struct Family {
  std::string_view name;
  PixelFormat pixels;
};

// ffmpeg's planar families, without the depth that may follow.
constexpr std::array kFamilies = {Family{"gray", {.color_planes = 1}},
    Family{"yuv420p", {.chroma_x_shift = 1, .chroma_y_shift = 1}},
    Family{"yuv422p", {.chroma_x_shift = 1, .chroma_y_shift = 0}},
    Family{"yuv444p", {.chroma_x_shift = 0, .chroma_y_shift = 0}},
    Family{"yuv440p", {.chroma_x_shift = 0, .chroma_y_shift = 1}},
    Family{"yuv411p", {.chroma_x_shift = 2, .chroma_y_shift = 0}},
    Family{"yuv410p", {.chroma_x_shift = 2, .chroma_y_shift = 2}},
    Family{"yuvj420p", {.chroma_x_shift = 1, .chroma_y_shift = 1}},
    Family{"yuvj422p", {.chroma_x_shift = 1, .chroma_y_shift = 0}},
    Family{"yuvj444p", {.chroma_x_shift = 0, .chroma_y_shift = 0}},
    Family{"yuvj440p", {.chroma_x_shift = 0, .chroma_y_shift = 1}},
    Family{"yuvj411p", {.chroma_x_shift = 2, .chroma_y_shift = 0}},
    Family{"yuva420p", {.chroma_x_shift = 1, .chroma_y_shift = 1, .has_alpha = true}},
    Family{"yuva422p", {.chroma_x_shift = 1, .chroma_y_shift = 0, .has_alpha = true}},
    Family{"yuva444p", {.chroma_x_shift = 0, .chroma_y_shift = 0, .has_alpha = true}}};

// The depth that ends a name: "" is 8, "10" and "10le" are 10.
std::optional<int> depth_of(std::string_view text) {
  if (text.empty()) return 8;
  if (text.ends_with("le")) text.remove_suffix(2);
  int depth = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (error != std::errc{} || end != text.data() + text.size() || text.front() == '0') return {};
  if (depth < 9 || depth > 16) return {};
  return depth;
}

std::int64_t shifted(std::int64_t extent, int shift) {
  return (extent + (std::int64_t{1} << shift) - 1) >> shift;
}

template <class Sample> int largest(const std::uint8_t* bytes, std::size_t size) {
  const auto* samples = reinterpret_cast<const Sample*>(bytes);
  Sample result = 0;
  for (std::size_t i = 0; i < size / sizeof(Sample); ++i) result = std::max(result, samples[i]);
  return result;
}

template <class Sample> int smallest(const std::uint8_t* bytes, std::size_t size) {
  const auto* samples = reinterpret_cast<const Sample*>(bytes);
  Sample result = std::numeric_limits<Sample>::max();
  for (std::size_t i = 0; i < size / sizeof(Sample); ++i) result = std::min(result, samples[i]);
  return result;
}

void require_opaque(const VideoFormat& format, const VideoFrame& frame, const File& file) {
  if (!format.pixels.has_alpha) return;
  const std::size_t size = format.plane_bytes(0);
  const std::uint8_t* alpha = frame.bytes.data() + frame.bytes.size() - size;
  const int depth = format.pixels.bit_depth;
  const int found =
      depth == 8 ? smallest<std::uint8_t>(alpha, size) : smallest<std::uint16_t>(alpha, size);
  if (found == (1 << depth) - 1) return;
  refuse(file, "frame {} has transparent pixels; video must be opaque", frame.number);
}

}  // namespace

std::string chroma_name(const PixelFormat& format) {
  if (format.color_planes == 1) return "400";
  static constexpr std::array<std::array<const char*, 3>, 3> kNames = {
      {{"444", "440", "?"}, {"422", "420", "?"}, {"411", "?", "410"}}};
  return kNames[static_cast<std::size_t>(format.chroma_x_shift)]
               [static_cast<std::size_t>(format.chroma_y_shift)];
}

std::optional<PixelFormat> pixel_format(const std::string& name) {
  for (const Family& family : kFamilies) {
    if (!name.starts_with(family.name)) continue;
    const auto depth = depth_of(std::string_view(name).substr(family.name.size()));
    if (!depth) return std::nullopt;
    PixelFormat pixels = family.pixels;
    pixels.bit_depth = *depth;
    return pixels;
  }
  return std::nullopt;
}

FrameRate parse_frame_rate(std::string_view text) {
  FrameRate rate;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, rate.numerator);
  if (first.ec != std::errc{} || first.ptr == end || (*first.ptr != ':' && *first.ptr != '/')) {
    return {};
  }
  const auto second = std::from_chars(first.ptr + 1, end, rate.denominator);
  if (second.ec != std::errc{} || second.ptr != end || !rate.is_known()) return {};
  return rate;
}

std::optional<RawVideo> raw_video(const std::string& name) {
  struct Packed {
    std::string_view name;
    const char* planar;
    ChromaOrder chroma;
    int unused_bits;
  };
  constexpr ChromaOrder cb_cr = ChromaOrder::cb_cr, cr_cb = ChromaOrder::cr_cb;
  static constexpr std::array kPacked = {Packed{"nv12", "yuv420p", cb_cr, 0},
      Packed{"nv21", "yuv420p", cr_cb, 0}, Packed{"nv16", "yuv422p", cb_cr, 0},
      Packed{"nv24", "yuv444p", cb_cr, 0}, Packed{"nv42", "yuv444p", cr_cb, 0},
      Packed{"p010", "yuv420p10", cb_cr, 6}, Packed{"p012", "yuv420p12", cb_cr, 4},
      Packed{"p016", "yuv420p16", cb_cr, 0}, Packed{"p210", "yuv422p10", cb_cr, 6},
      Packed{"p216", "yuv422p16", cb_cr, 0}};
  const std::string little = name.ends_with("le") ? name.substr(0, name.size() - 2) : name;
  for (const Packed& packed : kPacked) {
    if (packed.name != (packed.name.front() == 'p' ? little : name)) continue;
    return RawVideo{.pixels = *pixel_format(packed.planar),
        .chroma = packed.chroma,
        .unused_bits = packed.unused_bits};
  }
  const std::optional<PixelFormat> pixels = pixel_format(name);
  if (!pixels) return std::nullopt;
  return RawVideo{.pixels = *pixels, .is_full_range = name.starts_with("yuvj")};
}

void unpack(const RawVideo& raw, std::vector<std::uint8_t>& bytes) {
  const VideoFormat format{.width = raw.width, .height = raw.height, .pixels = raw.pixels};
  if (raw.unused_bits > 0) {
    auto* samples = reinterpret_cast<std::uint16_t*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
      samples[i] = static_cast<std::uint16_t>(samples[i] >> raw.unused_bits);
    }
  }
  const std::size_t luma = format.plane_bytes(0), chroma = format.plane_bytes(1);
  if (raw.chroma == ChromaOrder::planes || bytes.size() == luma) return;
  const std::size_t sample = raw.pixels.bit_depth > 8 ? 2 : 1;
  const std::vector<std::uint8_t> pairs(
      bytes.begin() + static_cast<std::ptrdiff_t>(luma), bytes.end());
  const std::size_t first = raw.chroma == ChromaOrder::cb_cr ? 0 : 1;
  for (std::size_t plane = 0; plane < 2; ++plane) {
    std::uint8_t* to = bytes.data() + luma + (plane == first ? 0 : chroma);
    for (std::size_t i = 0; i < chroma; i += sample) {
      std::copy_n(pairs.data() + 2 * i + plane * sample, sample, to + i);
    }
  }
}

std::int64_t VideoFormat::plane_width(int plane) const {
  const bool is_chroma = plane > 0 && plane < pixels.color_planes;
  return shifted(width, is_chroma ? pixels.chroma_x_shift : 0);
}

std::int64_t VideoFormat::plane_height(int plane) const {
  const bool is_chroma = plane > 0 && plane < pixels.color_planes;
  return shifted(height, is_chroma ? pixels.chroma_y_shift : 0);
}

std::size_t VideoFormat::plane_bytes(int plane) const {
  const std::int64_t samples = plane_width(plane) * plane_height(plane);
  return static_cast<std::size_t>(samples) * (pixels.bit_depth > 8 ? 2 : 1);
}

std::size_t VideoFormat::frame_bytes() const {
  std::size_t bytes = 0;
  for (int plane = 0; plane < pixels.color_planes + pixels.has_alpha; ++plane) {
    bytes += plane_bytes(plane);
  }
  return bytes;
}

TensorView VideoFrame::plane(const VideoFormat& format, int plane) const {
  std::size_t offset = 0;
  for (int before = 0; before < plane; ++before) offset += format.plane_bytes(before);
  return TensorView(bytes.data() + offset,
      Extents{format.plane_height(plane), format.plane_width(plane)},
      format.pixels.bit_depth > 8 ? DType::u16 : DType::u8);
}

void FrameSource::keep_planes(int count) {
  if (format_.pixels.has_alpha) return;
  kept_bytes_ = 0;
  for (int plane = 0; plane < std::min(count, format_.pixels.color_planes); ++plane) {
    kept_bytes_ += format_.plane_bytes(plane);
  }
}

// A frame of 10 bits whose samples reach 60000 is not in the format that was given.
void FrameSource::require_depth(const std::uint8_t* samples, std::size_t bytes) const {
  const int depth = format_.pixels.bit_depth;
  if (depth == 8 || depth == 16) return;
  const int found = largest<std::uint16_t>(samples, bytes);
  if (found < 1 << depth) return;
  refuse({.bytes = {}, .name = name_},
      "frame {} has a sample of {}; a sample of {} bits is at most {}", next_frame_, found, depth,
      (1 << depth) - 1);
}

bool FrameSource::read(VideoFrame& frame) {
  frame.number = next_frame_;
  if (!read_bytes(frame.bytes)) return false;
  require_depth(frame.bytes.data(), frame.bytes.size());
  ++next_frame_;
  require_opaque(format_, frame, File{frame.bytes, name_});
  return true;
}

}  // namespace similis::media
