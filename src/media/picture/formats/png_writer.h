// SPDX-License-Identifier: Apache-2.0
// Writes PNG files: heat maps, and the pictures that tests read back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/media/picture/image.h"

namespace similis::media {

/// The image as a PNG file: grey or RGB, with or without alpha, 8 or 16 bit, and its colour space.
/// Throws InvalidArgument if the samples are not width·height·channels.
std::vector<std::uint8_t> encode_png(const Image& image);

/// Writes the image as PNG to `path`, completely or not at all.
void write_png(const std::string& path, const Image& image);

}  // namespace similis::media
