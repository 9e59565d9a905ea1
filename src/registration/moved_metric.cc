// SPDX-License-Identifier: Apache-2.0
#include "src/registration/moved_metric.h"

#include "similis/warp.hpp"
#include "src/core/operation.h"
#include "src/registration/similarity.h"

namespace similis::registration_internal {
namespace {

// Empty where the passes do not take the images, or other metrics than one LNCC of a small window
// and at most one NCC.
std::optional<FusedVolumes> fused_metric(const Image& still, const Image& moved, const Map& voxels,
    const std::vector<MetricTerm>& terms) {
  if (!can_fuse(still, moved)) return {};
  FusedVolumes result = fused_volumes(still, moved, voxels);
  for (const MetricTerm& term : terms) {
    const bool is_lncc = term.metric == RegisterMetric::lncc;
    float& weight = is_lncc ? result.lncc_weight : result.ncc_weight;
    if ((!is_lncc && term.metric != RegisterMetric::ncc) || weight > 0) return {};
    weight = static_cast<float>(term.weight);
    if (is_lncc) result.radius = term.window_size / 2;
  }
  if (result.radius < 1 || result.radius > kMostFusedRadius) return {};
  return result;
}

// Null in a build without CUDA, where no image is on a GPU.
constinit decltype(&fused_metric_cuda) const kOnGpu = SIMILIS_IF_CUDA(fused_metric_cuda);

}  // namespace

MovedMetric::MovedMetric(const Image& still, const Image& moved, const Map& affine,
    const std::vector<MetricTerm>& terms, const Execution& exec)
    : still_(still),
      moved_(moved),
      terms_(terms),
      exec_(exec),
      voxels_(between_voxels(still.grid, affine, moved.grid)),
      on_gpu_(still.grid.device.kind == DeviceKind::cuda
                  ? kOnGpu(still, moved, voxels_, terms, exec)
                  : nullptr),
      fused_(fused_metric(still, moved, voxels_, terms)) {
  if (on_gpu_ != nullptr) return;
  j_ = still.allocated(still.channels(), exec);
  if (fused_) return;
  slope_ = still.allocated(still.channels(), exec);
  weights_ = still.allocated(1, exec);
  if (!moved.mask.empty()) moved_mask_ = still.allocated(1, exec);
}

double MovedMetric::differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch) {
  if (on_gpu_ != nullptr) return on_gpu_->differentiate(u, gradient);
  if (fused_) {
    return differentiate_fused(*fused_, u.elements<float>(), j_.elements<float>(),
        scratch.elements<float>(), gradient.elements<float>(), exec_);
  }
  const GridRows rows(still_.grid);
  float* const weights = weights_.elements<float>();
  std::int64_t count = weigh_inside(
      rows, voxels_, moved_.grid, u.elements<float>(), still_.mask_elements(), weights, exec_);
  if (!moved_mask_.empty()) {
    sample_at(moved_.mask, moved_.grid, voxels_, still_.grid, u, false, moved_mask_, exec_);
    count = drop_below(rows, moved_mask_.elements<float>(), kInsideMask, weights, exec_);
  }
  sample_at(moved_.values, moved_.grid, voxels_, still_.grid, u, false, j_, exec_);
  const bool all_count = count == still_.grid.voxels();
  const double value = similarity(terms_, still_.grid, still_.values, j_,
      all_count ? TensorView() : TensorView(weights_), count, slope_, exec_);
  const Tensor matrix = coordinate_matrix(voxels_, still_.grid, moved_.grid, exec_);
  const Tensor by_u = displacement_matrix(voxels_, moved_.grid, exec_);
  sample_into(moved_.values, {.upstream = slope_, .grid_gradient = gradient},
      {.affine = matrix, .displacement = u, .grid_affine = by_u}, exec_);
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
    by_labels_ = allocate(still.grid.field_shape(), DType::f32, still.grid.device, exec);
  }
}

double MovedMetrics::differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch) {
  if (!labels_) return images_->differentiate(u, gradient, scratch);
  if (!images_) return labels_->differentiate(u, gradient, scratch);
  // That of the images comes last, as it may overwrite u.
  double value = labels_->differentiate(u, by_labels_, scratch);
  value += images_->differentiate(u, gradient, scratch);
  add_scaled(gradient.device, gradient.shape.count(), 1, by_labels_.elements<float>(),
      gradient.elements<float>(), exec_);
  return value;
}

}  // namespace similis::registration_internal
