// SPDX-License-Identifier: Apache-2.0
// The metrics of `similis compare`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/cli/metrics/metric.h"

namespace similis::cli {

/// All of them, in the order of help and of default results.
const std::vector<Metric>& metrics();

/// The one of that name, or null.
const Metric* find_metric(std::string_view name);

/// The options of libvmaf's float_ssim and float_ms_ssim.
std::vector<Option<LumaOptions>> float_ssim_options();
std::vector<Option<LumaOptions>> float_ms_ssim_options();

std::vector<std::string> metric_names();
std::vector<std::string> metric_names_with_maps();

/// The metrics that are scored when none is asked for.
const std::vector<std::string>& default_metrics();

/// A line for each metric, and below it one for each of its options.
std::string describe_metrics();

}  // namespace similis::cli
