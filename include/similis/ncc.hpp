// SPDX-License-Identifier: Apache-2.0
// Normalised cross-correlation (NCC) of whole images: Pearson's correlation of their pixels.
//
//   NCC = Σ (x - x̄)(y - ȳ) / √(Σ (x - x̄)² · Σ (y - ȳ)²)
//
// lncc.hpp has the correlation under a small window.
#pragma once

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// NCC of each channel of each image, from -1 to 1; 0 if either is flat, NaN where a pixel is not
/// finite. Sums are f64.
/// x, y: [N,C,H,W] or [N,C,D,H,W]; of any dtype on the CPU, on a GPU u8, f16, bf16, f32 or f64;
/// alike in all but their strides.
/// reduction: mean or sum over the channels' numbers, per_image: [N], or per_channel: [N,C].
/// Returns f64 on their device. On a GPU work is queued on exec.queue and not waited for.
/// Throws InvalidArgument if x and y are not alike or have no elements, or reduction is none.
SIMILIS_API Tensor ncc(const TensorView& x, const TensorView& y,
    Reduction reduction = Reduction::mean, const Execution& exec = {});

/// The value, in f64, and the gradient of its sum over all results; 0 in a channel where either is
/// flat. Refuses integer images, which have no gradient.
SIMILIS_API ValueAndGradient ncc_value_and_gradient(const TensorView& x, const TensorView& y,
    GradientOf wrt = GradientOf::x, Reduction reduction = Reduction::mean,
    const Execution& exec = {});

/// The results of one call, in memory of the caller; empty views are not computed.
struct NccRequest {
  double weight = 1;           ///< multiplies the correlation: -1 for the loss
  TensorView upstream = {};    ///< multiplies the gradients; shaped as value, f32 or f64. Empty: 1
  TensorView value = {};       ///< dense; f32 or f64, whatever the images' dtype
  TensorView x_gradient = {};  ///< any strides without overlap; the images' dtype
  TensorView y_gradient = {};
};

/// The call behind ncc() and its gradient: for bindings and callers with memory of their own.
/// Throws also if a view of the request has the wrong shape, strides, dtype or device.
SIMILIS_API void ncc_into(const TensorView& x, const TensorView& y, const NccRequest& request,
    Reduction reduction = Reduction::mean, const Execution& exec = {});

}  // namespace similis
