// SPDX-License-Identifier: Apache-2.0
// Images whose true map is known, for the tests of registration.
#pragma once

#include <cmath>

#include "similis/register.hpp"
#include "src/registration/geometry.h"
#include "src/registration/passes.h"
#include "tests/arrays.h"

namespace similis::registration_internal {

// Soft blobs of several brightnesses at fixed places of the world, millimetres.
struct Blob {
  Point at;
  double radius, value;
};

inline std::vector<Blob> blobs(int rank, std::uint32_t seed) {
  std::vector<Blob> result;
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto next = [&](std::int64_t k) { return 2 * test::uniform(seed, 7 * i + k) - 1; };
    result.push_back({{50 * next(0), 40 * next(1), rank == 3 ? 45 * next(2) : 0},
        7 + 6 * test::uniform(seed, 7 * i + 3), 0.3 + test::uniform(seed, 7 * i + 4)});
  }
  return result;
}

inline double brightness(const std::vector<Blob>& all, const Point& p) {
  const double body = 1 / (1 + std::exp((std::hypot(p[0] / 65, p[1] / 55, p[2] / 60) - 1) * 12));
  double value = 0.6 * body;
  for (const Blob& blob : all) {
    const Point d = p - blob.at;
    value += body * blob.value *
             std::exp(-(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) / (2 * blob.radius * blob.radius));
  }
  return value;
}

inline Grid grid_of(int rank, std::array<std::int64_t, 3> size, const Point& spacing) {
  Grid grid{.rank = rank, .size = size};
  if (rank == 2) grid.size[2] = 1;
  for (int a = 0; a < rank; ++a) {
    const auto axis = static_cast<std::size_t>(a);
    grid.to_world.linear(a, a) = spacing[axis];
    grid.to_world.shift[axis] = -spacing[axis] * static_cast<double>(size[axis] - 1) / 2;
  }
  return grid;
}

// The image that shows at point p what lies at back(p).
template <class Back>
Volume image_of(const Grid& grid, const std::vector<Blob>& all, const Back& back, Tensor& memory) {
  memory = allocate(grid.image_shape(1), DType::f32);
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const Point voxel = {static_cast<double>(i % grid.size[0]),
        static_cast<double>(i / grid.size[0] % grid.size[1]),
        static_cast<double>(i / grid.size[0] / grid.size[1])};
    memory.elements<float>()[i] =
        static_cast<float>(100 * brightness(all, back(grid.to_world(voxel))));
  }
  return {memory, rows_of(grid.to_world)};
}

// The mean distance from T(p) to truth(p) in millimetres, over the body.
template <class Truth>
double error_of(const Registration& r, const Grid& grid, const Truth& truth) {
  const Map affine = map_of(r.affine);
  double sum = 0, count = 0;
  for (std::int64_t i = 0; i < grid.voxels(); ++i) {
    const Point voxel = {static_cast<double>(i % grid.size[0]),
        static_cast<double>(i / grid.size[0] % grid.size[1]),
        static_cast<double>(i / grid.size[0] / grid.size[1])};
    Point p = grid.to_world(voxel);
    if (std::hypot(p[0] / 65, p[1] / 55, p[2] / 60) > 0.95) continue;
    const Point wanted = truth(p);
    if (!r.displacement.empty()) {
      for (int a = 0; a < grid.rank; ++a) {
        p[static_cast<std::size_t>(a)] +=
            static_cast<double>(r.displacement.elements<float>()[i * grid.rank + a]);
      }
    }
    const Point d = affine(p) - wanted;
    sum += std::hypot(d[0], d[1], d[2]);
    count += 1;
  }
  return sum / count;
}

// A field in voxels from one in millimetres, on a grid along the world's axes.
inline Tensor in_voxels(const Grid& grid, const Tensor& mm) {
  const Tensor u = allocate(mm.shape, DType::f32);
  const Point spacing = grid.spacing();
  for (std::int64_t i = 0; i < mm.shape.count(); ++i) {
    const auto axis = static_cast<std::size_t>(i % grid.rank);
    u.elements<float>()[i] = mm.elements<float>()[i] / static_cast<float>(spacing[axis]);
  }
  return u;
}

inline double corner_minimum(const Grid& grid, const Tensor& mm) {
  const Tensor u = in_voxels(grid, mm);
  return corner_determinants(
      GridRows(grid), u.elements<float>(), {.size = grid.size}, 0, nullptr, {})
      .least;
}

// A turn by degrees about each axis, in which order does not matter here.
inline Map turned(int rank, double degrees, const Point& shift) {
  Matrix generator = 0.0 * Matrix();
  const double angle = degrees * M_PI / 180;
  generator(1, 0) = angle;
  generator(0, 1) = -angle;
  if (rank == 3) {
    generator(2, 1) = angle / 2;
    generator(1, 2) = -angle / 2;
  }
  return {exponential(generator), shift};
}

inline Point waved(const Point& p, int rank) {
  const double size = 4;
  return {p[0] + size * std::sin(p[1] / 22 + 0.4), p[1] + size * std::cos(p[0] / 25),
      p[2] + (rank == 3 ? size * std::sin((p[0] + p[1]) / 28) : 0)};
}

}  // namespace similis::registration_internal
