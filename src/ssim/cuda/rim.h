// SPDX-License-Identifier: Apache-2.0
// The rim of a plane that the sliding window leaves out: the windows whose centre lies within 5
// pixels of an edge.
#pragma once

#include <cstdint>
#include <vector>

#include "src/ssim/cuda/sliding_window_finish.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

/// Windows of up to 11×11 in the rim of each plane, whose extents are at least kLeastExtent.
struct Rim {
  static constexpr int kRadius = 5, kTaps = 2 * kRadius + 1;
  static constexpr int kLeastExtent = 4 * kRadius + 1;
  static constexpr int kDeep = 2 * kRadius;     ///< pixels of the rim, from an edge inwards
  static constexpr int kWindows = 3 * kRadius;  ///< windows from an edge inwards that see them

  gpu::View x, y;
  std::int64_t channels, planes;
  int height, width;
  int first;  ///< the map's first pixel from each edge
  Padding padding;
  float taps[kTaps];               ///< outer taps of a smaller window are 0
  float inverse_weight[kRadius];   ///< of windows that an edge cuts, by their centre; else 1
  float adjoint[kDeep][kWindows];  ///< the weight of a pixel in a window, along one axis
  float c1, c2;                    ///< 2·C1 and 2·C2
  PlaneSlope slope;
  /// The gradient by x, without data if none is wanted. It holds that of all other windows, and the
  /// rim's is added to it; or, as numbers that are rounded when they are stored must be, its pixels
  /// within kDeep of an edge are computed anew.
  gpu::View gradient;
  bool replaces_gradient;
  double* partials;                   ///< [plane][tiles]; null if nothing is summed
  sliding_window::Segments segments;  ///< the sums of all other windows
  SlidingWindowFinish finish;
};

/// Returns the number of tiles that a plane's rim takes.
std::int64_t rim_tiles(std::int64_t height, std::int64_t width);

/// Fills what depends on the window and the padding.
void set_window(Rim& rim, const std::vector<double>& taps);

/// Queues the rim's kernel: gradient, sums, and with them the values.
void run_rim(const Rim& rim, const Execution& exec);

}  // namespace similis::ssim_internal

#endif
