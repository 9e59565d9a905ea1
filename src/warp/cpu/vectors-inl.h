// SPDX-License-Identifier: Apache-2.0
// Rows of vector fields [N,Z,Y,X,d] as d rows of f32 or f64, and back. Included once per SIMD
// target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_VECTORS_INL_H
#undef SIMILIS_WARP_CPU_VECTORS_INL_H
#else
#define SIMILIS_WARP_CPU_VECTORS_INL_H
#endif

#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/core/tensor/tensor_row-inl.h"
#include "src/warp/cpu/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// True if vectors lie side by side in f32: rows are then read and written whole, since one
/// component after the other takes three times as long.
inline bool is_interleaved(const TensorView& field) {
  return field.dtype == DType::f32 && field.strides[4] == 1 && field.strides[3] == field.shape[4];
}

// Vectors of f32 as T, and of T as f32.
template <class D, class V32> HWY_INLINE hn::Vec<D> from_f32(D d, V32 v) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return v;
  } else {
    return hn::PromoteTo(d, v);
  }
}
template <class D32, class V> HWY_INLINE hn::Vec<D32> to_f32(D32 d32, V v) {
  if constexpr (sizeof(hn::TFromV<V>) == 4) {
    return v;
  } else {
    return hn::DemoteTo(d32, v);
  }
}

// The vectors in [0, return value) of a row that begins at `in`; a whole number of steps.
template <class T>
std::int64_t load_interleaved(const float* in, int rank, std::int64_t count, T* const out[3]) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hwy::Prefetch(in + rank * (i + kChunk));  // the next chunk: a tenth of the time of sampling
    hwy::Prefetch(in + rank * (i + kChunk) + 16);
    if (lanes > 8) hwy::Prefetch(in + rank * (i + kChunk) + 32);
    auto x = hn::Zero(d32), y = x, z = x;
    if (rank == 3) {
      hn::LoadInterleaved3(d32, in + 3 * i, x, y, z);
      hn::StoreU(from_f32(d, z), d, out[2] + i);
    } else {
      hn::LoadInterleaved2(d32, in + 2 * i, x, y);
    }
    hn::StoreU(from_f32(d, x), d, out[0] + i);
    hn::StoreU(from_f32(d, y), d, out[1] + i);
  }
  return i;
}

template <class T>
std::int64_t store_interleaved(const T* const in[3], int rank, std::int64_t count, float* out) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = to_f32(d32, hn::LoadU(d, in[0] + i));
    const auto y = to_f32(d32, hn::LoadU(d, in[1] + i));
    if (rank == 3) {
      hn::StoreInterleaved3(x, y, to_f32(d32, hn::LoadU(d, in[2] + i)), d32, out + 3 * i);
    } else {
      hn::StoreInterleaved2(x, y, d32, out + 2 * i);
    }
  }
  return i;
}

// out[j][i] = component j of the vector at offset + i·strides[3], for i < count.
template <class T>
void load_vectors(
    const TensorView& field, std::int64_t offset, int rank, std::int64_t count, T* const out[3]) {
  std::int64_t done = 0;
  if (is_interleaved(field)) {
    done = load_interleaved(static_cast<const float*>(field.data()) + offset, rank, count, out);
  }
  const Extents& s = field.strides;
  for (int j = 0; j < rank; ++j) {
    core_internal::HWY_NAMESPACE::load_row(
        field, offset + done * s[3] + j * s[4], s[3], count - done, out[j] + done);
  }
}

template <class T>
void store_vectors(const T* const in[3], int rank, std::int64_t count, const TensorView& field,
    std::int64_t offset) {
  std::int64_t done = 0;
  if (is_interleaved(field)) {
    done = store_interleaved(in, rank, count, static_cast<float*>(field.data()) + offset);
  }
  const Extents& s = field.strides;
  for (int j = 0; j < rank; ++j) {
    core_internal::HWY_NAMESPACE::store_row(
        in[j] + done, count - done, field, offset + done * s[3] + j * s[4], s[3]);
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
