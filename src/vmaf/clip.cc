// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/clip.h"

#include <algorithm>
#include <cstring>

#include "src/core/require.h"
#include "src/vmaf/adm/adm.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/vif/vif.h"

namespace similis::vmaf_internal {
namespace {

// The index of a value, which is added if it is not there.
template <class T> std::size_t index_in(std::vector<T>& values, const T& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
  values.push_back(value);
  return values.size() - 1;
}

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

}  // namespace

std::vector<FeatureRequest> requests_of(
    std::span<const Model> models, std::span<const FeatureRequest> more) {
  std::vector<FeatureRequest> requests;
  for (const Model& model : models) {
    for (const Regression& regression : model.regressions) {
      for (const ModelInput& input : regression.inputs) add_request(requests, input.feature);
    }
  }
  for (const FeatureRequest& request : more) add_request(requests, request);
  return requests;
}

Clip::Clip(std::vector<FeatureRequest> requests, std::vector<Model> models, std::int64_t width,
    std::int64_t height)
    : requests_(std::move(requests)), models_(std::move(models)), width_(width), height_(height) {
  plan_models();
  vif_index_.resize(requests_.size());
  adm_index_.resize(requests_.size());
  motions_.resize(requests_.size());
  const double pixels = static_cast<double>(width) * static_cast<double>(height);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const FeatureRequest& request = requests_[i];
    request.require_size(width, height);
    if (request.kind() == FeatureKind::vif) {
      vif_index_[i] = index_in(vif_limits_, request.value("vif_enhn_gain_limit"));
      skips_vif_scale0_ &= request.is_set("vif_skip_scale0");
    } else if (request.kind() == FeatureKind::adm) {
      adm_index_[i] = index_in(adm_settings_, request.adm_setting());
      skips_adm_scale0_ &= request.is_set("adm_skip_scale0");
    } else {
      motions_[i].emplace(motion_options(request), pixels);
      if (motions_[i]->looks_back()) {
        kept_frames_ = std::max(kept_frames_, static_cast<std::size_t>(motions_[i]->lag()));
      }
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
        add_request(requests_, input.feature);
        const auto at = std::find_if(requests_.begin(), requests_.end(),
            [&](const FeatureRequest& request) { return request.has_columns_of(input.feature); });
        places.push_back(
            {static_cast<std::size_t>(at - requests_.begin()), input.column, input.is_late});
      }
    }
  }
}

void Clip::push(const PlanePair& planes, bool is_shown, const Execution& exec) {
  const int depth = planes.reference.bit_depth;
  require(depth == 8 || depth == 10 || depth == 12 || depth == 16,
      "{}: bit_depth is {}; it must be 8, 10, 12 or 16", requests_.front().name(), depth);
  measure_motion(planes.reference, exec);
  if (is_shown) {
    ClipFrame frame{.index = next_index_};
    frame.features.resize(requests_.size());
    measure(planes, frame, exec);
    waiting_.push_back(std::move(frame));
  }
  ++next_index_;
}

void Clip::measure_motion(const Plane& reference, const Execution& exec) {
  std::array<std::optional<std::int64_t>, 2> sads;
  for (auto& motion : motions_) {
    if (!motion) continue;
    const auto lag = static_cast<std::size_t>(motion->lag());
    std::int64_t sad = 0;
    if (motion->looks_back() && earlier_.size() >= lag) {
      auto& known = sads[lag - 1];
      if (!known) known = motion_sad_cpu(earlier_[lag - 1].plane, reference, exec);
      sad = *known;
    }
    motion->push(sad);
  }
  if (kept_frames_ == 0) return;
  Kept kept;
  if (earlier_.size() == kept_frames_) {
    kept = std::move(earlier_.back());  // its memory
    earlier_.pop_back();
  }
  const std::size_t row_bytes =
      static_cast<std::size_t>(reference.width) * (reference.is_words ? 2 : 1);
  kept.samples.resize(row_bytes * static_cast<std::size_t>(reference.height));
  for (std::int64_t y = 0; y < reference.height; ++y) {
    const void* row = reference.is_words ? static_cast<const void*>(reference.row<std::uint16_t>(y))
                                         : reference.row<std::uint8_t>(y);
    std::memcpy(kept.samples.data() + static_cast<std::size_t>(y) * row_bytes, row, row_bytes);
  }
  kept.plane = reference;
  kept.plane.samples = kept.samples.data();
  kept.plane.row_stride = reference.width;
  earlier_.push_front(std::move(kept));
}

void Clip::measure(const PlanePair& planes, ClipFrame& frame, const Execution& exec) {
  VifSums vif;
  AdmSums adm;
  if (!vif_limits_.empty()) {
    vif = vif_cpu(planes, vif_limits_, skips_vif_scale0_, vif_workspace_, exec);
  }
  if (!adm_settings_.empty()) {
    adm = adm_cpu(planes, adm_settings_, skips_adm_scale0_, adm_workspace_, exec);
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const FeatureRequest& request = requests_[i];
    if (request.kind() == FeatureKind::vif) {
      const bool skips = request.is_set("vif_skip_scale0");
      frame.features[i] =
          vif_numbers(vif_scores(vif, vif_index_[i], skips), request.is_set("debug"), skips);
    } else if (request.kind() == FeatureKind::adm) {
      const AdmScores scores = adm_scores(
          adm, adm_index_[i], adm_settings_[adm_index_[i]], request.adm_weights(), width_, height_);
      frame.features[i] = adm_numbers(scores, request.is_set("debug"));
    } else {
      const double score = motions_[i]->sad_score(frame.index);
      frame.features[i].assign(request.is_set("debug") ? 2 : 1, score);
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
