// SPDX-License-Identifier: Apache-2.0
// The table of metrics. A line is the name, a sentence, the operation with its options, the
// library's function and, where the function can give a map (Reduction::none), the meaning of the
// map's values. Pictures are f32 code values; data_range is filled in from their depth unless it is
// given.
#include "src/cli/metrics/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "similis/similis.hpp"
#include "src/cli/metrics/clip_metrics.h"
#include "src/cli/metrics/error_map.h"
#include "src/cli/metrics/plane_scores.h"
#include "src/cli/metrics/ssimulacra2_metric.h"

namespace similis::cli {

// Each level of MS-SSIM halves the images, so what is left out would mix with the rest.
template <> inline constexpr bool kMaskLeavesOut<MsSsimOptions> = false;

namespace {

// The plain functions round the results of f32 pictures to f32; the sums behind them are f64.
template <class Options, class Request, auto measure, auto measure_into>
Tensor in_f64(
    const TensorView& x, const TensorView& y, const Options& options, const Execution& exec) {
  if (options.reduction == Reduction::none) return measure(x, y, options, exec);
  Request request;
  const Tensor value = allocate({}, DType::f64, x.device, exec);
  request.value = value;
  measure_into(x, y, request, options, exec);
  return value;
}

struct PooledPsnrOptions : PsnrOptions {
  Pooling pool = Pooling::mean;
};
PsnrOptions& of_library(PooledPsnrOptions& options) { return options; }
const PsnrOptions& of_library(const PooledPsnrOptions& options) { return options; }

Tensor psnr_in_f64(const TensorView& x, const TensorView& y, const PooledPsnrOptions& options,
    const Execution& exec) {
  const Tensor value = allocate({}, DType::f64, x.device, exec);
  psnr_into(x, y, value, options, exec);
  return value;
}

std::vector<Option<PooledPsnrOptions>> psnr_options() {
  auto options = options_of<PooledPsnrOptions>(
      *operation("psnr").table, [](auto& pooled) -> auto& { return of_library(pooled); });
  options.emplace_back("pool", &PooledPsnrOptions::pool,
      NamedValues<Pooling>{{"mean", Pooling::mean}, {"mse", Pooling::of_errors}},
      "mean of a video: of its frames' psnr, or the psnr of their mean mse");
  return options;
}

// MS-SSIM's finest level: contrast and structure alone, unless there is no coarser level, which
// then has the luminance.
Tensor finest_level_map(
    const TensorView& x, const TensorView& y, const MsSsimOptions& options, const Execution& exec) {
  constexpr double kNoLuminance = 1e6;  // a k1 so large makes SSIM's luminance 1 to f32's precision
  const SsimOptions finest{.data_range = options.data_range,
      .window_size = options.window_size,
      .sigma = options.sigma,
      .k1 = options.weights.size() > 1 ? kNoLuminance : options.k1,
      .k2 = options.k2,
      .padding = options.padding,
      .reduction = Reduction::none};
  return ssim(x, y, finest, exec);
}

template <bool normalized>
Tensor information_in_f64(const TensorView& x, const TensorView& y,
    const MutualInformationOptions& options, const Execution& exec) {
  MutualInformationOptions own = options;
  own.normalized = normalized;
  const Tensor value = allocate({}, DType::f64, x.device, exec);
  mutual_information_into(x, y, {.value = value}, own, exec);
  return value;
}

// The rows of float_ssim or float_ms_ssim, whose options are part(LumaOptions), and the program's
// own.
template <class Part>
std::vector<Option<LumaOptions>> luma_options(const OperationTable& operation, Part part) {
  auto options = options_of<LumaOptions>(operation, part);
  const auto after = std::find_if(options.begin(), options.end(),
      [](const Option<LumaOptions>& option) { return option.name == "enable_db"; });
  options.insert(after,
      {"enable_lcs", &LumaOptions::enable_lcs, kSwitch, "luminance, contrast and structure too"});
  return options;
}

MapRange similarity_range(const char* unit) { return {.best = 1, .worst = 0, .unit = unit}; }
MapRange error_range(const char* unit, MapScale scale) {
  return {.best = 0, .worst = 1, .unit = unit, .scale = scale};
}

// The metrics that look at one frame.
std::vector<Metric> metrics_of_frames() {
  return {
      metric("psnr", "peak signal-to-noise ratio in dB; infinite if equal", operation("psnr"),
          psnr_options(), psnr_in_f64),
      error_metric(metric("mse", "mean squared error, in squared code values; 0 if equal",
          operation("mse"), options_of<PixelErrorOptions>(*operation("mse").table),
          in_f64<PixelErrorOptions, PixelErrorRequest, mse, mse_into>,
          std::optional(MapOf<PixelErrorOptions>{
              error_range("squared error", MapScale::of_squared_range), squared_error_map}))),
      error_metric(metric("mae", "mean absolute error, in code values; 0 if equal",
          operation("mae"), options_of<PixelErrorOptions>(*operation("mae").table),
          in_f64<PixelErrorOptions, PixelErrorRequest, mae, mae_into>,
          std::optional(MapOf<PixelErrorOptions>{
              error_range("error", MapScale::of_range), absolute_error_map}))),
      metric("ssim", "structural similarity; 1 if equal", operation("ssim"),
          in_f64<SsimOptions, SsimRequest, ssim, ssim_into>,
          similarity_range("similarity, 1 if equal")),
      of_luma(metric("ms-ssim", "structural similarity at several scales; 1 if equal",
          operation("ms_ssim"), options_of<MsSsimOptions>(*operation("ms_ssim").table),
          in_f64<MsSsimOptions, MsSsimRequest, ms_ssim, ms_ssim_into>,
          std::optional(MapOf<MsSsimOptions>{
              similarity_range("finest level, 1 if equal"), finest_level_map}))),
      metric(
          "ncc", "normalized cross-correlation of the pictures; 1 if equal", operation("ncc"), ncc),
      metric("lncc", "local normalized cross-correlation; 1 if equal", operation("lncc"),
          in_f64<LnccOptions, LnccRequest, lncc, lncc_into>,
          similarity_range("correlation, 1 if equal")),
      metric("mi", "mutual information in nats; 0 if independent", operation("mutual_information"),
          information_in_f64<false>),
      metric("nmi", "normalized mutual information; 1 if independent, up to 2",
          operation("mutual_information"), information_in_f64<true>),
      ssimulacra2_metric(),
      metric("integer-ssim", "libvmaf's ssim, bit for bit, of luma of video", integer_ssim_of_luma),
      metric("float-ssim", "libvmaf's float_ssim, of luma of video", float_ssim_of_luma,
          float_ssim_options()),
      metric("float-ms-ssim", "libvmaf's float_ms_ssim, of luma of video", float_ms_ssim_of_luma,
          float_ms_ssim_options()),
  };
}

}  // namespace

std::vector<Option<LumaOptions>> float_ssim_options() {
  return luma_options(
      *operation("float_ssim").table, [](auto& options) -> auto& { return options.float_ssim; });
}
std::vector<Option<LumaOptions>> float_ms_ssim_options() {
  return luma_options(
      *operation("float_ms_ssim").table,
      [](auto& options) -> auto& { return options.float_ms_ssim; });
}

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> table = [] {
    std::vector<Metric> all = metrics_of_frames();
    all.push_back(vmaf_metric());
    for (Metric& metric : clip_feature_metrics()) all.push_back(std::move(metric));
    for (Metric& metric : plane_metrics()) all.push_back(std::move(metric));
    return all;
  }();
  return table;
}

const std::vector<std::string>& default_metrics() {
  static const std::vector<std::string> names = {"psnr", "ssim", "ms-ssim"};
  return names;
}

std::string describe_metrics() {
  std::string text;
  for (const Metric& known : metrics()) {
    text += fmt::format("{}{}  {}\n", text.empty() ? "" : "\n", known.name, known.description);
    for (const MetricOption& option : known.options) {
      const std::string& value = option.default_value;
      text += fmt::format("  {:11}  {}\n", option.name, option.description);
      text += fmt::format(
          "  {:11}  {}{}\n", "", option.takes, value.empty() ? "" : "; " + value + " unless given");
    }
  }
  return text;
}

const Metric* find_metric(std::string_view name) {
  const auto found = std::find_if(metrics().begin(), metrics().end(),
      [&](const Metric& candidate) { return candidate.name == name; });
  return found == metrics().end() ? nullptr : &*found;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const Metric& known : metrics()) names.push_back(known.name);
  return names;
}

std::vector<std::string> metric_names_with_maps() {
  std::vector<std::string> names;
  for (const Metric& known : metrics()) {
    if (known.map_range) names.push_back(known.name);
  }
  return names;
}

}  // namespace similis::cli
