// SPDX-License-Identifier: Apache-2.0
// The metrics of an image and another that a field moves, and their derivative by the field.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/registration/levels.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {

/// The same for the metrics and images that a device takes in a few passes.
class FusedMetric {
 public:
  virtual ~FusedMetric() = default;
  /// As MovedMetric's.
  virtual double differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch) = 0;
};
/// Null where the kernels do not take them. Both images must outlive the result.
std::unique_ptr<FusedMetric> fused_metric_cuda(const Image& still, const Image& moved,
    const Map& voxels, const std::vector<MetricTerm>& terms, const Execution& exec);

class MovedMetric {
 public:
  /// Voxel x of `still` meets the point A(x + u(x)) of `moved`. Both images must outlive it.
  MovedMetric(const Image& still, const Image& moved, const Map& affine,
      const std::vector<MetricTerm>& terms, const Execution& exec);

  /// Sets `gradient` to the derivative by u of the value times the number of voxels that count.
  /// u, gradient: fields of the still image's grid, in voxels. scratch: memory of a field, which
  /// may be u itself where u is not needed any more. Returns the value.
  double differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch);

 private:
  const Image &still_, &moved_;
  const std::vector<MetricTerm>& terms_;
  const Execution& exec_;
  Map voxels_;
  std::unique_ptr<FusedMetric> fused_;  // null: the operations are called one by one
  Tensor j_, slope_, weights_, moved_mask_, matrix_, by_u_;
};

/// The metrics of a pair of images, and those of their labels if they have channels.
class MovedMetrics {
 public:
  /// The images and the map must outlive it.
  MovedMetrics(const Image& still, const Image& moved, const Image& still_labels,
      const Image& moved_labels, const Map& affine, const std::vector<MetricTerm>& terms,
      const Execution& exec);

  /// As MovedMetric::differentiate().
  double differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch);

 private:
  const Execution& exec_;
  std::vector<MetricTerm> of_images_, of_labels_;
  std::optional<MovedMetric> images_, labels_;
  Tensor by_labels_;  // empty where one of both is
};

}  // namespace similis::registration_internal
