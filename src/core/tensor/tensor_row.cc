// SPDX-License-Identifier: Apache-2.0
// Rows of tensors as rows of f32 or f64: plain loops, which become the vectors of each SIMD target.
// Vector code calls those of its own target without a dispatch.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/core/tensor/tensor_row.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <cstdint>
#include <type_traits>

#include "src/core/tensor/convert.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/tensor_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::core_internal::HWY_NAMESPACE {

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

template void load_row(
    const TensorView&, std::int64_t, std::int64_t, std::int64_t, float* HWY_RESTRICT);
template void load_row(
    const TensorView&, std::int64_t, std::int64_t, std::int64_t, double* HWY_RESTRICT);
template void store_row(
    const float* HWY_RESTRICT, std::int64_t, const TensorView&, std::int64_t, std::int64_t);
template void store_row(
    const double* HWY_RESTRICT, std::int64_t, const TensorView&, std::int64_t, std::int64_t);

}  // namespace similis::core_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
