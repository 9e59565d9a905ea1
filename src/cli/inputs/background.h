// SPDX-License-Identifier: Apache-2.0
// The colour behind transparent pixels: --background.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/media/picture/image.h"

namespace similis::cli {

/// Code values of red, green and blue at 16 bits.
using Color = std::array<std::uint16_t, 3>;

/// The forms that parse_color takes, for messages.
inline constexpr const char* kColorForms =
    "black, white, gray, rgb, rrggbb or rrrrggggbbbb in hexadecimal";

/// Throws UsageError.
Color parse_color(std::string_view text);

/// True if every pixel is opaque, as in images without alpha.
bool is_opaque(const media::Image& image);

/// The image without its alpha channel: each colour c of alpha a becomes a·c + (1-a)·background, in
/// code values, rounded to nearest. A grey image becomes RGB over a background that is not grey.
media::Image blend(const media::Image& image, const Color& background);

/// An opaque image without its alpha channel.
media::Image drop_alpha(const media::Image& image);

}  // namespace similis::cli
