// SPDX-License-Identifier: Apache-2.0
// Images as operations take them: pairs [N,C,H,W] or [N,C,D,H,W], masks over them, and results as
// large as their reduction says. `operation` names the caller in the message.
#pragma once

#include "similis/execution.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"

namespace similis {

/// Refuses x and y unless they are [N,C,H,W] or [N,C,D,H,W], not empty, on one device, and alike in
/// shape and dtype, which on a GPU must be u8, f16, bf16, f32 or f64.
void require_image_pair(const char* operation, const TensorView& x, const TensorView& y);

/// Refuses a value that is not dense, of this shape, and f32 or f64 (of a map, the one that results
/// have), and an upstream that is not of this shape and a float; both may be left empty. A scalar
/// may have any number of axes.
void require_result(const char* operation, const TensorView& value, const TensorView& upstream,
    const TensorView& x, const Extents& shape);

/// [N,C,H,W] becomes [N,C,1,H,W]; [N,C,D,H,W] stays. An empty view stays empty.
TensorView as_volumes(const TensorView& images);

/// The shape of a measure of images of this shape, of whose volumes `map` is the map's: without the
/// depth that as_volumes() gave 2-D images.
Extents result_shape(const Extents& images, Reduction reduction, const Extents& map);

/// Sums of planes instead of a reduction: [2,N,C], a sum and its weights, or [4,N,C] of two terms.
Extents sums_shape(const Extents& images, int terms);

/// Refuses a value that is not dense, of this shape of sums, and f64, and an upstream that is not
/// of this shape and a float; both may be left empty.
void require_sums(const char* operation, const TensorView& value, const TensorView& upstream,
    const TensorView& x, const Extents& shape);

/// The sums of one term, [N,C], of an array shaped as sums. An empty view stays empty.
TensorView sums_of_term(const TensorView& sums, int term);

/// Upstream as the backends take it: without axes if the result has none, for which a caller may
/// give one element in any number of them.
TensorView as_upstream(const TensorView& upstream, const Extents& result_shape);

/// A mask of any dtype as a view of the images' shape, by strides of 0: N and C may be left out or
/// be 1. Refuses any other shape, another device, and on the CPU a weight that is negative,
/// infinite or NaN. The weights of a mask on a GPU are not looked at, as that would wait for it: a
/// negative one or a NaN makes the results NaN there.
TensorView broadcast_mask(const char* operation, const char* argument, const TensorView& mask,
    const TensorView& x, const Execution& exec);

}  // namespace similis
