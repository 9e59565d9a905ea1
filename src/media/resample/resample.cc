// SPDX-License-Identifier: Apache-2.0
#include "src/media/resample/resample.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <type_traits>
#include <utility>

#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/media/resample/zimg_plane.h"

namespace similis::media {

const char* name_of(Resampling filter) {
  switch (filter) {
    case Resampling::lanczos: return "lanczos";
    case Resampling::spline36: return "spline36";
    case Resampling::bicubic: return "bicubic";
    case Resampling::bilinear: break;
  }
  return "bilinear";
}

#if SIMILIS_WITH_ZIMG

namespace {

template <class T> T code_of(float value, float top) {
  return static_cast<T>(std::floor(std::clamp(value, 0.0f, top) + 0.5f));
}

// One channel of an image, whose samples lie `channels` apart.
template <class T>
void resample_channel(const T* in, T* out, std::int64_t channels, ZimgPlane& plane,
    const ResampledAxis& x, const ResampledAxis& y, float top) {
  for (std::int64_t row = 0; row < y.from; ++row) {
    float* to = plane.input_row(row);
    const T* from = in + row * x.from * channels;
    for (std::int64_t i = 0; i < x.from; ++i) to[i] = static_cast<float>(from[i * channels]);
  }
  plane.run();
  for (std::int64_t row = 0; row < y.to; ++row) {
    const float* from = plane.output_row(row);
    T* to = out + row * x.to * channels;
    for (std::int64_t i = 0; i < x.to; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        to[i * channels] = from[i];
      } else {
        to[i * channels] = code_of<T>(from[i], top);
      }
    }
  }
}

ResampledAxis whole_axis(std::int64_t from, std::int64_t to) {
  return {from, to, 0, static_cast<double>(from)};
}

// The axis of a chroma plane, where 2^shift luma samples share one of chroma. Its sample lies in
// their middle, or where the first of them lies.
ResampledAxis chroma_axis(std::int64_t from, std::int64_t to, int shift, bool is_first) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double offset = is_first ? std::ldexp(0.5, -shift) - 0.5 : 0;
  const auto samples = [shift](std::int64_t luma) { return (luma + (1 << shift) - 1) >> shift; };
  return {
      samples(from), samples(to), offset * (ratio - 1), static_cast<double>(samples(to)) * ratio};
}

template <class T>
void resample_image(const std::vector<T>& in, const Image& image, Image& result, Resampling filter,
    const Execution& exec, std::vector<T>& out) {
  const ResampledAxis x = whole_axis(image.width, result.width);
  const ResampledAxis y = whole_axis(image.height, result.height);
  out.resize(static_cast<std::size_t>(result.width * result.height * result.channels));
  const float top = std::ldexp(1.0f, image.bit_depth) - 1;
  parallel_for(exec, image.channels, [&](std::int64_t channel) {
    ZimgPlane plane(x, y, filter);
    resample_channel(in.data() + channel, out.data() + channel, image.channels, plane, x, y, top);
  });
}

}  // namespace

void require_resampling() {}

Image resampled(const Image& image, std::int64_t width, std::int64_t height, Resampling filter,
    const Execution& exec) {
  Image result{.width = width,
      .height = height,
      .channels = image.channels,
      .bit_depth = image.bit_depth,
      .source_bit_depth = image.source_bit_depth,
      .color = image.color,
      .format = image.format,
      .frames = image.frames};
  if (image.has_floats()) {
    resample_image(image.samples_float, image, result, filter, exec, result.samples_float);
  } else if (image.bit_depth == 8) {
    resample_image(image.samples8, image, result, filter, exec, result.samples8);
  } else {
    resample_image(image.samples16, image, result, filter, exec, result.samples16);
  }
  return result;
}

struct FrameResampler::Parts {
  struct Plane {
    ResampledAxis x, y;
    ZimgPlane zimg;
    Plane(const ResampledAxis& along_x, const ResampledAxis& along_y, Resampling filter)
        : x(along_x), y(along_y), zimg(along_x, along_y, filter) {}
  };
  VideoFormat from, to;
  std::deque<Plane> planes;
};

FrameResampler::FrameResampler(const VideoFormat& from, const VideoFormat& to, Resampling filter)
    : parts_(std::make_unique<Parts>()) {
  parts_->from = from;
  parts_->to = to;
  const std::string& siting = from.color.siting;
  const bool is_left = siting != "center" && siting != "top" && siting != "bottom";
  const bool is_top = siting.starts_with("top");
  for (int plane = 0; plane < from.pixels.color_planes; ++plane) {
    const int x_shift = plane > 0 ? from.pixels.chroma_x_shift : 0;
    const int y_shift = plane > 0 ? from.pixels.chroma_y_shift : 0;
    parts_->planes.emplace_back(chroma_axis(from.width, to.width, x_shift, is_left),
        chroma_axis(from.height, to.height, y_shift, is_top), filter);
  }
}

FrameResampler::~FrameResampler() = default;
FrameResampler::FrameResampler(FrameResampler&&) noexcept = default;

// Alpha is opaque, as FrameSource requires.
void FrameResampler::run(const VideoFrame& frame, VideoFrame& out, const Execution& exec) {
  const VideoFormat &from = parts_->from, &to = parts_->to;
  out.number = frame.number;
  out.bytes.resize(to.frame_bytes());
  const float top = std::ldexp(1.0f, from.pixels.bit_depth) - 1;
  parallel_for(exec, from.pixels.color_planes, [&](std::int64_t i) {
    const int index = static_cast<int>(i);
    Parts::Plane& plane = parts_->planes[static_cast<std::size_t>(i)];
    const TensorView in = frame.plane(from, index), resized = out.plane(to, index);
    if (in.dtype == DType::u8) {
      resample_channel(static_cast<const std::uint8_t*>(in.data()),
          static_cast<std::uint8_t*>(resized.data()), 1, plane.zimg, plane.x, plane.y, top);
    } else {
      resample_channel(static_cast<const std::uint16_t*>(in.data()),
          static_cast<std::uint16_t*>(resized.data()), 1, plane.zimg, plane.x, plane.y, top);
    }
  });
  if (!from.pixels.has_alpha) return;
  const TensorView alpha = out.plane(to, from.pixels.color_planes);
  const auto opaque = static_cast<std::uint16_t>(top);
  for (std::int64_t i = 0; i < alpha.shape.count(); ++i) {
    if (alpha.dtype == DType::u8) {
      static_cast<std::uint8_t*>(alpha.data())[i] = static_cast<std::uint8_t>(opaque);
    } else {
      static_cast<std::uint16_t*>(alpha.data())[i] = opaque;
    }
  }
}

#else

std::string resampling_library() { return {}; }

void require_resampling() {
  throw InvalidArgument(
      "--resize: this similis was built without zimg; install zimg (on Debian: apt install "
      "libzimg-dev) and build again");
}

Image resampled(const Image&, std::int64_t, std::int64_t, Resampling, const Execution&) {
  require_resampling();
  return {};
}

struct FrameResampler::Parts {};
FrameResampler::FrameResampler(const VideoFormat&, const VideoFormat&, Resampling) {
  require_resampling();
}
FrameResampler::~FrameResampler() = default;
FrameResampler::FrameResampler(FrameResampler&&) noexcept = default;
void FrameResampler::run(const VideoFrame&, VideoFrame&, const Execution&) {}

#endif

}  // namespace similis::media
