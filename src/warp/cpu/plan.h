// SPDX-License-Identifier: Apache-2.0
// The tasks into which a pass on the CPU is cut, and the memory that they share. Nothing here
// depends on the number of threads, and neither do the bits of the results.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/core/tensor/dispatch.h"
#include "src/warp/formula.h"

namespace similis::warp_internal {

constexpr std::int64_t kChunk = 256;  // voxels: a task's buffers fit the first-level cache
constexpr float kReach = 1 << 21;     // f32 holds the sum of such a number, kWholeBias and another
constexpr float kWholeBias = 3 << 22;
constexpr std::int64_t kVoxelsOfTask = 16384;  // enough to hide the cost of starting a task

/// Sums over voxels of the gradient to the index along axis a: times the position (gx, gy, gz, 1),
/// and times the field.
struct MatrixSums {
  double position[3][4] = {};
  double field[3][3] = {};
};

/// An index as the nearest whole number and the rest; whole is NaN beyond kReach.
struct WholeAndRest {
  float whole, rest;
};
inline WholeAndRest split_index(double index) {
  constexpr double kRounds = 0x1.8p52;  // the sum has no place for a fraction: rint(), inlined
  const double whole = (index + kRounds) - kRounds;
  if (!(std::abs(whole) < kReach)) return {std::numeric_limits<float>::quiet_NaN(), 0};
  return {static_cast<float>(whole), static_cast<float>(index - whole)};
}

/// The planes (rows in 2D) of the image that a row of the output touches; none if last < first.
struct Touched {
  int first, last;
};
constexpr Touched kNoneTouched{1 << 30, -(1 << 30)};

/// The part m[axis][0]·g of the indices of a column's voxels, as a whole number and the rest, both
/// in f32: together they are as exact as f32 is within a voxel. NaN where the whole number is too
/// large for that. Along x the row's part is added, with kWholeBias, if all rows have the same one.
/// One vector more than there are columns can be read.
struct Columns {
  Columns(const Axis& x, const Transform& t, int rank)
      : include_row(t.m[0][1] == 0 && t.m[0][2] == 0) {
    const auto extent = static_cast<std::size_t>(x.out_extent);
    const std::size_t used = (extent + 15) / 16 * 16;  // no vector places others
    for (int axis = 0; axis < rank; ++axis) {
      whole[axis].resize(extent + kSpare, 0);
      rest[axis].resize(extent + kSpare);
      const double step = t.m[axis][0];
      for (std::size_t i = 0; step != 0 && i < used; ++i) {
        const WholeAndRest split = split_index(step * (x.first + static_cast<double>(i)));
        whole[axis][i] = split.whole;
        rest[axis][i] = split.rest;
      }
    }
    if (!include_row) return;
    const WholeAndRest row = split_index(t.row(0, 0, 0));
    for (float& each : whole[0]) each += row.whole + kWholeBias;
    for (float& each : rest[0]) each += row.rest;
  }

  bool include_row;
  static constexpr std::size_t kSpare = 64;
  std::vector<float> whole[3], rest[3];
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
          axes, pass.rank, pass.is_grid, pass.field_factor,
          [&](int i, int j) {
            if (a.empty()) return i == j ? 1.0 : 0.0;
            return element(a, n * a.strides[0] + i * a.strides[1] + j * a.strides[2]);
          },
          [&](int i, int j) {
            if (s.empty()) return i == j ? 1.0 : 0.0;
            return element(s, n * s.strides[0] + i * s.strides[1] + j * s.strides[2]);
          }));
    }
    const bool takes_cells =
        pass.form == Form::image && pass.mode != Interpolation::cubic &&
        (pass.image.dtype != DType::f64 || pass.mode == Interpolation::nearest);
    if (takes_cells && pass.field.dtype != DType::f64) {
      const bool are_alike = a.empty() && s.empty();
      const std::size_t count = are_alike ? 1 : transforms.size();
      for (std::size_t n = 0; n < count; ++n) {
        columns.emplace_back(axes[0], transforms[n], pass.rank);
      }
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

  const Columns& columns_of(std::int64_t image) const {
    return columns[columns.size() == 1 ? 0 : static_cast<std::size_t>(image)];
  }

  /// True if the index along an axis takes other components of the field than its own, as a
  /// grid_affine with entries off its diagonal makes it.
  bool mixes_components(std::int64_t image) const {
    const Transform& t = transforms[static_cast<std::size_t>(image)];
    bool mixes = false;
    for (int i = 0; i < pass.rank && !pass.field.empty(); ++i) {
      for (int j = 0; j < pass.rank; ++j) mixes = mixes || (i != j && t.s[i][j] != 0);
    }
    return mixes;
  }

  const Pass& pass;
  std::int64_t rows, rows_of_task, tasks_of_image, images_of_task;
  std::vector<Transform> transforms;  // one for each image
  std::vector<Columns> columns;       // of each, or of all; for cells in f32, empty if not exact
  std::vector<MatrixSums> sums;       // [image][task of image]; empty if not wanted
  std::vector<Touched> touched;       // [image][row]; empty if not wanted
  int slab_axis = 2;
  // As prepare_fast_path() finds:
  bool voxels_are_finite = false;     // of the image; known where the nearest ones have a gradient
  TensorView sums_of_image;           // the gradient to the image, if tasks add to it; empty if not
  std::vector<std::int64_t> cleared;  // [image of sums_of_image]: its first planes (rows in 2D)
  bool clears_planes = false;         // of it one after the other, or whole images
};

}  // namespace similis::warp_internal
