// SPDX-License-Identifier: Apache-2.0
// SSIM's options and backends.
#include "similis/c/ssim.h"
#include "src/core/option_value.h"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {
namespace {

using O = SsimOptions;
using R = SsimRequest;
using C = similis_ssim_options;

constexpr O kDefaults;
constexpr C kCDefaults = SIMILIS_SSIM_DEFAULTS;

constexpr Option kOptions[] = {
    option<&O::window_size, &C::window_size>(
        "window_size", kWindowSizes, "size of the window, in pixels"),
    option<&O::window, &C::window>("window", kWindows, "weights of its pixels"),
    option<&O::sigma, &C::sigma>(
        "sigma", kAbove0, "standard deviation of a Gaussian window, in pixels"),
    option<&O::k1, &C::k1>("k1", kAtLeast0, "stabilizes the ratio of means: C1 = (k1·data_range)²"),
    option<&O::k2, &C::k2>(
        "k2", kAtLeast0, "stabilizes the ratio of variances: C2 = (k2·data_range)²"),
    option<&O::sample_covariance, &C::sample_covariance>(
        "sample_covariance", "variances as of a sample: times n / (n - 1)"),
    option<&O::padding, &C::padding>(
        "padding", kPaddings, "pixels that a window sees outside the picture"),
    option<&O::data_range, &C::data_range>("data_range", kAbove0,
        "largest minus smallest value; default 2^depth-1, or the reference volume's"),
    option<&O::reduction, &C::reduction>("reduction", kReductions),
    option<&O::mask, &C::mask>("mask"),
    option<&O::valid_mask, &C::valid_mask>("valid_mask"),
    interval_option<&O::rows, &C::first_row, &C::end_row>("rows", kFirstAndEnd),
    option<&O::sums, &C::sums>("sums"),
};
constexpr Option kRequest[] = {
    option<&R::form, &C::form>("form", kForms),
    option<&R::ssim_weight, &C::ssim_weight>("ssim_weight", kAnyNumber),
    option<&R::l1_weight, &C::l1_weight>("l1_weight", kAnyNumber),
    option<&R::middle, &C::middle>("middle"),
    reserved<&C::reserved>(),
};

}  // namespace

constinit const Operation<Pass> kSsim = {.table = {.name = "ssim",
                                             .options = kOptions,
                                             .request = kRequest,
                                             .defaults = &kDefaults,
                                             .c_defaults = &kCDefaults,
                                             .c_struct = "similis_ssim_options",
                                             .c_size = sizeof(C),
                                             .outputs = kValueAndGradients,
                                             .c_function = c_function<similis_ssim>},
    .backends = {{SIMILIS_CPU(ssim_cpu), SIMILIS_CUDA(ssim_cuda), SIMILIS_VULKAN(ssim_vulkan)}}};

}  // namespace similis::ssim_internal
