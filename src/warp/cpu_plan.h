// SPDX-License-Identifier: Apache-2.0
// How a pass on the CPU is cut into tasks, and what each leaves for the others. Nothing here
// depends on the number of threads, and neither do the bits of the results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/core/dispatch.h"
#include "src/warp/formula.h"

namespace similis::warp_internal {

constexpr std::int64_t kChunk = 128;           // voxels: a task's buffers fit the first-level cache
constexpr std::int64_t kVoxelsOfTask = 16384;  // enough to hide what starting a task costs

/// Sums over voxels of the gradient to the index along axis a: times the position (gx, gy, gz, 1),
/// and times the field.
struct MatrixSums {
  double position[3][4] = {};
  double field[3][3] = {};
};

/// Which planes (rows in 2D) of the image a row of the output touches; none if last < first.
struct Touched {
  int first, last;
};

struct Plan {
  explicit Plan(const Pass& whole) : pass(whole) {
    const Axis(&axes)[3] = pass.axes;
    rows = axes[1].out_extent * axes[2].out_extent;
    rows_of_task = std::max<std::int64_t>(1, kVoxelsOfTask / axes[0].out_extent);
    tasks_of_image = (rows + rows_of_task - 1) / rows_of_task;
    images_of_task = pass.field.empty() ? 1 : pass.images_of_field();
    const TensorView &a = pass.affine, &s = pass.grid_affine;
    for (std::int64_t n = 0; n < pass.batch; ++n) {
      transforms.push_back(make_transform(
          axes, pass.rank, pass.is_grid,
          [&](int i, int j) {
            if (a.empty()) return i == j ? 1.0 : 0.0;
            return element(a, n * a.strides[0] + i * a.strides[1] + j * a.strides[2]);
          },
          [&](int i, int j) {
            if (s.empty()) return i == j ? 1.0 : 0.0;
            return element(s, n * s.strides[0] + i * s.strides[1] + j * s.strides[2]);
          }));
    }
    if (!pass.affine_gradient.empty() || !pass.grid_affine_gradient.empty()) {
      sums.resize(static_cast<std::size_t>(pass.batch * tasks_of_image));
    }
    if (!pass.image_gradient.empty()) {
      slab_axis = pass.rank == 3 && axes[2].extent >= axes[1].extent / 4 ? 2 : 1;
      touched.resize(static_cast<std::size_t>(pass.batch * rows));
    }
  }

  /// A task computes its rows of images_of_task images, which share a field.
  std::int64_t tasks() const { return pass.batch / images_of_task * tasks_of_image; }

  const Pass& pass;
  std::int64_t rows, rows_of_task, tasks_of_image, images_of_task;
  std::vector<Transform> transforms;  // of each image
  std::vector<MatrixSums> sums;       // [image][task of image]; empty if not wanted
  std::vector<Touched> touched;       // [image][row]; empty if not wanted
  int slab_axis = 2;
};

}  // namespace similis::warp_internal
