// SPDX-License-Identifier: Apache-2.0
// CAMBI by loops over windows: the oracle of the other backends.
#include <algorithm>
#include <functional>

#include "src/vmaf/cambi/cambi.h"

namespace similis::vmaf_internal {
namespace {

struct Image {
  std::int64_t width, height;
  std::vector<int> values;
  int& at(std::int64_t y, std::int64_t x) {
    return values[static_cast<std::size_t>(y * width + x)];
  }
  int at(std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>(y * width + x)];
  }
};

template <class Value> Image image_of(std::int64_t width, std::int64_t height, const Value& value) {
  Image image{width, height, {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) image.values.push_back(value(y, x));
  }
  return image;
}

Image ten_bits(const Plane& plane, int encoded_bits) {
  const int depth = plane.bit_depth;
  const Image image = image_of(plane.width, plane.height, [&](std::int64_t y, std::int64_t x) {
    const int value = plane.at(y, x);
    return depth < 10 ? value << (10 - depth) : static_cast<int>(rounded_shift(value, depth - 10));
  });
  if ((encoded_bits == 0 ? depth : encoded_bits) >= 10) return image;
  return image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    const bool has_right = x + 1 < image.width, has_below = y + 1 < image.height;
    const int here = image.at(y, x);
    if (has_right && has_below) {
      return (here + image.at(y, x + 1) + image.at(y + 1, x) + image.at(y + 1, x + 1)) >> 2;
    }
    if (has_below) return (here + image.at(y + 1, x)) >> 1;
    return has_right ? (here + image.at(y, x + 1)) >> 1 : here;
  });
}

Image mask_of(const Image& image) {
  const Image flat = image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    const int here = image.at(y, x);
    return (x + 1 == image.width || image.at(y, x + 1) == here) &&
           (y + 1 == image.height || image.at(y + 1, x) == here);
  });
  const int least = cambi_least_flat(image.width, image.height);
  return image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    int count = 0;
    for (std::int64_t i = std::max<std::int64_t>(0, y - 3); i <= std::min(image.height - 1, y + 3);
         ++i) {
      for (std::int64_t j = std::max<std::int64_t>(0, x - 3); j <= std::min(image.width - 1, x + 3);
           ++j) {
        count += flat.at(i, j);
      }
    }
    return count > least;
  });
}

Image halved(const Image& image) {
  return image_of((image.width + 1) / 2, (image.height + 1) / 2,
      [&](std::int64_t y, std::int64_t x) { return image.at(2 * y, 2 * x); });
}

int mode(int a, int b, int c) {
  if (a == b || a == c) return a;
  return b == c ? b : std::min({a, b, c});
}

Image smoothed(const Image& image) {
  const Image across = image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    if (x == 0 || x + 1 == image.width) return image.at(y, x);
    return mode(image.at(y, x - 1), image.at(y, x), image.at(y, x + 1));
  });
  return image_of(image.width, image.height, [&](std::int64_t y, std::int64_t x) {
    if (y == 0 || y + 1 == image.height) return image.at(y, x);
    return mode(across.at(y - 1, x), across.at(y, x), across.at(y + 1, x));
  });
}

float contrast(const Image& image, const Image& mask, std::int64_t y, std::int64_t x,
    std::int64_t radius, const CambiLimits& limits, const std::vector<float>& inverses) {
  const int value = image.at(y, x);
  const auto count = [&](int wanted) {
    int places = 0;
    for (std::int64_t i = std::max<std::int64_t>(0, y - radius);
         i <= std::min(image.height - 1, y + radius); ++i) {
      for (std::int64_t j = std::max<std::int64_t>(0, x - radius);
           j <= std::min(image.width - 1, x + radius); ++j) {
        places += mask.at(i, j) != 0 && image.at(i, j) == wanted;
      }
    }
    return places;
  };
  const auto steps = static_cast<int>(limits.largest.size());
  const int own = count(value);
  float largest = 0;
  for (int step = 1; step <= steps; ++step) {
    const auto at = static_cast<std::size_t>(step - 1);
    if (value > limits.largest[at] || value + steps + step <= limits.least) continue;
    const int other = std::max(count(value + step), count(value - step));
    largest = std::max(largest, static_cast<float>(kCambiWeights[at] * own * other) *
                                    inverses[static_cast<std::size_t>(own + other)]);
  }
  return largest;
}

}  // namespace

double reference_cambi(const Plane& plane, const CambiSetting& setting) {
  const CambiLimits limits = cambi_limits(setting);
  const CambiWindow window = cambi_window(setting, plane.width, plane.height);
  const std::vector<float> inverses = cambi_inverses(window.places());
  Image image = ten_bits(plane, setting.encoded_bits);
  Image mask = mask_of(image);
  std::array<double, kCambiScales> scores{};
  for (std::size_t scale = 0; scale < scores.size(); ++scale) {
    if (scale > 0 || window.is_halved) {
      image = halved(image);
      mask = halved(mask);
    }
    image = smoothed(image);
    std::vector<float> contrasts;
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        contrasts.push_back(
            mask.at(y, x) != 0 ? contrast(image, mask, y, x, window.radius, limits, inverses) : 0);
      }
    }
    std::sort(contrasts.begin(), contrasts.end(), std::greater<>());
    const auto top = std::max<std::size_t>(
        1, static_cast<std::size_t>(setting.top_share * static_cast<double>(contrasts.size())));
    double sum = 0;
    for (std::size_t i = 0; i < top; ++i) sum += static_cast<double>(contrasts[i]);
    scores[scale] = sum / static_cast<double>(top);
  }
  return cambi_of_scales(scores, window);
}

}  // namespace similis::vmaf_internal
