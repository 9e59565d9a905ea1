// SPDX-License-Identifier: Apache-2.0
// The images of the linear stages on a coarse grid, and how alike they are under maps.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "similis/warp.hpp"
#include "src/core/operation.h"
#include "src/core/tensor/doubles.h"
#include "src/registration/information.h"
#include "src/registration/levels.h"
#include "src/registration/passes.h"
#include "src/registration/similarity.h"

namespace similis::registration_internal {

/// The metric of a map and its derivative by the numbers of LinearLevel::matrix().
struct Evaluation {
  double value = -std::numeric_limits<double>::infinity();
  double share = 0;  // of the voxels, that count
  std::vector<double> by_matrix;
};

/// Both images on one of the coarse grids.
class LinearLevel {
  // Null in a build without CUDA, where no image is on a GPU.
  static constexpr decltype(&fused_information_cuda) kOnGpu =
      SIMILIS_IF_CUDA(fused_information_cuda);
  static constexpr double kSoftness = 0.5;  // σ of the smoothing before, in the voxels of the level

 public:
  // maps: as many are evaluated at once.
  LinearLevel(const Image& fixed, const Image& moving, double millimetres,
      const std::vector<MetricTerm>& terms, std::size_t maps, const Execution& exec)
      : fixed_(
            shrunk(fixed, std::max(millimetres, fixed.grid.smallest_spacing()), kSoftness, exec)),
        moving_(
            shrunk(moving, std::max(millimetres, fixed.grid.smallest_spacing()), kSoftness, exec)),
        terms_(terms),
        exec_(exec),
        j_(fixed_.allocated(fixed_.channels(), exec)),
        slope_(fixed_.allocated(fixed_.channels(), exec)),
        weights_(fixed_.allocated(1, exec)),
        by_affine_(allocate(
            {1, fixed_.grid.rank, fixed_.grid.rank + 1}, DType::f64, fixed_.grid.device, exec)) {
    if (!moving_.mask.empty()) moving_mask_ = fixed_.allocated(1, exec);
    all_ = static_cast<double>(fixed_.count(exec));
    const MetricTerm& term = terms.front();
    if (term.metric == RegisterMetric::mi && term.sampling == 1) {
      const bool is_on_gpu = fixed_.grid.device.kind == DeviceKind::cuda;
      fused_ =
          (is_on_gpu ? kOnGpu : fused_information_cpu)(fixed_, moving_, term.num_bins, maps, exec);
    }
  }

  std::vector<Evaluation> evaluate(const std::vector<Map>& maps) {
    std::vector<Map> voxels;
    for (const Map& map : maps) {
      voxels.push_back(between_cells(fixed_.grid, map, moving_.grid));
    }
    std::vector<Evaluation> results;
    if (fused_ == nullptr) {
      for (const Map& each : voxels) results.push_back(evaluate(each));
      return results;
    }
    const double weight = terms_.front().weight;
    for (const FusedInformation::Result& found : fused_->evaluate(voxels, exec_)) {
      Evaluation& result = results.emplace_back();
      result.share = static_cast<double>(found.count) / all_;
      result.by_matrix.assign(12, 0.0);
      if (found.count == 0) continue;
      for (std::size_t i = 0; i < 12; ++i) {
        result.by_matrix[i] = weight * found.by_map[i / 4][i % 4];
      }
      result.value = weight * found.value;
    }
    return results;
  }

  // The matrix of a map: of voxels where passes are fused, else that of sample().
  std::vector<double> matrix(const Map& map) const {
    const Map voxels = between_voxels(fixed_.grid, map, moving_.grid);
    if (fused_ == nullptr) return coordinate_numbers(voxels, fixed_.grid, moving_.grid);
    std::vector<double> result;
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t c = 0; c < 3; ++c) result.push_back(voxels.linear.rows[a][c]);
      result.push_back(voxels.shift[a]);
    }
    return result;
  }

 private:
  // By the operations, one by one.
  Evaluation evaluate(const Map& voxels) {
    const GridRows rows(fixed_.grid);
    std::int64_t count =
        weigh_inside(rows, voxels, moving_.grid, nullptr, fixed_.mask, weights_, exec_);
    if (!moving_mask_.empty()) {
      sample_at(moving_.mask, moving_.grid, voxels, fixed_.grid, {}, false, moving_mask_, exec_);
      count = drop_below(rows, moving_mask_, kInsideMask, weights_, exec_);
    }
    Evaluation result{.share = static_cast<double>(count) / all_};
    result.by_matrix.assign(static_cast<std::size_t>(by_affine_.shape.count()), 0.0);
    if (count == 0) return result;
    sample_at(moving_.values, moving_.grid, voxels, fixed_.grid, {}, false, j_, exec_);
    const bool all_count = count == fixed_.grid.voxels();
    result.value = similarity(terms_, fixed_.grid, fixed_.values, j_,
        all_count ? TensorView() : TensorView(weights_), count, slope_, exec_);
    const Tensor matrix = coordinate_matrix(voxels, fixed_.grid, moving_.grid, exec_);
    SampleOptions options{.affine = matrix};
    const Extents& shape = fixed_.values.shape;
    options.out_shape = Extents(std::span<const std::int64_t>(
        shape.begin() + 2, static_cast<std::size_t>(fixed_.grid.rank)));
    sample_into(
        moving_.values, {.upstream = slope_, .affine_gradient = by_affine_}, options, exec_);
    result.by_matrix = to_doubles(on_cpu(by_affine_, exec_));
    for (double& number : result.by_matrix) number /= static_cast<double>(count);
    return result;
  }

  Image fixed_, moving_;
  const std::vector<MetricTerm>& terms_;
  const Execution& exec_;
  Tensor j_, slope_, weights_, by_affine_, moving_mask_;
  std::unique_ptr<FusedInformation> fused_;  // null where the operations are called one by one
  double all_ = 1;
};

}  // namespace similis::registration_internal
