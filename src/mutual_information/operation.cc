// SPDX-License-Identifier: Apache-2.0
// Options and backends of mutual information and of its histogram.
#include "similis/c/mutual_information.h"
#include "src/core/option_value.h"
#include "src/core/require.h"
#include "src/mutual_information/mutual_information.h"

namespace similis::mutual_information_internal {
namespace {

using O = MutualInformationOptions;
using R = MutualInformationRequest;
using C = similis_mutual_information_options;

constexpr O kDefaults;
constexpr C kCDefaults = SIMILIS_MUTUAL_INFORMATION_DEFAULTS;

constexpr const char* kKernelWords[] = {"b_spline", "gaussian", "delta"};
constexpr const char* kRangeWords[] = {"per_image", "common", "fixed", "unit_or_common"};
constexpr const char* kMethodWords[] = {"exact", "binned"};
constexpr const char* kFormWordsHere[] = {"measure", "loss"};
constexpr Bounds kBins{.words = "a whole number from 4 to 256", .least = 4, .most = 256};
constexpr Bounds kRatios{.words = "a number of 0.1 or more", .least = 0.1};
constexpr Bounds kShares{
    .words = "a number above 0 and up to 1", .least = 0, .most = 1, .above_least = true};
constexpr Bounds kSeeds{.words = "a whole number of 0 or more", .least = 0};

bool parse_range(const Option&, std::string_view text, void* into) {
  O& options = *static_cast<O*>(into);
  for (std::size_t i = 0; i < std::size(kRangeWords); ++i) {
    if (text != kRangeWords[i] || static_cast<ValueRange>(i) == ValueRange::fixed) continue;
    options.range = static_cast<ValueRange>(i);
    return true;
  }
  const auto limits = OptionValue<std::vector<double>>::parse({.bounds = kAnyNumber}, text);
  if (!limits || limits->size() != 2 || !((*limits)[0] < (*limits)[1])) return false;
  options.range = ValueRange::fixed;
  options.low = (*limits)[0];
  options.high = (*limits)[1];
  return true;
}

std::string range_as_json(const Option&, const void* of) {
  const O& options = *static_cast<const O*>(of);
  if (options.range == ValueRange::fixed) {
    return OptionValue<std::vector<double>>::json({}, {options.low, options.high});
  }
  return '"' + std::string(kRangeWords[static_cast<std::size_t>(options.range)]) + '"';
}

void check_range(const Option& row, const char* operation, const void* of) {
  const auto index = static_cast<std::size_t>(static_cast<const O*>(of)->range);
  require(index < std::size(kRangeWords), "{}: {} is {}; it must be {}", operation, row.name, index,
      listed({kRangeWords}));
}

// One option in text, three members of the structs: the word, low and high.
constexpr Option range_option() {
  Option row = option<&O::range, &C::range>("range", Choices{kRangeWords},
      "values that the bins divide: those of each picture, of both, or LOW,HIGH");
  row.type = OptionType::range;
  row.choices = without(row.choices, ValueRange::fixed);  // two numbers stand for it in text
  row.check = check_range;
  row.parse = parse_range;
  row.json = range_as_json;
  return row;
}

constexpr Option kOptions[] = {
    option<&O::num_bins, &C::num_bins>("num_bins", kBins, "bins of each picture's histogram"),
    option<&O::kernel, &C::kernel>(
        "kernel", Choices{kKernelWords}, "weights of a pixel in the bins around its value"),
    option<&O::sigma_ratio, &C::sigma_ratio>(
        "sigma_ratio", kRatios, "twice the Gaussian's standard deviation, in bins"),
    range_option(),
    option<&O::low, &C::low>("low", kAnyNumber),
    option<&O::high, &C::high>("high", kAnyNumber),
    option<&O::normalized, &C::normalized>("normalized"),
    option<&O::smooth_nr, &C::smooth_nr>(
        "smooth_nr", kAtLeast0, "added to the logarithm's numerator"),
    option<&O::smooth_dr, &C::smooth_dr>(
        "smooth_dr", kAtLeast0, "added to the logarithm's denominator"),
    option<&O::method, &C::method>("method", Choices{kMethodWords},
        "exact: weights of the kernel; binned: whole bins, blurred afterwards"),
    option<&O::sampling, &C::sampling>(
        "sampling", kShares, "share of the pixels that are counted, chosen by the seed"),
    option<&O::seed, &C::seed>("seed", kSeeds, "seed of that choice"),
    option<&O::mask, &C::mask>("mask"),
    option<&O::reduction, &C::reduction>("reduction", kReductions),
    option<&O::limits, &C::limits>("limits"),
};
constexpr Option kRequest[] = {
    option<&R::form, &C::form>("form", Choices{kFormWordsHere}),
    option<&R::histogram, &C::histogram>("histogram"),
    reserved<&C::reserved>(),
};
constexpr const char* kHistogramName[] = {"histogram"};

constexpr OperationTable table(const char* name, const CFunction& function,
    std::span<const char* const> outputs, ShapeRule shape = ShapeRule::by_reduction,
    std::span<const char* const> operands = kTwoImages) {
  return {.name = name,
      .options = kOptions,
      .request = kRequest,
      .defaults = &kDefaults,
      .c_defaults = &kCDefaults,
      .c_struct = "similis_mutual_information_options",
      .c_size = sizeof(C),
      .operands = operands,
      .outputs = outputs,
      .shape = shape,
      .c_function = function};
}
constexpr std::array<Backend<Pass>, kDeviceKinds> kBackends = {
    {SIMILIS_CPU(mutual_information_cpu), SIMILIS_CUDA(mutual_information_cuda)}};

}  // namespace

constinit const Operation<Pass> kMutualInformation = {
    .table =
        table("mutual_information", c_function<similis_mutual_information>, kValueAndGradients),
    .backends = kBackends};
constinit const Operation<Pass> kHistogram = {
    .table =
        table("histogram", c_function<similis_histogram>, kHistogramName, ShapeRule::histogram),
    .backends = kBackends};
constinit const Operation<Pass> kFromHistogram = {
    .table = table("mutual_information_from_histogram",
        c_function<similis_mutual_information_from_histogram>, kValue, ShapeRule::by_reduction,
        kHistogramName),
    .backends = kBackends};

}  // namespace similis::mutual_information_internal
