// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "src/cli/maps/color_scale.h"
#include "src/cli/terminal/glyphs.h"
#include "src/cli/usage_error.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

// Sizes of the legend, in dots.
constexpr int kMargin = 6;
constexpr int kBarHeight = 12;
constexpr int kTickHeight = 3;
constexpr int kGap = 3;
constexpr int kNarrowest = 200;  // minimum width of the legend

constexpr Rgb kOutside = {128, 128, 128};
constexpr double kStrongest = 0.8;  // share of the colour where an overlay's loss is largest

// Shares of the loss, from best to worst, that get a label if there is room.
constexpr double kTicks[] = {0, 1, 0.4, 0.1, 0.01, 0.05, 0.2, 0.6, 0.8};

double mean_of_channels(const Tensor& map, std::int64_t y, std::int64_t x) {
  const std::int64_t channels = map.shape[1], height = map.shape[2], width = map.shape[3];
  double sum = 0;
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t at = (c * height + y) * width + x;
    sum += map.dtype == DType::f64 ? map.elements<double>()[at] : map.elements<float>()[at];
  }
  return sum / static_cast<double>(channels);
}

Rgb grey_of(double share) {
  const auto code = static_cast<std::uint8_t>(std::lround(255 * std::clamp(share, 0.0, 1.0)));
  return {code, code, code};
}

// The colour of a position, alone or over grey.
Rgb color_at(double position, const Rgb* under) {
  const Rgb color = scale_color(position);
  if (under == nullptr) return color;
  Rgb blended;
  for (std::size_t c = 0; c < blended.size(); ++c) {
    const double share = kStrongest * position;
    blended[c] =
        static_cast<std::uint8_t>(std::lround((*under)[c] * (1 - share) + color[c] * share));
  }
  return blended;
}

Rgb color_of(double value, const MapFrame& frame, std::int64_t pixel) {
  if (std::isnan(value)) return kOutside;
  const double position = scale_position(value, frame.range);
  if (frame.under.empty()) return color_at(position, nullptr);
  const Rgb under = grey_of(frame.under.elements<float>()[pixel]);
  return color_at(position, &under);
}

void draw_map(const Tensor& map, const MapFrame& frame, media::Image& image) {
  const std::int64_t height = map.shape[2], width = map.shape[3];
  for (std::int64_t y = 0; y < height; ++y) {
    auto to = image.samples8.begin() + y * image.width * 3;
    for (std::int64_t x = 0; x < width; ++x) {
      const Rgb color = color_of(mean_of_channels(map, y, x), frame, y * width + x);
      to = std::copy(color.begin(), color.end(), to);
    }
  }
}

// Three digits are enough for a scale.
std::string tick_text(double value) {
  if (value == 0) return "0";
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
  return fmt::format("{:g}", std::round(value / unit) * unit);
}

// Labels do not overlap; those earlier in kTicks have priority.
void draw_ticks(const MapRange& range, std::int64_t left, std::int64_t top, std::int64_t width,
    std::int64_t dot, media::Image& image) {
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const double share : kTicks) {
    const double value = range.best + share * (range.worst - range.best);
    const std::string label = tick_text(value);
    const auto x = static_cast<std::int64_t>(
        std::lround(scale_position(value, range) * static_cast<double>(width - 1)));
    const std::int64_t half = text_width(label) * dot / 2;
    const std::int64_t first = std::clamp(x - half, std::int64_t{0}, width - 2 * half);
    const std::int64_t last = first + 2 * half + kGlyphAdvance * dot;
    const bool is_free = std::none_of(taken.begin(), taken.end(),
        [&](const auto& other) { return first < other.second && other.first < last; });
    if (!is_free) continue;
    taken.emplace_back(first, last);
    fill(image, left + std::min(x, width - dot), top, dot, kTickHeight * dot, kInk);
    write(image, left + first, top + (kTickHeight + kGap) * dot, dot, label);
  }
}

// The lines above the scale.
std::vector<std::string> legend_lines(const MapFrame& frame) {
  std::vector<std::string> lines;
  if (frame.title.empty()) return lines;
  lines.push_back(frame.title);
  if (*frame.range.unit != '\0') lines.emplace_back(frame.range.unit);
  return lines;
}

std::int64_t legend_height(std::size_t lines) {
  if (lines == 0) return 0;
  return 2 * kMargin + static_cast<std::int64_t>(lines) * (kGlyphHeight + kGap) + kBarHeight +
         kTickHeight + kGap + kGlyphHeight;
}

void draw_legend(const MapFrame& frame, const std::vector<std::string>& lines, std::int64_t top,
    std::int64_t dot, media::Image& image) {
  const std::int64_t left = kMargin * dot, width = image.width - 2 * left;
  std::int64_t y = top + kMargin * dot;
  for (const std::string& line : lines) {
    write(image, left, y, dot, line);
    y += (kGlyphHeight + kGap) * dot;
  }
  for (std::int64_t x = 0; x < width; ++x) {
    const double position = static_cast<double>(x) / static_cast<double>(width - 1);
    fill(image, left + x, y, 1, kBarHeight * dot,
        color_at(position, frame.under.empty() ? nullptr : &kOutside));
  }
  draw_ticks(frame.range, left, y + kBarHeight * dot, width, dot, image);
}

}  // namespace

MapStyle parse_map_style(const std::string& max, bool is_overlay, bool has_legend) {
  MapStyle style{.is_overlay = is_overlay, .has_legend = has_legend};
  if (max == "auto") {
    style.fits_loss = true;
  } else if (!max.empty()) {
    style.largest_loss = parse_number<double>(max);
    if (!style.largest_loss || !(*style.largest_loss > 0) || !std::isfinite(*style.largest_loss)) {
      throw UsageError(
          fmt::format("--map-max is \"{}\"; it must be a number above 0, or auto", max));
    }
  }
  return style;
}

MapRange drawn_range(const Tensor& map, const MapRange& range, const MapStyle& style) {
  MapRange drawn = range;
  const double sign = range.worst > range.best ? 1 : -1;
  if (style.largest_loss) drawn.worst = range.best + sign * *style.largest_loss;
  if (!style.fits_loss) return drawn;
  double largest = 0;
  for (std::int64_t y = 0; y < map.shape[2]; ++y) {
    for (std::int64_t x = 0; x < map.shape[3]; ++x) {
      const double loss = sign * (mean_of_channels(map, y, x) - range.best);
      if (std::isfinite(loss)) largest = std::max(largest, loss);
    }
  }
  if (largest > 0) drawn.worst = range.best + sign * largest;  // else all is equal, and dark
  return drawn;
}

media::Image heat_map(const Tensor& map, const MapFrame& frame) {
  const std::int64_t height = map.shape[2], width = map.shape[3];
  const std::int64_t dot = dot_for(width);
  const std::vector<std::string> lines = legend_lines(frame);
  std::int64_t legend_width = 0;
  for (const std::string& line : lines) {
    legend_width = std::max<std::int64_t>(
        {kNarrowest, legend_width, text_width(line) + std::int64_t{2} * kMargin});
  }
  media::Image image{.width = std::max(width, legend_width * dot),
      .height = height + legend_height(lines.size()) * dot,
      .channels = 3};
  image.samples8.assign(static_cast<std::size_t>(image.width * image.height * 3), kPaper[0]);
  image.format = "PNG";
  draw_map(map, frame, image);
  draw_labels(frame.labels, dot, image);
  if (!lines.empty()) draw_legend(frame, lines, height, dot, image);
  return image;
}

}  // namespace similis::cli
