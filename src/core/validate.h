// SPDX-License-Identifier: Apache-2.0
// Every operation on a pair of images makes these refusals. `operation` names the caller in the
// message.
#pragma once

#include <optional>

#include "similis/tensor.hpp"

namespace similis {

/// Refuses x and y, of one axis at least, unless they are not empty, on one device, alike in shape
/// and dtype, and on the CPU if they are i16, i32 or boolean.
void require_alike(const char* operation, const TensorView& x, const TensorView& y);

/// The given data_range, else the largest minus the smallest value that a pixel of the type is
/// meant to take: 1 for floats and booleans, 255 for u8, 65535 for u16. Refuses i16 and i32 without
/// one.
double data_range_of(const char* operation, std::optional<double> given, DType dtype);

/// The dtypes that a result may have.
struct ResultDTypes {
  bool f32, f64;
  const char* words;
};
inline constexpr ResultDTypes kFloat32{true, false, "float32"};
inline constexpr ResultDTypes kFloat64{false, true, "float64"};
inline constexpr ResultDTypes kFloat32OrFloat64{true, true, "float32 or float64"};

/// Refuses a result that is not of this shape, dense, of such a dtype and on the device of `like`,
/// an argument by that name. An empty view is not looked at. A scalar may have any number of axes.
void require_result(const char* operation, const char* argument, const TensorView& result,
    const Extents& shape, const ResultDTypes& dtypes, const TensorView& like,
    const char* like_argument = "x");

/// Refuses an upstream gradient that is not shaped like the result, of a float dtype and on the
/// device of x. An empty view is not looked at. A scalar may have any number of axes.
void require_upstream(
    const char* operation, const TensorView& upstream, const Extents& shape, const TensorView& x);

/// Refuses a tensor whose elements cannot each be replaced: of integers, or sharing a place.
void require_in_place(const char* operation, const char* argument, const TensorView& tensor);

/// Refuses a view that is not shaped like the images, on another device, or of another dtype, or
/// that would write one element twice.
void require_gradient(
    const char* operation, const char* argument, const TensorView& gradient, const TensorView& x);

}  // namespace similis
