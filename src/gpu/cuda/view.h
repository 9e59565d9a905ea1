// SPDX-License-Identifier: Apache-2.0
// A 5-D array in a kernel: any strides, and a dtype that is a switch at load and store.
#pragma once

#include <cstdint>

#include "similis/tensor.hpp"
#include "src/core/tensor/convert.h"
#include "src/gpu/cuda/half.h"
#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {

/// Loads one element of a dtype known at run time, as a double. GPUs have no i16, i32 and boolean.
__device__ inline double load_element(const void* data, DType dtype, std::int64_t offset) {
  switch (dtype) {
    case DType::u8: return static_cast<const std::uint8_t*>(data)[offset];
    case DType::u16: return static_cast<const std::uint16_t*>(data)[offset];
    case DType::f16: return load(static_cast<const F16*>(data)[offset]);
    case DType::bf16: return load(static_cast<const BF16*>(data)[offset]);
    case DType::f32: return static_cast<const float*>(data)[offset];
    default: break;
  }
  return static_cast<const double*>(data)[offset];
}

/// Loads the same as f32: an f64 element is rounded once.
__device__ inline float load_element_f32(const void* data, DType dtype, std::int64_t offset) {
  switch (dtype) {
    case DType::u8: return to_float(static_cast<const std::uint8_t*>(data)[offset]);
    case DType::u16: return static_cast<const std::uint16_t*>(data)[offset];
    case DType::f16: return to_float(static_cast<const F16*>(data)[offset]);
    case DType::bf16: return to_float(static_cast<const BF16*>(data)[offset]);
    case DType::f32: return static_cast<const float*>(data)[offset];
    default: break;
  }
  return static_cast<float>(static_cast<const double*>(data)[offset]);
}

/// Stores a number, rounded once. Integers are never results.
__device__ inline void store_element(void* data, DType dtype, std::int64_t offset, double value) {
  switch (dtype) {
    case DType::f16: return store(value, static_cast<F16*>(data) + offset);
    case DType::bf16: return store(value, static_cast<BF16*>(data) + offset);
    case DType::f32: return store(value, static_cast<float*>(data) + offset);
    default: return store(value, static_cast<double*>(data) + offset);
  }
}

/// An array of five axes, [N,C,D,H,W]. Null data means that it is left out.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t strides[5] = {};

  View() = default;
  explicit View(const TensorView& view) : data(view.data()), dtype(view.dtype) {
    if (!view.empty() && view.shape.rank() == 5) {
      for (int axis = 0; axis < 5; ++axis) strides[axis] = view.strides[axis];
    }
  }

  __device__ std::int64_t plane(std::int64_t image, std::int64_t channel) const {
    return image * strides[0] + channel * strides[1];
  }
  __device__ std::int64_t at(std::int64_t z, std::int64_t y, std::int64_t x) const {
    return z * strides[2] + y * strides[3] + x * strides[4];
  }
  __device__ double load(std::int64_t offset) const { return load_element(data, dtype, offset); }
  __device__ float load_f32(std::int64_t offset) const {
    return load_element_f32(data, dtype, offset);
  }
  __device__ void store(std::int64_t offset, double value) const {
    store_element(data, dtype, offset, value);
  }
};

}  // namespace similis::gpu
