// SPDX-License-Identifier: Apache-2.0
// The cell of the moving image that a voxel of the fixed one meets; in f32 its place is off by some
// 1e-5 voxels at most.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/gpu/cuda/vendor.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/levels.h"

namespace similis::registration_internal::cuda {
namespace {

template <class T> constexpr T kInside = static_cast<T>(kInsideMask);

template <class T> struct Cell {
  int first[3];    // corner before the place
  T fraction[3];   // behind it
  bool is_inside;  // of the moving grid, as weigh_inside() has it

  // moved: x + u(x), in voxels of the fixed grid.
  __device__ __forceinline__ Cell(const Volumes<T>& p, const T (&moved)[3]) {
    is_inside = true;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const T place = fma(
          p.by[a][0], moved[0], fma(p.by[a][1], moved[1], fma(p.by[a][2], moved[2], p.start[a])));
      is_inside = is_inside && place >= -static_cast<T>(kSlack) && place <= p.inside[a];
      const int whole = static_cast<int>(floor(place));
      fraction[a] = place - static_cast<T>(whole);
      first[a] = whole;
    }
  }

  // The 8 corners of the cell, x fastest; 0 outside of the grid, and everywhere for a cell that is
  // not inside.
  __device__ __forceinline__ void load(const Volumes<T>& p, const T* image, T (&corner)[8]) const {
    const int by_y = p.moving_size[0], by_z = by_y * p.moving_size[1];
    const auto corner_at = [&](int k) {
      const int row = (first[2] + (k >> 2)) * by_z + (first[1] + (k >> 1 & 1)) * by_y + first[0];
      return __ldg(image + row + (k & 1));
    };
    bool is_whole = true;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const auto last = static_cast<unsigned>(p.moving_size[a] - 1);
      is_whole = is_whole && static_cast<unsigned>(first[a]) < last;
    }
    if (is_whole) {
#pragma unroll
      for (int k = 0; k < 8; ++k) corner[k] = corner_at(k);
      return;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) corner[k] = 0;
    if (!is_inside) return;
    // Without a loop, a warp at the image's side waits for one load and not for 8 in turn.
    bool exists[3][2];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      exists[a][0] = first[a] >= 0;
      exists[a][1] = first[a] + 1 < p.moving_size[a];
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (exists[0][k & 1] && exists[1][k >> 1 & 1] && exists[2][k >> 2]) corner[k] = corner_at(k);
    }
  }

  __device__ __forceinline__ T value(const Volumes<T>& p, const T* image) const {
    T corner[8];
    load(p, image, corner);
    return value(corner);
  }
  __device__ __forceinline__ T value(const T (&corner)[8]) const {
    const auto mix = [](T a, T b, T f) { return fma(f, b - a, a); };
    const T y0 = mix(mix(corner[0], corner[1], fraction[0]), mix(corner[2], corner[3], fraction[0]),
                fraction[1]),
            y1 = mix(mix(corner[4], corner[5], fraction[0]), mix(corner[6], corner[7], fraction[0]),
                fraction[1]);
    return mix(y0, y1, fraction[2]);
  }

  // The derivative of the value by the place.
  __device__ __forceinline__ void place_slope(const T (&corner)[8], T (&by_place)[3]) const {
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int step = 1 << a, b = (a + 1) % 3, c = (a + 2) % 3;
      const auto difference = [&](int k) { return corner[k + step] - corner[k]; };
      const int by_b = 1 << b, by_c = 1 << c;
      const T low = fma(fraction[b], difference(by_b) - difference(0), difference(0)),
              high = fma(fraction[b], difference(by_b + by_c) - difference(by_c), difference(by_c));
      by_place[a] = fma(fraction[c], high - low, low);
    }
  }

  // The derivative of the value by the displacement of the fixed voxel.
  __device__ __forceinline__ void slope(
      const Volumes<T>& p, const T (&corner)[8], T (&by_u)[3]) const {
    T by_place[3];
    place_slope(corner, by_place);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      by_u[c] =
          fma(by_place[0], p.by[0][c], fma(by_place[1], p.by[1][c], by_place[2] * p.by[2][c]));
    }
  }
};

}  // namespace
}  // namespace similis::registration_internal::cuda
