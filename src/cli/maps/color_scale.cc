// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/color_scale.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace similis::cli {
namespace {

constexpr std::size_t kColors = 1024;  // fine enough that neighbours differ by one code value

std::uint8_t srgb_code(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double encoded = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * encoded));
}

// Oklab to sRGB; B. Ottosson, "A perceptual color space for image processing", 2020.
Rgb oklab_to_srgb(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {srgb_code(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
      srgb_code(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
      srgb_code(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

// Lightness rises evenly while the hue turns from indigo over red to pale yellow; the colours are
// fullest in the middle, where sRGB has room for them.
Rgb formula(double position) {
  const double lightness = 0.13 + 0.84 * position;
  const double hue = (280 + 185 * position) * std::numbers::pi / 180;
  const double chroma = 0.03 + 0.15 * std::sin(std::numbers::pi * std::pow(position, 0.9));
  return oklab_to_srgb(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

std::array<Rgb, kColors> make_table() {
  std::array<Rgb, kColors> table;
  for (std::size_t i = 0; i < kColors; ++i) {
    table[i] = formula(static_cast<double>(i) / (kColors - 1));
  }
  return table;
}

}  // namespace

double scale_position(double value, const MapRange& range) {
  const double loss = (range.best - value) / (range.best - range.worst);
  return std::sqrt(std::clamp(loss, 0.0, 1.0));
}

Rgb scale_color(double position) {
  static const std::array<Rgb, kColors> table = make_table();
  return table[static_cast<std::size_t>(std::lround(position * (kColors - 1)))];
}

}  // namespace similis::cli
