// SPDX-License-Identifier: Apache-2.0
// VIF, visual information fidelity, of a frame: the integer sums of its pixels at four scales, and
// the scores that they make.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/vmaf/frame_tasks.h"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

constexpr int kVifScales = 4;
constexpr std::int64_t kVifSmallestSide = 16;

/// Sums over the pixels of one scale. Logarithms are in 1/2048.
struct VifScaleSums {
  std::int64_t flat_count = 0;  ///< pixels whose reference has hardly any variance
  std::int64_t flat_rest = 0;   ///< and the distorted image's variance there
  std::int64_t reference_information = 0;
  std::vector<std::int64_t> information;  ///< kept by the distorted image, by gain limit

  friend bool operator==(const VifScaleSums&, const VifScaleSums&) = default;
};
using VifSums = std::array<VifScaleSums, kVifScales>;

/// The sums for each gain limit, by loops as the definition has them.
VifSums reference_vif(const PlanePair& planes, std::span<const double> gain_limits);

/// The bytes of memory that VIF takes for frames of this size and so many distorted planes: the
/// smaller scales of all images.
std::size_t vif_workspace_bytes(std::int64_t width, std::int64_t height, std::size_t distorted);

/// Adds tasks that make the same bits in vectors, of each distorted plane; the moments of the
/// reference are computed once. Without scale 0 if skips_scale0. `sums` is there once they have
/// run; until then everything that is not copied must last, and memory for vif_workspace_bytes().
void add_vif_tasks(const Plane& reference, std::span<const Plane> distorted,
    std::span<const double> gain_limits, bool skips_scale0, std::byte* memory, FrameTasks& tasks,
    std::vector<VifSums>& sums);

/// Information of the distorted and of the reference image at each scale.
struct VifScores {
  std::array<float, kVifScales> num{}, den{};
  double score(int scale) const;
};
/// The scores of gain limit `index`.
VifScores vif_scores(const VifSums& sums, std::size_t index, bool skips_scale0);

}  // namespace similis::vmaf_internal
