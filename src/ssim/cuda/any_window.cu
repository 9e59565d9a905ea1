// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU of images under any window of up to 33×33, with any padding and masks, in f32, or
// in f64 for f64 images. Blocks take tiles:
//   windows kernel   columns of x, y from memory: averages down ─> shared ─> averages across ─>
//                    moments ─ formula ─> sum, map; 3 derivatives divided by the window's weight
//   gradient kernel  columns of derivatives from memory: sums down ─> shared ─> sums across, with x
//                    and y ─> gradient
// A thread averages 8 neighbours (4 in f64), of all fields at once: a tap is one load from the
// constant bank and 32 fused multiply-adds. Averages of s, d, s², d², and of the mask if pixels are
// masked. Windows see pixels beyond the edge by the index that they load. Gradients go back by the
// same taps; where a window sees pixels of the rim twice, by a table of taps for those pixels.
// Derivatives of as many planes as fit into 128 MiB, and at least of one, are in memory at a time:
// 12 B a pixel. Per pixel in f32, window r: 4·2·(2r + 1)·k fused operations and 3·2·(2r + 1)·k with
// the gradient, k = 128/(128 - 2r) down and 1 across.
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/any_window.cuh"
#include "src/window/window.h"

namespace similis::ssim_internal {
namespace {

using namespace any_window;

// A column of x and y, and of the mask if pixels are masked, that a window sees.
template <class T, bool masked> struct PixelColumn {
  static constexpr int kFetched = Tiling<T>::kOutputs;
  const Work<T>& w;
  const Plane<T>& plane;
  const std::int64_t x, y, mask;  // offsets of row 0
  const int first, limit;         // index of the first row; number of rows that are needed
  const bool has_column;
  T vx[kFetched], vy[kFetched], vm[masked ? kFetched : 1];
  unsigned outside = 0;  // bit j is set if row j of those fetched does not exist

  __device__ PixelColumn(
      const Work<T>& work, const Plane<T>& of, int column, int first_row, int rows)
      : w(work),
        plane(of),
        x(of.of(work.x) + column * work.x.strides[4]),
        y(of.of(work.y) + column * work.y.strides[4]),
        mask(of.of(work.valid_mask) + column * work.valid_mask.strides[4]),
        first(first_row),
        limit(rows),
        has_column(column >= 0) {}

  __device__ __forceinline__ void fetch(int group, int) {
    outside = 0;
    int row[kFetched];
#pragma unroll
    for (int j = 0; j < kFetched; ++j) {
      row[j] = seen_pixel(first + group + j, w.extent[0], w.padding);
      if (!has_column || group + j >= limit) row[j] = -1;
      if (row[j] < 0) outside |= 1u << j;
    }
    visit<T>(w.x.dtype, [&]<class E>(std::type_identity<E>) {
      const E *const from_x = static_cast<const E*>(w.x.data) + x, *const from_y =
                                                                       static_cast<const E*>(
                                                                           w.y.data) +
                                                                       y;
#pragma unroll
      for (int j = 0; j < kFetched; ++j) {
        vx[j] = row[j] >= 0 ? element<T>(from_x + row[j] * w.x.strides[3]) : T(0);
        vy[j] = row[j] >= 0 ? element<T>(from_y + row[j] * w.y.strides[3]) : T(0);
      }
    });
    if constexpr (masked) {
      const T beyond = w.padding == Padding::same ? 1 : 0;  // zeros outside count
      visit<T>(w.valid_mask.dtype, [&]<class E>(std::type_identity<E>) {
        const E* const from = static_cast<const E*>(w.valid_mask.data) + mask;
#pragma unroll
        for (int j = 0; j < kFetched; ++j) {
          vm[j] = row[j] >= 0 ? checked_weight(element<T>(from + row[j] * w.valid_mask.strides[3]))
                              : beyond;
        }
      });
    }
  }

  __device__ __forceinline__ void take(int j, T (&input)[masked ? 5 : 4]) const {
    T s = plane.sum(w, vx[j], vy[j]), d = plane.difference(w, vx[j], vy[j]);
    if constexpr (masked) {
      const T m = vm[j];
      s = m == 0 ? T(0) : s;  // the pixel may hold anything
      d = m == 0 ? T(0) : d;
      input[0] = m * s;
      input[1] = m * d;
      input[2] = input[0] * s;
      input[3] = input[1] * d;
      input[4] = m;
    } else {
      if ((outside >> j & 1) != 0 && w.padding != Padding::same) s = 0;
      input[0] = s;
      input[1] = d;
      input[2] = s * s;
      input[3] = d * d;
    }
  }
};

// 1 - SSIM of a window, and its derivative by each pixel's x: 4·weight·(f0 - s·f1 + d·f2).
template <class T> struct WindowTerm { T value, derivative[kDerivatives]; };
__device__ __forceinline__ WindowTerm<float> term_of(
    const Work<float>& w, const Plane<float>& plane, float s, float d, float ss, float dd) {
  WindowTerm<float> r;
  const Point p =
      point(s, w.sign * d, ss, dd, 2 * plane.half_shift, w.constants.c1, w.constants.c2);
  r.value = 2 * p.value;
  derivatives_of(p, s, &r.derivative[0], &r.derivative[1], &r.derivative[2]);
  return r;
}
__device__ __forceinline__ WindowTerm<double> term_of(
    const Work<double>& w, const Plane<double>&, double s, double d, double ss, double dd) {
  d *= w.sign;
  const Moments<double> m{s, d, fmax(0.0, fma(-s, s, ss)), fmax(0.0, fma(-d, d, dd))};
  const Dissimilarity<double> result =
      w.contrast ? contrast_dissimilarity(m, w.constants) : dissimilarity(m, w.constants);
  const Moments<double>& g = result.gradient;
  return {result.value,
      {(g.mean_s - 2 * s * g.var_s + g.mean_d - 2 * d * g.var_d) / 4, -g.var_s / 2, g.var_d / 2}};
}

template <class T>
__device__ __forceinline__ void store_chunks(T* to, const T (&values)[Tiling<T>::kOutputs]) {
  struct alignas(16) Chunk {
    T of[Tiling<T>::kChunk];
  };
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    Chunk chunk;
#pragma unroll
    for (int i = 0; i < Tiling<T>::kChunk; ++i) chunk.of[i] = values[j * Tiling<T>::kChunk + i];
    reinterpret_cast<Chunk*>(to)[j] = chunk;
  }
}

// The sum of the taps that see a pixel.
template <class T>
__device__ T seen_weight(const T (&taps)[kMostTaps], int centre, int radius, int extent) {
  T sum = 0;
  for (int k = 0; k <= 2 * radius; ++k) {
    const int pixel = centre - radius + k;
    if (pixel >= 0 && pixel < extent) sum += taps[k];
  }
  return sum;
}

// The weights of neighbours in a row in the reduction, or in a map, and bits of those that exist.
template <class T, int count> struct RunWeights {
  T weight[count];
  unsigned exists = ~0u;

  __device__ RunWeights(
      const Work<T>& w, const Plane<T>& plane, int row, int column, int existing) {
#pragma unroll
    for (T& each : weight) each = 1;
    if (w.mask.data != nullptr) {
      load_run(w.mask, plane.of(w.mask) + w.mask.at(0, row, column), existing, weight);
#pragma unroll
      for (T& each : weight) each = checked_weight(each);
    }
    if (w.valid_mask.data == nullptr) return;
    T valid[count];
    load_run(
        w.valid_mask, plane.of(w.valid_mask) + w.valid_mask.at(0, row, column), existing, valid);
#pragma unroll
    for (int o = 0; o < count; ++o) {
      const T v = checked_weight(valid[o]);
      if (!(v > 0)) exists &= ~(1u << o);
      if (v != v) {
        weight[o] = v;
      } else if (w.reduces) {
        weight[o] = v == 0 ? T(0) : w.mask.data == nullptr ? v : weight[o];
      }
    }
  }
};

// Weighs the terms of a run of windows and their derivatives by masks and by the upstream of a map,
// and writes the map.
template <class T, int count>
__device__ __forceinline__ void weigh_run(const Work<T>& w, const Plane<T>& plane, int map_row,
    int map_column, int existing, T (&value)[count], T (&derivative)[kDerivatives][count]) {
  const int row = map_row + w.first_centre[0], column = map_column + w.first_centre[1];
  const RunWeights<T, count> weights(w, plane, row, column, existing);
  T upstream[count];
#pragma unroll
  for (T& each : upstream) each = 1;
  if (w.upstream.data != nullptr) {
    load_run(w.upstream, plane.of(w.upstream) + w.upstream.at(0, map_row, map_column), existing,
        upstream);
  }
  T element[count];
#pragma unroll
  for (int o = 0; o < count; ++o) {
    const T weight = weights.weight[o];
    const bool counts = (weights.exists >> o & 1) != 0 && weight != 0;
    const T term = counts ? value[o] : T(0);
    value[o] = counts || weight != weight ? weight * term : T(0);
    element[o] = weight * fma(w.term_weight, term, w.bias);
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) {
      derivative[f][o] = counts ? weight * upstream[o] * derivative[f][o] : T(0);
    }
    if (w.map.data != nullptr && w.l1_weight != 0 && counts && o < existing) {
      const T vx = w.x.load(plane.of(w.x) + w.x.at(0, row, column + o));
      const T vy = w.y.load(plane.of(w.y) + w.y.at(0, row, column + o));
      element[o] += weight * w.l1_weight * fabs(plane.difference(w, vx, vy));
    }
    if ((weights.exists >> o & 1) == 0) element[o] = NAN;
  }
  if (w.map.data == nullptr) return;
  store_run(w.map, plane.of(w.map) + w.map.at(0, map_row, map_column), existing, element);
}

// The inverses of the weights of a run of windows; returns false if all are 1.
template <class T, int count>
__device__ __forceinline__ bool inverse_weights(
    const Work<T>& w, int row, int column, T (&inverse)[count]) {
  if (w.padding != Padding::renormalize) return false;
  const bool is_inside = row >= w.radius[0] && row + w.radius[0] < w.extent[0] &&
                         column >= w.radius[1] && column + count - 1 + w.radius[1] < w.extent[1];
  if (is_inside) return false;
  const T down = seen_weight(w.taps[0], row, w.radius[0], w.extent[0]);
#pragma unroll
  for (int o = 0; o < count; ++o) {
    const int centre = min(column + o, w.extent[1] - 1);
    inverse[o] = 1 / (down * seen_weight(w.taps[1], centre, w.radius[1], w.extent[1]));
  }
  return true;
}

// The tile of a block: its plane, counted from the first in memory, and its first row and column.
template <class T> struct Tile {
  unsigned plane, in_plane;
  int row, column;
  __device__ explicit Tile(const Work<T>& w) {
    const auto tiles = static_cast<unsigned>(w.across * w.down);
    plane = blockIdx.x / tiles;
    in_plane = blockIdx.x - plane * tiles;
    const int at = static_cast<int>(in_plane) / w.across;
    row = at * Tiling<T>::kHigh;
    column = (static_cast<int>(in_plane) - at * w.across) * w.owned;
  }
};

template <class T, bool masked>
__global__ void __launch_bounds__(kThreads, 2) any_windows_kernel(const Work<T> w) {
  using Layout = Tiling<T>;
  constexpr int kFields = masked ? 5 : 4, kOutputs = Layout::kOutputs;
  extern __shared__ __align__(16) unsigned char shared[];
  T* const rows = reinterpret_cast<T*>(shared);  // [fields][high][pitch]
  const int t = static_cast<int>(threadIdx.x);
  const Tile<T> tile(w);
  Plane<T> plane(w, w.first_plane + tile.plane);
  plane.find_shift(w);
  const int high = 2 * w.radius[0] + 1, wide = 2 * w.radius[1] + 1;
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int column = task % kLoaded, group = task / kLoaded;
    const int row = tile.row + group * kOutputs;
    if (row >= w.map_extent[0] || column >= w.owned + wide - 1) continue;
    const int index = tile.column + w.first_centre[1] - w.radius[1] + column;
    PixelColumn<T, masked> source(w, plane, seen_pixel(index, w.extent[1], w.padding),
        row + w.first_centre[0] - w.radius[0], high - 1 + kOutputs);
    T averages[kFields][kOutputs];
    average(w.taps[0], high, source, averages);
    store_column(rows, group, column, averages);
  }
  __syncthreads();
  double sum = 0;
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int run = task % Layout::kRuns, row = tile.row + task / Layout::kRuns;
    const int column = tile.column + run * kOutputs;
    const int existing = min(kOutputs, w.map_extent[1] - column);
    if (row >= w.map_extent[0] || run * kOutputs >= w.owned || existing <= 0) continue;
    SharedRow<T, kFields> source(rows, task / Layout::kRuns, run);
    T mean[kFields][kOutputs];
    average(w.taps[1], wide, source, mean);
    T inverse[kOutputs];
    bool divides = masked;
    if constexpr (masked) {
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) inverse[o] = 1 / mean[4][o];
    } else {
      divides = inverse_weights(w, row + w.first_centre[0], column + w.first_centre[1], inverse);
    }
    T value[kOutputs], derivative[kDerivatives][kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (divides) {
#pragma unroll
        for (int f = 0; f < 4; ++f) mean[f][o] *= inverse[o];
      }
      const WindowTerm<T> r = term_of(w, plane, mean[0][o], mean[1][o], mean[2][o], mean[3][o]);
      value[o] = r.value;
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        derivative[f][o] = divides ? r.derivative[f] * inverse[o] : r.derivative[f];
      }
    }
    if (masked || w.mask.data != nullptr || !w.reduces) {
      weigh_run(w, plane, row, column, existing, value, derivative);
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (o < existing) sum += static_cast<double>(value[o]);
    }
    if (w.derivatives == nullptr) continue;
    T* const to = w.derivatives + tile.plane * kDerivatives * w.derivative_array() +
                  std::int64_t{row} * w.pitch + column;
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) {
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        if (o >= existing) derivative[f][o] = 0;
      }
      store_chunks(to + f * w.derivative_array(), derivative[f]);
    }
  }
  if (w.partials == nullptr) return;
  const double total = gpu::block_sum<kThreads>(sum);
  if (t == 0) {
    w.partials[(w.first_plane + tile.plane) * (w.across * w.down) + tile.in_plane] = total;
  }
}

// A column of derivatives, 0 outside the map.
template <class T> struct DerivativeColumn {
  static constexpr int kFetched = Tiling<T>::kOutputs;
  const Work<T>& w;
  const T* const from;  // of row 0
  const int first, limit;
  const bool has_column;
  T values[kDerivatives][kFetched];

  __device__ DerivativeColumn(
      const Work<T>& work, unsigned plane, int column, int first_row, int rows)
      : w(work),
        from(work.derivatives + plane * kDerivatives * work.derivative_array() + column),
        first(first_row),
        limit(rows),
        has_column(column >= 0 && column < work.map_extent[1]) {}

  __device__ __forceinline__ void fetch(int group, int u) {
#pragma unroll
    for (int j = 0; j < kFetched; ++j) {
      const int row = first + group + u + j;
      const bool exists = has_column && group + u + j < limit &&
                          static_cast<unsigned>(row) < static_cast<unsigned>(w.map_extent[0]);
      const T* const at = from + std::int64_t{row} * w.pitch;
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        values[f][j] = exists ? at[f * w.derivative_array()] : T(0);
      }
    }
  }
  __device__ __forceinline__ void take(int j, T (&input)[kDerivatives]) const {
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) input[f] = values[f][j];
  }
};

// The row of the rim table for a pixel.
__device__ __forceinline__ int rim_row(int pixel, int extent, int radius) {
  const int last = min(pixel, extent - 1);
  if (last < radius) return last;
  const int behind = last - (extent - radius);
  return behind < 0 ? kPlain : radius + behind;
}

// Fills the table of an axis with all threads of the block.
template <class T>
__device__ void fill_rim(
    const T (&taps)[kMostTaps], int radius, int extent, Padding padding, RimTable<T>& table) {
  const int count = 2 * radius + 1;
  for (int i = static_cast<int>(threadIdx.x); i < (2 * radius + 1) * count; i += kThreads) {
    const int row = i / count, k = i - row * count;
    if (row == 2 * radius) {
      table[kPlain][k] = taps[k];
      continue;
    }
    const int pixel = row < radius ? row : extent - radius + (row - radius);
    const int centre = pixel - radius + k;
    T weight = 0;
    if (pixel >= 0 && pixel < extent && centre >= 0 && centre < extent) {
      for (int j = 0; j < count; ++j) {
        if (seen_pixel(centre - radius + j, extent, padding) == pixel) weight += taps[j];
      }
    }
    table[row][k] = weight;
  }
}

// Sums the derivatives of the windows that see the outputs, by the table if one is in the rim.
template <class T, class Source, int outputs>
__device__ __forceinline__ void sum_derivatives(const Work<T>& w, int axis, int first_pixel,
    const RimTable<T>* tables, Source& source, T (&sums)[kDerivatives][outputs]) {
  const int radius = w.radius[axis], extent = w.extent[axis], count = 2 * radius + 1;
  const bool in_rim =
      w.folds() && (first_pixel < radius || first_pixel + outputs > extent - radius);
  if (!in_rim) return average(w.taps[axis], count, source, sums);
  const T* taps[outputs];
#pragma unroll
  for (int o = 0; o < outputs; ++o) {
    taps[o] = tables[axis][rim_row(first_pixel + o, extent, radius)];
  }
  average_rim(taps, count, source, sums);
}

// Adds the gradient of |x - y| to a run of pixels, and multiplies what windows take of each pixel
// by its weight.
template <class T, int count>
__device__ __forceinline__ void finish_gradient(const Work<T>& w, const Plane<T>& plane, int row,
    int column, int existing, T slope, T l1_slope, const T (&x)[count], const T (&y)[count],
    T (&gradient)[count]) {
  const RunWeights<T, count> weights(w, plane, row, column, existing);
  T valid[count], upstream[count];
#pragma unroll
  for (int o = 0; o < count; ++o) valid[o] = upstream[o] = 1;
  if (w.valid_mask.data != nullptr) {
    load_run(
        w.valid_mask, plane.of(w.valid_mask) + w.valid_mask.at(0, row, column), existing, valid);
  }
  if (w.l1_weight != 0 && w.upstream.data != nullptr) {  // padding is not valid: the map's size
    load_run(w.upstream, plane.of(w.upstream) + w.upstream.at(0, row, column), existing, upstream);
  }
#pragma unroll
  for (int o = 0; o < count; ++o) {
    const T v = checked_weight(valid[o]);
    gradient[o] = v == 0 ? T(0) : v * gradient[o];
    if (w.l1_weight != 0 && v != 0) {
      const T d = w.sign * plane.difference(w, x[o], y[o]);
      const T sign = d > 0 ? T(1) : d < 0 ? T(-1) : T(0);
      gradient[o] = fma(l1_slope * upstream[o] * weights.weight[o], sign, gradient[o]);
    }
    if (slope != slope) gradient[o] = slope;  // a weight is not one
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2) any_gradient_kernel(const Work<T> w) {
  using Layout = Tiling<T>;
  constexpr int kOutputs = Layout::kOutputs;
  extern __shared__ __align__(16) unsigned char shared[];
  T* const rows = reinterpret_cast<T*>(shared);  // [3][high][pitch]
  auto* const tables = reinterpret_cast<RimTable<T>*>(rows + kDerivatives * Layout::kArray);
  const int t = static_cast<int>(threadIdx.x);
  const Tile<T> tile(w);
  Plane<T> plane(w, w.first_plane + tile.plane);
  plane.find_shift(w);
  const int high = 2 * w.radius[0] + 1, wide = 2 * w.radius[1] + 1;
  if (w.folds()) {
    fill_rim(w.taps[0], w.radius[0], w.extent[0], w.padding, tables[0]);
    fill_rim(w.taps[1], w.radius[1], w.extent[1], w.padding, tables[1]);
    __syncthreads();
  }
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int column = task % kLoaded, group = task / kLoaded;
    const int row = tile.row + group * kOutputs;
    if (row >= w.extent[0] || column >= w.owned + wide - 1) continue;
    DerivativeColumn<T> source(w, tile.plane,
        tile.column + column - w.radius[1] - w.first_centre[1],
        row - w.radius[0] - w.first_centre[0], high - 1 + kOutputs);
    T sums[kDerivatives][kOutputs];
    sum_derivatives(w, 0, row, tables, source, sums);
    store_column(rows, group, column, sums);
  }
  __syncthreads();
  const PlaneSlopes slopes = w.slope.of(w.first_plane + tile.plane);
  const T slope = static_cast<T>(4 * slopes.term), l1_slope = static_cast<T>(slopes.l1);
#pragma unroll 1
  for (int task = t; task < Layout::kTasks; task += kThreads) {
    const int run = task % Layout::kRuns, row = tile.row + task / Layout::kRuns;
    const int column = tile.column + run * kOutputs;
    const int existing = min(kOutputs, w.extent[1] - column);
    if (row >= w.extent[0] || run * kOutputs >= w.owned || existing <= 0) continue;
    SharedRow<T, kDerivatives> source(rows, task / Layout::kRuns, run);
    T sums[kDerivatives][kOutputs], x[kOutputs], y[kOutputs];
    load_run(w.x, plane.of(w.x) + w.x.at(0, row, column), existing, x);
    load_run(w.y, plane.of(w.y) + w.y.at(0, row, column), existing, y);
    sum_derivatives(w, 1, column, tables, source, sums);
    T gradient[kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const T s = plane.sum(w, x[o], y[o]), d = w.sign * plane.difference(w, x[o], y[o]);
      gradient[o] = slope * fma(d, sums[2][o], fma(-s, sums[1][o], sums[0][o]));
    }
    if (w.l1_weight != 0 || w.valid_mask.data != nullptr) {
      finish_gradient(w, plane, row, column, existing, slope, l1_slope, x, y, gradient);
    }
    store_run(w.gradient, plane.of(w.gradient) + w.gradient.at(0, row, column), existing, gradient);
  }
}

template <class T> constexpr int kSharedOfWindows = 5 * Tiling<T>::kArray * sizeof(T);
template <class T>
constexpr int kSharedOfGradient = kDerivatives* Tiling<T>::kArray * sizeof(T) +
                                  2 * sizeof(RimTable<T>);

constexpr std::int64_t kDerivativeBytes = std::int64_t{128} << 20;

int pieces(int length, int piece) { return (length + piece - 1) / piece; }

template <class T> class AnyWindow {
  using Layout = Tiling<T>;

 public:
  explicit AnyWindow(CudaPlan& plan) : plan_(plan), pass_(plan.pass) {
    const Geometry& g = plan.geometry;
    for (int axis = 0; axis < 2; ++axis) {
      work_.extent[axis] = static_cast<int>(g.extent[1 + axis]);
      work_.map_extent[axis] = static_cast<int>(g.map_extent[1 + axis]);
      work_.first_centre[axis] = static_cast<int>(g.first_centre[1 + axis]);
      work_.radius[axis] = g.radius[1 + axis];
    }
    copy_taps(pass_.window.y, work_.taps[0]);
    copy_taps(pass_.window.x, work_.taps[1]);
    work_.pitch = pieces(work_.map_extent[1], Layout::kOutputs) * Layout::kOutputs;
    work_.owned = (kLoaded - 2 * work_.radius[1]) / Layout::kOutputs * Layout::kOutputs;
    work_.channels = g.channels;
    work_.x = gpu::View(pass_.x);
    work_.y = gpu::View(pass_.y);
    work_.mask = gpu::View(pass_.mask);
    work_.valid_mask = gpu::View(pass_.valid_mask);
    work_.padding = g.padding;
    work_.contrast = pass_.term == Term::contrast;
    work_.reduces = plan.reduces();
    work_.of_sums = pass_.of_sums;
    work_.sign = 1;
    work_.bias = static_cast<T>(pass_.bias);
    work_.term_weight = static_cast<T>(pass_.term_weight);
    work_.l1_weight = static_cast<T>(pass_.l1_weight);
    if constexpr (std::is_same_v<T, float>) {
      work_.constants = doubled_constants(pass_);
    } else {
      work_.constants = {pass_.c1, pass_.c2};
    }
    if (!plan.reduces()) work_.upstream = gpu::View(pass_.upstream);
  }

  void run() {
    const Geometry& g = plan_.geometry;
    const bool sums = plan_.reduces() && !pass_.value.empty();
    const bool has_sums = plan_.reduces() && (plan_.has_masks() || pass_.l1_weight != 0);
    if (has_sums) {
      plan_.allocate_sums();
      sum_weights(plan_);
    }
    work_.slope = slope_of(plan_);
    cut(work_.map_extent);
    const std::int64_t tiles = std::int64_t{work_.across} * work_.down;
    const std::int64_t plane_elements =
        std::int64_t{kDerivatives} * work_.map_extent[0] * work_.pitch;
    const std::int64_t most = (std::int64_t{1} << 30) / most_tiles();
    const std::int64_t at_once = std::clamp<std::int64_t>(
        plan_.has_gradient()
            ? kDerivativeBytes / (plane_elements * static_cast<std::int64_t>(sizeof(T)))
            : g.planes,
        1, std::min(g.planes, most));
    std::shared_ptr<void> derivatives, partials;
    if (plan_.has_gradient()) {
      derivatives = allocate_bytes(
          static_cast<std::size_t>(plane_elements * at_once) * sizeof(T), plan_.device, plan_.exec);
    }
    if (sums) {
      partials = allocate_bytes(
          static_cast<std::size_t>(g.planes * tiles) * sizeof(double), plan_.device, plan_.exec);
    }
    for (std::int64_t plane = 0; plane < g.planes; plane += at_once) {
      work_.first_plane = plane;
      work_.planes = std::min(at_once, g.planes - plane);
      work_.derivatives = static_cast<T*>(derivatives.get());
      work_.partials = static_cast<double*>(partials.get());
      run_planes();
    }
    if (!sums) return;
    const auto* const of_tiles = static_cast<const double*>(partials.get());
    if (!has_sums) return write_values(plan_, of_tiles, tiles);
    sum_partials(plan_, of_tiles, static_cast<int>(tiles), kTerm);
    write_values(plan_);
  }

 private:
  static void copy_taps(const std::vector<double>& taps, T (&to)[kMostTaps]) {
    if constexpr (std::is_same_v<T, float>) {
      const std::vector<float> rounded = taps_in_f32(taps);
      std::copy(rounded.begin(), rounded.end(), to);
    } else {
      std::copy(taps.begin(), taps.end(), to);
    }
  }

  void cut(const int (&extent)[2]) {
    work_.down = pieces(extent[0], Layout::kHigh);
    work_.across = pieces(extent[1], work_.owned);
  }
  std::int64_t most_tiles() const {
    return std::int64_t{pieces(work_.extent[0], Layout::kHigh)} *
           pieces(work_.extent[1], work_.owned);
  }

  // Values and maps come with the first gradient.
  void run_planes() {
    const bool wants_map = !plan_.reduces() && !pass_.value.empty();
    work_.map = wants_map ? gpu::View(pass_.value) : gpu::View();
    work_.sign = 1;
    if (!plan_.has_gradient()) run_windows();
    if (!pass_.x_gradient.empty()) run_gradient(pass_.x_gradient);
    work_.sign = -1;
    if (!pass_.y_gradient.empty()) run_gradient(pass_.y_gradient);
  }

  void run_windows() {
    cut(work_.map_extent);
    pass_.valid_mask.empty() ? launch(any_windows_kernel<T, false>, 4 * kSharedOfWindows<T> / 5)
                             : launch(any_windows_kernel<T, true>, kSharedOfWindows<T>);
    work_.map = {};
    work_.partials = nullptr;
  }

  void run_gradient(const TensorView& gradient) {
    run_windows();
    work_.gradient = gpu::View(gradient);
    cut(work_.extent);
    launch(any_gradient_kernel<T>, kSharedOfGradient<T>);
  }

  void launch(void (*kernel)(Work<T>), int shared_bytes) {
    gpu::allow_shared_bytes(kernel, static_cast<std::size_t>(shared_bytes));
    gpu::launch("ssim", plan_.exec.queue.handle,
        static_cast<unsigned>(work_.planes * work_.across * work_.down), kThreads,
        static_cast<std::size_t>(shared_bytes), kernel, work_);
  }

  CudaPlan& plan_;
  const Pass& pass_;
  Work<T> work_ = {};
};

template <class T> bool fits(const CudaPlan& plan) {
  return gpu::limits(plan.device).shared_bytes_a_block >=
         std::max(kSharedOfWindows<T>, kSharedOfGradient<T>);
}

}  // namespace

bool can_take_any_window(const CudaPlan& plan) {
  const Geometry& g = plan.geometry;
  const bool is_plane = g.extent[0] == 1 && g.radius[0] == 0 && g.radius[1] <= kMostRadius &&
                        g.radius[2] <= kMostRadius;
  const bool is_countable =
      g.extent[1] < 1 << 28 && g.extent[2] < 1 << 28 && g.planes < 1 << 30 &&
      (g.extent[1] / Tiling<double>::kHigh + 1) * (g.extent[2] / (kLoaded / 2) + 1) < 1 << 30;
  if (!is_plane || !is_countable) return false;
  return plan.pass.x.dtype == DType::f64 ? fits<double>(plan) : fits<float>(plan);
}

void run_any_window(CudaPlan& plan) {
  plan.pass.x.dtype == DType::f64 ? AnyWindow<double>(plan).run() : AnyWindow<float>(plan).run();
}

}  // namespace similis::ssim_internal
