// SPDX-License-Identifier: Apache-2.0
// libvmaf's SSIM family: what is refused, what is allocated, and what a score is made of.
#include "src/libvmaf_ssim/libvmaf_ssim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "similis/pixel_error.hpp"
#include "src/core/require.h"
#include "src/core/validate.h"
#include "src/libvmaf_ssim/float/formula.h"
#include "src/libvmaf_ssim/integer/formula.h"
#include "src/libvmaf_ssim/samples.h"

namespace similis {
namespace {

using namespace libvmaf_ssim_internal;

int checked_bit_depth(const char* operation, std::optional<int> given, DType dtype) {
  if (dtype == DType::u8) {
    const int bit_depth = given.value_or(8);
    require(bit_depth == 8, "{}: bit_depth is {}; it must be 8 for uint8", operation, bit_depth);
    return bit_depth;
  }
  const int bit_depth = given.value_or(16);
  require(bit_depth == 8 || bit_depth == 10 || bit_depth == 12 || bit_depth == 16,
      "{}: bit_depth is {}; it must be 8, 10, 12 or 16", operation, bit_depth);
  return bit_depth;
}

// One plane is a batch of one.
TensorView as_batch(const TensorView& planes) {
  if (planes.shape.rank() == 3) return planes;
  TensorView batch = planes;
  batch.shape = {1, planes.shape[0], planes.shape[1]};
  batch.strides = {0, planes.strides[0], planes.strides[1]};
  return batch;
}

template <class Pass, class Options>
PlanePairs checked_planes(const Operation<Pass>& operation, const TensorView& x,
    const TensorView& y, const Options& options, const Execution& exec) {
  const int rank = x.shape.rank();
  require(rank == 2 || rank == 3, "{}: x has shape {}; it must be [H, W] or [N, H, W]",
      operation.name(), x.shape);
  require_alike(operation.name(), x, y);
  require(x.dtype == DType::u8 || x.dtype == DType::u16, "{}: x is {}; it must be uint8 or uint16",
      operation.name(), x.dtype);
  operation.table.check(&options);
  const int bit_depth = checked_bit_depth(operation.name(), options.bit_depth, x.dtype);
  operation.require_runs_on(x.device, exec);
  return {.x = as_batch(x), .y = as_batch(y), .bit_depth = bit_depth};
}

// The shape of one number a pair.
Extents score_shape(const TensorView& x) {
  return x.shape.rank() == 3 ? Extents{x.shape[0]} : Extents{};
}

// The shape of one number a scale.
Extents scales_shape(const TensorView& x) {
  if (x.shape.rank() == 3) return {x.shape[0], kFloatMsSsimScales};
  return {kFloatMsSsimScales};
}

void require_score(const char* operation, const char* argument, const TensorView& view,
    const TensorView& x, const Extents& shape) {
  require_result(operation, argument, view, shape, kFloat64, x);
}

void require_value(const char* operation, const TensorView& value, const TensorView& x) {
  require(!value.empty(), "{}: value is empty; it must have the result's shape, {}", operation,
      score_shape(x));
  require_score(operation, "value", value, x, score_shape(x));
}

// A result's element, if the result is wanted.
void write(const TensorView& result, std::int64_t index, double value) {
  if (!result.empty()) static_cast<double*>(result.data())[index] = value;
}

double peak_of(const PlanePairs& planes) {
  return static_cast<double>((1 << planes.bit_depth) - 1);
}

// The score as enable_db and clip_db want it.
template <class Options>
double on_scale(double score, const Options& options, const PlanePairs& planes) {
  if (!options.enable_db) return score;
  const double decibels = -10 * std::log10(1 - score);
  if (!options.clip_db) return decibels;
  const double pixels = static_cast<double>(planes.height()) * static_cast<double>(planes.width());
  const double peak = peak_of(planes);
  return std::min(decibels, std::ceil(10 * std::log10(peak * peak / (0.5 / pixels))));
}

int checked_scale(const PlanePairs& planes, const Extents& shape, int given) {
  const int scale = given == 0 ? automatic_scale(planes.height(), planes.width()) : given;
  const std::int64_t height = shrunk_side(planes.height(), scale);
  const std::int64_t width = shrunk_side(planes.width(), scale);
  require(std::min(height, width) >= kGaussWindow,
      "float_ssim: x has shape {}; at scale {} that leaves [{}, {}], and both must be at least {}",
      shape, scale, height, width, kGaussWindow);
  return scale;
}

// A new result, filled by into(x, y, result) if x and y can be compared.
template <class Pass, class Options, class Into>
Tensor scores_of(const Operation<Pass>& operation, const TensorView& x, const TensorView& y,
    const Options& options, const Execution& exec, const Into& into) {
  checked_planes(operation, x, y, options, exec);
  Tensor scores = allocate(score_shape(x), DType::f64, x.device, exec);
  into(scores);
  return scores;
}

}  // namespace

void integer_ssim_into(const TensorView& x, const TensorView& y, const TensorView& value,
    const IntegerSsimOptions& options, const Execution& exec) {
  const PlanePairs planes = checked_planes(kIntegerSsim, x, y, options, exec);
  require(planes.height() <= (std::int64_t{1} << 36) / planes.width(),
      "integer_ssim: x has shape {}; a plane must have at most 2^36 samples", x.shape);
  require_value("integer_ssim", value, x);
  kIntegerSsim.run({planes, value}, x.device, exec);
}

void float_ssim_into(const TensorView& x, const TensorView& y, const FloatSsimRequest& request,
    const FloatSsimOptions& options, const Execution& exec) {
  const char* operation = "float_ssim";
  const PlanePairs planes = checked_planes(kFloatSsim, x, y, options, exec);
  const int scale = checked_scale(planes, x.shape, options.scale);
  const Extents shape = score_shape(x);
  require_score(operation, "value", request.value, x, shape);
  require_score(operation, "luminance", request.luminance, x, shape);
  require_score(operation, "contrast", request.contrast, x, shape);
  require_score(operation, "structure", request.structure, x, shape);
  std::vector<SsimMeans> means(static_cast<std::size_t>(planes.count()));
  kFloatSsim.run({planes, scale, means.data()}, x.device, exec);
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    const SsimMeans& of_pair = means[static_cast<std::size_t>(i)];
    write(request.value, i, on_scale(of_pair.ssim, options, planes));
    write(request.luminance, i, of_pair.luminance);
    write(request.contrast, i, of_pair.contrast);
    write(request.structure, i, of_pair.structure);
  }
}

void float_ms_ssim_into(const TensorView& x, const TensorView& y, const FloatMsSsimRequest& request,
    const FloatMsSsimOptions& options, const Execution& exec) {
  const char* operation = "float_ms_ssim";
  const PlanePairs planes = checked_planes(kFloatMsSsim, x, y, options, exec);
  require(std::min(planes.height(), planes.width()) >= kFloatMsSsimSmallestSide,
      "float_ms_ssim: x has shape {}; height and width must be at least {}", x.shape,
      kFloatMsSsimSmallestSide);
  const Extents shape = scales_shape(x);
  require_score(operation, "value", request.value, x, score_shape(x));
  require_score(operation, "luminance", request.luminance, x, shape);
  require_score(operation, "contrast", request.contrast, x, shape);
  require_score(operation, "structure", request.structure, x, shape);
  std::vector<MsSsimMeans> means(static_cast<std::size_t>(planes.count()));
  kFloatMsSsim.run({planes, means.data()}, x.device, exec);
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    const MsSsimMeans& of_pair = means[static_cast<std::size_t>(i)];
    write(request.value, i, on_scale(ms_ssim_of(of_pair), options, planes));
    for (std::int64_t scale = 0; scale < kFloatMsSsimScales; ++scale) {
      const SsimMeans& of_scale = of_pair[static_cast<std::size_t>(scale)];
      const std::int64_t at = i * kFloatMsSsimScales + scale;
      write(request.luminance, at, of_scale.luminance);
      write(request.contrast, at, of_scale.contrast);
      write(request.structure, at, of_scale.structure);
    }
  }
}

void libvmaf_psnr_into(const TensorView& x, const TensorView& y, const TensorView& value,
    const LibvmafPsnrOptions& options, const Execution& exec) {
  const char* operation = "libvmaf_psnr";
  const PlanePairs planes = checked_planes(kLibvmafPsnr, x, y, options, exec);
  require_value(operation, value, x);
  const Tensor errors = allocate({planes.count()}, DType::f64, x.device, exec);
  kLibvmafPsnr.run({planes, errors.elements<double>()}, x.device, exec);
  const double peak = peak_of(planes), most = 6.0 * planes.bit_depth + 12;
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    const double error = std::max(errors.elements<double>()[i], 1e-16);
    write(value, i, std::min(10 * std::log10(peak * peak / error), most));
  }
}

Tensor integer_ssim(const TensorView& x, const TensorView& y, const IntegerSsimOptions& options,
    const Execution& exec) {
  return scores_of(kIntegerSsim, x, y, options, exec,
      [&](const TensorView& value) { integer_ssim_into(x, y, value, options, exec); });
}
Tensor float_ssim(const TensorView& x, const TensorView& y, const FloatSsimOptions& options,
    const Execution& exec) {
  return scores_of(kFloatSsim, x, y, options, exec,
      [&](const TensorView& value) { float_ssim_into(x, y, {.value = value}, options, exec); });
}
Tensor float_ms_ssim(const TensorView& x, const TensorView& y, const FloatMsSsimOptions& options,
    const Execution& exec) {
  return scores_of(kFloatMsSsim, x, y, options, exec,
      [&](const TensorView& value) { float_ms_ssim_into(x, y, {.value = value}, options, exec); });
}
Tensor libvmaf_psnr(const TensorView& x, const TensorView& y, const LibvmafPsnrOptions& options,
    const Execution& exec) {
  return scores_of(kLibvmafPsnr, x, y, options, exec,
      [&](const TensorView& value) { libvmaf_psnr_into(x, y, value, options, exec); });
}

namespace libvmaf_ssim_internal {

double total_weight(std::int64_t height, std::int64_t width) {
  const auto along = [](std::int64_t extent) {
    std::int64_t weight = 0;
    for (std::int64_t i = 0; i < extent; ++i) weight += weight_inside(i, extent);
    return static_cast<double>(weight);
  };
  return along(height) * along(width);  // whole numbers, and below 2^53
}

int automatic_scale(std::int64_t height, std::int64_t width) {
  const float shorter = static_cast<float>(std::min(height, width));
  return std::max(1, static_cast<int>(std::lround(shorter / 256)));
}

double ms_ssim_of(const MsSsimMeans& means) {
  constexpr float kOfLuminance[] = {0, 0, 0, 0, .1333f};
  constexpr float kOfOthers[] = {.0448f, .2856f, .3001f, .2363f, .1333f};
  double product = 1;
  for (std::size_t scale = 0; scale < means.size(); ++scale) {
    const double others = kOfOthers[scale];
    product *= std::pow(means[scale].luminance, static_cast<double>(kOfLuminance[scale])) *
               std::pow(means[scale].contrast, others) * std::pow(means[scale].structure, others);
  }
  return product;
}

}  // namespace libvmaf_ssim_internal
}  // namespace similis
