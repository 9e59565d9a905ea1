// SPDX-License-Identifier: Apache-2.0
// NCC's options and backends.
#include "similis/c/ncc.h"
#include "src/core/option_value.h"
#include "src/ncc/ncc.h"

namespace similis::ncc_internal {
namespace {

using C = similis_ncc_options;

constexpr C kCDefaults = SIMILIS_NCC_DEFAULTS;
constexpr Option kOptions[] = {
    option<&ReductionOptions::reduction, &C::reduction>("reduction", kReductionsWithoutMap)};
constexpr Option kRequest[] = {
    option<&NccRequest::weight, &C::weight>("weight", kAnyNumber), reserved<&C::reserved>()};

}  // namespace

constinit const Operation<PixelPass> kNcc = {.table = {.name = "ncc",
                                                 .options = kOptions,
                                                 .request = kRequest,
                                                 .defaults = &kReductionDefaults,
                                                 .c_defaults = &kCDefaults,
                                                 .c_struct = "similis_ncc_options",
                                                 .c_size = sizeof(C),
                                                 .outputs = kValueAndGradients,
                                                 .c_function = c_function<similis_ncc>},
    .backends = {{SIMILIS_CPU(ncc_cpu), SIMILIS_CUDA(ncc_cuda)}}};

}  // namespace similis::ncc_internal
