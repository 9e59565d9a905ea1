// SPDX-License-Identifier: Apache-2.0
// The placement of voxels in a NIfTI header: qform (a rotation, scales and an offset) or sform (any
// matrix), as one Affine.
#pragma once

#include "src/media/volume/nifti_header.h"
#include "src/media/volume/volume.h"

namespace similis::media {

/// The header's grid, whose sizes are known to be positive. Sets `forms_differ` as Volume has it.
/// Throws InvalidArgument, naming the file, if the form that counts is no map of space.
Grid parse_placement(const NiftiHeader& header, const File& file, bool& forms_differ);

/// Fills in dim, pixdim, units and both forms.
void write_placement(const Grid& grid, NiftiHeader& header);

}  // namespace similis::media
