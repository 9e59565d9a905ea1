// SPDX-License-Identifier: Apache-2.0
// The table of metrics. A line is the name, a sentence, the library's function, its options and,
// where the function can give a map (Reduction::none), what the map's values mean. Pictures are f32
// code values; an option data_range that is a std::optional is filled in from their depth.
#include "src/cli/metrics/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "similis/similis.hpp"
#include "src/cli/metrics/ssimulacra2_metric.h"

namespace similis::cli {
namespace {

constexpr const char* kDataRange =
    "largest minus smallest value; unless given 2^depth-1, or that of the reference volume";
constexpr const char* kWindowSize = "of the Gaussian window, in pixels";
constexpr const char* kSigma = "standard deviation of the window, in pixels";
constexpr const char* kK1 = "steadies the quotient of means: C1 = (k1·data_range)²";
constexpr const char* kK2 = "steadies the quotient of variances: C2 = (k2·data_range)²";
constexpr const char* kPadding = "what a window sees outside the picture";

const Choices<Padding> kPaddings = {{"valid", Padding::valid}, {"same", Padding::same},
    {"reflect", Padding::reflect}, {"replicate", Padding::replicate},
    {"renormalize", Padding::renormalize}};
const Choices<Padding> kLnccPaddings = {
    {"valid", Padding::valid}, {"same", Padding::same}, {"renormalize", Padding::renormalize}};
const Choices<WindowShape> kWindows = {
    {"box", WindowShape::box}, {"gaussian", WindowShape::gaussian}};
const Choices<bool> kSwitch = {{"true", true}, {"false", false}};
constexpr Numbers kScale{
    "a number from 0 to 10", [](double number) { return number >= 0 && number <= 10; }};
constexpr const char* kEnableLcs = "luminance, contrast and structure too";
constexpr const char* kEnableDb = "in decibels: -10·log10(1 - score)";
constexpr const char* kClipDb = "no more decibels than half a squared code value a frame";
constexpr Numbers kBins{"a number from 4 to 256", [](double n) { return n >= 4 && n <= 256; }};
constexpr Numbers kRatio{"a number of 0.1 or more", [](double n) { return n >= 0.1; }};
const Choices<ParzenKernel> kKernels = {{"b_spline", ParzenKernel::b_spline},
    {"gaussian", ParzenKernel::gaussian}, {"delta", ParzenKernel::delta}};
const Choices<ValueRange> kRanges = {
    {"per_image", ValueRange::per_image}, {"common", ValueRange::common}};
const Choices<HistogramMethod> kMethods = {
    {"exact", HistogramMethod::exact}, {"binned", HistogramMethod::binned}};
const Choices<Downsample> kDownsamples = {{"vainf", Downsample::vainf}, {"ceil", Downsample::ceil},
    {"floor", Downsample::floor}, {"piq", Downsample::piq}};

// The plain functions round the results of f32 pictures to f32; the sums behind them are f64.
template <auto error_into>
Tensor in_f64(
    const TensorView& x, const TensorView& y, Reduction reduction, const Execution& exec) {
  const Tensor value = allocate({}, DType::f64, x.device, exec);
  error_into(x, y, {.value = value}, reduction, exec);
  return value;
}

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

Tensor psnr_in_f64(
    const TensorView& x, const TensorView& y, const PsnrOptions& options, const Execution& exec) {
  const Tensor value = allocate({}, DType::f64, x.device, exec);
  psnr_into(x, y, value, options, exec);
  return value;
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

// Also two numbers, which are two members of the options.
Option<MutualInformationOptions> range_option() {
  using Options = MutualInformationOptions;
  Option<Options> option("range", &Options::range, kRanges,
      "what the bins divide: smallest to largest of each picture, of both, or LOW,HIGH");
  option.takes = "per_image, common, or two numbers: LOW,HIGH";
  option.set = [by_name = option.set](std::string_view text, Options& options) {
    if (by_name(text, options)) return true;
    const auto numbers = OptionValue<std::vector<double>>::parse(text, any_number);
    if (!numbers || numbers->size() != 2 || !((*numbers)[0] < (*numbers)[1])) return false;
    options.range = ValueRange::fixed;
    options.low = (*numbers)[0];
    options.high = (*numbers)[1];
    return true;
  };
  option.json = [by_name = option.json](const Options& options) {
    if (options.range != ValueRange::fixed) return by_name(options);
    return OptionValue<std::vector<double>>::json({options.low, options.high}, any_number);
  };
  return option;
}

std::vector<Option<MutualInformationOptions>> information_options() {
  using Options = MutualInformationOptions;
  return {{"num_bins", &Options::num_bins, kBins, "of each picture's histogram"},
      {"kernel", &Options::kernel, kKernels, "how a pixel counts in the bins about its value"},
      {"sigma_ratio", &Options::sigma_ratio, kRatio, "twice the Gaussian's deviation, in bins"},
      range_option(),
      {"method", &Options::method, kMethods, "binned: in whole bins, blurred afterwards"}};
}

}  // namespace

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> table = {
      also_on_gpu(metric("psnr", "peak signal-to-noise ratio in dB; infinite if equal", psnr_in_f64,
          {{"data_range", &PsnrOptions::data_range, above_0, kDataRange}})),
      also_on_gpu(metric(
          "mse", "mean squared error, in squared code values; 0 if equal", in_f64<mse_into>)),
      also_on_gpu(
          metric("mae", "mean absolute error, in code values; 0 if equal", in_f64<mae_into>)),
      also_on_gpu(metric("ssim", "structural similarity; 1 if equal",
          in_f64<SsimOptions, SsimRequest, ssim, ssim_into>,
          {{"window_size", &SsimOptions::window_size, odd_up_to_65535, kWindowSize},
              {"sigma", &SsimOptions::sigma, above_0, kSigma},
              {"k1", &SsimOptions::k1, at_least_0, kK1}, {"k2", &SsimOptions::k2, at_least_0, kK2},
              {"padding", &SsimOptions::padding, kPaddings, kPadding},
              {"data_range", &SsimOptions::data_range, above_0, kDataRange}},
          MapRange{.best = 1, .worst = 0})),
      also_on_gpu(of_luma(metric("ms-ssim", "structural similarity at several scales; 1 if equal",
          in_f64<MsSsimOptions, MsSsimRequest, ms_ssim, ms_ssim_into>,
          {{"window_size", &MsSsimOptions::window_size, odd_up_to_65535, kWindowSize},
              {"sigma", &MsSsimOptions::sigma, above_0, kSigma},
              {"k1", &MsSsimOptions::k1, at_least_0, kK1},
              {"k2", &MsSsimOptions::k2, at_least_0, kK2},
              {"padding", &MsSsimOptions::padding, kPaddings, kPadding},
              {"weights", &MsSsimOptions::weights, at_least_0, "of the scales, finest first"},
              {"downsample", &MsSsimOptions::downsample, kDownsamples, "how odd sides are halved"},
              {"data_range", &MsSsimOptions::data_range, above_0, kDataRange}}))),
      also_on_gpu(metric("ncc", "normalized cross-correlation of the pictures; 1 if equal", ncc)),
      also_on_gpu(metric("lncc", "local normalized cross-correlation; 1 if equal",
          in_f64<LnccOptions, LnccRequest, lncc, lncc_into>,
          {{"window_size", &LnccOptions::window_size, odd_up_to_65535, "in pixels"},
              {"window", &LnccOptions::window, kWindows, "how pixels under it count"},
              {"sigma", &LnccOptions::sigma, above_0, kSigma},
              {"padding", &LnccOptions::padding, kLnccPaddings, kPadding},
              {"smooth_nr", &LnccOptions::smooth_nr, at_least_0, "added to the numerator"},
              {"smooth_dr", &LnccOptions::smooth_dr, above_0, "added to the denominator"},
              {"signed", &LnccOptions::is_signed, kSwitch, "from -1, where one is turned over"}},
          MapRange{.best = 1, .worst = 0})),
      also_on_gpu(metric("mi", "mutual information in nats; 0 if independent",
          information_in_f64<false>, information_options())),
      also_on_gpu(metric("nmi", "normalized mutual information; 1 if independent, up to 2",
          information_in_f64<true>, information_options())),
      ssimulacra2_metric(),
      metric("integer-ssim", "libvmaf's ssim, bit for bit, of luma of video", integer_ssim_of_luma),
      metric("float-ssim", "libvmaf's float_ssim, of luma of video", float_ssim_of_luma,
          {{"scale", &LumaOptions::scale, kScale, "shrinks by this first; 0 chooses by the size"},
              {"enable_lcs", &LumaOptions::enable_lcs, kSwitch, kEnableLcs},
              {"enable_db", &LumaOptions::enable_db, kSwitch, kEnableDb},
              {"clip_db", &LumaOptions::clip_db, kSwitch, kClipDb}}),
      metric("float-ms-ssim", "libvmaf's float_ms_ssim, of luma of video", float_ms_ssim_of_luma,
          {{"enable_lcs", &LumaOptions::enable_lcs, kSwitch, kEnableLcs},
              {"enable_db", &LumaOptions::enable_db, kSwitch, kEnableDb},
              {"clip_db", &LumaOptions::clip_db, kSwitch, kClipDb}}),
  };
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
