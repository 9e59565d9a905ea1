// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/plane_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "similis/pixel_error.hpp"
#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/vmaf/ciede/ciede.h"
#include "src/vmaf/psnr_hvs/psnr_hvs.h"

namespace similis::cli {
namespace {

using media::VideoFormat;
using media::VideoFrame;
using vmaf_internal::ColorPlanes;
using vmaf_internal::Plane;

Plane plane_of(const VideoFrame& frame, const VideoFormat& format, int plane) {
  const TensorView view = frame.plane(format, plane);
  return {view.data(), view.strides[0], view.shape[1], view.shape[0], view.dtype == DType::u16,
      format.pixels.bit_depth};
}

void require_color(const char* name, const VideoFormat& format) {
  require(format.pixels.color_planes == 3,
      "{} takes the three planes of colour video; grey video has one", name);
}

ColorPlanes color_planes(const VideoFrame& frame, const VideoFormat& format) {
  ColorPlanes planes;
  for (int i = 0; i < 3; ++i) {
    planes.planes[static_cast<std::size_t>(i)] = plane_of(frame, format, i);
  }
  planes.column_shift = format.pixels.chroma_x_shift;
  planes.row_shift = format.pixels.chroma_y_shift;
  return planes;
}

// A metric of whole frames of video.
using FrameNumbers = std::function<std::vector<double>(
    const VideoFrame&, const VideoFrame&, const VideoFormat&, const Execution&)>;
Metric frame_metric(const char* name, const char* description, std::vector<std::string> parts,
    const FrameNumbers& numbers) {
  Metric metric{.name = name, .description = description, .video_planes = VideoPlanes::frame};
  metric.configure = [=](const Settings&) {
    Measure measure;
    measure.parts = parts;
    measure.values = [=](const FramePair& pair, const Execution& exec) {
      require(pair.as_read.video != nullptr,
          "{} takes the planes of video; pictures and volumes have none", name);
      const auto& [x, y] = *pair.as_read.video;
      require(x.format->pixels.bit_depth == y.format->pixels.bit_depth,
          "{}: {} has {} bits per sample and {} has {}; they must match", name, x.name,
          x.format->pixels.bit_depth, y.name, y.format->pixels.bit_depth);
      return numbers(*x.frame, *y.frame, *x.format, exec);
    };
    measure.value = [values = measure.values](const FramePair& pair, const Execution& exec) {
      return values(pair, exec).front();
    };
    measure.settings = [](std::optional<double>) { return Settings{}; };
    return measure;
  };
  return metric;
}

}  // namespace

double mean_squared_error(const TensorView& x, const TensorView& y, const Execution& exec) {
  const Tensor value = allocate({}, DType::f64, {}, exec);
  mse_into(x, y, {.value = value}, PixelErrorOptions{}, exec);
  return item(value);
}

PsnrHvsScores psnr_hvs_scores(const VideoFrame& reference, const VideoFrame& distorted,
    const VideoFormat& format, const Execution& exec) {
  require_backend({}, "psnr_hvs", true);
  require_color("psnr_hvs", format);
  require(format.pixels.bit_depth <= vmaf_internal::kPsnrHvsMostBits,
      "psnr_hvs: samples have {} bits; it takes up to {}", format.pixels.bit_depth,
      vmaf_internal::kPsnrHvsMostBits);
  std::array<double, 3> errors{};
  for (int i = 0; i < 3; ++i) {
    const Plane x = plane_of(reference, format, i), y = plane_of(distorted, format, i);
    require(std::min(x.width, x.height) >= vmaf_internal::kPsnrHvsSmallestSide,
        "psnr_hvs: a plane is {}×{}; width and height must be at least {}", x.width, x.height,
        vmaf_internal::kPsnrHvsSmallestSide);
    errors[static_cast<std::size_t>(i)] =
        static_cast<double>(vmaf_internal::psnr_hvs_cpu({x, y}, i, exec));
  }
  PsnrHvsScores scores{};
  for (std::size_t i = 0; i < 3; ++i) {
    scores.planes[i] = vmaf_internal::psnr_hvs_decibels(errors[i]);
  }
  scores.frame = vmaf_internal::psnr_hvs_decibels(
      vmaf_internal::psnr_hvs_of_planes(errors[0], errors[1], errors[2]));
  return scores;
}

double ciede_of_frame(const VideoFrame& reference, const VideoFrame& distorted,
    const VideoFormat& format, const Execution& exec) {
  require_backend({}, "ciede", true);
  require_color("ciede", format);
  return vmaf_internal::ciede_score(vmaf_internal::ciede_cpu(
      color_planes(reference, format), color_planes(distorted, format), exec));
}

double psnr_yuv(const VideoFrame& reference, const VideoFrame& distorted, const VideoFormat& format,
    const Execution& exec) {
  require(chroma_name(format.pixels) == "420",
      "psnr-yuv weighs the planes of 4:2:0 video 6:1:1; this one has chroma {}",
      chroma_name(format.pixels));
  constexpr std::array kWeights = {6.0, 1.0, 1.0};
  const double largest = (1 << format.pixels.bit_depth) - 1;
  double sum = 0, weights = 0;
  for (int i = 0; i < 3; ++i) {
    const double error =
        mean_squared_error(reference.plane(format, i), distorted.plane(format, i), exec);
    const double weight = kWeights[static_cast<std::size_t>(i)];
    sum += weight * 10 * std::log10(largest * largest / error);
    weights += weight;
  }
  return sum / weights;
}

std::vector<Metric> plane_metrics() {
  std::vector<Metric> metrics;
  metrics.push_back(frame_metric("psnr-yuv", "psnr of 4:2:0 video, its planes weighed 6:1:1, in dB",
      {""},
      [](const VideoFrame& x, const VideoFrame& y, const VideoFormat& format,
          const Execution& exec) { return std::vector<double>{psnr_yuv(x, y, format, exec)}; }));
  metrics.push_back(frame_metric("psnr-hvs", "libvmaf's psnr_hvs of video in dB; infinite if equal",
      {"", "y", "cb", "cr"},
      [](const VideoFrame& x, const VideoFrame& y, const VideoFormat& format,
          const Execution& exec) {
        const PsnrHvsScores scores = psnr_hvs_scores(x, y, format, exec);
        return std::vector<double>{
            scores.frame, scores.planes[0], scores.planes[1], scores.planes[2]};
      }));
  metrics.push_back(
      frame_metric("ciede", "libvmaf's ciede2000 of colours of video; infinite if equal", {""},
          [](const VideoFrame& x, const VideoFrame& y, const VideoFormat& format,
              const Execution& exec) {
            return std::vector<double>{ciede_of_frame(x, y, format, exec)};
          }));
  return metrics;
}

}  // namespace similis::cli
