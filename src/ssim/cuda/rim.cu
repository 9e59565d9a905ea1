// SPDX-License-Identifier: Apache-2.0
// SSIM in the rim of a plane. Paddings differ there alone, so the sliding window kernel takes the
// windows inside as it takes padding valid, and this kernel the rest: with padding reflect,
// replicate and renormalize, and where rows just fit the sliding window with windows of 11 and
// padding valid. A block takes a tile of a band along one side, from its edge inwards. Bands along
// the top and bottom own the corners; those of left and right lie between them.
//   columns, 1 a thread   averages from the edge inwards, of 5 rows of windows  ─> shared
//   runs of 8             averages along ─ formula ─> sum; 3 derivatives        ─> shared
//   columns               sums inwards of the derivatives, by `adjoint`         ─> shared
//   runs of 8             sums along                                            ─> shared
//   columns               sums at pixels beyond the edge that stand for these   ─> gradient
// A block is little more than a chain of loads and barriers; so nothing is loaded twice, and the
// gradient to add to is under way while sums are made.
// 15 rows of windows see the pixels where two bands meet or the gradient is computed anew.
#include "src/ssim/cuda/rim.h"

#include <algorithm>
#include <vector>

#include "src/ssim/cuda/any_window/any_window.cuh"
#include "src/ssim/cuda/formula.cuh"
#include "src/ssim/cuda/sliding_window_layout.cuh"
#include "src/ssim/cuda/sliding_window_window.cuh"
#include "src/window/window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {
namespace {

using any_window::seen_pixel;

constexpr int kRadius = Rim::kRadius, kTaps = Rim::kTaps;
constexpr int kThreads = 128;                   // columns that a tile loads
constexpr int kSeen = kThreads - 2 * kRadius;   // windows that it averages along
constexpr int kOwned = kThreads - 4 * kRadius;  // pixels that it owns
constexpr int kRows = kRadius;                  // rows of windows that are averaged at once
constexpr int kMostRows = Rim::kWindows;
constexpr int kFields = 4, kDerivatives = 3;
// Rows in shared memory are laid out as those of the sliding window.
constexpr int kHalf = 80, kPitch = 2 * kHalf;
constexpr int kBefore = 8;  // columns of derivatives before the first window
constexpr int kRuns = kThreads / 8, kRunsOfWindows = (kSeen + 7) / 8;
static_assert(kBefore + kThreads + 2 * kRadius <= kPitch && kHalf % 32 == 16);
static_assert(kOwned + 2 * kRadius + kBefore <= kThreads);  // pixels beyond an edge
constexpr int kSums = std::max(kFields * kRows, kDerivatives* Rim::kDeep) * kPitch;
constexpr int kSharedBytes =
    (kSums + kDerivatives * kMostRows * kPitch) * static_cast<int>(sizeof(float));

__device__ __forceinline__ int word_of(int column) {
  const int chunk = column / 4;
  return (chunk & 1) * kHalf + (chunk >> 1) * 4 + column % 4;
}

std::int64_t pieces(std::int64_t length) { return (length + kOwned - 1) / kOwned; }

// Elements of a plane, counted from an edge inwards and along it.
struct Lines {
  std::int64_t first, inwards, along;
  __device__ std::int64_t at(int depth, int position) const {
    return first + depth * inwards + position * along;
  }
};

// A tile of a band, and the pixels that it owns along the edge.
struct Tile {
  std::int64_t plane, image, channel;
  bool is_flat, from_end;  // along a row; from the last row or column inwards
  int length, depth;       // extents of the plane along the edge and inwards
  int begin, end;          // owned pixels
  int counted_begin, counted_end;

  __device__ Tile(const Rim& r, int across, int down) {
    const int tiles = 2 * (across + down);
    const auto index = static_cast<unsigned>(blockIdx.x);
    plane = index / static_cast<unsigned>(tiles);
    int place = static_cast<int>(index - static_cast<unsigned>(plane) * tiles);
    image = static_cast<unsigned>(plane) / static_cast<unsigned>(r.channels);
    channel = plane - image * r.channels;
    is_flat = place < 2 * across;
    if (!is_flat) place -= 2 * across;
    const int each = is_flat ? across : down;
    from_end = place >= each;
    if (from_end) place -= each;
    length = is_flat ? r.width : r.height;
    depth = is_flat ? r.height : r.width;
    const int first = is_flat ? 0 : Rim::kDeep, last = length - first;
    begin = first + place * kOwned;
    end = min(begin + kOwned, last);
    // Windows of the corners are counted by the bands along the top and bottom.
    counted_begin = !is_flat && begin == first ? kRadius : begin;
    counted_end = !is_flat && end == last ? length - kRadius : end;
  }
  __device__ Lines lines(const gpu::View& view) const {
    const std::int64_t inwards = is_flat ? view.strides[3] : view.strides[4];
    const std::int64_t along = is_flat ? view.strides[4] : view.strides[3];
    const std::int64_t first = view.plane(image, channel);
    if (from_end) return {first + (depth - 1) * inwards, -inwards, along};
    return {first, inwards, along};
  }
  // The tile's windows reach those of the bands that end here.
  __device__ bool has_corner() const {
    return is_flat && (begin < 2 * kRadius || end > length - 2 * kRadius);
  }
  __device__ bool is_in_rim_along(int position) const {
    return position < kRadius || position >= length - kRadius;
  }
};

// The inverse of the sum of the taps that the image has for a window.
__device__ __forceinline__ float inverse_of(const Rim& r, int position, int length) {
  const int from_edge = min(position, length - 1 - position);
  return from_edge >= 0 && from_edge < kRadius ? r.inverse_weight[from_edge] : 1.f;
}

// A thread's column of pixels, from kRadius before the first of 5 windows inwards.
struct Column {
  static constexpr int kLoaded = kRows + 2 * kRadius;
  float x[kLoaded], y[kLoaded];
  unsigned exists = 0;  // bit j is set if pixel j does

  __device__ __forceinline__ void load(const Rim& r, const Tile& tile, const Lines& of_x,
      const Lines& of_y, int first_row, int position) {
    const int seen = seen_pixel(position, tile.length, r.padding);
    exists = 0;
    any_window::visit<float>(r.x.dtype, [&]<class E>(std::type_identity<E>) {
      const E* const from_x = static_cast<const E*>(r.x.data) + of_x.at(0, seen);
      const E* const from_y = static_cast<const E*>(r.y.data) + of_y.at(0, seen);
#pragma unroll
      for (int j = 0; j < kLoaded; ++j) {
        const int row = seen_pixel(first_row - kRadius + j, tile.depth, r.padding);
        const bool is_there = seen >= 0 && row >= 0;
        x[j] = is_there ? any_window::element<float>(from_x + row * of_x.inwards) : 0.f;
        y[j] = is_there ? any_window::element<float>(from_y + row * of_y.inwards) : 0.f;
        exists |= is_there ? 1u << j : 0u;
      }
    });
  }
  // Turns x and y into s and d: 0 where no pixel is, but with padding same of pixels of 0.
  __device__ __forceinline__ void shift_by(float half_shift, bool has_zeros_outside) {
    if (has_zeros_outside) exists = ~0u;
#pragma unroll
    for (int j = 0; j < kLoaded; ++j) {
      const float s = (x[j] - half_shift) + (y[j] - half_shift);
      y[j] = x[j] - y[j];
      x[j] = (exists >> j & 1) != 0 ? s : 0.f;
    }
  }
  // Averages 5 windows inwards into a column of shared memory.
  __device__ __forceinline__ void average(const float (&taps)[kTaps], float* to) const {
    float mean[kFields][kRows] = {};
#pragma unroll
    for (int j = 0; j < kLoaded; ++j) {
      const float input[kFields] = {x[j], y[j], x[j] * x[j], y[j] * y[j]};
#pragma unroll
      for (int c = 0; c < kRows; ++c) {
        if (j < c || j - c >= kTaps) continue;
#pragma unroll
        for (int f = 0; f < kFields; ++f) mean[f][c] = fmaf(taps[j - c], input[f], mean[f][c]);
      }
    }
#pragma unroll
    for (int f = 0; f < kFields; ++f) {
#pragma unroll
      for (int c = 0; c < kRows; ++c) to[(f * kRows + c) * kPitch] = mean[f][c];
    }
  }
};

// Averages 8 windows along the edge, writes their derivatives if asked for, and returns the sum of
// those that this tile counts.
__device__ __forceinline__ float take_windows(const Rim& r, const Tile& tile, const float* averages,
    const float (&w)[kRadius + 1], float shift, int row, int run, float* derivatives) {
  const int first = tile.begin - kRadius + run * 8;  // its place along the edge
  float mean[kFields][8], inverse[8], derivative[kDerivatives][8];
#pragma unroll
  for (int f = 0; f < kFields; ++f) {
    sliding_window::across<kHalf>(averages + f * kRows * kPitch + run * 4, w, mean[f]);
  }
#pragma unroll
  for (float& each : inverse) each = 1;
  if (r.padding == Padding::renormalize) {
    const float inwards = inverse_of(r, row, tile.depth);
#pragma unroll
    for (int o = 0; o < 8; ++o) {
      inverse[o] = inwards * inverse_of(r, first + o, tile.length);
#pragma unroll
      for (int f = 0; f < kFields; ++f) mean[f][o] *= inverse[o];
    }
  }
  float sum = 0;
#pragma unroll
  for (int o = 0; o < 8; ++o) {
    const int position = first + o;
    const bool exists = run * 8 + o < kSeen && row >= r.first && position >= r.first &&
                        position < tile.length - r.first;
    const Point p = point(mean[0][o], mean[1][o], mean[2][o], mean[3][o], shift, r.c1, r.c2);
    const bool counts =
        exists && row < kRadius && position >= tile.counted_begin && position < tile.counted_end;
    sum += counts ? p.value : 0.f;
    float of[kDerivatives];
    derivatives_of(p, mean[0][o], &of[0], &of[1], &of[2]);
    const bool takes =
        exists && (row < kRadius || r.replaces_gradient || tile.is_in_rim_along(position));
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) derivative[f][o] = takes ? inverse[o] * of[f] : 0.f;
  }
  if (derivatives == nullptr) return sum;
#pragma unroll
  for (int f = 0; f < kDerivatives; ++f) {
    float* const to = derivatives + (f * kMostRows + row) * kPitch + kBefore / 2 + run * 4;
#pragma unroll
    for (int j = 0; j < 2; ++j) sliding_window::store4(to + j * kHalf, derivative[f] + 4 * j);
  }
  return sum;
}

// Sums derivatives inwards, in a column of shared memory, by the weights of pixels in windows.
__device__ __forceinline__ void sum_inwards(const Rim& r, float* column, bool is_deep) {
  float sum[kDerivatives][Rim::kDeep] = {};
#pragma unroll
  for (int c = 0; c < kMostRows; ++c) {
    if (c == kRows && !is_deep) break;
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) {
      const float v = column[(f * kMostRows + c) * kPitch];
#pragma unroll
      for (int p = 0; p < Rim::kDeep; ++p) {
        if (p < c - kRadius || p > c + kRadius) continue;
        sum[f][p] = fmaf(r.adjoint[p][c], v, sum[f][p]);
      }
    }
  }
#pragma unroll
  for (int f = 0; f < kDerivatives; ++f) {
#pragma unroll
    for (int p = 0; p < Rim::kDeep; ++p) column[(f * kMostRows + p) * kPitch] = sum[f][p];
  }
}

__global__ void __launch_bounds__(kThreads, 4) rim_kernel(const Rim r, int across, int down) {
  SIMILIS_DYNAMIC_SHARED(float, sums, 16);  // [field or derivative][row][pitch]
  float* const derivatives = sums + kSums;  // [derivative][row][pitch]
  __shared__ double words[kThreads / gpu::kWarp];
  __shared__ float middle;
  const int t = static_cast<int>(threadIdx.x);
  const Tile tile(r, across, down);
  const Lines of_x = tile.lines(r.x), of_y = tile.lines(r.y);
  const bool has_gradient = r.gradient.data != nullptr;
  const bool is_deep = has_gradient && (r.replaces_gradient || tile.has_corner());
  const int rows = is_deep ? kMostRows : kRows;  // of windows
  const int position = tile.begin - 2 * kRadius + t;
  float w[kRadius + 1];
#pragma unroll
  for (int k = 0; k <= kRadius; ++k) w[k] = r.taps[k];
  Column column;
  column.load(r, tile, of_x, of_y, 0, position);
  if (t == 2 * kRadius + (tile.end - tile.begin) / 2) {  // half of x + y of an owned pixel
    const float half = (column.x[2 * kRadius] + column.y[2 * kRadius]) / 2;
    middle = fabsf(half) < INFINITY ? half : 0.f;
  }
  if (has_gradient) {  // columns before and behind all that threads sum inwards
    constexpr int kBehind = kBefore + kThreads, kEmpty = kBefore + 4;
    for (int i = t; i < kDerivatives * kMostRows * kEmpty; i += kThreads) {
      const int at = i % kEmpty;
      derivatives[i / kEmpty * kPitch + word_of(at < kBefore ? at : kBehind + at - kBefore)] = 0;
    }
  }
  __syncthreads();
  const float half_shift = middle, shift = 2 * half_shift;
  const bool has_zeros_outside = r.padding == Padding::same;
  column.shift_by(half_shift, has_zeros_outside);
  float s[Rim::kDeep], d[Rim::kDeep];  // of the pixels that this thread owns
#pragma unroll
  for (int p = 0; p < Rim::kDeep; ++p) {
    s[p] = column.x[kRadius + p];
    d[p] = column.y[kRadius + p];
  }
  column.average(r.taps, sums + word_of(t));
  __syncthreads();
  // Windows of the first rows, and of those behind, which are few in most tiles.
  double total = 0;
#pragma unroll 1
  for (int first_row = 0;;) {
    const int c = t / kRunsOfWindows, run = t - c * kRunsOfWindows, row = first_row + c;
    if (c < kRows) {
      total += static_cast<double>(take_windows(
          r, tile, sums + c * kPitch, w, shift, row, run, has_gradient ? derivatives : nullptr));
    }
    first_row += kRows;
    if (first_row >= rows) break;
    column.load(r, tile, of_x, of_y, first_row, position);
    column.shift_by(half_shift, has_zeros_outside);
    __syncthreads();  // the last rows are read
    column.average(r.taps, sums + word_of(t));
    __syncthreads();
  }
  if (r.partials != nullptr) {
    total = 2 * gpu::block_sum_warps<kThreads>(total, words);
    if (t == 0) r.partials[blockIdx.x] = total;
  }
  if (has_gradient) {
    const bool is_owned = position >= tile.begin && position < tile.end;
    const Lines of_gradient = tile.lines(r.gradient);
    const std::int64_t to = of_gradient.at(0, position);
    float gradient[Rim::kDeep] = {};
    if (is_owned && !r.replaces_gradient) {  // comes while sums are made
      const float* const from = static_cast<const float*>(r.gradient.data) + to;
#pragma unroll
      for (int p = 0; p < Rim::kDeep; ++p) gradient[p] = from[p * of_gradient.inwards];
    }
    __syncthreads();
    if (t < 8 * kRunsOfWindows) {
      sum_inwards(r, derivatives + word_of(kBefore + t), is_deep);
    } else {
      for (int row = 0; row < kDerivatives * kMostRows; ++row) {
        derivatives[row * kPitch + word_of(kBefore + t)] = 0;
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int task = t; task < Rim::kDeep * kRuns; task += kThreads) {
      const int p = task / kRuns, run = task - p * kRuns;
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        float out[8];
        sliding_window::across<kHalf>(derivatives + (f * kMostRows + p) * kPitch + run * 4, w, out);
        float* const along = sums + (f * Rim::kDeep + p) * kPitch + run * 4;
#pragma unroll
        for (int j = 0; j < 2; ++j) sliding_window::store4(along + j * kHalf, out + 4 * j);
      }
    }
    __syncthreads();
    if (is_owned) {
      const PlaneSlopes slopes = r.slope.of(tile.plane);
      const float slope = static_cast<float>(4 * slopes.term);
      const float l1_slope = r.replaces_gradient ? static_cast<float>(slopes.l1) : 0.f;
      const bool folds = r.padding == Padding::reflect || r.padding == Padding::replicate;
      const auto add = [&](int at) {
        const float* const from = sums + word_of(at - tile.begin + kBefore);
#pragma unroll
        for (int p = 0; p < Rim::kDeep; ++p) {
          const float* const of_row = from + p * kPitch;
          const float of_pixel = fmaf(d[p], of_row[2 * Rim::kDeep * kPitch],
              fmaf(-s[p], of_row[Rim::kDeep * kPitch], of_row[0]));
          gradient[p] = fmaf(slope, of_pixel, gradient[p]);
        }
      };
      add(position);
      const int last = tile.length - 1;
      if (folds && (position <= kRadius || position >= last - kRadius)) {
#pragma unroll 1
        for (int beyond = 1; beyond <= kRadius; ++beyond) {
          if (seen_pixel(-beyond, tile.length, r.padding) == position) add(-beyond);
          if (seen_pixel(last + beyond, tile.length, r.padding) == position) add(last + beyond);
        }
      }
#pragma unroll
      for (int p = 0; p < Rim::kDeep; ++p) {
        if (l1_slope != 0 && d[p] != 0) {
          gradient[p] = fmaf(copysignf(1.f, d[p]), l1_slope, gradient[p]);
        }
        const std::int64_t element = to + p * of_gradient.inwards;
        if (r.gradient.dtype == DType::f32) {
          static_cast<float*>(r.gradient.data)[element] = gradient[p];
        } else {
          r.gradient.store(element, gradient[p]);
        }
      }
    }
  }
  if (r.finish.value == nullptr || !sliding_window::arrives_last(r.finish.arrived)) return;
  const int tiles = 2 * (across + down);
  sliding_window::write_groups<kThreads>(r.finish, r.segments, words,
      [&](Partial& sum, std::int64_t plane, std::int64_t planes, int lane, int lanes) {
        for (std::int64_t i = lane; i < planes * tiles; i += lanes) {
          sum.term += __ldcg(r.partials + plane * tiles + i);
        }
      });
}

}  // namespace

std::int64_t rim_tiles(std::int64_t height, std::int64_t width) {
  return 2 * (pieces(width) + pieces(height - 2 * Rim::kDeep));
}

void set_window(Rim& rim, const std::vector<double>& taps) {
  const std::vector<float> rounded = taps_in_f32(taps);
  const auto first = static_cast<std::ptrdiff_t>(Rim::kRadius - rounded.size() / 2);
  std::fill(std::begin(rim.taps), std::end(rim.taps), 0.f);
  std::copy(rounded.begin(), rounded.end(), rim.taps + first);
  constexpr int kFar = 1 << 20;  // an axis of so many pixels, of which one end matters
  for (int c = 0; c < Rim::kWindows; ++c) {
    double of_pixel[Rim::kDeep] = {}, seen = 0;
    for (int k = 0; k < Rim::kTaps; ++k) {
      const double tap = static_cast<double>(rim.taps[k]);
      const int pixel = any_window::seen_pixel(c - Rim::kRadius + k, kFar, rim.padding);
      if (pixel >= 0) seen += tap;
      if (pixel >= 0 && pixel < Rim::kDeep) of_pixel[pixel] += tap;
    }
    for (int p = 0; p < Rim::kDeep; ++p) rim.adjoint[p][c] = static_cast<float>(of_pixel[p]);
    if (c < Rim::kRadius) {
      const bool divides = rim.padding == Padding::renormalize;
      rim.inverse_weight[c] = divides ? static_cast<float>(1 / seen) : 1.f;
    }
  }
}

void run_rim(const Rim& rim, const Execution& exec) {
  const std::int64_t across = pieces(rim.width), down = pieces(rim.height - 2 * Rim::kDeep);
  gpu::allow_shared_bytes(rim_kernel, kSharedBytes);
  gpu::launch("ssim", exec.queue.handle,
      static_cast<unsigned>(rim.planes * rim_tiles(rim.height, rim.width)), kThreads, kSharedBytes,
      rim_kernel, rim, static_cast<int>(across), static_cast<int>(down));
}

}  // namespace similis::ssim_internal

#endif
