// SPDX-License-Identifier: Apache-2.0
// libvmaf's model files: JSON around the text of libsvm.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/core/joined.h"
#include "src/core/number_text.h"
#include "src/core/require.h"
#include "src/vmaf/model/model.h"

namespace similis::vmaf_internal {
namespace {

using Json = nlohmann::json;

// Throws with the file's name.
class Source {
 public:
  explicit Source(std::string name) : name_(std::move(name)) {}
  [[noreturn]] void refuse_file(const std::string& why) const {
    throw InvalidArgument(fmt::format("{}: it is not a VMAF model: {}", name_, why));
  }
  void need(bool condition, const std::string& why) const {
    if (!condition) refuse_file(why);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\r"));
  text.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

double number(std::string_view text, const Source& source) {
  const auto value = parse_number<double>(text);
  source.need(value.has_value(), fmt::format("\"{}\" is not a number", text));
  return *value;
}

SupportVector support_vector(std::string_view line, std::size_t inputs, const Source& source) {
  SupportVector vector{number(next_word(line), source), std::vector<double>(inputs)};
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    const std::size_t colon = word.find(':');
    const auto index = parse_number<std::int64_t>(word.substr(0, colon));
    source.need(colon != std::string_view::npos && index && *index >= 1 &&
                    *index <= static_cast<std::int64_t>(inputs),
        fmt::format("\"{}\" is not the place of a support vector", word));
    vector.place[static_cast<std::size_t>(*index - 1)] = number(word.substr(colon + 1), source);
  }
  return vector;
}

void read_libsvm(std::string_view text, Regression& regression, const Source& source) {
  for (bool has_vectors = false; !has_vectors;) {
    source.need(!text.empty(), "it has no support vectors");
    std::string_view line = next_line(text);
    const std::string_view key = next_word(line), value = next_word(line);
    if (key == "SV") {
      has_vectors = true;
    } else if (key == "svm_type") {
      source.need(value == "nu_svr", fmt::format("svm_type is {}, not nu_svr", value));
    } else if (key == "kernel_type") {
      source.need(value == "rbf", fmt::format("kernel_type is {}, not rbf", value));
    } else if (key == "gamma") {
      regression.gamma = number(value, source);
    } else if (key == "rho") {
      regression.rho = number(value, source);
    }
  }
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    regression.vectors.push_back(support_vector(line, regression.inputs.size(), source));
  }
  source.need(!regression.vectors.empty(), "it has no support vectors");
}

// "VMAF_integer_feature_adm2_score" as a column of a feature.
ModelInput input_named(const std::string& name, const Source& source) {
  constexpr std::string_view kStart = "VMAF_integer_feature_", kEnd = "_score";
  const bool is_integer = name.starts_with(kStart) && name.ends_with(kEnd);
  if (is_integer) {
    const std::string column =
        "integer_" + name.substr(kStart.size(), name.size() - kStart.size() - kEnd.size());
    for (const FeatureKind kind : {FeatureKind::adm, FeatureKind::motion, FeatureKind::vif}) {
      const FeatureRequest feature(kind);
      for (const bool is_late : {false, true}) {
        const std::vector<std::string> columns =
            is_late ? feature.late_columns() : feature.columns();
        const auto at = std::find_if(columns.begin(), columns.end(),
            [&](const std::string& each) { return each == column || each == name; });
        if (at == columns.end()) continue;
        return {feature, static_cast<std::size_t>(at - columns.begin()), is_late};
      }
    }
  }
  throw InvalidArgument(fmt::format(
      "{}: its feature {} is not here; adm, motion and vif in integers are", source.name(), name));
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void set_options(const Json& options, FeatureRequest& feature) {
  for (const auto& [option, value] : options.items()) feature.set(option, text_of(value));
}

void read_inputs(
    const Json& model, const ModelRequest& request, Regression& regression, const Source& source) {
  const Json& names = model.at("feature_names");
  const Json options = model.value("feature_opts_dicts", Json::array());
  source.need(names.is_array() && !names.empty(), "feature_names is empty");
  source.need(options.empty() || options.size() == names.size(),
      "feature_opts_dicts and feature_names differ in length");
  for (std::size_t i = 0; i < names.size(); ++i) {
    ModelInput input = input_named(names[i].get<std::string>(), source);
    try {
      if (!options.empty()) set_options(options[i], input.feature);
      for (const ModelRequest::Setting& setting : request.settings) {
        if (setting.feature != input.feature.name()) continue;
        input.feature.set(setting.option, setting.value);
      }
      input.feature.require_valid();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", source.name(), error.what()));
    }
    regression.inputs.push_back(std::move(input));
  }
}

bool is_true(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && (*found == true || *found == "true");
}

ScoreTransform transform_of(const Json& model, const ModelRequest& request) {
  ScoreTransform transform;
  const auto found = model.find("score_transform");
  if (found == model.end() || !found->is_object()) return transform;
  transform.is_enabled = request.enables_transform || is_true(*found, "enabled");
  transform.is_at_most_input = is_true(*found, "out_lte_in");
  transform.is_at_least_input = is_true(*found, "out_gte_in");
  constexpr std::array<const char*, 3> kCoefficients = {"p0", "p1", "p2"};
  for (std::size_t i = 0; i < kCoefficients.size(); ++i) {
    const auto coefficient = found->find(kCoefficients[i]);
    if (coefficient != found->end() && coefficient->is_number()) {
      transform.polynomial[i] = coefficient->get<double>();
    }
  }
  if (const auto knots = found->find("knots"); knots != found->end() && knots->is_array()) {
    for (const Json& knot : *knots) {
      transform.knots.emplace_back(knot.at(0).get<double>(), knot.at(1).get<double>());
    }
  }
  return transform;
}

Regression regression_of(const Json& json, const ModelRequest& request, const Source& source) {
  const Json& model = json.at("model_dict");
  Regression regression;
  read_inputs(model, request, regression, source);
  read_libsvm(model.at("model").get_ref<const std::string&>(), regression, source);
  const std::string norm = model.value("norm_type", "none");
  source.need(norm == "linear_rescale" || norm == "none",
      fmt::format("norm_type is {}, not linear_rescale or none", norm));
  regression.is_rescaled = norm == "linear_rescale";
  if (regression.is_rescaled) {
    regression.slopes = model.at("slopes").get<std::vector<double>>();
    regression.intercepts = model.at("intercepts").get<std::vector<double>>();
    const std::size_t count = regression.inputs.size() + 1;
    source.need(regression.slopes.size() == count && regression.intercepts.size() == count,
        "slopes and intercepts must be one of the score and one of each feature");
  }
  if (const auto clip = model.find("score_clip");
      clip != model.end() && clip->is_array() && !request.disables_clip) {
    regression.clip = {clip->at(0).get<double>(), clip->at(1).get<double>()};
    source.need(regression.clip->first <= regression.clip->second, "score_clip is reversed");
  }
  regression.transform = transform_of(model, request);
  return regression;
}

std::vector<std::string> versions() {
  std::vector<std::string> names;
  for (const BuiltInModel& model : built_in_models()) names.emplace_back(model.version);
  return names;
}

void require_version(const std::string& version) {
  const std::vector<std::string> known = versions();
  if (std::find(known.begin(), known.end(), version) != known.end()) return;
  require(!known.empty(), "there is no model {}: this build carries none; give path=FILE", version);
  require(!version.starts_with("vmaf_float_"),
      "there is no model {}: features in floats are not here; those there are: {}", version,
      joined(known, ", "));
  require(!version.starts_with("vmaf_v1."),
      "there is no model {}: its feature speed_chroma is not here; those there are: {}", version,
      joined(known, ", "));
  require(false, "there is no model {}; those there are: {}", version, joined(known, ", "));
}

bool read_flag(std::string_view value, std::string_view name) {
  require(value.empty() || value == "true" || value == "false",
      "{} is \"{}\"; it must be true or false", name, value);
  return value != "false";
}

void read_part(std::string_view part, ModelRequest& request) {
  const std::size_t equals = std::min(part.find('='), part.size());
  const std::string_view key = part.substr(0, equals);
  const std::string_view value = part.substr(std::min(part.size(), equals + 1));
  if (key == "version") {
    request.version = value;
  } else if (key == "path") {
    request.path = value;
  } else if (key == "name") {
    request.name = value;
  } else if (key == "disable_clip") {
    request.disables_clip = read_flag(value, key);
  } else if (key == "enable_transform") {
    request.enables_transform = read_flag(value, key);
  } else {
    const std::size_t dot = key.find('.');
    require(dot != std::string_view::npos,
        "there is no part \"{}\"; those there are: version, path, name, disable_clip, "
        "enable_transform, FEATURE.OPTION",
        key);
    const std::string_view name = key.substr(0, dot), option = key.substr(dot + 1);
    auto feature = FeatureRequest::named(name);
    require(feature.has_value(),
        "there is no feature \"{}\"; those there are: adm, cambi, motion, vif", name);
    feature->set(option, value);
    request.settings.push_back({std::string(name), std::string(option), std::string(value)});
  }
}

}  // namespace

ModelRequest parse_model_request(std::string_view text) {
  ModelRequest request;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (!part.empty()) read_part(part, request);
  }
  require(request.version.empty() != request.path.empty(),
      "a model is given as version=NAME or as path=FILE");
  require(!request.name.empty(), "name is empty; it must be the name of the score");
  if (request.path.empty()) require_version(request.version);
  return request;
}

Model parse_model(std::string_view json, const ModelRequest& request, const std::string& name) {
  const Source source(name);
  Model model{.name = request.name, .source = name};
  try {
    const Json file = Json::parse(json);
    if (file.contains("model_dict")) {
      model.regressions.push_back(regression_of(file, request, source));
      return model;
    }
    for (int i = 0; file.contains(std::to_string(i)); ++i) {
      model.regressions.push_back(regression_of(file[std::to_string(i)], request, source));
    }
  } catch (const Json::exception& error) {
    source.refuse_file(error.what());
  }
  source.need(!model.regressions.empty(), "it has no model_dict");
  source.need(model.regressions.size() != 2, "a set needs two members or more");
  return model;
}

Model load_model(const ModelRequest& request) {
  if (request.path.empty()) {
    for (const BuiltInModel& model : built_in_models()) {
      if (model.version == request.version) return parse_model(model.json, request, model.version);
    }
    require_version(request.version);
  }
  std::ifstream stream(request.path, std::ios::binary);
  require(stream.good(), "cannot read {}: there is no such file", request.path);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  return parse_model(text, request, request.path);
}

}  // namespace similis::vmaf_internal
