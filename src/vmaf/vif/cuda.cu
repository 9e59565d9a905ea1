// SPDX-License-Identifier: Apache-2.0
// VIF on the GPU: one launch a scale takes all pairs of a batch. A block takes a tile of 8 rows and
// up to 248 columns of one pair, and keeps no plane:
//   8 + 2·radius samples of a column ─> two means, three squares of 8 rows      registers, shared
//                                    ─> means of 4 rows of the next scale       registers, shared
//   8 + 2·radius of those in a row   ─> moments of 8 columns                    registers
//   moments ─> statistics in doubles, logarithms                                sums
//   and those of the next scale      ─> its samples, both images' in one word   4 B a pixel written
// A filter's taps are symmetric: samples at one distance are added first, on pipes that the
// products do not use, and that halves the products. Sums are modulo 2^32; what is wider is
// filtered as lower and upper halves of 16 bits. A pixel of scale 0, of bytes, takes 126 products
// and 130 other integer operations, of words 45 products more, and about 60 for its statistics; all
// scales a third more. It reads 2 B (8 rows read 24: the second-level cache serves them), and
// writes 1.3 B.
#include <array>
#include <type_traits>
#include <utility>

#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/vendor.h"
#include "src/vmaf/cuda/sums.cuh"
#include "src/vmaf/vif/cuda.h"
#include "src/vmaf/vif/formula.h"

namespace similis::vmaf_internal {
namespace {

using Word = std::uint32_t;

constexpr int kThreads = 256;         // a column each while filtering down
constexpr int kRows = 8;              // of a tile, and columns of a thread while filtering across
constexpr int kPitch = kThreads + 1;  // so that lanes of 8 rows and 4 groups of 8 meet in no bank

template <int scale> constexpr int kRadius = kVifRadius[scale];
template <int scale> constexpr int kColumns = (kThreads - 2 * kRadius<scale>) / kRows* kRows;
template <int scale, int distance>
constexpr Word kTap = static_cast<Word>(vif_tap(scale, distance));

struct GainLimits {
  double values[kVifGpuLimits];
  int count;
};

struct VifPass {
  GpuPairs pairs;      // of scale 0
  const Word* packed;  // of the other scales: [pair][row][column], the reference's sample below
  Word* next;          // of the next scale, or null
  int width, height;   // of this scale
  int tiles;           // side by side
  bool is_measured;
  GainLimits limits;
  GpuSum* sums;  // of this scale's first pair
};

// Index of a sample, mirrored at the borders. Threads whose columns no window needs get any.
__device__ inline int mirrored(int index, int extent) {
  if (index < 0) index = -index;
  if (index >= extent) index = 2 * (extent - 1) - index;
  return index < 0 ? 0 : index;
}

// Reads a column of both images from a row on, as one word a row.
template <class Sample> class Column {
 public:
  __device__ Column(const VifPass& pass, std::int64_t pair, int column) {
    const GpuPairs& p = pass.pairs;
    x_ = static_cast<const Sample*>(p.reference.samples) +
         pair / p.distorted_of_each * p.reference.image_stride + column * p.reference.column_stride;
    y_ = static_cast<const Sample*>(p.distorted.samples) + pair * p.distorted.image_stride +
         column * p.distorted.column_stride;
    x_row_ = p.reference.row_stride;
    y_row_ = p.distorted.row_stride;
  }
  __device__ __forceinline__ void skip(int rows) {
    x_ += rows * x_row_;
    y_ += rows * y_row_;
  }
  __device__ __forceinline__ Word next() {
    const Word both = static_cast<Word>(*x_) | static_cast<Word>(*y_) << 16;
    skip(1);
    return both;
  }
  __device__ __forceinline__ Word at(int row) const {
    return static_cast<Word>(x_[row * x_row_]) | static_cast<Word>(y_[row * y_row_]) << 16;
  }

 private:
  const Sample *x_, *y_;
  std::int64_t x_row_, y_row_;
};
template <> class Column<Word> {
 public:
  __device__ Column(const VifPass& pass, std::int64_t pair, int column)
      : packed_(pass.packed + pair * pass.height * pass.width + column), width_(pass.width) {}
  __device__ __forceinline__ void skip(int rows) { packed_ += rows * width_; }
  __device__ __forceinline__ Word next() {
    const Word both = *packed_;
    skip(1);
    return both;
  }
  __device__ __forceinline__ Word at(int row) const { return packed_[row * width_]; }

 private:
  const Word* packed_;
  std::int64_t width_;
};

// Rows top to top + count - 1 of a column; those outside the image are mirrored.
template <class Sample, int count>
__device__ __forceinline__ void load_rows(
    Column<Sample> from, int top, int height, Word (&samples)[count]) {
  if (top >= 0 && top + count <= height) {
    from.skip(top);
#pragma unroll
    for (int i = 0; i < count; ++i) samples[i] = from.next();
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) samples[i] = from.at(mirrored(top + i, height));
  }
}

// The filter about values[centre], modulo 2^32.
template <int scale, int count, int... k>
__device__ __forceinline__ Word filtered_with(
    const Word (&values)[count], int centre, std::integer_sequence<int, k...>) {
  return kTap<scale, 0> * values[centre] +
         ((kTap<scale, k + 1> * (values[centre - k - 1] + values[centre + k + 1])) + ...);
}
template <int scale, int count>
__device__ __forceinline__ Word filtered(const Word (&values)[count], int centre) {
  return filtered_with<scale>(values, centre, std::make_integer_sequence<int, kRadius<scale>>());
}

__device__ __forceinline__ Word rounded(Word sum, int shift) {
  return (sum + (Word{1} << (shift - 1))) >> shift;
}

// The same filter of values of up to 32 bits, over 2^shift and rounded.
template <int scale, int count>
__device__ __forceinline__ void split_halves(
    const Word (&values)[count], Word (&lower)[count], Word (&upper)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    lower[i] = values[i] & 0xffffu;
    upper[i] = values[i] >> 16;
  }
}
__device__ __forceinline__ Word joined(Word lower, Word upper, int shift) {
  const std::uint64_t sum = (static_cast<std::uint64_t>(upper) << 16) + lower;
  const std::uint64_t half = shift == 0 ? 0 : std::uint64_t{1} << (shift - 1);
  return static_cast<Word>((sum + half) >> shift);
}

// a·b / 2^32, rounded.
__device__ __forceinline__ Word high_product(Word a, Word b) {
  return static_cast<Word>((static_cast<std::uint64_t>(a) * b + (std::uint64_t{1} << 31)) >> 32);
}

// 2048·log2 of a whole number of at least 2^15, by its 16 leading bits, and 2048·1023 more. The
// polynomial in t = m - 1.5 has libvmaf's table of rounded logarithms for all 32768 mantissas, with
// fused multiply-adds and without.
__device__ __forceinline__ int logarithm(double value) {
  const auto high = static_cast<Word>(bits_as<std::uint64_t>(value) >> 32);
  const float t = bits_as<float>((high & 0xfffe0u) << 3 | 0x3f800000u) - 1.5f;
  float log = 0x1.5a4266p-8f;
  log = fmaf(log, t, -0x1.22a358p-7f);
  log = fmaf(log, t, 0x1.82e084p-7f);
  log = fmaf(log, t, -0x1.52f57cp-6f);
  log = fmaf(log, t, 0x1.37764ap-5f);
  log = fmaf(log, t, -0x1.23f93cp-4f);
  log = fmaf(log, t, 0x1.23d092p-3f);
  log = fmaf(log, t, -0x1.484ac2p-2f);
  log = fmaf(log, t, 0x1.ec709ep-1f);
  log = fmaf(log, t, 0x1.2b8034p-1f);
  log = fmaf(log + 15.0f, 2048.0f, 0.5f);
  return static_cast<int>(log) + ((static_cast<int>(high >> 20) - 15) << 11);
}

// A window's moments, and what a thread sums of them.
struct Moments {
  Word x, y, xx, yy, xy;
};
struct Totals {
  GpuSum flat_rest = 0;
  int flat_count = 0, reference = 0, information[kVifGpuLimits] = {};

  __device__ __forceinline__ void add(const Moments& m, const GainLimits& limits) {
    const int s1 = static_cast<int>(m.xx - high_product(m.x, m.x));
    int s2 = static_cast<int>(m.yy - high_product(m.y, m.y));
    const int s12 = static_cast<int>(m.xy - high_product(m.x, m.y));
    s2 = s2 < 0 ? 0 : s2;
    if (s1 < kVifNoise) {
      flat_count += 1;
      flat_rest += static_cast<GpuSum>(s2);
      return;
    }
    const double variance = s1;
    reference += logarithm(variance + kVifNoise) - 2048 * (1023 + 17);
    if (s12 <= 0 || s2 == 0) return;
    const double gain = s12 / (variance + 65536 * 1.0e-10);
    const double rest = trunc(s2 - gain * s12);
    const double noise = (rest > 0 ? rest : 0) + kVifNoise;
    const int of_noise = logarithm(noise);
#pragma unroll
    for (int k = 0; k < kVifGpuLimits; ++k) {
      if (k >= limits.count) break;
      const double g = gain < limits.values[k] ? gain : limits.values[k];
      information[k] += logarithm(trunc(g * g * variance) + noise) - of_noise;
    }
  }
};

template <int scale> struct Tile {
  Word means[kRows][kPitch], squares[3][kRows][kPitch];
  Word halves[scale + 1 < kVifScales ? kRows / 2 : 1][kPitch];
};

// One of the products of a column's samples, filtered down.
template <int scale, bool is_narrow, int count>
__device__ __forceinline__ void squares_down(
    const Word (&samples)[count], int kind, int shift, Word (&to)[kRows]) {
  constexpr int radius = kRadius<scale>;
  Word products[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const Word x = samples[i] & 0xffffu, y = samples[i] >> 16;
    products[i] = (kind == 1 ? y : x) * (kind == 0 ? x : y);
  }
  if constexpr (is_narrow) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) to[j] = filtered<scale>(products, j + radius);
  } else {
    Word lower[count], upper[count];
    split_halves<scale>(products, lower, upper);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      to[j] = joined(filtered<scale>(lower, j + radius), filtered<scale>(upper, j + radius), shift);
    }
  }
}

// All rows of a column, and of the next scale's.
template <class Sample, int scale>
__device__ __forceinline__ void filter_down(
    const VifPass& pass, std::int64_t pair, int column, int top, Tile<scale>& tile) {
  constexpr int radius = kRadius<scale>, count = kRows + 2 * radius;
  constexpr bool is_narrow = std::is_same_v<Sample, std::uint8_t>;
  const int t = static_cast<int>(threadIdx.x);
  const int depth = pass.pairs.bit_depth;
  Word samples[count];
  load_rows(
      Column<Sample>(pass, pair, mirrored(column, pass.width)), top - radius, pass.height, samples);
  const int mean_shift = scale == 0 ? depth : 16;
  Word means[kRows], halves[kRows / 2];
#pragma unroll
  for (int image = 0; image < 2; ++image) {
    Word values[count];
#pragma unroll
    for (int i = 0; i < count; ++i)
      values[i] = image == 0 ? samples[i] & 0xffffu : samples[i] >> 16;
    if (pass.is_measured) {
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const Word mean = rounded(filtered<scale>(values, j + radius), mean_shift);
        means[j] = image == 0 ? mean : means[j] | mean << 16;
      }
    }
    if constexpr (scale + 1 < kVifScales) {
      if (pass.next != nullptr) {
#pragma unroll
        for (int j = 0; j < kRows / 2; ++j) {
          const Word mean = rounded(filtered<scale + 1>(values, 2 * j + radius), mean_shift);
          halves[j] = image == 0 ? mean : halves[j] | mean << 16;
        }
      }
    }
  }
  if constexpr (scale + 1 < kVifScales) {
#pragma unroll
    for (int j = 0; j < kRows / 2; ++j) tile.halves[j][t] = halves[j];
  }
  if (!pass.is_measured) return;
#pragma unroll
  for (int j = 0; j < kRows; ++j) tile.means[j][t] = means[j];
  const int shift = scale == 0 ? 2 * (depth - 8) : 16;
#pragma unroll
  for (int kind = 0; kind < 3; ++kind) {
    Word down[kRows];
    squares_down<scale, is_narrow>(samples, kind, shift, down);
#pragma unroll
    for (int j = 0; j < kRows; ++j) tile.squares[kind][j][t] = down[j];
  }
}

// The moments of eight windows in a row, which begin at `from` of their means and squares.
template <int scale>
__device__ __forceinline__ void filter_across(
    const Tile<scale>& tile, int row, int from, Moments (&moments)[kRows]) {
  constexpr int radius = kRadius<scale>, count = kRows + 2 * radius;
  Word values[count], lower[count], upper[count];
#pragma unroll
  for (int i = 0; i < count; ++i) values[i] = tile.means[row][from + i];
  split_halves<scale>(values, lower, upper);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    moments[j].x = filtered<scale>(lower, j + radius);
    moments[j].y = filtered<scale>(upper, j + radius);
  }
#pragma unroll
  for (int kind = 0; kind < 3; ++kind) {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = tile.squares[kind][row][from + i];
    split_halves<scale>(values, lower, upper);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const Word sum =
          filtered<scale>(upper, j + radius) + rounded(filtered<scale>(lower, j + radius), 16);
      (kind == 0 ? moments[j].xx : kind == 1 ? moments[j].yy : moments[j].xy) = sum;
    }
  }
}

// Two samples of the next scale.
template <int scale>
__device__ __forceinline__ void halve(
    const VifPass& pass, std::int64_t pair, const Tile<scale>& tile, int left, int top) {
  constexpr int radius = kRadius<scale + 1>, count = 3 + 2 * radius;
  const int t = static_cast<int>(threadIdx.x);
  const int row = t % 4, first = t / 4 * 4;
  const int width = pass.width / 2, height = pass.height / 2, y = top / 2 + row;
  if (first >= kColumns<scale> || y >= height) return;
  Word values[count], lower[count], upper[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    values[i] = tile.halves[row][first + kRadius<scale> - radius + i];
  }
  split_halves<scale>(values, lower, upper);
  Word* to = pass.next + (pair * height + y) * width;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int x = (left + first) / 2 + j;
    if (x >= width) break;
    to[x] = rounded(filtered<scale + 1>(lower, 2 * j + radius), 16) |
            rounded(filtered<scale + 1>(upper, 2 * j + radius), 16) << 16;
  }
}

// A block takes a tile of blockIdx.x of pair blockIdx.y.
template <class Sample, int scale>
__global__ __launch_bounds__(kThreads, 2) void vif_kernel(
    SIMILIS_GRID_CONSTANT const VifPass pass) {
  __shared__ Tile<scale> tile;
  __shared__ GpuSum room[kThreads / gpu::kSubgroup * kSumsAtOnce];
  const int t = static_cast<int>(threadIdx.x);
  const int left = static_cast<int>(blockIdx.x) % pass.tiles * kColumns<scale>;
  const int top = static_cast<int>(blockIdx.x) / pass.tiles * kRows;
  const std::int64_t pair = blockIdx.y;
  filter_down<Sample, scale>(pass, pair, left - kRadius<scale> + t, top, tile);
  __syncthreads();
  if constexpr (scale + 1 < kVifScales) {
    if (pass.next != nullptr) halve<scale>(pass, pair, tile, left, top);
  }
  if (!pass.is_measured) return;
  Totals totals;
  const int row = t % kRows, first = t / kRows * kRows;
  if (first < kColumns<scale> && left + first < pass.width && top + row < pass.height) {
    Moments moments[kRows];
    filter_across<scale>(tile, row, first, moments);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (left + first + j < pass.width) totals.add(moments[j], pass.limits);
    }
  }
  GpuSum values[kSumsAtOnce] = {static_cast<GpuSum>(totals.flat_count), totals.flat_rest,
      static_cast<GpuSum>(static_cast<long long>(totals.reference))};
#pragma unroll
  for (int k = 0; k < kVifGpuLimits; ++k) {
    values[3 + k] = static_cast<GpuSum>(static_cast<long long>(totals.information[k]));
  }
  add_over_block<kThreads>(values, room, pass.sums + pair * kVifScales * kVifGpuSums);
}

template <class Sample, int scale> void queue_scale(VifPass pass, void* stream) {
  pass.tiles = (pass.width + kColumns<scale> - 1) / kColumns<scale>;
  const int stripes = (pass.height + kRows - 1) / kRows;
  const dim3 blocks(
      static_cast<unsigned>(pass.tiles * stripes), static_cast<unsigned>(pass.pairs.count));
  gpu::launch("vmaf", stream, blocks, kThreads, 0, vif_kernel<Sample, scale>, pass);
}

}  // namespace

static_assert(kVifGpuSums == kSumsAtOnce);

VifGpuWorkspace::VifGpuWorkspace(const GpuPairs& pairs, GpuCut& cut) {
  std::int64_t width = pairs.width, height = pairs.height;
  for (std::size_t scale = 1; scale < halves.size(); ++scale) {
    width /= 2;
    height /= 2;
    halves[scale] = cut.take<std::uint32_t>(pairs.count * width * height);
  }
}

void queue_vif(const GpuPairs& pairs, std::span<const double> gain_limits, bool skips_scale0,
    const VifGpuWorkspace& workspace, GpuSum* sums, void* stream) {
  VifPass pass{};
  pass.pairs = pairs;
  pass.width = pairs.width;
  pass.height = pairs.height;
  pass.limits.count = static_cast<int>(gain_limits.size());
  for (std::size_t k = 0; k < gain_limits.size(); ++k) pass.limits.values[k] = gain_limits[k];
  for (int scale = 0; scale < kVifScales; ++scale) {
    const auto at = static_cast<std::size_t>(scale);
    pass.packed = workspace.halves[at];
    pass.next = scale + 1 < kVifScales ? workspace.halves[at + 1] : nullptr;
    pass.is_measured = scale > 0 || !skips_scale0;
    pass.sums = sums + scale * kVifGpuSums;
    switch (scale) {
      case 0:
        pairs.is_words ? queue_scale<std::uint16_t, 0>(pass, stream)
                       : queue_scale<std::uint8_t, 0>(pass, stream);
        break;
      case 1: queue_scale<Word, 1>(pass, stream); break;
      case 2: queue_scale<Word, 2>(pass, stream); break;
      default: queue_scale<Word, 3>(pass, stream);
    }
    pass.width /= 2;
    pass.height /= 2;
  }
}

}  // namespace similis::vmaf_internal
