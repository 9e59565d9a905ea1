// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/clip.h"

#include <algorithm>

#include "src/core/require.h"

namespace similis::vmaf_internal {
namespace {

MotionOptions motion_options(const FeatureRequest& request) {
  return {.forces_zero = request.is_set("motion_force_zero"),
      .has_five_frame_window = request.is_set("motion_five_frame_window"),
      .has_moving_average = request.is_set("motion_moving_average"),
      .blend_factor = request.value("motion_blend_factor"),
      .blend_offset = request.value("motion_blend_offset"),
      .fps_weight = request.value("motion_fps_weight"),
      .largest = request.value("motion_max_val")};
}

std::vector<double> adm_numbers(const AdmScores& scores, bool has_parts) {
  std::vector<double> numbers = {scores.adm2, scores.aim, scores.adm3};
  for (int scale = 0; scale < kAdmScales; ++scale) numbers.push_back(scores.score(scale));
  if (!has_parts) return numbers;
  numbers.insert(numbers.end(), {scores.adm2, scores.num_sum, scores.den_sum});
  for (std::size_t scale = 0; scale < scores.num.size(); ++scale) {
    numbers.push_back(static_cast<double>(scores.num[scale]));
    numbers.push_back(static_cast<double>(scores.den[scale]));
  }
  return numbers;
}

std::vector<double> vif_numbers(const VifScores& scores, bool has_parts, bool skips_scale0) {
  std::vector<double> numbers;
  for (int scale = 0; scale < kVifScales; ++scale) numbers.push_back(scores.score(scale));
  if (!has_parts) return numbers;
  double num = 0, den = 0;
  for (std::size_t scale = skips_scale0 ? 1 : 0; scale < scores.num.size(); ++scale) {
    num += static_cast<double>(scores.num[scale]);
    den += static_cast<double>(scores.den[scale]);
  }
  numbers.insert(numbers.end(), {num / den, num, den});
  for (std::size_t scale = 0; scale < scores.num.size(); ++scale) {
    numbers.push_back(static_cast<double>(scores.num[scale]));
    numbers.push_back(static_cast<double>(scores.den[scale]));
  }
  return numbers;
}

std::vector<FeatureRequest> with_inputs(
    std::vector<FeatureRequest> requests, std::span<const Model> models) {
  for (const Model& model : models) {
    for (const Regression& regression : model.regressions) {
      for (const ModelInput& input : regression.inputs) add_request(requests, input.feature);
    }
  }
  return requests;
}

}  // namespace

std::vector<FeatureRequest> requests_of(
    std::span<const Model> models, std::span<const FeatureRequest> more) {
  std::vector<FeatureRequest> requests = with_inputs({}, models);
  for (const FeatureRequest& request : more) add_request(requests, request);
  return requests;
}

Clip::Clip(std::vector<FeatureRequest> requests, std::vector<Model> models, std::int64_t width,
    std::int64_t height)
    : requests_(with_inputs(std::move(requests), models)),
      models_(std::move(models)),
      width_(width),
      height_(height),
      motions_(requests_.size()),
      plan_(requests_),
      meter_(plan_) {
  plan_models();
  const double pixels = static_cast<double>(width) * static_cast<double>(height);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    requests_[i].require_size(width, height);
    if (requests_[i].kind() == FeatureKind::motion) {
      motions_[i].emplace(motion_options(requests_[i]), pixels);
    }
  }
}

std::vector<std::string> Clip::columns() const {
  std::vector<std::string> columns;
  const auto add = [&](const std::vector<std::string>& names) {
    columns.insert(columns.end(), names.begin(), names.end());
  };
  for (const FeatureRequest& request : requests_) add(request.columns());
  for (const FeatureRequest& request : requests_) add(request.late_columns());
  for (const Model& model : models_) columns.push_back(model.name);
  for (const Model& model : models_) add(model.member_columns());
  return columns;
}

std::vector<double> values_of(const ClipFrame& frame) {
  std::vector<double> values;
  const auto add = [&](const std::vector<double>& numbers) {
    values.insert(values.end(), numbers.begin(), numbers.end());
  };
  for (const auto& numbers : frame.features) add(numbers);
  for (const auto& numbers : frame.late) add(numbers);
  add(frame.scores);
  for (const auto& numbers : frame.members) add(numbers);
  return values;
}

void Clip::plan_models() {
  for (const Model& model : models_) {
    std::vector<Place>& places = places_.emplace_back();
    for (const Regression& regression : model.regressions) {
      for (const ModelInput& input : regression.inputs) {
        const auto at = std::find_if(requests_.begin(), requests_.end(),
            [&](const FeatureRequest& request) { return request.has_columns_of(input.feature); });
        places.push_back(
            {static_cast<std::size_t>(at - requests_.begin()), input.column, input.is_late});
      }
    }
  }
}

void require_depth(std::span<const FeatureRequest> requests, int bit_depth) {
  require(bit_depth == 8 || bit_depth == 10 || bit_depth == 12 || bit_depth == 16,
      "{}: bit_depth is {}; it must be 8, 10, 12 or 16", requests.front().name(), bit_depth);
}

void Clip::push(const PlanePair& planes, bool is_shown, const Execution& exec) {
  require_depth(requests_, planes.reference.bit_depth);
  const std::span distorted(&planes.distorted, is_shown ? 1u : 0u);
  const FrameSums sums = meter_.measure(planes.reference, distorted, exec);
  push(sums, is_shown ? sums.pairs.data() : nullptr);
}

void Clip::push(const FrameSums& sums, const PairSums* pair) {
  for (auto& series : motions_) {
    if (!series) continue;
    series->push(
        series->looks_back() ? sums.motion[static_cast<std::size_t>(series->lag() - 1)] : 0);
  }
  if (pair != nullptr) {
    ClipFrame frame{.index = next_index_};
    frame.features.resize(requests_.size());
    score(sums, *pair, frame);
    waiting_.push_back(std::move(frame));
  }
  ++next_index_;
}

void Clip::score(const FrameSums& sums, const PairSums& pair, ClipFrame& frame) const {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const FeatureRequest& request = requests_[i];
    const bool has_parts = request.has_option("debug") && request.is_set("debug");
    if (request.kind() == FeatureKind::vif) {
      const bool skips = request.is_set("vif_skip_scale0");
      frame.features[i] =
          vif_numbers(vif_scores(pair.vif, plan_.vif_index[i], skips), has_parts, skips);
    } else if (request.kind() == FeatureKind::adm) {
      const std::size_t at = plan_.adm_index[i];
      frame.features[i] = adm_numbers(
          adm_scores(pair.adm, at, plan_.adm_settings[at], request.adm_weights(), width_, height_),
          has_parts);
    } else if (request.kind() == FeatureKind::cambi) {
      const std::size_t at = plan_.cambi_index[i];
      const double most = request.value("cambi_max_val"), own = pair.cambi[at];
      frame.features[i] = {std::min(own, most)};
      if (!request.is_set("full_ref")) continue;
      frame.features[i].push_back(std::min(sums.cambi[at], most));
      frame.features[i].push_back(std::min(std::max(0.0, own - sums.cambi[at]), most));
    } else {
      frame.features[i].assign(has_parts ? 2 : 1, motions_[i]->sad_score(frame.index));
    }
  }
}

void Clip::finish() {
  for (auto& motion : motions_) {
    if (motion) motion->finish();
  }
}

std::optional<ClipFrame> Clip::pop() {
  if (waiting_.empty()) return std::nullopt;
  const std::int64_t index = waiting_.front().index;
  for (const auto& motion : motions_) {
    if (motion && !motion->is_final(index)) return std::nullopt;
  }
  ClipFrame frame = std::move(waiting_.front());
  waiting_.pop_front();
  frame.late.resize(requests_.size());
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (motions_[i]) frame.late[i] = {motions_[i]->motion2(index), motions_[i]->motion3(index)};
  }
  predict(frame);
  return frame;
}

void Clip::predict(ClipFrame& frame) const {
  for (std::size_t m = 0; m < models_.size(); ++m) {
    const Model& model = models_[m];
    std::vector<double> predicted;
    auto place = places_[m].begin();
    for (const Regression& regression : model.regressions) {
      std::vector<double> values;
      for (std::size_t i = 0; i < regression.inputs.size(); ++i, ++place) {
        const auto& numbers = place->is_late ? frame.late : frame.features;
        values.push_back(numbers[place->request][place->column]);
      }
      predicted.push_back(regression.predict(values));
    }
    frame.scores.push_back(model_score(model, predicted));
    frame.members.push_back(member_scores(model, predicted));
  }
}

}  // namespace similis::vmaf_internal
