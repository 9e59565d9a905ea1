// SPDX-License-Identifier: Apache-2.0
// Turns the parameters of ITK's transforms into an affine map.
#pragma once

#include <string>
#include <vector>

#include "src/media/picture/reader.h"
#include "src/media/volume/affine.h"

namespace similis::media {

/// One transform as files hold it.
struct ItkTransform {
  std::string type;                ///< "AffineTransform_double_3_3"
  std::vector<double> parameters;  ///< such as a matrix row by row, then a translation
  std::vector<double> fixed;       ///< the centre of rotation, if there is one
};

/// "CompositeTransform": the type without its precision and dimensions.
std::string class_name(const ItkTransform& transform);

/// Its map. Throws InvalidArgument, naming the file, if the type is not known here or has another
/// number of parameters.
Affine affine_of(const ItkTransform& transform, const File& file);

}  // namespace similis::media
