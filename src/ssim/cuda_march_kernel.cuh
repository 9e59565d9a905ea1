// SPDX-License-Identifier: Apache-2.0
// The march: one kernel for SSIM's value, and for value and gradient. A block owns a strip of
// columns and marches down its rows, R of them a batch:
//   copy engine      rows of x and y, two batches ahead                     ─> raw, shared
//   V1  down         2 columns a thread: running sums of s, d, s², d²        ─> A, shared
//   H1  across       8 outputs a thread: moments ─ formula ─> sum; 3 derivative fields ─> B, shared
//   V2  down         running sums of the fields of the batch before         ─> D, shared
//   H2  across       8 outputs a thread, with x and y from raw              ─> gradient
// Sums run as a[k] = w[9-k]·v + a[k+1]: one fused multiply-add a tap, and no moves. Weights stand
// in uniform registers: with a third vector register each, the register file's banks collide (26 of
// 32 T/s). Instructions a pixel at 1080p (sm_90): 131 for the value, of which 107 are fused, and
// 239 with the gradient, of which 187 are; the limit is the rate at which they issue. s is shifted
// by a constant of the strip, so that its variance keeps its digits in f32.
#pragma once

#include <algorithm>
#include <atomic>

#include "src/gpu/tensor_copy.h"
#include "src/ssim/cuda_march.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

template <int threads, int rows, int blocks_an_sm, bool with_gradient> struct MarchPolicy {
  static constexpr int kThreads = threads;
  static constexpr int kRows = rows;            // a batch; more cost shared memory, fewer barriers
  static constexpr int kBlocks = blocks_an_sm;  // bounds registers
  static constexpr bool kGradient = with_gradient;
  static constexpr int kColumns = 2 * threads;  // loaded, of which a rim only feeds neighbours
  static constexpr int kHalo = with_gradient ? 20 : 10;
  static constexpr int kDelta = with_gradient ? 2 : 0;  // copies begin at multiples of 4 columns
  static constexpr int kOwned = with_gradient ? kColumns - 24 : kColumns - 12;
  // Rows of A, B, D: chunks of 4 columns, the even ones and then the odd ones, so that neighbours
  // in a warp that each read 8 columns and more meet no bank twice.
  static constexpr int kHalf = kColumns / 2 + 16;
  static constexpr int kPitch = 2 * kHalf;
  static_assert(kHalf % 32 == 16);
  static constexpr int kField = rows * kPitch;
  static constexpr int kFields = with_gradient ? 10 : 4;
  static constexpr int kBoxes = (kColumns + 255) / 256;  // the copy engine takes 256 columns
  static constexpr int kBox = kColumns < 256 ? kColumns + 8 : kColumns / kBoxes;
  static constexpr int kImage = rows * kBox * kBoxes;
  static constexpr int kRing = with_gradient ? 7 : 2;  // batches of raw rows; H2 looks 4 back
  static constexpr int kTasks = kColumns / 8;          // of 8 outputs, a row
  static constexpr int kTaskRows = threads / kTasks;   // at once: 4
  static_assert(!with_gradient || rows == 4);
  static constexpr int kSharedBytes = (kFields * kField + kRing * 2 * kImage) * 4 + 16;
};

namespace march {

__device__ __forceinline__ int word_of_chunk(int chunk, int half) {
  return (chunk & 1) * half + (chunk >> 1) * 4;
}

// The completed sum; the state moves on by one row.
__device__ __forceinline__ float push(float (&state)[10], float value, const float (&w)[6]) {
  const float complete = fmaf(w[0], value, state[0]);
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    state[k] = fmaf(w[9 - k < 6 ? 9 - k : k + 1], value, state[k + 1]);
  }
  state[9] = w[0] * value;
  return complete;
}

// out[o] = Σ w[k]·row[o + k]
template <int half>
__device__ __forceinline__ void across(const float* row, const float (&w)[6], float (&out)[8]) {
  float in[20];
#pragma unroll
  for (int j = 0; j < 5; ++j) {
    const float4 chunk = *reinterpret_cast<const float4*>(row + (j & 1) * half + (j >> 1) * 4);
    in[4 * j] = chunk.x;
    in[4 * j + 1] = chunk.y;
    in[4 * j + 2] = chunk.z;
    in[4 * j + 3] = chunk.w;
  }
#pragma unroll
  for (int o = 0; o < 8; ++o) out[o] = w[0] * in[o];
#pragma unroll
  for (int k = 1; k < 11; ++k) {
#pragma unroll
    for (int o = 0; o < 8; ++o) out[o] = fmaf(w[k < 6 ? k : 10 - k], in[o + k], out[o]);
  }
}

__device__ __forceinline__ float2 load2(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
__device__ __forceinline__ void store2(float* p, float a, float b) {
  *reinterpret_cast<float2*>(p) = make_float2(a, b);
}
__device__ __forceinline__ void load4(const float* p, float* out) {
  const float4 v = *reinterpret_cast<const float4*>(p);
  out[0] = v.x;
  out[1] = v.y;
  out[2] = v.z;
  out[3] = v.w;
}

// To 1 unit in the last place.
__device__ __forceinline__ float reciprocal(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Halves of p and q and of 1 - SSIM as formula.h defines them, from sums; `shift` is s's. Each
// quotient is a product with a reciprocal, and 2a and 2b stand for a and b.
struct Point {
  float value, p, q, rest_p, reciprocal_a, reciprocal_b, mean_s, mean_d;
};
__device__ __forceinline__ Point point(
    float s, float d, float ss, float dd, float shift, float c1, float c2) {
  Point r;
  const float var_s = fmaxf(0.f, fmaf(-s, s, ss)), var_d = fmaxf(0.f, fmaf(-d, d, dd));
  r.mean_s = s + shift;
  r.mean_d = d;
  const float squared = d * d;
  r.reciprocal_a = reciprocal(fmaf(r.mean_s, r.mean_s, squared + c1));
  r.reciprocal_b = reciprocal(var_s + (var_d + c2));
  r.p = squared * r.reciprocal_a;
  r.q = var_d * r.reciprocal_b;
  r.rest_p = fmaf(-2.f, r.p, 1.f);
  r.value = fmaf(r.q, r.rest_p, r.p);
  return r;
}

// A quarter of what 1 - SSIM of one window has to do with each pixel's x: weight·(f0 - s·f1 +
// d·f2).
__device__ __forceinline__ void fields_of(
    const Point& r, float shifted_s, float* f0, float* f1, float* f2) {
  const float k = fmaf(-2.f, r.q, 1.f) * r.reciprocal_a, h = r.rest_p * r.reciprocal_b;
  *f1 = h * r.q;
  *f2 = fmaf(-h, r.q, h);
  const float by_means = k * fmaf(-r.p, r.mean_s, fmaf(-r.p, r.mean_d, r.mean_d));
  *f0 = fmaf(-r.mean_d, *f2, fmaf(shifted_s, *f1, by_means));
}

}  // namespace march

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks) march_kernel(const March m,
    const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap y_map) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  using namespace march;
  constexpr int kRows = P::kRows, kPitch = P::kPitch, kField = P::kField, kHalf = P::kHalf;
  constexpr bool kGradient = P::kGradient;
  extern __shared__ __align__(128) float shared[];
  float* const raw = shared;                             // [ring][x, y][boxes][rows][box]
  float* const a_rows = raw + P::kRing * 2 * P::kImage;  // [4][rows][pitch]
  float* const b_rows = a_rows + 4 * kField;             // [3][rows][pitch]
  float* const d_rows = b_rows + 3 * kField;             // [3][rows][pitch]
  gpu::Flag* const flags = reinterpret_cast<gpu::Flag*>(a_rows + P::kFields * kField);
  const int t = static_cast<int>(threadIdx.x);
  const auto raw_word = [](int column) {
    return column / P::kBox * (kRows * P::kBox) + column % P::kBox;
  };
  const int own = word_of_chunk(t >> 1, kHalf) + (t & 1) * 2;  // of this thread's 2 columns
  // The last columns may lie beyond the boxes; nothing owned depends on them.
  constexpr int kLoaded = P::kBox * P::kBoxes;
  const int own_raw = raw_word(min(2 * t + P::kDelta, kLoaded - 2));
  const int task = t % P::kTasks, task_row = t / P::kTasks;
  const int at_task = task * 4 + task_row * kPitch;
  const bool fetches = __shfl_sync(0xffffffffu, t >> 5, 0) == 0;
  if (t < 2) gpu::init_flag(flags + t);
  gpu::publish_flags();
  __syncthreads();
  int turn = 0;  // batches fetched before this segment
  float w[6];
#pragma unroll
  for (int k = 0; k < 6; ++k) w[k] = m.taps[k];
  float state[4][2][10], field_state[3][2][10];
  const std::int64_t units = m.planes * m.strips * m.rows;
  std::int64_t unit = units * blockIdx.x / gridDim.x;
  const std::int64_t last_unit = units * (blockIdx.x + 1) / gridDim.x;
  while (unit < last_unit) {
    const int column_strip = static_cast<int>(unit / m.rows);
    const int row0 = static_cast<int>(unit - std::int64_t{column_strip} * m.rows);
    const int rows = static_cast<int>(
        last_unit - unit < m.rows - row0 ? last_unit - unit : std::int64_t{m.rows - row0});
    unit += rows;
    const int plane = column_strip / m.strips, strip = column_strip - plane * m.strips;
    const int column0 = m.first_column + strip * P::kOwned + P::kDelta;  // of A's first
    const int first_row = m.first_row + row0;
    const int batches = (rows + P::kHalo + kRows - 1) / kRows;
    const auto fetch = [&](int n) {
      if (!gpu::elected()) return;
      gpu::Flag* const flag = flags + ((turn + n) & 1);
      float* const slot = raw + (n % P::kRing) * 2 * P::kImage;
      gpu::expect_bytes(flag, 2 * P::kImage * sizeof(float));
#pragma unroll
      for (int b = 0; b < P::kBoxes; ++b) {
        float* const to = slot + b * kRows * P::kBox;
        const int x = column0 - P::kDelta + b * P::kBox, y = first_row + n * kRows;
        gpu::copy_box(to, &x_map, x, y, plane, flag);
        gpu::copy_box(to + P::kImage, &y_map, x, y, plane, flag);
      }
    };
    __syncthreads();
    if (fetches) {
      fetch(0);
      if (batches > 1) fetch(1);
    }
    const int middle_x = (max(column0, 0) + min(column0 + P::kColumns, m.width)) / 2;
    const int middle_y = (max(first_row, 0) + min(first_row + rows + P::kHalo, m.height)) / 2;
    const std::int64_t middle = plane * m.plane_stride + middle_y * m.row_stride + middle_x;
    const float half_shift = (m.x[middle] + m.y[middle]) / 2, shift = 2 * half_shift;
    float sum[8] = {};
    double total = 0;
    const int centre0 = column0 + task * 8 + 5;  // pixel of this task's first window
    const auto flush = [&] {
#pragma unroll
      for (int o = 0; o < 8; ++o) {
        const int column = task * 8 + o - (kGradient ? 5 : 0), centre = centre0 + o;
        const bool owned =
            column >= 0 && column < P::kOwned && centre >= m.map_x0 && centre < m.map_x1;
        if (owned) total += static_cast<double>(sum[o]);
        sum[o] = 0;
      }
    };
    const bool all_in_map = centre0 >= m.map_x0 && centre0 + 8 <= m.map_x1;
    const int map_row0 = m.map_y0 - (first_row + 5), map_row1 = m.map_y1 - (first_row + 5);
    const int columns_left = min(P::kOwned - task * 8, m.width - (column0 + 10 + task * 8));
    float* gradient = nullptr;
    float slope = 0;
    if constexpr (kGradient) {
      slope = static_cast<float>(4 * m.slopes[m.first_plane + plane].term);
      gradient = m.gradient + plane * m.gradient_plane_stride +
                 std::int64_t{first_row - 10 + task_row} * m.gradient_row_stride + column0 + 10 +
                 task * 8;
    }
    const int steps = batches + (kGradient ? 1 : 0);
#pragma unroll 1
    for (int n = 0; n < steps; ++n) {
      if (n < batches) gpu::wait_for(flags + ((turn + n) & 1), (turn + n) >> 1);
      __syncthreads();
      if constexpr (kGradient) {  // V2
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
          for (int f = 0; f < 3; ++f) {
            const float2 v = load2(b_rows + (f * kRows + i) * kPitch + own);
            const float first = push(field_state[f][0], v.x, w);
            store2(d_rows + (f * kRows + i) * kPitch + own, first, push(field_state[f][1], v.y, w));
          }
        }
      }
      const float* const in = raw + (n % P::kRing) * 2 * P::kImage + own_raw;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {  // V1
        const float2 x = load2(in + i * P::kBox), y = load2(in + P::kImage + i * P::kBox);
        const float s[2] = {
            (x.x - half_shift) + (y.x - half_shift), (x.y - half_shift) + (y.y - half_shift)};
        const float d[2] = {x.x - y.x, x.y - y.y};
        float out[4][2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          out[0][k] = push(state[0][k], s[k], w);
          out[1][k] = push(state[1][k], d[k], w);
          out[2][k] = push(state[2][k], s[k] * s[k], w);
          out[3][k] = push(state[3][k], d[k] * d[k], w);
        }
#pragma unroll
        for (int f = 0; f < 4; ++f)
          store2(a_rows + (f * kRows + i) * kPitch + own, out[f][0], out[f][1]);
      }
      __syncthreads();
      if (fetches && n + 2 < batches) fetch(n + 2);
      if constexpr (kGradient) {  // H2: finishes rows b of the gradient
        if (n > P::kHalo / kRows) {
          const int b = (n - 1) * kRows - P::kHalo + task_row;
          // Loaded row b + 10 is row (task_row + 2) % 4 of batch n - 4 or n - 3.
          const float* const centre = raw + ((n - 4 + (task_row >> 1)) % P::kRing) * 2 * P::kImage +
                                      ((task_row + 2) & 3) * P::kBox;
          float x[8], y[8], g[8], field[8];
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int word = raw_word(min(task * 8 + 10 + P::kDelta + 4 * j, kLoaded - 4));
            load4(centre + word, x + 4 * j);
            load4(centre + P::kImage + word, y + 4 * j);
          }
          const float* const row = d_rows + at_task;
          across<kHalf>(row, w, g);
          across<kHalf>(row + kField, w, field);
#pragma unroll
          for (int o = 0; o < 8; ++o)
            g[o] = fmaf(-((x[o] - half_shift) + (y[o] - half_shift)), field[o], g[o]);
          across<kHalf>(row + 2 * kField, w, field);
#pragma unroll
          for (int o = 0; o < 8; ++o) g[o] = slope * fmaf(x[o] - y[o], field[o], g[o]);
          if (b < rows) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
              float* const to = gradient + 4 * j;
              if (columns_left >= 4 * j + 4) {
                __stcs(reinterpret_cast<float4*>(to),
                    make_float4(g[4 * j], g[4 * j + 1], g[4 * j + 2], g[4 * j + 3]));
              } else {
#pragma unroll
                for (int o = 0; o < 3; ++o) {
                  if (4 * j + o < columns_left) to[o] = g[4 * j + o];
                }
              }
            }
          }
        }
        if (n >= 1) gradient += m.gradient_row_stride * kRows;
      }
      if ((n + 1) * kRows > 10 && n < batches) {  // H1
#pragma unroll 1
        for (int it = 0; it < kRows / P::kTaskRows; ++it) {
          float* const row = a_rows + it * P::kTaskRows * kPitch + at_task;
          const int a = n * kRows - 10 + task_row + it * P::kTaskRows;
          const bool row_in_map = a >= map_row0 && a < map_row1;
          float mean[4][8];
#pragma unroll
          for (int f = 0; f < 4; ++f) across<kHalf>(row + f * kField, w, mean[f]);
          const bool owned_row =
              kGradient ? a >= 5 && a < rows + 5 && row_in_map : a >= 0 && a < rows;
          float field[3][8];
#pragma unroll
          for (int o = 0; o < 8; ++o) {
            const Point r =
                point(mean[0][o], mean[1][o], mean[2][o], mean[3][o], shift, m.c1, m.c2);
            if (owned_row) sum[o] += r.value;
            if constexpr (kGradient) {
              fields_of(r, mean[0][o], &field[0][o], &field[1][o], &field[2][o]);
            }
          }
          if constexpr (kGradient) {
            if (!(all_in_map && row_in_map)) {
#pragma unroll
              for (int o = 0; o < 8; ++o) {
                const bool in_map = row_in_map && centre0 + o >= m.map_x0 && centre0 + o < m.map_x1;
#pragma unroll
                for (int f = 0; f < 3; ++f) field[f][o] = in_map ? field[f][o] : 0.f;
              }
            }
#pragma unroll
            for (int f = 0; f < 3; ++f) {
#pragma unroll
              for (int j = 0; j < 2; ++j) {
                *reinterpret_cast<float4*>(row + (4 + f) * kField + j * kHalf) = make_float4(
                    field[f][4 * j], field[f][4 * j + 1], field[f][4 * j + 2], field[f][4 * j + 3]);
              }
            }
          }
        }
      }
      if ((n & 15) == 15) flush();  // f32 sums stay short
    }
    flush();
    turn += batches;
    __syncthreads();
    const double segment =
        gpu::block_sum_warps<P::kThreads>(total, reinterpret_cast<double*>(a_rows));
    if (t == 0) m.partials[blockIdx.x + column_strip] = 2 * segment;
  }
#endif
}

// How many blocks run at once on the current device; the driver is asked once.
template <class P> int resident_blocks() {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices] = {};
  int device = 0;
  gpu::check(cudaGetDevice(&device), "ssim");
  if (device < kDevices && known[device] != 0) return known[device];
  const auto kernel = march_kernel<P>;
  gpu::check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kSharedBytes),
      "ssim");
  int multiprocessors = 0, blocks = 0;
  gpu::check(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "ssim");
  gpu::check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, P::kThreads, P::kSharedBytes),
      "ssim");
  if (device < kDevices) known[device] = blocks * multiprocessors;
  return blocks * multiprocessors;
}

// Or fewer, if there is less work.
template <class P> int march_blocks(const March& m) {
  return static_cast<int>(
      std::min<std::int64_t>(resident_blocks<P>(), m.planes * m.strips * m.rows));
}

template <class P> void launch_march(const March& m, int blocks, const Execution& exec) {
  const gpu::Planes x{m.x, m.width, m.height, m.planes, m.row_stride, m.plane_stride};
  gpu::Planes y = x;
  y.data = m.y;
  gpu::launch("ssim", exec.stream, static_cast<unsigned>(blocks), P::kThreads, P::kSharedBytes,
      march_kernel<P>, m, gpu::tensor_map(x, P::kBox, P::kRows),
      gpu::tensor_map(y, P::kBox, P::kRows));
}

}  // namespace similis::ssim_internal

#endif
