// SPDX-License-Identifier: Apache-2.0
// Single elements of tensors and vector fields on the CPU, of any dtype.
#pragma once

#include <cstdint>

#include "src/core/tensor/dispatch.h"

namespace similis::warp_internal {

inline void store_element(const TensorView& view, std::int64_t offset, double value) {
  visit_dtype(view.dtype,
      [&]<class E>(std::type_identity<E>) { store(value, static_cast<E*>(view.data()) + offset); });
}

/// The offset of a voxel's vector in [N,Z,Y,X,d], or of its scalar in [N,Z,Y,X].
inline std::int64_t voxel_offset(
    const TensorView& field, std::int64_t n, std::int64_t z, std::int64_t y, std::int64_t x) {
  const Extents& s = field.strides;
  return n * s[0] + z * s[1] + y * s[2] + x * s[3];
}

}  // namespace similis::warp_internal
