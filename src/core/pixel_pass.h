// SPDX-License-Identifier: Apache-2.0
// The order in which a pass walks its arrays: for each result, lines of pixels in the order in
// which x lies in memory. Channels-last and permuted images so become one long line when everything
// is added up, and any other strides are still right.
#pragma once

#include <array>
#include <cstdint>

#include "src/pixel_error/pixel_error.h"

namespace similis::pixel_error_internal {

/// Where an element lies, or how far apart two are, in x, y and the gradients.
struct Offsets {
  std::int64_t x = 0, y = 0, x_gradient = 0, y_gradient = 0;

  friend bool operator==(const Offsets&, const Offsets&) = default;
  Offsets operator*(std::int64_t count) const {
    return {x * count, y * count, x_gradient * count, y_gradient * count};
  }
  Offsets operator+(const Offsets& other) const {
    return {x + other.x, y + other.y, x_gradient + other.x_gradient, y_gradient + other.y_gradient};
  }
};

struct Axis {
  std::int64_t extent = 1;
  Offsets stride;
};

class Walk {
 public:
  explicit Walk(const Pass& pass);

  std::int64_t results() const { return results_; }
  std::int64_t lines() const { return lines_; }  ///< of each result
  const Axis& line() const { return axes_[static_cast<std::size_t>(rank_ - 1)]; }
  Offsets start_of_line(std::int64_t result, std::int64_t line) const;

 private:
  // The kept axes, then those that are added up, outermost first; the last is the line.
  std::array<Axis, kMaxRank + 1> axes_;
  int rank_ = 0, kept_axes_ = 0;
  std::int64_t results_ = 1, lines_ = 1;
};

constexpr std::int64_t kSegment = 512;         // pixels: all buffers together take 12 KB
constexpr std::int64_t kPixelsOfTask = 65536;  // enough to hide what starting a task costs

/// A pass as independent tasks: each takes some segments of the lines of one result. How it is cut
/// depends on the arrays alone, and so do the bits of the result.
struct Work {
  explicit Work(const Pass& pass);

  const Pass& pass;
  Walk walk;
  std::int64_t segments_of_line, segments_of_task, tasks_of_result;
};

}  // namespace similis::pixel_error_internal
