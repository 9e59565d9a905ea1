// SPDX-License-Identifier: Apache-2.0
#include "src/window/window.h"

#include <cmath>
#include <cstddef>

#include "src/core/require.h"

namespace similis {

std::vector<double> gaussian_taps(int window_size, double sigma) {
  const int radius = window_size / 2;
  std::vector<double> taps;
  double sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(std::exp(-(i / sigma) * (i / sigma) / 2));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

std::vector<float> taps_in_f32(const std::vector<double>& taps) {
  std::vector<float> result;
  double rest = 1;
  for (const double tap : taps) {
    const double rounded = std::round(tap * 0x1p24) * 0x1p-24;
    result.push_back(static_cast<float>(rounded));
    rest -= rounded;
  }
  result[result.size() / 2] += static_cast<float>(rest);
  return result;
}

Window gaussian_window(const char* operation, const PerAxis<int>& window_size,
    const PerAxis<double>& sigma, const Extents& image_shape) {
  const int spatial = image_shape.rank() - 2;
  require(window_size.count() == 1 || window_size.count() == spatial,
      "{}: window_size has {} numbers; it takes one, or one for each of the {} axes", operation,
      window_size.count(), spatial);
  require(sigma.count() == 1 || sigma.count() == spatial,
      "{}: sigma has {} numbers; it takes one, or one for each of the {} axes", operation,
      sigma.count(), spatial);
  Window window{.z = {1.0},
      .y = gaussian_taps(window_size.y(), sigma.y()),
      .x = gaussian_taps(window_size.x(), sigma.x())};
  if (spatial == 3) window.z = gaussian_taps(window_size.z(), sigma.z());
  return window;
}

Window window_of(const char* operation, WindowShape shape, const PerAxis<int>& window_size,
    const PerAxis<double>& sigma, const Extents& image_shape) {
  if (shape == WindowShape::gaussian) {
    return gaussian_window(operation, window_size, sigma, image_shape);
  }
  Window window = gaussian_window(operation, window_size, 1.0, image_shape);
  for (auto* taps : {&window.z, &window.y, &window.x}) {
    taps->assign(taps->size(), 1 / static_cast<double>(taps->size()));
  }
  return window;
}

double pixel_count(const Window& window) {
  return static_cast<double>(window.z.size()) * static_cast<double>(window.y.size()) *
         static_cast<double>(window.x.size());
}

void require_room_for_window(
    const char* operation, const Extents& image_shape, const Window& window, Padding padding) {
  const int last = image_shape.rank() - 1;
  const auto check = [&](const char* axis, std::int64_t extent, std::int64_t radius) {
    require(padding != Padding::valid || extent >= 2 * radius + 1,
        "{}: {} is {}; with padding valid it must be at least window_size, {}", operation, axis,
        extent, 2 * radius + 1);
    require(padding != Padding::reflect || extent > radius,
        "{}: {} is {}; with padding reflect it must be more than half the window, {}", operation,
        axis, extent, radius);
  };
  if (image_shape.rank() == 5) check("depth", image_shape[2], window.radius_z());
  check("height", image_shape[last - 1], window.radius_y());
  check("width", image_shape[last], window.radius_x());
}

Extents map_shape(const Extents& volumes, const Window& window, Padding padding) {
  Extents shape = volumes;
  if (padding != Padding::valid) return shape;
  shape[2] -= 2 * window.radius_z();
  shape[3] -= 2 * window.radius_y();
  shape[4] -= 2 * window.radius_x();
  return shape;
}

}  // namespace similis
