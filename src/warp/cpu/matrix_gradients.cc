// SPDX-License-Identifier: Apache-2.0
// The sums over the voxels, as gradients to the matrices that the caller gave.
#include "src/warp/cpu/matrix_gradients.h"

#include "src/core/tensor/dispatch.h"

namespace similis::warp_internal {
namespace {

void store_at(const TensorView& matrix, std::int64_t n, int i, int j, double value) {
  const Extents& s = matrix.strides;
  visit_dtype(matrix.dtype, [&]<class E>(std::type_identity<E>) {
    store(value, static_cast<E*>(matrix.data()) + n * s[0] + i * s[1] + j * s[2]);
  });
}

// sum(n, i, j) over the images that share a matrix, which rounds once.
template <class Sum>
void store_matrix(const TensorView& matrix, std::int64_t batch, const Sum& sum) {
  const std::int64_t shared = matrix.shape[0] < batch ? batch : 1;
  for (std::int64_t n = 0; n < matrix.shape[0]; ++n) {
    for (int i = 0; i < matrix.shape[1]; ++i) {
      for (int j = 0; j < matrix.shape[2]; ++j) {
        double total = 0;
        for (std::int64_t k = 0; k < shared; ++k) total += sum(n * shared + k, i, j);
        store_at(matrix, n, i, j, total);
      }
    }
  }
}

}  // namespace

void store_matrices(const Plan& plan) {
  const Pass& pass = plan.pass;
  std::vector<MatrixSums> totals(static_cast<std::size_t>(pass.batch));
  for (std::size_t n = 0; n < totals.size(); ++n) {
    for (std::int64_t task = 0; task < plan.tasks_of_image; ++task) {
      const MatrixSums& part = plan.sums[n * static_cast<std::size_t>(plan.tasks_of_image) +
                                         static_cast<std::size_t>(task)];
      for (int a = 0; a < 3; ++a) {
        for (int j = 0; j < 4; ++j) totals[n].position[a][j] += part.position[a][j];
        for (int j = 0; j < 3; ++j) totals[n].field[a][j] += part.field[a][j];
      }
    }
  }
  const Axis* axes = pass.axes;
  if (!pass.affine_gradient.empty()) {
    store_matrix(pass.affine_gradient, pass.batch, [&](std::int64_t n, int i, int j) {
      const double* sums = totals[static_cast<std::size_t>(n)].position[i];
      if (j == pass.rank) return axes[i].scale * sums[3];
      return axes[i].scale * (axes[j].origin * sums[3] + axes[j].step * sums[j]);
    });
  }
  if (!pass.grid_affine_gradient.empty()) {
    store_matrix(pass.grid_affine_gradient, pass.batch, [&](std::int64_t n, int i, int j) {
      return axes[i].scale * totals[static_cast<std::size_t>(n)].field[i][j];
    });
  }
}

}  // namespace similis::warp_internal
