// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/lettering.h"

#include <algorithm>
#include <cmath>

#include "src/cli/terminal/glyphs.h"

namespace similis::cli {

std::int64_t dot_for(std::int64_t width) {
  constexpr double kLetterShare = 0.015;
  const double height = kLetterShare * static_cast<double>(width);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(height / kGlyphHeight)));
}

void fill(media::Image& image, std::int64_t left, std::int64_t top, std::int64_t width,
    std::int64_t height, const Rgb& color) {
  const std::int64_t right = std::min(left + width, image.width);
  const std::int64_t bottom = std::min(top + height, image.height);
  for (std::int64_t y = std::max<std::int64_t>(top, 0); y < bottom; ++y) {
    for (std::int64_t x = std::max<std::int64_t>(left, 0); x < right; ++x) {
      const auto first = image.samples8.begin() + (y * image.width + x) * image.channels;
      if (image.channels == 1) {
        *first = color[1];
      } else {
        std::copy(color.begin(), color.end(), first);
      }
    }
  }
}

void write(media::Image& image, std::int64_t left, std::int64_t top, std::int64_t dot,
    const std::string& text) {
  draw_text(
      text, [&](int x, int y) { fill(image, left + x * dot, top + y * dot, dot, dot, kInk); });
}

void draw_labels(const std::vector<Label>& labels, std::int64_t dot, media::Image& image) {
  const std::int64_t rim = 2 * dot;
  for (const Label& label : labels) {
    const std::int64_t width = text_width(label.text) * dot + 2 * rim;
    const std::int64_t height = kGlyphHeight * dot + 2 * rim;
    const auto before = [](std::int64_t extent, double share) {
      return static_cast<std::int64_t>(std::lround(static_cast<double>(extent) * share));
    };
    const std::int64_t left = label.x - before(width, label.share_left);
    const std::int64_t top = label.y - before(height, label.share_above);
    fill(image, left, top, width, height, kPaper);
    write(image, left + rim, top + rim, dot, label.text);
  }
}

}  // namespace similis::cli
