// SPDX-License-Identifier: Apache-2.0
// The terms of integer SSIM in a tile of columns, row by row: a ring of the products of the rows
// that a window spans, filtered down, then across, then integer_formula.h. Included once per SIMD
// target, hence the guard that flips.
//
// All sums are whole numbers that their type holds, so neither the order of the filters nor the
// target changes a term. The type depends on the bits of a sample: see In32 and others.
#if defined(SIMILIS_LIBVMAF_SSIM_INTEGER_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_LIBVMAF_SSIM_INTEGER_TILE_INL_H
#undef SIMILIS_LIBVMAF_SSIM_INTEGER_TILE_INL_H
#else
#define SIMILIS_LIBVMAF_SSIM_INTEGER_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "src/libvmaf_ssim/integer/formula.h"
#include "src/libvmaf_ssim/integer/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The columns that a tile's windows see; rows end in space for whole vectors.
constexpr std::size_t kSeen = kTileColumns + 2 * kRadius;
constexpr std::size_t kRow = kTileColumns + 16;
template <class T> struct alignas(64) Row : std::array<T, kRow> {};

// About the middle of the range, 8 bits: window sums are at most 256²·128² = 2³⁰ in magnitude.
struct In32 {
  using Down = std::int32_t;
  using Across = std::int32_t;
  static constexpr std::size_t products = 4;
};
// The same to 10 bits: after the first filter at most 256·2·512² = 2²⁷.
struct In32ThenDouble {
  using Down = std::int32_t;
  using Across = double;
  static constexpr std::size_t products = 4;
};
// Samples as they are, to 16 bits: at most 2⁴⁸.
struct InDouble {
  using Down = double;
  using Across = double;
  static constexpr std::size_t products = 5;
};

template <class Sample>
void multiply(const Sample* HWY_RESTRICT x, const Sample* HWY_RESTRICT y, int middle,
    std::array<Row<std::int32_t>, 4>& products) {
  std::int32_t* HWY_RESTRICT to_x = products[0].data();
  std::int32_t* HWY_RESTRICT to_y = products[1].data();
  std::int32_t* HWY_RESTRICT to_squares = products[2].data();
  std::int32_t* HWY_RESTRICT to_xy = products[3].data();
  const std::int32_t middle_squared = middle * middle;
  for (std::size_t i = 0; i < kSeen; ++i) {
    const std::int32_t a = x[i] - middle, b = y[i] - middle;
    to_x[i] = a;
    to_y[i] = b;
    to_squares[i] = a * a + b * b - middle_squared;
    to_xy[i] = a * b;
  }
}

template <class Sample>
void multiply(const Sample* HWY_RESTRICT x, const Sample* HWY_RESTRICT y, int,
    std::array<Row<double>, 5>& products) {
  double* HWY_RESTRICT to_x = products[0].data();
  double* HWY_RESTRICT to_y = products[1].data();
  double* HWY_RESTRICT to_xx = products[2].data();
  double* HWY_RESTRICT to_yy = products[3].data();
  double* HWY_RESTRICT to_xy = products[4].data();
  for (std::size_t i = 0; i < kSeen; ++i) {
    const double a = x[i], b = y[i];
    to_x[i] = a;
    to_y[i] = b;
    to_xx[i] = a * a;
    to_yy[i] = b * b;
    to_xy[i] = a * b;
  }
}

// The taps over nine vectors. Exact, so fused or not is the same.
template <class D, class At> HWY_INLINE hn::Vec<D> filtered(D d, const At& at) {
  using T = hn::TFromD<D>;
  hn::Vec<D> sum = hn::Mul(hn::Set(d, static_cast<T>(kTaps[kRadius])), at(kRadius));
  for (int k = 0; k < kRadius; ++k) {
    const hn::Vec<D> pair = hn::Add(at(k), at(kWindow - 1 - k));
    const hn::Vec<D> tap = hn::Set(d, static_cast<T>(kTaps[k]));
    if constexpr (std::is_floating_point_v<T>) {
      sum = hn::MulAdd(tap, pair, sum);
    } else {
      sum = hn::Add(sum, hn::Mul(tap, pair));
    }
  }
  return sum;
}

template <class T>
void filter_down(const std::array<const T*, kWindow>& rows, T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  for (std::size_t i = 0; i < kSeen; i += hn::Lanes(d)) {
    hn::Store(filtered(d, [&](int k) HWY_ATTR { return hn::Load(d, rows[k] + i); }), d, sums + i);
  }
}

template <class T> void filter_across(const T* HWY_RESTRICT row, T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  for (std::size_t i = 0; i < kTileColumns; i += hn::Lanes(d)) {
    hn::Store(filtered(d, [&](int k) HWY_ATTR { return hn::LoadU(d, row + i + k); }), d, sums + i);
  }
}

// Windows of one row: their weights, and the constants in the formula that follow.
class Weights {
 public:
  Weights(const PlanePairs& planes, std::int64_t first_column) : planes_(planes) {
    for (std::size_t i = 0; i < kTileColumns; ++i) {
      across_[i] = weight_inside(first_column + static_cast<std::int64_t>(i), planes.width());
    }
  }

  // Most rows have the weights of the last.
  void move_to(std::int64_t row) {
    const int down = weight_inside(row, planes_.height());
    if (down == down_) return;
    down_ = down;
    for (std::size_t i = 0; i < kTileColumns; ++i) {
      const Weight weight = weight_of(across_[i] * down, planes_.bit_depth);
      w[i] = weight.w;
      c1[i] = weight.c1;
      c2[i] = weight.c2;
    }
  }

  Row<double> w, c1, c2;

 private:
  Row<int> across_;
  const PlanePairs& planes_;
  int down_ = 0;
};

template <class Sum>
void terms_of(const std::array<Row<Sum>, 4>& sums, const Weights& weights, int middle,
    double* HWY_RESTRICT terms) {
  for (std::size_t i = 0; i < kTileColumns; ++i) {
    const CentredMoments moments{static_cast<double>(sums[0][i]), static_cast<double>(sums[1][i]),
        static_cast<double>(sums[2][i]), static_cast<double>(sums[3][i])};
    terms[i] = term_of(moments, {weights.w[i], weights.c1[i], weights.c2[i]}, middle);
  }
}

inline void terms_of(const std::array<Row<double>, 5>& sums, const Weights& weights, int,
    double* HWY_RESTRICT terms) {
  for (std::size_t i = 0; i < kTileColumns; ++i) {
    const Moments moments{sums[0][i], sums[1][i], sums[2][i], sums[3][i], sums[4][i]};
    terms[i] = term_of(moments, {weights.w[i], weights.c1[i], weights.c2[i]});
  }
}

// The part of a plane that a tile's windows see.
template <class Sample> class SeenColumns {
 public:
  SeenColumns(const TensorView& planes, std::int64_t pair, std::int64_t first_column)
      : row_stride_(planes.strides[1]), column_stride_(planes.strides[2]) {
    const std::int64_t from = first_column - kRadius, width = planes.shape[2];
    begin = static_cast<std::size_t>(std::max<std::int64_t>(0, -from));
    end = static_cast<std::size_t>(std::min<std::int64_t>(kSeen, width - from));
    first_ = static_cast<const Sample*>(planes.data()) + pair * planes.strides[0] +
             (from + static_cast<std::int64_t>(begin)) * column_stride_;
  }

  // Copies a row's columns from begin to end to their places among kSeen.
  void load(std::int64_t row, Sample* HWY_RESTRICT samples) const {
    const Sample* from = first_ + row * row_stride_;
    if (column_stride_ == 1) {
      std::copy_n(from, end - begin, samples + begin);
    } else {
      for (std::size_t i = begin; i < end; ++i) {
        samples[i] = from[static_cast<std::int64_t>(i - begin) * column_stride_];
      }
    }
  }

  std::size_t begin, end;

 private:
  const Sample* first_;
  std::int64_t row_stride_, column_stride_;
};

template <class Sample, class Sums> class IntegerTile {
 public:
  IntegerTile(const IntegerPlan& plan, std::int64_t pair, std::int64_t tile)
      : weights_(plan.planes, tile * kTileColumns),
        seen_x_(plan.planes.x, pair, tile * kTileColumns),
        seen_y_(plan.planes.y, pair, tile * kTileColumns),
        height_(plan.planes.height()),
        columns_(std::min(kTileColumns, plan.planes.width() - tile * kTileColumns)),
        middle_(middle_of_range(plan.planes.bit_depth)) {}

  std::int64_t columns() const { return columns_; }

  // To be followed by next(row, …), next(row + 1, …), …
  void start(std::int64_t row) {
    for (std::int64_t at = row - kRadius; at < row + kRadius; ++at) push(at);
  }

  // The terms of a row; kTileColumns of them, zeros past the plane.
  void next(std::int64_t row, double* terms) {
    push(row + kRadius);
    for (std::size_t product = 0; product < Sums::products; ++product) {
      std::array<const Down*, kWindow> rows;
      for (std::int64_t k = 0; k < kWindow; ++k) {
        rows[static_cast<std::size_t>(k)] = products_of(row + k - kRadius)[product].data();
      }
      filter_down(rows, down_.data());
      if constexpr (std::is_same_v<Down, Across>) {
        filter_across(down_.data(), across_[product].data());
      } else {
        for (std::size_t i = 0; i < kSeen; ++i) converted_[i] = down_[i];
        filter_across(converted_.data(), across_[product].data());
      }
    }
    weights_.move_to(row);
    terms_of(across_, weights_, middle_, terms);
    std::fill(terms + columns_, terms + kTileColumns, 0.0);
  }

 private:
  using Down = typename Sums::Down;
  using Across = typename Sums::Across;
  using Products = std::array<Row<Down>, Sums::products>;

  Products& products_of(std::int64_t row) {
    return ring_[static_cast<std::size_t>((row + kWindow) % kWindow)];  // row ≥ -kRadius
  }

  // Samples outside the plane add nothing to any sum.
  void push(std::int64_t row) {
    Products& products = products_of(row);
    if (row < 0 || row >= height_) {
      for (Row<Down>& each : products) each.fill(0);
      return;
    }
    seen_x_.load(row, x_);
    seen_y_.load(row, y_);
    multiply(x_, y_, middle_, products);
    for (Row<Down>& each : products) {
      std::fill(each.begin(), each.begin() + seen_x_.begin, Down{0});
      std::fill(each.begin() + seen_x_.end, each.begin() + kSeen, Down{0});
    }
  }

  std::array<Products, kWindow> ring_{};
  Row<Down> down_{};
  Row<Across> converted_{};
  std::array<Row<Across>, Sums::products> across_{};
  Weights weights_;
  SeenColumns<Sample> seen_x_, seen_y_;
  const std::int64_t height_, columns_;
  const int middle_;
  Sample x_[kSeen] = {}, y_[kSeen] = {};
};

}  // namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
