// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/luma_scores.h"

#include <fmt/core.h>

#include <cstddef>
#include <string_view>

#include "similis/libvmaf_ssim.hpp"

namespace similis::cli {
namespace {

// The f64 results of one call as a list.
std::vector<double> numbers(const std::vector<Tensor>& tensors) {
  std::vector<double> values;
  for (const Tensor& tensor : tensors) {
    const double* first = tensor.elements<double>();
    values.insert(values.end(), first, first + tensor.shape.count());
  }
  return values;
}

// Allocates the score and, if requested, the three parts, each of this shape.
template <class Request>
std::vector<Tensor> allocate_results(
    bool has_parts, const Extents& part_shape, const Execution& exec, Request& request) {
  std::vector<Tensor> results = {allocate({}, DType::f64, {}, exec)};
  request.value = results[0];
  if (!has_parts) return results;
  for (TensorView* part : {&request.luminance, &request.contrast, &request.structure}) {
    results.push_back(allocate(part_shape, DType::f64, {}, exec));
    *part = results.back();
  }
  return results;
}

std::vector<std::string> integer_ssim_parts(const LumaOptions&) { return {""}; }

std::vector<double> integer_ssim_scores(
    const LumaPlanes& planes, const LumaOptions&, const Execution& exec) {
  return {item(
      integer_ssim(planes.reference, planes.distorted, {.bit_depth = planes.bit_depth}, exec))};
}

std::vector<std::string> float_ssim_parts(const LumaOptions& options) {
  if (!options.enable_lcs) return {""};
  return {"", "l", "c", "s"};
}

std::vector<double> float_ssim_scores(
    const LumaPlanes& planes, const LumaOptions& options, const Execution& exec) {
  FloatSsimRequest request;
  const auto results = allocate_results(options.enable_lcs, {}, exec, request);
  FloatSsimOptions own = options.float_ssim;
  own.bit_depth = planes.bit_depth;
  float_ssim_into(planes.reference, planes.distorted, request, own, exec);
  return numbers(results);
}

std::vector<std::string> float_ms_ssim_parts(const LumaOptions& options) {
  std::vector<std::string> parts = {""};
  for (const char part : std::string_view(options.enable_lcs ? "lcs" : "")) {
    for (int scale = 0; scale < kFloatMsSsimScales; ++scale) {
      parts.push_back(fmt::format("{}_scale{}", part, scale));
    }
  }
  return parts;
}

std::vector<double> float_ms_ssim_scores(
    const LumaPlanes& planes, const LumaOptions& options, const Execution& exec) {
  FloatMsSsimRequest request;
  const auto results = allocate_results(options.enable_lcs, {kFloatMsSsimScales}, exec, request);
  FloatMsSsimOptions own = options.float_ms_ssim;
  own.bit_depth = planes.bit_depth;
  float_ms_ssim_into(planes.reference, planes.distorted, request, own, exec);
  return numbers(results);
}

}  // namespace

const LumaMeasure integer_ssim_of_luma = {integer_ssim_parts, integer_ssim_scores, true};
const LumaMeasure float_ssim_of_luma = {float_ssim_parts, float_ssim_scores};
const LumaMeasure float_ms_ssim_of_luma = {float_ms_ssim_parts, float_ms_ssim_scores};

}  // namespace similis::cli
