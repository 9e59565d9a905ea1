// SPDX-License-Identifier: Apache-2.0
// `similis info`: the SIMD targets, devices and file formats that this build can use on this
// machine, or one device of them.
#pragma once

#include <string>

namespace similis::cli {

struct InfoOptions {
  std::string device;  ///< as in `--device`; empty: all there is
  bool report = false;
};

/// The text of the command. Throws UsageError or DeviceError for a device as parse_device() does,
/// UsageError for a report of a device that is none of Vulkan's.
std::string info_text(const InfoOptions& options);

}  // namespace similis::cli
