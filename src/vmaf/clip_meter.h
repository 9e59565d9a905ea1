// SPDX-License-Identifier: Apache-2.0
// The sums of a clip's frames: of one reference, and of each video that is compared with it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "similis/execution.hpp"
#include "src/vmaf/adm/adm.h"
#include "src/vmaf/cambi/cambi.h"
#include "src/vmaf/feature_request.h"
#include "src/vmaf/plane.h"
#include "src/vmaf/vif/vif.h"
#include "src/vmaf/workspace.h"

namespace similis::vmaf_internal {

/// The parts of each frame that a list of requests needs.
struct ClipPlan {
  explicit ClipPlan(std::span<const FeatureRequest> requests);

  std::vector<double> vif_limits;
  std::vector<AdmSetting> adm_settings;
  bool skips_vif_scale0 = true, skips_adm_scale0 = true;
  std::vector<CambiSetting> cambi_settings;
  bool has_cambi_of_reference = false;
  std::vector<std::size_t> vif_index, adm_index, cambi_index;  ///< by request: among these
  std::array<bool, 2> lags{};                                  ///< motion looks one frame back; two
  std::size_t kept_frames() const { return lags[1] ? 2 : lags[0] ? 1 : 0; }
};

/// The sums of one distorted frame.
struct PairSums {
  VifSums vif;
  AdmSums adm;
  std::vector<double> cambi;  ///< by setting
};

/// The sums of one frame of all videos.
struct FrameSums {
  std::array<std::int64_t, 2> motion{};  ///< by lag; 0 where there is no earlier frame
  std::vector<double> cambi;             ///< of the reference, by setting, if it is asked for
  std::vector<PairSums> pairs;           ///< by distorted plane
};

/// The numbers of cambi, which has no kernels for a GPU.
class CambiMeters {
 public:
  explicit CambiMeters(const ClipPlan& plan);

  /// Adds the numbers of a frame.
  void measure(const Plane& reference, std::span<const Plane> distorted, const Execution& exec,
      FrameSums& sums);

 private:
  std::vector<CambiMeter> meters_;  // by setting
  bool has_reference_;
};

/// Throws InvalidArgument, in vmaf's name, if a plane's largest sample has more than bit_depth
/// bits.
void require_sample_depth(const char* plane, std::uint32_t largest, int bit_depth);

class ClipMeter {
 public:
  explicit ClipMeter(const ClipPlan& plan) : plan_(plan), cambi_(plan) {}

  /// Takes the next frame, whose planes may be reused at once. Without distorted planes it is
  /// measured for motion only.
  FrameSums measure(
      const Plane& reference, std::span<const Plane> distorted, const Execution& exec);

 private:
  // The last frames' reference planes, the latest first. Once the motion of a frame is known, the
  // oldest one's memory is the workspace of the other features, and then takes that frame.
  struct Kept {
    Workspace samples;
    Plane plane;
  };
  ClipPlan plan_;
  CambiMeters cambi_;
  std::deque<Kept> earlier_;
  Workspace spare_;  // used if no frame is kept
};

}  // namespace similis::vmaf_internal
