// SPDX-License-Identifier: Apache-2.0
// Passes over dense images and fields in f32, on the CPU. Sums are of rows, added in their order,
// so that bits do not depend on threads. Images of one voxel a mask may be empty: all voxels count.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/execution.hpp"
#include "src/registration/geometry.h"

namespace similis::registration_internal {

/// The rows of a grid, x fastest.
struct GridRows {
  std::array<std::int64_t, 3> size = {1, 1, 1};
  int rank = 3;

  explicit GridRows(const Grid& grid) : size(grid.size), rank(grid.rank) {}
  std::int64_t count() const { return size[1] * size[2]; }
};

/// weights[i] = 1 where the voxel map moves voxel i + u(i) into `size_to` and mask is not 0, else
/// 0. Returns their number. u: empty for 0; mask: empty for 1.
std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, const float* u,
    const float* mask, float* weights, const Execution& exec);

/// weights[i] is set to 0 where value[i] < least. Returns how many are left.
std::int64_t drop_below(
    const GridRows& rows, const float* value, float least, float* weights, const Execution& exec);

struct Moments {
  double count = 0, f = 0, j = 0, ff = 0, jj = 0, fj = 0;
};
/// Sums over the voxels that count. weights: empty for 1.
Moments moments(const GridRows& rows, const float* f, const float* j, const float* weights,
    const Execution& exec);

/// gradient += w·(by_f·(f - mean_f) + by_j·(j - mean_j)).
struct LinearGradient {
  float by_f, mean_f, by_j, mean_j;
};
void add_gradient(const GridRows& rows, const float* f, const float* j, const float* weights,
    const LinearGradient& by, float* gradient, const Execution& exec);

/// a += factor·b, of `count` elements.
void add_scaled(std::int64_t count, float factor, const float* b, float* a, const Execution& exec);

/// a += m·(b - a) for each of `components` of a voxel.
void blend(std::int64_t voxels, int components, const float* m, const float* b, float* a,
    const Execution& exec);

/// The largest squared norm of a vector; NaN if one is.
double largest_square(const GridRows& rows, const float* field, const Execution& exec);

/// out = factor·in, of `count` elements.
void scale(std::int64_t count, float factor, const float* in, float* out, const Execution& exec);

/// The least of the 2ⁿ determinants of one-sided differences of x + u(x) at each voxel of the box
/// from `first` on; at the border the difference that is missing is that to the other side.
struct Box {
  std::array<std::int64_t, 3> first = {0, 0, 0}, size = {1, 1, 1};
};
struct Determinants {
  double least = 0;      ///< NaN if one is
  std::int64_t bad = 0;  ///< number that is not `accepted` or more
  Box around;            ///< the bad ones; read if there are any
};
/// flags: 1 at bad voxels of the box, 0 at others; dense over the box; may be null.
Determinants corner_determinants(const GridRows& rows, const float* u, const Box& box,
    double accepted, float* flags, const Execution& exec);

}  // namespace similis::registration_internal
