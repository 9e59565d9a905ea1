// SPDX-License-Identifier: Apache-2.0
// The rows of the table of features by themselves: name, options, and what makes a VmafFeature.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/metrics/luma_scores.h"
#include "src/cli/vmaf/vmaf_feature.h"

namespace similis::cli {

/// The values of a feature's options; each feature takes some.
struct FeatureOptions {
  LumaOptions luma;
  bool enable_chroma = true, enable_mse = false, enable_apsnr = false, reduced_hbd_peak = false;
  double min_sse = 0;
};

/// An option by its name and what sets it.
struct ReadOption {
  std::string name, takes;
  std::function<bool(std::string_view text, FeatureOptions&)> set;
};

struct KnownFeature {
  std::string name;
  std::string description;
  std::vector<ReadOption> options;
  std::function<VmafFeature(const FeatureOptions&)> make;
};

KnownFeature psnr_feature();
KnownFeature psnr_hvs_feature();
KnownFeature ciede_feature();

}  // namespace similis::cli
