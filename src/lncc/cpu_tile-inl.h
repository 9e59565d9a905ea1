// SPDX-License-Identifier: Apache-2.0
// LNCC of one tile, the operation of src/window's SlidingWindow: the products of x and y (times m,
// and m itself, under a valid mask), formula.h at each centre, and the gradients from the
// transposed sums. With q the windows that see pixel p, g what a unit of v adds to the result and μ
// means,
//   ∂/∂x(p) = y(p)·Σ α_q + 2x(p)·Σ β_q - Σ (α_q μy_q + 2β_q μx_q),  α = g·∂v/∂a, β = g·∂v/∂b
// so three derivatives go through the transpose for one image and five for both. Plain loops over
// rows of f64, which become the vectors of each SIMD target: included once per target, hence the
// guard that flips.
#if defined(SIMILIS_LNCC_CPU_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_LNCC_CPU_TILE_INL_H
#undef SIMILIS_LNCC_CPU_TILE_INL_H
#else
#define SIMILIS_LNCC_CPU_TILE_INL_H
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/lncc/cpu_plan.h"
#include "src/lncc/formula.h"
#include "src/window/plane_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::lncc_internal::HWY_NAMESPACE {
using core_internal::HWY_NAMESPACE::load_row;
using window_internal::HWY_NAMESPACE::dot;
using window_internal::HWY_NAMESPACE::for_columns;
using window_internal::HWY_NAMESPACE::for_each_row;
using window_internal::HWY_NAMESPACE::length;
using window_internal::HWY_NAMESPACE::PlaneTile;

// Rows of one value a column. All start as ones, and kWeight and kExists stay so in a pass that
// has nothing else for them.
enum Row : std::size_t {
  kScale,   // 1 / the sum of each window's weights
  kValue,   // v
  kWeight,  // weight of each pixel in the reduction
  kExists,  // 1 where valid_mask is above 0, else 0
  kSlope,   // derivative of Σ upstream·value by the term at each pixel
  kPixelX,  // x, y and m of pixels
  kPixelY,
  kPixelM,
  kResult,
  kRows
};

class LnccTile : private PlaneTile<Plan, kRows> {
 public:
  using Value = double;
  enum Product : std::size_t { kX, kY, kXX, kYY, kXY, kM };

  LnccTile(const Plan& plan, const Piece& piece) : PlaneTile(plan, piece) {
    if (is_masked() && !(pixel(pass_.valid_mask) > 0)) return;
    shift_ = {pixel(pass_.x), pixel(pass_.y)};
  }

  const TileSums& sums() const { return sums_; }

  std::size_t products() const { return is_masked() ? 6 : 5; }
  std::size_t derivatives() const {
    if (!pass_.has_gradient() || pass_.gradient == LnccGradient::ants) return 0;
    return wants_both() ? 5 : 3;
  }

  void products(
      std::int64_t z, std::int64_t y, std::int64_t x, std::int64_t count, double* const rows[]) {
    double* m = is_masked() ? rows[kM] : nullptr;
    load_pair(z, y, {x, x + count}, rows[kX], rows[kY], m);
    double *first = rows[kX], *second = rows[kY];
    double *xx = rows[kXX], *yy = rows[kYY], *xy = rows[kXY];
    for_columns(static_cast<std::size_t>(count), [=](std::size_t i) HWY_ATTR {
      xx[i] = first[i] * first[i];
      yy[i] = second[i] * second[i];
      xy[i] = first[i] * second[i];
    });
    if (m == nullptr) return;
    for (const Product product : {kX, kY, kXX, kYY, kXY}) {
      double* out = rows[product];
      for_columns(static_cast<std::size_t>(count), [=](std::size_t i) HWY_ATTR { out[i] *= m[i]; });
    }
  }

  void outputs(std::int64_t z, std::int64_t y, Interval centres, Interval owned,
      const double* const sums[], double* const derivatives[]) {
    load_scale(z, y, centres, is_masked() ? sums[kM] : nullptr, row(kScale));
    if (pass_.has_gradient()) load_slopes(z, y, centres);
    find_correlations(length(centres), sums, derivatives);
    if (length(owned) == 0) return;
    double* const value = row(kValue) + (owned.first - centres.first);
    if (pass_.has_gradient() && pass_.gradient == LnccGradient::ants) {
      write_centre_gradients(z, y, centres, owned, sums);
    }
    if (pass_.reduction == Reduction::none) {
      if (!pass_.value.empty()) write_map(z, y, owned, value);
      return;
    }
    load_weights(z, y, owned);
    sums_.correlation += dot(value, row(kWeight), length(owned));
  }

  void gradient(std::int64_t z, std::int64_t y, Interval pixels, const double* const transposed[]) {
    load_pair(z, y, pixels, row(kPixelX), row(kPixelY), is_masked() ? row(kPixelM) : nullptr);
    if (!pass_.x_gradient.empty()) {
      combine(length(pixels), {kPixelX, kPixelY}, transposed[0], transposed[1], transposed[2]);
      store_pixels(row(kResult), z, y, pixels, pass_.x_gradient);
    }
    if (!pass_.y_gradient.empty()) {
      const std::size_t first = wants_both() ? 3 : 1;
      combine(length(pixels), {kPixelY, kPixelX}, transposed[0], transposed[first],
          transposed[first + 1]);
      store_pixels(row(kResult), z, y, pixels, pass_.y_gradient);
    }
  }

  // Zeros in the gradients of all of the tile's pixels, for those that are no window's centre.
  void clear_gradients() {
    const Interval x = piece_.tile.x;
    std::fill_n(row(kResult), length(x), 0.0);
    for_each_row(piece_.tile, [&](std::int64_t z, std::int64_t y) {
      if (!pass_.x_gradient.empty()) store_pixels(row(kResult), z, y, x, pass_.x_gradient);
      if (!pass_.y_gradient.empty()) store_pixels(row(kResult), z, y, x, pass_.y_gradient);
    });
  }

  // Σ weight over the tile's centres.
  void sum_weights() {
    const Tile centres = this->centres();
    std::fill(rows_[kResult].begin(), rows_[kResult].end(), 1.0);
    for_each_row(centres, [&](std::int64_t z, std::int64_t y) {
      load_weights(z, y, centres.x);
      sums_.weight += dot(row(kWeight), row(kResult), length(centres.x));
    });
  }

 private:
  struct Images {
    Row own, other;
  };
  // Values subtracted from all pixels of a tile, so that pixels far from 0 keep their digits.
  struct Shift {
    double x = 0, y = 0;
  };
  bool wants_both() const { return !pass_.x_gradient.empty() && !pass_.y_gradient.empty(); }

  // The tile's middle pixel.
  double pixel(const TensorView& image) const {
    const auto middle = [](Interval along) { return (along.first + along.last) / 2; };
    const Tile& tile = piece_.tile;
    const double value =
        element(image, offset(image, middle(tile.z), middle(tile.y), middle(tile.x)));
    return std::isfinite(value) ? value : 0;
  }

  // x, y (both less the tile's shift) and under a valid mask m of a row of pixels, any of which may
  // lie beyond the image, where images are 0 with padding same and add nothing with another. A
  // pixel where m is not above 0 counts as 0, whatever it holds.
  void load_pair(
      std::int64_t z, std::int64_t y, Interval x, double* first, double* second, double* m) {
    const Interval inside = intersection({0, plan_.x.extent()}, x);
    const bool is_outside =
        z < 0 || z >= plan_.z.extent() || y < 0 || y >= plan_.y.extent() || length(inside) == 0;
    const std::size_t before = is_outside ? length(x) : length({x.first, inside.first});
    const std::size_t after = is_outside ? 0 : length({inside.last, x.last});
    const double black = pass_.padding == Padding::same ? -1 : 0;
    std::fill_n(first, before, black * shift_.x);
    std::fill_n(first + length(x) - after, after, black * shift_.x);
    std::fill_n(second, before, black * shift_.y);
    std::fill_n(second + length(x) - after, after, black * shift_.y);
    if (m != nullptr) {
      std::fill_n(m, before, mask_outside());
      std::fill_n(m + length(x) - after, after, mask_outside());
    }
    if (is_outside) return;
    first += before;
    second += before;
    load_pixels(pass_.x, z, y, inside, first);
    load_pixels(pass_.y, z, y, inside, second);
    const Shift shift = shift_;
    for_columns(length(inside), [=](std::size_t i) HWY_ATTR {
      first[i] -= shift.x;
      second[i] -= shift.y;
    });
    if (m == nullptr) return;
    m += before;
    load_pixels(pass_.valid_mask, z, y, inside, m);
    drop_masked(length(inside), first, second, m);
  }

  // Rows of window sums, and the moments at a centre.
  struct Sums {
    const double *x, *y, *xx, *yy, *xy, *scale;
    double taps;

    HWY_INLINE double mean_x(std::size_t i) const { return x[i] * scale[i]; }
    HWY_INLINE double mean_y(std::size_t i) const { return y[i] * scale[i]; }
    HWY_INLINE Moments<double> moments(std::size_t i) const {
      const double factor = taps * scale[i];
      return {.a = factor * (xy[i] - x[i] * mean_y(i)),
          .b = factor * (xx[i] - x[i] * mean_x(i)),
          .c = factor * (yy[i] - y[i] * mean_y(i))};
    }
  };
  Sums sums_of(const double* const sums[]) {
    return {sums[kX], sums[kY], sums[kXX], sums[kYY], sums[kXY], row(kScale), pass_.taps};
  }

  // v of each centre, and where the exact gradient is wanted the derivatives whose transposed sums
  // make it.
  void find_correlations(
      std::size_t count, const double* const sums[], double* const derivatives[]) {
    const Constants<double> constants = pass_.constants;
    if (pass_.is_signed) {
      evaluate(count, sums, derivatives, [=](const Moments<double>& m) HWY_ATTR {
        return signed_correlation(m, constants, [](double t) HWY_ATTR { return std::sqrt(t); });
      });
    } else {
      evaluate(count, sums, derivatives,
          [=](const Moments<double>& m) HWY_ATTR { return squared_correlation(m, constants); });
    }
  }

  template <class Formula>
  HWY_INLINE void evaluate(std::size_t count, const double* const sums[],
      double* const derivatives[], const Formula& formula) {
    const Sums windows = sums_of(sums);
    double* value = row(kValue);
    if (this->derivatives() == 0) {
      for_columns(
          count, [=](std::size_t i) HWY_ATTR { value[i] = formula(windows.moments(i)).value; });
      return;
    }
    const double* slope = row(kSlope);
    double* by_a = derivatives[0];
    if (wants_both()) {
      double *by_b = derivatives[1], *x_means = derivatives[2], *by_c = derivatives[3],
             *y_means = derivatives[4];
      for_columns(count, [=](std::size_t i) HWY_ATTR {
        const Correlation<double> v = formula(windows.moments(i));
        const double weight = slope[i] * windows.taps * windows.scale[i];
        const double mean_x = windows.mean_x(i), mean_y = windows.mean_y(i);
        value[i] = v.value;
        by_a[i] = weight * v.gradient.a;
        by_b[i] = 2 * weight * v.gradient.b;
        by_c[i] = 2 * weight * v.gradient.c;
        x_means[i] = by_a[i] * mean_y + by_b[i] * mean_x;
        y_means[i] = by_a[i] * mean_x + by_c[i] * mean_y;
      });
      return;
    }
    const bool of_x = !pass_.x_gradient.empty();
    double *by_own = derivatives[1], *means = derivatives[2];
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      const Correlation<double> v = formula(windows.moments(i));
      const double weight = slope[i] * windows.taps * windows.scale[i];
      const double mean_x = windows.mean_x(i), mean_y = windows.mean_y(i);
      value[i] = v.value;
      by_a[i] = weight * v.gradient.a;
      by_own[i] = 2 * weight * (of_x ? v.gradient.b : v.gradient.c);
      means[i] = by_a[i] * (of_x ? mean_y : mean_x) + by_own[i] * (of_x ? mean_x : mean_y);
    });
  }

  // kWeight of each pixel in a mean or a sum: mask where given, else valid_mask, else 1; 0 where
  // there is no pixel. In a map, where valid_mask only says which pixels there are, mask or 1.
  void load_weights(std::int64_t z, std::int64_t y, Interval x) {
    double* weight = row(kWeight);
    const double* exists = row(kExists);
    const bool is_map = pass_.reduction == Reduction::none;
    const TensorView& mask = pass_.mask.empty() && !is_map ? pass_.valid_mask : pass_.mask;
    if (mask.empty()) {
      std::fill_n(weight, length(x), 1.0);
    } else {
      load_pixels(mask, z, y, x, weight);
    }
    load_exists(z, y, x, row(kExists));
    for_columns(
        length(x), [=](std::size_t i) HWY_ATTR { weight[i] = exists[i] > 0 ? weight[i] : 0; });
  }

  // NaN where there is no pixel, 0 where its weight is.
  void write_map(std::int64_t z, std::int64_t y, Interval x, const double* value) {
    load_weights(z, y, x);
    double* out = row(kResult);
    const double *weight = row(kWeight), *exists = row(kExists);
    const double factor = pass_.weight;
    for_columns(length(x), [=](std::size_t i) HWY_ATTR {
      const double of_pixel = weight[i] == 0 ? 0 : weight[i] * factor * value[i];
      out[i] = exists[i] > 0 ? of_pixel : std::numeric_limits<double>::quiet_NaN();
    });
    store_map(out, z, y, x, pass_.value);
  }

  // kSlope = the derivative of Σ upstream·value by v of each pixel.
  void load_slopes(std::int64_t z, std::int64_t y, Interval x) {
    double* slope = row(kSlope);
    const double* weight = row(kWeight);
    load_weights(z, y, x);
    const bool is_map = pass_.reduction == Reduction::none;
    const double factor = is_map ? pass_.weight : plan_.slope[plane_];
    std::fill_n(slope, length(x), 1.0);
    if (is_map && !pass_.upstream.empty()) load_map(pass_.upstream, z, y, x, slope);
    for_columns(length(x), [=](std::size_t i) HWY_ATTR {
      slope[i] = weight[i] == 0 ? 0 : slope[i] * weight[i] * factor;
    });
  }

  // kResult = other·Σα + own·2Σβ - Σ(means); times m under a valid mask.
  void combine(std::size_t count, Images images, const double* by_a, const double* by_own,
      const double* means) {
    const double *own = row(images.own), *other = row(images.other), *m = row(kPixelM);
    double* out = row(kResult);
    for_columns(count, [=](std::size_t i) HWY_ATTR {
      out[i] = other[i] * by_a[i] + own[i] * by_own[i] - means[i];
    });
    if (!is_masked()) return;
    for_columns(count, [=](std::size_t i) HWY_ATTR { out[i] = m[i] > 0 ? out[i] * m[i] : 0; });
  }

  // The gradients that ANTs follows, of the owned centres of a row.
  void write_centre_gradients(std::int64_t z, std::int64_t y, Interval centres, Interval owned,
      const double* const sums[]) {
    load_pair(z, y, owned, row(kPixelX), row(kPixelY), is_masked() ? row(kPixelM) : nullptr);
    const Sums windows = sums_of(sums);
    const auto shift = static_cast<std::size_t>(owned.first - centres.first);
    const double *slope = row(kSlope), *x = row(kPixelX), *other = row(kPixelY);
    double* out = row(kResult);
    const Constants<double> constants = pass_.constants;
    for (const bool of_x : {true, false}) {
      const TensorView& gradient = of_x ? pass_.x_gradient : pass_.y_gradient;
      if (gradient.empty()) continue;
      for_columns(length(owned), [=](std::size_t i) HWY_ATTR {
        const std::size_t centre = i + shift;
        const Moments<double> m = windows.moments(centre);
        const double by_x = x[i] - windows.mean_x(centre), by_y = other[i] - windows.mean_y(centre);
        const Moments<double> own_first = {m.a, of_x ? m.b : m.c, of_x ? m.c : m.b};
        const double result =
            centre_gradient(own_first, constants, of_x ? by_x : by_y, of_x ? by_y : by_x);
        out[i] = slope[centre] == 0 ? 0 : slope[centre] * result;
      });
      store_pixels(row(kResult), z, y, owned, gradient);
    }
  }

  Shift shift_;
  TileSums sums_;
};

}  // namespace similis::lncc_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
