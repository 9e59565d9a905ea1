// SPDX-License-Identifier: Apache-2.0
// VIF by loops over 64-bit integers, with nothing shared between windows: the oracle of the other
// backends. Only the constants are formula.h's.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/vmaf/vif/formula.h"

namespace similis::vmaf_internal {
namespace {

struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<std::int64_t> values = {};
  std::int64_t at(std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>(y * width + x)];
  }
};

Image image_of(std::int64_t width, std::int64_t height,
    const std::function<std::int64_t(std::int64_t, std::int64_t)>& at) {
  Image image{width, height};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) image.values.push_back(at(y, x));
  }
  return image;
}

Image filtered(const Image& image, int scale, int shift_down, int shift_across) {
  const int radius = kVifRadius[static_cast<std::size_t>(scale)];
  const Image down = image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    std::int64_t sum = 0;
    for (int k = -radius; k <= radius; ++k) {
      sum += vif_tap(scale, k) * image.at(reflected(y + k, image.height), x);
    }
    return rounded_shift(sum, shift_down);
  });
  return image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    std::int64_t sum = 0;
    for (int k = -radius; k <= radius; ++k) {
      sum += vif_tap(scale, k) * down.at(y, reflected(x + k, image.width));
    }
    return rounded_shift(sum, shift_across);
  });
}

Image halved(const Image& image, int to_scale, int bit_depth) {
  const Image smooth = filtered(image, to_scale, to_scale == 1 ? bit_depth : 16, 16);
  return image_of(image.width / 2, image.height / 2,
      [&](std::int64_t y, std::int64_t x) { return smooth.at(2 * y, 2 * x); });
}

Image product(const Image& a, const Image& b) {
  return image_of(
      a.width, a.height, [&](std::int64_t y, std::int64_t x) { return a.at(y, x) * b.at(y, x); });
}

std::int64_t rounded_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(
      (static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) + (std::uint64_t{1} << 31)) >>
      32);
}

VifScaleSums sums_of(
    const Image& x, const Image& y, int scale, int bit_depth, std::span<const double> gain_limits) {
  const int mean_shift = scale == 0 ? bit_depth : 16;
  const int square_shift = scale == 0 ? 2 * (bit_depth - 8) : 16;
  const Image mean_x = filtered(x, scale, mean_shift, 0),
              mean_y = filtered(y, scale, mean_shift, 0);
  const Image xx = filtered(product(x, x), scale, square_shift, 16);
  const Image yy = filtered(product(y, y), scale, square_shift, 16);
  const Image xy = filtered(product(x, y), scale, square_shift, 16);
  VifScaleSums sums;
  sums.information.assign(gain_limits.size(), 0);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::int64_t m1 = mean_x.values[i], m2 = mean_y.values[i];
    const std::int64_t s1 = xx.values[i] - rounded_product(m1, m1);
    const std::int64_t s2 = std::max<std::int64_t>(0, yy.values[i] - rounded_product(m2, m2));
    const std::int64_t s12 = xy.values[i] - rounded_product(m1, m2);
    if (s1 < kVifNoise) {
      sums.flat_count += 1;
      sums.flat_rest += s2;
      continue;
    }
    sums.reference_information += vif_logarithm(kVifNoise + s1) - 17 * 2048;
    if (s12 <= 0 || s2 <= 0) continue;
    const double gain = static_cast<double>(s12) / (static_cast<double>(s1) + 65536 * 1.0e-10);
    const auto rest =
        static_cast<std::int64_t>(static_cast<double>(s2) - gain * static_cast<double>(s12));
    const std::int64_t noise = std::max<std::int64_t>(0, rest) + kVifNoise;
    for (std::size_t k = 0; k < gain_limits.size(); ++k) {
      const double g = std::min(gain, gain_limits[k]);
      const auto signal = static_cast<std::int64_t>(g * g * static_cast<double>(s1));
      sums.information[k] += vif_logarithm(signal + noise) - vif_logarithm(noise);
    }
  }
  return sums;
}

}  // namespace

VifSums reference_vif(const PlanePair& planes, std::span<const double> gain_limits) {
  const auto image = [](const Plane& plane) {
    return image_of(plane.width, plane.height,
        [&](std::int64_t y, std::int64_t x) { return std::int64_t{plane.at(y, x)}; });
  };
  const int bit_depth = planes.reference.bit_depth;
  Image x = image(planes.reference), y = image(planes.distorted);
  VifSums sums;
  for (int scale = 0; scale < kVifScales; ++scale) {
    if (scale > 0) {
      x = halved(x, scale, bit_depth);
      y = halved(y, scale, bit_depth);
    }
    sums[static_cast<std::size_t>(scale)] = sums_of(x, y, scale, bit_depth, gain_limits);
  }
  return sums;
}

}  // namespace similis::vmaf_internal
