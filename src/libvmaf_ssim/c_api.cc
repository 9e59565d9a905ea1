// SPDX-License-Identifier: Apache-2.0
// similis_integer_ssim() and the others of libvmaf_ssim.hpp for C.
#include "similis/c/libvmaf_ssim.h"

#include "similis/libvmaf_ssim.hpp"
#include "src/c_api/measure.h"
#include "src/libvmaf_ssim/libvmaf_ssim.h"

namespace similis {
namespace {

struct MeansTensors {
  const similis_tensor *x, *y, *value, *luminance, *contrast, *structure;
};

// into: float_ssim_into() or float_ms_ssim_into().
template <auto into, class C>
similis_status means(const OperationTable& operation, const C* options, const MeansTensors& tensors,
    const similis_execution* execution) {
  return c_api::call([&] {
    using Types = c_api::MeasureTypes<decltype(into)>;
    const c_api::Arguments arguments(operation.name);
    typename Types::Options own;
    c_api::read_options(operation, arguments, options, 2, own, nullptr);
    into(arguments.image("x", tensors.x), arguments.image("y", tensors.y),
        {.value = arguments.optional("value", tensors.value),
            .luminance = arguments.optional("luminance", tensors.luminance),
            .contrast = arguments.optional("contrast", tensors.contrast),
            .structure = arguments.optional("structure", tensors.structure)},
        own, c_api::CallExecution(arguments, execution));
  });
}

}  // namespace
}  // namespace similis

using namespace similis;

similis_status similis_integer_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_integer_ssim_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  return c_api::score<integer_ssim_into>(
      libvmaf_ssim_internal::kIntegerSsim.table, options, {x, y, value}, execution);
}

similis_status similis_float_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_float_ssim_options* options, const similis_tensor* value,
    const similis_tensor* luminance, const similis_tensor* contrast,
    const similis_tensor* structure, const similis_execution* execution) {
  return means<float_ssim_into>(libvmaf_ssim_internal::kFloatSsim.table, options,
      {x, y, value, luminance, contrast, structure}, execution);
}

similis_status similis_float_ms_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_float_ms_ssim_options* options, const similis_tensor* value,
    const similis_tensor* luminance, const similis_tensor* contrast,
    const similis_tensor* structure, const similis_execution* execution) {
  return means<float_ms_ssim_into>(libvmaf_ssim_internal::kFloatMsSsim.table, options,
      {x, y, value, luminance, contrast, structure}, execution);
}

similis_status similis_libvmaf_psnr(const similis_tensor* x, const similis_tensor* y,
    const similis_libvmaf_psnr_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  return c_api::score<libvmaf_psnr_into>(
      libvmaf_ssim_internal::kLibvmafPsnr.table, options, {x, y, value}, execution);
}
