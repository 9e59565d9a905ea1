// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of -m and --map, such as ssim or ssim=window_size=7:sigma=1.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/metrics/metric.h"

namespace similis::cli {

/// The measures that the texts of -m ask for, in their order. A measure is named as its metric, or
/// by its whole text if that metric is asked for more than once.
/// Throws UsageError, in one line that names the text, if a metric or an option is not known, an
/// option is given twice or does not take the value, or two texts are the same.
std::vector<Measure> requested_measures(const std::vector<std::string>& texts);

/// The texts of -m, with those such as "psnr,ssim" taken apart at their commas, and metrics' names
/// with - for _; a text with "=" is one metric. Throws UsageError if several metrics are named in
/// such a text, or a name is empty.
std::vector<std::string> split_metrics(const std::vector<std::string>& texts);

struct MapRequest {
  Measure measure;
  MapRange range;
  std::string path;                   ///< a file, or of directories and encodes a folder
  std::size_t of_measure = 0;         ///< its place among the measures; or their number
  std::optional<std::int64_t> frame;  ///< of video; empty: the worst
};

/// Parses --map METRIC[@FRAME|@worst]=FILE, where METRIC is one of the texts of -m, or a metric
/// that -m names once or not at all (it then has its defaults). Throws UsageError as above, and if
/// the metric offers no map or FILE is empty.
MapRequest requested_map(std::string_view text, const std::vector<std::string>& metric_texts);

/// Throws UsageError unless the map's path is that of a file: .png or a form of its values.
void require_map_file(const MapRequest& map);

}  // namespace similis::cli
