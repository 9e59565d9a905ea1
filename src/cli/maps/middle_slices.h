// SPDX-License-Identifier: Apache-2.0
// A map of a volume as one picture: its middle slices across z, y and x, side by side.
#pragma once

#include <array>
#include <vector>

#include "similis/tensor.hpp"
#include "src/cli/maps/lettering.h"

namespace similis::cli {

/// [1,C,D,H,W] on the CPU becomes [1,C,height,width], at least 600 pixels wide: the slice across z
/// with x to the right and y upwards, that across y with x and z, that across x with y and z. A
/// pixel is as many mm in all of them, by the voxels' sizes along x, y, z; each shows the voxel
/// that it lies in. Pixels outside of the slices are NaN. Any other map is returned as it is.
Tensor middle_slices(const Tensor& map, const std::array<double, 3>& voxel_mm);

/// The labels on that picture: in each slice its axis and number, and at its borders the sides of
/// the body, from `toward`: for x, y and z the letter of the side where voxels' numbers rise (R, L,
/// A, P, S or I), or 0 if it is not known. None for any other shape.
std::vector<Label> slice_labels(
    const Extents& shape, const std::array<double, 3>& voxel_mm, const std::array<char, 3>& toward);

}  // namespace similis::cli
