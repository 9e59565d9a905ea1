// SPDX-License-Identifier: Apache-2.0
// The inverse of x + u(x) at one voxel, for CPU and GPU: w with r = w + u(x + w) = 0.
//
//   w = -u(x); then w ← w - s·(1 + J)⁻¹·r, with J the derivative of u within the cell of x + w
//
// This is Newton's method, whose steps shorten r while they are short enough: s is halved, and the
// step taken back, where |r| did not shrink, and doubled, up to 1, where it did. A cell whose 1 + J
// is nearly singular, and one where the smallest s gains nothing, takes the fixed point's step
// w ← w - s·r. The field is continued at its border, where it does not change outwards.
//
// Lengths are compared in voxels. A displacement in voxels is added to a voxel's number as a whole
// number and a fraction, so that f32 is as exact far from voxel 0 as near it.
//
// The field may be some rows of a longer one along its last axis of coordinates, z, or y in 2D. A
// voxel that needs others gets an infinite residual.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/warp/formula.h"

namespace similis::fields_internal {

/// The field's grid, x, y, z, and when to stop.
template <class T> struct InverseOptions {
  int last[3];             // last voxel
  int start, last_row;     // first row of the field, and its number of rows less 1
  std::int64_t stride[3];  // of the field, in elements
  std::int64_t component;  // likewise
  T scale[3];              // voxels in a unit of u; 0 along an axis of one voxel
  T unit[3];               // scale, or 1 along such an axis
  T tolerance_squared;     // in voxels
  int iterations;
};

template <class T, int rank> struct Residual {
  T r[rank], by_w[rank][rank];  // by_w[i][a]: the derivative of u's component i by w's component a
  T norm_squared;               // in voxels
  bool is_complete;             // all rows are there
};

template <class T> SIMILIS_HOST_DEVICE T blend(T f, T a, T b) {
  return warp_internal::multiply_add(f, b - a, a);
}

/// load(offset) gives an element of the field. is_cut: the field may be a part of a longer one.
template <class T, int rank, bool is_cut, class Load>
SIMILIS_HOST_DEVICE Residual<T, rank> residual_at(
    const InverseOptions<T>& o, const int (&voxel)[3], const T (&w)[rank], const Load& load) {
  std::int64_t first = 0, beside[3] = {0, 0, 0};
  T f[3] = {0, 0, 0}, scale[3] = {0, 0, 0};
  bool is_complete = true;
  for (int a = 0; a < rank; ++a) {
    const T reach = static_cast<T>(o.last[a] + 2);
    T v = w[a] * o.scale[a];
    v = v > -reach ? v : -reach;  // NaN too: w itself makes the residual NaN
    v = v < reach ? v : reach;
    const T whole = floor(v);
    int cell = voxel[a] + static_cast<int>(whole);
    f[a] = v - whole;
    scale[a] = cell < 0 || cell >= o.last[a] ? 0 : o.scale[a];
    if (cell < 0) cell = 0, f[a] = 0;
    if (cell >= o.last[a]) cell = o.last[a], f[a] = 0;
    beside[a] = cell < o.last[a] ? o.stride[a] : 0;
    if (is_cut && a == rank - 1) {
      const bool has_next = cell < o.last[a];
      cell -= o.start;
      is_complete = cell >= 0 && cell + (has_next ? 1 : 0) <= o.last_row;
      if (!is_complete) cell = 0, beside[a] = 0;
    }
    first += cell * o.stride[a];
  }
  Residual<T, rank> result;
  result.is_complete = is_complete;
  result.norm_squared = 0;
  for (int i = 0; i < rank; ++i) {
    T value[2], by_x[2], by_y[2];
    for (int z = 0; z < rank - 1; ++z) {
      const std::int64_t at = first + i * o.component + z * beside[2];
      const T v0 = load(at), v1 = load(at + beside[0]), v2 = load(at + beside[1]),
              v3 = load(at + beside[1] + beside[0]);
      const T near = blend(f[0], v0, v1), far = blend(f[0], v2, v3);
      value[z] = blend(f[1], near, far);
      by_x[z] = blend(f[1], v1 - v0, v3 - v2);
      by_y[z] = far - near;
    }
    if constexpr (rank == 3) {
      result.by_w[i][2] = scale[2] * (value[1] - value[0]);
      value[0] = blend(f[2], value[0], value[1]);
      by_x[0] = blend(f[2], by_x[0], by_x[1]);
      by_y[0] = blend(f[2], by_y[0], by_y[1]);
    }
    result.by_w[i][0] = scale[0] * by_x[0];
    result.by_w[i][1] = scale[1] * by_y[0];
    result.r[i] = w[i] + value[0];
    const T voxels = result.r[i] * o.unit[i];
    result.norm_squared += voxels * voxels;
  }
  return result;
}

/// step = (1 + J)⁻¹·r; r itself where 1 + J is nearly singular.
template <class T, int rank>
SIMILIS_HOST_DEVICE void newton_step(const Residual<T, rank>& at, T (&step)[rank]) {
  constexpr T kSingular = static_cast<T>(1e-3);
  T m[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, r[3] = {0, 0, 0};
  for (int i = 0; i < rank; ++i) {
    for (int a = 0; a < rank; ++a) m[i][a] += at.by_w[i][a];
    r[i] = at.r[i];
  }
  const T c0 = m[1][1] * m[2][2] - m[1][2] * m[2][1], c1 = m[1][2] * m[2][0] - m[1][0] * m[2][2],
          c2 = m[1][0] * m[2][1] - m[1][1] * m[2][0];
  const T det = m[0][0] * c0 + m[0][1] * c1 + m[0][2] * c2;
  const bool is_regular = det > kSingular || det < -kSingular;
  const T by = is_regular ? 1 / det : 0;
  const T solved[3] = {(r[0] * c0 + r[1] * (m[0][2] * m[2][1] - m[0][1] * m[2][2]) +
                           r[2] * (m[0][1] * m[1][2] - m[0][2] * m[1][1])) *
                           by,
      (r[0] * c1 + r[1] * (m[0][0] * m[2][2] - m[0][2] * m[2][0]) +
          r[2] * (m[0][2] * m[1][0] - m[0][0] * m[1][2])) *
          by,
      (r[0] * c2 + r[1] * (m[0][1] * m[2][0] - m[0][0] * m[2][1]) +
          r[2] * (m[0][0] * m[1][1] - m[0][1] * m[1][0])) *
          by};
  for (int i = 0; i < rank; ++i) step[i] = is_regular ? solved[i] : r[i];
}

/// Finds w and returns |r|², in u's units, of the best w that it met.
template <class T, int rank, bool is_cut = false, class Load>
SIMILIS_HOST_DEVICE double invert_voxel(
    const InverseOptions<T>& o, const int (&voxel)[3], const Load& load, T (&w)[rank]) {
  constexpr T kLeast = static_cast<T>(1) / 64;
  std::int64_t own = 0;
  for (int a = 0; a < rank; ++a) own += voxel[a] * o.stride[a];
  if (is_cut) own -= o.start * o.stride[rank - 1];
  for (int i = 0; i < rank; ++i) w[i] = -load(own + i * o.component);
  Residual<T, rank> at = residual_at<T, rank, is_cut>(o, voxel, w, load);
  bool is_complete = at.is_complete;
  T norm_squared = at.norm_squared, r[rank], step[rank], length = 1;
  newton_step(at, step);
  for (int i = 0; i < rank; ++i) r[i] = at.r[i];
  for (int k = 0; k < o.iterations && norm_squared > o.tolerance_squared; ++k) {
    T other[rank];
    for (int i = 0; i < rank; ++i) other[i] = w[i] - length * step[i];
    at = residual_at<T, rank, is_cut>(o, voxel, other, load);
    is_complete &= at.is_complete;
    if (at.norm_squared < norm_squared) {
      norm_squared = at.norm_squared;
      newton_step(at, step);
      for (int i = 0; i < rank; ++i) w[i] = other[i], r[i] = at.r[i];
      length = length < 1 ? 2 * length : length;
    } else if (length > kLeast) {
      length /= 2;
    } else {
      length = 1;
      for (int i = 0; i < rank; ++i) step[i] = r[i];
    }
  }
  double result = 0;
  for (int i = 0; i < rank; ++i) result += static_cast<double>(r[i]) * static_cast<double>(r[i]);
  return !is_cut || is_complete ? result : static_cast<double>(INFINITY);
}

}  // namespace similis::fields_internal
