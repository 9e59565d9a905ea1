// SPDX-License-Identifier: Apache-2.0
// CIEDE2000 on the CPU, in tasks of rows and blocks of columns:
//   code values ─> light ─> Lab of both images      blocks in the first-level cache
//   Lab         ─> chroma ─> hue ─> differences     the same
//   differences ─> sums of rows, in a fixed order   doubles
// Named quantities are floats, as in libvmaf, and doubles lie between them. Each step is a loop
// over a block: a pixel's steps wait for one another, and a processor that looks ahead by some
// hundred instructions then has several pixels to work on. One loop for all steps takes twice as
// long.
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
template <class T> struct alignas(64) Block {
  T values[kColumns] = {};
};
using Floats = Block<float>;

// Of one image. From its chroma on, `a` is stretched.
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
  const auto code = [&](std::int64_t i) { return (from[i] - zero) * unit; };
  if (column_shift == 0) {
    for (std::int64_t x = 0; x < count; ++x) to[x] = code(x);
  } else if (column_shift == 1) {  // written so that it becomes vector code
    for (std::int64_t x = 0; x < (count + 1) / 2; ++x) to[2 * x] = to[2 * x + 1] = code(x);
  } else {
    for (std::int64_t x = 0; x < count; ++x) to[x] = code(x >> column_shift);
  }
}

using Codes = std::array<Block<double>, 3>;  // Y', Cb, Cr; or light of three primaries

void load_codes(
    const ColorPlanes& image, std::int64_t y, std::int64_t first, std::int64_t count, Codes& to) {
  const double scale = 1 << (image.planes[0].bit_depth - 8);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Plane& plane = image.planes[i];
    const bool is_luma = i == 0;
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
  const auto is_high = hn::Gt(code, real(kCiedeLinearTo));
  const R base = hn::Mul(hn::Add(code, real(0.055)), real(1 / 1.055));
  // The power of what is not high is not used; 1 keeps it finite.
  return hn::IfThenElse(
      is_high, power_2_4(hn::IfThenElse(is_high, base, real(1))), hn::Mul(code, real(1 / 12.92)));
}

HWY_INLINE R lab_curve(R x) {
  const auto is_high = hn::Gt(x, real(kCiedeCubeFrom));
  const R line = hn::Mul(hn::Add(hn::Mul(x, real(kCiedeSlope)), real(16)), real(1.0 / 116));
  return hn::IfThenElse(is_high, cube_root(hn::IfThenElse(is_high, x, real(1))), line);
}

void to_lab(const Codes& codes, std::int64_t count, Colors& to) {
  constexpr double kOfCb[] = {0, kCiedeGreenOfCb, kCiedeBlueOfCb};
  constexpr double kOfCr[] = {kCiedeRedOfCr, kCiedeGreenOfCr, 0};
  const Real d;
  Codes light;
  for (std::size_t i = 0; i < light.size(); ++i) {
    for_columns(count, [&](std::size_t x) HWY_ATTR {
      const auto part = [&](std::size_t of, double factor) HWY_ATTR {
        return hn::Mul(hn::Load(d, codes[of].values + x), real(factor));
      };
      const R code =
          hn::Add(hn::Add(hn::Load(d, codes[0].values + x), part(1, kOfCb[i])), part(2, kOfCr[i]));
      hn::Store(linear_light(code), d, light[i].values + x);
    });
  }
  std::array<Floats, 3> f;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const auto& row = kCiedeXyz[i];
    for_columns(count, [&](std::size_t x) HWY_ATTR {
      const auto part = [&](std::size_t of) HWY_ATTR {
        return hn::Mul(hn::Load(d, light[of].values + x), real(row[of]));
      };
      store(lab_curve(hn::Add(hn::Add(part(0), part(1)), part(2))), f[i], x);
    });
  }
  for_columns(count, [&](std::size_t x) HWY_ATTR {
    const R f0 = load(f[0], x), f1 = load(f[1], x), f2 = load(f[2], x);
    store(hn::Sub(hn::Mul(real(116), f1), real(16)), to.l, x);
    store(hn::Mul(real(500), hn::Sub(f0, f1)), to.a, x);
    store(hn::Mul(real(200), hn::Sub(f1, f2)), to.b, x);
  });
}

HWY_INLINE R squared(R x) { return hn::Mul(x, x); }
HWY_INLINE R seventh(R x) {
  const R cube = hn::Mul(squared(x), x);
  return hn::Mul(squared(cube), x);
}
HWY_INLINE R length(R a, R b) { return hn::Sqrt(hn::Add(squared(a), squared(b))); }
HWY_INLINE R mean(R a, R b) { return as_float(hn::Mul(hn::Add(a, b), real(0.5))); }
// sqrt(c⁷/(c⁷ + 25⁷))
HWY_INLINE R saturation(R chroma) {
  const R power = seventh(chroma);
  return hn::Sqrt(hn::Div(power, hn::Add(power, real(6103515625.0))));
}
HWY_INLINE R hue_of(R a, R b) {
  const R none = real(0);
  R angle = as_float(angle_of(b, a));
  angle = hn::IfThenElse(hn::Lt(angle, none), hn::Add(angle, real(2 * std::numbers::pi)), angle);
  return hn::IfThenZeroElse(hn::And(hn::Eq(a, none), hn::Eq(b, none)), angle);
}

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

// Stretches a of both images, and finds their chroma.
void find_chroma(std::int64_t count, Colors& x, Colors& y) {
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R a1 = load(x.a, at), b1 = load(x.b, at), a2 = load(y.a, at), b2 = load(y.b, at);
    const R stretch =
        hn::Sub(real(1), saturation(mean(as_float(length(a1, b1)), as_float(length(a2, b2)))));
    const auto stretched = [&](R a) HWY_ATTR {
      return as_float(hn::Add(a, hn::Mul(hn::Mul(a, real(0.5)), stretch)));
    };
    const R stretched1 = stretched(a1), stretched2 = stretched(a2);
    store(stretched1, x.a, at);
    store(stretched2, y.a, at);
    store(length(stretched1, b1), x.chroma, at);
    store(length(stretched2, b2), y.chroma, at);
  });
}

void find_hue(std::int64_t count, Colors& of) {
  for_columns(count,
      [&](std::size_t x) HWY_ATTR { store(hue_of(load(of.a, x), load(of.b, x)), of.hue, x); });
}

// The difference of hues, as a length, and their mean.
void compare_hues(
    std::int64_t count, const Colors& x, const Colors& y, Floats& differences, Floats& means) {
  constexpr double pi = std::numbers::pi;
  const R none = real(0), turn = real(2 * pi);
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const auto is_grey = [&](const Colors& of) HWY_ATTR {
      return hn::And(hn::Eq(load(of.a, at), none), hn::Eq(load(of.b, at), none));
    };
    const R hue1 = load(x.hue, at), hue2 = load(y.hue, at), step = hn::Sub(hue2, hue1);
    const auto wraps = hn::Gt(hn::Abs(as_float(step)), real(pi));
    const R back = hn::IfThenElse(hn::Le(hue2, hue1), turn, hn::Neg(turn));
    const R hue_step = as_float(hn::Add(step, hn::IfThenElseZero(wraps, back)));
    const R half_step =
        hn::IfThenZeroElse(hn::Or(is_grey(x), is_grey(y)), hn::Mul(hue_step, real(0.5)));
    const R product = as_float(hn::Mul(load(x.chroma, at), load(y.chroma, at)));
    store(hn::Mul(hn::Mul(real(2), hn::Sqrt(product)), sine(half_step)), differences, at);
    const R hues = hn::Add(hn::Add(hue1, hue2), hn::IfThenElseZero(wraps, turn));
    store(hn::Mul(hues, real(0.5)), means, at);
  });
}

// R_T, from the means of chroma and hue.
HWY_INLINE R rotation(R chroma, R hue) {
  constexpr double pi = std::numbers::pi;
  const R bend = hn::Mul(hn::Sub(hn::Mul(hue, real(180 / pi)), real(275)), real(0.04));
  const R tilt = hn::Mul(real(pi / 3), exponential(hn::Neg(squared(bend))));
  return as_float(hn::Mul(hn::Mul(real(-2), saturation(chroma)), sine(tilt)));
}

// The weights of chroma and hue, and R_T.
struct Weights {
  Floats chroma, hue, rotation;
};
void find_weights(std::int64_t count, const Colors& x, const Colors& y, const Floats& hue_means,
    Weights& weights) {
  const auto chroma_mean = [&](std::size_t at)
                               HWY_ATTR { return mean(load(x.chroma, at), load(y.chroma, at)); };
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R chroma = chroma_mean(at);
    store(hn::Add(real(1), hn::Mul(real(0.045), chroma)), weights.chroma, at);
    const R of_hue = hn::Mul(hn::Mul(real(0.015), chroma), hue_weight(load(hue_means, at)));
    store(hn::Add(real(1), of_hue), weights.hue, at);
  });
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    store(rotation(chroma_mean(at), load(hue_means, at)), weights.rotation, at);
  });
}

void find_differences(std::int64_t count, const Colors& x, const Colors& y,
    const Floats& hue_differences, const Weights& weights, Floats& to) {
  const auto quotient = [](R of, float factor, R weight) HWY_ATTR {
    return as_float(
        hn::Div(as_float(of), as_float(hn::Mul(real(static_cast<double>(factor)), weight))));
  };
  for_columns(count, [&](std::size_t at) HWY_ATTR {
    const R l1 = load(x.l, at), l2 = load(y.l, at);
    const R square = squared(hn::Sub(mean(l1, l2), real(50)));
    const R weight_l = as_float(hn::Add(
        real(1), hn::Div(hn::Mul(real(0.015), square), hn::Sqrt(hn::Add(real(20), square)))));
    const R lightness = quotient(hn::Sub(l2, l1), kCiedeLightness, weight_l);
    const R chroma = quotient(
        hn::Sub(load(y.chroma, at), load(x.chroma, at)), kCiedeChroma, load(weights.chroma, at));
    const R hue = quotient(load(hue_differences, at), kCiedeHue, load(weights.hue, at));
    const R squares = hn::Add(hn::Add(squared(lightness), squared(chroma)), squared(hue));
    const R rotated = hn::Mul(load(weights.rotation, at), hn::Mul(chroma, hue));
    // Rounding may leave a little less than nothing.
    store(hn::Sqrt(hn::Max(real(0), hn::Add(squares, rotated))), to, at);
  });
}

// The buffers of a task.
struct Pixels {
  Codes codes;
  Colors x, y;
  Floats hue_differences, hue_means, differences;
  Weights weights;
};

double sum_of_block(const ColorPlanes& reference, const ColorPlanes& distorted, std::int64_t row,
    std::int64_t first, std::int64_t count, Pixels& pixels) {
  auto& [codes, x, y, hue_differences, hue_means, differences, weights] = pixels;
  load_codes(reference, row, first, count, codes);
  to_lab(codes, count, x);
  load_codes(distorted, row, first, count, codes);
  to_lab(codes, count, y);
  find_chroma(count, x, y);
  find_hue(count, x);
  find_hue(count, y);
  compare_hues(count, x, y, hue_differences, hue_means);
  find_weights(count, x, y, hue_means, weights);
  find_differences(count, x, y, hue_differences, weights, differences);
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
  Pixels pixels;
  for (std::int64_t y = first; y < last; ++y) {
    sums[y] = 0;
    for (std::int64_t x = 0; x < width; x += kColumns) {
      sums[y] += sum_of_block(reference, distorted, y, x, std::min(kColumns, width - x), pixels);
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
