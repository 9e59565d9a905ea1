// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "similis/error.hpp"
#include "src/cli/metrics/named_value.h"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"
#include "src/registration/options.h"

namespace similis::cli {
namespace {

// The first `count` values of an enumeration by the library's words.
template <class E, std::size_t n>
NamedValues<E> named(const std::array<const char*, n>& names, std::size_t count = n) {
  NamedValues<E> values;
  for (std::size_t i = 0; i < count; ++i) values.emplace_back(names[i], static_cast<E>(i));
  return values;
}

const NamedValues<RegisterStage> kStages = named<RegisterStage>(registration_internal::kStageNames);
const NamedValues<RegisterMetric> kMetrics =
    named<RegisterMetric>(registration_internal::kMetricNames);
const NamedValues<RegisterStart> kStarts = named<RegisterStart>(
    registration_internal::kStartNames, registration_internal::kStartNames.size() - 1);
const NamedValues<RegisterPreset> kPresets =
    named<RegisterPreset>(registration_internal::kPresetNames);

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

template <class E>
E parse_choice(const char* option, const std::string& text, const NamedValues<E>& choices) {
  const std::optional<E> value = NamedValue<E>::parse(text, choices);
  if (value) return *value;
  throw UsageError(
      fmt::format("{} is \"{}\"; it must be {}", option, text, NamedValue<E>::takes(choices)));
}

double parse_double(const char* option, const std::string& text) {
  const std::optional<double> number = parse_number<double>(text);
  if (number) return *number;
  throw UsageError(fmt::format("{} is \"{}\"; it must be a number", option, text));
}

std::vector<int> parse_list(const char* option, const std::string& text) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  for (const std::string& part : split(text, 'x')) {
    const std::optional<int> number = parse_number<int>(part);
    if (!number || *number < 1) {
      throw UsageError(
          fmt::format("{} is \"{}\"; it must be whole numbers above 0, as 50x40x20", option, text));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

// NAME[=OPTION=VALUE:…]
MetricTerm parse_metric(const char* option, const std::string& text) {
  const std::size_t equals = text.find('=');
  MetricTerm term{.metric = parse_choice(option, text.substr(0, equals), kMetrics)};
  if (equals == text.npos) return term;
  for (const std::string& part : split(text.substr(equals + 1), ':')) {
    const std::size_t at = part.find('=');
    const std::string key = part.substr(0, at);
    const std::string value = at == part.npos ? std::string() : part.substr(at + 1);
    const int whole = parse_number<int>(value).value_or(0);
    const double number = parse_number<double>(value).value_or(-1);
    if (key == "weight" && number > 0) {
      term.weight = number;
    } else if (key == "window_size" && term.metric == RegisterMetric::lncc && whole > 0) {
      term.window_size = whole;
    } else if (key == "sampling" && term.metric == RegisterMetric::mi && number > 0) {
      term.sampling = number;
    } else if (key == "bins" && term.metric == RegisterMetric::mi && whole > 0) {
      term.num_bins = whole;
    } else {
      throw UsageError(fmt::format(
          "{} is \"{}\"; its options are weight=NUMBER, of lncc window_size=N and of mi bins=N and "
          "sampling=SHARE",
          option, text));
    }
  }
  return term;
}

// The library's refusal as one of the command line: "register: min_jacobian is 2; …" names the
// option by its flag, and an option of a metric by the flag that takes it.
void check_range(const RegisterOptions& options, const char* metric_flag) {
  try {
    registration_internal::check_options(options);
  } catch (const InvalidArgument& error) {
    std::string words = error.what();
    words.erase(0, words.find(' ') + 1);
    const std::string option = words.substr(0, words.find(' '));
    for (const char* own :
        {"iterations", "levels", "fluid", "elastic", "step", "min_jacobian", "tolerance"}) {
      if (option != own) continue;
      std::replace(
          words.begin(), words.begin() + static_cast<std::ptrdiff_t>(option.size()), '_', '-');
      throw UsageError("--" + words);
    }
    if (option == "num_bins") words.erase(0, std::string_view("num_").size());
    throw UsageError(fmt::format("{}: {}", metric_flag, words));
  }
}

void check_ranges(RegisterOptions options) {
  options.start = RegisterStart::automatic;  // the map of a file is not read yet
  const MetricTerm linear = std::exchange(options.linear_metric, RegisterOptions().linear_metric);
  check_range(options, "--metric");
  options.linear_metric = linear;
  check_range(options, "--linear-metric");
}

}  // namespace

std::string start_file(const RegisterCommand& command) {
  const bool is_word = NamedValue<RegisterStart>::parse(command.init, kStarts).has_value();
  return is_word ? std::string() : command.init;
}

RegisterOptions parse_register_options(const RegisterCommand& command) {
  RegisterOptions options;
  options.stages.clear();
  for (const std::string& word : split(command.stages, ',')) {
    options.stages.push_back(parse_choice("--stages", word, kStages));
  }
  for (std::size_t i = 0; i + 1 < options.stages.size(); ++i) {
    if (options.stages[i] < options.stages[i + 1]) continue;
    throw UsageError(fmt::format(
        "--stages is \"{}\"; each stage may stand once, in the order translation, rigid, "
        "similarity, affine, deformable, symmetric",
        command.stages));
  }
  if (options.stages.size() > 1 && *(options.stages.end() - 2) == RegisterStage::deformable) {
    throw UsageError(
        fmt::format("--stages is \"{}\"; give one of deformable and symmetric", command.stages));
  }
  options.start = start_file(command).empty() ? parse_choice("--init", command.init, kStarts)
                                              : RegisterStart::given;
  options.preset = parse_choice("--preset", command.preset, kPresets);
  if (!command.metrics.empty()) options.metrics.clear();
  for (const std::string& text : command.metrics) {
    options.metrics.push_back(parse_metric("--metric", text));
  }
  options.linear_metric = parse_metric("--linear-metric", command.linear_metric);
  if (!registration_internal::is_linear(options.linear_metric.metric)) {
    throw UsageError(fmt::format("--linear-metric is \"{}\"; it must be mi, ncc or mse",
        registration_internal::name(options.linear_metric.metric)));
  }
  const bool is_by_labels = std::any_of(options.metrics.begin(), options.metrics.end(),
      [](const MetricTerm& term) { return term.metric == RegisterMetric::dice; });
  if (is_by_labels && (command.fixed_labels.empty() || command.moving_labels.empty())) {
    throw UsageError("--metric dice: give --fixed-labels and --moving-labels, which it compares");
  }
  options.iterations = parse_list("--iterations", command.iterations);
  options.levels = parse_list("--levels", command.levels);
  if (!options.iterations.empty() && !options.levels.empty() &&
      options.iterations.size() != options.levels.size()) {
    throw UsageError(fmt::format("--iterations has {} numbers and --levels {}; give as many",
        options.iterations.size(), options.levels.size()));
  }
  if (!command.fluid.empty()) options.fluid = parse_double("--fluid", command.fluid);
  if (!command.elastic.empty()) options.elastic = parse_double("--elastic", command.elastic);
  if (!command.step.empty()) options.step = parse_double("--step", command.step);
  if (!command.min_jacobian.empty()) {
    options.min_jacobian = parse_double("--min-jacobian", command.min_jacobian);
  }
  if (!command.tolerance.empty()) {
    options.tolerance = parse_double("--tolerance", command.tolerance);
  }
  if (command.not_finite != "error" && command.not_finite != "mask") {
    throw UsageError(fmt::format("--nan is \"{}\"; it must be error or mask", command.not_finite));
  }
  options.mask_not_finite = command.not_finite == "mask";
  if (command.format != "table" && command.format != "json") {
    throw UsageError(fmt::format("--format is \"{}\"; it must be table or json", command.format));
  }
  if (!command.seed.empty()) {
    const auto seed = parse_number<std::uint64_t>(command.seed);
    if (!seed) {
      throw UsageError(
          fmt::format("--seed is \"{}\"; it must be a whole number of 0 or more", command.seed));
    }
    for (MetricTerm& term : options.metrics) term.seed = *seed;
    options.linear_metric.seed = *seed;
  }
  check_ranges(options);
  return options;
}

}  // namespace similis::cli
