// SPDX-License-Identifier: Apache-2.0
// One axis of an image under a window: the possible centres, the pixels seen beyond the image, and
// the transpose of the average, which brings a gradient back.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/window.hpp"
#include "src/window/tile.h"

namespace similis {

class Axis {
 public:
  Axis(std::int64_t extent, const std::vector<double>& taps, Padding padding);

  std::int64_t extent() const { return extent_; }
  std::int64_t radius() const { return radius_; }
  const std::vector<double>& taps() const { return taps_; }

  /// Windows are centred on pixels in [first_centre, last_centre).
  std::int64_t first_centre() const { return padding_ == Padding::valid ? radius_ : 0; }
  std::int64_t last_centre() const {
    return padding_ == Padding::valid ? extent_ - radius_ : extent_;
  }

  Interval centres() const { return {first_centre(), last_centre()}; }

  static constexpr std::int64_t kOutside = -1;
  /// The pixel that is seen at any index, or kOutside where there is none.
  std::int64_t source(std::int64_t index) const;

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
};

}  // namespace similis
