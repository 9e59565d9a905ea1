// SPDX-License-Identifier: Apache-2.0
// LNCC's public functions: refuse, allocate, and hand one pass to a backend.
#include "src/lncc/lncc.h"

#include <cmath>

#include "src/core/images.h"
#include "src/core/require.h"
#include "src/core/tensor/allocated_results.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/validate.h"

namespace similis {
namespace lncc_internal {

Extents map_shape(const Pass& pass) {
  return similis::map_shape(pass.x.shape, pass.window, pass.padding, pass.counted);
}

}  // namespace lncc_internal

namespace {
using lncc_internal::kLncc;
using lncc_internal::Pass;

Window checked_window(const LnccOptions& options, const Extents& shape) {
  const bool is_box = options.window == WindowShape::box;
  Window window = gaussian_window("lncc", options.window_size, is_box ? 1.0 : options.sigma, shape);
  if (is_box) {
    for (auto* taps : {&window.z, &window.y, &window.x}) taps->assign(taps->size(), 1.0);
  }
  return window;
}

Extents value_shape(const Pass& pass, const TensorView& x) {
  if (pass.sums) return sums_shape(x.shape, 1);
  return result_shape(x.shape, pass.reduction, map_shape(pass));
}

// All that does not depend on where results go.
Pass checked_pass(
    const TensorView& x, const TensorView& y, const LnccOptions& options, const Execution& exec) {
  require_image_pair("lncc", x, y);
  kLncc.table.check(&options);
  require(options.gradient == LnccGradient::exact || !options.is_signed,
      "lncc: gradient is ants and the measure is signed; ants takes the squared measure alone");
  Pass pass;
  pass.window = checked_window(options, x.shape);
  require_room_for_window("lncc", x.shape, pass.window, options.padding);
  pass.is_box = options.window == WindowShape::box;
  pass.taps = static_cast<double>(pass.window.z.size()) *
              static_cast<double>(pass.window.y.size()) * static_cast<double>(pass.window.x.size());
  require(pass.taps > 1,
      "lncc: window_size is 1; it must be above 1 along at least one axis, as one pixel has no "
      "variance");
  pass.constants = {.nr = options.smooth_nr * pass.taps, .dr = options.smooth_dr * pass.taps};
  pass.x = as_volumes(x);
  pass.y = as_volumes(y);
  pass.mask = as_volumes(broadcast_mask("lncc", "mask", options.mask, x, exec));
  pass.valid_mask = as_volumes(broadcast_mask("lncc", "valid_mask", options.valid_mask, x, exec));
  pass.padding = options.padding;
  pass.reduction = options.sums ? Reduction::per_channel : options.reduction;
  pass.sums = options.sums;
  pass.counted = counted_pixels("lncc", options.rows, x.shape, pass.window, options.padding);
  pass.is_signed = options.is_signed;
  pass.gradient = options.gradient;
  pass.workspace = options.workspace;
  return pass;
}

// Completes a checked pass by what the request says, and runs it.
void finish(Pass pass, const TensorView& x, const LnccRequest& request, const Execution& exec) {
  require(std::isfinite(request.weight), "lncc: weight is {}; it must be finite", request.weight);
  const Extents shape = value_shape(pass, x);
  if (pass.sums) {
    require_sums("lncc", request.value, request.upstream, x, shape);
  } else {
    require_result("lncc", request.value, request.upstream, x, shape);
  }
  require_gradient("lncc", "x_gradient", request.x_gradient, x);
  require_gradient("lncc", "y_gradient", request.y_gradient, x);
  pass.weight = request.weight;
  const bool is_map = pass.reduction == Reduction::none;
  pass.value = is_map ? as_volumes(request.value) : request.value;
  pass.upstream = is_map      ? as_volumes(request.upstream)
                  : pass.sums ? sums_of_term(request.upstream, 0)
                              : as_upstream(request.upstream, shape);
  pass.x_gradient = as_volumes(request.x_gradient);
  pass.y_gradient = as_volumes(request.y_gradient);
  kLncc.run(pass, x.device, exec);
}

ValueAndGradient run_owned(const TensorView& x, const TensorView& y, LnccRequest request,
    Outputs outputs, const LnccOptions& options, const Execution& exec) {
  const Pass pass = checked_pass(x, y, options, exec);
  const ValueForm value{value_shape(pass, x), pass.sums ? DType::f64 : result_dtype(x.dtype)};
  ValueAndGradient results = allocate_outputs(kLncc, outputs, x, value, exec, request);
  finish(pass, x, request, exec);
  return results;
}

}  // namespace

void lncc_into(const TensorView& x, const TensorView& y, const LnccRequest& request,
    const LnccOptions& options, const Execution& exec) {
  finish(checked_pass(x, y, options, exec), x, request, exec);
}

Tensor lncc(
    const TensorView& x, const TensorView& y, const LnccOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, {.value = true}, options, exec).value;
}

Tensor lncc_loss(
    const TensorView& x, const TensorView& y, const LnccOptions& options, const Execution& exec) {
  return run_owned(x, y, {.weight = -1}, {.value = true}, options, exec).value;
}

ValueAndGradient lncc_value_and_gradient(const TensorView& x, const TensorView& y, GradientOf wrt,
    const LnccOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, value_and_gradients(wrt), options, exec);
}

ValueAndGradient lncc_loss_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt, const LnccOptions& options, const Execution& exec) {
  return run_owned(x, y, {.weight = -1}, value_and_gradients(wrt), options, exec);
}

ValueAndGradient lncc_backward(const TensorView& x, const TensorView& y, const TensorView& upstream,
    GradientOf wrt, const LnccOptions& options, const Execution& exec) {
  return run_owned(x, y, {.upstream = upstream}, gradients(wrt), options, exec);
}

}  // namespace similis
