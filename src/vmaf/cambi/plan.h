// SPDX-License-Identifier: Apache-2.0
// Data that CAMBI on the CPU works on: an image, the steps that are seen, and counts of values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/vmaf/cambi/cambi.h"

namespace similis::vmaf_internal {

// Words behind the last row of an image, which its last vector may read: those of the widest one.
constexpr std::size_t kCambiWordsBehind = 128;

// A dense image of 10 bits and its mask. A word is a value plus 1; its highest bit is set where the
// mask leaves the place out.
struct CambiImage {
  CambiImage(std::int64_t of_width, std::int64_t of_height)
      : width(of_width),
        height(of_height),
        words(static_cast<std::size_t>(of_width * of_height) + kCambiWordsBehind) {}

  std::int64_t width, height;
  std::vector<std::uint16_t> words;
  std::uint16_t* row(std::int64_t y) { return words.data() + y * width; }
  const std::uint16_t* row(std::int64_t y) const { return words.data() + y * width; }
};
constexpr std::uint16_t kCambiLeftOut = 0x8000;

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
  int largest_counted = 0;              // values above are not counted
};

// The counts of each value in the window of each column, for one row of windows. A row of counts
// belongs to a value; rows beside those of counted values stay empty.
struct CambiTable {
  std::vector<std::uint16_t> counts;
  std::vector<std::int32_t> places;     // by row of counts: places in the rows that windows see
  std::vector<std::uint8_t> is_filled;  // by row of counts: 1 if it may hold other than zeros
  std::int64_t stride = 0;
  std::int64_t next_row = -1;  // the table holds the windows of the row above; -1: of no row

  void clear() {
    for (std::size_t i = 0; i < is_filled.size(); ++i) {
      if (is_filled[i] == 0) continue;
      std::fill_n(counts.begin() + static_cast<std::int64_t>(i) * stride, stride, std::uint16_t{0});
      is_filled[i] = 0;
      places[i] = 0;
    }
    next_row = -1;
  }
};

}  // namespace similis::vmaf_internal
