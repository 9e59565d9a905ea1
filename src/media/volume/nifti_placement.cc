// SPDX-License-Identifier: Apache-2.0
// The qform's quaternion (a, b, c, d), a ≥ 0, is that of a rotation R; with qfac = ±1 in pixdim[0]
//   world = R · (dx·i, dy·j, qfac·dz·k) + offset
#include "src/media/volume/nifti_placement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace similis::media {
namespace {

constexpr std::int64_t kSpaceUnits = 7, kMetres = 1, kMillimetres = 2, kMicrometres = 3;
constexpr double kMaxGridDistance = 0.01;  // voxels: forms further apart than this differ
constexpr double kMostSkewed = 1e-4;       // cosine between axes that a qform still stands for

using Columns = std::array<Point, 3>;

double dot(const Point& p, const Point& q) { return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]; }

double mm_per_unit(const NiftiHeader& header) {
  switch (header.units & kSpaceUnits) {
    case kMetres: return 1000;
    case kMicrometres: return 0.001;
    default: return 1;
  }
}

// A step of 0 is written by programs that have none.
double step(const NiftiHeader& header, std::size_t axis) {
  const double size = std::abs(header.pixdim[axis + 1]);
  return size == 0 ? 1 : size;
}

Affine from_columns(const Columns& columns, const Point& offset) {
  Affine affine;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) affine.rows[i][j] = columns[j][i];
    affine.rows[i][3] = offset[i];
  }
  return affine;
}

Affine qform(const NiftiHeader& header) {
  auto [b, c, d] = header.quaternion;
  const double rest = b * b + c * c + d * d;
  // Half a turn, whose a is 0, leaves a rest of floats that would turn by 0.03°; NIfTI's own
  // library takes as much for rounding.
  constexpr double kRounding = 1e-7;
  double a = std::sqrt(std::max(1 - rest, 0.0));
  if (1 - rest < kRounding) {
    a = 0;
    const double scale = 1 / std::sqrt(rest);
    b *= scale, c *= scale, d *= scale;
  }
  Columns columns = {Point{a * a + b * b - c * c - d * d, 2 * (b * c + a * d), 2 * (b * d - a * c)},
      Point{2 * (b * c - a * d), a * a + c * c - b * b - d * d, 2 * (c * d + a * b)},
      Point{2 * (b * d + a * c), 2 * (c * d - a * b), a * a + d * d - b * b - c * c}};
  const double handedness = header.pixdim[0] < 0 ? -1 : 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (double& number : columns[axis]) {
      number *= step(header, axis) * (axis == 2 ? handedness : 1);
    }
  }
  return from_columns(columns, header.qform_offset);
}

// The placement that ITK assumes for a file without one.
Affine unplaced(const NiftiHeader& header) {
  return from_columns(
      {Point{-step(header, 0), 0, 0}, Point{0, -step(header, 1), 0}, Point{0, 0, step(header, 2)}},
      {0, 0, 0});
}

Affine scaled(Affine affine, double factor) {
  for (auto& row : affine.rows) {
    for (double& number : row) number *= factor;
  }
  return affine;
}

// The quaternion of a rotation, from the component that is largest, so that no digits are lost.
std::array<double, 4> quaternion(const Columns& r) {
  const double a = 1 + r[0][0] + r[1][1] + r[2][2], b = 1 + r[0][0] - r[1][1] - r[2][2];
  const double c = 1 - r[0][0] + r[1][1] - r[2][2], d = 1 - r[0][0] - r[1][1] + r[2][2];
  const double largest = std::max({a, b, c, d});
  std::array<double, 4> q;
  if (largest == a) {
    q = {a, r[1][2] - r[2][1], r[2][0] - r[0][2], r[0][1] - r[1][0]};
  } else if (largest == b) {
    q = {r[1][2] - r[2][1], b, r[1][0] + r[0][1], r[2][0] + r[0][2]};
  } else if (largest == c) {
    q = {r[2][0] - r[0][2], r[1][0] + r[0][1], c, r[2][1] + r[1][2]};
  } else {
    q = {r[0][1] - r[1][0], r[2][0] + r[0][2], r[2][1] + r[1][2], d};
  }
  const double scale = (q[0] < 0 ? -0.5 : 0.5) / std::sqrt(largest);
  for (double& number : q) number *= scale;
  return q;
}

// False, with the header left as it is, if the matrix is more than a rotation and scales.
bool write_qform(const Affine& affine, NiftiHeader& header) {
  Columns rotation;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    rotation[axis] = affine.column(axis);
    const double size = length(rotation[axis]);
    for (double& number : rotation[axis]) number /= size;
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (std::abs(dot(rotation[axis], rotation[(axis + 1) % 3])) > kMostSkewed) return false;
  }
  const bool is_mirrored = determinant(affine) < 0;
  if (is_mirrored) {
    for (double& number : rotation[2]) number = -number;
  }
  const auto [a, b, c, d] = quaternion(rotation);
  header.quaternion = {b, c, d};
  header.pixdim[0] = is_mirrored ? -1 : 1;
  for (std::size_t i = 0; i < 3; ++i) header.qform_offset[i] = affine.rows[i][3];
  return true;
}

}  // namespace

Grid parse_placement(const NiftiHeader& header, const File& file, bool& forms_differ) {
  Grid grid{.size = {header.dim[1], header.dim[2], header.dim[3]}, .is_flat = header.dim[0] < 3};
  const double unit = mm_per_unit(header);
  const Affine by_qform = scaled(qform(header), unit);
  const Affine by_sform = scaled({header.sform_rows}, unit);
  const bool has_sform = header.sform_code > 0, has_qform = header.qform_code > 0;
  grid.voxel_to_world = has_sform   ? by_sform
                        : has_qform ? by_qform
                                    : scaled(unplaced(header), unit);
  grid.world_code = static_cast<int>(has_sform   ? header.sform_code
                                     : has_qform ? header.qform_code
                                                 : 0);
  const double volume = std::abs(determinant(grid.voxel_to_world));
  const Point sides = grid.spacing();
  if (!(volume > 1e-6 * sides[0] * sides[1] * sides[2])) {  // NaN too
    refuse(file, "its {} does not place the voxels in space: its numbers are {}",
        has_sform   ? "sform"
        : has_qform ? "qform"
                    : "pixdim",
        std::isnan(volume) ? "not all finite" : "those of a plane, a line or a point");
  }
  Grid other = grid;
  other.voxel_to_world = by_qform;
  forms_differ = has_sform && has_qform && !(grid_distance(grid, other) < kMaxGridDistance);
  return grid;
}

void write_placement(const Grid& grid, NiftiHeader& header) {
  const Point spacing = grid.spacing();
  header.pixdim[0] = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    header.dim[axis + 1] = grid.size[axis];
    header.pixdim[axis + 1] = spacing[axis];
  }
  header.units |= kMillimetres;
  const bool has_qform = write_qform(grid.voxel_to_world, header);
  header.qform_code = has_qform ? grid.world_code : 0;
  header.sform_code = grid.world_code;
  header.sform_rows = grid.voxel_to_world.rows;
}

}  // namespace similis::media
