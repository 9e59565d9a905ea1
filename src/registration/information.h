// SPDX-License-Identifier: Apache-2.0
// Mutual information of two volumes with one channel and its derivative by the map between their
// voxels, in two passes: nothing of the moved image's gradient is summed but 12 numbers. All is in
// f64.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/registration/levels.h"

namespace similis::registration_internal {

class FusedInformation {
 public:
  /// Entries of the histogram below so many voxels have the derivative of one of this size: the
  /// logarithm of smaller ones would be that of rounding.
  static constexpr double kLeastCount = 0x1p-20;

  virtual ~FusedInformation() = default;

  struct Result {
    double value = 0;
    std::int64_t count = 0;    ///< voxels that count; of 0 there is no value
    double by_map[3][4] = {};  ///< derivative by the rows of [by | start]
  };
  /// voxels: of each of these maps, voxel x of the fixed image meets map(x) of the moving one.
  virtual std::vector<Result> evaluate(const std::vector<Map>& voxels, const Execution& exec) = 0;
};

/// Null for images and bins that the passes do not take. The images are in f64 and must outlive the
/// result.
/// bins: from 4 to 256. maps: as many are evaluated at once.
std::unique_ptr<FusedInformation> fused_information_cpu(
    const Image& fixed, const Image& moving, int bins, std::size_t maps, const Execution& exec);
std::unique_ptr<FusedInformation> fused_information_cuda(
    const Image& fixed, const Image& moving, int bins, std::size_t maps, const Execution& exec);

}  // namespace similis::registration_internal
