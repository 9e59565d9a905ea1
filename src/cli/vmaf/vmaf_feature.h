// SPDX-License-Identifier: Apache-2.0
// The features of `similis vmaf`, by the names, options and columns that libvmaf gives them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "similis/execution.hpp"
#include "src/cli/inputs/clips/video_pair.h"
#include "src/vmaf/feature_request.h"

namespace similis::cli {

struct VmafFeature {
  std::string name = {};  ///< such as "float_ssim"
  /// The names of its numbers, of video of this format.
  std::function<std::vector<std::string>(const media::VideoFormat&)> columns;
  /// The numbers of the pair's current frames. Throws InvalidArgument for frames it does not take.
  std::function<std::vector<double>(const VideoPair&, const Execution&)> scores;
  /// Given by features with numbers of the whole clip: takes a frame that is not shown; and those
  /// numbers, of all frames that it was called with, by their names.
  std::function<void(const VideoPair&, const Execution&)> observe = {};
  std::function<std::vector<std::pair<std::string, double>>()> aggregates = {};
  bool reads_chroma = false;
};

/// A feature by itself, or one that looks at several frames and that models read.
using AnyVmafFeature = std::variant<VmafFeature, vmaf_internal::FeatureRequest>;

/// The request of --feature: NAME, or NAME=OPTION=VALUE:…. Throws UsageError, in one line that
/// names the text.
AnyVmafFeature requested_feature(const std::string& text);

/// The requests of several texts; equal ones count once. Throws UsageError also if one feature is
/// asked for with different options, whose columns would have the same names.
std::vector<AnyVmafFeature> requested_features(const std::vector<std::string>& texts);

/// A line for each feature and its options.
std::string describe_features();

}  // namespace similis::cli
