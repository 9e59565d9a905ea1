// SPDX-License-Identifier: Apache-2.0
// The features and models of a clip, frame by frame: each feature once for all who ask for it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "src/vmaf/clip_meter.h"
#include "src/vmaf/feature_request.h"
#include "src/vmaf/model/model.h"
#include "src/vmaf/motion/series.h"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

/// Throws InvalidArgument, in the first request's name, for a bit depth that is not 8, 10, 12, 16.
void require_depth(std::span<const FeatureRequest> requests, int bit_depth);

/// The numbers of one frame.
struct ClipFrame {
  std::int64_t index = 0;
  std::vector<std::vector<double>> features;  ///< by request, as FeatureRequest::columns()
  std::vector<std::vector<double>> late;      ///< by request, as FeatureRequest::late_columns()
  std::vector<double> scores;                 ///< by model
  std::vector<std::vector<double>> members;   ///< by model, as Model::member_columns()
};

class Clip {
 public:
  /// Adds what the models read to `requests`, which stay in front. Throws InvalidArgument if the
  /// frames are too small.
  Clip(std::vector<FeatureRequest> requests, std::vector<Model> models, std::int64_t width,
      std::int64_t height);

  const std::vector<FeatureRequest>& requests() const { return requests_; }
  const std::vector<Model>& models() const { return models_; }
  const ClipPlan& plan() const { return plan_; }

  /// Names of features, then of what waits for the next frame, models, and members of sets: those
  /// of values_of().
  std::vector<std::string> columns() const;

  /// Takes the next frame. One that is not shown is measured for motion only.
  void push(const PlanePair& planes, bool is_shown, const Execution& exec);
  /// Takes the sums of the next frame, which a meter for plan() has measured; pair is null if it is
  /// not shown, else one of sums.pairs.
  void push(const FrameSums& sums, const PairSums* pair);
  /// No frame comes any more.
  void finish();
  /// The next shown frame whose numbers are all known; empty if there is none yet.
  std::optional<ClipFrame> pop();

 private:
  struct Place {
    std::size_t request, column;
    bool is_late;
  };
  void plan_models();
  void score(const FrameSums& sums, const PairSums& pair, ClipFrame& frame) const;
  void predict(ClipFrame& frame) const;

  std::vector<FeatureRequest> requests_;
  std::vector<Model> models_;
  std::vector<std::vector<Place>> places_;  // by model: its inputs
  std::int64_t width_, height_;
  std::vector<std::optional<MotionSeries>> motions_;  // by request
  ClipPlan plan_;
  ClipMeter meter_;
  std::int64_t next_index_ = 0;
  std::deque<ClipFrame> waiting_;
};

/// All numbers of a frame in the order of Clip::columns().
std::vector<double> values_of(const ClipFrame& frame);

/// The models' features in order of mention, and then `more`, each once.
std::vector<FeatureRequest> requests_of(
    std::span<const Model> models, std::span<const FeatureRequest> more);

}  // namespace similis::vmaf_internal
