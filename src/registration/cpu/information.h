// SPDX-License-Identifier: Apache-2.0
// Mutual information of two volumes with one channel and its derivative by the map between their
// voxels, in two passes on the CPU: nothing of the moved image's gradient is summed but 12 numbers.
#pragma once

#include <vector>

#include "src/core/tensor/aligned_vector.h"
#include "src/registration/cpu/fused.h"

namespace similis::registration_internal {

class FusedInformation {
 public:
  /// The map of `volumes` is that of each call. bins: from 4 to 256.
  FusedInformation(const FusedVolumes& volumes, int bins, const Execution& exec);

  struct Result {
    double value = 0;
    std::int64_t count = 0;    ///< voxels that count; of 0 there is no value
    double by_map[3][4] = {};  ///< derivative by the rows of [by | start]
  };
  Result evaluate(const Map& voxels, const Execution& exec);

 private:
  FusedVolumes volumes_;
  int bins_;
  std::vector<std::int32_t> fixed_bins_;  // the first of 4
  AlignedVector<float> fixed_weights_;    // 4 a voxel
  AlignedVector<float> moved_;            // J, NaN where a voxel does not count, and 3 slopes
};

}  // namespace similis::registration_internal
