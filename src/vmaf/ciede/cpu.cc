// SPDX-License-Identifier: Apache-2.0
// CIEDE2000 on the CPU, in tasks of rows and blocks of columns:
//   code values ─> light ─> Lab of both images      blocks in the first-level cache
//   Lab         ─> chroma ─> hue ─> differences     the same
//   differences ─> sums of rows, in a fixed order   doubles
// Named quantities are floats, as in libvmaf, and doubles lie between them. Each step is a loop
// over a block: a pixel's steps wait for one another, and a processor that looks ahead by some
// hundred instructions then has several pixels to work on. One loop for all steps takes twice as
// long. Square roots stand in loops of polynomials, which the unit for roots does not wait for.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/vmaf/ciede/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "src/core/parallel.h"
#include "src/vmaf/ciede/ciede.h"
#include "src/vmaf/ciede/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::vmaf_internal::HWY_NAMESPACE {

constexpr std::int64_t kColumns = 256;  // of a block; a multiple of all vectors' lanes
template <class T> struct alignas(64) Block { T values[kColumns]; };
using Floats = Block<float>;

// One image's colours. `a` is stretched once both images' first chroma is known, and chroma redone.
struct Colors {
  Floats l, a, b, chroma, hue;
};

HWY_INLINE R load(const Floats& from, std::size_t x) {
  const hn::Rebind<float, Real> df;
  return hn::PromoteTo(Real(), hn::Load(df, from.values + x));
}
// As the nearest floats.
HWY_INLINE void store(R value, Floats& to, std::size_t x) {
  const hn::Rebind<float, Real> df;
  hn::Store(hn::DemoteTo(df, value), df, to.values + x);
}

// body(x) for the first column of each vector; what lies behind the last column is not used.
template <class Body> HWY_INLINE void for_columns(std::int64_t count, const Body& body) {
  for (std::size_t x = 0; x < static_cast<std::size_t>(count); x += hn::Lanes(Real())) body(x);
}

// `first` is that of a block, hence of a sample.
template <class Sample>
void load_plane(const Sample* HWY_RESTRICT row, int column_shift, std::int64_t first,
    std::int64_t count, double zero, double unit, double* HWY_RESTRICT to) {
  const Sample* HWY_RESTRICT from = row + (first >> column_shift);
  Block<std::int32_t> samples;
  if (column_shift == 0) {
    for (std::int64_t x = 0; x < count; ++x) samples.values[x] = from[x];
  } else if (column_shift == 1) {  // written so that it becomes vector code
    for (std::int64_t x = 0; x < (count + 1) / 2; ++x) {
      samples.values[2 * x] = samples.values[2 * x + 1] = from[x];
    }
  } else {
    for (std::int64_t x = 0; x < count; ++x) samples.values[x] = from[x >> column_shift];
  }
  const hn::Rebind<std::int32_t, Real> narrow;
  for_columns(count, [&](std::size_t x) HWY_ATTR {
    const R sample = hn::PromoteTo(Real(), hn::Load(narrow, samples.values + x));
    hn::Store(hn::Mul(hn::Sub(sample, real(zero)), real(unit)), Real(), to + x);
  });
}

using Codes = std::array<Block<double>, 3>;  // Y', Cb, Cr

// has_chroma: `to` holds chroma already, that of the row above.
void load_codes(const ColorPlanes& image, std::int64_t y, std::int64_t first, std::int64_t count,
    bool has_chroma, Codes& to) {
  const double scale = 1 << (image.planes[0].bit_depth - 8);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Plane& plane = image.planes[i];
    const bool is_luma = i == 0;
    if (has_chroma && !is_luma) continue;
    const std::int64_t row = is_luma ? y : y >> image.row_shift;
    const int shift = is_luma ? 0 : image.column_shift;
    const double zero = (is_luma ? 16 : 128) * scale, unit = 1 / ((is_luma ? 219 : 224) * scale);
    if (plane.is_words) {
      load_plane(plane.row<std::uint16_t>(row), shift, first, count, zero, unit, to[i].values);
    } else {
      load_plane(plane.row<std::uint8_t>(row), shift, first, count, zero, unit, to[i].values);
    }
  }
}

HWY_INLINE R linear_light(R code) {
  const R base = fused(code, real(1 / 1.055), real(0.055 / 1.055));
  return hn::IfThenElse(
      hn::Gt(code, real(kCiedeLinearTo)), power_2_4(base), hn::Mul(code, real(1 / 12.92)));
}

// Light of the primaries, then XYZ, whose cube roots begin with a guess in floats. `narrow` is XYZ
// before the guess and the curves of Lab after it.
struct Light {
  std::array<Block<double>, 3> primaries, xyz;
  std::array<Floats, 3> narrow, guesses;
};

void find_light(const Codes& codes, std::int64_t count, Light& to) {
  const Real d;
  const auto find = [&](std::size_t primary, auto code) HWY_ATTR {
    for_columns(count, [&](std::size_t x) HWY_ATTR {
      const auto at = [&](std::size_t of) HWY_ATTR { return hn::Load(d, codes[of].values + x); };
      hn::Store(linear_light(code(at)), d, to.primaries[primary].values + x);
    });
  };
  find(0, [](auto at) HWY_ATTR { return fused(at(2), real(kCiedeRedOfCr), at(0)); });
  find(1, [](auto at) HWY_ATTR {
    return fused(at(2), real(kCiedeGreenOfCr), fused(at(1), real(kCiedeGreenOfCb), at(0)));
  });
  find(2, [](auto at) HWY_ATTR { return fused(at(1), real(kCiedeBlueOfCb), at(0)); });
}

void find_xyz(std::int64_t count, Light& light) {
  const Real d;
  const hn::Rebind<float, Real> narrow;
  for_columns(count, [&](std::size_t x) HWY_ATTR {
    const R red = hn::Load(d, light.primaries[0].values + x);
    const R green = hn::Load(d, light.primaries[1].values + x);
    const R blue = hn::Load(d, light.primaries[2].values + x);
    for (std::size_t i = 0; i < light.xyz.size(); ++i) {
      const auto& row = kCiedeXyz[i];
      const R sum =
          fused(blue, real(row[2]), fused(green, real(row[1]), hn::Mul(red, real(row[0]))));
      hn::Store(sum, d, light.xyz[i].values + x);
      hn::Store(hn::DemoteTo(narrow, sum), narrow, light.narrow[i].values + x);
    }
  });
  const hn::ScalableTag<float> df;
  for (std::size_t i = 0; i < light.guesses.size(); ++i) {
    for (std::size_t x = 0; x < static_cast<std::size_t>(count); x += hn::Lanes(df)) {
      // Roots of what is smaller are not used.
      const auto at_least = hn::Max(hn::Load(df, light.narrow[i].values + x), hn::Set(df, 0.008f));
      hn::Store(inverse_cube_root_guess(df, at_least), df, light.guesses[i].values + x);
    }
  }
}

HWY_INLINE R squared(R x) { return hn::Mul(x, x); }
HWY_INLINE R length(R a, R b) { return hn::Sqrt(fused(a, a, squared(b))); }

void to_lab(const Codes& codes, std::int64_t count, Light& light, Colors& to) {
  find_light(codes, count, light);
  find_xyz(count, light);
  for (std::size_t i = 0; i < light.xyz.size(); ++i) {
    for_columns(count, [&](std::size_t x) HWY_ATTR {
      const R value = hn::Load(Real(), light.xyz[i].values + x);
      const R line = fused(value, real(kCiedeSlope / 116), real(16.0 / 116));
      const R root = cube_root(value, load(light.guesses[i], x));
      store(hn::IfThenElse(hn::Gt(value, real(kCiedeCubeFrom)), root, line), light.narrow[i], x);
    });
  }
  for_columns(count, [&](std::size_t x) HWY_ATTR {
    const R f0 = load(light.narrow[0], x), f1 = load(light.narrow[1], x);
    const R f2 = load(light.narrow[2], x);
    store(fused(real(116), f1, real(-16)), to.l, x);
    const R a = as_float(hn::Mul(real(500), hn::Sub(f0, f1)));
    const R b = as_float(hn::Mul(real(200), hn::Sub(f1, f2)));
    store(a, to.a, x);
    store(b, to.b, x);
    store(length(a, b), to.chroma, x);
  });
}

HWY_INLINE R seventh(R x) {
  const R cube = hn::Mul(squared(x), x);
  return hn::Mul(squared(cube), x);
}
// One operation on floats, which rounds as the same on doubles, rounded to floats, does. Source:
// Figueroa, ACM SIGNUM Newsletter 30(3), 1995.
HWY_INLINE R mean(const Floats& a, const Floats& b, std::size_t x) {
  const hn::Rebind<float, Real> df;
  const auto sum = hn::Add(hn::Load(df, a.values + x), hn::Load(df, b.values + x));
  return hn::PromoteTo(Real(), hn::Mul(sum, hn::Set(df, 0.5f)));
}
HWY_INLINE R product(const Floats& a, const Floats& b, std::size_t x) {
  const hn::Rebind<float, Real> df;
  return hn::PromoteTo(Real(), hn::Mul(hn::Load(df, a.values + x), hn::Load(df, b.values + x)));
}
// sqrt(c⁷/(c⁷ + 25⁷))
HWY_INLINE R saturation(R chroma) {
  const R power = seventh(chroma);
  return hn::Sqrt(hn::Div(power, hn::Add(power, real(6103515625.0))));
}
HWY_INLINE R hue_of(R a, R b) {
  const R none = real(0);
  R angle = as_near_float(angle_of(b, a));
  angle = hn::Add(angle, hn::IfThenElseZero(hn::Lt(angle, none), real(2 * std::numbers::pi)));
  return hn::IfThenZeroElse(hn::And(hn::Eq(a, none), hn::Eq(b, none)), angle);
}

// T, the weight of hues.
HWY_INLINE R hue_weight(R h) {
  constexpr double pi = std::numbers::pi;
  const auto [s1, c1] = sine_cosine(h);
  const R twice_c1 = hn::Add(c1, c1);
  const R s2 = hn::Mul(twice_c1, s1), c2 = fused(twice_c1, c1, real(-1));
  const R twice_c2 = hn::Add(c2, c2);
  const R s3 = fused(twice_c2, s1, s1), c3 = fused(twice_c2, c1, hn::Neg(c1));
  const R s4 = hn::Mul(twice_c2, s2), c4 = fused(twice_c2, c2, real(-1));
  // sum + factor·cos(n·h - shift)
  const auto with_wave = [&](R sum, double factor, double shift, R sine, R cosine) HWY_ATTR {
    return fused(
        cosine, real(factor * std::cos(shift)), fused(sine, real(factor * std::sin(shift)), sum));
  };
  R sum = with_wave(real(1), -0.17, pi / 6, s1, c1);
  sum = fused(c2, real(0.24), sum);
  return as_near_float(hn::Add(
      with_wave(sum, 0.32, -pi / 30, s3, c3), with_wave(real(0), -0.2, 7 * pi / 20, s4, c4)));
}

// Stretches a of both images.
void stretch(std::int64_t count, Colors& x, Colors& y) {
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R by = hn::Sub(real(1), saturation(mean(x.chroma, y.chroma, at)));
    for (Colors* of : {&x, &y}) {
      const R a = load(of->a, at);
      store(fused(hn::Mul(a, real(0.5)), by, a), of->a, at);
    }
  });
}

void find_chroma_and_hue(std::int64_t count, Colors& of) {
  for_columns(count, [&](std::size_t x) HWY_ATTR {
    const R a = load(of.a, x), b = load(of.b, x);
    store(length(a, b), of.chroma, x);
    store(hue_of(a, b), of.hue, x);
  });
}

// The difference of hues, as a length, and their mean.
void compare_hues(
    std::int64_t count, const Colors& x, const Colors& y, Floats& differences, Floats& means) {
  constexpr double pi = std::numbers::pi;
  const R turn = real(2 * pi);
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R hue1 = load(x.hue, at), hue2 = load(y.hue, at), step = hn::Sub(hue2, hue1);
    const auto wraps = hn::Gt(hn::Abs(as_float(step)), real(pi));
    const R back = negated_if(hn::Gt(hue2, hue1), turn);
    const R hue_step = as_float(hn::Add(step, hn::IfThenElseZero(wraps, back)));
    // 0 where one of the colours is grey, whose hue is 0.
    const R size = hn::Mul(real(2), hn::Sqrt(product(x.chroma, y.chroma, at)));
    store(hn::Mul(size, sine(hn::Mul(hue_step, real(0.5)))), differences, at);
    const R hues = hn::Add(hn::Add(hue1, hue2), hn::IfThenElseZero(wraps, turn));
    store(hn::Mul(hues, real(0.5)), means, at);
  });
}

// R_T, from the means of chroma and hue; 0 where less than 1e-8 is left of it.
HWY_INLINE R rotation(R chroma, R hue) {
  constexpr double pi = std::numbers::pi;
  const R bend = fused(hue, real(180 / pi / 25), real(-11));
  const R square = squared(bend);
  const auto is_near = hn::Lt(square, real(20));
  if (hn::AllFalse(Real(), is_near)) return real(0);
  const R tilt = hn::Mul(real(pi / 3), exponential(hn::Neg(hn::Min(square, real(20)))));
  return hn::IfThenElseZero(is_near, hn::Mul(hn::Mul(real(-2), saturation(chroma)), sine(tilt)));
}

// The weights of lightness, chroma and hue, and R_T.
struct Weights {
  Floats lightness, chroma, hue, rotation;
};
void find_weights(std::int64_t count, const Colors& x, const Colors& y, const Floats& hue_means,
    Weights& weights) {
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R square = squared(hn::Sub(mean(x.l, y.l, at), real(50)));
    const R root = hn::Sqrt(hn::Add(real(20), square));
    store(hn::Add(real(1), hn::Div(hn::Mul(real(0.015), square), root)), weights.lightness, at);
    const R chroma = mean(x.chroma, y.chroma, at);
    store(fused(real(0.045), chroma, real(1)), weights.chroma, at);
    const R of_chroma = hn::Mul(real(0.015), chroma);
    store(fused(of_chroma, hue_weight(load(hue_means, at)), real(1)), weights.hue, at);
  });
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    store(rotation(mean(x.chroma, y.chroma, at), load(hue_means, at)), weights.rotation, at);
  });
}

// The three quotients, in floats as libvmaf has them.
struct Quotients {
  Floats lightness, chroma, hue, rotated;
};
void find_quotients(std::int64_t count, const Colors& x, const Colors& y,
    const Floats& hue_differences, const Weights& weights, Quotients& to) {
  const hn::ScalableTag<float> d;
  for (std::size_t at = 0; at < static_cast<std::size_t>(count); at += hn::Lanes(d)) {
    const auto load = [&](const Floats& from) HWY_ATTR { return hn::Load(d, from.values + at); };
    const auto quotient = [&](auto of, float factor, const Floats& weight) HWY_ATTR {
      return hn::Div(of, hn::Mul(hn::Set(d, factor), load(weight)));
    };
    const auto chroma =
        quotient(hn::Sub(load(y.chroma), load(x.chroma)), kCiedeChroma, weights.chroma);
    const auto hue = quotient(load(hue_differences), kCiedeHue, weights.hue);
    hn::Store(quotient(hn::Sub(load(y.l), load(x.l)), kCiedeLightness, weights.lightness), d,
        to.lightness.values + at);
    hn::Store(chroma, d, to.chroma.values + at);
    hn::Store(hue, d, to.hue.values + at);
    hn::Store(hn::Mul(hn::Mul(load(weights.rotation), chroma), hue), d, to.rotated.values + at);
  }
}

void find_differences(std::int64_t count, const Quotients& quotients, Floats& to) {
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R lightness = load(quotients.lightness, at), chroma = load(quotients.chroma, at);
    const R hue = load(quotients.hue, at);
    R sum = fused(hue, hue, load(quotients.rotated, at));
    sum = fused(lightness, lightness, fused(chroma, chroma, sum));
    store(hn::Sqrt(hn::Max(real(0), sum)), to, at);  // rounding may leave less than nothing
  });
}

// The buffers of a task.
struct Pixels {
  Codes x_codes, y_codes;
  Light light;
  Colors x, y;
  Floats hue_differences, hue_means, differences;
  Weights weights;
  Quotients quotients;
};

double sum_of_block(const ColorPlanes& reference, const ColorPlanes& distorted, std::int64_t row,
    std::int64_t first, std::int64_t count, bool has_chroma, Pixels& pixels) {
  auto& [x_codes, y_codes, light, x, y, hue_differences, hue_means, differences, weights,
      quotients] = pixels;
  load_codes(reference, row, first, count, has_chroma, x_codes);
  to_lab(x_codes, count, light, x);
  load_codes(distorted, row, first, count, has_chroma, y_codes);
  to_lab(y_codes, count, light, y);
  stretch(count, x, y);
  find_chroma_and_hue(count, x);
  find_chroma_and_hue(count, y);
  compare_hues(count, x, y, hue_differences, hue_means);
  find_weights(count, x, y, hue_means, weights);
  find_quotients(count, x, y, hue_differences, weights, quotients);
  find_differences(count, quotients, differences);
  // Eight sums side by side: one would wait for each addition.
  std::array<double, 8> sums{};
  for (std::int64_t i = 0; i < count; ++i) {
    sums[static_cast<std::size_t>(i) % sums.size()] += static_cast<double>(differences.values[i]);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void sum_rows(const ColorPlanes& reference, const ColorPlanes& distorted, std::int64_t first,
    std::int64_t last, double* sums) {
  const std::int64_t width = reference.planes[0].width;
  Pixels pixels{};
  std::fill(sums + first, sums + last, 0.0);
  for (std::int64_t x = 0; x < width; x += kColumns) {
    const std::int64_t count = std::min(kColumns, width - x);
    for (std::int64_t y = first; y < last; ++y) {
      const bool has_chroma =
          y > first && y >> reference.row_shift == (y - 1) >> reference.row_shift;
      sums[y] += sum_of_block(reference, distorted, y, x, count, has_chroma, pixels);
    }
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
