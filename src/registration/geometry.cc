// SPDX-License-Identifier: Apache-2.0
#include "src/registration/geometry.h"

#include <algorithm>

namespace similis::registration_internal {

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix result;
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) {
      result(r, c) = a(r, 0) * b(0, c) + a(r, 1) * b(1, c) + a(r, 2) * b(2, c);
    }
  }
  return result;
}

Point operator*(const Matrix& a, const Point& p) {
  Point result{};
  for (std::size_t r = 0; r < 3; ++r) {
    result[r] = a.rows[r][0] * p[0] + a.rows[r][1] * p[1] + a.rows[r][2] * p[2];
  }
  return result;
}

Matrix operator*(double factor, const Matrix& a) {
  Matrix result = a;
  for (Point& row : result.rows) {
    for (double& number : row) number *= factor;
  }
  return result;
}

Matrix operator+(const Matrix& a, const Matrix& b) {
  Matrix result = a;
  for (std::size_t r = 0; r < 3; ++r) result.rows[r] = a.rows[r] + b.rows[r];
  return result;
}

Point operator+(const Point& a, const Point& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Point operator-(const Point& a, const Point& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

namespace {

double cofactor(const Matrix& a, int r, int c) {
  const int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
  return a(r1, c1) * a(r2, c2) - a(r1, c2) * a(r2, c1);
}

}  // namespace

double determinant(const Matrix& a) {
  return a(0, 0) * cofactor(a, 0, 0) + a(0, 1) * cofactor(a, 0, 1) + a(0, 2) * cofactor(a, 0, 2);
}

bool is_singular(const Matrix& a) {
  constexpr double kLeast = 1e-12;  // share of the volume that columns at right angles span
  double most = 1;
  for (int c = 0; c < 3; ++c) most *= std::hypot(a(0, c), a(1, c), a(2, c));
  return !(std::abs(determinant(a)) > kLeast * most);
}

Matrix inverse(const Matrix& a) {
  Matrix result;
  const double by = 1 / determinant(a);
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) result(r, c) = by * cofactor(a, c, r);
  }
  return result;
}

Matrix transposed(const Matrix& a) {
  Matrix result;
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) result(r, c) = a(c, r);
  }
  return result;
}

Matrix exponential(const Matrix& a) {
  constexpr int kSquarings = 10, kTerms = 12;
  const Matrix small = std::ldexp(1.0, -kSquarings) * a;
  Matrix result, term;
  for (int k = 1; k <= kTerms; ++k) {
    term = (1.0 / k) * (term * small);
    result = result + term;
  }
  for (int k = 0; k < kSquarings; ++k) result = result * result;
  return result;
}

Map operator*(const Map& a, const Map& b) { return {a.linear * b.linear, a(b.shift)}; }

Map inverse(const Map& a) {
  Map result{inverse(a.linear)};
  const Point shift = result.linear * a.shift;
  result.shift = {-shift[0], -shift[1], -shift[2]};
  return result;
}

Map map_of(const AffineRows& rows) {
  Map map;
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) map.linear.rows[r][c] = rows[4 * r + c];
    map.shift[r] = rows[4 * r + 3];
  }
  return map;
}

AffineRows rows_of(const Map& map) {
  AffineRows rows;
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) rows[4 * r + c] = map.linear.rows[r][c];
    rows[4 * r + 3] = map.shift[r];
  }
  return rows;
}

Point Grid::spacing() const {
  Point result{};
  for (std::size_t c = 0; c < 3; ++c) {
    const auto& rows = to_world.linear.rows;
    result[c] = std::hypot(rows[0][c], rows[1][c], rows[2][c]);
  }
  return result;
}

double Grid::extent() const {
  const Point millimetres = spacing();
  double result = 0;
  for (std::size_t a = 0; a < static_cast<std::size_t>(rank); ++a) {
    result = std::max(result, static_cast<double>(size[a]) * millimetres[a]);
  }
  return result;
}

double Grid::smallest_spacing() const {
  const Point millimetres = spacing();
  return *std::min_element(millimetres.begin(), millimetres.begin() + rank);
}

Point Grid::centre() const {
  Point middle{};
  for (std::size_t a = 0; a < 3; ++a) middle[a] = static_cast<double>(size[a] - 1) / 2;
  return to_world(middle);
}

Extents Grid::image_shape(std::int64_t channels) const {
  if (rank == 2) return {1, channels, size[1], size[0]};
  return {1, channels, size[2], size[1], size[0]};
}

Extents Grid::field_shape() const {
  if (rank == 2) return {1, size[1], size[0], 2};
  return {1, size[2], size[1], size[0], 3};
}

Grid grid_of(const Volume& volume) {
  Grid grid{.rank = volume.data.shape.rank() - 2,
      .to_world = map_of(volume.to_world),
      .device = volume.data.device};
  for (int a = 0; a < grid.rank; ++a) {
    grid.size[static_cast<std::size_t>(a)] = volume.data.shape[grid.rank + 1 - a];
  }
  if (grid.rank == 2) {
    auto& rows = grid.to_world.linear.rows;
    rows[0][2] = rows[1][2] = rows[2][0] = rows[2][1] = 0;
    rows[2][2] = 1;
    grid.to_world.shift[2] = 0;
  }
  return grid;
}

Grid coarsened(const Grid& grid, double millimetres) {
  constexpr std::int64_t kFewest = 16;
  Grid result = grid;
  const Point own = grid.spacing();
  Point middle{};
  for (std::size_t a = 0; a < static_cast<std::size_t>(grid.rank); ++a) {
    const auto extent = static_cast<double>(grid.size[a]);
    const auto wanted =
        static_cast<std::int64_t>(std::round(extent / std::max(1.0, millimetres / own[a])));
    result.size[a] = std::max(wanted, std::min(grid.size[a], kFewest));
    const double shrink = extent / static_cast<double>(result.size[a]);
    for (Point& row : result.to_world.linear.rows) row[a] *= shrink;
    middle[a] = static_cast<double>(result.size[a] - 1) / 2;
  }
  result.to_world.shift = grid.centre() - result.to_world.linear * middle;
  return result;
}

Map between_voxels(const Grid& from, const Map& map, const Grid& to) {
  return inverse(to.to_world) * map * from.to_world;
}

Map between_cells(const Grid& from, const Map& map, const Grid& to) {
  constexpr double kShift = 1e-4;  // no sum of negative powers of 2, as rounded fields are
  Map result = between_voxels(from, map, to);
  for (std::size_t a = 0; a < static_cast<std::size_t>(to.rank); ++a) result.shift[a] += kShift;
  return result;
}

namespace {

// Coordinates of sample() per voxel, and voxels per coordinate.
double unit(const Grid& grid, std::size_t axis) {
  return grid.size[axis] == 1 ? 0 : 2 / static_cast<double>(grid.size[axis] - 1);
}
double half(const Grid& grid, std::size_t axis) {
  return static_cast<double>(grid.size[axis] - 1) / 2;
}

}  // namespace

std::vector<double> coordinate_numbers(const Map& voxels, const Grid& from, const Grid& to) {
  const auto rank = static_cast<std::size_t>(from.rank);
  std::vector<double> numbers;
  for (std::size_t r = 0; r < rank; ++r) {
    double shift = voxels.shift[r];
    for (std::size_t c = 0; c < rank; ++c) {
      numbers.push_back(unit(to, r) * voxels.linear.rows[r][c] * half(from, c));
      shift += voxels.linear.rows[r][c] * half(from, c);
    }
    numbers.push_back(to.size[r] == 1 ? 0 : unit(to, r) * shift - 1);
  }
  return numbers;
}

std::vector<double> displacement_numbers(const Map& voxels, const Grid& to) {
  const auto rank = static_cast<std::size_t>(to.rank);
  std::vector<double> numbers;
  for (std::size_t r = 0; r < rank; ++r) {
    for (std::size_t c = 0; c < rank; ++c)
      numbers.push_back(unit(to, r) * voxels.linear.rows[r][c]);
  }
  return numbers;
}

}  // namespace similis::registration_internal
