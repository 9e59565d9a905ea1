// SPDX-License-Identifier: Apache-2.0
// Elements on their way from memory, whose type is known at run time.
#pragma once

#include "src/gpu/cuda/view.h"

namespace similis::lncc_internal {

/// Calls visit(T()) with the type of elements in memory, Other for the rarer types: a kernel asks
/// for the type once for all its pixels of a plane.
struct Other {};
template <class Visit> __device__ __forceinline__ void visit_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32: return visit(float());
    case DType::f16: return visit(F16());
    case DType::bf16: return visit(BF16());
    case DType::u8: return visit(std::uint8_t());
    default: return visit(Other());
  }
}

/// An element on its way from memory: its bits, so that nothing waits for it before value(). Those
/// of rarer types stay in memory.
struct RawElement {
  unsigned bits = 0;

  template <class T>
  __device__ __forceinline__ void ask(T, const gpu::View& view, std::int64_t at) {
    if constexpr (sizeof(T) == sizeof(float)) {
      bits = static_cast<const unsigned*>(view.data)[at];
    } else if constexpr (sizeof(T) == sizeof(F16)) {
      bits = static_cast<const std::uint16_t*>(view.data)[at];
    } else if constexpr (!std::is_same_v<T, Other>) {
      bits = static_cast<const std::uint8_t*>(view.data)[at];
    }
  }
  template <class T>
  __device__ __forceinline__ double value(T, const gpu::View& view, std::int64_t at) const {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, BF16>) {
      return __uint_as_float(sizeof(T) == sizeof(float) ? bits : bits << 16);
    } else if constexpr (std::is_same_v<T, F16>) {
      return gpu::to_float(F16{static_cast<std::uint16_t>(bits)});
    } else if constexpr (std::is_same_v<T, Other>) {
      return view.load(at);
    } else {
      return gpu::to_float(static_cast<T>(bits));
    }
  }
};

}  // namespace similis::lncc_internal
