// SPDX-License-Identifier: Apache-2.0
// Writes the values of a map, for other programs, where heat_map.h draws them.
#pragma once

#include <string>

#include "similis/tensor.hpp"
#include "src/media/volume/volume.h"

namespace similis::cli {

/// True if the name ends in .pfm, .tif, .tiff, .npy, .nii or .nii.gz.
bool is_raw_map(const std::string& path);

/// Writes the map as 32-bit floats, completely or not at all:
///   .pfm, .tiff   a picture of 1 or 3 channels
///   .npy          [H,W] or [H,W,C] of a picture, [D,H,W] or [D,H,W,C] of a volume
///   .nii, .nii.gz a volume on this grid
/// map: f32 or f64, [1,C,H,W] or [1,C,D,H,W], dense, on the CPU; grid: of a volume, else null.
/// Throws InvalidArgument, naming the file, if the format does not take such a map.
void write_raw_map(
    const std::string& path, const Tensor& map, const media::Grid* grid, const Execution& exec);

}  // namespace similis::cli
