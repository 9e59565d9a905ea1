// SPDX-License-Identifier: Apache-2.0
#include "src/media/black_bars.h"

#include <algorithm>

#include "src/media/video/code_mapping.h"

namespace similis::media {
namespace {

// Black and a sixteenth of the range above it, in codes of 8 bits: (235 - 16)/16 and 255/16.
constexpr int kLimited = 16 + 13, kFull = 15;

}  // namespace

// `is_black(x, y)` of a pixel. A row is looked at from either end up to the first that is not.
template <class IsBlack>
void BlackBars::narrow(std::int64_t width, std::int64_t height, const IsBlack& is_black) {
  Crop bars{.left = width, .right = width, .top = height, .bottom = 0};
  for (std::int64_t y = 0; y < height; ++y) {
    std::int64_t left = 0, right = 0;
    while (left < width && is_black(left, y)) ++left;
    if (left == width) continue;
    while (is_black(width - 1 - right, y)) ++right;
    bars.left = std::min(bars.left, left);
    bars.right = std::min(bars.right, right);
    bars.top = std::min(bars.top, y);
    bars.bottom = height - 1 - y;
  }
  if (bars.top == height) return;
  if (!found_) found_ = bars;
  found_->left = std::min(found_->left, bars.left);
  found_->right = std::min(found_->right, bars.right);
  found_->top = std::min(found_->top, bars.top);
  found_->bottom = std::min(found_->bottom, bars.bottom);
}

void BlackBars::add(const VideoFrame& frame, const VideoFormat& format) {
  const int depth = format.pixels.bit_depth;
  const int black = (is_full_range(format) ? kFull : kLimited) << (depth - 8);
  const auto look = [&]<class Sample>(const Sample* luma) {
    narrow(format.width, format.height,
        [&](std::int64_t x, std::int64_t y) { return luma[y * format.width + x] <= black; });
  };
  if (depth > 8) {
    look(reinterpret_cast<const std::uint16_t*>(frame.bytes.data()));
  } else {
    look(frame.bytes.data());
  }
}

void BlackBars::add(const Image& image) {
  const std::int64_t colors = image.channels - image.has_alpha();
  const auto look = [&](const auto* samples, auto black) {
    narrow(image.width, image.height, [&](std::int64_t x, std::int64_t y) {
      const auto* const pixel = samples + (y * image.width + x) * image.channels;
      return std::all_of(pixel, pixel + colors, [&](auto sample) { return sample <= black; });
    });
  };
  if (image.has_floats()) {
    look(image.samples_float.data(), 1.0f / 16);
  } else if (image.bit_depth == 8) {
    look(image.samples8.data(), kFull);
  } else {
    look(image.samples16.data(), kFull * 257);
  }
}

Crop BlackBars::margins(std::int64_t x_multiple, std::int64_t y_multiple) const {
  if (!found_) return {};
  const auto down = [](std::int64_t margin, std::int64_t multiple) {
    return margin / multiple * multiple;
  };
  return {.left = down(found_->left, x_multiple),
      .right = down(found_->right, x_multiple),
      .top = down(found_->top, y_multiple),
      .bottom = down(found_->bottom, y_multiple)};
}

}  // namespace similis::media
