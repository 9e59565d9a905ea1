// SPDX-License-Identifier: Apache-2.0
// A metric as the program knows it: its name, a sentence, its function, its options. The table of
// all of them is in metrics.cc; what -m takes, --help, completion and the settings in the results
// follow from it.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"
#include "src/cli/inputs/frame_pair.h"
#include "src/cli/metrics/luma_scores.h"
#include "src/cli/metrics/map_range.h"
#include "src/cli/metrics/named_value.h"
#include "src/cli/metrics/pooling.h"
#include "src/cli/usage_error.h"
#include "src/core/require.h"
#include "src/operations/operations.h"

namespace similis::cli {

/// The planes of a video's frame that a metric takes, each by itself; or all together, as they were
/// read.
enum class VideoPlanes : std::uint8_t { all, luma, frame };

/// Option and value, both as they were typed.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct ClipMeasure;

/// A metric with its options, ready to run.
struct Measure {
  std::string name;  ///< in the results
  VideoPlanes video_planes = VideoPlanes::all;
  bool runs_on_gpu = false;
  bool runs_on_vulkan = false;
  bool takes_as_read = false;       ///< it looks at FramePair::as_read alone
  bool takes_luma = false;          ///< it looks at FramePair::luma alone
  bool is_error = false;            ///< it is better when lower
  Pooling pooling = Pooling::mean;  ///< how its scores of frames become one
  std::function<double(const FramePair&, const Execution&)> value;
  /// For a metric that has several numbers: what follows the name in each one's, "" for the first,
  /// which is the value; and all of them.
  std::vector<std::string> parts = {""};
  std::function<std::vector<double>(const FramePair&, const Execution&)> values;
  std::function<Tensor(const FramePair&, const Execution&)> map;  ///< empty if there is none
  /// Options and their values as JSON; data_range as it comes from the pictures, if it is one.
  std::function<Settings(std::optional<double> data_range)> settings;
  /// Given by measures whose settings follow from the media, such as a video's colours; these are
  /// then reported in the place of `settings`.
  std::function<Settings(const AsRead&)> media_settings;
  /// Given by measures that look at several frames of a video: ClipScorer runs these. `value` is
  /// that of a frame by itself.
  std::shared_ptr<const ClipMeasure> clip;
};

/// The measure's numbers, in the order of its parts.
std::vector<double> all_values(
    const Measure& measure, const FramePair& pair, const Execution& exec);

/// Throws InvalidArgument, in words for who gave --device, if the measure cannot run there.
void require_runs_on(const Measure& measure, Device device);

/// The frames where measures are to run: themselves if they are there. Waits for the copy.
FramePair frames_on_device(const FramePair& frames, Device device, const Execution& exec);

struct MetricOption {
  std::string name;
  std::string description;
  std::string takes;
  std::string default_value;  ///< as it would be typed; empty if it follows from the pictures
};

struct Metric {
  std::string name;
  std::string description;
  std::vector<MetricOption> options;
  std::optional<MapRange> map_range;  ///< if it offers a map
  VideoPlanes video_planes = VideoPlanes::all;
  bool runs_on_gpu = false;
  bool runs_on_vulkan = false;
  bool is_error = false;  ///< it is better when lower
  /// Takes settings whose names are among `options`. Throws UsageError, beginning with the
  /// option's name, if it does not take the value.
  std::function<Measure(const Settings&)> configure;
};

/// An option of a metric, by the name that -m gives it, in the metric's Options.
template <class Options> struct Option {
  /// A row of an operation's table; part finds the operation's options in the metric's.
  template <class Part>
  Option(const similis::Option& row, Part part)
      : name(row.name),
        description(row.description),
        takes(accepted_values(row)),
        set([&row, part](std::string_view text, Options& options) {
          return row.parse(row, text, &part(options));
        }),
        json([&row, part](const Options& options) { return row.json(row, &part(options)); }) {}
  /// An option of the program's own.
  template <class E>
  Option(
      const char* option_name, E Options::*member, const NamedValues<E>& values, const char* words)
      : name(option_name),
        description(words),
        takes(NamedValue<E>::takes(values)),
        set([member, values](std::string_view text, Options& options) {
          const auto value = NamedValue<E>::parse(text, values);
          if (value) options.*member = *value;
          return value.has_value();
        }),
        json([member, values](const Options& options) {
          return NamedValue<E>::json(options.*member, values);
        }) {}

  std::string name, description, takes;
  std::function<bool(std::string_view text, Options&)> set;
  std::function<std::string(const Options&)> json;
};

/// The options of an operation that the program offers. Options: those of the operation, or a
/// struct in which part(options) are those.
template <class Options, class Part>
std::vector<Option<Options>> options_of(const OperationTable& operation, Part part) {
  std::vector<Option<Options>> offered;
  for (const similis::Option& row : operation.options) {
    if (row.description != nullptr) offered.emplace_back(row, part);
  }
  return offered;
}
template <class Options> std::vector<Option<Options>> options_of(const OperationTable& operation) {
  return options_of<Options>(
      operation, [](auto& options) -> auto& { return options; });
}

/// The functions that a metric may be: the library's own form.
template <class Options>
using MetricFunction = Tensor (*)(
    const TensorView&, const TensorView&, const Options&, const Execution&);
using PlainMetricFunction = Tensor (*)(
    const TensorView&, const TensorView&, Reduction, const Execution&);

/// `options` with what the pictures decide filled in. Throws InvalidArgument if they cannot.
template <class Options> Options for_range(Options options, std::optional<double> data_range) {
  if constexpr (requires { options.data_range.has_value(); }) {
    if (options.data_range) return options;
    const double span = data_range.value_or(1);
    require(
        span > 0 && std::isfinite(span), "the reference's values span {}; give data_range", span);
    options.data_range = data_range;
  }
  return options;
}

/// True if pixels whose weight is 0 in the options' mask may hold anything.
template <class Options> inline constexpr bool kMaskLeavesOut = requires(Options options) {
  options.mask;
};

/// `options` with the pair's range, if they do not give one, and its mask. Throws InvalidArgument
/// if the metric, of this name, cannot leave pixels out.
template <class Options>
Options for_pair(Options options, const FramePair& pair, const char* name) {
  if constexpr (requires { options.valid_mask; }) {
    options.valid_mask = pair.mask;
  } else if constexpr (kMaskLeavesOut<Options>) {
    options.mask = pair.mask;
  } else {
    require(pair.mask.empty(), "{} cannot leave out values that are not finite", name);
  }
  return for_range(options, pair.data_range);
}

/// `options` for a map as large as the image: the rim that padding valid leaves out is filled from
/// windows cut at the border, and all other pixels stay what they are.
template <class Options> Options for_map(Options options) {
  if constexpr (requires { options.reduction = Reduction::none; }) {
    options.reduction = Reduction::none;
  }
  if constexpr (requires { options.padding; }) {
    if (options.padding == Padding::valid) options.padding = Padding::renormalize;
  }
  return options;
}

/// The defaults and what `settings` makes of them; their names are known to be options' names.
template <class Options>
Options with_settings(const Settings& settings, const std::vector<Option<Options>>& options) {
  Options chosen;
  for (const auto& [name, text] : settings) {
    for (const Option<Options>& option : options) {
      if (option.name != name || option.set(text, chosen)) continue;
      throw UsageError(fmt::format("{} is \"{}\"; it must be {}", name, text, option.takes));
    }
  }
  return chosen;
}

/// The options' values in JSON.
template <class Options>
Settings settings_of(const Options& chosen, const std::vector<Option<Options>>& options) {
  Settings values;
  for (const Option<Options>& option : options) {
    const std::string json = option.json(chosen);
    values.emplace_back(option.name, json.empty() ? "null" : json);
  }
  return values;
}

/// A value in JSON as one would type it.
inline std::string typed(std::string json) {
  if (json == "null") return "";
  std::erase_if(json, [](char c) { return c == '"' || c == '[' || c == ']'; });
  return json;
}

template <class Options>
std::vector<MetricOption> described(const std::vector<Option<Options>>& options) {
  std::vector<MetricOption> result;
  for (const Option<Options>& option : options) {
    result.push_back(
        {option.name, option.description, option.takes, typed(option.json(Options{}))});
  }
  return result;
}

/// A metric's map: its values, and the function that makes them.
template <class Options> struct MapOf {
  MapRange range;
  MetricFunction<Options> function;
};

/// A line of the table, with the metric's options.
template <class Options>
Metric metric(const char* name, const char* description, const ListedOperation& operation,
    std::vector<Option<Options>> options, MetricFunction<Options> function,
    std::optional<MapOf<Options>> map = {}) {
  Metric result{.name = name,
      .description = description,
      .options = described(options),
      .runs_on_gpu = operation.on_cuda,
      .runs_on_vulkan = operation.on_vulkan};
  if (map) result.map_range = map->range;
  result.configure = [=](const Settings& settings) {
    const Options chosen = with_settings(settings, options);
    Measure measure;
    if constexpr (requires { chosen.pool; }) measure.pooling = chosen.pool;
    measure.value = [=](const FramePair& pair, const Execution& exec) {
      return item(function(pair.reference, pair.distorted, for_pair(chosen, pair, name), exec));
    };
    if (map) {
      measure.map = [=](const FramePair& pair, const Execution& exec) {
        return map->function(
            pair.reference, pair.distorted, for_map(for_pair(chosen, pair, name)), exec);
      };
    }
    measure.settings = [=](std::optional<double> data_range) {
      return settings_of(for_range(chosen, data_range), options);
    };
    return measure;
  };
  return result;
}

/// The same with the operation's options. Give `map_range` if the function takes Reduction::none.
template <class Options>
Metric metric(const char* name, const char* description, const ListedOperation& operation,
    MetricFunction<Options> function, std::optional<MapRange> map_range = {}) {
  std::optional<MapOf<Options>> map;
  if (map_range) map = MapOf<Options>{*map_range, function};
  return metric(name, description, operation, options_of<Options>(*operation.table), function, map);
}

/// A line for one of libvmaf's measures, which take luma of video and no pictures.
Metric metric(const char* name, const char* description, const LumaMeasure& measure,
    std::vector<Option<LumaOptions>> options = {});

/// The line for a metric of which a video has one number a frame, that of its luma.
inline Metric of_luma(Metric metric) {
  metric.video_planes = VideoPlanes::luma;
  return metric;
}

/// The line for a metric that is better when lower.
inline Metric error_metric(Metric metric) {
  metric.is_error = true;
  return metric;
}

/// The same for a function whose only option is its reduction.
Metric metric(const char* name, const char* description, const ListedOperation& operation,
    PlainMetricFunction function);

}  // namespace similis::cli
