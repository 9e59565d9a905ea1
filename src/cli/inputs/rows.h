// SPDX-License-Identifier: Apache-2.0
// Walks over arrays of any strides on the CPU, a row at a time.
#pragma once

#include <cstdint>

#include "similis/tensor.hpp"

namespace similis::cli {

/// The number of rows of an array: the product of all axes but the last.
inline std::int64_t row_count(const Extents& shape) {
  return shape.count() / shape[shape.rank() - 1];
}

/// Elements from the first of the array to the first of this row, in row-major order.
inline std::int64_t row_offset(const TensorView& view, std::int64_t row) {
  std::int64_t offset = 0;
  for (int axis = view.shape.rank() - 2; axis >= 0; --axis) {
    offset += row % view.shape[axis] * view.strides[axis];
    row /= view.shape[axis];
  }
  return offset;
}

/// Elements between neighbours of a row.
inline std::int64_t row_stride(const TensorView& view) {
  return view.strides[view.shape.rank() - 1];
}

}  // namespace similis::cli
