// SPDX-License-Identifier: Apache-2.0
// `similis vmaf`: libvmaf's program vmaf, with its flags and documents.
#pragma once

#include <string>
#include <vector>

namespace similis::cli {

/// The command line as typed, not yet parsed; options that were not given are empty.
struct VmafOptions {
  std::string reference, distorted;
  std::string width, height, pixel_format, bit_depth;
  std::vector<std::string> features;
  bool is_xml = false, is_json = false, is_csv = false, is_sub = false;
  std::string output;
  std::string threads, subsample, frame_count, skip_reference, skip_distorted;
  std::vector<std::string> models;
  std::string aom_ctc, nflx_ctc;
  std::string device = "auto";
  std::string precision;
  std::string mask;  ///< --cpumask or --gpumask: taken, and of no effect
  bool has_no_prediction = false, is_quiet = false;
};

/// Writes the document and returns 0. Throws UsageError if the options do not fit together, Error
/// if a video cannot be read whole or scored; nothing is written then.
int vmaf(const VmafOptions& options);

}  // namespace similis::cli
