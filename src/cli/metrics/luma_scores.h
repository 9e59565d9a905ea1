// SPDX-License-Identifier: Apache-2.0
// libvmaf's measures of luma, as `similis compare` and `similis vmaf` both call them: planes of
// integers in, one number or several out.
#pragma once

#include <string>
#include <vector>

#include "similis/execution.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "src/cli/inputs/frame_pair.h"

namespace similis::cli {

/// Options by libvmaf's names; each measure takes some of them.
struct LumaOptions {
  FloatSsimOptions float_ssim;
  FloatMsSsimOptions float_ms_ssim;
  bool enable_lcs = false;
};

struct LumaMeasure {
  /// Suffixes of the names of the measure's numbers: "" for the score itself, then, with
  /// enable_lcs, "l", "c" and "s", or those of each scale as "l_scale0".
  std::vector<std::string> (*parts)(const LumaOptions&);
  /// One number for each part. Throws InvalidArgument for planes that the measure does not take.
  std::vector<double> (*scores)(const LumaPlanes&, const LumaOptions&, const Execution&);
  bool runs_on_vulkan = false;
};

extern const LumaMeasure integer_ssim_of_luma, float_ssim_of_luma, float_ms_ssim_of_luma;

}  // namespace similis::cli
