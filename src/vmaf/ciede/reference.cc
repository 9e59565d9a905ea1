// SPDX-License-Identifier: Apache-2.0
// CIEDE2000 pixel by pixel, as its paper has it: the oracle of the other backends.
#include <numbers>

#include "src/vmaf/ciede/ciede.h"

namespace similis::vmaf_internal {
namespace {

constexpr double kPi = std::numbers::pi;

struct Lab {
  float l, a, b;
};

double linear_light(double code) {
  return code > kCiedeLinearTo ? std::pow((code + 0.055) / 1.055, 2.4) : code / 12.92;
}

float lab_curve(double value) {
  return static_cast<float>(
      value > kCiedeCubeFrom ? std::pow(value, 1.0 / 3) : (kCiedeSlope * value + 16) / 116);
}

Lab lab_of(double y, double cb, double cr) {
  const std::array<double, 3> light = {linear_light(y + kCiedeRedOfCr * cr),
      linear_light(y + kCiedeGreenOfCb * cb + kCiedeGreenOfCr * cr),
      linear_light(y + kCiedeBlueOfCb * cb)};
  std::array<double, 3> f{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& row = kCiedeXyz[i];
    f[i] =
        static_cast<double>(lab_curve(row[0] * light[0] + row[1] * light[1] + row[2] * light[2]));
  }
  return {static_cast<float>(116 * f[1] - 16), static_cast<float>(500 * (f[0] - f[1])),
      static_cast<float>(200 * (f[1] - f[2]))};
}

float hue_of(float a, float b) {
  if (a == 0 && b == 0) return 0;
  const auto angle = static_cast<float>(std::atan2(static_cast<double>(b), static_cast<double>(a)));
  return angle < 0 ? static_cast<float>(static_cast<double>(angle) + 2 * kPi) : angle;
}

float difference(const Lab& x, const Lab& y) {
  const auto squared = [](double value) { return value * value; };
  const auto length = [&](float a, float b) {
    return static_cast<float>(std::sqrt(squared(a) + squared(b)));
  };
  const float c1 = length(x.a, x.b), c2 = length(y.a, y.b), c_mean = (c1 + c2) / 2;
  const double c7 = std::pow(static_cast<double>(c_mean), 7);
  const double stretch = 1 - std::sqrt(c7 / (c7 + std::pow(25.0, 7)));
  const auto a1 =
      static_cast<float>(static_cast<double>(x.a) + static_cast<double>(x.a) / 2 * stretch);
  const auto a2 =
      static_cast<float>(static_cast<double>(y.a) + static_cast<double>(y.a) / 2 * stretch);
  const float chroma1 = length(a1, x.b), chroma2 = length(a2, y.b);
  const float chroma_mean = (chroma1 + chroma2) / 2;
  const float hue1 = hue_of(a1, x.b), hue2 = hue_of(a2, y.b);
  const double turn = static_cast<double>(hue2) - static_cast<double>(hue1);
  const bool wraps = static_cast<double>(std::abs(hue1 - hue2)) > kPi;
  float hue_step = 0;
  if (c1 != 0 && c2 != 0) {
    hue_step = static_cast<float>(!wraps ? turn : hue2 <= hue1 ? turn + 2 * kPi : turn - 2 * kPi);
  }
  const auto hue_difference =
      static_cast<float>(2 * std::sqrt(static_cast<double>(chroma1 * chroma2)) *
                         std::sin(static_cast<double>(hue_step) / 2));
  const auto h = static_cast<double>(static_cast<float>(
      (static_cast<double>(hue1) + static_cast<double>(hue2) + (wraps ? 2 * kPi : 0)) / 2));
  const auto t =
      static_cast<float>(1 - 0.17 * std::cos(h - kPi / 6) + 0.24 * std::cos(2 * h) +
                         0.32 * std::cos(3 * h + kPi / 30) - 0.2 * std::cos(4 * h - 7 * kPi / 20));
  const double l = static_cast<double>((x.l + y.l) / 2) - 50;
  const auto weight_l = static_cast<float>(1 + 0.015 * l * l / std::sqrt(20 + l * l));
  const auto weight_c = static_cast<float>(1 + 0.045 * static_cast<double>(chroma_mean));
  const auto weight_h =
      static_cast<float>(1 + 0.015 * static_cast<double>(chroma_mean) * static_cast<double>(t));
  const double m7 = std::pow(static_cast<double>(chroma_mean), 7);
  const double bend = (h * 180 / kPi - 275) / 25;
  const auto rotation = static_cast<float>(
      -2 * std::sqrt(m7 / (m7 + std::pow(25.0, 7))) * std::sin(kPi / 3 * std::exp(-bend * bend)));
  const float lightness = (y.l - x.l) / (kCiedeLightness * weight_l);
  const float chroma = (chroma2 - chroma1) / (kCiedeChroma * weight_c);
  const float hue = hue_difference / (kCiedeHue * weight_h);
  return static_cast<float>(std::sqrt(squared(lightness) + squared(chroma) + squared(hue) +
                                      static_cast<double>(rotation * chroma * hue)));
}

}  // namespace

double reference_ciede(const ColorPlanes& reference, const ColorPlanes& distorted) {
  const Plane& luma = reference.planes[0];
  const double scale = 1 << (luma.bit_depth - 8);
  const auto lab = [&](const ColorPlanes& image, std::int64_t y, std::int64_t x) {
    const auto chroma = [&](std::size_t plane) {
      const int code = image.planes[plane].at(y >> image.row_shift, x >> image.column_shift);
      return (code - 128 * scale) / (224 * scale);
    };
    return lab_of((image.planes[0].at(y, x) - 16 * scale) / (219 * scale), chroma(1), chroma(2));
  };
  double sum = 0;
  for (std::int64_t y = 0; y < luma.height; ++y) {
    for (std::int64_t x = 0; x < luma.width; ++x) {
      sum += static_cast<double>(difference(lab(reference, y, x), lab(distorted, y, x)));
    }
  }
  return sum / static_cast<double>(luma.width * luma.height);
}

}  // namespace similis::vmaf_internal
