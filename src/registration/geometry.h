// SPDX-License-Identifier: Apache-2.0
// Points, affine maps and grids of registration. A picture is a volume of one slice whose z stays
// as it is, so that all of it is written once.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "similis/register.hpp"

namespace similis::registration_internal {

using Point = std::array<double, 3>;

struct Matrix {
  std::array<Point, 3> rows = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

  double& operator()(int r, int c) {
    return rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)];
  }
  double operator()(int r, int c) const {
    return rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)];
  }
};

Matrix operator*(const Matrix& a, const Matrix& b);
Point operator*(const Matrix& a, const Point& p);
Matrix operator*(double factor, const Matrix& a);
Matrix operator+(const Matrix& a, const Matrix& b);
Point operator+(const Point& a, const Point& b);
Point operator-(const Point& a, const Point& b);
double determinant(const Matrix& a);
/// Returns true if the matrix flattens space, up to rounding, whatever the unit of length.
bool is_singular(const Matrix& a);
Matrix inverse(const Matrix& a);
Matrix transposed(const Matrix& a);
/// e^a, by scaling and squaring.
Matrix exponential(const Matrix& a);

/// p ↦ linear·p + shift.
struct Map {
  Matrix linear;
  Point shift = {0, 0, 0};

  Point operator()(const Point& p) const { return linear * p + shift; }
};
/// First b, then a.
Map operator*(const Map& a, const Map& b);
Map inverse(const Map& a);
Map map_of(const AffineRows& rows);
AffineRows rows_of(const Map& map);

struct Grid {
  int rank = 3;
  std::array<std::int64_t, 3> size = {1, 1, 1};  ///< x, y, z
  Map to_world;
  Device device = {};  ///< where its images and fields are

  std::int64_t voxels() const { return size[0] * size[1] * size[2]; }
  /// Millimetres between neighbours; 1 along an axis that it lacks.
  Point spacing() const;
  /// The largest side in mm.
  double extent() const;
  double smallest_spacing() const;
  Point centre() const;
  /// [1,C,Y,X] or [1,C,Z,Y,X], and [1,Y,X,2] or [1,Z,Y,X,3].
  Extents image_shape(std::int64_t channels) const;
  Extents field_shape() const;
};

/// The grid of an image [1,C,Y,X] or [1,C,Z,Y,X]. The world of a picture is its plane.
Grid grid_of(const Volume& volume);

/// The grid whose spacing is about `millimetres`, nowhere finer than the given one, about the same
/// centre, of 16 voxels or more along each axis that has as many.
Grid coarsened(const Grid& grid, double millimetres);

/// The map of voxel numbers of one grid to those of the other that a map of the world makes.
Map between_voxels(const Grid& from, const Map& map, const Grid& to);
/// The same for a metric's derivative. Places are often voxels exactly: before the first step, and
/// where fields are rounded. Each device's rounding would choose on which side of them the slope is
/// taken, so a shift that is larger than f32's rounding makes it the one behind.
Map between_cells(const Grid& from, const Map& map, const Grid& to);

/// Places that are so many voxels outside of a grid count as inside: rounding must not take the
/// outermost voxels away.
constexpr double kSlack = 1e-3;

/// The numbers of sample()'s matrices for such a map of voxels: [1,d,d+1] for coordinates, and
/// [1,d,d] for displacements in voxels of `from`.
std::vector<double> coordinate_numbers(const Map& voxels, const Grid& from, const Grid& to);
std::vector<double> displacement_numbers(const Map& voxels, const Grid& to);

}  // namespace similis::registration_internal
