// SPDX-License-Identifier: Apache-2.0
// Copies and affine grids on the CPU: plain loops over rows in f64, bound by memory.
#include <algorithm>
#include <vector>

#include "src/core/parallel.h"
#include "src/warp/cpu/elements.h"
#include "src/warp/cpu/plan.h"

namespace similis::warp_internal {
namespace {

// The offset of a row, where rows are counted over the first `axes` axes.
std::int64_t row_offset(const TensorView& view, int axes, std::int64_t row) {
  std::int64_t offset = 0;
  for (int axis = axes - 1; axis >= 0; --axis) {
    offset += row % view.shape[axis] * view.strides[axis];
    row /= view.shape[axis];
  }
  return offset;
}

std::int64_t row_count(const TensorView& view, int axes) {
  std::int64_t count = 1;
  for (int axis = 0; axis < axes; ++axis) count *= view.shape[axis];
  return count;
}

struct GridRow {
  const Plan& plan;
  std::int64_t n, z, y;

  double coordinate(int axis, std::int64_t voxel) const {
    const Axis& a = plan.pass.axes[axis];
    return a.origin + a.step * (a.first + static_cast<double>(voxel));
  }
  double matrix(int i, int j) const {
    const TensorView& m = plan.pass.affine;
    return element(m, n * m.strides[0] + i * m.strides[1] + j * m.strides[2]);
  }

  void write() const {
    const Pass& pass = plan.pass;
    const double by = coordinate(1, y), bz = coordinate(2, z);
    for (int i = 0; i < pass.rank; ++i) {
      double row = matrix(i, pass.rank) + matrix(i, 1) * by;
      if (pass.rank == 3) row += matrix(i, 2) * bz;
      const double step = matrix(i, 0);
      for (std::int64_t x = 0; x < pass.axes[0].out_extent; ++x) {
        double value = row + step * coordinate(0, x);
        if (!pass.field.empty()) {
          value +=
              element(pass.field, voxel_offset(pass.field, n, z, y, x) + i * pass.field.strides[4]);
        }
        const std::int64_t at = voxel_offset(pass.output, n, z, y, x) + i * pass.output.strides[4];
        if (!pass.addend.empty()) value += element(pass.addend, at);
        store_element(pass.output, at, value);
      }
    }
  }

  void add(MatrixSums* sums) const {
    const Pass& pass = plan.pass;
    const TensorView& g = pass.upstream;
    const double b[3] = {0, coordinate(1, y), coordinate(2, z)};
    for (int i = 0; i < pass.rank; ++i) {
      double sum = 0, along_x = 0;
      for (std::int64_t x = 0; x < pass.axes[0].out_extent; ++x) {
        const double value = element(g, voxel_offset(g, n, z, y, x) + i * g.strides[4]);
        sum += value;
        along_x += value * coordinate(0, x);
      }
      sums->position[i][0] += along_x;
      for (int j = 1; j < pass.rank; ++j) sums->position[i][j] += sum * b[j];
      sums->position[i][pass.rank] += sum;
    }
  }
};

// Adds the sums of each matrix's tasks in the order of the tasks.
void store_affine_gradient(const Plan& plan, const std::vector<MatrixSums>& sums) {
  const TensorView& gradient = plan.pass.affine_gradient;
  const std::int64_t per_matrix = static_cast<std::int64_t>(sums.size()) / gradient.shape[0];
  for (std::int64_t n = 0; n < gradient.shape[0]; ++n) {
    for (int i = 0; i < plan.pass.rank; ++i) {
      for (int j = 0; j <= plan.pass.rank; ++j) {
        double total = 0;
        for (std::int64_t k = 0; k < per_matrix; ++k) {
          total += sums[static_cast<std::size_t>(n * per_matrix + k)].position[i][j];
        }
        const Extents& s = gradient.strides;
        store_element(gradient, n * s[0] + i * s[1] + j * s[2], total);
      }
    }
  }
}

}  // namespace

void copy_cpu(const TensorView& from, const TensorView& to, const Execution& exec) {
  const int rows_axes = from.shape.rank() - 1;
  const std::int64_t width = from.shape[rows_axes];
  const std::int64_t step_in = from.strides[rows_axes], step_out = to.strides[rows_axes];
  parallel_for(exec, row_count(from, rows_axes), [&](std::int64_t row) {
    const std::int64_t in = row_offset(from, rows_axes, row), out = row_offset(to, rows_axes, row);
    double buffer[kChunk];
    for (std::int64_t start = 0; start < width; start += kChunk) {
      const std::int64_t count = std::min(kChunk, width - start);
      visit_dtype(from.dtype, [&]<class E>(std::type_identity<E>) {
        const E* const elements = static_cast<const E*>(from.data()) + in + start * step_in;
        for (std::int64_t x = 0; x < count; ++x) buffer[x] = load(elements[x * step_in]);
      });
      visit_dtype(to.dtype, [&]<class E>(std::type_identity<E>) {
        E* const elements = static_cast<E*>(to.data()) + out + start * step_out;
        for (std::int64_t x = 0; x < count; ++x) store(buffer[x], elements + x * step_out);
      });
    }
  });
}

void affine_grid_cpu(const Pass& pass, const Execution& exec) {
  const Plan plan(pass);
  std::vector<MatrixSums> sums;
  const bool with_gradient = !pass.affine_gradient.empty();
  if (with_gradient) sums.resize(static_cast<std::size_t>(pass.batch * plan.tasks_of_image));
  parallel_for(exec, pass.batch * plan.tasks_of_image, [&](std::int64_t task) {
    const std::int64_t first = task % plan.tasks_of_image * plan.rows_of_task;
    const std::int64_t end = std::min(first + plan.rows_of_task, plan.rows);
    for (std::int64_t row = first; row < end; ++row) {
      const std::int64_t height = pass.axes[1].out_extent;
      const GridRow grid_row{plan, task / plan.tasks_of_image, row / height, row % height};
      if (!pass.output.empty()) grid_row.write();
      if (with_gradient) grid_row.add(&sums[static_cast<std::size_t>(task)]);
    }
  });
  if (with_gradient) store_affine_gradient(plan, sums);
}

}  // namespace similis::warp_internal
