// SPDX-License-Identifier: Apache-2.0
// ADM, the detail loss metric, of a frame: the integer sums of its wavelet bands at four scales,
// and the scores that they make.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/vmaf/frame_tasks.h"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

constexpr int kAdmScales = 4;
constexpr int kAdmBands = 3;  // h, v, d
constexpr std::int64_t kAdmSmallestSide = 33;
/// The least product of viewing distance and display height, which is also the default one.
constexpr double kAdmLeastDistance = 3.0 * 1080;

/// The settings that the sums depend on.
struct AdmSetting {
  double gain_limit = 100;
  double view_distance = 3;  ///< in heights of the display
  int display_height = 1080;
  int csf_mode = 0;  ///< 0: Watson, 2: the table of steps
  friend bool operator==(const AdmSetting&, const AdmSetting&) = default;
};

/// The settings by which scores are made of the sums.
struct AdmWeights {
  double dlm = 0.5, noise = 0.03125, least = 0;
  bool skips_scale0 = false, skips_aim = false;
  friend bool operator==(const AdmWeights&, const AdmWeights&) = default;
};

/// A sum for each band.
using AdmBandSums = std::array<std::int64_t, kAdmBands>;

/// Sums over the counted region of one scale.
struct AdmScaleSums {
  struct Masked {
    AdmBandSums detail{};    ///< the part of the reference's detail that is left
    AdmBandSums additive{};  ///< the detail that the distorted image adds
    friend bool operator==(const Masked&, const Masked&) = default;
  };
  AdmBandSums reference{};
  std::vector<Masked> masked;  ///< by setting
  friend bool operator==(const AdmScaleSums&, const AdmScaleSums&) = default;
};
using AdmSums = std::array<AdmScaleSums, kAdmScales>;

/// The sums for each setting, by loops as the definition has them.
AdmSums reference_adm(const PlanePair& planes, std::span<const AdmSetting> settings);

/// The bytes of memory that ADM takes for frames of this size and so many distorted planes: the
/// approximations of two scales of all images.
std::size_t adm_workspace_bytes(std::int64_t width, std::int64_t height, std::size_t distorted);

/// Adds tasks that make the same bits in vectors, of each distorted plane; the reference is
/// transformed once. Without those of scale 0 if skips_scale0. `sums` is there once they have run;
/// until then everything that is not copied must last, and memory for adm_workspace_bytes().
void add_adm_tasks(const Plane& reference, std::span<const Plane> distorted,
    std::span<const AdmSetting> settings, bool skips_scale0, std::byte* memory, FrameTasks& tasks,
    std::vector<AdmSums>& sums);

struct AdmScores {
  double adm2 = 1, aim = 0, adm3 = 1;
  double num_sum = 0, den_sum = 0;
  std::array<float, kAdmScales> num{}, den{};
  double score(int scale) const {
    const auto at = static_cast<std::size_t>(scale);
    return static_cast<double>(num[at]) / static_cast<double>(den[at]);
  }
};
/// The scores of settings[index] for a frame of this size.
AdmScores adm_scores(const AdmSums& sums, std::size_t index, const AdmSetting& setting,
    const AdmWeights& weights, std::int64_t width, std::int64_t height);

}  // namespace similis::vmaf_internal
