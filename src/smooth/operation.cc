// SPDX-License-Identifier: Apache-2.0
// Options and backends of smooth().
#include "similis/c/smooth.h"
#include "src/core/option_value.h"
#include "src/smooth/smooth.h"

namespace similis::smooth_internal {
namespace {

using C = similis_smooth_options;
using O = SmoothOptions;

constexpr O kDefaults;
constexpr C kCDefaults = SIMILIS_SMOOTH_DEFAULTS;

constexpr const char* kPaddingWords[] = {"replicate", "zeros"};
constexpr const char* kOperands[] = {"x"};
constexpr const char* kOutputs[] = {"output"};

constexpr Option kOptions[] = {option<&O::sigma, &C::sigma>("sigma", kAtLeast0),
    option<&O::field, &C::field>("field"),
    option<&O::truncate, &C::truncate>("truncate", kAtLeast0),
    option<&O::padding, &C::padding>("padding", Choices{kPaddingWords})};
constexpr Option kRequest[] = {
    option<&SmoothRequest::adjoint, &C::adjoint>("adjoint"), reserved<&C::reserved>()};

}  // namespace

constinit const Operation<SmoothPass> kSmooth = {.table = {.name = "smooth",
                                                     .options = kOptions,
                                                     .request = kRequest,
                                                     .defaults = &kDefaults,
                                                     .c_defaults = &kCDefaults,
                                                     .c_struct = "similis_smooth_options",
                                                     .c_size = sizeof(C),
                                                     .operands = kOperands,
                                                     .outputs = kOutputs,
                                                     .shape = ShapeRule::as_x,
                                                     .c_function = c_function<similis_smooth>},
    .backends = {{SIMILIS_CPU(smooth_cpu), SIMILIS_CUDA(smooth_cuda)}}};

}  // namespace similis::smooth_internal
