// SPDX-License-Identifier: Apache-2.0
#include "src/window/window.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "src/core/require.h"
#include "src/window/axis.h"

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

CountedPixels counted_pixels(const char* operation, const RowRange& rows,
    const Extents& image_shape, const Window& window, Padding padding) {
  if (rows.first == 0 && rows.end == 0) return {};
  const bool is_volume = image_shape.rank() == 5;
  const std::vector<double>& taps = is_volume ? window.z : window.y;
  const std::int64_t extent = image_shape[2];
  require(rows.first >= 0 && rows.first < rows.end && rows.end <= extent,
      "{}: rows is ({}, {}) and the images have {} rows; give the first of them and the one behind "
      "the last",
      operation, rows.first, rows.end, extent);
  const Interval counted{rows.first, rows.end};
  const Interval centres = Axis(extent, taps, padding, counted).centres();
  require(centres.first < centres.last,
      "{}: rows is ({}, {}); no window is centred there with padding valid", operation, rows.first,
      rows.end);
  const auto radius = static_cast<std::int64_t>(taps.size() / 2);
  require(centres.first <= radius && centres.last + radius >= extent,
      "{}: rows is ({}, {}) of {}; windows there see rows {} to {} alone: give these", operation,
      rows.first, rows.end, extent, std::max<std::int64_t>(centres.first - radius, 0),
      std::min(centres.last + radius, extent) - 1);
  return is_volume ? CountedPixels{.z = counted} : CountedPixels{.y = counted};
}

Extents map_shape(
    const Extents& volumes, const Window& window, Padding padding, const CountedPixels& counted) {
  const auto centres = [&](int axis, const std::vector<double>& taps, const Interval& pixels) {
    const Axis along(volumes[axis], taps, padding, pixels);
    return along.last_centre() - along.first_centre();
  };
  return {volumes[0], volumes[1], centres(2, window.z, counted.z), centres(3, window.y, counted.y),
      centres(4, window.x, kEverywhere)};
}

}  // namespace similis
