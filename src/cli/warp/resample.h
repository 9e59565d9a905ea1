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
  /// zeros: what lies more than half a voxel outside is `background`, and the half voxel around the
  /// image as its outermost voxels, both as ITK has it. border and reflection: as
  /// similis::sample().
  Outside padding = Outside::zeros;
  double background = 0;
  Device device = {};  ///< where the image is sampled
};

struct Resampled {
  media::Volume volume;
  std::int64_t outside = 0;  ///< voxels that are background because they lie outside the image
};

/// All frames and components of the image, each by itself, on the grid. Nearest and label keep the
/// type of samples in the image's file, unless they are scaled there; everything else becomes
/// float32, or float64 where the image's values need it. Throws InvalidArgument if the mode is
/// label and a value is no integer, or a type that is kept does not hold the background.
Resampled resample(const media::Volume& image, const std::string& image_name,
    const media::Grid& grid, const std::vector<SpatialTransform>& transforms,
    const ResampleOptions& options, const Execution& exec);

}  // namespace similis::cli
