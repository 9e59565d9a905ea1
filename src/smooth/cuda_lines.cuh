// SPDX-License-Identifier: Apache-2.0
// Weighted sums along a line of values that a block holds in shared memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/gpu/cuda/view.h"
#include "src/smooth/cuda_parts.h"

namespace similis::smooth_internal {

constexpr int kRun = 8;  // outputs of a line that a thread computes at once
// Radii that the compiler knows, of registration's gradients: σ = 3, and up to 4 where images are
// noisy. Lines of smooth_field() with a radius up to 2 less have taps of 0 beyond their own.
constexpr int kKnownRadius = 9, kWideRadius = 12;

// The first `count` of a run's sums, `stride` apart.
__device__ __forceinline__ void store_run(const Elements& to, std::int64_t offset,
    std::int64_t stride, int count, const float (&sums)[kRun]) {
  if (to.dtype != DType::f32) {
    for (int o = 0; o < min(count, kRun); ++o) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kRun; ++i) sum = i == o ? sums[i] : sum;
      gpu::store_element(to.data, to.dtype, offset + o * stride, static_cast<double>(sum));
    }
    return;
  }
  float* place = static_cast<float*>(to.data) + offset;
  if (count >= kRun) {
#pragma unroll
    for (int o = 0; o < kRun; ++o, place += stride) *place = sums[o];
    return;
  }
#pragma unroll
  for (int o = 0; o < kRun; ++o, place += stride) {
    if (o < count) *place = sums[o];
  }
}

// Weights of a line. An adjoint of replicated values adds what lies outside to the outermost
// output: tails[k] is the sum of the weights of k and beyond.
struct Line {
  int radius;
  float taps[kMostRadius + 1], tails[kMostRadius + 1];
};

// radius: at least that of the taps, which are 0 beyond it.
inline Line line_of(const std::vector<double>& taps, int radius) {
  Line line{.radius = radius, .taps = {}, .tails = {}};
  const std::vector<double> tails = tails_of(taps);
  for (std::size_t k = 0; k < taps.size(); ++k) {
    line.taps[k] = static_cast<float>(taps[k]);
    line.tails[k] = static_cast<float>(tails[k]);
  }
  return line;
}

// The rows of a stripe, a multiple of kRun: all, or fewer where blocks would leave the device idle.
inline int stripe_of(std::int64_t extent, std::int64_t blocks, Device device) {
  constexpr int kLeast = 32, kBlocks = 8;  // of a multiprocessor
  const std::int64_t wanted = std::int64_t{kBlocks} * gpu::limits(device).multiprocessors;
  const std::int64_t stripes = std::min((wanted + blocks - 1) / blocks, extent / kLeast);
  const std::int64_t rows =
      (extent + std::max<std::int64_t>(stripes, 1) - 1) / std::max<std::int64_t>(stripes, 1);
  return static_cast<int>((rows + kRun - 1) / kRun * kRun);
}

// A line of values in shared memory, `pitch` apart; 0: only the launch knows how far.
template <int pitch> struct Run {
  const float* values;
  int given_pitch;

  __device__ int step() const { return pitch > 0 ? pitch : given_pitch; }
  __device__ const float* block(int number) const { return values + number * (kRun * step()); }
  __device__ float operator[](int i) const { return values[i * step()]; }
};

// The same in blocks of kRun that go round in a ring.
template <int pitch> struct Ring {
  const float* values;
  int blocks, first;  // of the ring; the line's first

  __device__ static constexpr int step() { return pitch; }
  __device__ const float* block(int number) const {
    const int slot = first + number;
    return values + (slot < blocks ? slot : slot - blocks) * (kRun * pitch);
  }
  __device__ float operator[](int i) const { return block(i / kRun)[i % kRun * pitch]; }
};

// Sets sum[o] = Σ_k t_|k| values[o + r + k], |k| ≤ r, for o < kRun. radius: r, or 0 where it is not
// known to the compiler.
template <int radius, class Values>
__device__ __forceinline__ void smooth_run(
    const Line& line, const Values& values, float (&sum)[kRun]) {
#pragma unroll
  for (int o = 0; o < kRun; ++o) sum[o] = 0;
  if constexpr (radius > 0) {
#pragma unroll
    for (int block = 0; block < (2 * radius + 2 * kRun - 1) / kRun; ++block) {
      const float* const of_block = values.block(block);
#pragma unroll
      for (int j = 0; j < kRun; ++j) {
        const int i = block * kRun + j;
        if (i >= 2 * radius + kRun) continue;
        const float value = of_block[j * values.step()];
#pragma unroll
        for (int o = 0; o < kRun; ++o) {
          const int k = i - o - radius;
          if (k >= -radius && k <= radius) sum[o] = fmaf(line.taps[k < 0 ? -k : k], value, sum[o]);
        }
      }
    }
    return;
  }
  const int last = 2 * line.radius, count = last + kRun;
  float weights[kRun] = {};  // of tap k at k modulo kRun
  for (int block = 0; block < count; block += kRun) {
    const bool is_inner = block > 0 && block + kRun - 1 <= last;
    const float* const of_block = values.block(block / kRun);
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
      const int i = block + j;
      if (i >= count) break;
      weights[j] = i <= last ? line.taps[i < line.radius ? line.radius - i : i - line.radius] : 0;
      const float value = of_block[j * values.step()];
#pragma unroll
      for (int o = 0; o < kRun; ++o) {
        if (is_inner || (i >= o && i - o <= last)) {
          sum[o] = fmaf(weights[(j - o) & (kRun - 1)], value, sum[o]);
        }
      }
    }
  }
}

// The outermost output of an adjoint; at(k): the value k voxels inside.
template <class At> __device__ float folded_sum(const Line& line, int extent, const At& at) {
  if (extent == 1) return at(0);
  float sum = 0;
  for (int k = 0; k <= line.radius && k < extent; ++k) sum = fmaf(line.tails[k], at(k), sum);
  return sum;
}

}  // namespace similis::smooth_internal
