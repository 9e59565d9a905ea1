// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/vif/vif.h"

namespace similis::vmaf_internal {

VifScores vif_scores(const VifSums& sums, std::size_t index, bool skips_scale0) {
  VifScores scores;
  for (std::size_t scale = 0; scale < sums.size(); ++scale) {
    if (scale == 0 && skips_scale0) {
      scores.num[0] = 0;
      scores.den[0] = -1;
      continue;
    }
    const VifScaleSums& of = sums[scale];
    const auto flat = static_cast<double>(of.flat_count);
    // A flat window is worth one bit, less what noise the distorted image has there.
    const double kept = flat - static_cast<double>(of.flat_rest) / 16384.0 / 65025.0;
    scores.num[scale] =
        static_cast<float>(static_cast<double>(of.information[index]) / 2048 + kept);
    scores.den[scale] =
        static_cast<float>(static_cast<double>(of.reference_information) / 2048 + flat);
  }
  return scores;
}

double VifScores::score(int scale) const {
  const auto at = static_cast<std::size_t>(scale);
  return den[at] == -1 ? 0 : static_cast<double>(num[at] / den[at]);
}

}  // namespace similis::vmaf_internal
