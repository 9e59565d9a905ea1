// SPDX-License-Identifier: Apache-2.0
// Parts that all paths of a pass on the GPU share: the geometry of the images, and sums and slopes
// of each plane (a channel of an image) in device memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>

#include "src/gpu/cuda/upstream.h"
#include "src/gpu/cuda/view.h"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {

/// Extents are along z, y, x.
struct Geometry {
  std::int64_t channels = 1, planes = 1;
  std::int64_t extent[3] = {};
  std::int64_t map_extent[3] = {};
  std::int64_t first_centre[3] = {};  ///< the pixel that the map's first element stands for
  int radius[3] = {};
  Padding padding = Padding::valid;

  explicit Geometry(const Pass& pass);
  SIMILIS_HOST_DEVICE std::int64_t pixels() const { return extent[0] * extent[1] * extent[2]; }
  SIMILIS_HOST_DEVICE std::int64_t map_elements() const {
    return map_extent[0] * map_extent[1] * map_extent[2];
  }
};

/// Numbers that a plane adds to the results.
enum Sum : int {
  kTerm,      ///< Σ weight·(1 - SSIM) over the map
  kL1,        ///< Σ weight·|x - y| over the pixels
  kWeight,    ///< Σ weight over the map
  kL1Weight,  ///< Σ weight over the pixels
  kSums,
};
struct PlaneSums {
  double of[kSums];
};

/// Returns a weight, and NaN in place of a negative one: what it weighs is then NaN too.
template <class T> __device__ __forceinline__ T checked_weight(T weight) {
  return weight >= 0 ? weight : static_cast<T>(NAN);
}

/// The amount that a unit of 1 - SSIM, and of |x - y|, at a pixel of weight 1 adds to Σ
/// upstream·value.
struct PlaneSlopes {
  double term, l1;
};

/// The slopes of planes: kernels find them on the device if masks weigh pixels; otherwise all but
/// upstream is known.
struct PlaneSlope {
  const PlaneSlopes* found = nullptr;
  PlaneSlopes each = {};
  gpu::Upstream upstream;

  __device__ PlaneSlopes of(std::int64_t plane) const {
    if (found != nullptr) return found[plane];
    const double factor = upstream.of(plane);
    return {factor * each.term, factor * each.l1};
  }
};

/// All that a pass needs on the device.
struct CudaPlan {
  const Pass& pass;
  Geometry geometry;
  Device device;
  const Execution& exec;
  std::int64_t groups, planes_each;  ///< each group of planes makes one result
  std::shared_ptr<void> memory;
  PlaneSums* sums = nullptr;  ///< [planes], once allocate_sums() was called

  CudaPlan(const Pass& pass, const Execution& exec);
  bool has_gradient() const { return !pass.x_gradient.empty() || !pass.y_gradient.empty(); }
  bool has_masks() const { return !pass.mask.empty() || !pass.valid_mask.empty(); }
  bool reduces() const { return pass.reduction != Reduction::none; }
  /// A slice of a volume, which has its volume's middle, takes the volume's kernels: a picture's
  /// round otherwise.
  bool is_volume() const {
    return geometry.extent[0] > 1 || geometry.radius[0] > 0 || !pass.middle.empty();
  }
  /// The factors of a result's sums of 1 - SSIM and of |x - y| if there is no mask.
  PlaneSlopes each_slopes() const;
  void allocate_sums();
};

/// The fast path takes 2-D images under a square window, and computes in f32: of up to 11 with
/// every padding, reduced to numbers if that is neither valid nor same; of 11 with valid_mask and
/// padding valid or renormalize, and of up to 21 with padding valid or same, if images of f32 lie
/// where the copy engine can walk them.
bool can_slide_window(const CudaPlan& plan);
/// True if it can also write halved images.
bool can_halve_on_the_way(const CudaPlan& plan);
void run_sliding_window(CudaPlan& plan);

/// Takes images and volumes under any window of up to 33 with any padding, masks and dtype, and
/// computes in f32, or in f64 for f64 images.
bool can_take_any_window(const CudaPlan& plan);
void run_any_window(CudaPlan& plan);

/// Takes windows of up to 11 along each axis, volumes too, with padding valid or same, without
/// masks, reduced to numbers, and computes in f32.
bool can_separate(const CudaPlan& plan);
void run_separable(CudaPlan& plan);

/// The general path takes any window, padding, mask, dtype and rank, and computes in f64.
void run_direct(CudaPlan& plan);

/// Adds each plane's partial sums in a fixed order, of as many kinds as there are from `first` on;
/// partials is [kinds][planes][slots].
void sum_partials(
    const CudaPlan& plan, const double* partials, int slots, Sum first, int kinds = 1);

/// Put the sums of weights in plan.sums: fill_weights() for images without masks, whose sums are
/// known, sum_weights() with masks, together with the sums of |x - y|.
void fill_weights(const CudaPlan& plan);
void sum_weights(const CudaPlan& plan);
/// Returns the slopes of planes; with masks they come from plan.sums.
PlaneSlope slope_of(CudaPlan& plan);
/// Writes the reduction's results, from plan.sums.
void write_values(const CudaPlan& plan);
/// Writes them from partial sums of 1 - SSIM, [planes][slots], if there are no masks and no |x -
/// y|.
void write_values(const CudaPlan& plan, const double* partials, std::int64_t slots);

}  // namespace similis::ssim_internal
