// SPDX-License-Identifier: Apache-2.0
// Parts that the kernels of a pass on the GPU share: geometry, arrays, the weight of a pixel, and
// the few numbers of planes (channels of images) that pass between them in device memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>

#include "src/gpu/cuda/upstream.h"
#include "src/gpu/cuda/view.h"
#include "src/lncc/lncc.h"

namespace similis::lncc_internal {

/// Extents are along z, y, x.
struct Geometry {
  std::int64_t channels = 1, planes = 1;
  std::int64_t extent[3] = {};
  std::int64_t first_centre[3] = {}, last_centre[3] = {};  ///< windows are centred on [first, last)
  int radius[3] = {};
  Padding padding = Padding::same;

  explicit Geometry(const Pass& pass);
  SIMILIS_HOST_DEVICE std::int64_t centres(int axis) const {
    return last_centre[axis] - first_centre[axis];
  }
  SIMILIS_HOST_DEVICE bool is_centre(int axis, std::int64_t pixel) const {
    return pixel >= first_centre[axis] && pixel < last_centre[axis];
  }
  SIMILIS_HOST_DEVICE bool is_pixel(int axis, std::int64_t pixel) const {
    return pixel >= 0 && pixel < extent[axis];
  }
  std::int64_t map_elements() const { return centres(0) * centres(1) * centres(2); }
};

struct SquareRoot {
  SIMILIS_HOST_DEVICE double operator()(double value) const { return sqrt(value); }
};

/// The averages of a window.
struct Means {
  double x, y;
};

/// A pixel of a plane.
struct Place {
  std::int64_t image, channel, z, y, x;
};

/// The arguments that every kernel takes.
struct Problem {
  Geometry geometry;
  gpu::View x, y, mask, valid_mask, map, upstream, x_gradient, y_gradient;
  Constants<double> constants;
  double taps, weight;
  bool is_signed, is_ants, reduces;
  /// [2][planes]: slopes, then the least weights that count; set if a pass reduces to numbers whose
  /// weights are known on the device alone. Otherwise `each_slope` is a plane's slope by
  /// upstream 1.
  const double* slopes = nullptr;
  double each_slope = 0;
  gpu::Upstream plane_upstream;

  explicit Problem(const Pass& pass);

  __device__ static std::int64_t offset(const gpu::View& view, const Place& at) {
    return view.plane(at.image, at.channel) + view.at(at.z, at.y, at.x);
  }
  __device__ static double load(const gpu::View& view, const Place& at) {
    return view.load(offset(view, at));
  }
  /// Returns the offset in a map of the value centred on a pixel.
  __device__ std::int64_t map_offset(const gpu::View& view, const Place& at) const {
    const std::int64_t* first = geometry.first_centre;
    return view.plane(at.image, at.channel) +
           view.at(at.z - first[0], at.y - first[1], at.x - first[2]);
  }
  __device__ bool exists(const Place& at) const {
    return valid_mask.data == nullptr || load(valid_mask, at) > 0;
  }
  /// Loads a weight; NaN in place of a negative one, so that results that it takes part in are NaN.
  __device__ static double load_weight(const gpu::View& view, const Place& at) {
    return load_weight(view, offset(view, at));
  }
  __device__ static double load_weight(const gpu::View& view, std::int64_t offset) {
    const double weight = view.load(offset);
    return weight >= 0 ? weight : NAN;
  }
  /// Returns the weight of a pixel: that of mask, else in a reduction that of valid_mask, else 1; 0
  /// if valid_mask excludes it.
  __device__ double pixel_weight(const Place& at) const {
    const double valid = valid_mask.data == nullptr ? 1 : load_weight(valid_mask, at);
    if (!(valid > 0)) return valid;
    if (mask.data != nullptr) return load_weight(mask, at);
    return reduces ? valid : 1;
  }
  /// Returns the amount that v at a pixel of weight 1 adds to Σ upstream·value, in a reduction.
  __device__ double plane_slope(std::int64_t plane) const {
    return slopes != nullptr ? slopes[plane] : each_slope * plane_upstream.of(plane);
  }
  /// Returns the amount that v at a pixel of this weight adds to Σ upstream·value.
  __device__ double slope(const Place& at, double own_weight) const {
    if (reduces) {
      const double slope = plane_slope(at.image * geometry.channels + at.channel);
      return own_weight == 0 && slope == slope ? 0 : own_weight * slope;
    }
    if (own_weight == 0) return 0;
    const double factor = upstream.data == nullptr ? 1 : upstream.load(map_offset(upstream, at));
    return own_weight * weight * factor;
  }
  __device__ void store_map(const Place& at, double own_weight, double value) const {
    const double weighted = own_weight == 0 ? 0 : own_weight * weight * value;
    map.store(map_offset(map, at), exists(at) ? weighted : NAN);
  }
  __device__ Correlation<double> correlation(const Moments<double>& moments) const {
    return is_signed ? signed_correlation(moments, constants, SquareRoot())
                     : squared_correlation(moments, constants);
  }
  /// Stores ANTs' gradients of a centre, from its deviations from the means of its window.
  __device__ void store_centre_gradients(const Place& at, const Moments<double>& m, double slope,
      double x_deviation, double y_deviation) const {
    if (x_gradient.data != nullptr) {
      const double by_x = centre_gradient(m, constants, x_deviation, y_deviation);
      x_gradient.store(offset(x_gradient, at), slope == 0 ? 0 : slope * by_x);
    }
    if (y_gradient.data != nullptr) {
      const double by_y = centre_gradient({m.a, m.c, m.b}, constants, y_deviation, x_deviation);
      y_gradient.store(offset(y_gradient, at), slope == 0 ? 0 : slope * by_y);
    }
  }
};

/// The numbers that the centres of a plane share.
struct PlaneTerms {
  double slope;  // of a pixel of weight 1, where a pass reduces to numbers
  Constants<float> constants;

  __device__ PlaneTerms(const Problem& problem, std::int64_t plane)
      : slope(problem.reduces ? problem.plane_slope(plane) : 0),
        constants{
            static_cast<float>(problem.constants.nr), static_cast<float>(problem.constants.dr)} {}
};

__device__ __forceinline__ Correlation<double> correlation(
    const Problem& problem, const PlaneTerms&, const Moments<double>& moments) {
  return problem.correlation(moments);
}
__device__ __forceinline__ Correlation<float> correlation(
    const Problem& problem, const PlaneTerms& plane, const Moments<float>& moments) {
  return problem.is_signed ? signed_correlation_f32(moments, plane.constants)
                           : squared_correlation_f32(moments, plane.constants);
}

/// Stores ANTs' gradients of a centre; in f32 its first factor is the derivative of the value by
/// the covariance.
__device__ __forceinline__ void store_centre_gradients(const Problem& problem, const PlaneTerms&,
    const Place& at, const Moments<double>& m, const Correlation<double>&, double slope, double x,
    double y) {
  problem.store_centre_gradients(at, m, slope, x, y);
}
__device__ __forceinline__ void store_centre_gradients(const Problem& problem,
    const PlaneTerms& plane, const Place& at, const Moments<float>& m, const Correlation<float>& v,
    float slope, double x, double y) {
  const float factor = slope * v.gradient.a, dr = plane.constants.dr;
  const auto store = [&](const gpu::View& gradient, float variance, double own, double other) {
    if (gradient.data == nullptr) return;
    const float ratio = m.a / (fmaxf(variance, 0.0f) + dr);
    const float by_own = fmaf(-ratio, static_cast<float>(own), static_cast<float>(other));
    gradient.store(Problem::offset(gradient, at), slope == 0 ? 0 : factor * by_own);
  };
  store(problem.x_gradient, m.b, x, y);
  store(problem.y_gradient, m.c, y, x);
}

/// Finishes a centre from its weight, moments and means, in f64 or f32: stores ANTs' gradient or
/// hands the derivatives, with the slope, to store(v, slope); if `adds`, stores the map and returns
/// the weighted value.
template <class T, class Store>
__device__ __forceinline__ double finish_centre(const Problem& problem, const PlaneTerms& plane,
    const Place& at, double own_weight, const Moments<T>& moments, const Means& means,
    bool has_derivatives, bool adds, const Store& store) {
  const Correlation<T> v = correlation(problem, plane, moments);
  const double slope = !problem.reduces ? problem.slope(at, own_weight)
                       : own_weight == 0 && plane.slope == plane.slope ? 0
                                                                       : own_weight * plane.slope;
  if (has_derivatives) {
    store(v, static_cast<T>(slope));
  } else if (problem.x_gradient.data != nullptr || problem.y_gradient.data != nullptr) {
    store_centre_gradients(problem, plane, at, moments, v, static_cast<T>(slope),
        Problem::load(problem.x, at) - means.x, Problem::load(problem.y, at) - means.y);
  }
  if (!adds) return 0;
  const double value = v.value;
  if (problem.map.data != nullptr) problem.store_map(at, own_weight, value);
  return own_weight == 0 ? 0 : own_weight * value;
}

/// Returns the number of derivatives whose window sums make the gradients, as cpu_tile-inl.h has
/// them: 3 for one image, 5 for both, 0 for ANTs' gradient.
inline int derivative_count(const Pass& pass) {
  if (!pass.has_gradient() || pass.gradient == LnccGradient::ants) return 0;
  return !pass.x_gradient.empty() && !pass.y_gradient.empty() ? 5 : 3;
}

/// Stores the derivatives of a centre with these means, of which a unit of v adds `weight` to the
/// result, to out[0], out[stride], …
template <int kDerivatives>
__device__ __forceinline__ void store_derivatives(const Correlation<double>& v, double weight,
    double mean_x, double mean_y, bool of_x, double* out, std::int64_t stride) {
  const double by_a = weight * v.gradient.a;
  const double by_b = 2 * weight * v.gradient.b, by_c = 2 * weight * v.gradient.c;
  out[0] = by_a;
  if constexpr (kDerivatives == 5) {
    out[stride] = by_b;
    out[2 * stride] = fma(by_a, mean_y, by_b * mean_x);
    out[3 * stride] = by_c;
    out[4 * stride] = fma(by_a, mean_x, by_c * mean_y);
  } else {
    const double own = of_x ? by_b : by_c;
    out[stride] = own;
    out[2 * stride] = of_x ? fma(by_a, mean_y, own * mean_x) : fma(by_a, mean_x, own * mean_y);
  }
}

/// Stores the gradients of a pixel from the window sums of the derivatives.
template <int kDerivatives>
__device__ __forceinline__ void store_gradients(const Problem& problem, const Place& at,
    const double (&sums)[kDerivatives], double x, double y, double factor) {
  const bool of_x = problem.x_gradient.data != nullptr;
  if (of_x) {
    const double by_x = fma(y, sums[0], fma(x, sums[1], -sums[2]));
    problem.x_gradient.store(Problem::offset(problem.x_gradient, at), factor * by_x);
  }
  if (problem.y_gradient.data != nullptr) {
    constexpr int kOwn = kDerivatives == 5 ? 3 : 1;
    const double by_y = fma(x, sums[0], fma(y, sums[kOwn], -sums[kOwn + 1]));
    problem.y_gradient.store(Problem::offset(problem.y_gradient, at), factor * by_y);
  }
}

/// Groups of planes; each group makes one result.
struct Groups {
  std::int64_t count = 0, planes_each = 0;
};

/// Each result is its unit times the partial sums of its planes; units null: all have `unit`.
struct Values {
  Groups groups;
  const double* partials = nullptr;
  int slots = 0;
  const double* units = nullptr;
  double unit = 0;
  void* value = nullptr;  ///< null: nothing is to be written
  DType dtype = DType::f32;
};

/// All that a pass needs on the device. A gradient to one image is one to x.
struct CudaPlan {
  const Pass& pass;
  const Execution& exec;
  Device device;
  Problem problem;
  /// Partial sums of Σ weight·v of each plane, [planes][slots]; null with a map.
  double* partials = nullptr;
  int slots = 1;
  Values values;  ///< made of the partial sums

  CudaPlan(const Pass& the_pass, const Execution& execution);
};

/// The fast path takes boxes of any width, and filters of up to 11 taps; find_fast_path() returns
/// null for others. It refers to the plan.
class FastPath;
std::shared_ptr<const FastPath> find_fast_path(const CudaPlan& plan);
/// The number of partial sums of a plane, for which plan.partials must have room, and the pass
/// itself.
int fast_path_slots(const FastPath& fast_path);
/// Returns whether it also writes plan.values.
bool fast_path_writes_values(const FastPath& fast_path);
void run_fast_path(const FastPath& fast_path);
/// Sets ANTs' gradient of the pixels on which no window is centred to 0; does nothing for other
/// passes.
void clear_rim(const CudaPlan& plan);
/// The general path takes everything.
int direct_slots(const CudaPlan& plan);
void run_direct(const CudaPlan& plan);

}  // namespace similis::lncc_internal
