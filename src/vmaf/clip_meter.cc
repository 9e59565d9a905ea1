// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/clip_meter.h"

#include <algorithm>
#include <array>
#include <atomic>
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

constexpr std::int64_t kRowsOfCopy = 128;

std::size_t workspace_bytes(const ClipPlan& plan, const Plane& reference, std::size_t distorted) {
  const std::int64_t width = reference.width, height = reference.height;
  return std::max(plan.vif_limits.empty() ? 0 : vif_workspace_bytes(width, height, distorted),
      plan.adm_settings.empty() ? 0 : adm_workspace_bytes(width, height, distorted));
}

std::size_t row_bytes(const Plane& plane) {
  return static_cast<std::size_t>(plane.width) * (plane.is_words ? 2 : 1);
}

void copy_rows(const Plane& plane, std::int64_t first, std::int64_t last, std::byte* copy) {
  for (std::int64_t y = first; y < last; ++y) {
    const void* row = plane.is_words ? static_cast<const void*>(plane.row<std::uint16_t>(y))
                                     : plane.row<std::uint8_t>(y);
    std::memcpy(copy + static_cast<std::size_t>(y) * row_bytes(plane), row, row_bytes(plane));
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
  FrameTasks tasks;
  std::array<std::atomic<std::int64_t>, 2> motion{};
  for (std::size_t lag = 0; lag < motion.size(); ++lag) {
    if (!plan_.lags[lag] || earlier_.size() <= lag) continue;
    add_motion_tasks(earlier_[lag].plane, reference, tasks, motion[lag]);
  }
  const bool is_kept = plan_.kept_frames() > 0;
  const std::size_t frame_bytes =
      is_kept ? row_bytes(reference) * static_cast<std::size_t>(reference.height) : 0;
  const std::size_t bytes = std::max(
      frame_bytes, distorted.empty() ? 0 : workspace_bytes(plan_, reference, distorted.size()));
  const bool is_full = is_kept && earlier_.size() == plan_.kept_frames();
  Workspace fresh;
  Workspace& workspace = !is_kept ? spare_ : is_full ? earlier_.back().samples : fresh;
  // More memory than there was loses the frame that motion reads.
  if (workspace.size() < bytes) tasks.run(exec);
  std::byte* const memory = workspace.at_least(bytes);

  std::vector<VifSums> vif;
  std::vector<AdmSums> adm;
  if (!distorted.empty() && !plan_.vif_limits.empty()) {
    add_vif_tasks(
        reference, distorted, plan_.vif_limits, plan_.skips_vif_scale0, memory, tasks, vif);
  }
  if (!distorted.empty() && !plan_.adm_settings.empty()) {
    add_adm_tasks(
        reference, distorted, plan_.adm_settings, plan_.skips_adm_scale0, memory, tasks, adm);
  }
  if (is_kept) {
    tasks.add((reference.height + kRowsOfCopy - 1) / kRowsOfCopy, [&](std::int64_t task) {
      const std::int64_t first = task * kRowsOfCopy;
      copy_rows(reference, first, std::min(first + kRowsOfCopy, reference.height), memory);
    });
  }
  tasks.run(exec);

  FrameSums sums;
  std::copy(motion.begin(), motion.end(), sums.motion.begin());
  sums.pairs.resize(distorted.size());
  for (std::size_t i = 0; i < vif.size(); ++i) sums.pairs[i].vif = std::move(vif[i]);
  for (std::size_t i = 0; i < adm.size(); ++i) sums.pairs[i].adm = std::move(adm[i]);
  if (!distorted.empty()) cambi_.measure(reference, distorted, exec, sums);
  if (!is_kept) return sums;
  Kept latest{std::move(workspace), reference};
  latest.plane.samples = memory;
  latest.plane.row_stride = reference.width;
  if (is_full) earlier_.pop_back();
  earlier_.push_front(std::move(latest));
  return sums;
}

}  // namespace similis::vmaf_internal
