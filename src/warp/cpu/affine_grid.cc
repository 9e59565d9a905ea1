// SPDX-License-Identifier: Apache-2.0
// Copies and affine grids on the CPU: plain loops over parts of rows in f64.
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

// Part of a row.
struct Part {
  std::int64_t start, count;
};

struct GridRow {
  const Plan& plan;
  std::int64_t n, z, y;

  double coordinate(int axis, std::int64_t voxel) const {
    const Axis& a = plan.pass.axes[axis];
    return a.origin + a.step * (a.first + static_cast<double>(voxel));
  }
  // Those of a part, along x. 32 bits and the voxel's place apart: that converts by vectors.
  void coordinates(Part part, double* values) const {
    const Axis& a = plan.pass.axes[0];
    const auto start = static_cast<double>(part.start);
    const auto count = static_cast<int>(part.count);
    for (int x = 0; x < count; ++x) {
      values[x] = a.origin + a.step * (a.first + (start + static_cast<double>(x)));
    }
  }
  double matrix(int i, int j) const {
    const TensorView& m = plan.pass.affine;
    return element(m, n * m.strides[0] + i * m.strides[1] + j * m.strides[2]);
  }

  // Calls function(component i of the part's vectors in a field, their distance), by its dtype.
  template <class Function>
  void visit(const TensorView& field, Part part, int i, const Function& function) const {
    visit_dtype(field.dtype, [&]<class E>(std::type_identity<E>) {
      function(static_cast<E*>(field.data()) + voxel_offset(field, n, z, y, part.start) +
                   i * field.strides[4],
          field.strides[3]);
    });
  }

  void add_to(double* values, const TensorView& field, Part part, int i) const {
    if (field.empty()) return;
    visit(field, part, i, [&](const auto* from, std::int64_t step) {
      for (std::int64_t x = 0; x < part.count; ++x) values[x] += load(from[x * step]);
    });
  }

  template <class Function> void for_each_part(const Function& function) const {
    const std::int64_t width = plan.pass.axes[0].out_extent;
    for (std::int64_t start = 0; start < width; start += kChunk) {
      function(Part{start, std::min(kChunk, width - start)});
    }
  }

  void write() const {
    const Pass& pass = plan.pass;
    const double by = coordinate(1, y), bz = coordinate(2, z);
    double rows[3] = {}, steps[3] = {};
    for (int i = 0; i < pass.rank; ++i) {
      rows[i] = matrix(i, pass.rank) + matrix(i, 1) * by;
      if (pass.rank == 3) rows[i] += matrix(i, 2) * bz;
      steps[i] = matrix(i, 0);
    }
    for_each_part([&](Part part) {
      double at[kChunk], values[3][kChunk];
      coordinates(part, at);
      for (int i = 0; i < pass.rank; ++i) {
        for (std::int64_t x = 0; x < part.count; ++x) values[i][x] = rows[i] + steps[i] * at[x];
        add_to(values[i], pass.field, part, i);
        add_to(values[i], pass.addend, part, i);
      }
      store_part(values, part);
    });
  }

  void store_part(const double (&values)[3][kChunk], Part part) const {
    const TensorView& output = plan.pass.output;
    const int rank = plan.pass.rank;
    const bool is_dense = output.strides[4] == 1 && output.strides[3] == rank;
    if (is_dense) {
      return visit(output, part, 0, [&](auto* to, std::int64_t) {
        for (std::int64_t x = 0; x < part.count; ++x) {
          store(values[0][x], to++);
          store(values[1][x], to++);
          if (rank == 3) store(values[2][x], to++);
        }
      });
    }
    for (int i = 0; i < rank; ++i) {
      visit(output, part, i, [&](auto* to, std::int64_t apart) {
        for (std::int64_t x = 0; x < part.count; ++x) store(values[i][x], to + x * apart);
      });
    }
  }

  void add(MatrixSums* sums) const {
    const Pass& pass = plan.pass;
    const double b[3] = {0, coordinate(1, y), coordinate(2, z)};
    double sum[3] = {}, along_x[3] = {};
    for_each_part([&](Part part) {
      double at[kChunk];
      coordinates(part, at);
      for (int i = 0; i < pass.rank; ++i) {
        visit(pass.upstream, part, i, [&](const auto* from, std::int64_t step) {
          for (std::int64_t x = 0; x < part.count; ++x) {
            const double value = load(from[x * step]);
            sum[i] += value;
            along_x[i] += value * at[x];
          }
        });
      }
    });
    for (int i = 0; i < pass.rank; ++i) {
      sums->position[i][0] += along_x[i];
      for (int j = 1; j < pass.rank; ++j) sums->position[i][j] += sum[i] * b[j];
      sums->position[i][pass.rank] += sum[i];
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
