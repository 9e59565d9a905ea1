// SPDX-License-Identifier: Apache-2.0
// The errors of mse and mae pixel by pixel.
#pragma once

#include "similis/execution.hpp"
#include "similis/pixel_error.hpp"
#include "similis/tensor.hpp"

namespace similis::cli {

/// (x - y)², or |x - y|, of each element: of the images' shape, f32, on the CPU; NaN where the
/// options' mask, which is u8, dense and of one channel, is 0. Images on a GPU are copied to the
/// CPU.
Tensor squared_error_map(const TensorView& x, const TensorView& y, const PixelErrorOptions& options,
    const Execution& exec);
Tensor absolute_error_map(const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options, const Execution& exec);

}  // namespace similis::cli
