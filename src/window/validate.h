// SPDX-License-Identifier: Apache-2.0
// What every windowed operation refuses, beside what src/core/validate.h does, and its images as
// the kernels take them. `operation` names the caller in the message.
#pragma once

#include "similis/reduction.hpp"
#include "similis/tensor.hpp"
#include "similis/window.hpp"
#include "src/core/validate.h"
#include "src/window/window.h"

namespace similis {

/// Refuses x and y unless they are [N,C,H,W] or [N,C,D,H,W], not empty, on one device, and alike in
/// shape and dtype, which must be u8, f16, bf16, f32 or f64.
void require_image_pair(const char* operation, const TensorView& x, const TensorView& y);

/// Refuses a value that is not dense, of this shape, and f32 or f64 (of a map, the one that results
/// have), and an upstream that is not of this shape and a float; both may be left empty. A scalar
/// may have any number of axes.
void require_result(const char* operation, const TensorView& value, const TensorView& upstream,
    const TensorView& x, const Extents& shape);

/// The taps of a Gaussian window over images of this shape. Refuses sizes that are even, sigmas
/// that are not positive, and counts that do not fit the images' axes.
Window gaussian_window(const char* operation, const PerAxis<int>& window_size,
    const PerAxis<double>& sigma, const Extents& image_shape);

/// Refuses images that are too small for the window with this padding.
void require_room_for_window(
    const char* operation, const Extents& image_shape, const Window& window, Padding padding);

/// [N,C,H,W] becomes [N,C,1,H,W]; [N,C,D,H,W] stays. An empty view stays empty.
TensorView as_volumes(const TensorView& images);

/// Shape of the map over volumes [N,C,D,H,W]: theirs, less window_size - 1 along each axis with
/// padding valid.
Extents map_shape(const Extents& volumes, const Window& window, Padding padding);

/// The shape of a measure of images of this shape, of whose volumes `map` is the map's: without the
/// depth that as_volumes() gave 2-D images.
Extents result_shape(const Extents& images, Reduction reduction, const Extents& map);

/// Upstream as the backends take it: without axes if the result has none, for which a caller may
/// give one element in any number of them.
TensorView as_upstream(const TensorView& upstream, const Extents& result_shape);

/// A mask of [H,W], [C,H,W] or [N,C,H,W] (with D before H for volumes; N and C may be 1) as a 5-D
/// view of the images' shape, by strides of 0. Refuses any other.
TensorView broadcast_mask(
    const char* operation, const char* argument, const TensorView& mask, const TensorView& x);

}  // namespace similis
