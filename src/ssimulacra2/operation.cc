// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2's options and backends.
#include "similis/c/ssimulacra2.h"
#include "src/core/option_value.h"
#include "src/ssimulacra2/ssimulacra2.h"

namespace similis::ssimulacra2_internal {
namespace {

using O = Ssimulacra2Options;
using C = similis_ssimulacra2_options;

constexpr O kDefaults;
constexpr C kCDefaults = SIMILIS_SSIMULACRA2_DEFAULTS;

constexpr const char* kModeWords[] = {"exact", "fast"};
constexpr const char* kTransferWords[] = {"srgb", "linear"};

constexpr Option kOptions[] = {
    option<&O::mode, &C::mode>("mode", Choices{kModeWords},
        "exact: the reference program's 8 decimals; fast: a finite filter for its blur"),
    option<&O::transfer, &C::transfer>("transfer", Choices{kTransferWords}),
};

#ifdef SIMILIS_HAS_CUDA
void run_on_cuda(const ScorePass& pass, const Execution& exec) {
  if (pass.value.empty()) return;
  ssimulacra2_cuda(pass.x, pass.y, pass.mode, static_cast<double*>(pass.value.data()), exec);
}
#endif
#ifdef SIMILIS_HAS_VULKAN
void run_on_vulkan(const ScorePass& pass, const Execution& exec) {
  if (!pass.value.empty()) ssimulacra2_vulkan(pass, exec);
}
#endif

constexpr OperationTable kTable{.name = "ssimulacra2",
    .options = kOptions,
    .defaults = &kDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_ssimulacra2_options",
    .c_size = sizeof(C),
    .outputs = kValue,
    .shape = ShapeRule::by_picture,
    .c_function = c_function<similis_ssimulacra2>};

}  // namespace

constinit const Operation<ScorePass> kSsimulacra2 = {.table = kTable,
    .backends = {
        {SIMILIS_CPU(ssimulacra2_cpu), SIMILIS_CUDA(run_on_cuda), SIMILIS_VULKAN(run_on_vulkan)}}};
constinit const Operation<ScorePass> kSsimulacra2Map = {
    .table = kTable, .backends = {{SIMILIS_CPU(ssimulacra2_cpu)}}};

}  // namespace similis::ssimulacra2_internal
