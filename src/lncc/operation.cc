// SPDX-License-Identifier: Apache-2.0
// LNCC's options and backends.
#include "similis/c/lncc.h"
#include "src/core/option_value.h"
#include "src/lncc/lncc.h"

namespace similis::lncc_internal {
namespace {

using O = LnccOptions;
using R = LnccRequest;
using C = similis_lncc_options;

constexpr O kDefaults;
constexpr C kCDefaults = SIMILIS_LNCC_DEFAULTS;

constexpr const char* kGradientWords[] = {"exact", "ants"};
constexpr const char* kWorkspaceWords[] = {"auto", "small"};
constexpr Choices kPaddingsHere = without(kPaddings, Padding::reflect, Padding::replicate);

constexpr Option kOptions[] = {
    option<&O::window_size, &C::window_size>(
        "window_size", kWindowSizes, "size of the window, in pixels"),
    option<&O::window, &C::window>("window", kWindows, "weights of its pixels"),
    option<&O::sigma, &C::sigma>(
        "sigma", kAbove0, "standard deviation of the Gaussian window, in pixels"),
    option<&O::padding, &C::padding>(
        "padding", kPaddingsHere, "pixels that a window sees outside the picture"),
    option<&O::smooth_nr, &C::smooth_nr>("smooth_nr", kAtLeast0, "added to the numerator"),
    option<&O::smooth_dr, &C::smooth_dr>("smooth_dr", kAbove0, "added to the denominator"),
    option<&O::is_signed, &C::is_signed>("signed", "signed correlation in [-1, 1]"),
    option<&O::reduction, &C::reduction>("reduction", kReductions),
    option<&O::gradient, &C::gradient>("gradient", Choices{kGradientWords}),
    option<&O::workspace, &C::workspace>("workspace", Choices{kWorkspaceWords}),
    option<&O::mask, &C::mask>("mask"),
    option<&O::valid_mask, &C::valid_mask>("valid_mask"),
    interval_option<&O::rows, &C::first_row, &C::end_row>("rows", kFirstAndEnd),
    option<&O::sums, &C::sums>("sums"),
};
constexpr Option kRequest[] = {option<&R::weight, &C::weight>("weight", kAnyNumber)};

}  // namespace

constinit const Operation<Pass> kLncc = {.table = {.name = "lncc",
                                             .options = kOptions,
                                             .request = kRequest,
                                             .defaults = &kDefaults,
                                             .c_defaults = &kCDefaults,
                                             .c_struct = "similis_lncc_options",
                                             .c_size = sizeof(C),
                                             .outputs = kValueAndGradients,
                                             .c_function = c_function<similis_lncc>},
    .backends = {{SIMILIS_CPU(lncc_cpu), SIMILIS_CUDA(lncc_cuda)}}};

}  // namespace similis::lncc_internal
