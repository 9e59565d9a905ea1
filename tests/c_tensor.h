// SPDX-License-Identifier: Apache-2.0
// A TensorView on the CPU as a caller in C passes it.
#pragma once

#include <array>

#include "similis/c/core.h"
#include "src/core/dispatch.h"

namespace similis::test {

/// Shape and strides stand in the object itself, so it stays where it is.
class CTensor {
 public:
  explicit CTensor(const TensorView& view) {
    constexpr int kUnsigned = 1, kFloat = 2, kBfloat = 4;
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      shape_[static_cast<std::size_t>(axis)] = view.shape[axis];
      strides_[static_cast<std::size_t>(axis)] = view.strides[axis];
    }
    const int code = view.dtype == DType::bf16 ? kBfloat : kFloat;
    tensor_ = {.data = view.data,
        .device = {SIMILIS_CPU, 0},
        .ndim = view.shape.rank(),
        .dtype = {static_cast<std::uint8_t>(is_floating_point(view.dtype) ? code : kUnsigned),
            static_cast<std::uint8_t>(8 * size_bytes(view.dtype)), 1},
        .shape = shape_.data(),
        .strides = strides_.data(),
        .byte_offset = 0};
  }
  CTensor(const CTensor&) = delete;
  CTensor& operator=(const CTensor&) = delete;

  const similis_tensor* get() const { return &tensor_; }

 private:
  std::array<std::int64_t, kMaxRank> shape_{}, strides_{};
  similis_tensor tensor_;
};

}  // namespace similis::test
