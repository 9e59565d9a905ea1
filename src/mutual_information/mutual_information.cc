// SPDX-License-Identifier: Apache-2.0
// Mutual information's public functions: refuse, allocate, and hand one pass to a backend.
#include "src/mutual_information/mutual_information.h"

#include <algorithm>
#include <cmath>

#include "src/core/images.h"
#include "src/core/require.h"
#include "src/core/tensor/allocated_results.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/reduction.h"
#include "src/core/validate.h"

namespace similis {
namespace mutual_information_internal {

int gaussian_taps(double sigma, int bins, bool is_f64) {
  const double radius = std::ceil((is_f64 ? 8.5 : 6) * sigma);
  return static_cast<int>(std::min(2 * radius, static_cast<double>(bins)));
}

Blur blur_of(double sigma, int bins) {
  const double at = 1 / (std::sqrt(2.0) * sigma);
  Blur blur;
  blur.radius = static_cast<int>(std::min(std::floor(std::max(4 * sigma, 0.5) + 0.5), bins - 1.0));
  for (int k = 0; k <= blur.radius; ++k) {
    blur.taps[k] = (std::erf((k + 0.5) * at) - std::erf((k - 0.5) * at)) / 2;
  }
  return blur;
}

}  // namespace mutual_information_internal

namespace {
using mutual_information_internal::kFromHistogram;
using mutual_information_internal::kHistogram;
using mutual_information_internal::kMutualInformation;
using mutual_information_internal::Offsets;
using mutual_information_internal::Pass;
using mutual_information_internal::Voxels;

constexpr const char* kMeasure = "mutual_information";

void check(const OperationTable& operation, const MutualInformationOptions& options) {
  operation.check(&options);
  require(options.range != ValueRange::fixed || options.low < options.high,
      "{}: range is ({}, {}); high must be above low", operation.name, options.low, options.high);
  require(!options.normalized || (options.smooth_nr == 0 && options.smooth_dr == 0),
      "{}: smooth_nr is {} and smooth_dr is {}; with normalized they must be 0", operation.name,
      options.smooth_nr, options.smooth_dr);
}

Extents value_shape(const Extents& shape, Reduction reduction) {
  return reduced_shape(shape, reduction, {shape[0], shape[1]});
}

Extents histogram_shape(const Pass& pass) {
  const std::int64_t channels = pass.voxels.channels;
  return {pass.results / channels, channels, pass.bins, pass.bins};
}

Offsets strides_of(const Pass& pass, int axis) {
  const auto stride = [&](const TensorView& view) { return view.empty() ? 0 : view.strides[axis]; };
  return {stride(pass.x), stride(pass.y), stride(pass.mask), stride(pass.x_gradient),
      stride(pass.y_gradient)};
}

// Needs the views of all arrays.
Voxels voxels_of(const Pass& pass) {
  const Extents& shape = pass.x.shape;
  Voxels voxels{.channels = shape[1], .image = strides_of(pass, 0), .channel = strides_of(pass, 1)};
  voxels.rank = 0;
  for (int axis = 2; axis < shape.rank(); ++axis) {
    voxels.count *= shape[axis];
    if (shape[axis] == 1) continue;
    const Voxels::Axis own{shape[axis], strides_of(pass, axis)};
    Voxels::Axis* outer = voxels.rank > 0 ? &voxels.axes[voxels.rank - 1] : nullptr;
    if (outer != nullptr && outer->stride == own.stride * own.extent) {
      *outer = {outer->extent * own.extent, own.stride};
    } else {
      voxels.axes[voxels.rank++] = own;
    }
  }
  voxels.rank = std::max(voxels.rank, 1);
  return voxels;
}

// All that does not depend on where results go.
Pass checked_pass(const Operation<Pass>& of, const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options, const Execution& exec) {
  const char* operation = of.name();
  require(x.shape.rank() >= 3, "{}: x has shape {}; it must have 3 to 8 axes, [N, C, ...]",
      operation, x.shape);
  require_alike(operation, x, y);
  check(of.table, options);
  Pass pass{.x = x,
      .y = y,
      .mask = broadcast_mask(operation, "mask", options.mask, x, exec),
      .results = x.shape[0] * x.shape[1],
      .bins = options.num_bins,
      .kernel = options.kernel,
      .sigma = options.sigma_ratio / 2,
      .range = options.range,
      .low = options.low,
      .high = options.high,
      .is_binned = options.method == HistogramMethod::binned,
      .is_normalized = options.normalized,
      .smoothing = {options.smooth_nr, options.smooth_dr},
      .takes_samples = options.sampling < 1,
      .threshold = static_cast<std::uint64_t>(options.sampling * 0x1p32),
      .seed = options.seed,
      .reduction = options.reduction};
  if (!options.limits.empty()) {
    const Extents shape = {x.shape[0], x.shape[1], 4};
    require(options.limits.shape == shape, "{}: limits has shape {}; it must be {}", operation,
        options.limits.shape, shape);
    require_result(operation, "limits", options.limits, shape, kFloat64, x);
    pass.range = ValueRange::fixed;
    pass.limits = options.limits;
  }
  if (options.kernel == ParzenKernel::gaussian) {
    pass.taps =
        mutual_information_internal::gaussian_taps(pass.sigma, pass.bins, x.dtype == DType::f64);
  }
  pass.voxels.channels = x.shape[1];
  return pass;
}

void require_slopes(const MutualInformationOptions& options, const TensorView& x) {
  require(options.kernel != ParzenKernel::delta,
      "{}: a gradient is asked for, and the kernel is delta; gradients need b_spline or gaussian",
      kMeasure);
  require(is_floating_point(x.dtype),
      "{}: a gradient is asked for, and the images are {}; gradients need float16, bfloat16, "
      "float32 or float64",
      kMeasure, x.dtype);
}

// Completes a checked pass by what the request says, and runs it.
void finish(Pass pass, const MutualInformationRequest& request,
    const MutualInformationOptions& options, const Execution& exec) {
  const TensorView& x = pass.x;
  const Extents shape = value_shape(x.shape, options.reduction);
  require_result(kMeasure, "value", request.value, shape, kFloat32OrFloat64, x);
  require_upstream(kMeasure, request.upstream, shape, x);
  require_result(kMeasure, "histogram", request.histogram, histogram_shape(pass), kFloat64, x);
  if (!request.x_gradient.empty() || !request.y_gradient.empty()) require_slopes(options, x);
  require_gradient(kMeasure, "x_gradient", request.x_gradient, x);
  require_gradient(kMeasure, "y_gradient", request.y_gradient, x);
  pass.sign = request.form == MutualInformationRequest::Form::loss ? -1 : 1;
  pass.given_histogram = request.histogram;
  pass.value = request.value;
  pass.upstream = as_upstream(request.upstream, shape);
  pass.x_gradient = request.x_gradient;
  pass.y_gradient = request.y_gradient;
  pass.voxels = voxels_of(pass);
  kMutualInformation.run(pass, x.device, exec);
}

void finish_histogram(Pass pass, const TensorView& into, const Execution& exec) {
  require_result("histogram", "histogram", into, histogram_shape(pass), kFloat64, pass.x);
  pass.histogram = into;
  pass.voxels = voxels_of(pass);
  kHistogram.run(pass, pass.x.device, exec);
}

ValueAndGradient run_owned(const TensorView& x, const TensorView& y,
    MutualInformationRequest request, Outputs outputs, const MutualInformationOptions& options,
    const Execution& exec) {
  const Pass pass = checked_pass(kMutualInformation, x, y, options, exec);
  if (outputs.x_gradient || outputs.y_gradient) require_slopes(options, x);
  const ValueForm value{value_shape(x.shape, options.reduction), result_dtype(x.dtype)};
  ValueAndGradient results = allocate_outputs(kMutualInformation, outputs, x, value, exec, request);
  finish(pass, request, options, exec);
  return results;
}

constexpr MutualInformationRequest loss() {
  MutualInformationRequest request;
  request.form = MutualInformationRequest::Form::loss;
  return request;
}

// The pass over a histogram alone.
Pass checked_histogram(const TensorView& histogram, MutualInformationOptions options) {
  const Extents& shape = histogram.shape;
  require(!histogram.empty(), "{}: histogram has no data", kFromHistogram.name());
  require(shape.rank() == 4 && shape[0] > 0 && shape[1] > 0 && shape[2] == shape[3] &&
              shape[2] >= 4 && shape[2] <= 256,
      "{}: histogram has shape {}; it must be [N, C, bins, bins] with 4 to 256 bins",
      kFromHistogram.name(), shape);
  require_result(kFromHistogram.name(), "histogram", histogram, shape, kFloat64, histogram);
  options.num_bins = static_cast<int>(shape[2]);
  options.range = ValueRange::per_image;  // it does not matter here
  check(kFromHistogram.table, options);
  Pass pass{.results = shape[0] * shape[1],
      .bins = options.num_bins,
      .sigma = options.sigma_ratio / 2,
      .is_binned = options.method == HistogramMethod::binned,
      .is_normalized = options.normalized,
      .smoothing = {options.smooth_nr, options.smooth_dr},
      .reduction = options.reduction,
      .given_histogram = histogram};
  pass.voxels.channels = shape[1];
  return pass;
}

void finish_from_histogram(Pass pass, const TensorView& value, const Execution& exec) {
  const TensorView& histogram = pass.given_histogram;
  require_result(kFromHistogram.name(), "value", value,
      value_shape(histogram.shape, pass.reduction), kFloat32OrFloat64, histogram);
  pass.value = value;
  kFromHistogram.run(pass, histogram.device, exec);
}

}  // namespace

void mutual_information_into(const TensorView& x, const TensorView& y,
    const MutualInformationRequest& request, const MutualInformationOptions& options,
    const Execution& exec) {
  finish(checked_pass(kMutualInformation, x, y, options, exec), request, options, exec);
}

void histogram_into(const TensorView& x, const TensorView& y, const TensorView& into,
    const MutualInformationOptions& options, const Execution& exec) {
  const Pass pass = checked_pass(kHistogram, x, y, options, exec);
  require(!into.empty(), "histogram: the result has no data");
  finish_histogram(pass, into, exec);
}

void mutual_information_from_histogram_into(const TensorView& histogram, const TensorView& value,
    const MutualInformationOptions& options, const Execution& exec) {
  const Pass pass = checked_histogram(histogram, options);
  require(!value.empty(), "mutual_information_from_histogram: value has no data");
  finish_from_histogram(pass, value, exec);
}

Tensor mutual_information(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, {.value = true}, options, exec).value;
}

Tensor mutual_information_loss(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options, const Execution& exec) {
  return run_owned(x, y, loss(), {.value = true}, options, exec).value;
}

ValueAndGradient mutual_information_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt, const MutualInformationOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, value_and_gradients(wrt), options, exec);
}

ValueAndGradient mutual_information_loss_value_and_gradient(const TensorView& x,
    const TensorView& y, GradientOf wrt, const MutualInformationOptions& options,
    const Execution& exec) {
  return run_owned(x, y, loss(), value_and_gradients(wrt), options, exec);
}

ValueAndGradient mutual_information_backward(const TensorView& x, const TensorView& y,
    const TensorView& upstream, GradientOf wrt, const MutualInformationOptions& options,
    const Execution& exec) {
  return run_owned(x, y, {.upstream = upstream}, gradients(wrt), options, exec);
}

Tensor histogram(const TensorView& x, const TensorView& y, const MutualInformationOptions& options,
    const Execution& exec) {
  const Pass pass = checked_pass(kHistogram, x, y, options, exec);
  kHistogram.require_runs_on(x.device);
  const Tensor result = allocate(histogram_shape(pass), DType::f64, x.device, exec);
  finish_histogram(pass, result, exec);
  return result;
}

Tensor mutual_information_from_histogram(
    const TensorView& histogram, const MutualInformationOptions& options, const Execution& exec) {
  const Pass pass = checked_histogram(histogram, options);
  const Extents shape = value_shape(histogram.shape, options.reduction);
  const Tensor value = allocate(shape, DType::f64, histogram.device, exec);
  finish_from_histogram(pass, value, exec);
  return value;
}

}  // namespace similis
