// SPDX-License-Identifier: Apache-2.0
// MS-SSIM's options and backends.
#include "similis/c/ms_ssim.h"
#include "src/core/option_value.h"
#include "src/ms_ssim/ms_ssim.h"

namespace similis::ms_ssim_internal {
namespace {

using O = MsSsimOptions;
using R = MsSsimRequest;
using C = similis_ms_ssim_options;

const O kDefaults;
constexpr C kCDefaults = SIMILIS_MS_SSIM_DEFAULTS;

constexpr const char* kDownsampleWords[] = {"vainf", "ceil", "floor", "piq"};

constexpr Option kOptions[] = {
    option<&O::window_size, &C::window_size>(
        "window_size", kWindowSizes, "size of the Gaussian window, in pixels"),
    option<&O::sigma, &C::sigma>(
        "sigma", kAbove0, "standard deviation of the Gaussian window, in pixels"),
    option<&O::k1, &C::k1>("k1", kAtLeast0, "stabilizes the ratio of means: C1 = (k1·data_range)²"),
    option<&O::k2, &C::k2>(
        "k2", kAtLeast0, "stabilizes the ratio of variances: C2 = (k2·data_range)²"),
    option<&O::padding, &C::padding>(
        "padding", kPaddings, "pixels that a window sees outside the picture"),
    list_option<&O::weights, &C::weights, &C::weight_count>(
        "weights", kAtLeast0, "weights of the scales, finest first"),
    option<&O::downsample, &C::downsample>(
        "downsample", Choices{kDownsampleWords}, "rule that halves odd sides"),
    option<&O::data_range, &C::data_range>("data_range", kAbove0,
        "largest minus smallest value; default 2^depth-1, or the reference volume's"),
    option<&O::reduction, &C::reduction>("reduction", kReductionsWithoutMap),
    option<&O::mask, &C::mask>("mask"),
};
constexpr Option kRequest[] = {
    option<&R::form, &C::form>("form", kForms), reserved<&C::reserved>()};

}  // namespace

constinit const Operation<Pass> kMsSsim = {.table = {.name = "ms_ssim",
                                               .options = kOptions,
                                               .request = kRequest,
                                               .defaults = &kDefaults,
                                               .c_defaults = &kCDefaults,
                                               .c_struct = "similis_ms_ssim_options",
                                               .c_size = sizeof(C),
                                               .outputs = kValueAndGradients,
                                               .c_function = c_function<similis_ms_ssim>},
    .backends = {
        {SIMILIS_CPU(ms_ssim_cpu), SIMILIS_CUDA(ms_ssim_cuda), SIMILIS_VULKAN(ms_ssim_vulkan)}}};

}  // namespace similis::ms_ssim_internal
