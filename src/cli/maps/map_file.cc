// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/map_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "src/cli/device.h"
#include "src/cli/maps/grey_reference.h"
#include "src/cli/maps/middle_slices.h"
#include "src/cli/maps/raw_map.h"
#include "src/cli/usage_error.h"
#include "src/core/require.h"
#include "src/media/picture/formats/png_writer.h"

namespace similis::cli {

namespace fs = std::filesystem;

std::string map_path(const MapRequest& map, const std::string& distorted, bool is_in_folder) {
  if (!is_in_folder) return map.path;
  const std::string name = fs::path(distorted).filename().string();
  const std::string frame = map.frame ? fmt::format("@{}", *map.frame) : "";
  const std::string file = fmt::format("{}.{}{}.png", name, map.measure.name, frame);
  return (fs::path(map.path) / file).string();
}

void require_map_folder(const MapRequest& map) {
  std::error_code error;
  const bool is_file = fs::exists(map.path, error) && !fs::is_directory(map.path, error);
  if (!is_file && !map.path.ends_with(".png") && !is_raw_map(map.path)) return;
  throw UsageError(
      fmt::format("--map {0}={1}: {1} must be a folder, as there are several maps; write {0}=maps/",
          map.measure.name, map.path));
}

void make_map_folder(const MapRequest& map) {
  std::error_code error;
  fs::create_directories(map.path, error);
  require(!error, "cannot make the folder {}: {}", map.path, error.message());
}

media::Image drawn_map(const Tensor& values, const FramePair& frames, const MapRange& range,
    const MapStyle& style, const std::string& title) {
  const Tensor flat = middle_slices(values, frames.voxel_mm);
  MapFrame frame{.range = drawn_range(flat, for_data_range(range, frames.data_range), style),
      .title = style.has_legend ? title : "",
      .labels = slice_labels(values.shape, frames.voxel_mm, frames.toward)};
  if (style.is_overlay) frame.under = middle_slices(grey_reference(frames), frames.voxel_mm);
  return heat_map(flat, frame);
}

void write_map(const MapRequest& map, const MapStyle& style, const std::string& path,
    const FramePair& pair, const media::Grid* grid, Device device, const Execution& exec) {
  const FramePair frames = frames_on_device(pair, device, exec);
  const Tensor values = on_device(map.measure.map(frames, exec), {}, exec);
  if (is_raw_map(path)) return write_raw_map(path, values, grid, exec);
  const std::string title =
      fmt::format("{} {:.4f}", map.measure.name, map.measure.value(frames, exec));
  FramePair shown = pair;
  if (!shown.reference.empty()) shown.reference = on_device(shown.reference, {}, exec);
  media::write_png(path, drawn_map(values, shown, map.range, style, title));
}

}  // namespace similis::cli
