// SPDX-License-Identifier: Apache-2.0
// CAMBI on the CPU works on this: an image with its mask, and the steps that are seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/vmaf/cambi/cambi.h"

namespace similis::vmaf_internal {

// Samples of 10 bits and their mask, dense.
struct CambiImage {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint16_t> values;
  std::vector<std::uint8_t> mask;
  std::uint16_t* row(std::int64_t y) { return values.data() + y * width; }
  const std::uint16_t* row(std::int64_t y) const { return values.data() + y * width; }
  std::uint8_t* mask_row(std::int64_t y) { return mask.data() + y * width; }
  const std::uint8_t* mask_row(std::int64_t y) const { return mask.data() + y * width; }
};

struct CambiPlan {
  CambiPlan(const CambiSetting& setting, const Plane& plane)
      : limits(cambi_limits(setting)),
        window(cambi_window(setting, plane.width, plane.height)),
        inverses(cambi_inverses(window.places())),
        steps_of(kCambiLargest + 1) {
    const auto steps = static_cast<int>(limits.largest.size());
    for (int value = 0; value <= kCambiLargest; ++value) {
      for (int step = 1; step <= steps; ++step) {
        if (value > limits.largest[static_cast<std::size_t>(step - 1)]) continue;
        if (value + steps + step <= limits.least) continue;
        steps_of[static_cast<std::size_t>(value)] |= std::uint32_t{1} << (step - 1);
        largest_counted = std::max(largest_counted, std::min(kCambiLargest, value + step));
      }
    }
  }
  CambiLimits limits;
  CambiWindow window;
  std::vector<float> inverses;
  std::vector<std::uint32_t> steps_of;  // by value: a bit for each step that is seen
  int largest_counted = 0;              // values above are not looked at
};

}  // namespace similis::vmaf_internal
