// SPDX-License-Identifier: Apache-2.0
#include "src/cli/vmaf/test_conditions.h"

#include <fmt/core.h>

#include <array>
#include <string_view>
#include <utility>

#include "src/cli/usage_error.h"

namespace similis::cli {
namespace {

struct Conditions {
  std::vector<std::string> models, features;
};

// The versions of the Alliance for Open Media. v6.0 also allows bit depths that differ, which
// are refused here.
constexpr int kLastAom = 7;

Conditions aom_conditions(int version) {
  Conditions conditions{
      .models = {"version=vmaf_v0.6.1:name=vmaf", "version=vmaf_v0.6.1neg:name=vmaf_neg"},
      .features = {"psnr=reduced_hbd_peak=true:enable_apsnr=true:min_sse=0.5", "ciede",
          "float_ssim=enable_db=true:clip_db=true", "float_ms_ssim=enable_db=true:clip_db=true",
          "psnr_hvs"}};
  if (version >= 3) conditions.features.emplace_back("cambi");
  if (version >= 7) conditions.features[2] = "float_ssim=scale=1:enable_db=true:clip_db=true";
  return conditions;
}

Conditions netflix_conditions() {
  return {.models = {"version=vmaf_4k_v0.6.1:name=vmaf", "version=vmaf_4k_v0.6.1neg:name=vmaf_neg"},
      .features = {"psnr=enable_chroma=true:enable_apsnr=true",
          "float_ssim=enable_db=true:clip_db=true", "cambi"}};
}

}  // namespace

VmafOptions with_test_conditions(VmafOptions options) {
  Conditions all;
  const auto add = [&](const Conditions& conditions) {
    all.models.insert(all.models.end(), conditions.models.begin(), conditions.models.end());
    all.features.insert(all.features.end(), conditions.features.begin(), conditions.features.end());
  };
  if (const std::string& version = options.aom_ctc; !version.empty()) {
    const int number = version.size() == 4 && version.front() == 'v' && version.ends_with(".0")
                           ? version[1] - '0'
                           : 0;
    if (number < 1 || number > kLastAom) {
      throw UsageError(
          fmt::format("--aom_ctc is \"{}\"; it must be v1.0, v2.0, … or v{}.0", version, kLastAom));
    }
    add(aom_conditions(number));
  }
  if (const std::string& version = options.nflx_ctc; !version.empty()) {
    if (version != "v1.0") {
      throw UsageError(fmt::format("--nflx_ctc is \"{}\"; it must be v1.0", version));
    }
    add(netflix_conditions());
  }
  const auto put_in_front = [](std::vector<std::string>& texts, std::vector<std::string>& more) {
    texts.insert(texts.begin(), more.begin(), more.end());
  };
  put_in_front(options.models, all.models);
  put_in_front(options.features, all.features);
  return options;
}

}  // namespace similis::cli
