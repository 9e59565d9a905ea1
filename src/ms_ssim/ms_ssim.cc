// SPDX-License-Identifier: Apache-2.0
// MS-SSIM's public functions: refuse, allocate, and hand one call to a backend.
#include "src/ms_ssim/ms_ssim.h"

#include <algorithm>

#include "src/core/images.h"
#include "src/core/require.h"
#include "src/core/tensor/allocated_results.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/reduction.h"
#include "src/core/validate.h"

namespace similis {
namespace {
using ms_ssim_internal::kMsSsim;
using ms_ssim_internal::Pass;

constexpr std::size_t kMaxLevels = 16;

// The least extent that a window with this padding takes.
std::int64_t least_extent(std::int64_t radius, Padding padding) {
  if (padding == Padding::valid) return 2 * radius + 1;
  return padding == Padding::reflect ? radius + 1 : 1;
}

std::int64_t coarsest(std::int64_t extent, std::size_t levels, Downsample rule) {
  for (std::size_t level = 1; level < levels && extent > 0; ++level) {
    extent = Halving(extent, rule, extent % 2 != 0).coarse_extent();
  }
  return extent;
}

void require_room(const TensorView& x, const Window& window, const MsSsimOptions& options) {
  const std::size_t levels = options.weights.size();
  const auto check = [&](const char* axis, std::int64_t extent, std::int64_t radius) {
    const std::int64_t least = least_extent(radius, options.padding);
    if (coarsest(extent, levels, options.downsample) >= least) return;
    std::int64_t smallest = extent;
    while (coarsest(smallest, levels, options.downsample) < least) ++smallest;
    throw InvalidArgument(
        fmt::format("ms_ssim: {} is {}; for {} levels and a window of {} it must be at least {}",
            axis, extent, levels, 2 * radius + 1, smallest));
  };
  const int last = x.shape.rank() - 1;
  if (last == 4) check("depth", x.shape[2], window.radius_z());
  check("height", x.shape[last - 1], window.radius_y());
  check("width", x.shape[last], window.radius_x());
}

// All that does not depend on where results go.
Pass checked_pass(
    const TensorView& x, const TensorView& y, const MsSsimOptions& options, const Execution& exec) {
  require_image_pair("ms_ssim", x, y);
  kMsSsim.table.check(&options);
  require(!options.weights.empty() && options.weights.size() <= kMaxLevels,
      "ms_ssim: weights has {} numbers; it must have 1 to {}, one for each level",
      options.weights.size(), kMaxLevels);
  const auto constants =
      ssim_internal::constants_of("ms_ssim", options.data_range, options.k1, options.k2, x.dtype);
  Pass pass;
  pass.level.window = gaussian_window("ms_ssim", options.window_size, options.sigma, x.shape);
  require_room(x, pass.level.window, options);
  pass.level.x = as_volumes(x);
  pass.level.y = as_volumes(y);
  pass.level.mask = as_volumes(broadcast_mask("ms_ssim", "mask", options.mask, x, exec));
  if (!options.mask.empty()) pass.level.of_nothing = ms_ssim_internal::kNoMean;
  pass.level.padding = options.padding;
  pass.level.c1 = constants.c1;
  pass.level.c2 = constants.c2;
  pass.is_3d = x.shape.rank() == 5;
  pass.weights = options.weights;
  pass.downsample = options.downsample;
  pass.reduction = options.reduction;
  return pass;
}

// Completes a checked pass by what the request says, and runs it.
void finish(Pass pass, const TensorView& x, const MsSsimRequest& request, const Execution& exec) {
  const Extents shape = reduced_shape(x.shape, pass.reduction);
  require_result("ms_ssim", request.value, request.upstream, x, shape);
  require_gradient("ms_ssim", "x_gradient", request.x_gradient, x);
  require_gradient("ms_ssim", "y_gradient", request.y_gradient, x);
  const bool is_loss = request.form == SsimRequest::Form::loss;
  pass.bias = is_loss ? 0 : 1;
  pass.term_weight = is_loss ? 1 : -1;
  pass.value = request.value;
  pass.upstream = as_upstream(request.upstream, shape);
  pass.x_gradient = as_volumes(request.x_gradient);
  pass.y_gradient = as_volumes(request.y_gradient);
  kMsSsim.run(pass, x.device, exec);
}

ValueAndGradient run_owned(const TensorView& x, const TensorView& y, MsSsimRequest request,
    Outputs outputs, const MsSsimOptions& options, const Execution& exec) {
  const Pass pass = checked_pass(x, y, options, exec);
  const ValueForm value{reduced_shape(x.shape, options.reduction), result_dtype(x.dtype)};
  ValueAndGradient results = allocate_outputs(kMsSsim, outputs, x, value, exec, request);
  finish(pass, x, request, exec);
  return results;
}

constexpr MsSsimRequest kLoss{.form = SsimRequest::Form::loss};

}  // namespace

void ms_ssim_into(const TensorView& x, const TensorView& y, const MsSsimRequest& request,
    const MsSsimOptions& options, const Execution& exec) {
  finish(checked_pass(x, y, options, exec), x, request, exec);
}

Tensor ms_ssim(
    const TensorView& x, const TensorView& y, const MsSsimOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, {.value = true}, options, exec).value;
}

Tensor ms_ssim_loss(
    const TensorView& x, const TensorView& y, const MsSsimOptions& options, const Execution& exec) {
  return run_owned(x, y, kLoss, {.value = true}, options, exec).value;
}

ValueAndGradient ms_ssim_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt, const MsSsimOptions& options, const Execution& exec) {
  return run_owned(x, y, {}, value_and_gradients(wrt), options, exec);
}

ValueAndGradient ms_ssim_loss_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt, const MsSsimOptions& options, const Execution& exec) {
  return run_owned(x, y, kLoss, value_and_gradients(wrt), options, exec);
}

ValueAndGradient ms_ssim_backward(const TensorView& x, const TensorView& y,
    const TensorView& upstream, GradientOf wrt, const MsSsimOptions& options,
    const Execution& exec) {
  return run_owned(x, y, {.upstream = upstream}, gradients(wrt), options, exec);
}

}  // namespace similis
