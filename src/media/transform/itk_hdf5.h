// SPDX-License-Identifier: Apache-2.0
// Reads ITK's transforms from HDF5 (.h5, .hdf5), the form of antsRegistration's composites.
#pragma once

#include <string>
#include <vector>

#include "src/media/transform/itk_parameters.h"

namespace similis::media {

/// All transforms of the file, in its order. The file may only hold what ITK writes: datasets with
/// one dimension, contiguous or in chunks compressed by deflate, that are all in this file. Throws
/// InvalidArgument, in one line that names the file, if it holds anything else or is damaged.
std::vector<ItkTransform> read_itk_hdf5(const File& file);

/// "HDF5 1.10.8", or why it cannot be used.
std::string hdf5_library();

}  // namespace similis::media
