// SPDX-License-Identifier: Apache-2.0
// One axis of an image under a window: the possible centres, the pixels seen beyond the image, and
// the transpose of the average, which brings a gradient back.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/window.hpp"
#include "src/core/host_device.h"
#include "src/window/tile.h"

namespace similis {

class Axis {
 public:
  /// counted: the pixels that windows may be centred on.
  Axis(std::int64_t extent, const std::vector<double>& taps, Padding padding,
      const Interval& counted = kEverywhere);

  std::int64_t extent() const { return extent_; }
  std::int64_t radius() const { return radius_; }
  const std::vector<double>& taps() const { return taps_; }

  /// Windows are centred on pixels in [first_centre, last_centre).
  std::int64_t first_centre() const { return centres_.first; }
  std::int64_t last_centre() const { return centres_.last; }

  Interval centres() const { return centres_; }

  static constexpr std::int64_t kOutside = -1;
  /// The pixel that a window sees at any index of an axis, or kOutside where padding puts none.
  /// Kernels call it too.
  SIMILIS_HOST_DEVICE static std::int64_t source(
      std::int64_t index, std::int64_t extent, Padding padding) {
    if (index >= 0 && index < extent) return index;
    if (padding == Padding::reflect) return index < 0 ? -index : 2 * (extent - 1) - index;
    if (padding == Padding::replicate) return index < 0 ? 0 : extent - 1;
    return kOutside;
  }
  std::int64_t source(std::int64_t index) const { return source(index, extent_, padding_); }

  /// Σ of the taps that see a pixel from a window centred on `centre`: below 1 only where padding
  /// renormalize cuts the window.
  double weight(std::int64_t centre) const;

  /// True if windows see some pixels more than once, so that a gradient folds back onto them.
  bool folds() const { return padding_ == Padding::reflect || padding_ == Padding::replicate; }

  /// The weight of the pixel in each window around it: element k belongs to the window centred on
  /// pixel - radius + k, 0 where there is none.
  std::vector<double> transposed_taps(std::int64_t pixel) const;

 private:
  std::int64_t extent_, radius_;
  std::vector<double> taps_;
  Padding padding_;
  Interval centres_;
};

}  // namespace similis
