// SPDX-License-Identifier: Apache-2.0
// similis_integer_ssim() and the others of libvmaf_ssim.hpp for C.
#include "similis/c/libvmaf_ssim.h"
#include "similis/libvmaf_ssim.hpp"
#include "src/c_api/call.h"

namespace similis {
namespace {

// 0 is what C says for "that of the samples' type".
std::optional<int> bit_depth(std::int32_t given) {
  return given == 0 ? std::nullopt : std::optional<int>(given);
}

}  // namespace
}  // namespace similis

similis_status similis_integer_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_integer_ssim_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("integer_ssim");
    const auto given = arguments.options(options, SIMILIS_INTEGER_SSIM_DEFAULTS);
    arguments.reserved("options.reserved", given.reserved);
    integer_ssim_into(arguments.image("x", x), arguments.image("y", y),
        arguments.image("value", value), {.bit_depth = bit_depth(given.bit_depth)},
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_float_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_float_ssim_options* options, const similis_tensor* value,
    const similis_tensor* luminance, const similis_tensor* contrast,
    const similis_tensor* structure, const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("float_ssim");
    const auto given = arguments.options(options, SIMILIS_FLOAT_SSIM_DEFAULTS);
    float_ssim_into(arguments.image("x", x), arguments.image("y", y),
        {.value = arguments.optional("value", value),
            .luminance = arguments.optional("luminance", luminance),
            .contrast = arguments.optional("contrast", contrast),
            .structure = arguments.optional("structure", structure)},
        {.bit_depth = bit_depth(given.bit_depth),
            .scale = given.scale,
            .enable_db = arguments.enumerator("options.enable_db", given.enable_db, true),
            .clip_db = arguments.enumerator("options.clip_db", given.clip_db, true)},
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_float_ms_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_float_ms_ssim_options* options, const similis_tensor* value,
    const similis_tensor* luminance, const similis_tensor* contrast,
    const similis_tensor* structure, const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("float_ms_ssim");
    const auto given = arguments.options(options, SIMILIS_FLOAT_MS_SSIM_DEFAULTS);
    arguments.reserved("options.reserved", given.reserved);
    float_ms_ssim_into(arguments.image("x", x), arguments.image("y", y),
        {.value = arguments.optional("value", value),
            .luminance = arguments.optional("luminance", luminance),
            .contrast = arguments.optional("contrast", contrast),
            .structure = arguments.optional("structure", structure)},
        {.bit_depth = bit_depth(given.bit_depth),
            .enable_db = arguments.enumerator("options.enable_db", given.enable_db, true),
            .clip_db = arguments.enumerator("options.clip_db", given.clip_db, true)},
        c_api::CallExecution(arguments, execution));
  });
}

similis_status similis_libvmaf_psnr(const similis_tensor* x, const similis_tensor* y,
    const similis_libvmaf_psnr_options* options, const similis_tensor* value,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("libvmaf_psnr");
    const auto given = arguments.options(options, SIMILIS_LIBVMAF_PSNR_DEFAULTS);
    arguments.reserved("options.reserved", given.reserved);
    libvmaf_psnr_into(arguments.image("x", x), arguments.image("y", y),
        arguments.image("value", value), {.bit_depth = bit_depth(given.bit_depth)},
        c_api::CallExecution(arguments, execution));
  });
}
