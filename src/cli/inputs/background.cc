// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/background.h"

#include <fmt/core.h>

#include <charconv>
#include <cstddef>
#include <vector>

#include "src/cli/usage_error.h"

namespace similis::cli {
namespace {

constexpr Color kBlack = {0, 0, 0}, kGray = {0x8080, 0x8080, 0x8080},
                kWhite = {0xffff, 0xffff, 0xffff};

template <class T> const std::vector<T>& samples(const media::Image& image) {
  if constexpr (sizeof(T) == 1)
    return image.samples8;
  else
    return image.samples16;
}

// The image over the background, with `channels` of 1 or 3; `image` has alpha.
template <class T>
std::vector<T> blend_samples(const media::Image& image, const Color& background, int channels) {
  constexpr std::uint64_t opaque = static_cast<T>(-1);
  const std::vector<T>& in = samples<T>(image);
  const auto step = static_cast<std::size_t>(image.channels);
  const auto pixels = static_cast<std::size_t>(image.width * image.height);
  std::vector<T> out;
  out.reserve(pixels * static_cast<std::size_t>(channels));
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    const std::uint64_t alpha = in[pixel * step + step - 1];
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
      const std::uint64_t color = in[pixel * step + (step == 2 ? 0 : c)];
      // Both terms over opaque·65535, so that a background of 16 bits is not rounded twice.
      const std::uint64_t sum = alpha * color * 65535 + (opaque - alpha) * background[c] * opaque;
      out.push_back(static_cast<T>((sum + opaque * 65535 / 2) / (opaque * 65535)));
    }
  }
  return out;
}

template <class T> bool all_opaque(const media::Image& image) {
  const std::vector<T>& in = samples<T>(image);
  const auto step = static_cast<std::size_t>(image.channels);
  for (std::size_t i = step - 1; i < in.size(); i += step) {
    if (in[i] != static_cast<T>(-1)) return false;
  }
  return true;
}

media::Image blend_to(const media::Image& image, const Color& background, int channels) {
  media::Image result{.width = image.width,
      .height = image.height,
      .channels = channels,
      .bit_depth = image.bit_depth,
      .source_bit_depth = image.source_bit_depth,
      .color = image.color,
      .format = image.format,
      .frames = image.frames};
  if (image.bit_depth == 8) {
    result.samples8 = blend_samples<std::uint8_t>(image, background, channels);
  } else {
    result.samples16 = blend_samples<std::uint16_t>(image, background, channels);
  }
  return result;
}

bool is_gray(const Color& color) { return color[0] == color[1] && color[1] == color[2]; }

}  // namespace

Color parse_color(std::string_view text) {
  if (text == "black") return kBlack;
  if (text == "white") return kWhite;
  if (text == "gray" || text == "grey") return kGray;
  const std::string_view hex = text.starts_with('#') ? text.substr(1) : text;
  const std::size_t digits = hex.size() / 3;
  const bool well_formed = hex.size() == 3 * digits && (digits == 1 || digits == 2 || digits == 4);
  Color color{};
  for (std::size_t c = 0; well_formed && c < 3; ++c) {
    const char* first = hex.data() + c * digits;
    const auto [end, error] = std::from_chars(first, first + digits, color[c], 16);
    if (error != std::errc{} || end != first + digits) break;
    color[c] = static_cast<std::uint16_t>(color[c] * (digits == 1      ? 0x1111
                                                         : digits == 2 ? 0x101
                                                                       : 1));
    if (c == 2) return color;
  }
  throw UsageError(fmt::format("--background is \"{}\"; it must be {}", text, kColorForms));
}

bool is_opaque(const media::Image& image) {
  if (!image.has_alpha()) return true;
  return image.bit_depth == 8 ? all_opaque<std::uint8_t>(image) : all_opaque<std::uint16_t>(image);
}

media::Image blend(const media::Image& image, const Color& background) {
  return blend_to(image, background, image.channels == 2 && is_gray(background) ? 1 : 3);
}

media::Image drop_alpha(const media::Image& image) {
  return blend_to(image, kBlack, image.channels - 1);
}

}  // namespace similis::cli
