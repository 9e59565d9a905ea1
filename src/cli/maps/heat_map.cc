// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/cli/maps/color_scale.h"
#include "src/cli/terminal/glyphs.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

// Sizes of the legend, in dots; a dot is one pixel or more, so that the legend of a large picture
// stays readable when the picture is shrunk to a screen.
constexpr int kMargin = 6;
constexpr int kBarHeight = 12;
constexpr int kTickHeight = 3;
constexpr int kGap = 3;
constexpr int kLegendHeight =
    kMargin + kGlyphHeight + kGap + kBarHeight + kTickHeight + kGap + kGlyphHeight + kMargin;
constexpr int kNarrowest = 200;      // minimum width of the legend
constexpr int kColumnsPerDot = 450;  // of the picture
constexpr int kRowsPerDot = 150;

constexpr Rgb kPaper = {255, 255, 255};
constexpr Rgb kOutside = {128, 128, 128};
constexpr Rgb kInk = {32, 32, 36};

// Shares of the loss, from best to worst, that get a label if there is room.
constexpr double kTicks[] = {0, 1, 0.4, 0.1, 0.01, 0.05, 0.2, 0.6, 0.8};

class Canvas {
 public:
  Canvas(std::int64_t width, std::int64_t height) {
    image_ = {.width = width, .height = height, .channels = 3};
    image_.samples8.assign(static_cast<std::size_t>(width * height * 3), kPaper[0]);
    image_.format = "PNG";
  }

  void set(std::int64_t x, std::int64_t y, const Rgb& color) {
    std::copy(color.begin(), color.end(), image_.samples8.begin() + (y * image_.width + x) * 3);
  }
  void fill(
      std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, const Rgb& color) {
    for (std::int64_t row = y; row < y + height; ++row) {
      for (std::int64_t column = x; column < x + width; ++column) set(column, row, color);
    }
  }
  void write(std::int64_t left, std::int64_t top, std::int64_t dot, const std::string& text) {
    draw_text(text, [&](int x, int y) { fill(left + x * dot, top + y * dot, dot, dot, kInk); });
  }
  const media::Image& image() const { return image_; }

 private:
  media::Image image_;
};

template <class T> void draw_map(const Tensor& map, const MapRange& range, Canvas& canvas) {
  const std::int64_t channels = map.shape[1], height = map.shape[2], width = map.shape[3];
  const T* values = map.elements<T>();
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      double sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) sum += values[(c * height + y) * width + x];
      const double mean = sum / static_cast<double>(channels);
      canvas.set(x, y, std::isnan(mean) ? kOutside : scale_color(scale_position(mean, range)));
    }
  }
}

// Labels do not overlap; those earlier in kTicks have priority.
void draw_labels(const MapRange& range, std::int64_t left, std::int64_t top, std::int64_t width,
    std::int64_t dot, Canvas& canvas) {
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const double share : kTicks) {
    const double value = range.best + share * (range.worst - range.best);
    const std::string label = fmt::format("{:g}", value);
    const auto x = static_cast<std::int64_t>(
        std::lround(scale_position(value, range) * static_cast<double>(width - 1)));
    const std::int64_t half = text_width(label) * dot / 2;
    const std::int64_t first = std::clamp(x - half, std::int64_t{0}, width - 2 * half);
    const std::int64_t last = first + 2 * half + kGlyphAdvance * dot;
    const bool is_free = std::none_of(taken.begin(), taken.end(),
        [&](const auto& other) { return first < other.second && other.first < last; });
    if (!is_free) continue;
    taken.emplace_back(first, last);
    canvas.fill(left + std::min(x, width - dot), top, dot, kTickHeight * dot, kInk);
    canvas.write(left + first, top + (kTickHeight + kGap) * dot, dot, label);
  }
}

void draw_legend(const MapRange& range, const std::string& title, std::int64_t top,
    std::int64_t dot, Canvas& canvas) {
  const std::int64_t left = kMargin * dot, width = canvas.image().width - 2 * left;
  std::int64_t y = top + kMargin * dot;
  canvas.write(left, y, dot, title);
  y += (kGlyphHeight + kGap) * dot;
  for (std::int64_t x = 0; x < width; ++x) {
    const double position = static_cast<double>(x) / static_cast<double>(width - 1);
    canvas.fill(left + x, y, 1, kBarHeight * dot, scale_color(position));
  }
  draw_labels(range, left, y + kBarHeight * dot, width, dot, canvas);
}

}  // namespace

media::Image heat_map(const Tensor& map, const MapRange& range, const std::string& title) {
  const std::int64_t height = map.shape[2], width = map.shape[3];
  const std::int64_t dot =
      std::max<std::int64_t>(1, std::min(width / kColumnsPerDot, height / kRowsPerDot));
  const std::int64_t legend_width =
      std::max<std::int64_t>(kNarrowest, text_width(title) + 2 * kMargin);
  Canvas canvas(std::max(width, legend_width * dot), height + kLegendHeight * dot);
  if (map.dtype == DType::f64) {
    draw_map<double>(map, range, canvas);
  } else {
    draw_map<float>(map, range, canvas);
  }
  draw_legend(range, title, height, dot, canvas);
  return canvas.image();
}

}  // namespace similis::cli
