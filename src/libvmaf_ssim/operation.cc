// SPDX-License-Identifier: Apache-2.0
// Options and backends of libvmaf's SSIM family.
#include "similis/c/libvmaf_ssim.h"
#include "similis/pixel_error.hpp"
#include "src/core/option_value.h"
#include "src/libvmaf_ssim/libvmaf_ssim.h"
#include "src/libvmaf_ssim/samples.h"

namespace similis::libvmaf_ssim_internal {
namespace {

constexpr Bounds kBitDepths{.words = "8, 10, 12 or 16", .least = 8, .most = 16};
constexpr Bounds kScales{.words = "a whole number from 0 to 10", .least = 0, .most = 10};
constexpr const char* kEnableDb = "score in decibels: -10·log10(1 - score)";
constexpr const char* kClipDb = "limit decibels to those of half a squared code value a frame";
constexpr const char* kMeans[] = {"value", "luminance", "contrast", "structure"};

template <class O, class C> constexpr Option bit_depth() {
  return option<&O::bit_depth, &C::bit_depth>("bit_depth", kBitDepths);
}

constexpr IntegerSsimOptions kIntegerDefaults;
constexpr similis_integer_ssim_options kIntegerCDefaults = SIMILIS_INTEGER_SSIM_DEFAULTS;
constexpr Option kIntegerOptions[] = {
    bit_depth<IntegerSsimOptions, similis_integer_ssim_options>()};
constexpr Option kIntegerRequest[] = {reserved<&similis_integer_ssim_options::reserved>()};

using F = FloatSsimOptions;
using FC = similis_float_ssim_options;
constexpr F kFloatDefaults;
constexpr FC kFloatCDefaults = SIMILIS_FLOAT_SSIM_DEFAULTS;
constexpr Option kFloatOptions[] = {
    option<&F::scale, &FC::scale>(
        "scale", kScales, "factor that shrinks the planes first; 0: chosen by their size"),
    option<&F::enable_db, &FC::enable_db>("enable_db", kEnableDb),
    option<&F::clip_db, &FC::clip_db>("clip_db", kClipDb),
    bit_depth<F, FC>(),
};

using M = FloatMsSsimOptions;
using MC = similis_float_ms_ssim_options;
constexpr M kFloatMsDefaults;
constexpr MC kFloatMsCDefaults = SIMILIS_FLOAT_MS_SSIM_DEFAULTS;
constexpr Option kFloatMsOptions[] = {
    option<&M::enable_db, &MC::enable_db>("enable_db", kEnableDb),
    option<&M::clip_db, &MC::clip_db>("clip_db", kClipDb),
    bit_depth<M, MC>(),
};
constexpr Option kFloatMsRequest[] = {reserved<&MC::reserved>()};

constexpr LibvmafPsnrOptions kPsnrDefaults;
constexpr similis_libvmaf_psnr_options kPsnrCDefaults = SIMILIS_LIBVMAF_PSNR_DEFAULTS;
constexpr Option kPsnrOptions[] = {bit_depth<LibvmafPsnrOptions, similis_libvmaf_psnr_options>()};
constexpr Option kPsnrRequest[] = {reserved<&similis_libvmaf_psnr_options::reserved>()};

void run_integer_on_cpu(const IntegerSsimPass& pass, const Execution& exec) {
  require_samples("integer_ssim", pass.planes, exec);
  integer_ssim_cpu(pass.planes, static_cast<double*>(pass.value.data()), exec);
}
#ifdef SIMILIS_HAS_CUDA
void run_integer_on_cuda(const IntegerSsimPass& pass, const Execution& exec) {
  integer_ssim_cuda(pass.planes, static_cast<double*>(pass.value.data()), exec);
}
#endif
#ifdef SIMILIS_HAS_VULKAN
void run_integer_on_vulkan(const IntegerSsimPass& pass, const Execution& exec) {
  integer_ssim_vulkan(pass.planes, pass.value, exec);
}
#endif
void run_float(const FloatSsimPass& pass, const Execution& exec) {
  require_samples("float_ssim", pass.planes, exec);
  float_ssim_cpu(pass.planes, pass.scale, pass.means, exec);
}
void run_float_ms(const FloatMsSsimPass& pass, const Execution& exec) {
  require_samples("float_ms_ssim", pass.planes, exec);
  float_ms_ssim_cpu(pass.planes, pass.means, exec);
}
void run_psnr(const PsnrPass& pass, const Execution& exec) {
  require_samples("libvmaf_psnr", pass.planes, exec);
  const TensorView errors(pass.errors, {pass.planes.count()}, DType::f64);
  mse_into(
      pass.planes.x, pass.planes.y, {.value = errors}, {.reduction = Reduction::per_image}, exec);
}

}  // namespace

constinit const Operation<IntegerSsimPass> kIntegerSsim = {
    .table = {.name = "integer_ssim",
        .options = kIntegerOptions,
        .request = kIntegerRequest,
        .defaults = &kIntegerDefaults,
        .c_defaults = &kIntegerCDefaults,
        .c_struct = "similis_integer_ssim_options",
        .c_size = sizeof(similis_integer_ssim_options),
        .outputs = kValue,
        .shape = ShapeRule::by_plane,
        .c_function = c_function<similis_integer_ssim>},
    .backends = {{SIMILIS_CPU(run_integer_on_cpu), SIMILIS_CUDA(run_integer_on_cuda),
        SIMILIS_VULKAN(run_integer_on_vulkan)}}};

constinit const Operation<FloatSsimPass> kFloatSsim = {
    .table = {.name = "float_ssim",
        .options = kFloatOptions,
        .defaults = &kFloatDefaults,
        .c_defaults = &kFloatCDefaults,
        .c_struct = "similis_float_ssim_options",
        .c_size = sizeof(FC),
        .outputs = kMeans,
        .shape = ShapeRule::by_plane,
        .c_function = c_function<similis_float_ssim>},
    .backends = {{SIMILIS_CPU(run_float)}}};

constinit const Operation<FloatMsSsimPass> kFloatMsSsim = {
    .table = {.name = "float_ms_ssim",
        .options = kFloatMsOptions,
        .request = kFloatMsRequest,
        .defaults = &kFloatMsDefaults,
        .c_defaults = &kFloatMsCDefaults,
        .c_struct = "similis_float_ms_ssim_options",
        .c_size = sizeof(MC),
        .outputs = kMeans,
        .shape = ShapeRule::by_plane,
        .c_function = c_function<similis_float_ms_ssim>},
    .backends = {{SIMILIS_CPU(run_float_ms)}}};

constinit const Operation<PsnrPass> kLibvmafPsnr = {
    .table = {.name = "libvmaf_psnr",
        .options = kPsnrOptions,
        .request = kPsnrRequest,
        .defaults = &kPsnrDefaults,
        .c_defaults = &kPsnrCDefaults,
        .c_struct = "similis_libvmaf_psnr_options",
        .c_size = sizeof(similis_libvmaf_psnr_options),
        .outputs = kValue,
        .shape = ShapeRule::by_plane,
        .c_function = c_function<similis_libvmaf_psnr>},
    .backends = {{SIMILIS_CPU(run_psnr)}}};

}  // namespace similis::libvmaf_ssim_internal
