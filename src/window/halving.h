// SPDX-License-Identifier: Apache-2.0
// The halving of an axis: each coarse element is the mean of two fine ones, which the rule chooses.
// Seen from the fine side every element goes to at most one coarse one.
#pragma once

#include <cstdint>

#include "similis/ms_ssim.hpp"
#include "src/core/host_device.h"

namespace similis {

class Halving {
 public:
  /// `any_odd`: whether the image has an odd side, which the piq rule asks.
  Halving(std::int64_t extent, Downsample rule, bool any_odd)
      : extent_(extent),
        shift_(rule == Downsample::vainf ? extent % 2
               : rule == Downsample::piq ? (any_odd ? 1 : 0)
                                         : 0),
        coarse_(rule == Downsample::floor ? extent / 2 : (extent + 1) / 2),
        repeats_(rule != Downsample::vainf) {}

  /// An axis that stays as it is: the depth of a 2-D image.
  static Halving none() { return Halving(); }

  std::int64_t coarse_extent() const { return coarse_; }

  /// The first or second (k = 0, 1) fine element of a coarse one; kZero where a zero stands.
  static constexpr std::int64_t kZero = -1;
  SIMILIS_HOST_DEVICE std::int64_t fine(std::int64_t coarse, int k) const {
    if (is_none_) return coarse;
    const std::int64_t index = 2 * coarse + k - shift_;
    if (index >= 0 && index < extent_) return index;
    if (!repeats_) return kZero;
    return index < 0 ? 0 : extent_ - 1;
  }

  /// The coarse element that a fine one goes to; only meaningful where share() is not 0.
  SIMILIS_HOST_DEVICE std::int64_t coarse(std::int64_t fine) const {
    return is_none_ ? fine : (fine + shift_) / 2;
  }
  /// The weight of this fine element in the coarse element's mean: 1/2; 1 where the rule repeats
  /// it, 0 where it leaves it out.
  SIMILIS_HOST_DEVICE double share(std::int64_t fine) const {
    if (is_none_) return 1;
    const std::int64_t target = coarse(fine);
    if (target >= coarse_) return 0;
    return ((this->fine(target, 0) == fine ? 1 : 0) + (this->fine(target, 1) == fine ? 1 : 0)) /
           2.0;
  }

 private:
  Halving() : is_none_(true) {}

  std::int64_t extent_ = 1, shift_ = 0, coarse_ = 1;
  bool repeats_ = false, is_none_ = false;
};

}  // namespace similis
