// SPDX-License-Identifier: Apache-2.0
// Affine maps of space in double: from voxels to the world, and between worlds.
#pragma once

#include <array>

namespace similis::media {

using Point = std::array<double, 3>;  ///< x, y, z

/// p ↦ the first three columns times p, plus the fourth.
struct Affine {
  std::array<std::array<double, 4>, 3> rows = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
  friend bool operator==(const Affine&, const Affine&) = default;

  Point operator()(const Point& p) const {
    Point image;
    for (std::size_t i = 0; i < 3; ++i) {
      image[i] = rows[i][0] * p[0] + rows[i][1] * p[1] + rows[i][2] * p[2] + rows[i][3];
    }
    return image;
  }
  Point column(std::size_t axis) const { return {rows[0][axis], rows[1][axis], rows[2][axis]}; }
};

/// First `inner`, then `outer`.
Affine operator*(const Affine& outer, const Affine& inner);

/// Determinant of the first three columns; NaN if one of the twelve numbers is not finite.
double determinant(const Affine& affine);

/// The determinant must not be 0.
Affine inverse(const Affine& affine);

/// Points in mm with the axes that ITK has (left, posterior, superior) from those that NIfTI has
/// (right, anterior, superior), and the other way round.
inline constexpr Affine kTurnRasLps = {{{{-1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, 1, 0}}}};

double length(const Point& p);
double distance(const Point& p, const Point& q);

}  // namespace similis::media
