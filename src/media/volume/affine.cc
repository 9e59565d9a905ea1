// SPDX-License-Identifier: Apache-2.0
#include "src/media/volume/affine.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace similis::media {
namespace {

// Determinant of the matrix without this row and column, with its sign.
double cofactor(const Affine& a, std::size_t row, std::size_t column) {
  const std::size_t r1 = (row + 1) % 3, r2 = (row + 2) % 3;
  const std::size_t c1 = (column + 1) % 3, c2 = (column + 2) % 3;
  return a.rows[r1][c1] * a.rows[r2][c2] - a.rows[r1][c2] * a.rows[r2][c1];
}

}  // namespace

Affine operator*(const Affine& outer, const Affine& inner) {
  Affine product;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = j == 3 ? outer.rows[i][3] : 0;
      for (std::size_t k = 0; k < 3; ++k) sum += outer.rows[i][k] * inner.rows[k][j];
      product.rows[i][j] = sum;
    }
  }
  return product;
}

double determinant(const Affine& affine) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const auto& row : affine.rows) {
    for (const double number : row) {
      if (!std::isfinite(number)) return kNone;
    }
  }
  double sum = 0;
  for (std::size_t j = 0; j < 3; ++j) sum += affine.rows[0][j] * cofactor(affine, 0, j);
  return std::isfinite(sum) ? sum : kNone;
}

Affine inverse(const Affine& affine) {
  const double scale = 1 / determinant(affine);
  Affine result;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) result.rows[i][j] = cofactor(affine, j, i) * scale;
  }
  for (auto& row : result.rows) {
    row[3] =
        -(row[0] * affine.rows[0][3] + row[1] * affine.rows[1][3] + row[2] * affine.rows[2][3]);
  }
  return result;
}

double length(const Point& p) { return std::hypot(p[0], p[1], p[2]); }

double distance(const Point& p, const Point& q) {
  return length({p[0] - q[0], p[1] - q[1], p[2] - q[2]});
}

}  // namespace similis::media
