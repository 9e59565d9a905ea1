// SPDX-License-Identifier: Apache-2.0
// What a measure returns of many values.
#pragma once

#include <cstdint>

namespace similis {

/// What becomes of the values of all pixels.
enum class Reduction : std::uint8_t {
  mean,         ///< one number
  sum,          ///< one number
  none,         ///< the map
  per_image,    ///< the mean of each image: [N]
  per_channel,  ///< the mean of each channel of each image: [N,C]
};

}  // namespace similis
