// SPDX-License-Identifier: Apache-2.0
// Turns the parameters of ITK's displacement fields into a volume of vectors.
#pragma once

#include "src/media/transform/itk_parameters.h"
#include "src/media/volume/volume.h"

namespace similis::media {

/// True if the type is one of ITK's fields of displacements.
bool is_displacement_field(const ItkTransform& transform);

/// u of p ↦ p + u(p), with 3 (or 2) components in mm with ITK's axes. Throws InvalidArgument,
/// naming the file, if the numbers are no grid or not as many as its voxels have.
Volume field_of(const ItkTransform& transform, const File& file);

}  // namespace similis::media
