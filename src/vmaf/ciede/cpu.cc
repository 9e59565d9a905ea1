// SPDX-License-Identifier: Apache-2.0
// CIEDE2000 on the CPU, in tasks of rows:
//   code values ─> light ─> Lab of both images, in floats      rows of the first-level cache
//   Lab         ─> differences of pixels, in floats            a row
//   differences ─> sums of rows, in their order                doubles
// Named quantities are floats, as in libvmaf, and doubles lie between them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/ciede/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <array>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/ciede/ciede.h"
#include "src/vmaf/ciede/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

// Rows of three numbers a pixel, with space for a vector.
template <class T> class Rows {
 public:
  explicit Rows(std::int64_t width) : stride_(static_cast<std::size_t>(width) + HWY_MAX_BYTES) {
    values_.resize(3 * stride_);
  }
  T* row(std::size_t index) { return values_.data() + index * stride_; }
  const T* row(std::size_t index) const { return values_.data() + index * stride_; }

 private:
  std::size_t stride_;
  std::vector<T> values_;
};

template <class Sample>
void load_plane(const Plane& plane, std::int64_t y, int column_shift, std::int64_t width,
    double zero, double unit, double* HWY_RESTRICT to) {
  const Sample* HWY_RESTRICT from = plane.row<Sample>(y);
  if (column_shift == 0) {
    for (std::int64_t x = 0; x < width; ++x) to[x] = (from[x] - zero) * unit;
  } else {
    for (std::int64_t x = 0; x < width; ++x) to[x] = (from[x >> column_shift] - zero) * unit;
  }
}

void load_row(const ColorPlanes& image, std::int64_t y, Rows<double>& to) {
  const double scale = 1 << (image.planes[0].bit_depth - 8);
  for (std::size_t i = 0; i < 3; ++i) {
    const Plane& plane = image.planes[i];
    const bool is_luma = i == 0;
    const auto load = plane.is_words ? load_plane<std::uint16_t> : load_plane<std::uint8_t>;
    load(plane, is_luma ? y : y >> image.row_shift, is_luma ? 0 : image.column_shift,
        image.planes[0].width, (is_luma ? 16 : 128) * scale, 1 / ((is_luma ? 219 : 224) * scale),
        to.row(i));
  }
}

HWY_INLINE R linear_light(R code) {
  const auto is_high = hn::Gt(code, real(kCiedeLinearTo));
  const R base = hn::Mul(hn::Add(code, real(0.055)), real(1 / 1.055));
  // The power of what is not high is not used; 1 keeps it finite.
  return hn::IfThenElse(
      is_high, power_2_4(hn::IfThenElse(is_high, base, real(1))), hn::Mul(code, real(1 / 12.92)));
}

HWY_INLINE R lab_curve(R x) {
  const auto is_high = hn::Gt(x, real(kCiedeCubeFrom));
  const R line = hn::Mul(hn::Add(hn::Mul(x, real(kCiedeSlope)), real(16)), real(1.0 / 116));
  return as_float(hn::IfThenElse(is_high, cube_root(hn::IfThenElse(is_high, x, real(1))), line));
}

void to_lab(const Rows<double>& codes, std::int64_t width, Rows<float>& lab) {
  const Real d;
  const hn::Rebind<float, Real> df;
  for (std::int64_t x = 0; x < width; x += static_cast<std::int64_t>(hn::Lanes(d))) {
    const R y = hn::LoadU(d, codes.row(0) + x);
    const R cb = hn::LoadU(d, codes.row(1) + x), cr = hn::LoadU(d, codes.row(2) + x);
    const R red = linear_light(hn::Add(y, hn::Mul(real(kCiedeRedOfCr), cr)));
    const R green = linear_light(hn::Add(
        hn::Add(y, hn::Mul(real(kCiedeGreenOfCb), cb)), hn::Mul(real(kCiedeGreenOfCr), cr)));
    const R blue = linear_light(hn::Add(y, hn::Mul(real(kCiedeBlueOfCb), cb)));
    R f[3];
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& row = kCiedeXyz[i];
      f[i] = lab_curve(hn::Add(hn::Add(hn::Mul(red, real(row[0])), hn::Mul(green, real(row[1]))),
          hn::Mul(blue, real(row[2]))));
    }
    const auto store = [&](std::size_t row, R value)
                           HWY_ATTR { hn::StoreU(hn::DemoteTo(df, value), df, lab.row(row) + x); };
    store(0, hn::Sub(hn::Mul(real(116), f[1]), real(16)));
    store(1, hn::Mul(real(500), hn::Sub(f[0], f[1])));
    store(2, hn::Mul(real(200), hn::Sub(f[1], f[2])));
  }
}

HWY_INLINE R squared(R x) { return hn::Mul(x, x); }
HWY_INLINE R seventh(R x) {
  const R cube = hn::Mul(squared(x), x);
  return hn::Mul(squared(cube), x);
}
HWY_INLINE R length(R a, R b) { return as_float(hn::Sqrt(hn::Add(squared(a), squared(b)))); }
HWY_INLINE R mean(R a, R b) { return as_float(hn::Mul(hn::Add(a, b), real(0.5))); }
// sqrt(c⁷/(c⁷ + 25⁷))
HWY_INLINE R saturation(R chroma) {
  const R power = seventh(chroma);
  return hn::Sqrt(hn::Div(power, hn::Add(power, real(6103515625.0))));
}
HWY_INLINE R hue_of(R a, R b) {
  const R none = real(0);
  R angle = as_float(angle_of(b, a));
  angle = hn::IfThenElse(
      hn::Lt(angle, none), as_float(hn::Add(angle, real(2 * std::numbers::pi))), angle);
  return hn::IfThenZeroElse(hn::And(hn::Eq(a, none), hn::Eq(b, none)), angle);
}

struct Lab {
  R l, a, b;
};

// T, the weight of hues.
HWY_INLINE R hue_weight(R h) {
  constexpr double pi = std::numbers::pi;
  const auto [s1, c1] = sine_cosine(h);
  const R s2 = hn::Mul(real(2), hn::Mul(s1, c1));
  const R c2 = hn::Sub(squared(c1), squared(s1));
  const R s3 = hn::Add(hn::Mul(s2, c1), hn::Mul(c2, s1));
  const R c3 = hn::Sub(hn::Mul(c2, c1), hn::Mul(s2, s1));
  const R s4 = hn::Mul(real(2), hn::Mul(s2, c2)), c4 = hn::Sub(squared(c2), squared(s2));
  // factor·cos(n·h - shift)
  const auto wave = [&](double factor, double shift, R sine, R cosine) HWY_ATTR {
    return hn::Add(hn::Mul(real(factor * std::cos(shift)), cosine),
        hn::Mul(real(factor * std::sin(shift)), sine));
  };
  R sum = hn::Sub(real(1), wave(0.17, pi / 6, s1, c1));
  sum = hn::Add(sum, hn::Mul(real(0.24), c2));
  sum = hn::Add(sum, wave(0.32, -pi / 30, s3, c3));
  return as_float(hn::Sub(sum, wave(0.2, 7 * pi / 20, s4, c4)));
}

HWY_INLINE R difference(const Lab& x, const Lab& y) {
  constexpr double pi = std::numbers::pi;
  const R none = real(0), turn = real(2 * pi);
  const R c1 = length(x.a, x.b), c2 = length(y.a, y.b);
  const R stretch = hn::Sub(real(1), saturation(mean(c1, c2)));
  const auto stretched = [&](R a) HWY_ATTR {
    return as_float(hn::Add(a, hn::Mul(hn::Mul(a, real(0.5)), stretch)));
  };
  const R a1 = stretched(x.a), a2 = stretched(y.a);
  const R chroma1 = length(a1, x.b), chroma2 = length(a2, y.b);
  const R chroma_mean = mean(chroma1, chroma2);
  const R hue1 = hue_of(a1, x.b), hue2 = hue_of(a2, y.b);
  const R step = hn::Sub(hue2, hue1);
  const auto wraps = hn::Gt(hn::Abs(as_float(step)), real(pi));
  const R back = hn::IfThenElse(hn::Le(hue2, hue1), turn, hn::Neg(turn));
  const R hue_step = as_float(hn::Add(step, hn::IfThenElseZero(wraps, back)));
  const auto is_grey = hn::Or(hn::Eq(c1, none), hn::Eq(c2, none));
  const R half_step = hn::IfThenZeroElse(is_grey, hn::Mul(hue_step, real(0.5)));
  const R span = hn::Mul(real(2), hn::Sqrt(as_float(hn::Mul(chroma1, chroma2))));
  const R hue_difference = as_float(hn::Mul(span, sine_cosine(half_step).sine));
  const R hues = hn::Add(hn::Add(hue1, hue2), hn::IfThenElseZero(wraps, turn));
  const R h = as_float(hn::Mul(hues, real(0.5)));
  const R l = hn::Sub(mean(x.l, y.l), real(50)), l2 = squared(l);
  const R weight_l = as_float(
      hn::Add(real(1), hn::Div(hn::Mul(real(0.015), l2), hn::Sqrt(hn::Add(real(20), l2)))));
  const R weight_c = as_float(hn::Add(real(1), hn::Mul(real(0.045), chroma_mean)));
  const R weight_h =
      as_float(hn::Add(real(1), hn::Mul(hn::Mul(real(0.015), chroma_mean), hue_weight(h))));
  const R bend = hn::Mul(hn::Sub(hn::Mul(h, real(180 / pi)), real(275)), real(0.04));
  const R tilt = hn::Mul(real(pi / 3), exponential(hn::Neg(squared(bend))));
  const R rotation =
      as_float(hn::Mul(hn::Mul(real(-2), saturation(chroma_mean)), sine_cosine(tilt).sine));
  const auto quotient = [&](R of, float factor, R weight) HWY_ATTR {
    return as_float(
        hn::Div(as_float(of), as_float(hn::Mul(real(static_cast<double>(factor)), weight))));
  };
  const R lightness = quotient(hn::Sub(y.l, x.l), kCiedeLightness, weight_l);
  const R chroma = quotient(hn::Sub(chroma2, chroma1), kCiedeChroma, weight_c);
  const R hue = quotient(hue_difference, kCiedeHue, weight_h);
  const R squares = hn::Add(hn::Add(squared(lightness), squared(chroma)), squared(hue));
  // Rounding may leave a little less than nothing.
  return hn::Sqrt(hn::Max(none, hn::Add(squares, hn::Mul(rotation, hn::Mul(chroma, hue)))));
}

double sum_of_row(const ColorPlanes& reference, const ColorPlanes& distorted, std::int64_t y,
    Rows<double>& codes, Rows<float>& x_lab, Rows<float>& y_lab, float* HWY_RESTRICT differences) {
  const std::int64_t width = reference.planes[0].width;
  load_row(reference, y, codes);
  to_lab(codes, width, x_lab);
  load_row(distorted, y, codes);
  to_lab(codes, width, y_lab);
  const Real d;
  const hn::Rebind<float, Real> df;
  for (std::int64_t x = 0; x < width; x += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto lab = [&](const Rows<float>& rows) HWY_ATTR {
      const auto load = [&](std::size_t row)
                            HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(df, rows.row(row) + x)); };
      return Lab{load(0), load(1), load(2)};
    };
    hn::StoreU(hn::DemoteTo(df, difference(lab(x_lab), lab(y_lab))), df, differences + x);
  }
  double sum = 0;
  for (std::int64_t x = 0; x < width; ++x) sum += static_cast<double>(differences[x]);
  return sum;
}

void sum_rows(const ColorPlanes& reference, const ColorPlanes& distorted, std::int64_t first,
    std::int64_t last, double* sums) {
  const std::int64_t width = reference.planes[0].width;
  Rows<double> codes(width);
  Rows<float> x_lab(width), y_lab(width);
  std::vector<float> differences(static_cast<std::size_t>(width) + HWY_MAX_BYTES);
  for (std::int64_t y = first; y < last; ++y) {
    sums[y] = sum_of_row(reference, distorted, y, codes, x_lab, y_lab, differences.data());
  }
}

}  // namespace similis::vmaf_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::vmaf_internal {
namespace {

HWY_EXPORT(sum_rows);

constexpr std::int64_t kRowsOfTask = 16;

}  // namespace

double ciede_cpu(
    const ColorPlanes& reference, const ColorPlanes& distorted, const Execution& exec) {
  const std::int64_t width = reference.planes[0].width, height = reference.planes[0].height;
  std::vector<double> sums(static_cast<std::size_t>(height));
  parallel_for(exec, (height + kRowsOfTask - 1) / kRowsOfTask, [&](std::int64_t task) {
    const std::int64_t first = task * kRowsOfTask;
    HWY_DYNAMIC_DISPATCH(sum_rows)
    (reference, distorted, first, std::min(height, first + kRowsOfTask), sums.data());
  });
  double sum = 0;
  for (const double of_row : sums) sum += of_row;
  return sum / static_cast<double>(width * height);
}

}  // namespace similis::vmaf_internal
#endif
