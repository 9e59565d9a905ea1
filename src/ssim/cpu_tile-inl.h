// SPDX-License-Identifier: Apache-2.0
// SSIM of one tile, the operation of src/window's SlidingWindow: the products of s = x + y and
// d = x - y (times m, and m itself, under a valid mask), formula.h at each centre, and the gradient
// from the transposed averages. Plain loops over rows of f64, which become the vectors of each SIMD
// target: included once per target, hence the guard that flips.
#if defined(SIMILIS_SSIM_CPU_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_SSIM_CPU_TILE_INL_H
#undef SIMILIS_SSIM_CPU_TILE_INL_H
#else
#define SIMILIS_SSIM_CPU_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/ssim/cpu_plan.h"
#include "src/ssim/formula.h"
#include "src/window/plane_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::ssim_internal::HWY_NAMESPACE {
using core_internal::HWY_NAMESPACE::load_row;
using window_internal::HWY_NAMESPACE::dot;
using window_internal::HWY_NAMESPACE::for_columns;
using window_internal::HWY_NAMESPACE::for_each_row;
using window_internal::HWY_NAMESPACE::length;
using window_internal::HWY_NAMESPACE::PlaneTile;

// Rows of one value a column. All start as ones, and kScale, kWeight and kExists stay so in a
// pass that has nothing else for them.
enum Row : std::size_t {
  kScale,   // 1 / the sum of each window's weights
  kValue,   // 1 - SSIM
  kWeight,  // weight of each pixel in the reduction
  kExists,  // 1 where valid_mask is above 0, else 0
  kSlope,   // derivative of Σ upstream·value by the term at each pixel
  kPixelS,  // s, d and m of pixels
  kPixelD,
  kPixelM,
  kSecond,  // pixels of y
  kResult,
  kRows
};

class SsimTile : private PlaneTile<Plan, kRows> {
 public:
  using Value = double;
  enum Product : std::size_t { kS, kD, kSS, kDD, kM };

  SsimTile(const Plan& plan, const Piece& piece) : PlaneTile(plan, piece) {}

  const TileSums& sums() const { return sums_; }

  std::size_t products() const { return is_masked() ? 5 : 4; }
  std::size_t derivatives() const {
    const bool by_x = !pass_.x_gradient.empty(), by_y = !pass_.y_gradient.empty();
    return by_x && by_y ? 4 : by_x || by_y ? 3 : 0;
  }

  void products(
      std::int64_t z, std::int64_t y, std::int64_t x, std::int64_t count, double* const rows[]) {
    load_sums(z, y, {x, x + count}, rows[kS], rows[kD], is_masked() ? rows[kM] : nullptr);
    const double *s = rows[kS], *d = rows[kD];
    double *ss = rows[kSS], *dd = rows[kDD];
    for_columns(static_cast<std::size_t>(count), [=](std::size_t i) HWY_ATTR {
      ss[i] = s[i] * s[i];
      dd[i] = d[i] * d[i];
    });
    if (!is_masked()) return;
    for (const Product product : {kS, kD, kSS, kDD}) {
      const double* m = rows[kM];
      double* out = rows[product];
      for_columns(static_cast<std::size_t>(count), [=](std::size_t i) HWY_ATTR { out[i] *= m[i]; });
    }
  }

  void outputs(std::int64_t z, std::int64_t y, Interval centres, Interval owned,
      const double* const averages[], double* const derivatives[]) {
    if (is_masked() || pass_.padding == Padding::renormalize) {
      load_scale(z, y, centres, is_masked() ? averages[kM] : nullptr, row(kScale));
    }
    if (this->derivatives() > 0) {
      const bool is_map = pass_.reduction == Reduction::none;
      load_slopes(z, y, centres, is_map ? pass_.term_weight : plan_.term_slope[plane_]);
    }
    differentiate(length(centres), averages, derivatives);
    if (length(owned) > 0) {
      const double* const value = row(kValue) + (owned.first - centres.first);
      if (pass_.reduction == Reduction::none) {
        if (!pass_.value.empty()) write_map(z, y, owned, value);
      } else {
        load_weights(z, y, owned);
        sums_.term += dot(value, row(kWeight), length(owned));
      }
    }
  }

  void gradient(std::int64_t z, std::int64_t y, Interval pixels, const double* const transposed[]) {
    load_sums(z, y, pixels, row(kPixelS), row(kPixelD), is_masked() ? row(kPixelM) : nullptr);
    if (!pass_.x_gradient.empty()) {
      combine(z, y, pixels, transposed, +1);
      write_gradient(z, y, pixels, pass_.x_gradient, pass_.coarse_x_gradient);
    }
    if (!pass_.y_gradient.empty()) {
      combine(z, y, pixels, transposed, -1);
      write_gradient(z, y, pixels, pass_.y_gradient, pass_.coarse_y_gradient);
    }
  }

  // Σ weight·|x - y| over the tile's pixels; padding does not matter to it.
  void sum_l1() {
    const Tile pixels = counted();
    for_each_row(pixels, [&](std::int64_t z, std::int64_t y) {
      const Interval x = pixels.x;
      load_differences(z, y, x);
      load_weights(z, y, x);
      sums_.l1 += dot(row(kResult), row(kWeight), length(x));
    });
  }

  // Σ weight over the tile's centres and over its pixels.
  void sum_weights() {
    const Tile centres = this->centres();
    std::fill(rows_[kResult].begin(), rows_[kResult].end(), 1.0);
    const auto sum = [&](const Tile& tile, double* total) {
      for_each_row(tile, [&](std::int64_t z, std::int64_t y) {
        load_weights(z, y, tile.x);
        *total += dot(row(kWeight), row(kResult), length(tile.x));
      });
    };
    sum(centres, &sums_.weight);
    sum(counted(), &sums_.l1_weight);
  }

 private:
  // The tile's pixels that an L1 term takes.
  Tile counted() const {
    return {intersection(plan_.counted.z, piece_.tile.z),
        intersection(plan_.counted.y, piece_.tile.y), piece_.tile.x};
  }

  bool both_gradients() const { return derivatives() == 4; }

  // s and d, and under a valid mask m, of a row of pixels, any of which may lie beyond the image.
  // A pixel where m is not above 0 counts as 0, whatever it holds.
  void load_sums(std::int64_t z, std::int64_t y, Interval x, double* s, double* d, double* m) {
    const std::int64_t source_z = plan_.z.source(z), source_y = plan_.y.source(y);
    const Interval inside = intersection({0, plan_.x.extent()}, x);
    if (source_z == Axis::kOutside || source_y == Axis::kOutside || length(inside) == 0) {
      std::fill_n(s, length(x), 0.0);
      std::fill_n(d, length(x), 0.0);
      if (m != nullptr) std::fill_n(m, length(x), mask_outside());
      return;
    }
    const std::int64_t shift = inside.first - x.first;
    load_inside(source_z, source_y, inside, s + shift, d + shift, m == nullptr ? m : m + shift);
    const auto copy = [&](std::int64_t column) {
      const std::int64_t source = plan_.x.source(column);
      const bool is_outside = source == Axis::kOutside;
      s[column - x.first] = is_outside ? 0 : s[source - x.first];
      d[column - x.first] = is_outside ? 0 : d[source - x.first];
      if (m != nullptr) m[column - x.first] = is_outside ? mask_outside() : m[source - x.first];
    };
    for (std::int64_t column = x.first; column < inside.first; ++column) copy(column);
    for (std::int64_t column = inside.last; column < x.last; ++column) copy(column);
  }

  void load_inside(std::int64_t z, std::int64_t y, Interval x, double* s, double* d, double* m) {
    const std::size_t count = length(x);
    visit_dtype(pass_.x.dtype, [&]<class E>(std::type_identity<E>) {
      const E* first = static_cast<const E*>(pass_.x.data()) + offset(pass_.x, z, y, x.first);
      const E* second = static_cast<const E*>(pass_.y.data()) + offset(pass_.y, z, y, x.first);
      const auto add_and_subtract = [=](std::int64_t x_stride, std::int64_t y_stride) HWY_ATTR {
        for_columns(count, [=](std::size_t i) HWY_ATTR {
          const auto column = static_cast<std::int64_t>(i);
          const double a = load(first[column * x_stride]), b = load(second[column * y_stride]);
          s[i] = a + b;
          d[i] = a - b;
        });
      };
      const std::int64_t x_stride = pass_.x.strides[4], y_stride = pass_.y.strides[4];
      if (x_stride == 1 && y_stride == 1) return add_and_subtract(1, 1);  // in vectors
      add_and_subtract(x_stride, y_stride);
    });
    if (m == nullptr) return;
    load_pixels(pass_.valid_mask, z, y, x, m);
    drop_masked(count, s, d, m);
  }

  // 1 - SSIM (or 1 - cs) of each centre, and where a gradient is wanted the derivatives whose
  // transposed averages make it.
  void differentiate(
      std::size_t count, const double* const averages[], double* const derivatives[]) {
    const Constants<double> constants{.c1 = pass_.c1, .c2 = pass_.c2};
    if (pass_.term == Term::contrast) {
      evaluate(count, averages, derivatives,
          [=](const Moments<double>& m) HWY_ATTR { return contrast_dissimilarity(m, constants); });
    } else {
      evaluate(count, averages, derivatives,
          [=](const Moments<double>& m) HWY_ATTR { return dissimilarity(m, constants); });
    }
  }

  // Rows of window averages, and the moments at a centre.
  struct Averages {
    const double *s, *d, *ss, *dd, *scale;

    HWY_INLINE Moments<double> moments(std::size_t i) const {
      const double mean_s = s[i] * scale[i], mean_d = d[i] * scale[i];
      const double var_s = ss[i] * scale[i] - mean_s * mean_s;
      const double var_d = dd[i] * scale[i] - mean_d * mean_d;
      return {.mean_s = mean_s,
          .mean_d = mean_d,
          .var_s = var_s < 0 ? 0 : var_s,  // NaN stays
          .var_d = var_d < 0 ? 0 : var_d};
    }
  };

  template <class Formula>
  HWY_INLINE void evaluate(std::size_t count, const double* const averages[],
      double* const derivatives[], const Formula& formula) {
    const Averages windows{averages[kS], averages[kD], averages[kSS], averages[kDD], row(kScale)};
    double* value = row(kValue);
    if (this->derivatives() == 0) {
      for_columns(
          count, [=](std::size_t i) HWY_ATTR { value[i] = formula(windows.moments(i)).value; });
      return;
    }
    // The derivatives are ∂Vs, ∂Vd, and by the means ∂μs - 2μs·∂Vs and ∂μd - 2μd·∂Vd, of which x
    // alone needs only the sum and y the difference.
    const double* slope = row(kSlope);
    double *derivative_s = derivatives[0], *derivative_d = derivatives[1],
           *derivative_mean = derivatives[2];
    double* derivative_mean_d = both_gradients() ? derivatives[3] : row(kResult);
    const double sign = both_gradients() ? 0 : pass_.x_gradient.empty() ? -1 : 1;
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      const Moments<double> m = windows.moments(i);
      const Dissimilarity<double> result = formula(m);
      const Moments<double>& by = result.gradient;
      const double weight = slope[i] * windows.scale[i];
      const double by_mean_s = weight * (by.mean_s - 2 * m.mean_s * by.var_s);
      const double by_mean_d = weight * (by.mean_d - 2 * m.mean_d * by.var_d);
      value[i] = result.value;
      derivative_s[i] = weight * by.var_s;
      derivative_d[i] = weight * by.var_d;
      derivative_mean[i] = by_mean_s + sign * by_mean_d;
      derivative_mean_d[i] = by_mean_d;
    });
  }

  // kWeight of each pixel in a mean or a sum: mask where given, else valid_mask, else 1; 0 where
  // there is no pixel.
  void load_weights(std::int64_t z, std::int64_t y, Interval x) {
    double* weight = row(kWeight);
    const double* exists = row(kExists);
    const std::size_t count = length(x);
    const TensorView& mask = pass_.mask.empty() ? pass_.valid_mask : pass_.mask;
    if (mask.empty()) return;
    load_pixels(mask, z, y, x, weight);
    load_exists(z, y, x, row(kExists));
    for_columns(count, [=](std::size_t i) HWY_ATTR { weight[i] = exists[i] > 0 ? weight[i] : 0; });
  }

  // kWeight of each value of a map: mask where given, else 1.
  void load_map_weights(std::int64_t z, std::int64_t y, Interval x) {
    if (pass_.mask.empty()) return;
    load_pixels(pass_.mask, z, y, x, row(kWeight));
  }

  // kResult = |x - y|, 0 where there is no pixel.
  void load_differences(std::int64_t z, std::int64_t y, Interval x) {
    double* difference = row(kResult);
    const double* second = row(kSecond);
    const double* exists = row(kExists);
    load_pixels(pass_.x, z, y, x, row(kResult));
    load_pixels(pass_.y, z, y, x, row(kSecond));
    load_exists(z, y, x, row(kExists));
    const std::size_t count = length(x);
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      difference[i] = exists[i] > 0 ? std::abs(difference[i] - second[i]) : 0;
    });
  }

  // NaN where there is no pixel.
  void write_map(std::int64_t z, std::int64_t y, Interval x, const double* value) {
    load_differences(z, y, x);
    load_map_weights(z, y, x);
    double* out = row(kResult);
    const double *exists = row(kExists), *weight = row(kWeight);
    const double bias = pass_.bias, term_weight = pass_.term_weight, l1 = pass_.l1_weight;
    for_columns(length(x), [=](std::size_t i) HWY_ATTR {
      const double of_pixel = weight[i] * (bias + term_weight * value[i] + l1 * out[i]);
      out[i] = exists[i] > 0 ? of_pixel : std::numeric_limits<double>::quiet_NaN();
    });
    store_map(out, z, y, x, pass_.value);
  }

  // kSlope = the derivative of Σ upstream·value by 1 - SSIM (or |x - y|) of each pixel, times
  // `factor`; with a reduction to numbers the factor is the plane's slope.
  void load_slopes(std::int64_t z, std::int64_t y, Interval x, double factor) {
    double* slope = row(kSlope);
    const double *weight = row(kWeight), *exists = row(kExists);
    const std::size_t count = length(x);
    if (pass_.reduction != Reduction::none) {
      load_weights(z, y, x);
      for_columns(count, [=](std::size_t i) HWY_ATTR { slope[i] = weight[i] * factor; });
      return;
    }
    load_map_weights(z, y, x);
    load_exists(z, y, x, row(kExists));
    std::fill_n(slope, count, 1.0);
    if (!pass_.upstream.empty()) load_map(pass_.upstream, z, y, x, slope);
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      slope[i] = exists[i] > 0 ? slope[i] * weight[i] * factor : 0;
    });
  }

  // kResult = the gradient by x (sign +1) or y (sign -1): gs ± gd, with
  //   gs = Gᵀ(∂μs - 2μs·∂Vs) + 2s·Gᵀ∂Vs and gd likewise; times m under a valid mask.
  void combine(std::int64_t z, std::int64_t y, Interval pixels, const double* const transposed[],
      double sign) {
    const double *s = row(kPixelS), *d = row(kPixelD);
    const double *derivative_s = transposed[0], *derivative_d = transposed[1];
    const double* derivative_mean = transposed[2];
    double* out = row(kResult);
    const std::size_t count = length(pixels);
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      out[i] = derivative_mean[i] + 2 * (s[i] * derivative_s[i] + sign * d[i] * derivative_d[i]);
    });
    if (both_gradients()) {
      const double* derivative_mean_d = transposed[3];
      for_columns(count, [=](std::size_t i) HWY_ATTR { out[i] += sign * derivative_mean_d[i]; });
    }
    if (is_masked()) {
      const double* m = row(kPixelM);
      for_columns(count, [=](std::size_t i) HWY_ATTR { out[i] = m[i] > 0 ? out[i] * m[i] : 0; });
    }
    if (pass_.l1_weight == 0) return;
    if (!contains(plan_.counted.z, z) || !contains(plan_.counted.y, y)) return;
    const bool is_map = pass_.reduction == Reduction::none;
    load_slopes(z, y, pixels, is_map ? pass_.l1_weight : plan_.l1_slope[plane_]);
    const double* slope = row(kSlope);
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      const double direction = (d[i] > 0 ? 1.0 : 0.0) - (d[i] < 0 ? 1.0 : 0.0);
      out[i] += sign * direction * slope[i];
    });
  }

  void write_gradient(std::int64_t z, std::int64_t y, Interval x, const TensorView& gradient,
      const TensorView& coarse_gradient) {
    if (!coarse_gradient.empty()) add_coarse(z, y, x, coarse_gradient);
    store_pixels(row(kResult), z, y, x, gradient);
  }

  // kResult += each pixel's share of the gradient of the halved image.
  void add_coarse(std::int64_t z, std::int64_t y, Interval x, const TensorView& coarse_gradient) {
    const Halving &along_z = pass_.halving[0], &along_y = pass_.halving[1];
    const Halving& along_x = pass_.halving[2];
    const double share = along_z.share(z) * along_y.share(y);
    if (share == 0) return;
    const std::int64_t first = along_x.coarse(x.first);
    const std::int64_t last = std::min(along_x.coarse(x.last - 1) + 1, along_x.coarse_extent());
    if (first >= last) return;
    load_pixels(coarse_gradient, along_z.coarse(z), along_y.coarse(y), {first, last}, row(kSecond));
    for (std::int64_t column = x.first; column < x.last; ++column) {
      const double of_column = share * along_x.share(column);
      if (of_column == 0) continue;
      row(kResult)[column - x.first] += of_column * row(kSecond)[along_x.coarse(column) - first];
    }
  }

  TileSums sums_;
};

}  // namespace similis::ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
