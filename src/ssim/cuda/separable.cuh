// SPDX-License-Identifier: Apache-2.0
// The parts of the separable kernels: the work they are given, and how a block loads a tile of a
// slice with the rim that its windows see and averages it across and down.
#pragma once

#include "src/ssim/cuda/finish.cuh"
#include "src/ssim/cuda/formula.cuh"

namespace similis::ssim_internal::separable {

constexpr int kThreads = 256;
constexpr int kDeepThreads = 128;
constexpr int kMostRadius = 5, kMostTaps = 2 * kMostRadius + 1;
constexpr int kWide = 64, kHigh = 32;  // a tile
constexpr int kAcross = 4, kDown = 8;  // outputs per thread in a row, and in a column
constexpr int kAverages = 4, kDerivatives = 3;
static_assert(kWide * kHigh == kThreads * kDown);

/// Constants that depend on the number of taps, 11 or 7 along each axis.
template <int the_radius> struct Taps {
  static constexpr int kRadius = the_radius, kTaps = 2 * kRadius + 1;
  // Windows of 11 see 1.5 times a tile's pixels, and those of 7 1.3 times.
  static constexpr int kSeenHigh = kHigh + 2 * kRadius, kSeenWide = kWide + 2 * kRadius;
  static constexpr int kPitch = kSeenWide + 2;  // rows begin at multiples of 16 bytes
  static_assert(kPitch % 4 == 0);
  // A thread loads kTimes columns in each of kSeenRows rows of the places that a tile's windows
  // see; 32 threads take neighbours in a row. Loads of several rows are under way at once.
  static constexpr int kTogether = 32, kTimes = (kSeenWide + kTogether - 1) / kTogether;
  static constexpr int kApart = kThreads / kTogether;  // distance between a thread's rows
  static constexpr int kSeenRows = (kSeenHigh + kApart - 1) / kApart;
  // Blocks of the flat kernel that a multiprocessor's shared memory holds, and whose registers it
  // has.
  static constexpr int kFlatBlocks = kRadius == 3 ? 5 : 4;
  using Seen = float[kSeenHigh][kPitch];
  using Half = float[kSeenHigh][kWide];
};

struct Work {
  Geometry geometry;
  gpu::View x, y, gradient;
  const float* middle = nullptr;  // of each plane, to shift s by; null: a voxel of x and y
  bool of_sums = false;           // x holds x + y, and y holds x - y
  float sign = 1;                 // sign of d: -1 for the gradient by y
  float taps[3][kMostTaps] = {};  // along z, y and x; as many as the kernel has
  Constants<float> constants = {};
  PlaneSlope slope;
  std::int64_t first_plane = 0, planes = 0;      // planes in memory
  std::int64_t slice0 = 0, slice1 = 0;           // slices whose windows and gradients are computed
  std::int64_t average0 = 0, average1 = 0;       // slices whose averages are
  float* averages = nullptr;                     // [4][planes][slices][map]
  float* derivatives = nullptr;                  // [3][planes][slices][map]; null without gradient
  double* partials = nullptr;                    // [planes][segments][blocks of columns]; or null
  int segment = 0;                               // slices that a thread of the deep kernel owns
  std::int64_t segments = 0, column_blocks = 0;  // of each plane
  Finish finish;                                 // of all planes

  explicit Work(const Geometry& g) : geometry(g) {}
  __device__ std::int64_t columns() const {
    return geometry.map_extent[1] * geometry.map_extent[2];
  }
  __device__ std::int64_t average_count() const {
    return planes * (average1 - average0) * columns();
  }
  __device__ std::int64_t derivative_count() const {
    return planes * (slice1 - slice0) * columns();
  }
};

__device__ __forceinline__ float load(const gpu::View& view, std::int64_t offset) {
  if (view.dtype == DType::f32) return static_cast<const float*>(view.data)[offset];
  return view.load_f32(offset);
}

// The first element of a plane in x and y, and the shift of its sums.
struct Plane {
  std::int64_t x, y;
  float half_shift;
  __device__ Plane(const Work& w, std::int64_t plane) {
    const auto image = static_cast<unsigned>(plane) / static_cast<unsigned>(w.geometry.channels);
    const std::int64_t channel = plane - image * w.geometry.channels;
    x = w.x.plane(image, channel);
    y = w.y.plane(image, channel);
    const float middle = w.middle != nullptr ? w.middle[plane] : middle_voxel(w);
    // A pixel that is not finite must reach only the windows that see it.
    half_shift = fabsf(middle) < INFINITY ? middle : 0.f;
  }
  __device__ float middle_voxel(const Work& w) const {
    const std::int64_t(&e)[3] = w.geometry.extent;
    const float middle_x = load(w.x, x + w.x.at(e[0] / 2, e[1] / 2, e[2] / 2));
    const float middle_y = load(w.y, y + w.y.at(e[0] / 2, e[1] / 2, e[2] / 2));
    return (w.of_sums ? middle_x : middle_x + middle_y) / 2;
  }
  __device__ float sum(const Work& w, float vx, float vy) const {
    return w.of_sums ? vx - 2 * half_shift : (vx - half_shift) + (vy - half_shift);
  }
  __device__ float difference(const Work& w, float vx, float vy) const {
    return w.of_sums ? vy : vx - vy;
  }
};

// A tile of a slice. There are fewer than 2³⁰ of them (see can_separate()), and 32-bit divisions
// take a fifth of the instructions.
struct SliceTile {
  std::int64_t plane, slice;  // counted from the first in memory
  std::int64_t y, x;          // of the tile's first element
  __device__ SliceTile(
      unsigned index, std::int64_t slices, std::int64_t height, std::int64_t width) {
    const auto across = static_cast<unsigned>((width + kWide - 1) / kWide);
    const auto down = static_cast<unsigned>((height + kHigh - 1) / kHigh);
    const unsigned row = index / across, at_slice = row / down;
    x = std::int64_t{index - row * across} * kWide;
    y = std::int64_t{row - at_slice * down} * kHigh;
    plane = at_slice / static_cast<unsigned>(slices);
    slice = at_slice - plane * slices;
  }
};

// The part of the places seen by a tile's windows that exists, along one axis.
struct SeenRange {
  int first;
  unsigned count;
  __device__ SeenRange(std::int64_t seen_from, std::int64_t extent, int seen)
      : first(static_cast<int>(seen_from < 0 ? -seen_from : 0)) {
    const auto end = static_cast<int>(extent - seen_from < seen ? extent - seen_from : seen);
    count = static_cast<unsigned>(end > first ? end - first : 0);
  }
  __device__ bool has(int i) const { return static_cast<unsigned>(i - first) < count; }
};

// Loads a thread's elements, 0 where none exists. `load` takes an offset; elements of the tile's
// array are `row_stride` and `column_stride` apart.
template <class L, int rows, class Load>
__device__ __forceinline__ void load_rows(int first, const SeenRange& y, const SeenRange& x,
    std::int64_t row_stride, std::int64_t column_stride, Load load,
    float (&values)[rows][L::kTimes]) {
  const int own_column = static_cast<int>(threadIdx.x) % L::kTogether;
  const int own_row = static_cast<int>(threadIdx.x) / L::kTogether + first * L::kApart;
  std::int64_t at = own_row * row_stride + own_column * column_stride;
#pragma unroll
  for (int i = 0; i < rows; ++i) {
#pragma unroll
    for (int k = 0; k < L::kTimes; ++k) {
      const bool exists = y.has(own_row + i * L::kApart) && x.has(own_column + k * L::kTogether);
      values[i][k] = exists ? load(at + k * L::kTogether * column_stride) : 0;
    }
    at += L::kApart * row_stride;
  }
}
template <class L, int rows>
__device__ __forceinline__ void store_rows(
    int first, const float (&values)[rows][L::kTimes], typename L::Seen& seen) {
  const int t = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    const int row = t / L::kTogether + (first + i) * L::kApart;
#pragma unroll
    for (int k = 0; k < L::kTimes; ++k) {
      const int column = t % L::kTogether + k * L::kTogether;
      if (row < L::kSeenHigh && column < L::kSeenWide) seen[row][column] = values[i][k];
    }
  }
}

// out[o] = Σ taps[k]·in[o + k]
template <class L, int outputs, int inputs>
__device__ __forceinline__ void average_some(
    const float (&in)[inputs], const float (&taps)[kMostTaps], float (&out)[outputs]) {
  static_assert(inputs >= outputs + 2 * L::kRadius);
#pragma unroll
  for (int o = 0; o < outputs; ++o) out[o] = taps[0] * in[o];
#pragma unroll
  for (int k = 1; k < L::kTaps; ++k) {
#pragma unroll
    for (int o = 0; o < outputs; ++o) out[o] = fmaf(taps[k], in[o + k], out[o]);
  }
}

__device__ __forceinline__ void store4(float* to, const float (&v)[kAcross]) {
  *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
}

// Averages the rows of `seen` across into half[0], and their squares into half[1] if asked for.
template <class L, bool with_squares>
__device__ __forceinline__ void average_rows(
    const typename L::Seen& seen, const float (&taps)[kMostTaps], typename L::Half* half) {
  constexpr int kTasks = kWide / kAcross;  // in a row
  constexpr int kChunks = (kAcross + 2 * L::kRadius + 3) / 4;
  for (int task = static_cast<int>(threadIdx.x); task < L::kSeenHigh * kTasks; task += kThreads) {
    const int row = task / kTasks, column = task % kTasks * kAcross;
    float in[4 * kChunks], out[kAcross];
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      const float4 some = *reinterpret_cast<const float4*>(&seen[row][column + 4 * j]);
      in[4 * j] = some.x;
      in[4 * j + 1] = some.y;
      in[4 * j + 2] = some.z;
      in[4 * j + 3] = some.w;
    }
    average_some<L>(in, taps, out);
    store4(&half[0][row][column], out);
    if constexpr (with_squares) {
#pragma unroll
      for (float& value : in) value *= value;
      average_some<L>(in, taps, out);
      store4(&half[1][row][column], out);
    }
  }
}

// Averages the kDown outputs of this thread down their column.
template <class L>
__device__ __forceinline__ void average_column(
    const typename L::Half& half, const float (&taps)[kMostTaps], float (&out)[kDown]) {
  const int column = static_cast<int>(threadIdx.x) % kWide;
  const int row = static_cast<int>(threadIdx.x) / kWide * kDown;
  float in[kDown + 2 * L::kRadius];
#pragma unroll
  for (int k = 0; k < kDown + 2 * L::kRadius; ++k) in[k] = half[row + k][column];
  average_some<L>(in, taps, out);
}

}  // namespace similis::ssim_internal::separable
