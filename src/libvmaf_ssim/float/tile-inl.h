// SPDX-License-Identifier: Apache-2.0
// The two passes of float_ssim over a tile: the sums of a tile's similarities, and a tile of the
// planes halved for the next scale. Included once per SIMD target, hence the guard that flips.
//
// Every product is rounded to f32 and added up in f64 in a fixed order, so all targets agree.
#if defined(SIMILIS_LIBVMAF_SSIM_FLOAT_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_LIBVMAF_SSIM_FLOAT_TILE_INL_H
#undef SIMILIS_LIBVMAF_SSIM_FLOAT_TILE_INL_H
#else
#define SIMILIS_LIBVMAF_SSIM_FLOAT_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>

#include "hwy/highway.h"
#include "src/libvmaf_ssim/float/formula.h"
#include "src/libvmaf_ssim/float/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The products that a window averages.
enum Product : std::size_t { kX, kY, kXX, kYY, kXY, kProducts };

// Columns that the windows of a tile see; rows end in space for whole vectors.
constexpr std::int64_t kSsimSeen = kTileWidth + 2 * kGaussRadius;
constexpr std::size_t kFloatRow = kTileWidth + 16;
struct alignas(64) FloatRow : std::array<float, kFloatRow> {};

// sum + (float)(a·tap), the sum in f64.
template <class DD>
HWY_INLINE hn::Vec<DD> add_rounded(
    DD dd, hn::Vec<DD> sum, hn::Vec<hn::Rebind<float, DD>> a, float tap) {
  return hn::Add(sum, hn::PromoteTo(dd, hn::Mul(a, hn::Set(hn::Rebind<float, DD>(), tap))));
}

// out[i] = the Gaussian average over rows[k][i + k·step].
inline void average(const std::array<const float*, kGaussWindow>& rows, float* HWY_RESTRICT out) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  for (std::size_t i = 0; i < kTileWidth; i += hn::Lanes(dd)) {
    hn::Vec<decltype(dd)> sum = hn::Zero(dd);
    for (std::size_t k = 0; k < kGaussWindow; ++k) {
      sum = add_rounded(dd, sum, hn::LoadU(df, rows[k] + i), kGauss[k]);
    }
    hn::Store(hn::DemoteTo(df, sum), df, out + i);
  }
}

// The sums over a row of similarities, in eight fixed lanes.
class SimilaritySum {
 public:
  // Columns past `count` are in no sum.
  void add(const std::array<FloatRow, kProducts>& means, std::int64_t count) {
    for (std::size_t i = 0; i < kTileWidth; ++i) {
      const Similarity s =
          similarity({means[kX][i], means[kY][i], means[kXX][i], means[kYY][i], means[kXY][i]});
      ssim_[i] = s.luminance * s.contrast * s.structure;
      luminance_[i] = s.luminance;
      contrast_[i] = s.contrast;
      structure_[i] = s.structure;
    }
    add_lanes(ssim_, count, sums_.ssim);
    add_lanes(luminance_, count, sums_.luminance);
    add_lanes(contrast_, count, sums_.contrast);
    add_lanes(structure_, count, sums_.structure);
  }

  const SsimSums& sums() const { return sums_; }

 private:
  using Values = std::array<double, kTileWidth>;

  static void add_lanes(Values& values, std::int64_t count, double& sum) {
    std::fill(values.begin() + count, values.end(), 0.0);
    std::array<double, 8> lanes{};
    for (std::size_t i = 0; i < kTileWidth; i += lanes.size()) {
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) lanes[lane] += values[i + lane];
    }
    for (const double lane : lanes) sum += lane;
  }

  SsimSums sums_;
  alignas(64) Values ssim_, luminance_, contrast_, structure_;
};

// The similarities of a tile of windows: rows are averaged across as they come, and down from a
// ring of as many as a window spans.
class SsimTile {
 public:
  SsimSums run(const FloatPlane& x, const FloatPlane& y, const FloatTile& tile) {
    for (std::int64_t row = 0; row < tile.rows + 2 * kGaussRadius; ++row) {
      push(x, y, tile, row);
      if (row < 2 * kGaussRadius) continue;
      for (std::size_t product = 0; product < kProducts; ++product) {
        std::array<const float*, kGaussWindow> rows;
        for (std::int64_t k = 0; k < kGaussWindow; ++k) {
          rows[static_cast<std::size_t>(k)] = across(row - 2 * kGaussRadius + k)[product].data();
        }
        average(rows, means_[product].data());
      }
      sum_.add(means_, tile.columns);
    }
    return sum_.sums();
  }

 private:
  std::array<FloatRow, kProducts>& across(std::int64_t row) {
    return ring_[static_cast<std::size_t>(row % kGaussWindow)];
  }

  void push(const FloatPlane& x, const FloatPlane& y, const FloatTile& tile, std::int64_t row) {
    const std::int64_t seen = tile.columns + 2 * kGaussRadius;
    x.load(tile.row + row, tile.column, seen, products_[kX].data());
    y.load(tile.row + row, tile.column, seen, products_[kY].data());
    for (std::size_t i = 0; i < kSsimSeen; ++i) {
      const float a = products_[kX][i], b = products_[kY][i];
      products_[kXX][i] = a * a;
      products_[kYY][i] = b * b;
      products_[kXY][i] = a * b;
    }
    for (std::size_t product = 0; product < kProducts; ++product) {
      std::array<const float*, kGaussWindow> shifted;
      for (std::size_t k = 0; k < kGaussWindow; ++k) shifted[k] = products_[product].data() + k;
      average(shifted, across(row)[product].data());
    }
  }

  std::array<FloatRow, kProducts> products_{}, means_{};
  std::array<std::array<FloatRow, kProducts>, kGaussWindow> ring_{};
  SimilaritySum sum_;
};

// A tile of a plane halved by the low-pass. Even and odd columns are separated first, so that
// neighbours in the result read neighbours.
class HalvingTile {
 public:
  void run(const FloatPlane& plane, const FloatTile& tile, float* out, std::int64_t row_stride) {
    const std::int64_t rows = 2 * tile.rows + kLowPassWindow - 2;
    for (std::int64_t i = 0; i < rows; ++i) {
      load(plane, mirrored(2 * tile.row + i - kLowPassRadius, plane.height), tile,
          static_cast<std::size_t>(i));
    }
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      filter(static_cast<std::size_t>(2 * row), tile.columns, out + row * row_stride);
    }
  }

 private:
  void load(const FloatPlane& plane, std::int64_t row, const FloatTile& tile, std::size_t to) {
    plane.load(
        row, 2 * tile.column - kLowPassRadius, 2 * tile.columns + kLowPassWindow - 2, row_.data());
    for (std::size_t i = 0; i < kFloatRow; ++i) {
      even_[to][i] = row_[2 * i];
      odd_[to][i] = row_[2 * i + 1];
    }
  }

  // A row of results from the rows from `first` on. Four vectors at a time hide how long an
  // addition takes.
  void filter(std::size_t first, std::int64_t count, float* out) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> df;
    const std::size_t lanes = hn::Lanes(dd);
    for (std::size_t i = 0; i < kTileWidth; i += 4 * lanes) {
      hn::Vec<decltype(dd)> sum0 = hn::Zero(dd), sum1 = sum0, sum2 = sum0, sum3 = sum0;
      for (std::size_t row = 0; row < kLowPassWindow; ++row) {
        for (std::size_t column = 0; column < kLowPassWindow; ++column) {
          const FloatRow& from = (column % 2 == 0 ? even_ : odd_)[first + row];
          const float* at = from.data() + i + column / 2;
          const float tap = low_pass(static_cast<int>(row), static_cast<int>(column));
          sum0 = add_rounded(dd, sum0, hn::LoadU(df, at), tap);
          sum1 = add_rounded(dd, sum1, hn::LoadU(df, at + lanes), tap);
          sum2 = add_rounded(dd, sum2, hn::LoadU(df, at + 2 * lanes), tap);
          sum3 = add_rounded(dd, sum3, hn::LoadU(df, at + 3 * lanes), tap);
        }
      }
      hn::Store(hn::DemoteTo(df, sum0), df, result_.data() + i);
      hn::Store(hn::DemoteTo(df, sum1), df, result_.data() + i + lanes);
      hn::Store(hn::DemoteTo(df, sum2), df, result_.data() + i + 2 * lanes);
      hn::Store(hn::DemoteTo(df, sum3), df, result_.data() + i + 3 * lanes);
    }
    std::copy_n(result_.data(), count, out);
  }

  static constexpr std::size_t kRows = 2 * kTileHeight + kLowPassWindow;
  std::array<FloatRow, kRows> even_{}, odd_{};
  std::array<float, 2 * kFloatRow> row_{};
  FloatRow result_{};
};

}  // namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
