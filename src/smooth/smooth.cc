// SPDX-License-Identifier: Apache-2.0
// Public functions of smoothing: refuse, allocate, and hand one pass to a backend.
#include "src/smooth/smooth.h"

#include <algorithm>
#include <cmath>

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis {
namespace {

using namespace smooth_internal;

constexpr double kLargestRadius = 65535;

// The axes of x or output as those of SmoothPass.
TensorView with_six_axes(const TensorView& view, bool is_field) {
  TensorView result = view;
  const int rank = view.shape.rank(), space = rank - 2;
  result.shape = {1, 1, 1, 1, 1, 1};
  result.strides = {0, 0, 0, 0, 0, 0};
  const auto take = [&](int to, int from) {
    result.shape[to] = view.shape[from];
    result.strides[to] = view.strides[from];
  };
  take(kImage, 0);
  take(is_field ? int{kComponent} : int{kChannel}, is_field ? rank - 1 : 1);
  for (int axis = 0; axis < space; ++axis)
    take(kX - axis, is_field ? rank - 2 - axis : rank - 1 - axis);
  return result;
}

void check(const TensorView& x, const SmoothOptions& options) {
  kSmooth.table.check(&options);
  const char* const name = kSmooth.name();
  require(!x.empty(), "{}: x has no data", name);
  const Extents& shape = x.shape;
  const int rank = shape.rank();
  if (options.field) {
    require((rank == 4 || rank == 5) && shape[rank - 1] == rank - 2,
        "{}: x has shape {}; a field must be [N, Y, X, 2] or [N, Z, Y, X, 3]", name, shape);
  } else {
    require(rank == 4 || rank == 5,
        "{}: x has shape {}; it must be [N, C, Y, X] or [N, C, Z, Y, X]", name, shape);
  }
  require(*std::min_element(shape.begin(), shape.end()) > 0,
      "{}: x has shape {}; every extent must be at least 1", name, shape);
  require(is_floating_point(x.dtype),
      "{}: x is {}; it must be float16, bfloat16, float32 or float64", name, x.dtype);
  const int count = options.sigma.count();
  require(count == 1 || count == rank - 2,
      "{}: sigma has {} numbers; it takes one, or one for each of the {} axes", name, count,
      rank - 2);
  for (const double sigma : {options.sigma.z(), options.sigma.y(), options.sigma.x()}) {
    const double radius = std::round(options.truncate * sigma);
    require(radius <= kLargestRadius,
        "{}: sigma is {} and truncate {}, a radius of {} voxels; it must be at most {}", name,
        sigma, options.truncate, radius, kLargestRadius);
  }
}

std::vector<double> taps_of(double sigma, double truncate) {
  const auto radius = static_cast<std::size_t>(std::round(truncate * sigma));
  std::vector<double> taps(radius + 1, 1.0);
  double sum = 1;
  for (std::size_t k = 1; k <= radius; ++k) {
    const double deviations = static_cast<double>(k) / sigma;
    taps[k] = std::exp(-deviations * deviations / 2);
    sum += 2 * taps[k];
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

void require_output(const TensorView& output, const TensorView& x) {
  const char* const name = kSmooth.name();
  require(!output.empty(), "{}: output has no data", name);
  require(output.shape == x.shape, "{}: output has shape {}; it must be that of x, {}", name,
      output.shape, x.shape);
  require_in_place(name, "output", output);
  require(output.device == x.device, "{}: output is on {}; it must be on {} as x is", name,
      output.device, x.device);
}

Tensor allocated(
    const TensorView& x, bool adjoint, const SmoothOptions& options, const Execution& exec) {
  check(x, options);
  kSmooth.require_runs_on(x.device);
  const Tensor output = allocate(x.shape, x.dtype, x.device, exec);
  smooth_into(x, {.output = output, .adjoint = adjoint}, options, exec);
  return output;
}

}  // namespace

SmoothPass smooth_internal::smooth_pass(
    const TensorView& x, const SmoothRequest& request, const SmoothOptions& options) {
  const PerAxis<double>& sigma = options.sigma;
  const bool is_volume = x.shape.rank() == 5;
  return {.x = with_six_axes(x, options.field),
      .output = with_six_axes(request.output, options.field),
      .taps = {taps_of(is_volume ? sigma.z() : 0, options.truncate),
          taps_of(sigma.y(), options.truncate), taps_of(sigma.x(), options.truncate)},
      .is_zero_padded = options.padding == SmoothPadding::zeros,
      .is_adjoint = request.adjoint};
}

Tensor smooth(const TensorView& x, const SmoothOptions& options, const Execution& exec) {
  return allocated(x, false, options, exec);
}

Tensor smooth_backward(
    const TensorView& upstream, const SmoothOptions& options, const Execution& exec) {
  return allocated(upstream, true, options, exec);
}

void smooth_into(const TensorView& x, const SmoothRequest& request, const SmoothOptions& options,
    const Execution& exec) {
  check(x, options);
  require_output(request.output, x);
  kSmooth.run(smooth_pass(x, request, options), x.device, exec);
}

}  // namespace similis
