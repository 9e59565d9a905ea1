// SPDX-License-Identifier: Apache-2.0
// A separable window: the taps along z, y and x, each of odd length with its centre in the middle.
#pragma once

#include <vector>

#include "similis/tensor.hpp"
#include "similis/window.hpp"
#include "src/window/tile.h"

namespace similis {

/// exp(-(i-r)²/2σ²), normalised to sum to 1.
std::vector<double> gaussian_taps(int window_size, double sigma);

/// Taps for a kernel that adds in f32: multiples of 2⁻²⁴, so that their sum is exactly 1 in any
/// order and a flat area keeps its value.
std::vector<float> taps_in_f32(const std::vector<double>& taps);

struct Window {
  std::vector<double> z = {1.0}, y = {1.0}, x = {1.0};

  int radius_z() const { return static_cast<int>(z.size() / 2); }
  int radius_y() const { return static_cast<int>(y.size() / 2); }
  int radius_x() const { return static_cast<int>(x.size() / 2); }
};

/// The taps of a Gaussian window over images of this shape, from options that are checked. Refuses
/// counts that do not fit the images' axes; `operation` names the caller.
Window gaussian_window(const char* operation, const PerAxis<int>& window_size,
    const PerAxis<double>& sigma, const Extents& image_shape);

/// The same for a window of either shape; sigma is not read for a box. The taps sum to 1.
Window window_of(const char* operation, WindowShape shape, const PerAxis<int>& window_size,
    const PerAxis<double>& sigma, const Extents& image_shape);

/// The number of pixels in a window.
double pixel_count(const Window& window);

/// Refuses images that are too small for the window with this padding.
void require_room_for_window(
    const char* operation, const Extents& image_shape, const Window& window, Padding padding);

/// The pixels whose windows count, of part of a larger image.
struct CountedPixels {
  Interval z = kEverywhere, y = kEverywhere;

  bool are_all() const { return z.last == kEverywhere.last && y.last == kEverywhere.last; }
};

/// The pixels of the rows that an option says, of images of this shape. Refuses rows outside the
/// images, rows that no window is centred on, and images with rows that none of these windows sees.
CountedPixels counted_pixels(const char* operation, const RowRange& rows,
    const Extents& image_shape, const Window& window, Padding padding);

/// Shape of the map over volumes [N,C,D,H,W]: theirs, less window_size - 1 along each axis with
/// padding valid, and no more than the counted pixels.
Extents map_shape(const Extents& volumes, const Window& window, Padding padding,
    const CountedPixels& counted = {});

}  // namespace similis
