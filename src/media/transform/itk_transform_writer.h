// SPDX-License-Identifier: Apache-2.0
// Affine maps as files of ITK and ANTs.
#pragma once

#include <cstdint>
#include <vector>

#include "src/media/volume/affine.h"

namespace similis::media {

/// The bytes of a .mat file (MATLAB level 4) with an AffineTransform in double about the origin, of
/// 3 dimensions, or of 2, which leave z as it is. The map is of points with ITK's axes.
std::vector<std::uint8_t> encode_itk_affine(const Affine& map, std::size_t dimensions = 3);

}  // namespace similis::media
