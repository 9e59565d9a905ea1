// SPDX-License-Identifier: Apache-2.0
// VMAF's models: support vector regression on a frame's features, read from libvmaf's JSON files.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/vmaf/feature_request.h"

namespace similis::vmaf_internal {

/// A column that a model reads, by the feature that has it.
struct ModelInput {
  FeatureRequest feature;
  std::size_t column = 0;
  bool is_late = false;  ///< of late_columns()
};

/// y = p0 + p1 x + p2 x², then the knots, then no more or no less than x.
struct ScoreTransform {
  bool is_enabled = false, is_at_most_input = false, is_at_least_input = false;
  std::array<std::optional<double>, 3> polynomial;
  std::vector<std::pair<double, double>> knots;
  double operator()(double score) const;
};

struct SupportVector {
  double coefficient;
  std::vector<double> place;  ///< one number an input
};

/// One regression.
struct Regression {
  std::vector<ModelInput> inputs;
  double gamma = 0, rho = 0;
  std::vector<SupportVector> vectors;
  bool is_rescaled = false;
  std::vector<double> slopes, intercepts;  ///< of the score, then of the inputs
  ScoreTransform transform;
  std::optional<std::pair<double, double>> clip;

  /// The score of the inputs' values, neither transformed nor clipped.
  double predict(std::span<const double> values) const;
  double transformed(double score) const;  ///< and clipped
};

/// A model as it is asked for: "version=vmaf_v0.6.1:name=vmaf:enable_transform".
struct ModelRequest {
  std::string version, path;  ///< one of them
  std::string name = "vmaf";
  bool disables_clip = false, enables_transform = false;
  struct Setting {
    std::string feature, option, value;
  };
  std::vector<Setting> settings;
};
/// Throws InvalidArgument, in one line, for text that is no request or an unknown version.
ModelRequest parse_model_request(std::string_view text);

/// A regression, or a set of them: the first gives the score, the others how sure it is.
struct Model {
  std::string name, source;  ///< source: its version or path
  std::vector<Regression> regressions;

  bool is_set() const { return regressions.size() > 1; }
  /// The columns of a set's members and of its statistics.
  std::vector<std::string> member_columns() const;
};
/// Throws InvalidArgument if the file is no model or asks for features that are not here.
Model load_model(const ModelRequest& request);
/// The model that this JSON holds; `source` is what errors call it.
Model parse_model(std::string_view json, const ModelRequest& request, const std::string& source);

/// A model's score and, of a set, its members' and statistics, from the scores of its regressions
/// as they were predicted.
double model_score(const Model& model, std::span<const double> predicted);
std::vector<double> member_scores(const Model& model, std::span<const double> predicted);

/// A model that this build carries.
struct BuiltInModel {
  const char* version;
  std::string_view json;
};
std::span<const BuiltInModel> built_in_models();

}  // namespace similis::vmaf_internal
