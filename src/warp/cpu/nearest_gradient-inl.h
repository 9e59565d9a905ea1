// SPDX-License-Identifier: Apache-2.0
// The nearest voxels' gradient to the field, 0·upstream·voxel: 0 where both are finite, so that
// voxels need not be loaded, and NaN where the coordinate is NaN. Included once per SIMD target,
// hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_NEAREST_GRADIENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_NEAREST_GRADIENT_INL_H
#undef SIMILIS_WARP_CPU_NEAREST_GRADIENT_INL_H
#else
#define SIMILIS_WARP_CPU_NEAREST_GRADIENT_INL_H
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/core/parallel.h"
#include "src/core/tensor/elements-inl.h"
#include "src/warp/cpu/plan.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
template <class E> HWY_INLINE auto load_numbers(const E* from) {
  if constexpr (std::is_same_v<E, double>) {
    return hn::LoadU(hn::ScalableTag<double>(), from);
  } else {
    return core_internal::HWY_NAMESPACE::load_elements(from);
  }
}

// True if no element is infinite or NaN.
template <class E> bool are_finite(const E* from, std::int64_t count) {
  using T = std::conditional_t<std::is_same_v<E, double>, double, float>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> nothing[2] = {hn::Zero(d), hn::Zero(d)};  // NaN if one is not
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    for (int k = 0; k < 2; ++k) {
      nothing[k] = hn::MulAdd(hn::Zero(d), load_numbers(from + i + k * lanes), nothing[k]);
    }
  }
  const auto take = [&](std::int64_t first) HWY_ATTR {
    nothing[0] = hn::MulAdd(hn::Zero(d), load_numbers(from + first), nothing[0]);
  };
  for (; i + lanes <= count; i += lanes) take(i);
  if (i < count && count >= lanes) {  // the last vector takes numbers again
    take(count - lanes);
    i = count;
  }
  T rest = 0;
  for (; i < count; ++i) rest += 0 * static_cast<T>(load(from[i]));
  const auto sum = hn::Add(hn::Add(nothing[0], nothing[1]), hn::Set(d, rest));
  return hn::AllTrue(d, hn::Eq(sum, sum));
}

// True if the nearest voxels' gradient to the field is 0 wherever these and the upstream gradient
// are finite, and to look at them costs less than to load each where it is the nearest.
inline bool wants_finite_voxels(const Plan& plan) {
  const Pass& pass = plan.pass;
  const std::int64_t voxels = pass.axes[0].extent * pass.axes[1].extent * pass.axes[2].extent;
  bool result = pass.mode == Interpolation::nearest && !pass.field_gradient.empty() &&
                !pass.field.empty() && voxels <= 2 * plan.rows * pass.axes[0].out_extent;
  for (const Transform& t : plan.transforms) {
    for (int a = 0; a < pass.rank; ++a) {
      for (const double element : t.m[a]) result = result && std::isfinite(element);
      result = result && std::isfinite(t.s[a][a]) && t.s[a][a] != 0;
    }
  }
  return result;
}

inline bool are_voxels_finite(const Pass& pass, const Execution& exec) {
  const Extents& s = pass.image.strides;
  const std::int64_t rows = pass.axes[1].extent, planes = pass.axes[2].extent;
  const std::int64_t images = s[0] == 0 ? 1 : pass.batch;
  std::atomic<bool> are_all = true;
  parallel_for(exec, images * pass.channels * planes, [&](std::int64_t index) {
    const std::int64_t z = index % planes, c = index / planes % pass.channels;
    const std::int64_t start = index / planes / pass.channels * s[0] + c * s[1] + z * s[2];
    bool are_finite_here = true;
    const auto look = [&]<class E>(std::type_identity<E>) {
      for (std::int64_t y = 0; y < rows && are_finite_here; ++y) {
        const E* const row = static_cast<const E*>(pass.image.data()) + start + y * s[3];
        are_finite_here = are_finite(row, pass.axes[0].extent);
      }
    };
    if (pass.image.dtype == DType::f32) look(std::type_identity<float>());
    if (pass.image.dtype == DType::f16) look(std::type_identity<F16>());
    if (pass.image.dtype == DType::bf16) look(std::type_identity<BF16>());
    if (pass.image.dtype == DType::f64) look(std::type_identity<double>());
    if (!are_finite_here) are_all = false;
  });
  return are_all;
}

// The gradient to the vectors of `count` voxels, at least as many as lanes.
template <int rank>
void store_gradient_of_nothing(const float* field, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t slot = 0; slot < count; slot += lanes) {
    const std::int64_t i = rank * std::min(slot, count - lanes);
    auto nothing = hn::Zero(d);  // bits where one is NaN
    for (int k = 0; k < rank; ++k) {
      const auto w = hn::LoadU(d, field + i + k * lanes);
      hwy::Prefetch(field + i + k * lanes + rank * kChunk);
      nothing = hn::Or(nothing, hn::VecFromMask(d, hn::IsNaN(w)));
      hn::StoreU(hn::Zero(d), d, to + i + k * lanes);
    }
    if (HWY_LIKELY(hn::AllFalse(di, hn::Ne(hn::BitCast(di, nothing), hn::Zero(di))))) continue;
    for (std::int64_t first = i; first < i + rank * lanes; first += rank) {
      bool is_nan = false;
      for (int a = 0; a < rank; ++a) is_nan = is_nan || std::isnan(field[first + a]);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::fill_n(to + first, rank, is_nan ? nan : 0.0f);
    }
  }
}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
