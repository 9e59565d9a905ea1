// SPDX-License-Identifier: Apache-2.0
// The pass along z of a field on the GPU: dense f32 memory, a radius that the compiler knows, zeros
// outside, and the largest vector of the result. A thread reads a column once and holds all sums
// that a value belongs to, so that there is no ring of values: 37 instructions of 53 for an element
// and a plane. Per element: 8 B.
#include <algorithm>
#include <cstdint>

#include "src/gpu/cuda/vendor.h"
#include "src/smooth/cuda.h"
#include "src/smooth/cuda_lines.cuh"
#include "src/smooth/cuda_parts.h"
#include "src/smooth/smooth.h"

namespace similis::smooth_internal {
namespace {

constexpr int kColumns = 96;  // elements that a block takes: whole vectors

struct FieldDepthPass {
  const float* from;
  float* to;
  Line z;
  int depth = 0, stripes = 0, stripe_planes = 0;
  std::int64_t plane = 0;  // elements of a plane
  Gate gate = {};
};

// 11 blocks of a multiprocessor take 160x192x224 at once, where 10 leave 24 for a second turn.
constexpr int kFieldBlocks = 11;
// Values of a column that are under way: as many as registers allow.
template <int radius> constexpr int kAhead = radius > kKnownRadius ? 10 : 12;

// Adds each value to all sums that it belongs to, which stay in registers: a thread reads and
// writes its column of elements, and shared memory only brings the squares of a vector together.
// The additions are those of smooth_run(), in its order.
template <int radius>
__global__ __launch_bounds__(kColumns, kFieldBlocks) void field_depth_kernel(
    const SIMILIS_GRID_CONSTANT FieldDepthPass p) {
  if (!p.gate.is_open()) return;
  constexpr int kTaps = 2 * radius + 1, kWarps = kColumns / gpu::kSubgroup,
                kUnderWay = kAhead<radius>;
  static_assert(kColumns == 3 * gpu::kSubgroup);  // a row of squares has a vector for each lane
  __shared__ float squares[2][kTaps][kColumns];   // two turns, so that one barrier is enough
  const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const std::int64_t element = std::int64_t{block / p.stripes} * kColumns + t;
  const bool is_mine = element < p.plane, finds_largest = p.gate.largest != nullptr;
  const int first = block % p.stripes * p.stripe_planes,
            last = min(first + p.stripe_planes, p.depth);
  // Value n is of plane first - radius + n, and the last of the sum of plane first + n - 2·radius.
  // Values from begin to end are in the grid.
  const int values = last - first + 2 * radius, begin = radius - first,
            end = is_mine ? p.depth + begin : 0, outputs = is_mine ? values : 0;
  const float* coming = p.from + ((first - radius) * p.plane + element);
  float* to = p.to + ((first - 2 * radius) * p.plane + element);
  const auto fetch = [&](int n) {
    const float value = n >= begin && n < end ? *coming : 0;
    coming += p.plane;
    return value;
  };
  float next[kUnderWay], sums[kTaps] = {};
#pragma unroll
  for (int i = 0; i < kUnderWay; ++i) next[i] = fetch(i);
  unsigned most = 0;  // bits of the largest square
  int turn = 0;
  for (int n0 = 0; n0 < values; n0 += kTaps, turn ^= 1) {
    // Without a way out of the steps, which costs a move of each sum in each of them.
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      const int n = n0 + i;
      const float value = next[i % kUnderWay];
      next[i % kUnderWay] = fetch(n + kUnderWay);
#pragma unroll
      for (int k = -radius; k <= radius; ++k) {
        float& sum = sums[(i + 1 + radius - k) % kTaps];
        sum = fmaf(p.z.taps[k < 0 ? -k : k], value, k == -radius ? 0 : sum);
      }
      const float sum = sums[(i + 1) % kTaps];
      if ((i == 2 * radius || n0 > 0) && n < outputs) *to = sum;
      to += p.plane;
      squares[turn][i][t] = sum * sum;
    }
    // The next value is number 0 again.
    float turned[kUnderWay];
#pragma unroll
    for (int i = 0; i < kUnderWay; ++i) turned[i] = next[(kTaps + i) % kUnderWay];
#pragma unroll
    for (int i = 0; i < kUnderWay; ++i) next[i] = turned[i];
    if (!finds_largest) continue;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < (kTaps + kWarps - 1) / kWarps; ++j) {
      const int i = t / gpu::kSubgroup + j * kWarps, n = n0 + i;
      if (i >= kTaps || n < 2 * radius || n >= values) continue;
      const float* const vector = &squares[turn][i][3 * (t % gpu::kSubgroup)];
      most = max(most, __float_as_uint(vector[0] + vector[1] + vector[2]));
    }
  }
  if (finds_largest) p.gate.raise_largest(most);
}

}  // namespace

void smooth_field_depth(const SmoothPass& pass, int radius, const TensorView& from,
    const Gate& gate, const Execution& exec) {
  const Extents& shape = pass.x.shape;
  FieldDepthPass p{.from = static_cast<const float*>(from.data()),
      .to = static_cast<float*>(pass.output.data()),
      .z = line_of(pass.taps[0], radius),
      .depth = static_cast<int>(shape[kZ])};
  p.plane = shape[kY] * shape[kX] * shape[kComponent];
  const std::int64_t tiles = (p.plane + kColumns - 1) / kColumns;
  p.stripe_planes = stripe_of(p.depth, tiles, pass.x.device);
  p.stripes = (p.depth + p.stripe_planes - 1) / p.stripe_planes;
  p.gate = gate;
  gpu::launch("smooth", exec.queue.handle, static_cast<unsigned>(tiles * p.stripes), kColumns, 0,
      radius == kKnownRadius ? field_depth_kernel<kKnownRadius> : field_depth_kernel<kWideRadius>,
      p);
}

}  // namespace similis::smooth_internal
