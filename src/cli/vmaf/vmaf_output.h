// SPDX-License-Identifier: Apache-2.0
// The documents of libvmaf's program vmaf, 3.1 and later, to the byte.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace similis::cli {

struct VmafFrame {
  std::int64_t number = 0;
  std::vector<double> values;  ///< one for each of VmafResults::columns
};

struct VmafResults {
  std::string version;
  std::int64_t width = 0, height = 0;
  double frames_per_second = 0;
  std::vector<std::string> columns;
  std::vector<VmafFrame> frames;
  std::vector<std::pair<std::string, double>> aggregates;  ///< numbers of the whole clip
  bool is_shortest = false;  ///< numbers with the fewest digits that read back as the same
};

/// A number as vmaf prints it: six digits after the point, or sixteen if those six would all be
/// zeros but the number is not an integer.
std::string vmaf_number(double value);

std::string to_vmaf_json(const VmafResults& results);
std::string to_vmaf_xml(const VmafResults& results);
std::string to_vmaf_csv(const VmafResults& results);
std::string to_vmaf_subtitles(const VmafResults& results);

}  // namespace similis::cli
