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

/// The corners of a cell by x, y, z, in one channel; as memory has them if E is a half type. Halves
/// are converted where they are used: with a conversion behind each load the compiler kept 10 loads
/// in flight where it keeps 22 of f32.
template <class L, class E = float> struct Corners { E v[1 << L::rank]; };

template <class L> __device__ __forceinline__ const Corners<L>& in_f32(const Corners<L>& k) {
  return k;
}
template <class L, class E> __device__ __forceinline__ Corners<L> in_f32(const Corners<L, E>& k) {
  Corners<L> wide;
#pragma unroll
  for (int i = 0; i < 1 << L::rank; ++i) wide.v[i] = gpu::to_float(k.v[i]);
  return wide;
}

template <class L, class E>
__device__ __forceinline__ Corners<L, E> load_corners(const Lines<L, E>& lines, int offset) {
  Corners<L, E> k;
#pragma unroll
  for (int line = 0; line < Lines<L, E>::count; ++line) {
    const E* first = lines.at(line, offset);
    k.v[2 * line] = load_element(first);
    k.v[2 * line + 1] = load_element(first + L::step);
  }
  return k;
}

/// Loads the corners in `which`, a bit each, and 0 for others.
template <class L, class E>
__device__ __forceinline__ Corners<L, E> load_corners(
    const Lines<L, E>& lines, int offset, unsigned which) {
  Corners<L, E> k;
#pragma unroll
  for (int i = 0; i < 1 << L::rank; ++i) {
    k.v[i] = E{};
    if (which >> i & 1u) {
      k.v[i] = load_element(lines.at(i / 2, offset) + (i % 2 ? L::step : 0));
    }
  }
  return k;
}

__device__ __forceinline__ float mix(float f, float a, float b) { return fmaf(f, b - a, a); }

}  // namespace similis::warp_internal
