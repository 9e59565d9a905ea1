// SPDX-License-Identifier: Apache-2.0
// Rows of tensors of any dtype and strides, as rows of f32 or f64. Plain loops, which become the
// vectors of each SIMD target: included once per target, hence the guard that flips.
#if defined(SIMILIS_CORE_TENSOR_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_CORE_TENSOR_ROW_INL_H
#undef SIMILIS_CORE_TENSOR_ROW_INL_H
#else
#define SIMILIS_CORE_TENSOR_ROW_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "similis/tensor.hpp"
#include "src/core/tensor/convert.h"
#include "src/core/tensor/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace similis::core_internal::HWY_NAMESPACE {

// out[i] = the element at offset + i·stride, for i < count.
template <class T>
void load_row(const TensorView& tensor, std::int64_t offset, std::int64_t stride,
    std::int64_t count, T* HWY_RESTRICT out) {
  visit_dtype(tensor.dtype, [&]<class E>(std::type_identity<E>) {
    const E* HWY_RESTRICT in = static_cast<const E*>(tensor.data()) + offset;
    if (stride == 1) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(load(in[i]));
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(load(in[i * stride]));
    }
  });
}

// The element at offset + i·stride = in[i], rounded to the tensor's dtype.
template <class T>
void store_row(const T* HWY_RESTRICT in, std::int64_t count, const TensorView& tensor,
    std::int64_t offset, std::int64_t stride) {
  visit_dtype(tensor.dtype, [&]<class E>(std::type_identity<E>) {
    E* HWY_RESTRICT out = static_cast<E*>(tensor.data()) + offset;
    if (stride == 1) {
      for (std::int64_t i = 0; i < count; ++i) store(in[i], out + i);
    } else {
      for (std::int64_t i = 0; i < count; ++i) store(in[i], out + i * stride);
    }
  });
}

}  // namespace similis::core_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
