// SPDX-License-Identifier: Apache-2.0
// Mode exact: products blurred across ─> averages ─> terms ─> sums of 32×32 pixels; a thread takes
// a column of a channel. Averages and terms never leave registers. A value that one step of the
// recursion reads is read again 10 rows later: it waits in shared memory, where each thread has a
// column of its own, so that every value is loaded once.
#pragma once

#include "src/ssimulacra2/cuda/terms.cuh"

namespace similis::ssimulacra2_internal {

constexpr int kDownThreads = 128;
constexpr int kAtOnce = 4;     // number of rows that are on their way while as many are worked on
constexpr int kRingRows = 16;  // a step spans 11 of them

// The values that a thread loads of kAtOnce rows: products of rows from n + kAhead on, pixels of
// rows from n on; 0 outside.
template <int products> struct RowsAhead {
  float across[kAtOnce][products], x[kAtOnce], y[kAtOnce];
};

// Reads a column from the top.
template <int products> class ColumnReader {
 public:
  __device__ ColumnReader(const Scale& s, const Place& place, std::int64_t column)
      : pitch_(s.pitch), height_(static_cast<int>(s.extent.height)), row_(-kAhead) {
    x_ = s.x_plane(place.image, place.channel) + column - kAhead * s.pitch;
    y_ = x_ + s.from_x_to_y();
#pragma unroll
    for (int p = 0; p < products; ++p) {
      across_[p] = s.across_plane(place.image, place.channel, p) + column;
    }
  }

  __device__ __forceinline__ void next(RowsAhead<products>& rows) {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const std::int64_t at = j * pitch_;
      const bool has_ahead = row_ + j + kAhead < height_;
      const bool is_inside =
          row_ >= 0 && row_ + j < height_;  // kAtOnce rows above the first, or none
#pragma unroll
      for (int p = 0; p < products; ++p) rows.across[j][p] = has_ahead ? across_[p][at] : 0.0f;
      rows.x[j] = is_inside ? x_[at] : 0.0f;
      rows.y[j] = is_inside ? y_[at] : 0.0f;
    }
#pragma unroll
    for (int p = 0; p < products; ++p) across_[p] += kAtOnce * pitch_;
    x_ += kAtOnce * pitch_;
    y_ += kAtOnce * pitch_;
    row_ += kAtOnce;
  }

 private:
  std::int64_t pitch_;
  int height_, row_;
  const float *x_, *y_, *across_[products];
};

template <int products>
__device__ void filter_down(const Scale& s, const Recursion& recursion, const Place& place,
    float (&ring)[kRingRows][kProducts][kDownThreads]) {
  const int t = static_cast<int>(threadIdx.x);
  const int channel = place.channel;
  const std::int64_t column = place.block * kDownThreads + t;
  const auto height = static_cast<int>(s.extent.height);
  const unsigned terms = s.terms[channel];
  ColumnSums sums[1];
  sums[0].clear();
  for (int row = 0; row < kRingRows; ++row) {
    for (int p = 0; p < products; ++p) ring[row][p][t] = 0;
  }
  float y1[products][kSections] = {}, y2[products][kSections] = {};
  ColumnReader<products> reader(s, place, column < s.extent.width ? column : 0);
  RowsAhead<products> rows, next;
  reader.next(rows);
#pragma unroll 1
  for (int first = -kAhead; first < height; first += kAtOnce) {
    reader.next(next);
    const int newer = (first + kAhead) & (kRingRows - 1);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int older = (first + j - kBehind) & (kRingRows - 1);
      float averages[1][products];
#pragma unroll
      for (int p = 0; p < products; ++p) {
        const float sum = ring[older][p][t] + rows.across[j][p];
        ring[newer + j][p][t] = rows.across[j][p];
        float y[kSections];
#pragma unroll
        for (int k = 0; k < kSections; ++k) {
          const Section& section = recursion.sections[k];
          y[k] = step_down(section.n2, section.d1, sum, y1[p][k], y2[p][k]);
        }
        averages[0][p] = sum_of_sections(y[0], y[1], y[2]);
      }
      const float x[] = {rows.x[j]}, y[] = {rows.y[j]};
      if (first >= 0 && first + j < height) add_terms(terms, x, y, averages, sums);
    }
    rows = next;
    const int done = first + kAtOnce;
    if (done > 0 && (done % kStripe == 0 || done >= height)) {
      write_partials(s, place.image, channel, (done - 1) / kStripe, column, sums);
    }
  }
}

// A multiprocessor runs three blocks: a column is a chain of latencies, which other columns fill.
__global__ __launch_bounds__(kDownThreads, 3) void down_kernel(
    SIMILIS_GRID_CONSTANT const Work work, SIMILIS_GRID_CONSTANT const Recursion recursion) {
  __shared__ float ring[kRingRows][kProducts][kDownThreads];
  const Place place(work);
  const Scale& s = work.scales[place.scale];
  if (s.products[place.channel] == kProducts) {
    filter_down<kProducts>(s, recursion, place, ring);
  } else {
    filter_down<kMeans>(s, recursion, place, ring);
  }
}

}  // namespace similis::ssimulacra2_internal
