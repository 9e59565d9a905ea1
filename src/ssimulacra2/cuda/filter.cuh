// SPDX-License-Identifier: Apache-2.0
// Mode fast: X, Y, B ─> averages ─> terms ─> sums of 32×32 pixels in one pass; a warp takes a strip
// of 64 columns and some stripes of one channel. Nothing in between leaves the multiprocessor:
//   a row of x and y ─> two columns a thread, four on each side     shared memory of the warp
//   ten columns ─> products ─> two samples across                   registers
//   those ─> partial averages of eight rows                         registers
//   an average that is complete ─> terms ─> sums                    registers
// Each pixel takes 8 B of reading, 12 % of them twice; in strips of eight stripes 3 % of the rows
// across are filtered twice. Warps never wait for each other. 168 registers: three blocks a
// multiprocessor.
#pragma once

#include "src/ssimulacra2/cuda/terms.cuh"

namespace similis::ssimulacra2_internal {

constexpr int kFilterThreads = 128, kFilterWarps = kFilterThreads / kLanes;
constexpr int kColumnsEach = 2, kStripColumns = kColumnsEach * kLanes;
constexpr int kReach = kTaps - 1;  // number of samples that a filter takes on either side
constexpr int kFilterSpan = 2 * kReach;
constexpr int kKeptRows = 8;     // more than kReach, so that a pixel waits for its averages
constexpr int kMostStripes = 8;  // the height of a strip, at most

// x and y of a thread's columns of a row.
using PixelPair = float4;  // x, y, x, y
using StripRows = PixelPair[kKeptRows][(kStripColumns + kFilterSpan) / kColumnsEach];

// The number of strips that a scale has beside and above each other, if each is so many stripes
// high.
struct Strips {
  std::int64_t beside, above;
};
__host__ __device__ inline Strips strips_of(const Scale& s, int stripes) {
  return {
      (s.extent.width + kStripColumns - 1) / kStripColumns, (s.stripes() + stripes - 1) / stripes};
}

// Loads a thread's part of rows from the top on: its two columns, and for some threads two more
// beside the strip; 0 outside the picture.
template <int ahead> class StripReader {
 public:
  /// `others` is the distance to the columns beside the strip.
  __device__ StripReader(const Scale& s, const float* plane, int row, int column, int others)
      : at_(plane + row * s.pitch + column),
        from_x_to_y_(s.from_x_to_y()),
        pitch_(static_cast<int>(s.pitch)),
        row_(row),
        height_(static_cast<int>(s.extent.height)),
        others_(others),
        count_(inside(s, column)),
        count_of_others_(others == 0 ? 0 : inside(s, column + others)) {}

  /// Loads the next row, in place of the row that was loaded `ahead` rows before.
  __device__ __forceinline__ void load(int place) {
    own_[place] = others_of_row_[place] = {};
    if (row_ >= 0 && row_ < height_) {
      if (count_ > 0) own_[place] = pixels(at_);
      if (count_of_others_ > 0) others_of_row_[place] = pixels(at_ + others_);
    }
    at_ += pitch_;
    ++row_;
  }
  /// Return the loaded pixels.
  __device__ __forceinline__ PixelPair own(int place) const { return pair(own_[place], count_); }
  __device__ __forceinline__ PixelPair others(int place) const {
    return pair(others_of_row_[place], count_of_others_);
  }

 private:
  struct Pixels {
    float2 x, y;
  };
  // Returns how many of two columns are inside the picture.
  __device__ static int inside(const Scale& s, int column) {
    const int left = static_cast<int>(s.extent.width) - column;
    return column < 0 || left <= 0 ? 0 : left == 1 ? 1 : 2;
  }
  __device__ __forceinline__ Pixels pixels(const float* at) const {
    return {
        *reinterpret_cast<const float2*>(at), *reinterpret_cast<const float2*>(at + from_x_to_y_)};
  }
  __device__ __forceinline__ static PixelPair pair(const Pixels& p, int count) {
    return make_float4(p.x.x, p.y.x, count > 1 ? p.x.y : 0, count > 1 ? p.y.y : 0);
  }

  const float* at_;
  std::int64_t from_x_to_y_;
  int pitch_, row_, height_, others_, count_, count_of_others_;
  Pixels own_[ahead], others_of_row_[ahead];
};

// Returns a product of a pixel: the factor of the mean of x, of y, of x², of y², of xy.
template <int product> __device__ __forceinline__ float product_of(float x, float y) {
  if constexpr (product == 0) return x;
  if constexpr (product == 1) return y;
  if constexpr (product == 2) return x * x;
  if constexpr (product == 3) return y * y;
  return x * y;
}

// Takes the sample of one more row and returns the output that it completes, kReach rows above.
// `pending` has the partial sums of that output and of those below.
__device__ __forceinline__ float pushed(
    const Taps& taps, float sample, float (&pending)[kFilterSpan]) {
  const float output = fused(taps.weights[kReach], sample, pending[0]);
#pragma unroll
  for (int i = 1; i < kFilterSpan; ++i) {
    const int away = i < kReach ? kReach - i : i - kReach;
    pending[i - 1] = fused(taps.weights[away], sample, pending[i]);
  }
  pending[kFilterSpan - 1] = taps.weights[kReach] * sample;
  return output;
}

// Turns one product of ten columns into two samples across and two averages, and goes on with the
// next product.
template <int product, int products>
__device__ __forceinline__ void average_row(const PixelPair (&window)[kTaps],
    float (&pending)[products][kColumnsEach][kFilterSpan],
    float (&averages)[kColumnsEach][products]) {
  constexpr Taps taps;
  float v[kFilterSpan + kColumnsEach];
#pragma unroll
  for (int i = 0; i < kTaps; ++i) {
    v[2 * i] = product_of<product>(window[i].x, window[i].y);
    v[2 * i + 1] = product_of<product>(window[i].z, window[i].w);
  }
#pragma unroll
  for (int c = 0; c < kColumnsEach; ++c) {
    const float across = filtered(
        taps, v[c], v[c + 1], v[c + 2], v[c + 3], v[c + 4], v[c + 5], v[c + 6], v[c + 7], v[c + 8]);
    averages[c][product] = pushed(taps, across, pending[product][c]);
  }
  if constexpr (product + 1 < products) {
    average_row<product + 1, products>(window, pending, averages);
  }
}

// A warp on its way down a strip.
template <int products> class Strip {
 public:
  __device__ Strip(
      const Scale& s, const Place& place, int first_row, int first_column, StripRows& rows)
      : rows_(rows),
        reader_(s, s.x_plane(place.image, place.channel), first_row - kReach,
            first_column + kColumnsEach * lane(), others()),
        terms_(s.terms[place.channel]) {
    for (ColumnSums& each : sums_) each.clear();
    for (int i = 0; i < kRowsAhead; ++i) reader_.load(i);
#pragma unroll 1
    for (int row = 0; row < 2 * kReach; row += kRowsAhead) {
#pragma unroll
      for (int i = 0; i < kRowsAhead; ++i) average(row + i, i);
    }
  }

  // Takes the rows of one stripe.
  __device__ __forceinline__ void filter_rows(int count) {
#pragma unroll 1
    for (int first = 0; first < count; first += kRowsAtOnce) {
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        average(first + i, i % kRowsAhead);
        if (first + i >= count) break;
        // These pixels are kReach rows above.
        const PixelPair pixels = rows_[(first + i + kReach) % kKeptRows][kOwn + lane()];
        const float x[] = {pixels.x, pixels.z}, y[] = {pixels.y, pixels.w};
        add_terms(terms_, x, y, averages_, sums_);
      }
    }
  }

  __device__ ColumnSums (&sums())[kColumnsEach] { return sums_; }

 private:
  static constexpr int kOwn = kReach / kColumnsEach;  // the place of a strip's first own columns
  static constexpr int kRowsAtOnce = 4;               // pending sums are moved after so many
  // Number of rows on their way: with two products a row takes less time than memory.
  static constexpr int kRowsAhead = products == kMeans ? 2 : 1;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  // The first four threads also bring the columns beside the strip.
  __device__ static int others() {
    return lane() < kOwn ? -kReach : lane() < 2 * kOwn ? kStripColumns - kReach : 0;
  }

  // Takes the next row.
  __device__ __forceinline__ void average(int row, int place) {
    PixelPair* line = rows_[row % kKeptRows];
    line[kOwn + lane()] = reader_.own(place);
    if (others() != 0) line[kOwn + lane() + others() / kColumnsEach] = reader_.others(place);
    gpu::sync_warp();
    reader_.load(place);
    PixelPair window[kTaps];
#pragma unroll
    for (int i = 0; i < kTaps; ++i) window[i] = line[lane() + i];
    average_row<0, products>(window, pending_, averages_);
  }

  StripRows& rows_;
  StripReader<kRowsAhead> reader_;
  float pending_[products][kColumnsEach][kFilterSpan] = {};
  float averages_[kColumnsEach][products];
  unsigned terms_;
  ColumnSums sums_[kColumnsEach];
};

template <int products>
__device__ void filter_strip(const Scale& s, const Place& place, int first_row, int end_row,
    int first_column, StripRows& rows) {
  Strip<products> strip(s, place, first_row, first_column, rows);
#pragma unroll 1
  for (int row = first_row; row < end_row; row += kStripe) {
    strip.filter_rows(end_row - row < kStripe ? end_row - row : kStripe);
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    write_partials(s, place.image, place.channel, row / kStripe, first_column + kColumnsEach * lane,
        strip.sums());
  }
}

__global__ __launch_bounds__(kFilterThreads, 3) void filter_kernel(
    SIMILIS_GRID_CONSTANT const Work work, int stripes) {
  __shared__ StripRows rows[kFilterWarps];
  const Place place(work);
  const Scale& s = work.scales[place.scale];
  const Strips strips = strips_of(s, stripes);
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const std::int64_t strip = place.block * kFilterWarps + warp;
  const std::int64_t first_row = strip / strips.beside * stripes * kStripe;
  if (first_row >= s.extent.height) return;
  const std::int64_t below = first_row + stripes * kStripe;
  const auto first = static_cast<int>(first_row);
  const auto end = static_cast<int>(below < s.extent.height ? below : s.extent.height);
  const auto column = static_cast<int>(strip % strips.beside) * kStripColumns;
  if (s.products[place.channel] == kProducts) {
    filter_strip<kProducts>(s, place, first, end, column, rows[warp]);
  } else {
    filter_strip<kMeans>(s, place, first, end, column, rows[warp]);
  }
}

}  // namespace similis::ssimulacra2_internal
