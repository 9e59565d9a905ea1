// SPDX-License-Identifier: Apache-2.0
#include "src/registration/moved_metric.h"

#include "similis/warp.hpp"
#include "src/core/operation.h"
#include "src/registration/cpu/fused.h"
#include "src/registration/similarity.h"

namespace similis::registration_internal {
namespace {

// Null in a build without CUDA, where no image is on a GPU.
constinit decltype(&fused_metric_cuda) const kOnGpu = SIMILIS_IF_CUDA(fused_metric_cuda);

}  // namespace

MovedMetric::MovedMetric(const Image& still, const Image& moved, const Map& affine,
    const std::vector<MetricTerm>& terms, const Execution& exec)
    : still_(still),
      moved_(moved),
      terms_(terms),
      exec_(exec),
      voxels_(between_cells(still.grid, affine, moved.grid)),
      fused_((still.grid.device.kind == DeviceKind::cuda ? kOnGpu : fused_metric_cpu)(
          still, moved, voxels_, terms, exec)) {
  if (fused_ != nullptr) return;
  j_ = still.allocated(still.channels(), exec);
  slope_ = still.allocated(still.channels(), exec);
  weights_ = still.allocated(1, exec);
  if (!moved.mask.empty()) moved_mask_ = still.allocated(1, exec);
  matrix_ = coordinate_matrix(voxels_, still.grid, moved.grid, exec);
  by_u_ = displacement_matrix(voxels_, moved.grid, exec);
}

double MovedMetric::differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch) {
  if (fused_ != nullptr) return fused_->differentiate(u, gradient, scratch);
  const GridRows rows(still_.grid);
  const SampleOptions place{.affine = matrix_, .displacement = u, .grid_affine = by_u_};
  std::int64_t count = weigh_inside(rows, voxels_, moved_.grid, u, still_.mask, weights_, exec_);
  if (!moved_mask_.empty()) {
    sample_into(moved_.mask, {.output = moved_mask_}, place, exec_);
    count = drop_below(rows, moved_mask_, kInsideMask, weights_, exec_);
  }
  sample_into(moved_.values, {.output = j_}, place, exec_);
  const bool all_count = count == still_.grid.voxels();
  const double value = similarity(terms_, still_.grid, still_.values, j_,
      all_count ? TensorView() : TensorView(weights_), count, slope_, exec_);
  sample_into(moved_.values, {.upstream = slope_, .grid_gradient = gradient}, place, exec_);
  return value;
}

MovedMetrics::MovedMetrics(const Image& still, const Image& moved, const Image& still_labels,
    const Image& moved_labels, const Map& affine, const std::vector<MetricTerm>& terms,
    const Execution& exec)
    : exec_(exec) {
  for (const MetricTerm& term : terms) {
    (term.metric == RegisterMetric::dice ? of_labels_ : of_images_).push_back(term);
  }
  if (!of_images_.empty()) images_.emplace(still, moved, affine, of_images_, exec);
  if (!of_labels_.empty()) labels_.emplace(still_labels, moved_labels, affine, of_labels_, exec);
  if (images_ && labels_) {
    by_labels_ = allocate(still.grid.field_shape(), still.values.dtype, still.grid.device, exec);
  }
}

double MovedMetrics::differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch) {
  if (!labels_) return images_->differentiate(u, gradient, scratch);
  if (!images_) return labels_->differentiate(u, gradient, scratch);
  // That of the images comes last, as it may overwrite u.
  double value = labels_->differentiate(u, by_labels_, scratch);
  value += images_->differentiate(u, gradient, scratch);
  add_scaled(gradient.device, gradient.shape.count(), 1, by_labels_, gradient, exec_);
  return value;
}

}  // namespace similis::registration_internal
