// SPDX-License-Identifier: Apache-2.0
// Motion on the GPU: one launch takes all frames of a batch. A block takes a tile of 8 rows and 252
// columns:
//   12 differences of a column ─> 8 sums down           registers, shared
//   5 of those in a row        ─> magnitudes            sums
// A pixel takes 10 products, of which 5 are in 64 bits, reads 2 B (12 rows for 8: the second-level
// cache serves them), and writes nothing. Here are also the copy of the frames that a later batch
// looks back at, and the search for samples beyond their depth: 4 B a pixel of words.
#include <type_traits>

#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/vendor.h"
#include "src/vmaf/cuda/sums.cuh"
#include "src/vmaf/motion/cuda.h"

namespace similis::vmaf_internal {
namespace {

constexpr int kThreads = 256, kRadius = 2, kRows = 8, kColumns = kThreads - 2 * kRadius;
constexpr int kOuter = 3571, kInner = 16004, kCentre = 26386;

struct MotionPass {
  GpuPairs pairs;
  const void* earlier[kMotionLags];
  bool lags[kMotionLags];
  int tiles;
  GpuSum* sums;
};

__device__ inline int mirrored(int index, int extent) {
  if (index < 0) index = -index;
  if (index >= extent) index = 2 * (extent - 1) - index;
  return index < 0 ? 0 : index;
}

template <class Sum> __device__ __forceinline__ int filtered(const int* values, int shift) {
  const Sum sum = kOuter * (static_cast<Sum>(values[0]) + values[4]) +
                  kInner * (static_cast<Sum>(values[1]) + values[3]) +
                  kCentre * static_cast<Sum>(values[2]);
  return static_cast<int>((sum + (Sum{1} << (shift - 1))) >> shift);
}

// A block takes a tile of blockIdx.x of frame blockIdx.y, for the lag of blockIdx.z.
template <class Sample>
__global__ __launch_bounds__(kThreads) void motion_kernel(
    SIMILIS_GRID_CONSTANT const MotionPass pass) {
  // Differences of bytes, times taps, have 25 bits.
  using Down = std::conditional_t<std::is_same_v<Sample, std::uint8_t>, int, long long>;
  __shared__ int down[kRows][kThreads];
  __shared__ GpuSum room[kThreads / gpu::kSubgroup * kSumsAtOnce];
  const GpuPairs& p = pass.pairs;
  const int lag = static_cast<int>(blockIdx.z);
  const std::int64_t frame = blockIdx.y, before = frame - lag - 1;
  const auto* const now =
      static_cast<const Sample*>(p.reference.samples) + frame * p.reference.image_stride;
  const Sample* then = now + (before - frame) * p.reference.image_stride;
  std::int64_t row_stride = p.reference.row_stride, column_stride = p.reference.column_stride;
  if (before < 0) {
    then = static_cast<const Sample*>(pass.earlier[-1 - before]);
    row_stride = p.width;
    column_stride = 1;
  }
  if (!pass.lags[lag] || then == nullptr) return;
  const int t = static_cast<int>(threadIdx.x);
  const int left = static_cast<int>(blockIdx.x) % pass.tiles * kColumns;
  const int top = static_cast<int>(blockIdx.x) / pass.tiles * kRows;
  const int column = mirrored(left - kRadius + t, p.width);
  int differences[kRows + 2 * kRadius];
#pragma unroll
  for (int i = 0; i < kRows + 2 * kRadius; ++i) {
    const int row = mirrored(top - kRadius + i, p.height);
    differences[i] =
        static_cast<int>(then[row * row_stride + column * column_stride]) -
        static_cast<int>(now[row * p.reference.row_stride + column * p.reference.column_stride]);
  }
#pragma unroll
  for (int j = 0; j < kRows; ++j) down[j][t] = filtered<Down>(differences + j, p.bit_depth);
  __syncthreads();
  long long sum = 0;
  if (t < kColumns && left + t < p.width) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const int value = filtered<long long>(&down[j][t], 16);
      if (top + j < p.height) sum += value < 0 ? -value : value;
    }
  }
  GpuSum values[kSumsAtOnce] = {};
  values[0] = static_cast<GpuSum>(sum);
  add_over_block<kThreads>(values, room, pass.sums + frame * kMotionLags + lag);
}

template <class Sample>
__global__ void copy_kernel(GpuImages from, std::int64_t frame, int width, int height, Sample* to) {
  const auto* image = static_cast<const Sample*>(from.samples) + frame * from.image_stride;
  const std::int64_t count = static_cast<std::int64_t>(width) * height;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    to[i] = image[i / width * from.row_stride + i % width * from.column_stride];
  }
}

// A block takes rows of image blockIdx.y.
__global__ void largest_kernel(
    GpuImages images, int width, int height, int bit_depth, std::uint32_t* largest) {
  const auto* image =
      static_cast<const std::uint16_t*>(images.samples) + blockIdx.y * images.image_stride;
  for (int row = static_cast<int>(blockIdx.x); row < height; row += static_cast<int>(gridDim.x)) {
    for (int column = static_cast<int>(threadIdx.x); column < width; column += kThreads) {
      const std::uint32_t value = image[row * images.row_stride + column * images.column_stride];
      if (value >> bit_depth != 0) atomicMax(largest + blockIdx.y, value);
    }
  }
}

}  // namespace

void queue_motion(const GpuPairs& pairs, const EarlierFrames& earlier,
    const std::array<bool, kMotionLags>& lags, GpuSum* sums, void* stream) {
  const int tiles = (pairs.width + kColumns - 1) / kColumns;
  const int stripes = (pairs.height + kRows - 1) / kRows;
  const MotionPass pass{pairs, {earlier[0], earlier[1]}, {lags[0], lags[1]}, tiles, sums};
  const dim3 blocks(static_cast<unsigned>(tiles * stripes),
      static_cast<unsigned>(pairs.references()), lags[1] ? 2u : 1u);
  const auto kernel = pairs.is_words ? motion_kernel<std::uint16_t> : motion_kernel<std::uint8_t>;
  gpu::launch("vmaf", stream, blocks, kThreads, 0, kernel, pass);
}

void queue_copy(const GpuPairs& pairs, std::int64_t frame, void* to, void* stream) {
  const std::int64_t count = static_cast<std::int64_t>(pairs.width) * pairs.height;
  const unsigned blocks = gpu::blocks_for_items(count, kThreads, 4096);
  if (pairs.is_words) {
    gpu::launch("vmaf", stream, blocks, kThreads, 0, copy_kernel<std::uint16_t>, pairs.reference,
        frame, pairs.width, pairs.height, static_cast<std::uint16_t*>(to));
  } else {
    gpu::launch("vmaf", stream, blocks, kThreads, 0, copy_kernel<std::uint8_t>, pairs.reference,
        frame, pairs.width, pairs.height, static_cast<std::uint8_t*>(to));
  }
}

void queue_largest(const GpuPairs& pairs, std::uint32_t* largest, void* stream) {
  const auto queue = [&](const GpuImages& images, std::int64_t count, std::uint32_t* to) {
    const dim3 blocks(gpu::blocks_of((pairs.height + 3) / 4), static_cast<unsigned>(count));
    gpu::launch("vmaf", stream, blocks, kThreads, 0, largest_kernel, images, pairs.width,
        pairs.height, pairs.bit_depth, to);
  };
  queue(pairs.reference, pairs.references(), largest);
  queue(pairs.distorted, pairs.count, largest + pairs.references());
}

}  // namespace similis::vmaf_internal
