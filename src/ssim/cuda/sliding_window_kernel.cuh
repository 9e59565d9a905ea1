// SPDX-License-Identifier: Apache-2.0
// The sliding window kernel: one kernel for SSIM's value, and for value and gradient. A block owns
// a strip of columns and moves down its rows, R of them in a batch:
//   copy engine      rows of x and y, two batches ahead; threads, if it cannot ─> raw, shared
//   V1  down         2 columns a thread: running sums of s, d, s², d²        ─> A, shared
//   H1  across       8 outputs a thread: moments ─ formula ─> sum; 3 derivatives ─> B, shared
//   V2  down         running sums of the derivatives of the batch before    ─> D, shared
//   H2  across       8 outputs a thread, with x and y from raw              ─> gradient
// Windows have 11 taps; or 21, and then a thread has one column and a batch twice the rows: as many
// running sums. These run as a[k] = w[9-k]·v + a[k+1]: one fused multiply-add a tap, and no moves.
// Weights stay in uniform registers: as a third vector register they would make the banks of the
// register file collide (26 of 32 T/s). Instructions a pixel at 1080p (sm_90): 131 for the value
// (107 fused), 239 with the gradient (187); the rate at which they issue is the limit. s is shifted
// by a constant of the strip, so that its variance keeps its digits in f32. The last block adds the
// segments' sums in a fixed order and writes the values.
#pragma once

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "src/gpu/cuda/tensor_copy.h"
#include "src/ssim/cuda/formula.cuh"
#include "src/ssim/cuda/sliding_window.h"
#include "src/ssim/cuda/sliding_window_extras.cuh"
#include "src/ssim/cuda/sliding_window_finish.cuh"
#include "src/ssim/cuda/sliding_window_gather.cuh"
#include "src/ssim/cuda/sliding_window_layout.cuh"
#include "src/ssim/cuda/sliding_window_steps.cuh"
#include "src/ssim/cuda/sliding_window_window.cuh"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks)
    sliding_window_kernel(const SlidingWindow m, const __grid_constant__ CUtensorMap x_map,
        const __grid_constant__ CUtensorMap y_map) {
#if SIMILIS_COPY_ENGINE
  using namespace sliding_window;
  using Pairs = typename P::Pairs;
  using Element = typename P::Element;
  constexpr int kRows = P::kRows, kPitch = P::kPitch, kArray = P::kArray, kHalf = P::kHalf;
  constexpr int kRadius = P::kRadius, kBehind = P::kBehind, kEach = P::kColumnsEach;
  constexpr bool kGradient = P::kGradient, kTrains = P::kTrains, kDoesAll = P::kDoesAll;
  constexpr bool kIsMasked = P::kIsMasked;
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 128);
  Element* const raw = reinterpret_cast<Element*>(shared);  // [ring][x, y][boxes][rows][box]
  float* const a_rows = reinterpret_cast<float*>(shared + P::kRawBytes);  // [4][rows][pitch]
  float* const b_rows = a_rows + 4 * kArray;                              // [3][rows][pitch]
  float* const d_rows = b_rows + 3 * kArray;                              // [3][rows][pitch]
  float* const staging = a_rows + P::kArrays * kArray;                    // [threads][8]
  gpu::Flag* const flags = reinterpret_cast<gpu::Flag*>(staging + P::kStagedWords);
  const int t = static_cast<int>(threadIdx.x);
  // A begins kBehind columns before a gradient's first one. A whole image has nothing there.
  const bool is_whole = kGradient && m.is_whole;
  const int before = is_whole ? kBehind : 0, loaded_before = is_whole ? 0 : P::kDelta;
  const int own = word_of_columns<kEach>(t, kHalf);  // of this thread's columns; in A:
  const int own_a = kGradient ? word_of_columns<kEach>(t + before / kEach, kHalf) : own;
  constexpr int kLoaded = P::kBox * P::kBoxes;  // nothing owned depends on columns beyond
  const int own_raw = P::word_of(min(kEach * t + loaded_before, kLoaded - kEach));
  const int task = t % P::kTasks, task_row = t / P::kTasks;
  const int at_task = task * 4 + task_row * kPitch;
  const bool fetches = Pairs::kGathers || __shfl_sync(0xffffffffu, t / gpu::kWarp, 0) == 0;
  if (t < 2) gpu::init_flag(flags + t);
  if constexpr (kGradient) {                    // windows beyond a whole image
    constexpr int kBeyond = (kBehind + 3) / 4;  // chunks
    if (t < 3 * kRows * kBeyond) {
      const float nothing[4] = {};
      store4(
          d_rows + t / kBeyond * kPitch + word_of_columns<4>(P::kColumns / 4 + t % kBeyond, kHalf),
          nothing);
    }
  }
  gpu::publish_flags();
  __syncthreads();
  int turn = 0;  // batches fetched before this segment
  float w[kRadius + 1];
#pragma unroll
  for (int k = 0; k <= kRadius; ++k) w[k] = m.taps[k];
  float state[4][kEach][kBehind], derivative_state[3][kEach][kBehind];
  std::int64_t pair = m.pairs() * blockIdx.x / gridDim.x;
  const std::int64_t last_pair = m.pairs() * (blockIdx.x + 1) / gridDim.x;
  while (pair < last_pair) {
    const int column_strip = static_cast<int>(pair / m.pairs_a_strip());
    const std::int64_t strip_pair = column_strip * m.pairs_a_strip();
    const int row0 = max(2 * static_cast<int>(pair - strip_pair) - m.lead, 0);
    pair = min(last_pair, strip_pair + m.pairs_a_strip());
    const int rows = 2 * static_cast<int>(pair - strip_pair) - m.lead - row0;
    if (rows <= 0) {  // a share that ends before the strip's first row
      if (t == 0 && m.partials != nullptr) m.partials[blockIdx.x + column_strip] = {0, 0};
      break;
    }
    const int plane = column_strip / m.strips, strip = column_strip - plane * m.strips;
    const int column0 = m.first_column + strip * m.owned + P::kDelta;  // of A's first
    const int first_loaded = is_whole ? 0 : column0 - P::kDelta;
    const int first_row = m.first_row + row0;
    const int batches = (rows + P::kHalo + kRows - 1) / kRows;
    // No valid window sees the rows above the image.
    const int first_batch = kGradient && row0 == 0 && m.map_y0 == kRadius ? kBehind / kRows : 0;
    turn -= first_batch;
    const int image = static_cast<int>(plane / m.channels);
    const int channel = static_cast<int>(plane - image * m.channels);
    const std::int64_t any_x = m.any_x.plane(image, channel), any_y = m.any_y.plane(image, channel);
    const auto fetch = [&](int n) {
      if constexpr (Pairs::kGathers) {
        gather<P>(m, any_x, any_y, {first_loaded, first_row + n * kRows},
            raw + (n % P::kRing) * 2 * P::kImage);
        return;
      }
      if (!gpu::elected()) return;
      gpu::Flag* const flag = flags + ((turn + n) & 1);
      Element* const slot = raw + (n % P::kRing) * 2 * P::kImage;
      gpu::expect_bytes(flag, 2 * P::kImage * sizeof(Element));
#pragma unroll
      for (int b = 0; b < P::kBoxes; ++b) {
        Element* const to = slot + b * kRows * P::kBox;
        const int x = first_loaded + b * P::kBox, y = first_row + n * kRows;
        gpu::copy_box(to, &x_map, x, y, channel, image, flag);
        gpu::copy_box(to + P::kImage, &y_map, x, y, channel, image, flag);
      }
    };
    __syncthreads();
    if (fetches) {
      fetch(first_batch);
      if constexpr (Pairs::kGathers) gpu::mark_words();
      if (first_batch + 1 < batches) fetch(first_batch + 1);
      if constexpr (Pairs::kGathers) gpu::mark_words();
    }
    const int middle_x = (max(column0, 0) + min(column0 + P::kColumns, m.width)) / 2;
    const int middle_y = (max(first_row, 0) + min(first_row + rows + P::kHalo, m.height)) / 2;
    const auto middle_of = [&](const gpu::View& view, std::int64_t first) {
      const std::int64_t offset = first + view.at(0, middle_y, middle_x);
      if constexpr (Pairs::kGathers) return view.load_f32(offset);
      return gpu::to_float(static_cast<const Element*>(view.data)[offset]);
    };
    float middle;
    if constexpr (kIsMasked) {
      middle = weighed_middle(m, image, channel, any_x, any_y,
          {max(column0, 0), min(column0 + P::kColumns, m.width), max(first_row, 0),
              min(first_row + rows + P::kHalo, m.height)});
    } else {
      const float middle_of_x = middle_of(m.any_x, any_x);
      middle = (Pairs::kSums ? middle_of_x : middle_of_x + middle_of(m.any_y, any_y)) / 2;
    }
    // A pixel that is not finite must reach only the windows that see it.
    const float half_shift = fabsf(middle) < INFINITY ? middle : 0.f;
    const float shift = 2 * half_shift;
    const float sign = m.extras.difference_sign;
    float sum[8] = {};
    double total = 0;
    float l1_sum = 0;
    double l1_total = 0;
    const int centre0 = column0 + task * 8 + kRadius;  // pixel of this task's first window
    const auto flush = [&] {
#pragma unroll
      for (int o = 0; o < 8; ++o) {
        const int column = task * 8 + o - (kGradient ? kRadius : 0), centre = centre0 + o;
        const bool owned =
            column >= 0 && column < m.owned && centre >= m.map_x0 && centre < m.map_x1;
        if (owned) total += static_cast<double>(sum[o]);
        sum[o] = 0;
      }
      if constexpr (kTrains) {
        l1_total += static_cast<double>(l1_sum);
        l1_sum = 0;
      }
    };
    const bool all_in_map = centre0 >= m.map_x0 && centre0 + 8 <= m.map_x1;
    const int map_row0 = m.map_y0 - (first_row + kRadius);
    const int map_row1 = m.map_y1 - (first_row + kRadius);
    const int columns_left = min(m.owned - task * 8, m.width - (column0 + kBehind + task * 8));
    std::int64_t to_gradient = 0;
    float slope = 0, l1_slope = 0;
    if constexpr (kGradient) {
      const PlaneSlopes slopes = m.slope.of(plane);
      slope = static_cast<float>(4 * slopes.term);
      l1_slope = static_cast<float>(slopes.l1);
      to_gradient = image * m.gradient.image_stride + channel * m.gradient.channel_stride +
                    std::int64_t{first_row - kBehind + (first_batch - 1) * kRows + task_row} *
                        m.gradient.row_stride +
                    column0 + kBehind + task * 8;
    }
    const Owned pixels = owned_pixels<P>(m, strip, row0, rows, column0, first_row);
    const int column = column0 + before + kEach * t;  // the first of this thread's
    const float l1_first = column >= pixels.column0 && column < pixels.column1 ? 1.f : 0.f;
    const float l1_second = column + 1 >= pixels.column0 && column + 1 < pixels.column1 ? 1.f : 0.f;
    Halver halver(m, plane, column, pixels, first_row + first_batch * kRows, shift);
    PixelWeights<P> pixel_weights(m, image, channel, column);
    const float* const window_weights = kIsMasked && centre0 < m.map_x1 && centre0 + 8 > m.map_x0
                                            ? m.extras.valid.windows_of(image, channel)
                                            : nullptr;
    const MapPlane at_plane(m, plane);
    const int columns_of_warp = task / gpu::kWarp * gpu::kWarp * 8;  // before this warp's
    const gpu::View& spread = kGradient ? m.extras.any_gradient : m.extras.map;
    const std::int64_t in_spread =
        kGradient ? spread.plane(image, channel) +
                        spread.at(0, first_row + kBehind, column0 + kBehind + columns_of_warp)
                  : at_plane.map +
                        spread.at(0, first_row + kRadius - m.map_y0, column0 + kRadius - m.map_x0);
    const int spread_columns = kGradient
                                   ? min(m.owned, m.width - (column0 + kBehind)) - columns_of_warp
                                   : min(m.owned, m.map_x1 - (column0 + kRadius));
    const RowsOfWarp spread_rows(
        spread, in_spread, kGradient ? 0 : max(0, m.map_x0 - (column0 + kRadius)), spread_columns);
    unsigned in_map = 0;  // bit o: whether window o of this task is
#pragma unroll
    for (int o = 0; o < 8; ++o) {
      if (centre0 + o >= m.map_x0 && centre0 + o < m.map_x1) in_map |= 1u << o;
    }
    const int steps = batches + (kGradient ? 1 : 0);
#pragma unroll 1
    for (int n = first_batch; n < steps; ++n) {
      if constexpr (kIsMasked) pixel_weights.fetch(first_row + n * kRows);
      if constexpr (Pairs::kGathers) {
        gpu::await_words();
      } else if (n < batches) {
        gpu::wait_for(flags + ((turn + n) & 1), (turn + n) >> 1);
      }
      __syncthreads();
      if constexpr (kGradient) {
        sum_derivatives_down<P>(b_rows, d_rows, own, w, derivative_state);  // V2
      }
      const Element* const in = raw + (n % P::kRing) * 2 * P::kImage + own_raw;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {  // V1
        float x[kEach], y[kEach], s[kEach], d[kEach];
        load_some<kEach>(in + i * P::kBox, x);
        load_some<kEach>(in + P::kImage + i * P::kBox, y);
        sums_of<Pairs>(x, y, half_shift, sign, s, d);
        float out[4][kEach];
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
          float squared_s = s[k] * s[k], squared_d = d[k] * d[k];
          if constexpr (kIsMasked) {
            const float2 weight = pixel_weights.of[i];
            weigh_pixel(k == 0 ? weight.x : weight.y, s[k], d[k], squared_s, squared_d);
          }
          out[0][k] = push(state[0][k], s[k], w);
          out[1][k] = push(state[1][k], d[k], w);
          out[2][k] = push(state[2][k], squared_s, w);
          out[3][k] = push(state[3][k], squared_d, w);
        }
#pragma unroll
        for (int f = 0; f < 4; ++f) store_some(a_rows + (f * kRows + i) * kPitch + own_a, out[f]);
        if constexpr (kTrains) {
          const int row = first_row + n * kRows + i;
          if (m.extras.sums_l1 && row >= pixels.row0 && row < pixels.row1) {
            l1_sum = fmaf(fabsf(d[0]), l1_first, fmaf(fabsf(d[1]), l1_second, l1_sum));
          }
          if (m.extras.halved_sum.data != nullptr) halver.push(i, s, d);
        }
      }
      __syncthreads();
      if (fetches && n + 2 < batches) fetch(n + 2);
      if constexpr (Pairs::kGathers) gpu::mark_words();
      if constexpr (kGradient) {  // H2: finishes rows b of the gradient
        if (n > P::kHalo / kRows) {
          const int b = (n - 1) * kRows - P::kHalo + task_row;
          // Loaded row b + kBehind is in batch n - 4 or n - 3.
          const int from_batch = task_row + 3 * kRows - kBehind;
          const Element* const centre = raw +
                                        ((n - 4 + from_batch / kRows) % P::kRing) * 2 * P::kImage +
                                        from_batch % kRows * P::kBox;
          float x[8], y[8], s[8], d[8], g[8], derivative[8];
          float pixel_weight[8] = {};
          if constexpr (kIsMasked) {
            if (b < rows && columns_left > 0) {
              const float* const from = m.extras.valid.pixels_of(image, channel) +
                                        (first_row + kBehind + b) * m.extras.valid.pixel_row +
                                        column0 + kBehind + task * 8;
              load_some<4>(from, pixel_weight);
              load_some<4>(from + 4, pixel_weight + 4);
            }
          }
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int word =
                P::word_of(min(task * 8 + kBehind - before + loaded_before + 4 * j, kLoaded - 4));
            load_some<4>(centre + word, x + 4 * j);
            load_some<4>(centre + P::kImage + word, y + 4 * j);
          }
          sums_of<Pairs>(x, y, half_shift, sign, s, d);
          const float* const row = d_rows + at_task;
          across<kHalf>(row, w, g);
          across<kHalf>(row + kArray, w, derivative);
#pragma unroll
          for (int o = 0; o < 8; ++o) g[o] = fmaf(-s[o], derivative[o], g[o]);
          across<kHalf>(row + 2 * kArray, w, derivative);
#pragma unroll
          for (int o = 0; o < 8; ++o) g[o] = slope * fmaf(d[o], derivative[o], g[o]);
          if constexpr (kIsMasked) {
            const float of_nothing = 0.f * slope;  // NaN if a weight is not one
#pragma unroll
            for (int o = 0; o < 8; ++o) {
              g[o] = pixel_weight[o] == 0 ? of_nothing : pixel_weight[o] * g[o];
            }
          }
          if constexpr (kTrains) {
            if (l1_slope != 0) {
#pragma unroll
              for (int o = 0; o < 8; ++o) {
                if (d[o] != 0) g[o] = fmaf(copysignf(1.f, d[o]), l1_slope, g[o]);
              }
            }
          }
          void* const gradient = const_cast<void*>(m.gradient.data);
          if constexpr (!P::kStages) {
            if (b < rows) store8(static_cast<Element*>(gradient) + to_gradient, g, columns_left);
          } else if (b < rows && gradient != nullptr) {
            store8(gradient, m.gradient_dtype, to_gradient, g, columns_left);
          } else if (b < rows && spread_rows.first != nullptr) {
            spread_rows.store(b * spread.strides[3], g, staging);
          } else if (b < rows) {
            const std::int64_t first =
                spread.plane(image, channel) +
                spread.at(0, first_row + kBehind + b, column0 + kBehind + task * 8);
            store8_apart(spread, first, g, columns_left);
          }
        }
        to_gradient += m.gradient.row_stride * kRows;
      }
      if ((n + 1) * kRows > kBehind && n < batches) {  // H1
#pragma unroll 1
        for (int it = 0; it < kRows / P::kTaskRows; ++it) {
          float* const row = a_rows + it * P::kTaskRows * kPitch + at_task;
          const int a = n * kRows - kBehind + it * P::kTaskRows + task_row;
          const bool row_in_map = a >= map_row0 && a < map_row1;
          float mean[4][8];
#pragma unroll
          for (int f = 0; f < 4; ++f) across<kHalf>(row + f * kArray, w, mean[f]);
          const bool owned_row =
              kGradient ? a >= kRadius && a < rows + kRadius && row_in_map : a >= 0 && a < rows;
          float derivative[3][8], value[8];
          float inverse[8], window_weight[8];
          if constexpr (kIsMasked) {
            load_window_weights(
                row_in_map && window_weights != nullptr
                    ? window_weights + (first_row + kRadius + a) * m.extras.valid.window_row
                    : nullptr,
                centre0, inverse, window_weight);
#pragma unroll
            for (int f = 0; f < 4; ++f) {
#pragma unroll
              for (int o = 0; o < 8; ++o) mean[f][o] *= inverse[o];
            }
          }
#pragma unroll
          for (int o = 0; o < 8; ++o) {
            const Point r =
                point(mean[0][o], mean[1][o], mean[2][o], mean[3][o], shift, m.c1, m.c2);
            value[o] = r.value;
            if constexpr (kIsMasked) {
              value[o] = window_weight[o] == 0 ? 0.f : window_weight[o] * r.value;
            }
            if (!kDoesAll && owned_row) sum[o] += value[o];
            if constexpr (kGradient) {
              derivatives_of(
                  r, mean[0][o], &derivative[0][o], &derivative[1][o], &derivative[2][o]);
            }
            if constexpr (kGradient && kIsMasked) {
              const float factor = window_weight[o] * inverse[o];
#pragma unroll
              for (int f = 0; f < 3; ++f) {
                derivative[f][o] = window_weight[o] == 0 ? 0.f : factor * derivative[f][o];
              }
            }
          }
          if constexpr (kDoesAll) {
            float weight[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            weigh<P>(m, at_plane, {first_row + kRadius + a, centre0}, row_in_map ? in_map : 0,
                staging + t * 8, weight, value, derivative);
#pragma unroll
            for (int o = 0; o < 8; ++o) {
              if (owned_row) sum[o] += value[o];
            }
            if (!kGradient && m.extras.map.data != nullptr) {
              float element[8];
#pragma unroll
              for (int o = 0; o < 8; ++o) {
                element[o] = fmaf(2 * m.extras.map_slope, value[o], weight[o] * m.extras.map_bias);
              }
              if (owned_row) spread_rows.store(a * spread.strides[3], element, staging);
            }
          }
          if constexpr (kGradient) {
            if (!(all_in_map && row_in_map)) {
#pragma unroll
              for (int o = 0; o < 8; ++o) {
                const bool exists = row_in_map && centre0 + o >= m.map_x0 && centre0 + o < m.map_x1;
#pragma unroll
                for (int f = 0; f < 3; ++f) derivative[f][o] = exists ? derivative[f][o] : 0.f;
              }
            }
#pragma unroll
            for (int f = 0; f < 3; ++f) {
#pragma unroll
              for (int j = 0; j < 2; ++j) {
                store4(row + (4 + f) * kArray + j * kHalf, derivative[f] + 4 * j);
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
    if (m.partials != nullptr) {
      double* const words = reinterpret_cast<double*>(a_rows);
      Partial segment = {2 * gpu::block_sum_warps<P::kThreads>(total, words), 0};
      if constexpr (kTrains) segment.l1 = gpu::block_sum_warps<P::kThreads>(l1_total, words);
      if (t == 0) {
        Partial* const to = m.partials + blockIdx.x + column_strip;
        to[0] = segment;
        // The next block begins the next strip: no segment has the number between.
        if (pair == last_pair && row0 + rows == m.rows) to[1] = {0, 0};
      }
    }
  }
  if (m.finish.value != nullptr) finish<P>(m, reinterpret_cast<double*>(a_rows));
#endif
}

// Returns the number of blocks that run at once on a device; the driver is asked once.
template <class P> int resident_blocks(Device device) {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices] = {};
  if (device.index < kDevices && known[device.index] != 0) return known[device.index];
  const auto kernel = sliding_window_kernel<P>;
  gpu::allow_shared_bytes(kernel, P::kSharedBytes);
  const int blocks = gpu::blocks_per_multiprocessor(kernel, P::kThreads, P::kSharedBytes) *
                     gpu::limits(device).multiprocessors;
  if (device.index < kDevices) known[device.index] = blocks;
  return blocks;
}

// Returns the number of blocks: as many as run at once, or fewer per multiprocessor if segments
// would overlap in more rows than they own. For 256×256 a value then takes 12 µs instead of 15.
template <class P> int sliding_window_blocks(const SlidingWindow& m, Device device) {
  constexpr std::int64_t kLeastRows = 10;
  const std::int64_t strips = m.planes * m.strips, rows = strips * m.rows;
  const int multiprocessors = gpu::limits(device).multiprocessors;
  std::int64_t blocks = resident_blocks<P>(device);
  while (blocks > multiprocessors && rows / blocks < kLeastRows) blocks -= multiprocessors;
  return static_cast<int>(
      std::min(blocks, strips * ((m.rows + 1) / 2)));  // each block has a pair of rows
}

template <class P>
void launch_sliding_window(const SlidingWindow& m, int blocks, const Execution& exec) {
  const auto map_of = [&](const PlaneArray& a) {
    if (P::Pairs::kGathers) return CUtensorMap{};
    return gpu::tensor_map<typename P::Element>({a.data, m.width, m.height, m.channels, m.images,
                                                    a.row_stride, a.channel_stride, a.image_stride},
        P::kBox, P::kRows);
  };
  gpu::launch("ssim", exec.queue.handle, static_cast<unsigned>(blocks), P::kThreads,
      P::kSharedBytes, sliding_window_kernel<P>, m, map_of(m.x), map_of(m.y));
}

template <class P> SlidingWindowVariant variant() {
  return {P::kRadius, P::kOwned, P::kColumns, P::kGradient ? P::kColumns : P::kColumns - P::kBehind,
      P::kAlign, P::kHalo + P::kRows / 2, P::kSharedBytes, sliding_window_blocks<P>,
      launch_sliding_window<P>};
}

/// Returns the instance of one of two widths. The columns that a strip loads and does not own are a
/// rim, so wide strips waste less, unless the image's width leaves much of the last one empty. The
/// instance that does all has one width, the one that leaves it most registers and gives a warp
/// whole rows of a map.
template <class Pairs, bool gradient, Scope scope> SlidingWindowVariant variant(bool wide) {
  using Wide = std::conditional_t<gradient, SlidingWindowPolicy<Pairs, 256, 4, 1, true, scope>,
      SlidingWindowPolicy<Pairs, 128, 8, 3, false, scope>>;
  using Narrow = std::conditional_t<gradient, SlidingWindowPolicy<Pairs, 128, 4, 2, true, scope>,
      SlidingWindowPolicy<Pairs, 96, 8, 4, false, scope>>;
  if constexpr (scope == Scope::all) {
    return variant<std::conditional_t<gradient, Narrow, Wide>>();
  } else if constexpr (scope == Scope::masked) {
    return variant<
        std::conditional_t<gradient, Wide, SlidingWindowPolicy<Pairs, 128, 8, 2, false, scope>>>();
  } else {
    return wide ? variant<Wide>() : variant<Narrow>();
  }
}

/// Returns the instance for plain calls, or the one that does all.
template <class Pairs, bool gradient> SlidingWindowVariant plain_or_all(SlidingWindowKind kind) {
  return kind.scope == Scope::plain ? variant<Pairs, gradient, Scope::plain>(kind.wide)
                                    : variant<Pairs, gradient, Scope::all>(kind.wide);
}
template <class Pairs> SlidingWindowVariant plain_or_all(SlidingWindowKind kind) {
  return kind.gradient ? plain_or_all<Pairs, true>(kind) : plain_or_all<Pairs, false>(kind);
}

}  // namespace similis::ssim_internal

#endif
