// SPDX-License-Identifier: Apache-2.0
// The volumes that `similis register` reads, and those that it makes of the result.
#pragma once

#include <string>
#include <vector>

#include "similis/register.hpp"
#include "src/cli/warp/spatial_transform.h"
#include "src/media/volume/volume.h"

namespace similis::cli {

/// An image as the program reads it and as the library takes it.
struct RegisterInput {
  std::string name;
  media::Volume file;
  Volume view = {};      ///< of `file`, or of `channels`
  Tensor channels = {};  ///< with those that add_channel() read

  int rank() const { return view.data.shape.rank() - 2; }
};

/// A volume. Throws InvalidArgument, in one line that names the file and says what is taken, if it
/// is none.
media::Volume read_register_volume(const std::string& path);

/// Throws InvalidArgument, in one line that names the file, if it is not one image.
RegisterInput read_register_input(const std::string& path);

/// A volume that lies on the image's grid. Throws InvalidArgument, in one line that names the file
/// and what it is ("a mask"), if it does not.
media::Volume read_on_grid(const std::string& path, const RegisterInput& image, const char* what);

/// Reads a further channel, on the grid of the first.
void add_channel(const std::string& path, RegisterInput& image);

/// The mask as RegisterOptions takes it. Throws InvalidArgument unless it lies on the image's grid.
Tensor read_mask(const std::string& path, const RegisterInput& image);

/// The map that a file of ITK holds. Throws InvalidArgument if it is a displacement field.
AffineRows read_start(const std::string& path);

/// T, and its inverse, as steps of `similis warp`: the first is applied first.
struct RegisterTransforms {
  std::vector<SpatialTransform> forward, backward;
  SpatialTransform affine;
};
RegisterTransforms transforms_of(
    const Registration& result, const RegisterInput& fixed, const RegisterInput& moving);

/// A field in mm as a volume of vectors.
media::Volume field_volume(const Tensor& field, const RegisterInput& fixed);

}  // namespace similis::cli
