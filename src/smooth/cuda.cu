// SPDX-License-Identifier: Apache-2.0
// Smoothing on the GPU, in two passes over memory and f32 arithmetic:
//
//   plane_kernel  8 rows ─> along x ─> ring of rows ─> along y ─> work    shared memory
//   depth_kernel  work ─> ring of values, a column a thread ─> along z ─> output
//
// cuda_field.cu does the second for registration's fields, without a ring.
//
// A row is x with the components of each voxel beside one another. A thread computes 8 neighbours
// of a line at once, so that a value is read once for 8 sums; sums of values outside the taps are
// not formed, since a NaN would reach them. Per element: 8 B of each pass, 1.9 loads of the first
// where σ is 3, and (16 + 2r) / 8 shared words and 8 + 2r multiply-adds an axis.
//
// cuda_direct.cu takes f64 and radii above kMostRadius.
#include <algorithm>
#include <array>
#include <cstdint>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/half.h"
#include "src/gpu/cuda/view.h"
#include "src/smooth/cuda.h"
#include "src/smooth/cuda_lines.cuh"
#include "src/smooth/cuda_parts.h"
#include "src/smooth/smooth.h"

namespace similis::smooth_internal {
namespace {

constexpr int kWidth = 96;    // elements of a row that a block takes: whole voxels, and runs
constexpr int kColumns = 96;  // elements that a block of depth_kernel takes: whole vectors
constexpr int kRingPitch = kWidth + 3;  // runs of rows then begin at different banks
constexpr int kKnownParts = 3;          // components of a field
constexpr int kMostAdded = 2;

struct Shape {
  int channels, depth, height, width, components;  // width in voxels

  explicit Shape(const Extents& shape)
      : channels(static_cast<int>(shape[kChannel])),
        depth(static_cast<int>(shape[kZ])),
        height(static_cast<int>(shape[kY])),
        width(static_cast<int>(shape[kX])),
        components(static_cast<int>(shape[kComponent])) {}
};

// Floats of a row of a tile with its rim: odd, as kRingPitch, so that eight rows begin at different
// banks modulo 8.
constexpr SIMILIS_HOST_DEVICE int tile_pitch_of(int radius, int parts) {
  return (kWidth + 2 * radius * parts + 4) / 8 * 8 + 3;
}

struct PlanePass {
  Elements from, to;
  Shape shape;
  Line x, y;
  Outside outside;
  int tiles = 0, stripes = 0, stripe_rows = 0;  // of a plane; rows are a multiple of kRun
  int tile_pitch = 0, ring_blocks = 0;          // floats of a row; blocks of kRun rows
  bool is_plain = false;  // elements of a row lie one behind another, and all outside are 0
  Gate gate = {};
};

// A block takes kWidth elements of `stripe_rows` rows. T: the dtype of `from`. A radius that is
// known has kKnownParts components.
template <class T, int radius>
__global__ __launch_bounds__(kWidth) void plane_kernel(const SIMILIS_GRID_CONSTANT PlanePass p) {
  SIMILIS_DYNAMIC_SHARED(float, shared, 16);
  if (!p.gate.is_open()) return;
  constexpr int kLoads = radius > 0 ? 2 : 3;  // of a row and its rim, a thread
  constexpr int kParts = radius > 0 ? kKnownParts : 0;
  const int tile_pitch = radius > 0 ? tile_pitch_of(radius, kParts) : p.tile_pitch;
  float* const tile = shared;                      // [kRun][tile_pitch]
  float* const ring = shared + kRun * tile_pitch;  // [ring_blocks · kRun][kRingPitch]
  const Shape& shape = p.shape;
  const int t = static_cast<int>(threadIdx.x), parts = kParts > 0 ? kParts : shape.components;
  const std::int64_t block = blockIdx.x;
  const int tile_number = static_cast<int>(block % p.tiles);
  const int stripe = static_cast<int>(block / p.tiles % p.stripes);
  const std::int64_t plane = block / p.tiles / p.stripes;
  const std::int64_t z = plane % shape.depth, c = plane / shape.depth % shape.channels,
                     n = plane / shape.depth / shape.channels;
  const int first_row = stripe * p.stripe_rows,
            last_row = min(first_row + p.stripe_rows, shape.height);
  const int voxels = kWidth / parts, first_x = tile_number * voxels;
  const T* const from =
      static_cast<const T*>(p.from.data) + p.from.image(n, c) + z * p.from.strides[kZ];
  const bool replicates = p.outside == Outside::replicated;
  const int loaded = kWidth + 2 * (radius > 0 ? radius : p.x.radius) * parts;
  Coming coming(first_row - p.y.radius, shape.height, p.from.strides[kY]);
  const T* places[kLoads];
  bool exists[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    const int i = t + k * kWidth, voxel = i / parts, at = first_x + voxel - p.x.radius;
    const int inside = min(max(at, 0), shape.width - 1);
    places[k] = from + coming.offset() + (p.is_plain ? at : inside) * p.from.strides[kX] +
                (i - voxel * parts) * p.from.strides[kComponent];
    exists[k] = i < loaded && (replicates || at == inside);
  }
  float next[kRun][kLoads];
  const auto fetch = [&] {
    // Most rows are inside: a test and a choice of the step for each took a quarter of the time.
    if (radius > 0 && p.is_plain && coming.are_inside(kRun)) {
#pragma unroll
      for (int r = 0; r < kRun; ++r) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
          next[r][k] = exists[k] ? gpu::to_float(places[0][k * kWidth]) : 0.0f;
        }
        places[0] += coming.stride;
      }
      coming.at += kRun;
#pragma unroll
      for (int k = 1; k < kLoads; ++k) places[k] = places[0] + k * kWidth;
      return;
    }
#pragma unroll
    for (int r = 0; r < kRun; ++r) {
      const bool row_exists = replicates || coming.exists();
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        next[r][k] = row_exists && exists[k] ? gpu::to_float(*places[k]) : 0.0f;
      }
      const std::int64_t step = coming.step();
#pragma unroll
      for (int k = 0; k < kLoads; ++k) places[k] += step;
    }
  };
  // Along x: a thread takes a run of a row. If the number of components is known, a warp takes one
  // component in all rows: its runs begin at different banks, as the pitch of rows is odd. Row
  // after row, two lanes of a warp met at a bank.
  constexpr int kRuns = kWidth / kRun, kRunsOfPart = kParts > 0 ? kRuns / kParts : 1;
  static_assert(kParts == 0 || kRun * kRunsOfPart == gpu::kSubgroup);
  const int lane = t % gpu::kSubgroup;
  const int row = kParts > 0 ? lane / kRunsOfPart : t / kRuns;
  const int run = kParts > 0 ? lane % kRunsOfPart * kParts + t / gpu::kSubgroup : t % kRuns;
  const int start = run / parts * kRun * parts + run % parts;
  const Run<kParts> along_x{tile + row * tile_pitch + start, parts};
  const int behind = p.ring_blocks - 1;  // blocks of rows that the first output waits for
  const int chunks = (last_row - first_row + kRun - 1) / kRun + behind;
  // Along y: thread t takes column t.
  const int x = first_x + t / parts;
  const std::int64_t column = p.to.image(n, c) + z * p.to.strides[kZ] + x * p.to.strides[kX] +
                              t % parts * p.to.strides[kComponent];
  int slot = 0;  // of the ring, for the chunk
  fetch();
  for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (t + k * kWidth >= loaded) break;
#pragma unroll
      for (int r = 0; r < kRun; ++r) tile[r * tile_pitch + t + k * kWidth] = next[r][k];
    }
    if (chunk + 1 < chunks) fetch();
    __syncthreads();
    {
      float sums[kRun];
      smooth_run<radius>(p.x, along_x, sums);
      float* const out = ring + (slot * kRun + row) * kRingPitch + start;
      const int run_x = first_x + run / parts * kRun;
#pragma unroll
      for (int o = 0; o < kRun; ++o) out[o * parts] = sums[o];
      if (p.outside == Outside::folded) {
        for (int end = 0; end < 2; ++end) {
          const int o = (end == 0 ? 0 : shape.width - 1) - run_x, step = end == 0 ? parts : -parts;
          if (o < 0 || o >= kRun) continue;
          const float* const centre = along_x.values + (o + p.x.radius) * parts;
          out[o * parts] = folded_sum(p.x, shape.width, [=](int k) { return centre[k * step]; });
        }
      }
    }
    __syncthreads();
    slot = slot + 1 == p.ring_blocks ? 0 : slot + 1;
    if (chunk < behind || x >= shape.width) continue;
    const int row0 = first_row + (chunk - behind) * kRun;
    float sums[kRun];
    // The next slot holds the oldest rows.
    const Ring<kRingPitch> along_y{ring + t, p.ring_blocks, slot};
    smooth_run<radius>(p.y, along_y, sums);
    if (p.outside == Outside::folded) {
      for (int end = 0; end < 2; ++end) {
        const int o = (end == 0 ? 0 : shape.height - 1) - row0, step = end == 0 ? 1 : -1;
        if (o < 0 || o >= kRun) continue;
        const float sum = folded_sum(
            p.y, shape.height, [&](int k) { return along_y[o + p.y.radius + k * step]; });
#pragma unroll
        for (int i = 0; i < kRun; ++i) sums[i] = i == o ? sum : sums[i];
      }
    }
    store_run(p.to, column + row0 * p.to.strides[kY], p.to.strides[kY], last_row - row0, sums);
  }
}

struct DepthPass {
  Elements from, to;
  Shape shape;
  Line z;
  Outside outside;
  int stripes = 0, stripe_planes = 0, ring_blocks = 0;
  std::int64_t plane = 0, tiles = 0;  // elements of a plane, and blocks
  Gate gate = {};
};

// finds_largest: of a field's vectors, for p.gate. `from` is f32.
template <bool finds_largest, int radius>
__global__ __launch_bounds__(kColumns) void depth_kernel(const SIMILIS_GRID_CONSTANT DepthPass p) {
  SIMILIS_DYNAMIC_SHARED(float, ring, 16);  // [ring_blocks · kRun][kColumns]
  if (!p.gate.is_open()) return;
  const Shape& shape = p.shape;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t tile = blockIdx.x % p.tiles, rest = blockIdx.x / p.tiles;
  const int stripe = static_cast<int>(rest % p.stripes);
  const std::int64_t c = rest / p.stripes % shape.channels, n = rest / p.stripes / shape.channels;
  const std::int64_t own = tile * kColumns + t, element = min(own, p.plane - 1);
  const bool is_mine = own < p.plane;
  if (!finds_largest && !is_mine) return;
  unsigned most = 0;  // bits of the largest square
  const std::int64_t part = element % shape.components,
                     x = element / shape.components % shape.width,
                     y = element / shape.components / shape.width;
  const auto column = [&](const Elements& e) {
    return e.image(n, c) + y * e.strides[kY] + x * e.strides[kX] + part * e.strides[kComponent];
  };
  const float* place = static_cast<const float*>(p.from.data) + column(p.from);
  const std::int64_t to = column(p.to);
  const int first = stripe * p.stripe_planes, last = min(first + p.stripe_planes, shape.depth);
  const int behind = p.ring_blocks - 1, chunks = (last - first + kRun - 1) / kRun + behind;
  float next[kRun];
  Coming coming(first - p.z.radius, shape.depth, p.from.strides[kZ]);
  place += coming.offset();
  const bool replicates = p.outside == Outside::replicated;
  const auto fetch = [&] {
    if (coming.are_inside(kRun)) {
#pragma unroll
      for (int r = 0; r < kRun; ++r, place += coming.stride) next[r] = *place;
      coming.at += kRun;
      return;
    }
#pragma unroll
    for (int r = 0; r < kRun; ++r) {
      next[r] = replicates || coming.exists() ? *place : 0.0f;
      place += coming.step();
    }
  };
  int slot = 0;  // of the ring, for the chunk
  fetch();
  for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
    for (int r = 0; r < kRun; ++r) ring[(slot * kRun + r) * kColumns + t] = next[r];
    if (chunk + 1 < chunks) fetch();
    slot = slot + 1 == p.ring_blocks ? 0 : slot + 1;
    if (chunk < behind) continue;
    const int q = chunk - behind;
    // The next slot holds the oldest values.
    const Ring<kColumns> along_z{ring + t, p.ring_blocks, slot};
    float sums[kRun];
    smooth_run<radius>(p.z, along_z, sums);
    const int z0 = first + q * kRun;
    if (p.outside == Outside::folded) {
      for (int end = 0; end < 2; ++end) {
        const int o = (end == 0 ? 0 : shape.depth - 1) - z0, step = end == 0 ? 1 : -1;
        if (o < 0 || o >= kRun) continue;
        const float sum =
            folded_sum(p.z, shape.depth, [&](int k) { return along_z[o + p.z.radius + k * step]; });
#pragma unroll
        for (int i = 0; i < kRun; ++i) sums[i] = i == o ? sum : sums[i];
      }
    }
    if (is_mine) store_run(p.to, to + z0 * p.to.strides[kZ], p.to.strides[kZ], last - z0, sums);
    if constexpr (finds_largest) {
      // A vector is three neighbours' sums. Two places take turns, so that one barrier is enough.
      __shared__ float squares[2][kRun][kColumns];
      const int count = is_mine ? last - z0 : 0;
      if (count < kRun) {
#pragma unroll
        for (int o = 0; o < kRun; ++o) sums[o] = o < count ? sums[o] : 0;
      }
      float* const of_run = &squares[q & 1][0][0];
#pragma unroll
      for (int o = 0; o < kRun; ++o) of_run[o * kColumns + t] = sums[o] * sums[o];
      __syncthreads();
      constexpr int kVectors = kRun * kColumns / 3;
#pragma unroll
      for (int i = 0; i < (kVectors + kColumns - 1) / kColumns; ++i) {
        if ((i + 1) * kColumns > kVectors && t + i * kColumns >= kVectors) break;
        const float* const vector = of_run + 3 * (t + i * kColumns);
        most = max(most, __float_as_uint(vector[0] + vector[1] + vector[2]));
      }
    }
  }
  if constexpr (finds_largest) p.gate.raise_largest(most);
}

int ring_blocks_of(int radius) { return (2 * radius + kRun - 1) / kRun + 1; }

// The radii of the lines along z, y and x.
using Radii = std::array<int, 3>;

Radii own_radii(const SmoothPass& pass) {
  return {radius_of(pass.taps[0]), radius_of(pass.taps[1]), radius_of(pass.taps[2])};
}

// Those of a field's lines: one known radius where that adds few taps.
Radii field_radii(const SmoothPass& pass) {
  const Radii own = own_radii(pass);
  const auto [least, most] = std::minmax_element(own.begin(), own.end());
  for (const int known : {kKnownRadius, kWideRadius}) {
    if (*most <= known && *least >= known - kMostAdded) return {known, known, known};
  }
  return own;
}

using PlaneKernel = void (*)(PlanePass);
PlaneKernel planes_of(DType from, const Radii& radii, int components) {
  const bool is_known = radii[1] == radii[2] && components == kKnownParts;
  switch (from) {
    case DType::f16: return plane_kernel<F16, 0>;
    case DType::bf16: return plane_kernel<BF16, 0>;
    default:
      if (is_known && radii[2] == kKnownRadius) return plane_kernel<float, kKnownRadius>;
      if (is_known && radii[2] == kWideRadius) return plane_kernel<float, kWideRadius>;
      return plane_kernel<float, 0>;
  }
}

using DepthKernel = void (*)(DepthPass);
DepthKernel depth_of(bool finds_largest, int radius) {
  if (finds_largest) return depth_kernel<true, 0>;
  return radius == kKnownRadius ? depth_kernel<false, kKnownRadius> : depth_kernel<false, 0>;
}

void launch_planes(const SmoothPass& pass, const Radii& radii, const TensorView& to,
    const Gate& gate, const Execution& exec) {
  PlanePass p{.from = Elements(pass.x),
      .to = Elements(to),
      .shape = Shape(pass.x.shape),
      .x = line_of(pass.taps[2], radii[2]),
      .y = line_of(pass.taps[1], radii[1]),
      .outside = outside_of(pass)};
  const int voxels = kWidth / p.shape.components;
  p.tiles = (p.shape.width + voxels - 1) / voxels;
  const std::int64_t planes = pass.x.shape[kImage] * pass.x.shape[kChannel] * pass.x.shape[kZ];
  p.stripe_rows = stripe_of(p.shape.height, planes * p.tiles, pass.x.device);
  p.stripes = (p.shape.height + p.stripe_rows - 1) / p.stripe_rows;
  p.tile_pitch = tile_pitch_of(p.x.radius, p.shape.components);
  p.is_plain = p.outside == Outside::zero && p.from.strides[kComponent] == 1 &&
               p.from.strides[kX] == p.shape.components;
  p.ring_blocks = ring_blocks_of(p.y.radius);
  p.gate = gate;
  const std::size_t bytes =
      sizeof(float) * static_cast<std::size_t>(kRun * (p.tile_pitch + p.ring_blocks * kRingPitch));
  gpu::launch("smooth", exec.queue.handle, static_cast<unsigned>(planes * p.tiles * p.stripes),
      kWidth, bytes, planes_of(pass.x.dtype, radii, p.shape.components), p);
}

void launch_depth(const SmoothPass& pass, const Radii& radii, const TensorView& from,
    const Gate& gate, const Execution& exec) {
  DepthPass p{.from = Elements(from),
      .to = Elements(pass.output),
      .shape = Shape(pass.x.shape),
      .z = line_of(pass.taps[0], radii[0]),
      .outside = outside_of(pass)};
  p.plane = std::int64_t{p.shape.height} * p.shape.width * p.shape.components;
  p.tiles = (p.plane + kColumns - 1) / kColumns;
  const std::int64_t images = pass.x.shape[kImage] * pass.x.shape[kChannel];
  p.stripe_planes = stripe_of(p.shape.depth, images * p.tiles, pass.x.device);
  p.stripes = (p.shape.depth + p.stripe_planes - 1) / p.stripe_planes;
  p.ring_blocks = ring_blocks_of(p.z.radius);
  p.gate = gate;
  const std::size_t bytes =
      sizeof(float) * static_cast<std::size_t>(p.ring_blocks * kRun * kColumns);
  gpu::launch("smooth", exec.queue.handle, static_cast<unsigned>(images * p.tiles * p.stripes),
      kColumns, bytes, depth_of(gate.largest != nullptr, p.z.radius), p);
}

// Dense memory with the axes of the pass.
TensorView as_x(const TensorView& memory, const SmoothPass& pass) {
  return memory.reshaped(pass.x.shape, dense_strides(pass.x.shape));
}

}  // namespace

void smooth_field(const TensorView& field, const TensorView& work, const SmoothOptions& options,
    const Gate& gate, const Execution& exec) {
  const SmoothPass pass = smooth_pass(field, {.output = field}, options);
  Gate without_largest = gate;
  without_largest.largest = nullptr;
  const Radii radii = field_radii(pass);
  launch_planes(pass, radii, as_x(work, pass), without_largest, exec);
  const bool is_known = radii[0] == kKnownRadius || radii[0] == kWideRadius;
  if (is_known && outside_of(pass) == Outside::zero) {
    return smooth_field_depth(pass, radii[0], work, gate, exec);
  }
  launch_depth(pass, radii, as_x(work, pass), gate, exec);
}

void smooth_cuda(const SmoothPass& pass, const Execution& exec) {
  const gpu::Current current(pass.x.device);
  const Radii radii = own_radii(pass);
  const auto [z, y, x] = radii;
  constexpr std::int64_t kMostVoxels = std::int64_t{1} << 30;  // of an axis
  const Extents& shape = pass.x.shape;
  const bool is_wide =
      shape[kX] > kMostVoxels || shape[kY] > kMostVoxels || shape[kZ] > kMostVoxels;
  if (pass.x.dtype == DType::f64 || std::max({x, y, z}) > kMostRadius || is_wide) {
    return smooth_directly(pass, exec);
  }
  // In a plane blocks read what others write, unless there is work between.
  const bool is_apart = pass.x.handle != pass.output.handle;
  if (z == 0 && is_apart) return launch_planes(pass, radii, pass.output, {}, exec);
  if (x == 0 && y == 0 && is_apart && pass.x.dtype == DType::f32)
    return launch_depth(pass, radii, pass.x, {}, exec);
  const Tensor work = allocate(shape, DType::f32, pass.x.device, exec);
  launch_planes(pass, radii, as_x(work, pass), {}, exec);
  launch_depth(pass, radii, as_x(work, pass), {}, exec);
}

}  // namespace similis::smooth_internal
