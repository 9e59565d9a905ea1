// SPDX-License-Identifier: Apache-2.0
// Maps of space from files of the Insight Toolkit: MATLAB level 4 (.mat, as ANTs writes), text
// (.txt, .tfm) and HDF5 (.h5).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "src/media/picture/reader.h"
#include "src/media/volume/affine.h"
#include "src/media/volume/volume.h"

namespace similis::media {

/// An affine map, or u of p ↦ p + u(p) as a volume of vectors; in mm with ITK's axes (left,
/// posterior, superior), from the fixed image's space to the moving one's.
using SpaceMap = std::variant<Affine, Volume>;

/// The maps that a file holds, in the order in which a point takes them: the parts of a composite,
/// of which ITK stores the last one first; neighbours that are affine become one. Maps of the plane
/// leave z as it is. Throws InvalidArgument, in one line that names the file, if it has none of
/// these forms, is damaged, or holds a kind of transform that is neither affine nor a field of
/// displacements, or not known here.
std::vector<SpaceMap> read_itk_transforms(const File& file);

/// True if a file that begins so is HDF5.
bool is_hdf5(Bytes start);

/// Name and version of what reads HDF5; empty in a build without.
std::string transform_library();

}  // namespace similis::media
