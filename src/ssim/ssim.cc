// SPDX-License-Identifier: Apache-2.0
// SSIM's public functions: refuse, allocate, and hand one pass to a backend.
#include "src/ssim/ssim.h"

#include <limits>

#include "src/core/images.h"
#include "src/core/require.h"
#include "src/core/tensor/allocated_results.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis {
namespace ssim_internal {

Extents map_shape(const Pass& pass) {
  return similis::map_shape(pass.x.shape, pass.window, pass.padding, pass.counted);
}

Constants<double> constants_of(
    const char* operation, std::optional<double> data_range, double k1, double k2, DType dtype) {
  const double range = data_range_of(operation, data_range, dtype);
  return {.c1 = k1 * range * k1 * range, .c2 = k2 * range * k2 * range};
}

}  // namespace ssim_internal

namespace {
using ssim_internal::kSsim;
using ssim_internal::Pass;

Extents value_shape(const Pass& pass, const TensorView& x, const SsimRequest& request) {
  if (pass.sums) return sums_shape(x.shape, request.l1_weight == 0 ? 1 : 2);
  return result_shape(x.shape, pass.reduction, map_shape(pass));
}

// The function whose arguments are refused.
const char* operation_of(const SsimRequest& request) {
  return request.l1_weight == 0 ? "ssim" : "l1_ssim";
}

// n / (n - 1) for a sample's covariance. Variances and covariance stand in a quotient with C2
// alone, so that the kernels divide C2 by it instead.
double covariance_factor(const SsimOptions& options, const Window& window) {
  if (!options.sample_covariance) return 1;
  const double n = pixel_count(window);
  require(n > 1,
      "ssim: window_size is 1; with sample_covariance it must be above 1 along at least one axis, "
      "as one pixel has no variance");
  return n / (n - 1);
}

// All that does not depend on where results go.
Pass checked_pass(const char* operation, const TensorView& x, const TensorView& y,
    const SsimOptions& options, const Execution& exec) {
  require_image_pair(operation, x, y);
  kSsim.table.check(&options);
  const auto constants =
      ssim_internal::constants_of(operation, options.data_range, options.k1, options.k2, x.dtype);
  Pass pass;
  pass.window = window_of(operation, options.window, options.window_size, options.sigma, x.shape);
  require_room_for_window(operation, x.shape, pass.window, options.padding);
  pass.x = as_volumes(x);
  pass.y = as_volumes(y);
  pass.mask = as_volumes(broadcast_mask(operation, "mask", options.mask, x, exec));
  pass.valid_mask =
      as_volumes(broadcast_mask(operation, "valid_mask", options.valid_mask, x, exec));
  pass.padding = options.padding;
  pass.reduction = options.sums ? Reduction::per_channel : options.reduction;
  pass.sums = options.sums;
  pass.counted = counted_pixels(operation, options.rows, x.shape, pass.window, options.padding);
  pass.c1 = constants.c1;
  pass.c2 = constants.c2 / covariance_factor(options, pass.window);
  return pass;
}

void require_middle(const char* operation, const TensorView& middle, const TensorView& x) {
  if (middle.empty()) return;
  const Extents planes = {x.shape[0], x.shape[1]};
  require(middle.shape == planes, "{}: middle has shape {}; it must be [N,C], {}", operation,
      middle.shape, planes);
  require(
      middle.dtype == DType::f32, "{}: middle is {}; it must be float32", operation, middle.dtype);
  const Extents dense = dense_strides(planes);
  require(middle.strides == dense, "{}: middle has strides {}; it must be dense, {}", operation,
      middle.strides, dense);
  require(middle.device == x.device, "{}: middle is on {}; it must be on {} as x is", operation,
      middle.device, x.device);
}

// Completes a checked pass by what the request says, and runs it.
void finish(Pass pass, const TensorView& x, const SsimRequest& request, const Execution& exec) {
  require(
      request.l1_weight == 0 || pass.reduction != Reduction::none || pass.padding != Padding::valid,
      "l1_ssim: reduction is none and padding is valid; |x - y| has no map of SSIM's size then, "
      "take another padding");
  const char* const operation = operation_of(request);
  const bool has_mask = !pass.mask.empty() || !pass.valid_mask.empty();
  require(request.l1_weight == 0 || pass.counted.are_all() || !has_mask ||
              x.device.kind == DeviceKind::cpu,
      "l1_ssim: rows and a mask are given; on a GPU it takes one of them");
  const Extents shape = value_shape(pass, x, request);
  if (pass.sums) {
    require_sums(operation, request.value, request.upstream, x, shape);
  } else {
    require_result(operation, request.value, request.upstream, x, shape);
  }
  require_middle(operation, request.middle, x);
  require_gradient(operation, "x_gradient", request.x_gradient, x);
  require_gradient(operation, "y_gradient", request.y_gradient, x);
  const bool is_loss = request.form == SsimRequest::Form::loss;
  pass.bias = is_loss ? 0 : request.ssim_weight;
  pass.term_weight = is_loss ? request.ssim_weight : -request.ssim_weight;
  pass.l1_weight = request.l1_weight;
  if (pass.bias != 0) pass.of_nothing = std::numeric_limits<double>::quiet_NaN();
  const bool is_map = pass.reduction == Reduction::none;
  pass.value = is_map ? as_volumes(request.value) : request.value;
  pass.upstream = is_map      ? as_volumes(request.upstream)
                  : pass.sums ? sums_of_term(request.upstream, 0)
                              : as_upstream(request.upstream, shape);
  if (pass.sums && request.l1_weight != 0) pass.l1_upstream = sums_of_term(request.upstream, 1);
  pass.middle = request.middle;
  pass.x_gradient = as_volumes(request.x_gradient);
  pass.y_gradient = as_volumes(request.y_gradient);
  kSsim.run(pass, x.device, exec);
}

ValueAndGradient run_owned(const TensorView& x, const TensorView& y, SsimRequest request,
    Outputs outputs, const SsimOptions& options, const Execution& exec) {
  const Pass pass = checked_pass(operation_of(request), x, y, options, exec);
  const DType dtype = pass.sums ? DType::f64 : result_dtype(x.dtype);
  const ValueForm value{value_shape(pass, x, request), dtype};
  ValueAndGradient results = allocate_outputs(kSsim, outputs, x, value, exec, request);
  finish(pass, x, request, exec);
  return results;
}

SsimRequest l1_request(const L1SsimOptions& options) {
  require(options.weight >= 0 && options.weight <= 1,
      "l1_ssim: weight is {}; it must be a number from 0 to 1", options.weight);
  return {.form = SsimRequest::Form::loss,
      .l1_weight = 1 - options.weight,
      .ssim_weight = options.weight};
}

}  // namespace

void ssim_into(const TensorView& x, const TensorView& y, const SsimRequest& request,
    const SsimOptions& options, const Execution& exec) {
  finish(checked_pass(operation_of(request), x, y, options, exec), x, request, exec);
}

Tensor ssim(
    const TensorView& x, const TensorView& y, const SsimOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, {.value = true}, options, exec).value;
}

Tensor ssim_loss(
    const TensorView& x, const TensorView& y, const SsimOptions& options, const Execution& exec) {
  return run_owned(x, y, {.form = SsimRequest::Form::loss}, {.value = true}, options, exec).value;
}

ValueAndGradient ssim_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    const SsimOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, value_and_gradients(wrt), options, exec);
}

ValueAndGradient ssim_loss_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt, const SsimOptions& options, const Execution& exec) {
  return run_owned(
      x, y, {.form = SsimRequest::Form::loss}, value_and_gradients(wrt), options, exec);
}

ValueAndGradient ssim_backward(const TensorView& x, const TensorView& y, const TensorView& upstream,
    GradientOf wrt, const SsimOptions& options, const Execution& exec) {
  return run_owned(x, y, {.upstream = upstream}, gradients(wrt), options, exec);
}

Tensor l1_ssim(
    const TensorView& x, const TensorView& y, const L1SsimOptions& options, const Execution& exec) {
  return run_owned(x, y, l1_request(options), {.value = true}, options.ssim, exec).value;
}

ValueAndGradient l1_ssim_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt, const L1SsimOptions& options, const Execution& exec) {
  return run_owned(x, y, l1_request(options), value_and_gradients(wrt), options.ssim, exec);
}

}  // namespace similis
