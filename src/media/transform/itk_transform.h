// SPDX-License-Identifier: Apache-2.0
// Affine maps from files of the Insight Toolkit: MATLAB level 4 (.mat, as ANTs writes) and text
// (.txt, .tfm).
#pragma once

#include "src/media/picture/reader.h"
#include "src/media/volume/affine.h"

namespace similis::media {

/// The map that a file holds: of points in mm with ITK's axes (left, posterior, superior), from the
/// fixed image's space to the moving one's. Maps of the plane leave z as it is. The parts of a
/// composite become one, the last applied first. Throws InvalidArgument, in one line that names the
/// file, if it is neither form, is damaged, or holds a kind of transform that is not affine or not
/// known here.
Affine read_itk_transform(const File& file);

}  // namespace similis::media
