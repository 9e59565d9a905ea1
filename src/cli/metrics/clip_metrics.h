// SPDX-License-Identifier: Apache-2.0
// The metrics that look at several frames of a video: VMAF and the features of its models.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/cli/metrics/metric.h"
#include "src/vmaf/clip.h"

namespace similis::cli {

/// A measure of clips computes this: a model's score and, of a set, those of its members; or some
/// numbers of one feature.
struct ClipMeasure {
  struct Column {
    std::size_t index;
    bool is_late = false;  ///< of FeatureRequest::late_columns(), else of columns()
  };
  std::optional<vmaf_internal::Model> model;
  std::optional<vmaf_internal::FeatureRequest> feature;
  std::vector<Column> columns;  ///< of the feature, in the order of the measure's parts

  /// True if it looks at the frame before.
  bool looks_back() const;
  /// The numbers of a frame; place: of the model among the clip's models, or of the feature among
  /// its requests.
  std::vector<double> numbers(const vmaf_internal::ClipFrame& frame, std::size_t place) const;
};

Metric vmaf_metric();

/// vif, adm, motion and cambi.
std::vector<Metric> clip_feature_metrics();

}  // namespace similis::cli
