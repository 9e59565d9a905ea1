// SPDX-License-Identifier: Apache-2.0
// libvmaf's measures of all planes of a frame, as `similis compare` and `similis vmaf` both call
// them.
#pragma once

#include <array>
#include <vector>

#include "similis/execution.hpp"
#include "src/cli/metrics/metric.h"
#include "src/media/video/video.h"

namespace similis::cli {

/// The mean squared error of two planes of integers, [H,W].
double mean_squared_error(const TensorView& x, const TensorView& y, const Execution& exec);

struct PsnrHvsScores {
  std::array<double, 3> planes;
  double frame;
};
/// In decibels; infinite if the frames are equal. Throws InvalidArgument if a plane is too small,
/// there is no chroma, or samples have too many bits.
PsnrHvsScores psnr_hvs_scores(const media::VideoFrame& reference,
    const media::VideoFrame& distorted, const media::VideoFormat& format, const Execution& exec);

/// Throws InvalidArgument if there is no chroma.
double ciede_of_frame(const media::VideoFrame& reference, const media::VideoFrame& distorted,
    const media::VideoFormat& format, const Execution& exec);

/// (6·psnr-y + psnr-cb + psnr-cr) / 8; infinite if a plane is equal. Throws InvalidArgument if the
/// chroma is not 4:2:0.
double psnr_yuv(const media::VideoFrame& reference, const media::VideoFrame& distorted,
    const media::VideoFormat& format, const Execution& exec);

/// psnr-yuv, psnr-hvs and ciede.
std::vector<Metric> plane_metrics();

}  // namespace similis::cli
