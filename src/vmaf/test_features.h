// SPDX-License-Identifier: Apache-2.0
// The tasks of one feature by themselves, for this room's tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "src/vmaf/adm/adm.h"
#include "src/vmaf/frame_tasks.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/vif/vif.h"
#include "src/vmaf/workspace.h"

namespace similis::vmaf_internal {

inline std::vector<VifSums> vif_by_tasks(const Plane& reference, std::span<const Plane> distorted,
    std::span<const double> gain_limits, bool skips_scale0, Workspace& workspace,
    const Execution& exec) {
  FrameTasks tasks;
  std::vector<VifSums> sums;
  add_vif_tasks(reference, distorted, gain_limits, skips_scale0,
      workspace.at_least(vif_workspace_bytes(reference.width, reference.height, distorted.size())),
      tasks, sums);
  tasks.run(exec);
  return sums;
}

inline std::vector<AdmSums> adm_by_tasks(const Plane& reference, std::span<const Plane> distorted,
    std::span<const AdmSetting> settings, bool skips_scale0, Workspace& workspace,
    const Execution& exec) {
  FrameTasks tasks;
  std::vector<AdmSums> sums;
  add_adm_tasks(reference, distorted, settings, skips_scale0,
      workspace.at_least(adm_workspace_bytes(reference.width, reference.height, distorted.size())),
      tasks, sums);
  tasks.run(exec);
  return sums;
}

inline std::int64_t motion_sad_by_tasks(
    const Plane& earlier, const Plane& later, const Execution& exec) {
  FrameTasks tasks;
  std::atomic<std::int64_t> sum = 0;
  add_motion_tasks(earlier, later, tasks, sum);
  tasks.run(exec);
  return sum;
}

}  // namespace similis::vmaf_internal
