// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/clip_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "src/cli/terminal/json_text.h"
#include "src/core/joined.h"
#include "src/core/number_text.h"
#include "src/vmaf/gpu_meter.h"

namespace similis::cli {
namespace {

using vmaf_internal::Clip;
using vmaf_internal::ClipFrame;
using vmaf_internal::FeatureKind;
using vmaf_internal::FeatureOption;
using vmaf_internal::FeatureRequest;
using vmaf_internal::FrameSums;
using vmaf_internal::Model;
using vmaf_internal::ModelRequest;
using vmaf_internal::PlanePair;

vmaf_internal::Plane plane_of(const TensorView& view, int bit_depth) {
  return {view.data(), view.strides[0], view.shape[1], view.shape[0], view.dtype == DType::u16,
      bit_depth};
}

// The numbers of one frame by itself, which has no motion.
std::vector<double> numbers_of_frame(
    const ClipMeasure& measure, const LumaPlanes& planes, Device device, const Execution& exec) {
  std::vector<Model> models;
  std::vector<FeatureRequest> requests;
  if (measure.model) models.push_back(*measure.model);
  if (measure.feature) requests.push_back(*measure.feature);
  requests = requests_of(models, requests);
  const TensorView& reference = planes.reference;
  Clip clip(std::move(requests), std::move(models), reference.shape[1], reference.shape[0]);
  const PlanePair pair = {
      plane_of(reference, planes.bit_depth), plane_of(planes.distorted, planes.bit_depth)};
  if (device.kind == DeviceKind::cpu) {
    clip.push(pair, true, exec);
  } else {
    const auto meter = make_gpu_meter(clip.plan(), device);
    const FrameSums sums = meter->measure(pair.reference, {&pair.distorted, 1}, exec);
    clip.push(sums, sums.pairs.data());
  }
  clip.finish();
  return measure.numbers(*clip.pop(), 0);
}

Measure clip_measure(const char* name, ClipMeasure clip) {
  Measure measure{.takes_luma = true};
  measure.clip = std::make_shared<const ClipMeasure>(std::move(clip));
  measure.values = [name, of = measure.clip](const FramePair& pair, const Execution& exec) {
    require(!pair.luma.reference.empty(),
        "{} takes the luma of video; pictures and volumes have none", name);
    return numbers_of_frame(*of, pair.luma, pair.device, exec);
  };
  measure.value = [values = measure.values](const FramePair& pair, const Execution& exec) {
    return values(pair, exec).front();
  };
  return measure;
}

struct ModelOptions {
  std::string model = "vmaf_v0.6.1";
  bool disables_clip = false, enables_transform = false;
};

std::string versions() {
  std::vector<std::string> names;
  for (const auto& model : vmaf_internal::built_in_models()) names.emplace_back(model.version);
  return joined(names, ", ");
}

bool read_switch(const std::string& name, const std::string& text) {
  if (const auto value = NamedValue<bool>::parse(text, kSwitch)) return *value;
  throw UsageError(
      fmt::format("{} is \"{}\"; it must be {}", name, text, NamedValue<bool>::takes(kSwitch)));
}

ModelOptions model_options(const Settings& settings) {
  ModelOptions options;
  for (const auto& [name, text] : settings) {
    if (name == "model") {
      options.model = text;
    } else {
      (name == "disable_clip" ? options.disables_clip : options.enables_transform) =
          read_switch(name, text);
    }
  }
  return options;
}

Model load(const ModelOptions& options) {
  const bool is_path =
      options.model.find('/') != std::string::npos || options.model.ends_with(".json");
  ModelRequest request;
  try {
    request = vmaf_internal::parse_model_request((is_path ? "path=" : "version=") + options.model);
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("model is \"{}\"; {}", options.model, error.what()));
  }
  request.disables_clip = options.disables_clip;
  request.enables_transform = options.enables_transform;
  return load_model(request);
}

// The options that change a number which compare shows.
std::vector<FeatureOption> offered_options(const FeatureRequest& request) {
  std::vector<FeatureOption> offered;
  for (const FeatureOption& option : request.options()) {
    const std::string_view name = option.name;
    if (name != "debug" && name != "full_ref") offered.push_back(option);
  }
  return offered;
}

struct ClipFeature {
  FeatureKind kind;
  const char* description;
  std::vector<std::string> parts;
  std::vector<ClipMeasure::Column> columns;
};

Metric clip_feature_metric(const ClipFeature& feature) {
  FeatureRequest request(feature.kind);
  // libvmaf shows the score of all scales, the value here, among its numbers for debugging.
  if (feature.kind == FeatureKind::vif) request.set("debug", "true");
  const char* name = request.name();
  Metric metric{.name = name,
      .description = feature.description,
      .video_planes = VideoPlanes::luma,
      .runs_on_gpu = feature.kind != FeatureKind::cambi,
      .is_error = feature.kind == FeatureKind::cambi};
  for (const FeatureOption& option : offered_options(request)) {
    metric.options.push_back(
        {option.name, option.description, takes(option), typed(option, option.preset)});
  }
  metric.configure = [feature, request, name](const Settings& settings) {
    FeatureRequest chosen = request;
    try {
      for (const auto& [option, text] : settings) chosen.set(option, text);
      chosen.require_valid();
    } catch (const InvalidArgument& error) {
      throw UsageError(error.what());
    }
    Measure measure = clip_measure(name, {.feature = chosen, .columns = feature.columns});
    measure.parts = feature.parts;
    measure.settings = [chosen](std::optional<double>) {
      Settings values;
      for (const FeatureOption& option : offered_options(chosen)) {
        const std::string value = typed(option, chosen.value(option.name));
        const bool is_word = option.type == FeatureOption::Type::eotf;
        values.emplace_back(option.name, is_word ? fmt::format("\"{}\"", value) : value);
      }
      return values;
    };
    return measure;
  };
  return metric;
}

}  // namespace

bool ClipMeasure::looks_back() const {
  const auto is_motion = [](const FeatureRequest& request) {
    return request.kind() == FeatureKind::motion;
  };
  if (feature) return is_motion(*feature);
  return std::any_of(
      model->regressions.begin(), model->regressions.end(), [&](const auto& regression) {
        return std::any_of(regression.inputs.begin(), regression.inputs.end(),
            [&](const auto& input) { return is_motion(input.feature); });
      });
}

std::vector<double> ClipMeasure::numbers(const ClipFrame& frame, std::size_t place) const {
  std::vector<double> numbers;
  if (model) {
    numbers.push_back(frame.scores[place]);
    numbers.insert(numbers.end(), frame.members[place].begin(), frame.members[place].end());
  }
  for (const Column& column : columns) {
    numbers.push_back((column.is_late ? frame.late : frame.features)[place][column.index]);
  }
  return numbers;
}

Metric vmaf_metric() {
  Metric metric{.name = "vmaf",
      .description = "libvmaf's VMAF, in its bits, of luma of video; up to 100",
      .video_planes = VideoPlanes::luma,
      .runs_on_gpu = true};
  const std::string known = versions();
  metric.options = {
      {"model", "the version of a model, or the path of its JSON file",
          known.empty() ? "a path" : known + " or a path", known.empty() ? "" : "vmaf_v0.6.1"},
      {"disable_clip", "scores below 0 and above 100 stay as they are", "true or false", "false"},
      {"enable_transform", "transform the score as for small displays", "true or false", "false"},
  };
  metric.configure = [](const Settings& settings) {
    const ModelOptions options = model_options(settings);
    ClipMeasure clip{.model = load(options)};
    std::vector<std::string> parts = {""};
    for (const std::string& member : clip.model->member_columns()) {
      parts.push_back(member.substr(clip.model->name.size() + 1));
    }
    Measure measure = clip_measure("vmaf", std::move(clip));
    measure.parts = std::move(parts);
    measure.settings = [options](std::optional<double>) {
      return Settings{
          {"model", Json(options.model).dump(-1, ' ', false, Json::error_handler_t::replace)},
          {"disable_clip", options.disables_clip ? "true" : "false"},
          {"enable_transform", options.enables_transform ? "true" : "false"}};
    };
    return measure;
  };
  return metric;
}

std::vector<Metric> clip_feature_metrics() {
  const std::vector<std::string> scales = {"scale0", "scale1", "scale2", "scale3"};
  ClipFeature vif{.kind = FeatureKind::vif,
      .description = "libvmaf's visual information fidelity of luma; 1 if equal",
      .parts = {""},
      .columns = {{4}, {0}, {1}, {2}, {3}}};
  ClipFeature adm{.kind = FeatureKind::adm,
      .description = "libvmaf's detail loss metric (adm2) of luma; 1 if equal",
      .parts = {"", "aim", "adm3"},
      .columns = {{0}, {1}, {2}, {3}, {4}, {5}, {6}}};
  const ClipFeature motion{.kind = FeatureKind::motion,
      .description = "libvmaf's motion (motion2) of the reference's luma",
      .parts = {"", "sad", "motion3"},
      .columns = {{0, true}, {0}, {1, true}}};
  const ClipFeature cambi{.kind = FeatureKind::cambi,
      .description = "libvmaf's banding of the distorted luma; 0 if there is none",
      .parts = {""},
      .columns = {{0}}};
  for (ClipFeature* feature : {&vif, &adm}) {
    feature->parts.insert(feature->parts.end(), scales.begin(), scales.end());
  }
  std::vector<Metric> metrics;
  for (const ClipFeature* feature :
      std::array{&std::as_const(vif), &std::as_const(adm), &motion, &cambi}) {
    metrics.push_back(clip_feature_metric(*feature));
  }
  return metrics;
}

}  // namespace similis::cli
