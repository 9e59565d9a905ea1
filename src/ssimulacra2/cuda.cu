// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 on the GPU, all pairs of a batch at once, nothing on the host. For each scale:
//   convert   samples or light ─> X, Y, B; light of the next scale     a thread for 2×2 pixels
//   across    X, Y, B ─> blurred products                              a thread for a row of one
//   down      those ─> averages ─> terms ─> sums of 32×32 pixels       a thread for a column
// and at the end one block a pair that adds the sums up and makes the score. Averages and terms
// never leave registers. Bits are those of the CPU: the same text for a step, a term, a score, and
// the same order of sums. Recursions run along whole rows and columns, so a single picture does not
// fill a GPU; batches do. Memory a pixel of the finest scale, exact: 24 B written and 48 read for
// X, Y and B, 36 B written and 72 read (half of it from the second-level cache) for nine products;
// a third more for the others.
#include <algorithm>

#include "src/core/memory.h"
#include "src/gpu/vendor.h"
#include "src/gpu/view.h"
#include "src/ssimulacra2/blur.h"
#include "src/ssimulacra2/ssimulacra2.h"

namespace similis::ssimulacra2_internal {
namespace {

constexpr const char* kOperation = "ssimulacra2";
constexpr int kProducts = 5;  // in this order: mean of x, of y, of x², of y², of xy
constexpr int kSides = 2;
constexpr int kWarp = 32;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;  // of workspace, but for one large pair
constexpr std::int64_t kMostImages = 64;

// One side of a batch.
struct Side {
  const void* data;
  DType dtype;
  int channels;
  bool is_linear;
  std::int64_t strides[4];

  explicit Side(const Pictures& pictures)
      : data(pictures.samples.data),
        dtype(pictures.samples.dtype),
        channels(pictures.channels()),
        is_linear(pictures.transfer == Ssimulacra2Transfer::linear) {
    for (int axis = 0; axis < 4; ++axis) strides[axis] = pictures.samples.strides[axis];
  }
};

// What the kernels of one scale share. An image is a pair over one background.
struct Scale {
  Extent extent, next;
  std::int64_t pitch, next_pitch;  // of rows, in elements
  int backgrounds;
  float background[2];
  unsigned terms[kChannels], products[kChannels];
  int slots;                       // planes of products that an image has
  int slot[kChannels][kProducts];  // which of them; of products that are wanted
  const float* light;              // [image][side][3] planes; null at the first scale
  float* next_light;               // null at the last
  float* xyb;                      // [image][side][3] planes
  float* across;                   // [image][slot] planes
  double* partials;                // [image][stripe][group][channel][term][norm]

  __host__ __device__ std::int64_t plane() const { return extent.height * pitch; }
  __host__ __device__ std::int64_t next_plane() const { return next.height * next_pitch; }
  __host__ __device__ std::int64_t stripes() const {
    return (extent.height + kStripe - 1) / kStripe;
  }
  __host__ __device__ std::int64_t groups() const { return (extent.width + kGroup - 1) / kGroup; }
};

// One of two; member by member, which stays in registers, where a reference would be to a copy in
// memory.
__device__ Side either(bool is_first, const Side& first, const Side& second) {
  Side side = second;
  side.data = is_first ? first.data : second.data;
  side.dtype = is_first ? first.dtype : second.dtype;
  side.channels = is_first ? first.channels : second.channels;
  side.is_linear = is_first ? first.is_linear : second.is_linear;
  for (int axis = 0; axis < 4; ++axis) {
    side.strides[axis] = is_first ? first.strides[axis] : second.strides[axis];
  }
  return side;
}

constexpr int kConvertThreads = 256, kConvertRows = kConvertThreads / kWarp;

struct Rgb {
  float r, g, b;
};

// The light of a pixel of bytes without alpha. `table` has that of the 256 bytes.
__device__ Rgb light_of_bytes(const Side& side, std::int64_t offset, const float* table) {
  const auto* at = static_cast<const std::uint8_t*>(side.data) + offset;
  const std::int64_t step = side.channels == 1 ? 0 : side.strides[1];
  return {table[at[0]], table[at[step]], table[at[2 * step]]};
}

// The light of any pixel.
__device__ Rgb light_of(const Side& side, std::int64_t offset, float background) {
  const int colors = side.channels <= 2 ? 1 : 3;
  float values[3];
  float alpha = 1;
  const float scale = side.dtype == DType::u8    ? 1 / 255.0f
                      : side.dtype == DType::u16 ? 1 / 65535.0f
                                                 : 1.0f;
  const bool has_alpha = side.channels % 2 == 0;
  if (has_alpha) {
    alpha = gpu::load_element_f32(side.data, side.dtype, offset + colors * side.strides[1]) * scale;
  }
  for (int c = 0; c < 3; ++c) {
    if (c >= colors) {
      values[c] = values[0];
      continue;
    }
    const std::int64_t at = offset + c * side.strides[1];
    float value = gpu::load_element_f32(side.data, side.dtype, at) * scale;
    if (has_alpha) value = blended(value, alpha, background);
    values[c] = side.is_linear ? value : linear_of_srgb(value);
  }
  return {values[0], values[1], values[2]};
}

// Where the pixels of a scale come from.
enum From : int { kBytes, kSamples, kLight };

// A thread takes 2×2 pixels of one side; at an odd edge those outside are those inside.
template <int from>
__global__ __launch_bounds__(kConvertThreads) void convert_kernel(Scale s, Side x, Side y) {
  __shared__ float table[256];
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t image = blockIdx.z / kSides;
  const Side side = either(blockIdx.z % kSides != 0, y, x);
  if constexpr (from == kBytes) {
    table[t] = linear_of_srgb(static_cast<float>(t) * (1 / 255.0f));
    __syncthreads();
  }
  const std::int64_t column = (blockIdx.x * std::int64_t{kWarp} + t % kWarp) * 2;
  const std::int64_t row = (blockIdx.y * std::int64_t{kConvertRows} + t / kWarp) * 2;
  if (column >= s.extent.width || row >= s.extent.height) return;
  const std::int64_t three = blockIdx.z * std::int64_t{3};
  float* xyb = s.xyb + three * s.plane();
  Rgb light[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const std::int64_t at_y = row + i < s.extent.height ? row + i : row;
      const std::int64_t at_x = column + j < s.extent.width ? column + j : column;
      const std::int64_t offset =
          image / s.backgrounds * side.strides[0] + at_y * side.strides[2] + at_x * side.strides[3];
      if constexpr (from == kBytes) {
        light[i][j] = light_of_bytes(side, offset, table);
      } else if constexpr (from == kSamples) {
        light[i][j] = light_of(side, offset, s.background[image % s.backgrounds]);
      } else {
        const float* at = s.light + three * s.plane() + at_y * s.pitch + at_x;
        light[i][j] = {at[0], at[s.plane()], at[2 * s.plane()]};
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (row + i >= s.extent.height) break;
    const Xyb a = positive_xyb(light[i][0].r, light[i][0].g, light[i][0].b);
    const Xyb b = positive_xyb(light[i][1].r, light[i][1].g, light[i][1].b);
    float* to = xyb + (row + i) * s.pitch + column;  // rows end in space for a second column
    *reinterpret_cast<float2*>(to) = make_float2(a.x, b.x);
    *reinterpret_cast<float2*>(to + s.plane()) = make_float2(a.y, b.y);
    *reinterpret_cast<float2*>(to + 2 * s.plane()) = make_float2(a.b, b.b);
  }
  if (s.next_light == nullptr) return;
  float* next = s.next_light + three * s.next_plane() + row / 2 * s.next_pitch + column / 2;
  next[0] = quarter(light[0][0].r, light[0][1].r, light[1][0].r, light[1][1].r);
  next[s.next_plane()] = quarter(light[0][0].g, light[0][1].g, light[1][0].g, light[1][1].g);
  next[2 * s.next_plane()] = quarter(light[0][0].b, light[0][1].b, light[1][0].b, light[1][1].b);
}

__device__ float product_of(int product, float x, float y) {
  const float a = product == 1 || product == 3 ? y : x;
  const float b = product == 2 ? x : y;
  return product < 2 ? a : a * b;
}

// A warp filters 32 rows of one product; the warps of a block share the rows of x and y, which come
// 32 columns at a time through shared memory, a thread reading along its row and all of them
// writing rows.
constexpr int kAcrossThreads = kProducts * kWarp;
constexpr int kSpan = kBehind + kAhead;  // the columns between the two that a step reads
constexpr int kRowsEach = (kWarp + kProducts - 1) / kProducts;

struct AcrossShared {
  float in[kSides][kWarp][kSpan + kWarp + 1];  // odd, so that 32 rows are 32 banks
  float out[kProducts][kWarp][kWarp + 1];
};

// A warp's part of the next 32 columns, on their way.
struct Fetched {
  float values[kSides][kRowsEach];
};

__device__ void fetch(const Scale& s, const float* const (&planes)[kSides], std::int64_t first_row,
    std::int64_t first_column, Fetched& fetched) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t column = first_column + lane;
#pragma unroll
  for (int side = 0; side < kSides; ++side) {
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      const int r = warp + i * kProducts;
      const std::int64_t row = first_row + r;
      const bool is_inside = r < kWarp && row < s.extent.height && column < s.extent.width;
      fetched.values[side][i] = is_inside ? planes[side][row * s.pitch + column] : 0.0f;
    }
  }
}

// The next 32 columns behind the last of those before.
__device__ void put(const Fetched& fetched, const Fetched& before, AcrossShared& shared) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, kept = lane - (kWarp - kSpan);
#pragma unroll
  for (int side = 0; side < kSides; ++side) {
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      const int r = warp + i * kProducts;
      if (r >= kWarp) continue;
      shared.in[side][r][kSpan + lane] = fetched.values[side][i];
      if (kept >= 0) shared.in[side][r][kept] = before.values[side][i];
    }
  }
}

template <int product>
__device__ void filter_chunk(const Recursion& recursion, const Blocks& blocks, std::int64_t first,
    int row, AcrossShared& shared, float (&y1)[kSections], float (&y2)[kSections]) {
  const float *of_x = shared.in[0][row], *of_y = shared.in[1][row];
  const auto sum = [&](int i) {
    return product_of(product, of_x[i], of_y[i]) +
           product_of(product, of_x[i + kSpan], of_y[i + kSpan]);
  };
  float* out = shared.out[product][row];
  for (int i = 0; i < kWarp; i += 4) {
    const std::int64_t n = first + i;
    const float sums[4] = {sum(i), sum(i + 1), sum(i + 2), sum(i + 3)};
    float y[kSections][4];
    const bool is_block = n >= blocks.begin && n < blocks.end;
    for (int k = 0; k < kSections; ++k) {
      const Section& section = recursion.sections[k];
      if (is_block) {
        for (int j = 0; j < 4; ++j) y[k][j] = sums[j];
        block_across(section, y[k][0], y[k][1], y[k][2], y[k][3], y1[k], y2[k]);
      } else {
        for (int j = 0; j < 4; ++j) y[k][j] = step_across(section, sums[j], y1[k], y2[k]);
      }
    }
    for (int j = 0; j < 4; ++j) out[i + j] = sum_of_sections(y[0][j], y[1][j], y[2][j]);
  }
}

// 32×32 results of a warp, four neighbours a thread. Rows end in space up to a multiple of 32.
__device__ void store_rows(const Scale& s, const float (&out)[kWarp][kWarp + 1],
    std::int64_t first_row, std::int64_t first_column, float* to) {
  constexpr int each = 4, threads_a_row = kWarp / each, rows_at_once = kWarp / threads_a_row;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, column = lane % threads_a_row * each;
  const std::int64_t at = first_column + column;
  if (at < 0 || at >= s.pitch) return;
#pragma unroll
  for (int i = 0; i < kWarp; i += rows_at_once) {
    const int r = i + lane / threads_a_row;
    if (first_row + r >= s.extent.height) break;
    *reinterpret_cast<float4*>(to + (first_row + r) * s.pitch + at) =
        make_float4(out[r][column], out[r][column + 1], out[r][column + 2], out[r][column + 3]);
  }
}

__global__ __launch_bounds__(kAcrossThreads) void across_kernel(Scale s, Recursion recursion) {
  __shared__ AcrossShared shared;
  const int channel = static_cast<int>(blockIdx.y);
  const unsigned products = s.products[channel];
  if (products == 0) return;
  const int t = static_cast<int>(threadIdx.x), product = t / kWarp, lane = t % kWarp;
  const std::int64_t image = blockIdx.z, first_row = blockIdx.x * std::int64_t{kWarp};
  const float* xyb = s.xyb + (image * kSides * 3 + channel) * s.plane();
  const float* const planes[kSides] = {xyb, xyb + 3 * s.plane()};
  const bool is_wanted = (products >> product & 1u) != 0;
  float* to = s.across + (image * s.slots + (is_wanted ? s.slot[channel][product] : 0)) * s.plane();
  const Blocks blocks = blocks_of(s.extent.width);
  float y1[kSections] = {}, y2[kSections] = {};
  Fetched before{}, fetched;  // what is left of the rows is 0
  fetch(s, planes, first_row, 0, fetched);
  for (std::int64_t column = 0; column - kAhead < s.extent.width; column += kWarp) {
    put(fetched, before, shared);
    __syncthreads();
    before = fetched;
    fetch(s, planes, first_row, column + kWarp, fetched);
    const std::int64_t first = column - kAhead;
    switch (is_wanted ? product : kProducts) {
      case 0: filter_chunk<0>(recursion, blocks, first, lane, shared, y1, y2); break;
      case 1: filter_chunk<1>(recursion, blocks, first, lane, shared, y1, y2); break;
      case 2: filter_chunk<2>(recursion, blocks, first, lane, shared, y1, y2); break;
      case 3: filter_chunk<3>(recursion, blocks, first, lane, shared, y1, y2); break;
      case 4: filter_chunk<4>(recursion, blocks, first, lane, shared, y1, y2); break;
      default: break;
    }
    __syncthreads();
    if (is_wanted) store_rows(s, shared.out[product], first_row, first, to);
  }
}

// Mode fast: a thread makes all products of a pixel from its row.
constexpr int kFilterThreads = 128;

__global__ __launch_bounds__(kFilterThreads) void filter_across_kernel(Scale s, Taps taps) {
  const int channel = static_cast<int>(blockIdx.z % kChannels);
  const std::int64_t image = blockIdx.z / kChannels;
  const std::int64_t column = blockIdx.x * std::int64_t{kFilterThreads} + threadIdx.x;
  const std::int64_t row = blockIdx.y;
  const unsigned products = s.products[channel];
  if (products == 0 || column >= s.extent.width) return;
  const float* x = s.xyb + (image * kSides * 3 + channel) * s.plane() + row * s.pitch;
  const float* y = x + 3 * s.plane();
  float of_x[2 * kTaps - 1], of_y[2 * kTaps - 1];
  for (int i = 0; i < 2 * kTaps - 1; ++i) {
    const std::int64_t at = column + i - (kTaps - 1);
    const bool is_inside = at >= 0 && at < s.extent.width;
    of_x[i] = is_inside ? x[at] : 0.0f;
    of_y[i] = is_inside ? y[at] : 0.0f;
  }
  for (int product = 0; product < kProducts; ++product) {
    if (!(products >> product & 1u)) continue;
    const auto value = [&](int i) { return product_of(product, of_x[i], of_y[i]); };
    s.across[(image * s.slots + s.slot[channel][product]) * s.plane() + row * s.pitch + column] =
        filtered(taps, value(4), value(3) + value(5), value(2) + value(6), value(1) + value(7),
            value(0) + value(8));
  }
}

// A column of one channel: its planes, and the sums of its terms in a stripe. A channel of which
// only edges count has the first two products, any other all five.
template <int products> struct Column {
  const float *x, *y, *across[products];
  unsigned terms;
  bool is_inside;
  double sums[kTerms][kNorms];

  __device__ Column(const Scale& s, std::int64_t image, int channel, std::int64_t column)
      : terms(s.terms[channel]), is_inside(column < s.extent.width) {
    const std::int64_t at = is_inside ? column : 0;
    x = s.xyb + (image * kSides * 3 + channel) * s.plane() + at;
    y = x + 3 * s.plane();
    for (int p = 0; p < products; ++p) {
      across[p] = s.across + (image * s.slots + s.slot[channel][p]) * s.plane() + at;
    }
    clear();
  }
  __device__ void clear() {
    for (int i = 0; i < kTerms * kNorms; ++i) sums[i / kNorms][i % kNorms] = 0;
  }
  __device__ void add(int term, double value) {
    sums[term][kFirst] += value;
    sums[term][kFourth] += fourth_power(value);
  }
  __device__ void add_pixel(float of_x, float of_y, const float (&averages)[products]) {
    if constexpr (products == kProducts) {
      if (terms >> kDissimilarity & 1u) {
        add(kDissimilarity,
            dissimilarity(averages[0], averages[1], averages[2], averages[3], averages[4]));
      }
    }
    if (terms >> kRinging) {
      const double change = edge_change(of_x, averages[0], of_y, averages[1]);
      if (terms >> kRinging & 1u) add(kRinging, ringing(change));
      if (terms >> kBlurring & 1u) add(kBlurring, blurring(change));
    }
  }
  // Of 32 columns by halves, as score.h says.
  __device__ void write(
      const Scale& s, std::int64_t image, std::int64_t stripe, std::int64_t group, int channel) {
    for (int i = 0; i < kTerms * kNorms; ++i) {
      double sum = is_inside ? sums[i / kNorms][i % kNorms] : 0;
      sum = gpu::sum_of_32(sum);
      if (threadIdx.x % kGroup != 0 || group >= s.groups()) continue;
      const std::int64_t at = ((image * s.stripes() + stripe) * s.groups() + group) * kChannels;
      s.partials[(at + channel) * kTerms * kNorms + i] = sum;
    }
    clear();
  }
};

constexpr int kDownThreads = 128;
constexpr int kAtOnce = 4;     // rows that are on their way while as many are worked on
constexpr int kRingRows = 16;  // of the 11 that a step spans

// What a thread reads of kAtOnce rows.
template <int products> struct RowsAhead {
  float across[kAtOnce][products], x[kAtOnce], y[kAtOnce];

  // Products of rows from n + kAhead on, pixels of rows from n on; 0 outside.
  __device__ RowsAhead(const Scale& s, const Column<products>& column, std::int64_t n) {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const std::int64_t row = n + j, ahead = row + kAhead;
      const bool has_ahead = ahead < s.extent.height;
      const bool is_inside = row >= 0 && row < s.extent.height;
#pragma unroll
      for (int p = 0; p < products; ++p) {
        across[j][p] = has_ahead ? column.across[p][ahead * s.pitch] : 0.0f;
      }
      x[j] = is_inside ? column.x[row * s.pitch] : 0.0f;
      y[j] = is_inside ? column.y[row * s.pitch] : 0.0f;
    }
  }
};

// The recursion down a column. What a step reads is 10 rows later what another reads: it waits in
// shared memory, where each thread has a column of its own, so that every value is read once.
template <int products>
__device__ void march_down(const Scale& s, const Recursion& recursion, int channel,
    float (&ring)[kRingRows][kProducts][kDownThreads]) {
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t image = blockIdx.z;
  const std::int64_t index = blockIdx.x * std::int64_t{kDownThreads} + t;
  Column<products> column(s, image, channel, index);
  for (int row = 0; row < kRingRows; ++row) {
    for (int p = 0; p < products; ++p) ring[row][p][t] = 0;
  }
  float y1[products][kSections] = {}, y2[products][kSections] = {};
  RowsAhead<products> rows(s, column, -kAhead);
  for (std::int64_t first = -kAhead; first < s.extent.height; first += kAtOnce) {
    const RowsAhead<products> next(s, column, first + kAtOnce);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int newer = static_cast<int>(first + j + kAhead) & (kRingRows - 1);
      const int older = static_cast<int>(first + j - kBehind) & (kRingRows - 1);
      float averages[products];
#pragma unroll
      for (int p = 0; p < products; ++p) {
        const float sum = ring[older][p][t] + rows.across[j][p];
        ring[newer][p][t] = rows.across[j][p];
        float y[kSections];
#pragma unroll
        for (int k = 0; k < kSections; ++k) {
          const Section& section = recursion.sections[k];
          y[k] = step_down(section.n2, section.d1, sum, y1[p][k], y2[p][k]);
        }
        averages[p] = sum_of_sections(y[0], y[1], y[2]);
      }
      if (first >= 0 && first + j < s.extent.height)
        column.add_pixel(rows.x[j], rows.y[j], averages);
    }
    rows = next;
    const std::int64_t done = first + kAtOnce;
    if (done > 0 && (done % kStripe == 0 || done >= s.extent.height)) {
      column.write(s, image, (done - 1) / kStripe, index / kGroup, channel);
    }
  }
}

// Three blocks a multiprocessor: a column's march is a chain of latencies, which others fill.
__global__ __launch_bounds__(kDownThreads, 3) void down_kernel(Scale s, Recursion recursion) {
  __shared__ float ring[kRingRows][kProducts][kDownThreads];
  const int channel = static_cast<int>(blockIdx.y);
  if (s.terms[channel] == 0) return;
  if (s.terms[channel] >> kDissimilarity & 1u) {
    march_down<kProducts>(s, recursion, channel, ring);
  } else {
    march_down<2>(s, recursion, channel, ring);
  }
}

// Mode fast: a thread takes a column of one stripe.
template <int products>
__device__ void march_stripe(const Scale& s, const Taps& taps, int channel) {
  const std::int64_t image = blockIdx.z / kChannels, stripe = blockIdx.y;
  const std::int64_t index = blockIdx.x * std::int64_t{kDownThreads} + threadIdx.x;
  const std::int64_t first = stripe * kStripe;
  Column<products> column(s, image, channel, index);
  constexpr int span = 2 * kTaps - 1;
  float window[products][span] = {};
#pragma unroll
  for (int p = 0; p < products; ++p) {
#pragma unroll
    for (int i = 1; i < span; ++i) {
      const std::int64_t row = first - kTaps + i;
      const bool is_inside = row >= 0 && row < s.extent.height;
      window[p][i] = is_inside ? column.across[p][row * s.pitch] : 0.0f;
    }
  }
  RowsAhead<products> rows(s, column, first);
  for (std::int64_t n = first; n < first + kStripe && n < s.extent.height; n += kAtOnce) {
    const RowsAhead<products> next(s, column, n + kAtOnce);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      float averages[products];
#pragma unroll
      for (int p = 0; p < products; ++p) {
        float(&w)[span] = window[p];
#pragma unroll
        for (int i = 0; i + 1 < span; ++i) w[i] = w[i + 1];
        w[span - 1] = rows.across[j][p];
        averages[p] = filtered(taps, w[4], w[3] + w[5], w[2] + w[6], w[1] + w[7], w[0] + w[8]);
      }
      if (n + j < s.extent.height) column.add_pixel(rows.x[j], rows.y[j], averages);
    }
    rows = next;
  }
  column.write(s, image, stripe, index / kGroup, channel);
}

__global__ __launch_bounds__(kDownThreads) void filter_down_kernel(Scale s, Taps taps) {
  const int channel = static_cast<int>(blockIdx.z % kChannels);
  if (s.terms[channel] == 0) return;
  if (s.terms[channel] >> kDissimilarity & 1u) {
    march_stripe<kProducts>(s, taps, channel);
  } else {
    march_stripe<2>(s, taps, channel);
  }
}

// What the last kernel reads: the sums of every scale.
struct Finish {
  Scales scales;
  Weights weights;
  int backgrounds;
  double* partials[kMaxScales];  // as in Scale
  double* groups[kMaxScales];    // [image][group][channel][term][norm]
  double* scores;

  __host__ __device__ std::int64_t groups_of(int scale) const {
    return (scales.extents[scale].width + kGroup - 1) / kGroup;
  }
  __host__ __device__ std::int64_t stripes_of(int scale) const {
    return (scales.extents[scale].height + kStripe - 1) / kStripe;
  }
};

constexpr int kFinishThreads = 256, kEach = kChannels * kTerms * kNorms;

// One pair over one background, by all threads of a block.
__device__ double finish(const Finish& f, std::int64_t image, double* norms) {
  for (int scale = 0; scale < f.scales.count; ++scale) {
    const std::int64_t count = f.groups_of(scale) * kEach;
    const double* partials = f.partials[scale] + image * f.stripes_of(scale) * count;
    for (std::int64_t i = threadIdx.x; i < count; i += kFinishThreads) {
      double sum = 0;
      for (std::int64_t stripe = 0; stripe < f.stripes_of(scale); ++stripe) {
        sum += partials[stripe * count + i];
      }
      f.groups[scale][image * count + i] = sum;
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < f.scales.count * kEach; i += kFinishThreads) {
    const int scale = i / kEach, of = i % kEach;
    const double* groups = f.groups[scale] + image * f.groups_of(scale) * kEach + of;
    double sum = 0;
    for (std::int64_t group = 0; group < f.groups_of(scale); ++group) sum += groups[group * kEach];
    const SumAt at{.scale = scale,
        .channel = of / (kTerms * kNorms),
        .term = of / kNorms % kTerms,
        .norm = static_cast<Norm>(of % kNorms)};
    norms[weight_index(f.scales.count, at)] = weighted_norm(f.scales, f.weights, at, sum);
  }
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < f.scales.count * kEach; ++i) sum += norms[i];
  __syncthreads();
  return score_of_sum(sum);
}

__global__ __launch_bounds__(kFinishThreads) void finish_kernel(Finish f) {
  __shared__ double norms[kWeights];
  const std::int64_t pair = blockIdx.x;
  double lowest = 0;
  for (int i = 0; i < f.backgrounds; ++i) {
    const double score = finish(f, pair * f.backgrounds + i, norms);
    if (i == 0 || score < lowest) lowest = score;
  }
  if (threadIdx.x == 0) f.scores[pair] = lowest;
}

// Sums that no weight is for are never written.
__global__ void clear_kernel(double* partials, std::int64_t count) {
  const std::int64_t i = blockIdx.x * std::int64_t{kFinishThreads} + threadIdx.x;
  if (i < count) partials[i] = 0;
}

// The parts of one allocation, each aligned.
class Cut {
 public:
  explicit Cut(char* memory) : memory_(memory) {}
  template <class T> T* take(std::int64_t count) {
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  std::size_t bytes_ = 0;
};

std::int64_t pitch_of(std::int64_t width) { return (width + kWarp - 1) / kWarp * kWarp; }

unsigned products_for(unsigned terms) {
  if (terms == 0) return 0;
  return (terms >> kDissimilarity & 1u) != 0 ? 0x1fu : 0x3u;
}

// A batch: its scales, and the kernels for them.
class Batch {
 public:
  Batch(const Pictures& x, const Pictures& y, Ssimulacra2Mode mode)
      : x_(x), y_(y), mode_(mode), backgrounds_(backgrounds_of(x.has_alpha())) {
    finish_.scales = scales_of(x.height(), x.width());
    finish_.weights = kScoreWeights;
    finish_.backgrounds = backgrounds_.count;
    for (int i = 0; i < finish_.scales.count; ++i) scales_[i] = scale_of(i);
  }

  std::size_t bytes_for(std::int64_t pairs) {
    Cut cut(nullptr);
    lay_out(pairs, cut);
    return cut.bytes();
  }

  // Scales share the planes that only live as long as they are worked on.
  void lay_out(std::int64_t pairs, Cut& cut) {
    const std::int64_t images = pairs * backgrounds_.count;
    std::int64_t across = 0;
    for (int i = 0; i < finish_.scales.count; ++i) {
      across = std::max(across, images * scales_[i].slots * scales_[i].plane());
    }
    float* xyb = cut.take<float>(images * kSides * 3 * scales_[0].plane());
    float* products = cut.take<float>(across);
    partial_count_ = 0;
    for (int i = 0; i < finish_.scales.count; ++i) {
      partial_count_ += images * scales_[i].stripes() * scales_[i].groups() * kEach;
    }
    partials_ = cut.take<double>(partial_count_);
    double* partials = partials_;
    for (int i = 0; i < finish_.scales.count; ++i) {
      Scale& s = scales_[i];
      s.xyb = xyb;
      s.across = products;
      s.partials = partials;
      if (partials) partials += images * s.stripes() * s.groups() * kEach;
      s.light = i == 0 ? nullptr : scales_[i - 1].next_light;
      const bool is_last = i + 1 == finish_.scales.count;
      s.next_light = is_last ? nullptr : cut.take<float>(images * kSides * 3 * s.next_plane());
      finish_.partials[i] = s.partials;
      finish_.groups[i] = cut.take<double>(images * s.groups() * kEach);
    }
  }

  void queue(std::int64_t first, std::int64_t pairs, double* scores, void* stream) {
    const std::int64_t clear = (partial_count_ + kFinishThreads - 1) / kFinishThreads;
    gpu::launch(kOperation, stream, dim3(static_cast<unsigned>(clear)), kFinishThreads, 0,
        clear_kernel, partials_, partial_count_);
    const auto images = static_cast<unsigned>(pairs * backgrounds_.count);
    for (int i = 0; i < finish_.scales.count; ++i) queue_scale(scales_[i], first, images, stream);
    finish_.scores = scores + first;
    gpu::launch(kOperation, stream, dim3(static_cast<unsigned>(pairs)), kFinishThreads, 0,
        finish_kernel, finish_);
  }

 private:
  Scale scale_of(int index) const {
    const Scales& scales = finish_.scales;
    Scale s{};
    s.extent = scales.extents[index];
    s.next = {(s.extent.height + 1) / 2, (s.extent.width + 1) / 2};
    s.pitch = pitch_of(s.extent.width);
    s.next_pitch = pitch_of(s.next.width);
    s.backgrounds = backgrounds_.count;
    for (int i = 0; i < 2; ++i) s.background[i] = backgrounds_.values[static_cast<std::size_t>(i)];
    for (int channel = 0; channel < kChannels; ++channel) {
      s.terms[channel] = weighted_terms(scales.count, index, channel);
      s.products[channel] = products_for(s.terms[channel]);
      for (int p = 0; p < kProducts; ++p) {
        if ((s.products[channel] >> p & 1u) != 0) s.slot[channel][p] = s.slots++;
      }
    }
    return s;
  }

  void queue_scale(const Scale& s, std::int64_t first, unsigned images, void* stream) const {
    const auto blocks = [](std::int64_t extent, std::int64_t each) {
      return static_cast<unsigned>((extent + each - 1) / each);
    };
    const bool is_first = s.light == nullptr;
    const auto convert = !is_first                      ? convert_kernel<kLight>
                         : is_plain(x_) && is_plain(y_) ? convert_kernel<kBytes>
                                                        : convert_kernel<kSamples>;
    gpu::launch(kOperation, stream,
        dim3(blocks(s.extent.width, 2 * kWarp), blocks(s.extent.height, 2 * kConvertRows),
            images * kSides),
        kConvertThreads, 0, convert, s, side_from(x_, first), side_from(y_, first));
    const unsigned columns = blocks(s.extent.width, kDownThreads);
    if (mode_ == Ssimulacra2Mode::exact) {
      gpu::launch(kOperation, stream, dim3(blocks(s.extent.height, kWarp), kChannels, images),
          kAcrossThreads, 0, across_kernel, s, recursion_);
      gpu::launch(kOperation, stream, dim3(columns, kChannels, images), kDownThreads, 0,
          down_kernel, s, recursion_);
      return;
    }
    gpu::launch(kOperation, stream,
        dim3(blocks(s.extent.width, kFilterThreads), static_cast<unsigned>(s.extent.height),
            images * kChannels),
        kFilterThreads, 0, filter_across_kernel, s, Taps{});
    gpu::launch(kOperation, stream,
        dim3(columns, static_cast<unsigned>(s.stripes()), images * kChannels), kDownThreads, 0,
        filter_down_kernel, s, Taps{});
  }

  // Bytes that a table turns into light.
  static bool is_plain(const Pictures& side) {
    return side.samples.dtype == DType::u8 && !side.has_alpha() &&
           side.transfer == Ssimulacra2Transfer::srgb;
  }

  static Side side_from(const Pictures& pictures, std::int64_t first) {
    return Side(pictures.picture(first));
  }

  const Pictures &x_, &y_;
  Ssimulacra2Mode mode_;
  Backgrounds backgrounds_;
  Recursion recursion_ = make_recursion();
  Scale scales_[kMaxScales];
  Finish finish_{};
  double* partials_ = nullptr;
  std::int64_t partial_count_ = 0;
};

}  // namespace

void ssimulacra2_cuda(const Pictures& x, const Pictures& y, Ssimulacra2Mode mode, double* scores,
    const Execution& exec) {
  const gpu::Current current(x.samples.device);
  Batch batch(x, y, mode);
  const auto of_one = static_cast<std::int64_t>(batch.bytes_for(1));
  const std::int64_t at_once =
      std::min(x.count(), std::clamp<std::int64_t>(kMostBytes / of_one, 1, kMostImages));
  const auto memory = allocate_bytes(batch.bytes_for(at_once), x.samples.device, exec);
  for (std::int64_t first = 0; first < x.count(); first += at_once) {
    const std::int64_t pairs = std::min(at_once, x.count() - first);
    Cut cut(static_cast<char*>(memory.get()));
    batch.lay_out(pairs, cut);
    batch.queue(first, pairs, scores, exec.stream);
  }
}

}  // namespace similis::ssimulacra2_internal
