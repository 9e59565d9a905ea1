// SPDX-License-Identifier: Apache-2.0
// The corners of a cell: their places in an image, and loads of all or some.
#pragma once

#include "src/warp/cuda/fast_path.cuh"

namespace similis::warp_internal {

/// The lines of an image on which a cell's corners lie. With three components a thread has more to
/// keep, so it keeps the distances from the first line to the others.
template <class L, class E> struct Lines {
  static constexpr int count = L::rank == 3 ? 4 : 2;
  const E* of[count];

  __device__ Lines(const E* plane, const FastStrides& s) {
#pragma unroll
    for (int line = 0; line < count; ++line) {
      of[line] = opaque(
          plane + (count == 4 ? (line % 2 ? s.y : 0) + (line / 2 ? s.z : 0) : (line ? s.z : 0)));
    }
  }
  __device__ const E* at(int line, int offset) const { return of[line] + offset; }
};
template <> struct Lines<Vectors, float> {
  static constexpr int count = 4;
  const float* first;
  int y, z;

  __device__ Lines(const float* plane, const FastStrides& s)
      : first(opaque(plane)), y(s.y), z(s.z) {}
  __device__ const float* at(int line, int offset) const {
    return first + (offset + (line % 2 ? y : 0) + (line / 2 ? z : 0));
  }
};

/// The corners of a cell by x, y, z, in one channel.
template <class L> struct Corners { float v[1 << L::rank]; };

template <class L, class E>
__device__ __forceinline__ Corners<L> load_corners(const Lines<L, E>& lines, int offset) {
  Corners<L> k;
#pragma unroll
  for (int line = 0; line < Lines<L, E>::count; ++line) {
    const E* first = lines.at(line, offset);
    k.v[2 * line] = load_float(first);
    k.v[2 * line + 1] = load_float(first + L::step);
  }
  return k;
}

/// Loads the corners in `which`, a bit each, and 0 for others.
template <class L, class E>
__device__ __forceinline__ Corners<L> load_corners(
    const Lines<L, E>& lines, int offset, unsigned which) {
  Corners<L> k;
#pragma unroll
  for (int i = 0; i < 1 << L::rank; ++i) {
    k.v[i] = which >> i & 1u ? load_float(lines.at(i / 2, offset) + (i % 2 ? L::step : 0)) : 0.0f;
  }
  return k;
}

__device__ __forceinline__ float mix(float f, float a, float b) { return fmaf(f, b - a, a); }

}  // namespace similis::warp_internal
