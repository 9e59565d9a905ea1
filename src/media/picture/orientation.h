// SPDX-License-Identifier: Apache-2.0
// EXIF orientation: the turn that makes the picture upright.
#pragma once

#include <cstdint>
#include <span>

#include "src/media/picture/image.h"

namespace similis::media {

/// The orientation tag of an EXIF block, 1 to 8, with or without the "Exif\0\0" that JPEG puts
/// before it; 1, upright, for a block that has none or is damaged, as viewers do.
int exif_orientation(std::span<const std::uint8_t> exif);

/// Turns the samples upright. 2 is mirrored left to right, 3 turned by 180°, 4 mirrored top to
/// bottom, 5 transposed, 6 to be turned 90° clockwise, 7 transposed about the other diagonal, 8 to
/// be turned 90° anticlockwise. Costs a second copy of the samples, none for 1.
void apply_orientation(Image& image, int orientation);

}  // namespace similis::media
