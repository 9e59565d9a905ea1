// SPDX-License-Identifier: Apache-2.0
// Rows of tensors of any dtype and strides, as rows of f32 or f64. tensor_row.cc compiles them for
// each SIMD target, once for all rooms: eight dtypes in each room's code took a tenth of the time
// to compile it. Included once per target, hence the guard that flips.
#if defined(SIMILIS_CORE_TENSOR_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_CORE_TENSOR_ROW_INL_H
#undef SIMILIS_CORE_TENSOR_ROW_INL_H
#else
#define SIMILIS_CORE_TENSOR_ROW_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "similis/tensor.hpp"

HWY_BEFORE_NAMESPACE();
namespace similis::core_internal::HWY_NAMESPACE {

// out[i] = the element at offset + i·stride, for i < count. T: float or double.
template <class T>
void load_row(const TensorView& tensor, std::int64_t offset, std::int64_t stride,
    std::int64_t count, T* HWY_RESTRICT out);

// The element at offset + i·stride = in[i], rounded to the tensor's dtype.
template <class T>
void store_row(const T* HWY_RESTRICT in, std::int64_t count, const TensorView& tensor,
    std::int64_t offset, std::int64_t stride);

}  // namespace similis::core_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
