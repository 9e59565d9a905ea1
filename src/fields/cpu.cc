// SPDX-License-Identifier: Apache-2.0
// Norms and Jacobian determinants of vector fields on the CPU: plain loops over rows in f64, bound
// by memory.
#include <cmath>
#include <vector>

#include "src/core/parallel.h"
#include "src/fields/fields.h"
#include "src/fields/jacobian.h"
#include "src/warp/cpu/elements.h"

namespace similis::fields_internal {

using warp_internal::store_element;
using warp_internal::voxel_offset;

void largest_norm_cpu(const TensorView& field, const TensorView& residual, const Execution& exec) {
  const std::int64_t height = field.shape[2], rows = field.shape[1] * height;
  std::vector<double> largest(static_cast<std::size_t>(field.shape[0] * rows));
  parallel_for(exec, field.shape[0] * rows, [&](std::int64_t row) {
    const std::int64_t start =
        voxel_offset(field, row / rows, row % rows / height, row % height, 0);
    double most = 0;
    for (std::int64_t x = 0; x < field.shape[3]; ++x) {
      double square = 0;
      for (std::int64_t i = 0; i < field.shape[4]; ++i) {
        const double c = element(field, start + x * field.strides[3] + i * field.strides[4]);
        square += c * c;
      }
      if (!(square <= most)) most = square;  // a NaN stays
      if (std::isnan(most)) break;
    }
    largest[static_cast<std::size_t>(row)] = most;
  });
  for (std::int64_t n = 0; n < field.shape[0]; ++n) {
    double most = 0;
    for (std::int64_t row = n * rows; row < (n + 1) * rows && !std::isnan(most); ++row) {
      const double other = largest[static_cast<std::size_t>(row)];
      if (!(other <= most)) most = other;
    }
    store_element(residual, n * residual.strides[0], std::sqrt(most));
  }
}

void jacobian_cpu(const JacobianPass& pass, const Execution& exec) {
  const TensorView &u = pass.u, &out = pass.determinant;
  const std::int64_t height = pass.axes[1].out_extent, rows = height * pass.axes[2].out_extent;
  std::vector<std::int64_t> folds(static_cast<std::size_t>(u.shape[0] * rows));
  parallel_for(exec, u.shape[0] * rows, [&](std::int64_t task) {
    const std::int64_t n = task / rows, z = task % rows / height, y = task % height;
    std::int64_t count = 0;
    for (std::int64_t x = 0; x < pass.axes[0].out_extent; ++x) {
      const std::int64_t voxel[3] = {x, y, z}, here = voxel_offset(u, n, z, y, x);
      const double value =
          determinant(pass.axes, pass.rank, voxel, [&](int i, int a, std::int64_t other) {
            const std::int64_t beside = (other - voxel[a]) * u.strides[3 - a];
            return element(u, here + beside + i * u.strides[4]);
          });
      store_element(out, voxel_offset(out, n, z, y, x), value);
      count += value <= 0 ? 1 : 0;
    }
    folds[static_cast<std::size_t>(task)] = count;
  });
  for (std::int64_t n = 0; n < u.shape[0]; ++n) {
    std::int64_t total = 0;
    for (std::int64_t row = n * rows; row < (n + 1) * rows; ++row) {
      total += folds[static_cast<std::size_t>(row)];
    }
    store_element(pass.folds, n * pass.folds.strides[0], static_cast<double>(total));
  }
}

}  // namespace similis::fields_internal
