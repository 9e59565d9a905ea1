// SPDX-License-Identifier: Apache-2.0
// A volume sampled at the voxels of another grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "similis/warp.hpp"
#include "src/cli/warp/spatial_transform.h"
#include "src/media/volume/volume.h"

namespace similis::cli {

enum class ResampleMode : std::uint8_t { linear, nearest, cubic, label };

struct ResampleOptions {
  ResampleMode mode = ResampleMode::linear;
  /// zeros: positions more than half a voxel outside get `background`; the half voxel around the
  /// image gets its outermost voxels, as in ITK. border and reflection: as similis::sample().
  Outside padding = Outside::zeros;
  double background = 0;
  Device device = {};  ///< where the image is sampled
};

struct Resampled {
  media::Volume volume;
  std::int64_t outside = 0;  ///< number of voxels outside the image, which are background
};

/// Samples each frame and component of the image on the grid. nearest and label keep the sample
/// type of the image's file, unless it is scaled; other modes give float32, or float64 if the
/// image's values need it. Throws InvalidArgument if the mode is label and a value is not an
/// integer, or if a type that is kept cannot represent the background.
Resampled resample(const media::Volume& image, const std::string& image_name,
    const media::Grid& grid, const std::vector<SpatialTransform>& transforms,
    const ResampleOptions& options, const Execution& exec);

}  // namespace similis::cli
