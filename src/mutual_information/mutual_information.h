// SPDX-License-Identifier: Apache-2.0
// A pass over a pair of images as mutual_information.cc hands it to a backend once everything about
// it is checked: its voxels, their weights, and the use of their histogram.
#pragma once

#include <cstdint>

#include "similis/mutual_information.hpp"
#include "src/core/operation.h"
#include "src/mutual_information/formula.h"

namespace similis::mutual_information_internal {

/// The offset of an element, or the distance of two, in each array.
struct Offsets {
  std::int64_t x = 0, y = 0, mask = 0, x_gradient = 0, y_gradient = 0;

  friend bool operator==(const Offsets&, const Offsets&) = default;
  SIMILIS_HOST_DEVICE Offsets operator*(std::int64_t n) const {
    return {x * n, y * n, mask * n, x_gradient * n, y_gradient * n};
  }
  SIMILIS_HOST_DEVICE Offsets operator+(const Offsets& o) const {
    return {x + o.x, y + o.y, mask + o.mask, x_gradient + o.x_gradient, y_gradient + o.y_gradient};
  }
};

/// The voxels of one channel of one image in row-major order, which sampling counts by. Axes that
/// lie in all arrays as if they were one are one; the last is the line.
struct Voxels {
  struct Axis {
    std::int64_t extent = 1;
    Offsets stride;
  };
  Axis axes[kMaxRank];
  int rank = 1;
  std::int64_t count = 1;
  std::int64_t channels = 1;  ///< channels of an image
  Offsets image, channel;     ///< strides

  SIMILIS_HOST_DEVICE Offsets start(std::int64_t result) const {
    return image * (result / channels) + channel * (result % channels);
  }
  /// The offsets from the start; needs no division where all voxels lie in one line.
  SIMILIS_HOST_DEVICE Offsets at(std::int64_t index) const {
    Offsets offsets;
    for (int i = rank - 1; i > 0; --i) {
      const std::int64_t outer = index / axes[i].extent;
      offsets = offsets + axes[i].stride * (index - outer * axes[i].extent);
      index = outer;
    }
    return offsets + axes[0].stride * index;
  }
};

struct Pass {
  TensorView x, y, mask;
  Voxels voxels;             ///< those of one result
  std::int64_t results = 1;  ///< N·C
  int bins = 32;
  ParzenKernel kernel = ParzenKernel::b_spline;
  double sigma = 0.5;  ///< the Gaussian's standard deviation, in bins
  int taps = 4;        ///< neighbours that a voxel counts in
  ValueRange range = ValueRange::per_image;
  double low = 0, high = 1;
  TensorView limits;  ///< [results][4]: x's low and high, y's; with range fixed, or empty
  bool is_binned = false, is_normalized = false;
  Smoothing smoothing;
  bool takes_samples = false;
  std::uint64_t threshold = 0, seed = 0;

  /// The results to write; empty views are left out.
  Reduction reduction = Reduction::mean;
  double sign = 1;             ///< -1 in a loss
  TensorView given_histogram;  ///< takes the place of that of x and y
  TensorView histogram;        ///< [N,C,bins,bins], f64, dense
  TensorView value, upstream;  ///< [], [N] or [N,C]
  TensorView x_gradient, y_gradient;

  bool has_gradient() const { return !x_gradient.empty() || !y_gradient.empty(); }
  /// True if the derivatives by the margins sum to more than constants.
  bool needs_margin_slopes() const { return smoothing.is_on() || is_binned; }
  std::int64_t entries() const { return std::int64_t{bins} * bins; }
  /// True if some results may have no voxel that counts.
  bool has_exclusions() const { return !mask.empty() || takes_samples || !given_histogram.empty(); }
  bool is_loss() const { return sign < 0; }
  /// The number of results that one value is made of.
  std::int64_t results_of_value() const {
    if (reduction == Reduction::per_image) return voxels.channels;
    return reduction == Reduction::mean || reduction == Reduction::sum ? results : 1;
  }
  /// The factor of a value's sum over the `counted` results that have voxels; a mean leaves the
  /// others out.
  SIMILIS_HOST_DEVICE static double value_factor(double sign, bool is_sum, double counted) {
    return is_sum ? sign : counted > 0 ? sign / counted : 0;
  }
  bool is_sum() const { return reduction == Reduction::sum; }
};

/// Neighbours that a Gaussian is looked at in: to 6 deviations, or 8.5 where results are f64.
int gaussian_taps(double sigma, int bins, bool is_f64);

/// The weights that blur the histogram of method binned, from the middle outwards; the last is the
/// radius-th.
struct Blur {
  static constexpr int kMostRadius = 255;
  int radius = 0;
  double taps[kMostRadius + 1] = {1};
};
Blur blur_of(double sigma, int bins);

/// x and y may be empty: the pass is then over the given histogram alone.
void mutual_information_cpu(const Pass& pass, const Execution& exec);

/// The same on the GPU that holds the arrays, queued on exec.queue.
void mutual_information_cuda(const Pass& pass, const Execution& exec);

extern const Operation<Pass> kMutualInformation, kHistogram, kFromHistogram;

}  // namespace similis::mutual_information_internal
