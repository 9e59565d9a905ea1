// SPDX-License-Identifier: Apache-2.0
// ADM on the GPU: one launch a scale takes all pairs of a batch, and one more rounds the sums of
// rows. A block takes a tile of 62×14 coefficients of each band of one pair, and one more on each
// side; a thread has 4 of them. No band is kept:
//   4×4 input pixels of both images ─> 4 coefficients each             registers
//                  approximations   ─> input of the next scale         8 B a coefficient written
//   bands ─> what is left of the reference's detail ─> for each setting:
//       detail and addition ─> weights of neighbours                   shared, 8 KB
//       weights             ─> thresholds ─> cubes                     registers
//       cubes               ─> sums of parts of rows                   global, by atomic additions
// A coefficient takes about 96 products for the wavelets, three integer divisions, and 140 integer
// operations a setting where it is counted, which are 64 % of them: with two settings 110
// operations a pixel of the image, all scales. It reads 2 B a pixel, 16 times from the first-level
// cache, and writes and reads 2.6 B of approximations. Whole numbers are summed in any order.
#include <array>
#include <type_traits>

#include "src/gpu/cuda/vendor.h"
#include "src/vmaf/adm/cuda.h"
#include "src/vmaf/cuda/sums.cuh"

namespace similis::vmaf_internal {
namespace {

constexpr int kLanes = gpu::kSubgroup, kThreads = 256, kSubgroups = kThreads / kLanes;
// A thread's coefficients lie a subgroup's lanes, and the block's subgroups, apart.
constexpr int kBeside = 2, kAbove = 2;
constexpr int kTileWidth = kBeside * kLanes, kTileHeight = kAbove * kSubgroups;
constexpr int kKinds = 2;  // the detail, and what is added

template <int k> constexpr int kLow = kAdmLow[k];
template <int k> constexpr int kHigh = kAdmHigh[k];

// A range of rows or columns.
struct Range {
  int first, last;
  __device__ bool has(int at) const { return at >= first && at < last; }
};

struct AdmPass {
  GpuPairs pairs;                          // of scale 0
  const std::int64_t* inputs;              // of the other scales: [pair][row][column]
  std::int64_t* outputs;                   // the next scale's, or null
  int in_width, in_height, width, height;  // of the input and of the bands
  int tiles;                               // side by side
  int shift_down, shift_across;
  bool is_measured;
  Range rows, columns;  // that are counted
  int settings;
  double gain_limits[kAdmGpuSettings];
  int factors[kAdmGpuSettings][kAdmBands];
  int column_shifts[kAdmBands], row_shift;
  AdmShifts reference_shifts;
  GpuSum* sums;  // [pair][row][kAdmGpuSums]
};

__device__ inline int input_of(int output, int k, int extent) {
  const int at = 2 * output - 1 + k;
  if (at < 0) return 1;
  return at < extent ? at : 2 * extent - 1 - at;
}

// The coefficient that stands for one outside a band, and for those of no use.
__device__ inline int inside(int at, int extent) {
  if (at < 0) return 1;
  return at < extent ? at : extent - 1;
}

// Both images' approximations in one number.
__device__ inline std::int64_t packed(int o, int t) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(o)) |
                                   static_cast<std::uint64_t>(static_cast<std::uint32_t>(t)) << 32);
}

template <class Sum> __device__ __forceinline__ Sum low_of(Sum a, Sum b, Sum c, Sum d) {
  return kLow<0> * a + kLow<1> * b + kLow<2> * c + kLow<3> * d;
}
template <class Sum> __device__ __forceinline__ Sum high_of(Sum a, Sum b, Sum c, Sum d) {
  return kHigh<0> * a + kHigh<1> * b + kHigh<2> * c + kHigh<3> * d;
}
template <class Sum> __device__ __forceinline__ int rounded(Sum sum, int shift) {
  const Sum half = shift == 0 ? 0 : Sum{1} << (shift - 1);
  return static_cast<int>((sum + half) >> shift);
}

// Approximation, h, v and d at one place.
struct Coefficients {
  int a, bands[kAdmBands];
};

// The wavelet of 4×4 values, which columns(k, values) gives by columns from the top. Samples lie
// about the middle of their range; with what is in 64 bits, every sum is exact.
template <bool is_deep, class Columns>
__device__ __forceinline__ Coefficients wavelet(const AdmPass& pass, const Columns& columns) {
  using Sum = std::conditional_t<is_deep, long long, int>;
  Sum low[4], high[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    int v[4];
    columns(k, v);
    low[k] = rounded(low_of<Sum>(v[0], v[1], v[2], v[3]), pass.shift_down);
    high[k] = rounded(high_of<Sum>(v[0], v[1], v[2], v[3]), pass.shift_down);
  }
  const int shift = pass.shift_across;
  Coefficients c{rounded(low_of<Sum>(low[0], low[1], low[2], low[3]), shift),
      {rounded(low_of<Sum>(high[0], high[1], high[2], high[3]), shift),
          rounded(high_of<Sum>(low[0], low[1], low[2], low[3]), shift),
          rounded(high_of<Sum>(high[0], high[1], high[2], high[3]), shift)}};
  if constexpr (!is_deep) {
    c.a = static_cast<std::int16_t>(c.a);
    for (int& band : c.bands) band = static_cast<std::int16_t>(band);
  }
  return c;
}

// Transforms both images at one place.
template <class Sample>
__device__ __forceinline__ void transform(
    const AdmPass& pass, std::int64_t pair, int x, int y, Coefficients& o, Coefficients& t) {
  int rows[4], columns[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    rows[k] = input_of(y, k, pass.in_height);
    columns[k] = input_of(x, k, pass.in_width);
  }
  if constexpr (std::is_same_v<Sample, std::int64_t>) {
    const std::int64_t* from =
        pass.inputs + pair * pass.in_height * static_cast<std::int64_t>(pass.in_width);
    std::int64_t values[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        values[k][i] = from[rows[i] * static_cast<std::int64_t>(pass.in_width) + columns[k]];
      }
    }
    o = wavelet<true>(pass, [&](int k, int(&v)[4]) {
      for (int i = 0; i < 4; ++i) v[i] = static_cast<int>(values[k][i]);
    });
    t = wavelet<true>(pass, [&](int k, int(&v)[4]) {
      for (int i = 0; i < 4; ++i) v[i] = static_cast<int>(values[k][i] >> 32);
    });
  } else {
    const GpuPairs& p = pass.pairs;
    const int middle = 1 << (p.bit_depth - 1);
    const auto of = [&](const GpuImages& images, std::int64_t index) {
      const auto* from = static_cast<const Sample*>(images.samples) + index * images.image_stride;
      return wavelet<false>(pass, [&](int k, int(&v)[4]) {
        for (int i = 0; i < 4; ++i) {
          v[i] = from[rows[i] * images.row_stride + columns[k] * images.column_stride] - middle;
        }
      });
    };
    o = of(p.reference, pair / p.distorted_of_each);
    t = of(p.distorted, pair);
  }
}

// True where both images' gradients point alike.
template <bool is_deep>
__device__ __forceinline__ bool is_near(const Coefficients& o, const Coefficients& t) {
  using Product = std::conditional_t<is_deep, long long, int>;
  const Product a = o.bands[0], b = o.bands[1], c = t.bands[0], d = t.bands[1];
  const double product = static_cast<float>(a * c + b * d);
  const double original = static_cast<float>(a * a + b * b);
  const double distorted = static_cast<float>(c * c + d * d);
  return product >= 0 && product * product >= kAdmCosine * original * distorted;
}

// The part that is left of the reference's coefficient, without gain.
template <bool is_deep> __device__ __forceinline__ int restored(int o, int t) {
  if (o == 0) return 0;
  const unsigned size = static_cast<unsigned>(o < 0 ? -o : o);
  int excess = 0;
  unsigned divisor = size;
  if constexpr (is_deep) {
    const int length = 32 - __clz(static_cast<int>(size));
    excess = length > 15 ? length - 15 : 0;
    divisor = excess == 0 ? size : (size + (1u << (excess - 1))) >> excess;
  }
  const auto inverse = static_cast<int>((1u << 30) / divisor);
  const int toward = o < 0 ? -t : t;
  const long long ratio =
      (static_cast<long long>(inverse) * toward + (1LL << (14 + excess))) >> (15 + excess);
  const int k = ratio < 0 ? 0 : ratio > 32768 ? 32768 : static_cast<int>(ratio);
  if constexpr (!is_deep) return (k * o + 16384) >> 15;
  return static_cast<int>((static_cast<long long>(k) * o + 16384) >> 15);
}

// With gain, where both images point alike. It has the reference's sign.
__device__ __forceinline__ int gained(int r, int t, double gain_limit) {
  const double most = r * gain_limit, limit = t;
  return static_cast<int>(r > 0 ? (most < limit ? most : limit) : (most > limit ? most : limit));
}

// A masker's weight at its neighbours, and at its place beyond that.
template <bool is_deep>
__device__ __forceinline__ void add_weights(
    int m, int factor, int band, int& neighbour, int& place) {
  if constexpr (is_deep) {
    const int rounded_product =
        static_cast<int>((static_cast<long long>(factor) * m + (1LL << 27)) >> 28);
    const auto c = static_cast<unsigned>(rounded_product < 0 ? -rounded_product : rounded_product);
    constexpr std::uint64_t half = std::uint64_t{1} << 31;
    const int f = static_cast<int>((std::uint64_t{143165577} * c + half) >> 32) - 1;
    const int e = static_cast<int>((std::uint64_t{286331153} * c + half) >> 32) - 1;
    neighbour += f;
    place += e - f;
  } else {
    const long long product = static_cast<long long>(factor) * m + (band == 2 ? 65535 : 16384);
    const int wrapped = static_cast<std::int16_t>(product >> (band == 2 ? 17 : 15));
    const int c = wrapped < 0 ? -wrapped : wrapped;
    const int f = (4369 * c + 2048) >> 12, e = (8738 * c + 2048) >> 12;
    neighbour += f;
    place += e - f;
  }
}

// z³ of a coefficient beyond its threshold, with its roundings.
template <bool is_deep>
__device__ __forceinline__ GpuSum masked_cube(
    int x, int threshold, int factor, int band, int column_shift) {
  const int cube_shift = is_deep || band == 2 ? 30 : 29;  // q of adm_shifts()
  unsigned z;
  if constexpr (is_deep) {
    const int product = static_cast<int>((static_cast<long long>(factor) * x + (1LL << 27)) >> 28);
    const int over = (product < 0 ? -product : product) - threshold;
    z = static_cast<unsigned>(over > 0 ? over : 0);
  } else {
    const unsigned size = static_cast<unsigned>(factor) * static_cast<unsigned>(x < 0 ? -x : x);
    const unsigned least = static_cast<unsigned>(threshold) << (band == 2 ? 12 : 10);
    z = size > least ? size - least : 0u;
  }
  const std::uint64_t half = std::uint64_t{1} << (cube_shift - 1);
  const std::uint64_t square = (static_cast<std::uint64_t>(z) * z + half) >> cube_shift;
  return (square * z + (std::uint64_t{1} << (column_shift - 1))) >> column_shift;
}

// |o|³, with its roundings.
template <bool is_deep>
__device__ __forceinline__ GpuSum reference_cube(int o, const AdmShifts& shifts) {
  const auto size = static_cast<unsigned>(o < 0 ? -o : o);
  if constexpr (!is_deep) return static_cast<std::uint64_t>(size * size) * size;
  const std::uint64_t one = std::uint64_t{1} << shifts.cube;
  const std::uint64_t square = (static_cast<std::uint64_t>(size) * size + one) >> shifts.cube;
  const std::uint64_t half = shifts.column > 0 ? std::uint64_t{1} << (shifts.column - 1) : 0;
  return (square * size + half) >> shifts.column;
}

// A thread's coefficients.
struct Place {
  int restored[kAdmBands], distorted[kAdmBands];
  bool is_near;
};

// A block takes a tile of blockIdx.x of pair blockIdx.y.
template <class Sample>
__global__ __launch_bounds__(kThreads, 2) void adm_kernel(
    SIMILIS_GRID_CONSTANT const AdmPass pass) {
  constexpr bool is_deep = std::is_same_v<Sample, std::int64_t>;
  __shared__ int neighbours[kKinds][kTileHeight][kTileWidth];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int subgroup = static_cast<int>(threadIdx.x) / kLanes;
  const int left = static_cast<int>(blockIdx.x) % pass.tiles * (kTileWidth - 2) - 1;
  const int top = static_cast<int>(blockIdx.x) / pass.tiles * (kTileHeight - 2) - 1;
  const std::int64_t pair = blockIdx.y;
  const bool is_measured = pass.is_measured && left + 1 < pass.columns.last &&
                           left + kTileWidth - 1 > pass.columns.first && top + 1 < pass.rows.last &&
                           top + kTileHeight - 1 > pass.rows.first;
  Place places[kAbove][kBeside];
  bool is_counted[kAbove][kBeside];
  GpuSum cubes[kSumsAtOnce] = {};  // of both rows
#pragma unroll
  for (int i = 0; i < kAbove; ++i) {
#pragma unroll
    for (int j = 0; j < kBeside; ++j) {
      const int row = subgroup + i * kSubgroups, column = lane + j * kLanes;
      const int y = top + row, x = left + column;
      const bool is_own = row > 0 && row < kTileHeight - 1 && column > 0 &&
                          column < kTileWidth - 1 && y < pass.height && x < pass.width;
      Coefficients o, t;
      transform<Sample>(pass, pair, inside(x, pass.width), inside(y, pass.height), o, t);
      if (is_own && pass.outputs != nullptr) {
        pass.outputs[(pair * pass.height + y) * pass.width + x] = packed(o.a, t.a);
      }
      Place& place = places[i][j];
      place.is_near = is_near<is_deep>(o, t);
      is_counted[i][j] = is_own && pass.rows.has(y) && pass.columns.has(x);
#pragma unroll
      for (int band = 0; band < kAdmBands; ++band) {
        place.restored[band] = restored<is_deep>(o.bands[band], t.bands[band]);
        place.distorted[band] = t.bands[band];
        if (is_counted[i][j]) {
          cubes[4 * i + band] += reference_cube<is_deep>(o.bands[band], pass.reference_shifts);
        }
      }
    }
  }
  if (!is_measured) return;
  // A row's sums, which lanes 0, 4, 8, … have.
  const auto row_sums = [&](int i) {
    return pass.sums + (pair * pass.height + top + subgroup + i * kSubgroups) * kAdmGpuSums;
  };
  const GpuSum of_reference = sum_over_subgroup(cubes);
  if (lane % 4 == 0 && of_reference != 0) {
    atomicAdd(row_sums(lane / 16) + lane / 4 % 4, of_reference);
  }
  for (int setting = 0; setting < pass.settings; ++setting) {
    const double gain_limit = pass.gain_limits[setting];
    int values[kAbove][kBeside][kKinds][kAdmBands];
    int own[kAbove][kBeside][kKinds];  // weights at the place beyond those of neighbours
    if (setting > 0) __syncthreads();
#pragma unroll
    for (int i = 0; i < kAbove; ++i) {
#pragma unroll
      for (int j = 0; j < kBeside; ++j) {
        const Place& place = places[i][j];
        int weights[kKinds] = {};
        own[i][j][0] = own[i][j][1] = 0;
#pragma unroll
        for (int band = 0; band < kAdmBands; ++band) {
          const int r = place.restored[band], t = place.distorted[band];
          const int detail = place.is_near && r != 0 ? gained(r, t, gain_limit) : r;
          const int added = is_deep ? t - detail : static_cast<std::int16_t>(t - detail);
          values[i][j][0][band] = detail;
          values[i][j][1][band] = added;
          const int factor = pass.factors[setting][band];
          add_weights<is_deep>(added, factor, band, weights[0], own[i][j][0]);
          add_weights<is_deep>(detail, factor, band, weights[1], own[i][j][1]);
        }
        for (int kind = 0; kind < kKinds; ++kind) {
          neighbours[kind][subgroup + i * kSubgroups][lane + j * kLanes] = weights[kind];
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kAbove; ++i) {
      GpuSum sums[kSumsAtOnce] = {};
#pragma unroll
      for (int j = 0; j < kBeside; ++j) {
        if (!is_counted[i][j]) continue;
        const int row = subgroup + i * kSubgroups, column = lane + j * kLanes;
#pragma unroll
        for (int kind = 0; kind < kKinds; ++kind) {
          int threshold = own[i][j][kind];
#pragma unroll
          for (int dy = -1; dy <= 1; ++dy) {
            for (int dx = -1; dx <= 1; ++dx) {
              threshold += neighbours[kind][row + dy][column + dx];
            }
          }
#pragma unroll
          for (int band = 0; band < kAdmBands; ++band) {
            sums[kind * kAdmBands + band] += masked_cube<is_deep>(values[i][j][kind][band],
                threshold, pass.factors[setting][band], band, pass.column_shifts[band]);
          }
        }
      }
      const GpuSum sum = sum_over_subgroup(sums);
      if (lane % 4 == 0 && sum != 0) {
        atomicAdd(row_sums(i) + 4 + setting * kKinds * kAdmBands + lane / 4, sum);
      }
    }
  }
}

// Rounds the sums of rows, and adds them.
constexpr int kFinishThreads = 256;

struct AdmFinish {
  const GpuSum* rows[kAdmScales];  // [pair][row][kAdmGpuSums]
  int heights[kAdmScales];
  int shifts[kAdmScales], reference_shifts[kAdmScales];
  GpuSum* sums;
};

// A block takes scale blockIdx.x of pair blockIdx.y.
__global__ __launch_bounds__(kFinishThreads) void adm_rows_kernel(
    SIMILIS_GRID_CONSTANT const AdmFinish f) {
  constexpr int rows_at_once = kFinishThreads / kAdmGpuSums;
  __shared__ GpuSum parts[rows_at_once][kAdmGpuSums];
  const int scale = static_cast<int>(blockIdx.x), t = static_cast<int>(threadIdx.x);
  const int number = t % kAdmGpuSums, height = f.heights[scale];
  const std::int64_t pair = blockIdx.y;
  const int shift = number < 4 ? f.reference_shifts[scale] : f.shifts[scale];
  const GpuSum half = shift == 0 ? 0 : GpuSum{1} << (shift - 1);
  const GpuSum* rows = f.rows[scale] + pair * height * kAdmGpuSums + number;
  GpuSum sum = 0;
  for (int row = t / kAdmGpuSums; row < height; row += rows_at_once) {
    sum += (rows[static_cast<std::int64_t>(row) * kAdmGpuSums] + half) >> shift;
  }
  parts[t / kAdmGpuSums][number] = sum;
  __syncthreads();
  if (t >= kAdmGpuSums) return;
  GpuSum all = 0;
  for (int i = 0; i < rows_at_once; ++i) all += parts[i][t];
  f.sums[(pair * kAdmScales + scale) * kAdmGpuSums + t] = all;
}

template <class Sample> void queue_scale(const AdmPass& pass, void* stream) {
  const int stripes = (pass.height + kTileHeight - 3) / (kTileHeight - 2);
  const dim3 blocks(
      static_cast<unsigned>(pass.tiles * stripes), static_cast<unsigned>(pass.pairs.count));
  gpu::launch("vmaf", stream, blocks, kThreads, 0, adm_kernel<Sample>, pass);
}

Range counted(int extent) {
  const auto first = static_cast<int>(adm_first_counted(extent));
  return {first, extent - first};
}

// The numbers that depend on the scale and the settings.
void describe(int scale, std::span<const AdmGpuSetting> settings, AdmPass& pass) {
  const auto at = static_cast<std::size_t>(scale);
  pass.tiles = (pass.width + kTileWidth - 3) / (kTileWidth - 2);
  pass.shift_down = scale == 0 ? pass.pairs.bit_depth : kAdmShiftDown[at];
  pass.shift_across = kAdmShiftAcross[at];
  pass.rows = counted(pass.height);
  pass.columns = counted(pass.width);
  pass.settings = static_cast<int>(settings.size());
  for (int band = 0; band < kAdmBands; ++band) {
    const AdmShifts shifts = adm_shifts(scale, band, pass.width, pass.height);
    pass.column_shifts[band] = shifts.column;
    pass.row_shift = shifts.row;  // that of all bands
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const auto& fixed = settings[i].sensitivity.fixed[at];
      pass.factors[i][band] = static_cast<int>(fixed[static_cast<std::size_t>(band)]);
      pass.gain_limits[i] = settings[i].gain_limit;
    }
  }
  pass.reference_shifts = adm_reference_shifts(
      scale, pass.columns.last - pass.columns.first, pass.rows.last - pass.rows.first);
}

}  // namespace

AdmGpuWorkspace::AdmGpuWorkspace(const GpuPairs& pairs, GpuCut& cut) {
  std::int64_t width = pairs.width, height = pairs.height;
  for (std::size_t scale = 0; scale < approximations.size(); ++scale) {
    width = (width + 1) / 2;
    height = (height + 1) / 2;
    row_sums += pairs.count * height * kAdmGpuSums;
    if (scale + 1 == approximations.size()) continue;
    approximations[scale + 1] = cut.take<std::int64_t>(pairs.count * width * height);
  }
  rows = cut.take<GpuSum>(row_sums);
}

void queue_adm(const GpuPairs& pairs, std::span<const AdmGpuSetting> settings, bool skips_scale0,
    const AdmGpuWorkspace& workspace, GpuSum* sums, void* stream) {
  gpu::clear("vmaf", stream, workspace.rows,
      static_cast<std::size_t>(workspace.row_sums) * sizeof(GpuSum));
  AdmPass pass{};
  AdmFinish finish{};
  finish.sums = sums;
  pass.pairs = pairs;
  pass.width = pairs.width;
  pass.height = pairs.height;
  pass.sums = workspace.rows;
  for (int scale = 0; scale < kAdmScales; ++scale) {
    const auto at = static_cast<std::size_t>(scale);
    pass.in_width = pass.width;
    pass.in_height = pass.height;
    pass.width = (pass.width + 1) / 2;
    pass.height = (pass.height + 1) / 2;
    pass.inputs = workspace.approximations[at];
    pass.outputs = scale + 1 < kAdmScales ? workspace.approximations[at + 1] : nullptr;
    pass.is_measured = scale > 0 || !skips_scale0;
    describe(scale, settings, pass);
    if (scale > 0) {
      queue_scale<std::int64_t>(pass, stream);
    } else {
      pairs.is_words ? queue_scale<std::uint16_t>(pass, stream)
                     : queue_scale<std::uint8_t>(pass, stream);
    }
    finish.rows[scale] = pass.sums;
    finish.heights[scale] = pass.height;
    finish.shifts[scale] = pass.row_shift;
    finish.reference_shifts[scale] = pass.reference_shifts.row;
    pass.sums += pairs.count * pass.height * kAdmGpuSums;
  }
  const dim3 blocks(kAdmScales, static_cast<unsigned>(pairs.count));
  gpu::launch("vmaf", stream, blocks, kFinishThreads, 0, adm_rows_kernel, finish);
}

}  // namespace similis::vmaf_internal
