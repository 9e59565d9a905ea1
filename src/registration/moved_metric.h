// SPDX-License-Identifier: Apache-2.0
// The metrics of an image and another that a field moves, and their derivative by the field.
#pragma once

#include "src/registration/levels.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {

class MovedMetric {
 public:
  /// Voxel x of `still` meets the point A(x + u(x)) of `moved`. Both images must outlive it.
  MovedMetric(const Image& still, const Image& moved, const Map& affine,
      const std::vector<MetricTerm>& terms, const Execution& exec);

  /// Sets `gradient` to the derivative by u of the value times the number of voxels that count.
  /// u, gradient: fields of the still image's grid, in voxels. Returns the value.
  double differentiate(const Tensor& u, const Tensor& gradient);

 private:
  const Image &still_, &moved_;
  const std::vector<MetricTerm>& terms_;
  const Execution& exec_;
  Map voxels_;
  Tensor j_, slope_, weights_, moved_mask_;
};

}  // namespace similis::registration_internal
