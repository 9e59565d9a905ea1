// SPDX-License-Identifier: Apache-2.0
// Rounding of fields on a GPU as round_to() does it.
#pragma once

#include "src/gpu/cuda/vendor.h"

namespace similis::registration_internal::cuda {
namespace {

/// Rounds numbers of f64 to multiples of a power of 2; 0 leaves a field of zeros. Those of f32
/// stay.
template <class T> struct Rounding {
  T unit, per_unit;

  __device__ explicit Rounding(double of)
      : unit(static_cast<T>(of)), per_unit(static_cast<T>(of > 0 ? 1 / of : 0)) {}
  __device__ __forceinline__ T operator()(T number) const {
    if constexpr (sizeof(T) == sizeof(double)) return rint(number * per_unit) * unit;
    return number;
  }
};

}  // namespace
}  // namespace similis::registration_internal::cuda
