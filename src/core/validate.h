// SPDX-License-Identifier: Apache-2.0
// What every operation on a pair of images refuses. `operation` names the caller in the message.
#pragma once

#include <optional>

#include "similis/tensor.hpp"

namespace similis {

/// Refuses x and y, of one axis at least, unless they are not empty, on one device, and alike in
/// shape and dtype.
void require_alike(const char* operation, const TensorView& x, const TensorView& y);

/// The data_range that was given, or that of the type: 1 for floats, 255 for u8, 65535 for u16.
/// Refuses one that is not positive.
double checked_data_range(const char* operation, std::optional<double> given, DType dtype);

/// Refuses a tensor whose elements cannot each be replaced: of integers, or sharing a place.
void require_in_place(const char* operation, const char* argument, const TensorView& tensor);

/// Refuses a view that is not shaped like the images, on another device, or of another dtype, or
/// that would write one element twice.
void require_gradient(
    const char* operation, const char* argument, const TensorView& gradient, const TensorView& x);

}  // namespace similis
