// SPDX-License-Identifier: Apache-2.0
// Mutual information's public functions: refuse, allocate, and hand one pass to a backend.
#include "src/mutual_information/mutual_information.h"

#include <algorithm>
#include <cmath>

#include "src/core/backend.h"
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
using mutual_information_internal::mutual_information_cpu;
using mutual_information_internal::mutual_information_cuda;
using mutual_information_internal::Offsets;
using mutual_information_internal::Pass;
using mutual_information_internal::Voxels;

constexpr const char* kMeasure = "mutual_information";
constexpr const char* kHistogram = "histogram";
constexpr const char* kFromHistogram = "mutual_information_from_histogram";

void require_known(const char* operation, const MutualInformationOptions& options) {
  require(options.kernel <= ParzenKernel::delta,
      "{}: kernel is {}; it must be b_spline, gaussian or delta", operation,
      static_cast<int>(options.kernel));
  require(options.range <= ValueRange::unit_or_common,
      "{}: range is {}; it must be per_image, common, fixed or unit_or_common", operation,
      static_cast<int>(options.range));
  require(options.method <= HistogramMethod::binned, "{}: method is {}; it must be exact or binned",
      operation, static_cast<int>(options.method));
  require(options.reduction <= Reduction::per_channel,
      "{}: reduction is {}; it must be mean, sum, none, per_image or per_channel", operation,
      static_cast<int>(options.reduction));
}

void require_numbers(const char* operation, const MutualInformationOptions& options) {
  require(options.num_bins >= 4 && options.num_bins <= 256,
      "{}: num_bins is {}; it must be from 4 to 256", operation, options.num_bins);
  require(options.sigma_ratio >= 0.1 && std::isfinite(options.sigma_ratio),
      "{}: sigma_ratio is {}; it must be at least 0.1", operation, options.sigma_ratio);
  require(
      options.range != ValueRange::fixed ||
          (std::isfinite(options.low) && std::isfinite(options.high) && options.low < options.high),
      "{}: range is ({}, {}); high must be above low", operation, options.low, options.high);
  require(options.smooth_nr >= 0 && std::isfinite(options.smooth_nr),
      "{}: smooth_nr is {}; it must not be negative", operation, options.smooth_nr);
  require(options.smooth_dr >= 0 && std::isfinite(options.smooth_dr),
      "{}: smooth_dr is {}; it must not be negative", operation, options.smooth_dr);
  require(!options.normalized || (options.smooth_nr == 0 && options.smooth_dr == 0),
      "{}: smooth_nr is {} and smooth_dr is {}; with normalized they must be 0", operation,
      options.smooth_nr, options.smooth_dr);
  require(options.sampling > 0 && options.sampling <= 1,
      "{}: sampling is {}; it must be above 0 and at most 1", operation, options.sampling);
}

// A mask as a view of the images' shape, by strides of 0.
TensorView broadcast(const char* operation, const TensorView& mask, const TensorView& x) {
  if (mask.empty()) return mask;
  const int rank = x.shape.rank(), missing = rank - mask.shape.rank();
  bool fits = missing >= 0 && missing <= 2;
  for (int axis = std::max(missing, 0); fits && axis < rank; ++axis) {
    const std::int64_t extent = mask.shape[axis - missing];
    fits = extent == x.shape[axis] || (axis < 2 && extent == 1);
  }
  require(fits,
      "{}: mask has shape {}; it must be the images' {}, with N and C left out or 1 where it is "
      "the same for all",
      operation, mask.shape, x.shape);
  require(mask.device == x.device, "{}: mask is on {}; it must be on {} as x is", operation,
      mask.device, x.device);
  TensorView view = mask;
  view.shape = x.shape;
  view.strides = x.strides;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_own = axis >= missing && mask.shape[axis - missing] == x.shape[axis];
    view.strides[axis] = is_own ? mask.strides[axis - missing] : 0;
  }
  return view;
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
Pass checked_pass(const char* operation, const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options) {
  require(x.shape.rank() >= 3, "{}: x has shape {}; it must have 3 to 8 axes, [N, C, ...]",
      operation, x.shape);
  require_alike(operation, x, y);
  require_known(operation, options);
  require_numbers(operation, options);
  Pass pass{.x = x,
      .y = y,
      .mask = broadcast(operation, options.mask, x),
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
  if (options.kernel == ParzenKernel::gaussian) {
    pass.taps =
        mutual_information_internal::gaussian_taps(pass.sigma, pass.bins, x.dtype == DType::f64);
  }
  pass.voxels.channels = x.shape[1];
  return pass;
}

void require_float(const char* operation, const char* what, const TensorView& view,
    const Extents& shape, const Device& device) {
  const bool fits = view.shape == shape || (shape.rank() == 0 && view.shape.count() == 1);
  require(fits, "{}: {} has shape {}; it must be that of the result, {}", operation, what,
      view.shape, shape);
  require(view.device == device, "{}: {} is on {}; it must be on {} as x is", operation, what,
      view.device, device);
}

void require_value(
    const char* operation, const TensorView& value, const Extents& shape, const Device& device) {
  if (value.empty()) return;
  require_float(operation, "value", value, shape, device);
  require(value.dtype == DType::f32 || value.dtype == DType::f64,
      "{}: value is {}; it must be float32 or float64", operation, value.dtype);
  const Extents dense = dense_strides(value.shape);
  require(value.strides == dense, "{}: value has strides {}; it must be dense, {}", operation,
      value.strides, dense);
}

void require_histogram(const char* operation, const TensorView& histogram, const Extents& shape,
    const Device& device) {
  require_float(operation, "histogram", histogram, shape, device);
  require(histogram.dtype == DType::f64, "{}: histogram is {}; it must be float64", operation,
      histogram.dtype);
  const Extents dense = dense_strides(shape);
  require(histogram.strides == dense, "{}: histogram has strides {}; it must be dense, {}",
      operation, histogram.strides, dense);
}

// Without axes if the result has none, for which a caller may give one element in any number.
TensorView as_upstream(const TensorView& upstream, const Extents& shape) {
  if (shape.rank() > 0 || upstream.empty()) return upstream;
  return {upstream.data, {}, {}, upstream.dtype, upstream.device};
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

void run(const char* operation, const Device& device, const Pass& pass, const Execution& exec) {
  require_backend(device, operation, Runs::on_cpu_and_gpu);
#ifdef SIMILIS_HAS_CUDA
  if (device.kind == DeviceKind::cuda) return mutual_information_cuda(pass, exec);
#endif
  mutual_information_cpu(pass, exec);
}

ValueAndGradient run_owned(const TensorView& x, const TensorView& y,
    MutualInformationRequest request, Outputs outputs, const MutualInformationOptions& options,
    const Execution& exec) {
  checked_pass(kMeasure, x, y, options);
  if (outputs.x_gradient || outputs.y_gradient) require_slopes(options, x);
  const ValueForm value{value_shape(x.shape, options.reduction), result_dtype(x.dtype)};
  ValueAndGradient results = allocate_outputs(kMeasure, outputs, x, value, exec, request);
  mutual_information_into(x, y, request, options, exec);
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
  require(!histogram.empty(), "{}: histogram has no data", kFromHistogram);
  require(shape.rank() == 4 && shape[0] > 0 && shape[1] > 0 && shape[2] == shape[3] &&
              shape[2] >= 4 && shape[2] <= 256,
      "{}: histogram has shape {}; it must be [N, C, bins, bins] with 4 to 256 bins",
      kFromHistogram, shape);
  require_histogram(kFromHistogram, histogram, shape, histogram.device);
  options.num_bins = static_cast<int>(shape[2]);
  options.range = ValueRange::per_image;  // of no concern
  require_known(kFromHistogram, options);
  require_numbers(kFromHistogram, options);
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

}  // namespace

void mutual_information_into(const TensorView& x, const TensorView& y,
    const MutualInformationRequest& request, const MutualInformationOptions& options,
    const Execution& exec) {
  Pass pass = checked_pass(kMeasure, x, y, options);
  const Extents shape = value_shape(x.shape, options.reduction);
  require_value(kMeasure, request.value, shape, x.device);
  if (!request.upstream.empty()) {
    require_float(kMeasure, "upstream", request.upstream, shape, x.device);
    require(is_floating_point(request.upstream.dtype),
        "{}: upstream is {}; it must be float16, bfloat16, float32 or float64", kMeasure,
        request.upstream.dtype);
  }
  if (!request.histogram.empty()) {
    require_histogram(kMeasure, request.histogram, histogram_shape(pass), x.device);
  }
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
  run(kMeasure, x.device, pass, exec);
}

void histogram_into(const TensorView& x, const TensorView& y, const TensorView& into,
    const MutualInformationOptions& options, const Execution& exec) {
  Pass pass = checked_pass(kHistogram, x, y, options);
  require(!into.empty(), "{}: the result has no data", kHistogram);
  require_histogram(kHistogram, into, histogram_shape(pass), x.device);
  pass.histogram = into;
  pass.voxels = voxels_of(pass);
  run(kHistogram, x.device, pass, exec);
}

void mutual_information_from_histogram_into(const TensorView& histogram, const TensorView& value,
    const MutualInformationOptions& options, const Execution& exec) {
  Pass pass = checked_histogram(histogram, options);
  require(!value.empty(), "{}: value has no data", kFromHistogram);
  require_value(
      kFromHistogram, value, value_shape(histogram.shape, options.reduction), histogram.device);
  pass.value = value;
  run(kFromHistogram, histogram.device, pass, exec);
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
  const Extents shape = histogram_shape(checked_pass(kHistogram, x, y, options));
  require_backend(x.device, kHistogram, Runs::on_cpu_and_gpu);
  const Tensor result = allocate(shape, DType::f64, x.device, exec);
  histogram_into(x, y, result, options, exec);
  return result;
}

Tensor mutual_information_from_histogram(
    const TensorView& histogram, const MutualInformationOptions& options, const Execution& exec) {
  checked_histogram(histogram, options);
  const Extents shape = value_shape(histogram.shape, options.reduction);
  const Tensor value = allocate(shape, DType::f64, histogram.device, exec);
  mutual_information_from_histogram_into(histogram, value, options, exec);
  return value;
}

}  // namespace similis
