// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/clip_meter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/core/backend.h"
#include "src/core/require.h"
#include "src/vmaf/motion/motion.h"

namespace similis::vmaf_internal {
namespace {

// The index of a value, which is added if it is not there.
template <class T> std::size_t index_in(std::vector<T>& values, const T& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
  values.push_back(value);
  return values.size() - 1;
}

// Adds what compares the reference with each distorted plane. Features share the workspace.
void add_pairs(const ClipPlan& plan, const Plane& reference, std::span<const Plane> distorted,
    Workspace& workspace, const Execution& exec, FrameSums& sums) {
  const bool has_vif = !plan.vif_limits.empty(), has_adm = !plan.adm_settings.empty();
  const std::int64_t width = reference.width, height = reference.height;
  workspace.at_least(std::max(has_vif ? vif_workspace_bytes(width, height, distorted.size()) : 0,
      has_adm ? adm_workspace_bytes(width, height, distorted.size()) : 0));
  if (has_vif) {
    std::vector<VifSums> vif =
        vif_cpu(reference, distorted, plan.vif_limits, plan.skips_vif_scale0, workspace, exec);
    for (std::size_t i = 0; i < vif.size(); ++i) sums.pairs[i].vif = std::move(vif[i]);
  }
  if (has_adm) {
    std::vector<AdmSums> adm =
        adm_cpu(reference, distorted, plan.adm_settings, plan.skips_adm_scale0, workspace, exec);
    for (std::size_t i = 0; i < adm.size(); ++i) sums.pairs[i].adm = std::move(adm[i]);
  }
}

}  // namespace

ClipPlan::ClipPlan(std::span<const FeatureRequest> requests)
    : vif_index(requests.size()), adm_index(requests.size()), cambi_index(requests.size()) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const FeatureRequest& request = requests[i];
    if (request.kind() == FeatureKind::vif) {
      vif_index[i] = index_in(vif_limits, request.value("vif_enhn_gain_limit"));
      skips_vif_scale0 &= request.is_set("vif_skip_scale0");
    } else if (request.kind() == FeatureKind::adm) {
      adm_index[i] = index_in(adm_settings, request.adm_setting());
      skips_adm_scale0 &= request.is_set("adm_skip_scale0");
    } else if (request.kind() == FeatureKind::cambi) {
      cambi_index[i] = index_in(cambi_settings, request.cambi_setting());
      has_cambi_of_reference |= request.is_set("full_ref");
    } else if (!request.is_set("motion_force_zero")) {
      lags[request.is_set("motion_five_frame_window") ? 1 : 0] = true;
    }
  }
}

CambiMeters::CambiMeters(const ClipPlan& plan)
    : meters_(plan.cambi_settings.begin(), plan.cambi_settings.end()),
      has_reference_(plan.has_cambi_of_reference) {}

void CambiMeters::measure(const Plane& reference, std::span<const Plane> distorted,
    const Execution& exec, FrameSums& sums) {
  for (CambiMeter& meter : meters_) {
    for (std::size_t i = 0; i < distorted.size(); ++i) {
      sums.pairs[i].cambi.push_back(meter.measure(distorted[i], exec));
    }
    if (has_reference_) sums.cambi.push_back(meter.measure(reference, exec));
  }
}

void require_sample_depth(const char* plane, std::uint32_t largest, int bit_depth) {
  require(largest >> bit_depth == 0,
      "vmaf: {} holds a sample of {}; with bit_depth {} none may be above {}", plane, largest,
      bit_depth, (1 << bit_depth) - 1);
}

FrameSums ClipMeter::measure(
    const Plane& reference, std::span<const Plane> distorted, const Execution& exec) {
  require_backend({}, "vmaf", true);
  FrameSums sums;
  for (std::size_t lag = 0; lag < sums.motion.size(); ++lag) {
    if (!plan_.lags[lag] || earlier_.size() <= lag) continue;
    sums.motion[lag] = motion_sad_cpu(earlier_[lag].plane, reference, exec);
  }
  Workspace workspace = take_workspace();
  sums.pairs.resize(distorted.size());
  if (!distorted.empty()) {
    add_pairs(plan_, reference, distorted, workspace, exec, sums);
    cambi_.measure(reference, distorted, exec, sums);
  }
  keep(reference, std::move(workspace));
  return sums;
}

Workspace ClipMeter::take_workspace() {
  const std::size_t kept = plan_.kept_frames();
  if (kept == 0) return std::move(spare_);
  if (earlier_.size() < kept) return {};
  Workspace workspace = std::move(earlier_.back().samples);
  earlier_.pop_back();
  return workspace;
}

void ClipMeter::keep(const Plane& reference, Workspace memory) {
  if (plan_.kept_frames() == 0) {
    spare_ = std::move(memory);
    return;
  }
  const std::size_t row_bytes =
      static_cast<std::size_t>(reference.width) * (reference.is_words ? 2 : 1);
  std::byte* to = memory.at_least(row_bytes * static_cast<std::size_t>(reference.height));
  Plane plane = reference;
  plane.samples = to;
  plane.row_stride = reference.width;
  for (std::int64_t y = 0; y < reference.height; ++y, to += row_bytes) {
    const void* row = reference.is_words ? static_cast<const void*>(reference.row<std::uint16_t>(y))
                                         : reference.row<std::uint8_t>(y);
    std::memcpy(to, row, row_bytes);
  }
  earlier_.push_front({std::move(memory), plane});
}

}  // namespace similis::vmaf_internal
