// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "similis/reduction.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// The shape of a measure of images of this shape, [N,C,…]: [], [N], [N,C], or `map`.
inline Extents reduced_shape(const Extents& images, Reduction reduction, const Extents& map = {}) {
  switch (reduction) {
    case Reduction::mean:
    case Reduction::sum: return {};
    case Reduction::per_image: return {images[0]};
    case Reduction::per_channel: return {images[0], images[1]};
    case Reduction::none: break;
  }
  return map;
}

}  // namespace similis
