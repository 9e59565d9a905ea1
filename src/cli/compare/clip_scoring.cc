// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/clip_scoring.h"

#include <algorithm>
#include <utility>

#include "src/cli/metrics/clip_metrics.h"

namespace similis::cli {

using vmaf_internal::Clip;
using vmaf_internal::ClipFrame;
using vmaf_internal::FeatureRequest;
using vmaf_internal::FrameSums;
using vmaf_internal::Model;
using vmaf_internal::Plane;
using vmaf_internal::PlanePair;

PlanePair luma_of(const VideoPair& videos) {
  const auto plane = [&](const media::VideoFrame& frame) {
    const TensorView view = frame.plane(videos.format(), 0);
    return Plane{view.data(), view.strides[0], view.shape[1], view.shape[0],
        view.dtype == DType::u16, videos.format().pixels.bit_depth};
  };
  return {plane(videos.reference()), plane(videos.distorted())};
}

void ClipGroup::add(Clip& clip, const PlanePair& planes, bool is_shown) {
  require_depth(clip.requests(), planes.reference.bit_depth);
  reference_ = planes.reference;
  clips_.push_back(&clip);
  if (is_shown) distorted_.push_back(planes.distorted);
}

void ClipGroup::run(const Execution& exec) {
  if (clips_.empty()) return;
  const FrameSums sums = measure(exec);
  for (std::size_t i = 0; i < clips_.size(); ++i) {
    clips_[i]->push(sums, distorted_.empty() ? nullptr : &sums.pairs[i]);
  }
  clips_.clear();
  distorted_.clear();
}

FrameSums ClipGroup::measure(const Execution& exec) {
  const vmaf_internal::ClipPlan& plan = clips_.front()->plan();
  if (device_.kind == DeviceKind::cpu) {
    if (!meter_) meter_.emplace(plan);
    return meter_->measure(reference_, distorted_, exec);
  }
  if (!gpu_meter_) gpu_meter_ = make_gpu_meter(plan, device_);
  return gpu_meter_->measure(reference_, distorted_, exec);
}

ClipScorer::ClipScorer(const std::vector<Measure>& measures, const media::VideoFormat& format) {
  std::vector<Model> models;
  std::vector<FeatureRequest> requests;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    const ClipMeasure* clip = measures[i].clip.get();
    if (clip == nullptr) continue;
    measures_.push_back({i, clip, models.size()});
    if (clip->model) {
      models.push_back(*clip->model);
    } else {
      add_request(requests, *clip->feature);
    }
  }
  if (measures_.empty()) return;
  clip_.emplace(requests_of(models, requests), std::move(models), format.width, format.height);
  for (Scored& scored : measures_) {
    if (scored.clip->model) continue;
    const auto& all = clip_->requests();
    const auto found = std::find_if(all.begin(), all.end(), [&](const FeatureRequest& request) {
      return request.has_columns_of(*scored.clip->feature);
    });
    scored.place = static_cast<std::size_t>(found - all.begin());
  }
}

std::optional<FrameValues> ClipScorer::pop() {
  const std::optional<ClipFrame> frame = clip_->pop();
  if (!frame) return std::nullopt;
  FrameValues values;
  for (const Scored& scored : measures_) {
    ScoreKey key{.measure = scored.measure};
    for (const double value : scored.clip->numbers(*frame, scored.place)) {
      values.emplace_back(key, value);
      ++key.part;
    }
  }
  return values;
}

}  // namespace similis::cli
