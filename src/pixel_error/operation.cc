// SPDX-License-Identifier: Apache-2.0
// Options and backends of MSE, MAE and PSNR.
#include "similis/c/pixel_error.h"
#include "similis/pixel_error.hpp"
#include "src/core/option_value.h"
#include "src/pixel_error/pixel_error.h"

namespace similis::pixel_error_internal {
namespace {

using C = similis_pixel_error_options;
using E = PixelErrorOptions;
using O = PsnrOptions;

constexpr E kDefaults;
constexpr O kPsnrDefaults;
constexpr C kCDefaults = SIMILIS_PIXEL_ERROR_DEFAULTS;

constexpr Option kOptions[] = {
    option<&E::reduction, &C::reduction>("reduction", kReductionsWithoutMap),
    option<&E::mask, &C::mask>("mask"),
};
constexpr Option kPsnrOptions[] = {
    option<&O::data_range, &C::data_range>("data_range", kAbove0,
        "largest minus smallest value; default 2^depth-1, or the reference volume's"),
    option<&O::reduction, &C::reduction>(
        "reduction", without(kReductionsWithoutMap, Reduction::sum)),
    option<&O::mask, &C::mask>("mask"),
};
constexpr Option kRequest[] = {reserved<&C::reserved>()};

constexpr OperationTable kErrors{.name = "mse",
    .options = kOptions,
    .request = kRequest,
    .defaults = &kDefaults,
    .c_defaults = &kCDefaults,
    .c_struct = "similis_pixel_error_options",
    .c_size = sizeof(C),
    .outputs = kValueAndGradients,
    .c_function = c_function<similis_mse>};

constexpr OperationTable mae_of(OperationTable table) {
  table.name = "mae";
  table.c_function = c_function<similis_mae>;
  return table;
}

template <Error error> void on_cpu(const PixelPass& pass, const Execution& exec) {
  pixel_error_cpu(error, pass, exec);
}
void psnr_cpu(const PsnrPass& pass, const Execution& exec) {
  pixel_error_cpu(Error::squared, pass.error, exec);
  decibels_cpu(pass.error.value, pass.data_range, pass.value);
}
#ifdef SIMILIS_HAS_CUDA
template <Error error> void on_cuda(const PixelPass& pass, const Execution& exec) {
  pixel_error_cuda(error, pass, exec);
}
void psnr_cuda(const PsnrPass& pass, const Execution& exec) {
  pixel_error_cuda(Error::squared, pass.error, exec);
  decibels_cuda(pass.error.value, pass.data_range, pass.value, exec);
}
#endif
#ifdef SIMILIS_HAS_VULKAN
template <Error error> void on_vulkan(const PixelPass& pass, const Execution& exec) {
  pixel_error_vulkan(error, pass, exec);
}
void psnr_vulkan(const PsnrPass& pass, const Execution& exec) {
  pixel_error_vulkan(Error::squared, pass.error, exec);
  const bool is_on_cpu = pass.error.value.device.kind == DeviceKind::cpu;
  if (is_on_cpu) return decibels_cpu(pass.error.value, pass.data_range, pass.value);
  decibels_vulkan(pass.error.value, pass.data_range, pass.value, exec);
}
#endif

}  // namespace

constinit const Operation<PixelPass> kMse = {.table = kErrors,
    .backends = {{SIMILIS_CPU(on_cpu<Error::squared>), SIMILIS_CUDA(on_cuda<Error::squared>),
        SIMILIS_VULKAN(on_vulkan<Error::squared>)}}};
constinit const Operation<PixelPass> kMae = {.table = mae_of(kErrors),
    .backends = {{SIMILIS_CPU(on_cpu<Error::absolute>), SIMILIS_CUDA(on_cuda<Error::absolute>),
        SIMILIS_VULKAN(on_vulkan<Error::absolute>)}}};
constinit const Operation<PsnrPass> kPsnr = {.table = {.name = "psnr",
                                                 .options = kPsnrOptions,
                                                 .request = kRequest,
                                                 .defaults = &kPsnrDefaults,
                                                 .c_defaults = &kCDefaults,
                                                 .c_struct = "similis_pixel_error_options",
                                                 .c_size = sizeof(C),
                                                 .outputs = kValue,
                                                 .c_function = c_function<similis_psnr>},
    .backends = {{SIMILIS_CPU(psnr_cpu), SIMILIS_CUDA(psnr_cuda), SIMILIS_VULKAN(psnr_vulkan)}}};

}  // namespace similis::pixel_error_internal
