// SPDX-License-Identifier: Apache-2.0
// One pass over a pair of images that adds up an error of each pixel, as pixel_error.cc hands it to
// a backend once everything about it is checked.
#pragma once

#include <cstdint>

#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis::pixel_error_internal {

enum class Error : std::uint8_t { squared, absolute };

/// With d = x - y and error(d) = d² or |d|, the pass computes
///   value[r] = Σ error(d) / divisor over the pixels of result r
/// and the gradients of Σ upstream·value.
struct Pass {
  TensorView x, y;
  Error error = Error::squared;
  int kept_axes = 0;  ///< leading axes that results keep: 0 for [], 1 for [N], 2 for [N,C]
  double divisor = 1;

  TensorView value;                   ///< dense, f32 or f64; empty if not wanted
  TensorView upstream;                ///< shaped as value, f32 or f64, any strides; empty is 1
  TensorView x_gradient, y_gradient;  ///< shaped as x, any strides; empty if not wanted
};

void pixel_error_cpu(const Pass& pass, const Execution& exec);

}  // namespace similis::pixel_error_internal
