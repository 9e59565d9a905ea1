// SPDX-License-Identifier: Apache-2.0
// Dispatch from a run-time DType to a compile-time element type.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "similis/tensor.hpp"
#include "src/core/tensor/convert.h"

namespace similis {

/// Calls function(std::type_identity<T>{}) with T the element type of dtype; a boolean is a byte.
template <class Function> auto visit_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::u8:
    case DType::boolean: return function(std::type_identity<std::uint8_t>{});
    case DType::u16: return function(std::type_identity<std::uint16_t>{});
    case DType::f16: return function(std::type_identity<F16>{});
    case DType::bf16: return function(std::type_identity<BF16>{});
    case DType::f32: return function(std::type_identity<float>{});
    case DType::i16: return function(std::type_identity<std::int16_t>{});
    case DType::i32: return function(std::type_identity<std::int32_t>{});
    case DType::f64: break;
  }
  return function(std::type_identity<double>{});
}

/// One element of a CPU tensor, `offset` elements from its first.
inline double element(const TensorView& tensor, std::int64_t offset) {
  return visit_dtype(tensor.dtype, [&]<class T>(std::type_identity<T>) {
    return static_cast<double>(load(static_cast<const T*>(tensor.data())[offset]));
  });
}

inline bool is_floating_point(DType dtype) {
  return visit_dtype(dtype, []<class T>(std::type_identity<T>) { return !std::is_integral_v<T>; });
}

/// True for the dtypes that no GPU kernel reads as images.
inline bool is_cpu_only(DType dtype) {
  return dtype == DType::i16 || dtype == DType::i32 || dtype == DType::boolean;
}

/// The type of a result: f64 for images of f64 and i32, which f32 does not hold, else f32.
inline DType result_dtype(DType dtype) {
  return dtype == DType::f64 || dtype == DType::i32 ? DType::f64 : DType::f32;
}

}  // namespace similis
