// SPDX-License-Identifier: Apache-2.0
// Letters and rectangles on pictures of 8 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/cli/maps/color_scale.h"
#include "src/media/picture/image.h"

namespace similis::cli {

inline constexpr Rgb kPaper = {255, 255, 255}, kInk = {32, 32, 36};

/// Pixels of a letter's dot, so that letters are at least 1.5 % as high as a picture of this width.
std::int64_t dot_for(std::int64_t width);

/// Fills the part of a rectangle that lies in a picture of 1 or 3 channels; grey gets the green.
void fill(media::Image& image, std::int64_t left, std::int64_t top, std::int64_t width,
    std::int64_t height, const Rgb& color);

void write(media::Image& image, std::int64_t left, std::int64_t top, std::int64_t dot,
    const std::string& text);

/// A text on a box of paper. Its point is the box's left or right edge, or its middle where the
/// share is 0.5, and likewise down.
struct Label {
  std::int64_t x = 0, y = 0;
  double share_left = 0, share_above = 0;  ///< 0, 0.5 or 1: how much of the box is before the point
  std::string text;
};
void draw_labels(const std::vector<Label>& labels, std::int64_t dot, media::Image& image);

}  // namespace similis::cli
