// SPDX-License-Identifier: Apache-2.0
// Normalised cross-correlation (NCC) of whole images: Pearson's correlation of their pixels.
//
//   NCC = Σ (x - x̄)(y - ȳ) / √(Σ (x - x̄)² · Σ (y - ȳ)²)
//
// lncc.hpp has what a small window sees, with gradients.
#pragma once

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// NCC of each channel of each image, from -1 to 1; 0 if either is flat. Sums are f64.
/// x, y: [N,C,H,W] or [N,C,D,H,W]; u8, f16, bf16, f32 or f64; alike in all but their strides.
/// reduction: of the channels' numbers: mean or sum, per_image: [N], or per_channel: [N,C].
/// Returns f64 on their device. On a GPU work is queued on exec.stream and not waited for.
/// Throws InvalidArgument if x and y are not alike or have no elements, or reduction is another.
SIMILIS_API Tensor ncc(const TensorView& x, const TensorView& y,
    Reduction reduction = Reduction::mean, const Execution& exec = {});

}  // namespace similis
