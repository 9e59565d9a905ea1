// SPDX-License-Identifier: Apache-2.0
// One plane after the other, nothing skipped, nothing in stripes; spelled apart from formula.h and
// blur.h, so that each checks the other.
#include "src/ssimulacra2/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "src/core/tensor/dispatch.h"

namespace similis::ssimulacra2_internal {
namespace {

struct Plane {
  std::int64_t height, width;
  std::vector<float> values;

  Plane(std::int64_t h, std::int64_t w)
      : height(h), width(w), values(static_cast<std::size_t>(h * w)) {}
  float& at(std::int64_t y, std::int64_t x) {
    return values[static_cast<std::size_t>(y * width + x)];
  }
  float at(std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>(y * width + x)];
  }
  /// 0 outside.
  float padded(std::int64_t y, std::int64_t x) const {
    return y < 0 || y >= height || x < 0 || x >= width ? 0 : at(y, x);
  }
};
using Planes = std::array<Plane, 3>;

Planes three(std::int64_t height, std::int64_t width) {
  return {Plane(height, width), Plane(height, width), Plane(height, width)};
}

float to_linear(float x) {
  if (x <= 0.04045f) return x * (1 / 12.92f);
  const float p[] = {
      8.210152774e-01f, 7.961564959e-01f, 1.624820318e-01f, 1.043637593e-02f, 2.200248328e-04f};
  const float q[] = {
      6.521209011e-03f, -5.512498495e-02f, 4.987528350e-01f, 1.076976492e+00f, 2.631846970e-01f};
  float numerator = p[0], denominator = q[0];
  for (int i = 1; i < 5; ++i) {
    numerator = std::fma(numerator, x, p[i]);
    denominator = std::fma(denominator, x, q[i]);
  }
  return numerator / denominator;
}

Planes decode(const Pictures& side, std::int64_t picture, float background) {
  const TensorView& view = side.samples;
  const std::int64_t height = side.height(), width = side.width();
  const int colors = side.is_grey() ? 1 : 3;
  const float scale = view.dtype == DType::u8    ? 1 / 255.0f
                      : view.dtype == DType::u16 ? 1 / 65535.0f
                                                 : 1;
  const auto sample = [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    const std::int64_t offset =
        picture * view.strides[0] + c * view.strides[1] + y * view.strides[2] + x * view.strides[3];
    return static_cast<float>(element(view, offset)) * scale;
  };
  Planes planes = three(height, width);
  for (int c = 0; c < 3; ++c) {
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        float value = sample(colors == 1 ? 0 : c, y, x);
        if (side.has_alpha()) {
          const float alpha = sample(colors, y, x);
          const float over = value * alpha, under = (1 - alpha) * background;
          value = over + under;
        }
        planes[static_cast<std::size_t>(c)].at(y, x) =
            side.transfer == Ssimulacra2Transfer::linear ? value : to_linear(value);
      }
    }
  }
  return planes;
}

Plane half(const Plane& plane) {
  Plane result((plane.height + 1) / 2, (plane.width + 1) / 2);
  for (std::int64_t y = 0; y < result.height; ++y) {
    for (std::int64_t x = 0; x < result.width; ++x) {
      float sum = 0;
      for (std::int64_t dy = 0; dy < 2; ++dy) {
        for (std::int64_t dx = 0; dx < 2; ++dx) {
          sum += plane.at(
              std::min(2 * y + dy, plane.height - 1), std::min(2 * x + dx, plane.width - 1));
        }
      }
      result.at(y, x) = sum * .25f;
    }
  }
  return result;
}

float cube_root(float x) {
  const auto i = std::bit_cast<std::uint32_t>(x);
  float r = std::bit_cast<float>(i == 0 ? 0 : 0x54800000u - ((i >> 23) * 0x002AAAAAu));
  const float xa = (1.0f / 3.0f) * x;
  for (int step = 0; step < 3; ++step) {
    const float r2 = r * r, r4 = r2 * r2;
    r = std::fma(-xa, r4, (4.0f / 3.0f) * r);
  }
  const float r2 = r * r, r4 = r2 * r2;
  r = std::fma(1.0f / 3.0f, std::fma(-x, r4, r), r);
  return std::fma(r * r, x, -0x1.3f64eap-3f);
}

void to_xyb(Planes& planes) {
  const float m02 = .078f, m00 = .30f, m01 = 1.0f - m02 - m00;
  const float m12 = .078f, m10 = .23f, m11 = 1.0f - m12 - m10;
  const float m20 = 0.24342268924547819f, m21 = 0.20476744424496821f, m22 = 1.0f - m20 - m21;
  const float bias = .0037930732552754493f;
  for (std::size_t i = 0; i < planes[0].values.size(); ++i) {
    const float r = planes[0].values[i], g = planes[1].values[i], b = planes[2].values[i];
    const auto mix = [&](float m0, float m1, float m2) {
      const float mixed = std::fma(m0, r, std::fma(m1, g, std::fma(m2, b, bias)));
      return cube_root(std::max(mixed, 0.0f));
    };
    const float l = mix(m00, m01, m02), m = mix(m10, m11, m12), s = mix(m20, m21, m22);
    const float opsin_x = .5f * (l - m), opsin_y = .5f * (l + m);
    const float scaled = opsin_x * 14;
    planes[0].values[i] = scaled + .42f;
    planes[1].values[i] = opsin_y + .01f;
    planes[2].values[i] = (s - opsin_y) + .55f;
  }
}

// The coefficients of one section, all in double until they are used.
struct Coefficients {
  double n2, d1;
};

std::array<Coefficients, 3> coefficients() {
  const double n = 5, sigma = 1.5, pi = std::numbers::pi;
  const double w1 = pi / (2 * n), w3 = 3 * w1, w5 = 5 * w1;
  const double p1 = 1 / std::tan(w1 / 2), p3 = -1 / std::tan(w3 / 2), p5 = 1 / std::tan(w5 / 2);
  const double r1 = p1 * p1 / std::sin(w1), r3 = -p3 * p3 / std::sin(w3),
               r5 = p5 * p5 / std::sin(w5);
  const auto rho = [&](double w) { return std::exp(-sigma * sigma * w * w / 2) / n; };
  const double d13 = p1 * r3 - r1 * p3, d35 = p3 * r5 - r3 * p5, d51 = p5 * r1 - r5 * p1;
  const double a = d35 / d13, b = d51 / d13;
  // Gauss-Jordan on [p; r; (a, b, 1)] β = right.
  std::array<std::array<double, 4>, 3> m = {{{p1, p3, p5, 1}, {r1, r3, r5, n * n - sigma * sigma},
      {a, b, 1, a * rho(w1) + b * rho(w3) + rho(w5)}}};
  for (std::size_t column = 0; column < 3; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < 3; ++row) {
      if (std::abs(m[row][column]) > std::abs(m[pivot][column])) pivot = row;
    }
    std::swap(m[column], m[pivot]);
    for (std::size_t row = 0; row < 3; ++row) {
      if (row == column) continue;
      const double factor = m[row][column] / m[column][column];
      for (std::size_t k = 0; k < 4; ++k) m[row][k] -= factor * m[column][k];
    }
  }
  std::array<Coefficients, 3> result;
  const double w[] = {w1, w3, w5};
  for (std::size_t k = 0; k < 3; ++k) {
    const double beta = m[k][3] / m[k][k];
    result[k] = {-beta * std::cos(w[k] * (n + 1)), -2 * std::cos(w[k])};
  }
  return result;
}

// One section along a row: four outputs at a time in the middle, one at its ends.
std::vector<float> section_across(const std::vector<float>& row, const Coefficients& of) {
  const auto width = static_cast<std::int64_t>(row.size());
  const auto at = [&](std::int64_t n) {
    return n < 0 || n >= width ? 0.0f : row[static_cast<std::size_t>(n)];
  };
  const double d1 = of.d1, d2 = d1 * d1, n2 = of.n2;
  const float previous[] = {static_cast<float>(-d1), static_cast<float>(d2 - 1),
      static_cast<float>(-d2 * d1 + 2 * d1), static_cast<float>(d2 * d2 - 3 * d2 + 1)};
  const float before[] = {-1, static_cast<float>(d1), static_cast<float>(-d2 + 1),
      static_cast<float>(d2 * d1 - 2 * d1)};
  const float input[] = {static_cast<float>(n2), static_cast<float>(-d1 * n2),
      static_cast<float>(d2 * n2 - n2), static_cast<float>(-d2 * d1 * n2 + 2 * d1 * n2)};
  std::vector<float> out(row.size());
  float y1 = 0, y2 = 0;
  for (std::int64_t n = -4; n < width;) {
    if (n >= 8 && n < width - 7) {
      float in[4], o[4];
      for (int j = 0; j < 4; ++j) in[j] = at(n + j - 6) + at(n + j + 4);
      for (int j = 0; j < 4; ++j) {
        o[j] = input[j] * in[0];
        for (int k = 1; k <= j; ++k) o[j] = std::fma(input[j - k], in[k], o[j]);
        o[j] = std::fma(before[j], y2, o[j]);
        o[j] = std::fma(previous[j], y1, o[j]);
        out[static_cast<std::size_t>(n + j)] = o[j];
      }
      y2 = o[2];
      y1 = o[3];
      n += 4;
    } else {
      float o = (at(n - 6) + at(n + 4)) * static_cast<float>(n2);
      o = std::fma(-1.0f, y2, o);
      o = std::fma(static_cast<float>(-d1), y1, o);
      y2 = y1;
      y1 = o;
      if (n >= 0) out[static_cast<std::size_t>(n)] = o;
      ++n;
    }
  }
  return out;
}

Plane recursive_blur(const Plane& plane) {
  static const std::array<Coefficients, 3> sections = coefficients();
  Plane across(plane.height, plane.width), result = across;
  for (std::int64_t y = 0; y < plane.height; ++y) {
    const auto first = plane.values.begin() + y * plane.width;
    const std::vector<float> row(first, first + plane.width);
    const auto y1 = section_across(row, sections[0]), y3 = section_across(row, sections[1]),
               y5 = section_across(row, sections[2]);
    for (std::size_t x = 0; x < row.size(); ++x) {
      across.at(y, static_cast<std::int64_t>(x)) = y1[x] + (y3[x] + y5[x]);
    }
  }
  for (std::int64_t x = 0; x < plane.width; ++x) {
    float previous[3] = {}, before[3] = {};
    for (std::int64_t n = -4; n < plane.height; ++n) {
      const float sum = across.padded(n - 6, x) + across.padded(n + 4, x);
      float y[3];
      for (std::size_t k = 0; k < 3; ++k) {
        const auto d1 = static_cast<float>(sections[k].d1), n2 = static_cast<float>(sections[k].n2);
        const float u = -std::fma(d1, previous[k], before[k]);
        y[k] = std::fma(n2, sum, u);
        before[k] = previous[k];
        previous[k] = y[k];
      }
      if (n >= 0) result.at(n, x) = y[0] + (y[1] + y[2]);
    }
  }
  return result;
}

Plane finite_blur(const Plane& plane) {
  const float h[] = {.26462110548819856f, .21292859201042219f, .10933537277746029f,
      .036011114658364374f, .0094143678096537328f};
  Plane across(plane.height, plane.width), result = across;
  for (const bool down : {false, true}) {
    const Plane& from = down ? across : plane;
    Plane& to = down ? result : across;
    for (std::int64_t y = 0; y < plane.height; ++y) {
      for (std::int64_t x = 0; x < plane.width; ++x) {
        const auto sample = [&](int k) {
          return down ? from.padded(y + k, x) : from.padded(y, x + k);
        };
        float sum = h[4] * sample(-4);
        for (int k = -3; k <= 4; ++k) sum = std::fma(h[std::abs(k)], sample(k), sum);
        to.at(y, x) = sum;
      }
    }
  }
  return result;
}

Plane multiplied(const Plane& a, const Plane& b) {
  Plane result = a;
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] *= b.values[i];
  return result;
}

// Mean and 4-norm of the three terms of one channel.
struct Norms {
  double of[2][3];
};

Norms norms_of(const Plane& x, const Plane& y, Ssimulacra2Mode mode) {
  const auto blur = mode == Ssimulacra2Mode::exact ? recursive_blur : finite_blur;
  const Plane s11 = blur(multiplied(x, x)), s22 = blur(multiplied(y, y)),
              s12 = blur(multiplied(x, y)), mu1 = blur(x), mu2 = blur(y);
  double sums[2][3] = {};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const float m1 = mu1.values[i], m2 = mu2.values[i];
    const float m11 = m1 * m1, m22 = m2 * m2, m12 = m1 * m2, apart = (m1 - m2) * (m1 - m2);
    const float means = static_cast<float>(1.0 - static_cast<double>(apart));
    const float doubled = 2 * (s12.values[i] - m12), numerator = doubled + 0.0009f;
    const float denominator = (s11.values[i] - m11) + (s22.values[i] - m22) + 0.0009f;
    const float q = means * numerator / denominator;
    const double edge_x = 1.0 + static_cast<double>(std::fabs(x.values[i] - m1));
    const double edge_y = 1.0 + static_cast<double>(std::fabs(y.values[i] - m2));
    const double v = edge_y / edge_x - 1.0;
    const double terms[] = {
        std::max(0.0, 1.0 - static_cast<double>(q)), std::max(v, 0.0), std::max(-v, 0.0)};
    for (int t = 0; t < 3; ++t) {
      sums[0][t] += terms[t];
      sums[1][t] += terms[t] * terms[t] * (terms[t] * terms[t]);
    }
  }
  Norms norms{};
  const double pixels = static_cast<double>(x.values.size());
  for (int t = 0; t < 3; ++t) {
    norms.of[0][t] = sums[0][t] / pixels;
    norms.of[1][t] = std::sqrt(std::sqrt(sums[1][t] / pixels));
  }
  return norms;
}

double score_of(Planes x, Planes y, Ssimulacra2Mode mode) {
  std::vector<std::array<Norms, 3>> scales;
  for (;;) {
    Planes xyb_x = x, xyb_y = y;
    to_xyb(xyb_x);
    to_xyb(xyb_y);
    scales.push_back({norms_of(xyb_x[0], xyb_y[0], mode), norms_of(xyb_x[1], xyb_y[1], mode),
        norms_of(xyb_x[2], xyb_y[2], mode)});
    if (scales.size() == 6 || std::min(x[0].height, x[0].width) < 8) break;
    x = {half(x[0]), half(x[1]), half(x[2])};
    y = {half(y[0]), half(y[1]), half(y[2])};
  }
  double s = 0;
  const double* weight = kScoreWeights.of;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (const std::array<Norms, 3>& scale : scales) {
      for (const auto& norm : scale[channel].of) {
        for (const double term : norm) s += *weight++ * term;
      }
    }
  }
  s *= 0.9562382616834844;
  s = 2.326765642916932 * s - 0.020884521182843837 * s * s + 6.248496625763138e-05 * s * s * s;
  return s > 0 ? 100 - 10 * std::pow(s, 0.6276336467831387) : 100;
}

}  // namespace

std::vector<double> reference_ssimulacra2(
    const Pictures& x, const Pictures& y, Ssimulacra2Mode mode) {
  std::vector<double> scores;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    double lowest = 0;
    const std::vector<float> backgrounds =
        x.has_alpha() ? std::vector<float>{.1f, .9f} : std::vector<float>{.5f};
    for (std::size_t k = 0; k < backgrounds.size(); ++k) {
      const double score =
          score_of(decode(x, i, backgrounds[k]), decode(y, i, backgrounds[k]), mode);
      lowest = k == 0 ? score : std::min(lowest, score);
    }
    scores.push_back(lowest);
  }
  return scores;
}

}  // namespace similis::ssimulacra2_internal
