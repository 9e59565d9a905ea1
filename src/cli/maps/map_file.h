// SPDX-License-Identifier: Apache-2.0
// Writes the map of a pair of frames: drawn, or its values.
#pragma once

#include <string>

#include "similis/execution.hpp"
#include "src/cli/inputs/frame_pair.h"
#include "src/cli/maps/heat_map.h"
#include "src/cli/metrics/metric_request.h"
#include "src/media/volume/volume.h"

namespace similis::cli {

/// The file of a map: the request's path, or in that folder "DISTORTED.METRIC.png", with @FRAME
/// behind the metric where a frame was asked for.
std::string map_path(const MapRequest& map, const std::string& distorted, bool is_in_folder);

/// Throws UsageError if the map's path cannot be a folder: it ends as a file of a map does, or is
/// one.
void require_map_folder(const MapRequest& map);
/// Makes the folder, if there is none. Throws InvalidArgument.
void make_map_folder(const MapRequest& map);

/// The map as a picture: of volumes the middle slices with their labels, over the grey reference if
/// the style says so. `title` is the legend's first line.
/// values: on the CPU; frames: on the CPU, those of the map.
media::Image drawn_map(const Tensor& values, const FramePair& frames, const MapRange& range,
    const MapStyle& style, const std::string& title);

/// Draws the map of one pair of frames, or takes its values, and writes its file. The measure runs
/// on `device`. grid: of volumes, else null. Throws InvalidArgument.
void write_map(const MapRequest& map, const MapStyle& style, const std::string& path,
    const FramePair& pair, const media::Grid* grid, Device device, const Execution& exec);

}  // namespace similis::cli
