// SPDX-License-Identifier: Apache-2.0
// The reduction of the values of all pixels to a measure's result.
#pragma once

#include <cstdint>

namespace similis {

/// The result to which the values of all pixels are reduced.
enum class Reduction : std::uint8_t {
  mean,         ///< one number
  sum,          ///< one number
  none,         ///< the map
  per_image,    ///< the mean of each image: [N]
  per_channel,  ///< the mean of each channel of each image: [N,C]
};

}  // namespace similis
