// SPDX-License-Identifier: Apache-2.0
// The march: one kernel for SSIM's value, and for value and gradient. A block owns a strip of
// columns and marches down its rows, R of them a batch:
//   copy engine      rows of x and y, two batches ahead; threads, if it cannot ─> raw, shared
//   V1  down         2 columns a thread: running sums of s, d, s², d²        ─> A, shared
//   H1  across       8 outputs a thread: moments ─ formula ─> sum; 3 derivative fields ─> B, shared
//   V2  down         running sums of the fields of the batch before         ─> D, shared
//   H2  across       8 outputs a thread, with x and y from raw              ─> gradient
// Sums run as a[k] = w[9-k]·v + a[k+1]: one fused multiply-add a tap, and no moves. Weights stand
// in uniform registers: with a third vector register each, the register file's banks collide (26 of
// 32 T/s). Instructions a pixel at 1080p (sm_90): 131 for the value, of which 107 are fused, and
// 239 with the gradient, of which 187 are; the limit is the rate at which they issue. s is shifted
// by a constant of the strip, so that its variance keeps its digits in f32.
// The last block to arrive adds the segments' sums up, in a fixed order, and writes the values.
#pragma once

#include <algorithm>
#include <atomic>

#include "src/gpu/tensor_copy.h"
#include "src/ssim/cuda_march.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

/// What memory holds of a pixel pair, x and y or x + y and x - y, and whether threads gather it
/// instead of the copy engine.
template <class T> struct Pictures {
  using Element = T;
  static constexpr bool kSums = false, kGathers = false;
};
struct Sums {
  using Element = float;
  static constexpr bool kSums = true, kGathers = false;
};
struct AnyPictures {
  using Element = float;
  static constexpr bool kSums = false, kGathers = true;
};

/// The layout of one instance. With extras a kernel looks at March::extras.
template <class PixelPairs, int threads, int rows, int blocks_an_sm, bool with_gradient,
    bool with_extras>
struct MarchPolicy {
  using Pairs = PixelPairs;
  using Element = typename Pairs::Element;
  static constexpr int kThreads = threads;
  static constexpr int kRows = rows;            // a batch; more cost shared memory, fewer barriers
  static constexpr int kBlocks = blocks_an_sm;  // bounds registers
  static constexpr bool kGradient = with_gradient;
  static constexpr bool kExtras = with_extras;
  static constexpr int kColumns = 2 * threads;  // loaded, of which a rim only feeds neighbours
  static constexpr int kHalo = with_gradient ? 20 : 10;
  // Copies begin at multiples of 16 bytes, and a gradient's rows at multiples of 8 columns.
  static constexpr int kAlign = 16 / static_cast<int>(sizeof(Element));
  static constexpr int kDelta = with_gradient ? kAlign - 2 : 0;
  static constexpr int kOwned =
      with_gradient ? (kColumns - 20 - kDelta) / 8 * 8 : (kColumns - 10) / kAlign * kAlign;
  // Rows of A, B, D: chunks of 4 columns, the even ones and then the odd ones, so that neighbours
  // in a warp that each read 8 columns and more meet no bank twice.
  static constexpr int kHalf = kColumns / 2 + 16;
  static constexpr int kPitch = 2 * kHalf;
  static_assert(kHalf % 32 == 16);
  static constexpr int kField = rows * kPitch;
  static constexpr int kFields = with_gradient ? 10 : 4;
  static constexpr int kBoxes = (kColumns + 255) / 256;  // the copy engine takes 256 columns
  static constexpr int kBox = kColumns / kBoxes;
  static constexpr int kImage = rows * kBox * kBoxes;
  static_assert(kBox * sizeof(Element) % 16 == 0 && rows * kBox * sizeof(Element) % 128 == 0);
  static constexpr int kRing = with_gradient ? 7 : 2;  // batches of raw rows; H2 looks 4 back
  static constexpr int kTasks = kColumns / 8;          // of 8 outputs, a row
  static constexpr int kTaskRows = threads / kTasks;   // at once: 4
  static_assert(!with_gradient || rows == 4);
  static constexpr int kRawBytes = kRing * 2 * kImage * static_cast<int>(sizeof(Element));
  // Of a column in a batch of an image.
  SIMILIS_HOST_DEVICE static int word_of(int column) {
    return column / kBox * (kRows * kBox) + column % kBox;
  }
  static constexpr int kMapWords = with_extras && !with_gradient ? 8 * threads : 0;
  static constexpr int kSharedBytes = kRawBytes + (kFields * kField + kMapWords) * 4 + 16;
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

// `count` neighbours in one access, as f32.
template <int count, class T> __device__ __forceinline__ void load_some(const T* p, float* out) {
  struct alignas(count * sizeof(T)) Pack {
    T of[count];
  };
  const Pack pack = *reinterpret_cast<const Pack*>(p);
#pragma unroll
  for (int i = 0; i < count; ++i) out[i] = gpu::to_float(pack.of[i]);
}
__device__ __forceinline__ float2 load2(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}
__device__ __forceinline__ void store2(float* p, float a, float b) {
  *reinterpret_cast<float2*>(p) = make_float2(a, b);
}
__device__ __forceinline__ void store4(float* p, const float* v) {
  *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
}

// Shifted sums and differences of pixels, from what memory holds of them.
template <class Pairs, int count>
__device__ __forceinline__ void sums_of(const float (&x)[count], const float (&y)[count],
    float half_shift, float sign, float (&s)[count], float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    s[i] = Pairs::kSums ? x[i] - 2 * half_shift : (x[i] - half_shift) + (y[i] - half_shift);
    d[i] = Pairs::kSums ? sign * y[i] : x[i] - y[i];
  }
}

// 8 results, or as many as there are columns left; `to` is aligned to 16 bytes.
template <class T> __device__ __forceinline__ void store8(T* to, const float (&v)[8], int columns) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  union {
    T of[8];
    uint4 words[8 / kAtOnce];
  } all;
#pragma unroll
  for (int o = 0; o < 8; ++o) all.of[o] = gpu::rounded<T>(v[o]);
#pragma unroll
  for (int j = 0; j < 8 / kAtOnce; ++j) {
    if (columns >= (j + 1) * kAtOnce) {
      __stcs(reinterpret_cast<uint4*>(to) + j, all.words[j]);
    } else {
#pragma unroll
      for (int o = j * kAtOnce; o < (j + 1) * kAtOnce - 1; ++o) {
        if (o < columns) to[o] = all.of[o];
      }
    }
  }
}
__device__ __forceinline__ void store8(
    const void* data, DType dtype, std::int64_t offset, const float (&v)[8], int columns) {
  void* const to = const_cast<void*>(data);
  switch (dtype) {
    case DType::f16: return store8(static_cast<F16*>(to) + offset, v, columns);
    case DType::bf16: return store8(static_cast<BF16*>(to) + offset, v, columns);
    default: return store8(static_cast<float*>(to) + offset, v, columns);
  }
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

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// Where a plane's rows begin in the copies of a batch.
struct Batch {
  int x, y;  // of the first element; outside the image too
};

// A batch of both images, loaded by all threads; zeros outside.
template <class P, class T>
__device__ __forceinline__ void gather_as(
    const March& m, std::int64_t x_plane, std::int64_t y_plane, Batch batch, float* slot) {
  constexpr int kRows = P::kRows;
  const T* const from[2] = {
      static_cast<const T*>(m.any_x.data) + x_plane, static_cast<const T*>(m.any_y.data) + y_plane};
#pragma unroll 2
  for (int i = 0; i < kRows; ++i) {
    const int y = batch.y + i;
    float value[2][2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int x = batch.x + static_cast<int>(threadIdx.x) + k * P::kThreads;
      const bool exists = x >= 0 && x < m.width && y >= 0 && y < m.height;
      value[0][k] = exists ? gpu::to_float(from[0][m.any_x.at(0, y, x)]) : 0.f;
      value[1][k] = exists ? gpu::to_float(from[1][m.any_y.at(0, y, x)]) : 0.f;
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float* const to =
          slot + P::word_of(static_cast<int>(threadIdx.x) + k * P::kThreads) + i * P::kBox;
      to[0] = value[0][k];
      to[P::kImage] = value[1][k];
    }
  }
}

// The same of f32, which arrives by itself.
template <class P>
__device__ __forceinline__ void gather_words(
    const March& m, std::int64_t x_plane, std::int64_t y_plane, Batch batch, float* slot) {
  const float* const x_from = static_cast<const float*>(m.any_x.data) + x_plane;
  const float* const y_from = static_cast<const float*>(m.any_y.data) + y_plane;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int column = static_cast<int>(threadIdx.x) + k * P::kThreads, x = batch.x + column;
    const bool has_column = x >= 0 && x < m.width;
    float* const to = slot + P::word_of(column);
#pragma unroll
    for (int i = 0; i < P::kRows; ++i) {
      const int y = batch.y + i;
      const bool exists = has_column && y >= 0 && y < m.height;
      gpu::copy_word(to + i * P::kBox, exists ? x_from + m.any_x.at(0, y, x) : x_from, exists);
      gpu::copy_word(
          to + P::kImage + i * P::kBox, exists ? y_from + m.any_y.at(0, y, x) : y_from, exists);
    }
  }
}
template <class P>
__device__ __forceinline__ void gather(
    const March& m, std::int64_t x_plane, std::int64_t y_plane, Batch batch, float* slot) {
  switch (m.any_x.dtype) {
    case DType::u8: return gather_as<P, std::uint8_t>(m, x_plane, y_plane, batch, slot);
    case DType::f16: return gather_as<P, F16>(m, x_plane, y_plane, batch, slot);
    case DType::bf16: return gather_as<P, BF16>(m, x_plane, y_plane, batch, slot);
    default: return gather_words<P>(m, x_plane, y_plane, batch, slot);
  }
}

#endif

// Which of the image's pixels a segment answers for, so that each belongs to one: those below its
// first owned one too if it is the first, and so on.
struct Owned {
  int row0, row1, column0, column1;
};

template <class P>
__device__ __forceinline__ Owned owned_pixels(
    const March& m, int strip, int row0, int rows, int column0, int first_row) {
  constexpr int kRim = P::kGradient ? 10 : 6;
  return {row0 == 0 ? 0 : first_row + P::kHalo / 2,
      row0 + rows == m.rows ? m.height : first_row + P::kHalo / 2 + rows,
      strip == 0 ? 0 : column0 + kRim,
      strip == m.strips - 1 ? m.width : column0 + kRim + P::kOwned};
}

// Halves sums and differences on their way through V1: a thread's two columns make one of the
// halved image, and two rows one.
struct Halver {
  float *sum, *difference;  // this thread's element of row 0
  std::int64_t row_stride;
  bool owns_column;
  float above_s = 0, above_d = 0;

  __device__ Halver(const March& m, std::int64_t plane, int column, const Owned& owned)
      : row_stride(m.extras.halved_sum.strides[3]),
        owns_column(column >= owned.column0 && column < owned.column1) {
    const std::int64_t offset =
        m.extras.halved_sum.plane(plane / m.channels, plane % m.channels) + column / 2;
    sum = static_cast<float*>(m.extras.halved_sum.data) + offset;
    difference = static_cast<float*>(m.extras.halved_difference.data) + offset;
  }

  // `s` is shifted by `shift`.
  __device__ __forceinline__ void push(
      int row, const float (&s)[2], const float (&d)[2], float shift, const Owned& owned) {
    const float pair_s = s[0] + s[1], pair_d = d[0] + d[1];
    if ((row & 1) == 0) {
      above_s = pair_s;
      above_d = pair_d;
    } else if (row >= owned.row0 && row < owned.row1 && owns_column) {
      sum[(row >> 1) * row_stride] = fmaf(above_s + pair_s, 0.25f, shift);
      difference[(row >> 1) * row_stride] = (above_d + pair_d) * 0.25f;
    }
  }
};

// Where the map elements of a plane and what belongs to them stand.
struct MapPlane {
  std::int64_t map, upstream, mask;  // offsets of its first elements

  __device__ MapPlane(const March& m, std::int64_t plane) {
    const std::int64_t image = plane / m.channels, channel = plane % m.channels;
    map = m.extras.map.plane(image, channel);
    upstream = m.extras.upstream.plane(image, channel);
    mask = m.extras.mask.plane(image, channel);
  }
  __device__ float mask_at(const March& m, int row, int column) const {
    return m.extras.mask.load_f32(mask + m.extras.mask.at(0, row, column));
  }
  __device__ float upstream_at(const March& m, int row, int column) const {
    const gpu::View& view = m.extras.upstream;
    return view.load_f32(upstream + view.at(0, row - m.map_y0, column - m.map_x0));
  }
};

// What a warp's threads found of 8 map elements each, element by element: stores then fill whole
// sectors. `rows_below` is how many rows of the segment lie at and below the first of the batch.
template <class P>
__device__ __forceinline__ void store_map(const March& m, const MapPlane& plane, float* staging,
    const float (&values)[8], int first_a, int rows, int first_row, int column0) {
  const int t = static_cast<int>(threadIdx.x), lane = t % gpu::kWarp;
  float* const own = staging + t * 8;
  store4(own, values);
  store4(own + 4, values + 4);
  __syncwarp();
  const int warp = t - lane;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int from = warp + j * (gpu::kWarp / 8) + lane / 8;
    const int column = from % P::kTasks * 8 + lane % 8, a = first_a + from / P::kTasks;
    const int centre = column0 + 5 + column;
    if (a >= 0 && a < rows && column < P::kOwned && centre >= m.map_x0 && centre < m.map_x1) {
      const gpu::View& map = m.extras.map;
      static_cast<float*>(
          map.data)[plane.map + map.at(0, first_row + 5 + a - m.map_y0, centre - m.map_x0)] =
          staging[warp * 8 + j * gpu::kWarp + lane];
    }
  }
  __syncwarp();
}

// The block whose share of the units a unit is in. Without a division: where threads may part,
// 64-bit ones cost the whole kernel the knowledge that its conditions are uniform (nvcc 13.0).
__device__ inline std::int64_t block_of(
    std::int64_t unit, std::int64_t blocks, std::int64_t units, double blocks_a_unit) {
  // Block b begins at unit units·b / blocks.
  auto b = static_cast<std::int64_t>(static_cast<double>(unit) * blocks_a_unit);
  if (units * b >= (unit + 1) * blocks) --b;
  if (units * (b + 1) < (unit + 1) * blocks) ++b;
  return b;
}

// The sum of the segments of planes that follow one another, by `lanes` threads of which this is
// one; each gets its part.
__device__ inline Partial segments_sum(const Partial* partials, std::int64_t blocks,
    double blocks_a_unit, std::int64_t units, std::int64_t first_strip, std::int64_t strips,
    int rows, int lane, int lanes) {
  // Block b's segment of strip s has the number b + s.
  const std::int64_t last_strip = first_strip + strips - 1;
  const std::int64_t first =
      block_of(first_strip * rows, blocks, units, blocks_a_unit) + first_strip;
  const std::int64_t last =
      block_of((last_strip + 1) * rows - 1, blocks, units, blocks_a_unit) + last_strip;
  Partial sum = {0, 0};
#pragma unroll 8
  for (std::int64_t i = first + lane; i <= last; i += lanes) {
    const double2 part = __ldcg(reinterpret_cast<const double2*>(partials + i));
    sum.term += part.x;
    sum.l1 += part.y;
  }
  return sum;
}

// The values, by the block that arrives last.
template <class P> __device__ void finish(const March& m, double* words) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    __threadfence();  // all that this block added up, this thread wrote
    is_last = atomicAdd(m.finish.arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  const MarchFinish& f = m.finish;
  constexpr int kWarps = P::kThreads / gpu::kWarp;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t units = m.planes * m.strips * m.rows;
  const std::int64_t strips = f.planes_each * m.strips;
  const bool together = f.groups < kWarps;  // the whole block on each group, or a warp
  const int lanes = together ? P::kThreads : gpu::kWarp;
  for (std::int64_t g = together ? 0 : t / gpu::kWarp; g < f.groups; g += together ? 1 : kWarps) {
    Partial sum = segments_sum(m.partials, gridDim.x, m.blocks_a_unit, units, g * strips, strips,
        m.rows, t % lanes, lanes);
    if (together) {
      sum.term = gpu::block_sum_warps<P::kThreads>(sum.term, words);
      sum.l1 = gpu::block_sum_warps<P::kThreads>(sum.l1, words);
    } else {
      sum.term = gpu::warp_sum(sum.term);
      sum.l1 = gpu::warp_sum(sum.l1);
    }
    if (t % lanes == 0) {
      gpu::store_element(f.value, f.dtype, g, f.bias + f.term * sum.term + f.l1 * sum.l1);
    }
  }
}

}  // namespace march

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks) march_kernel(const March m,
    const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap y_map) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  using namespace march;
  using Pairs = typename P::Pairs;
  using Element = typename P::Element;
  constexpr int kRows = P::kRows, kPitch = P::kPitch, kField = P::kField, kHalf = P::kHalf;
  constexpr bool kGradient = P::kGradient, kExtras = P::kExtras;
  extern __shared__ __align__(128) unsigned char shared[];
  Element* const raw = reinterpret_cast<Element*>(shared);  // [ring][x, y][boxes][rows][box]
  float* const a_rows = reinterpret_cast<float*>(shared + P::kRawBytes);  // [4][rows][pitch]
  float* const b_rows = a_rows + 4 * kField;                              // [3][rows][pitch]
  float* const d_rows = b_rows + 3 * kField;                              // [3][rows][pitch]
  float* const map_words = a_rows + P::kFields * kField;                  // [threads][8]
  gpu::Flag* const flags = reinterpret_cast<gpu::Flag*>(map_words + P::kMapWords);
  const int t = static_cast<int>(threadIdx.x);
  const int own = word_of_chunk(t >> 1, kHalf) + (t & 1) * 2;  // of this thread's 2 columns
  // The last columns may lie beyond the boxes; nothing owned depends on them.
  constexpr int kLoaded = P::kBox * P::kBoxes;
  const int own_raw = P::word_of(min(2 * t + P::kDelta, kLoaded - 2));
  const int task = t % P::kTasks, task_row = t / P::kTasks;
  const int at_task = task * 4 + task_row * kPitch;
  const bool fetches = Pairs::kGathers || __shfl_sync(0xffffffffu, t / gpu::kWarp, 0) == 0;
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
    const int image = static_cast<int>(plane / m.channels);
    const int channel = static_cast<int>(plane - image * m.channels);
    const std::int64_t any_x = m.any_x.plane(image, channel), any_y = m.any_y.plane(image, channel);
    const auto fetch = [&](int n) {
      if constexpr (Pairs::kGathers) {
        gather<P>(m, any_x, any_y, {column0 - P::kDelta, first_row + n * kRows},
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
        const int x = column0 - P::kDelta + b * P::kBox, y = first_row + n * kRows;
        gpu::copy_box(to, &x_map, x, y, channel, image, flag);
        gpu::copy_box(to + P::kImage, &y_map, x, y, channel, image, flag);
      }
    };
    __syncthreads();
    if (fetches) {
      fetch(0);
      if constexpr (Pairs::kGathers) gpu::mark_words();
      if (batches > 1) fetch(1);
      if constexpr (Pairs::kGathers) gpu::mark_words();
    }
    const int middle_x = (max(column0, 0) + min(column0 + P::kColumns, m.width)) / 2;
    const int middle_y = (max(first_row, 0) + min(first_row + rows + P::kHalo, m.height)) / 2;
    const auto middle_of = [&](const gpu::View& view, std::int64_t first) {
      const std::int64_t offset = first + view.at(0, middle_y, middle_x);
      if constexpr (Pairs::kGathers) return view.load_f32(offset);
      return gpu::to_float(static_cast<const Element*>(view.data)[offset]);
    };
    const float middle_of_x = middle_of(m.any_x, any_x);
    const float half_shift =
        (Pairs::kSums ? middle_of_x : middle_of_x + middle_of(m.any_y, any_y)) / 2;
    const float shift = 2 * half_shift;
    const float sign = m.extras.difference_sign;
    float sum[8] = {};
    double total = 0;
    float l1_sum = 0;
    double l1_total = 0;
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
      if constexpr (kExtras) {
        l1_total += static_cast<double>(l1_sum);
        l1_sum = 0;
      }
    };
    const bool all_in_map = centre0 >= m.map_x0 && centre0 + 8 <= m.map_x1;
    const int map_row0 = m.map_y0 - (first_row + 5), map_row1 = m.map_y1 - (first_row + 5);
    const int columns_left = min(P::kOwned - task * 8, m.width - (column0 + 10 + task * 8));
    std::int64_t to_gradient = 0;
    float slope = 0, l1_slope = 0;
    if constexpr (kGradient) {
      const PlaneSlopes slopes = m.slope.of(plane);
      slope = static_cast<float>(4 * slopes.term);
      l1_slope = static_cast<float>(slopes.l1);
      to_gradient = image * m.gradient.image_stride + channel * m.gradient.channel_stride +
                    std::int64_t{first_row - 10 + task_row} * m.gradient.row_stride + column0 + 10 +
                    task * 8;
    }
    const Owned pixels = owned_pixels<P>(m, strip, row0, rows, column0, first_row);
    const int column = column0 + 2 * t;  // the first of this thread's
    const float l1_first = column >= pixels.column0 && column < pixels.column1 ? 1.f : 0.f;
    const float l1_second = column + 1 >= pixels.column0 && column + 1 < pixels.column1 ? 1.f : 0.f;
    Halver halver(m, plane, column, pixels);
    const MapPlane at_plane(m, plane);
    const int steps = batches + (kGradient ? 1 : 0);
#pragma unroll 1
    for (int n = 0; n < steps; ++n) {
      if constexpr (Pairs::kGathers) {
        gpu::await_words();
      } else if (n < batches) {
        gpu::wait_for(flags + ((turn + n) & 1), (turn + n) >> 1);
      }
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
      const Element* const in = raw + (n % P::kRing) * 2 * P::kImage + own_raw;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {  // V1
        float x[2], y[2], s[2], d[2];
        load_some<2>(in + i * P::kBox, x);
        load_some<2>(in + P::kImage + i * P::kBox, y);
        sums_of<Pairs>(x, y, half_shift, sign, s, d);
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
        if constexpr (kExtras) {
          const int row = first_row + n * kRows + i;
          if (m.extras.sums_l1 && n < batches && row >= pixels.row0 && row < pixels.row1) {
            l1_sum = fmaf(fabsf(d[0]), l1_first, fmaf(fabsf(d[1]), l1_second, l1_sum));
          }
          if (m.extras.halved_sum.data != nullptr && n < batches)
            halver.push(row, s, d, shift, pixels);
        }
      }
      __syncthreads();
      if (fetches && n + 2 < batches) fetch(n + 2);
      if constexpr (Pairs::kGathers) gpu::mark_words();
      if constexpr (kGradient) {  // H2: finishes rows b of the gradient
        if (n > P::kHalo / kRows) {
          const int b = (n - 1) * kRows - P::kHalo + task_row;
          // Loaded row b + 10 is row (task_row + 2) % 4 of batch n - 4 or n - 3.
          const Element* const centre = raw +
                                        ((n - 4 + (task_row >> 1)) % P::kRing) * 2 * P::kImage +
                                        ((task_row + 2) & 3) * P::kBox;
          float x[8], y[8], s[8], d[8], g[8], field[8];
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int word = P::word_of(min(task * 8 + 10 + P::kDelta + 4 * j, kLoaded - 4));
            load_some<4>(centre + word, x + 4 * j);
            load_some<4>(centre + P::kImage + word, y + 4 * j);
          }
          sums_of<Pairs>(x, y, half_shift, sign, s, d);
          const float* const row = d_rows + at_task;
          across<kHalf>(row, w, g);
          across<kHalf>(row + kField, w, field);
#pragma unroll
          for (int o = 0; o < 8; ++o) g[o] = fmaf(-s[o], field[o], g[o]);
          across<kHalf>(row + 2 * kField, w, field);
#pragma unroll
          for (int o = 0; o < 8; ++o) g[o] = slope * fmaf(d[o], field[o], g[o]);
          if constexpr (kExtras) {
            if (l1_slope != 0) {
#pragma unroll
              for (int o = 0; o < 8; ++o) g[o] += d[o] > 0 ? l1_slope : d[o] < 0 ? -l1_slope : 0.f;
            }
          }
          if (b < rows && (!kExtras || m.gradient.data != nullptr)) {
            const DType dtype = kExtras ? m.gradient_dtype : DType::f32;
            store8(m.gradient.data, dtype, to_gradient, g, columns_left);
          } else if (b < rows) {
            const gpu::View& to = m.extras.any_gradient;
            const std::int64_t first =
                to.plane(image, channel) + to.at(0, first_row + 10 + b, column0 + 10 + task * 8);
#pragma unroll
            for (int o = 0; o < 8; ++o) {
              if (o < columns_left) to.store(first + o * to.strides[4], g[o]);
            }
          }
        }
        if (n >= 1) to_gradient += m.gradient.row_stride * kRows;
      }
      if ((n + 1) * kRows > 10 && n < batches) {  // H1
#pragma unroll 1
        for (int it = 0; it < kRows / P::kTaskRows; ++it) {
          float* const row = a_rows + it * P::kTaskRows * kPitch + at_task;
          const int first_a = n * kRows - 10 + it * P::kTaskRows, a = first_a + task_row;
          const bool row_in_map = a >= map_row0 && a < map_row1;
          float mean[4][8];
#pragma unroll
          for (int f = 0; f < 4; ++f) across<kHalf>(row + f * kField, w, mean[f]);
          const bool owned_row =
              kGradient ? a >= 5 && a < rows + 5 && row_in_map : a >= 0 && a < rows;
          float field[3][8], value[8];
#pragma unroll
          for (int o = 0; o < 8; ++o) {
            const Point r =
                point(mean[0][o], mean[1][o], mean[2][o], mean[3][o], shift, m.c1, m.c2);
            value[o] = r.value;
            if (!kExtras && owned_row) sum[o] += r.value;
            if constexpr (kGradient) {
              fields_of(r, mean[0][o], &field[0][o], &field[1][o], &field[2][o]);
            }
          }
          if constexpr (kExtras) {
            const int centre_row = first_row + 5 + a;
            const auto in_map = [&](int o) {
              return row_in_map && centre0 + o >= m.map_x0 && centre0 + o < m.map_x1;
            };
            if (m.extras.mask.data != nullptr) {
#pragma unroll
              for (int o = 0; o < 8; ++o) {
                const float weight = in_map(o) ? at_plane.mask_at(m, centre_row, centre0 + o) : 1.f;
                value[o] *= weight;
                if constexpr (kGradient) {
#pragma unroll
                  for (int f = 0; f < 3; ++f) field[f][o] *= weight;
                }
              }
            }
            if (kGradient && m.extras.upstream.data != nullptr) {
#pragma unroll
              for (int o = 0; o < 8; ++o) {
                const float factor =
                    in_map(o) ? at_plane.upstream_at(m, centre_row, centre0 + o) : 1.f;
#pragma unroll
                for (int f = 0; f < 3; ++f) field[f][o] *= factor;
              }
            }
#pragma unroll
            for (int o = 0; o < 8; ++o) {
              if (owned_row) sum[o] += value[o];
            }
            if constexpr (!kGradient) {
              if (m.extras.map.data != nullptr) {
                float element[8];
#pragma unroll
                for (int o = 0; o < 8; ++o) {
                  const float weight = m.extras.mask.data != nullptr && in_map(o)
                                           ? at_plane.mask_at(m, centre_row, centre0 + o)
                                           : 1.f;
                  element[o] = fmaf(2 * m.extras.map_slope, value[o], weight * m.extras.map_bias);
                }
                store_map<P>(m, at_plane, map_words, element, first_a, rows, first_row, column0);
              }
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
                store4(row + (4 + f) * kField + j * kHalf, field[f] + 4 * j);
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
      if constexpr (kExtras) segment.l1 = gpu::block_sum_warps<P::kThreads>(l1_total, words);
      if (t == 0) {
        Partial* const to = m.partials + blockIdx.x + column_strip;
        to[0] = segment;
        // The next block begins the next strip: no segment has the number between.
        if (unit == last_unit && row0 + rows == m.rows) to[1] = {0, 0};
      }
    }
  }
  if (m.finish.value != nullptr) finish<P>(m, reinterpret_cast<double*>(a_rows));
#endif
}

// How many blocks run at once on a device; the driver is asked once.
template <class P> int resident_blocks(Device device) {
  constexpr int kDevices = 64;
  static std::atomic<int> known[kDevices] = {};
  if (device.index < kDevices && known[device.index] != 0) return known[device.index];
  const auto kernel = march_kernel<P>;
  gpu::check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kSharedBytes),
      "ssim");
  int blocks = 0;
  gpu::check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, P::kThreads, P::kSharedBytes),
      "ssim");
  blocks *= gpu::limits(device).multiprocessors;
  if (device.index < kDevices) known[device.index] = blocks;
  return blocks;
}

// Or fewer, if there is less work.
template <class P> int march_blocks(const March& m, Device device) {
  return static_cast<int>(
      std::min<std::int64_t>(resident_blocks<P>(device), m.planes * m.strips * m.rows));
}

template <class P> void launch_march(const March& m, int blocks, const Execution& exec) {
  const auto map_of = [&](const PlaneArray& a) {
    if (P::Pairs::kGathers) return CUtensorMap{};
    return gpu::tensor_map<typename P::Element>({a.data, m.width, m.height, m.channels, m.images,
                                                    a.row_stride, a.channel_stride, a.image_stride},
        P::kBox, P::kRows);
  };
  gpu::launch("ssim", exec.stream, static_cast<unsigned>(blocks), P::kThreads, P::kSharedBytes,
      march_kernel<P>, m, map_of(m.x), map_of(m.y));
}

template <class P> MarchVariant variant() {
  return {P::kOwned, P::kColumns, P::kAlign, P::kSharedBytes, march_blocks<P>, launch_march<P>};
}

/// Two widths of each: what a strip loads and does not own is a rim of columns, so wide strips
/// waste less, unless the image's width leaves much of the last one empty.
template <class Pairs, bool gradient, bool extras> MarchVariant variant(bool wide) {
  if constexpr (gradient) {
    return wide ? variant<MarchPolicy<Pairs, 256, 4, 1, true, extras>>()
                : variant<MarchPolicy<Pairs, 128, 4, 2, true, extras>>();
  } else {
    return wide ? variant<MarchPolicy<Pairs, 128, 8, 3, false, extras>>()
                : variant<MarchPolicy<Pairs, 96, 8, 4, false, extras>>();
  }
}

}  // namespace similis::ssim_internal

#endif
