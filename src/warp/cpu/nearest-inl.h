// SPDX-License-Identifier: Apache-2.0
// The nearest voxels of a chunk: their offsets, once for all channels, and their values. The middle
// between two voxels belongs to the even one, by the index in f64. Included once per SIMD target,
// hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_NEAREST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_NEAREST_INL_H
#undef SIMILIS_WARP_CPU_NEAREST_INL_H
#else
#define SIMILIS_WARP_CPU_NEAREST_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct NearestVoxels {
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();

  alignas(64) std::int64_t offset[kChunk];  // in a channel; kNone: there is no voxel
  alignas(64) T none[kChunk];               // the value there: 0, or NaN where there is no index
};

/// From the indices of a chunk.
template <class T> void place_nearest(const Pass& pass, const Chunk& chunk, NearestVoxels<T>* out) {
  const Extents& s = pass.image.strides;
  for (std::int64_t i = 0; i < chunk.count; ++i) {
    Taps<T, 1> axis[3];
    taps_of(pass, chunk, i, axis);
    const int x = axis[0].voxel[0], y = axis[1].voxel[0], z = axis[2].voxel[0];
    const bool is_there = x != kNoVoxel && y != kNoVoxel && z != kNoVoxel;
    out->offset[i] = is_there ? x * s[4] + y * s[3] + z * s[2] : NearestVoxels<T>::kNone;
    out->none[i] = 0 * (axis[0].weight[0] + axis[1].weight[0] + axis[2].weight[0]);
  }
}

/// From cells, whose fractions are off by much less than kInexact; false if one is that close to
/// the middle. Offsets fit 32 bits. Writes whole vectors.
inline bool round_cells(const Pass& pass, const Cells<float>& cells, std::int64_t count,
    std::int32_t* HWY_RESTRICT offset, float* HWY_RESTRICT value_where_none) {
  constexpr float kInexact = 1e-5f;
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<hn::ScalableTag<float>> d32;
  const auto set = [&](std::int64_t value)
                       HWY_ATTR { return hn::Set(d32, static_cast<std::int32_t>(value)); };
  const auto half = hn::Set(d, 0.5f), inexact = hn::Set(d, kInexact);
  auto least = half;  // distance from the middle
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    auto at = set(0), outside = set(0);
    auto none = hn::Zero(d);
    for (int a = 0; a < pass.rank; ++a) {
      const auto fraction = hn::Load(d, cells.fraction[a] + i);
      const auto distance = hn::Abs(hn::Sub(fraction, half));
      least = hn::IfThenElse(hn::Lt(distance, least), distance, least);  // NaN is not close
      none = hn::MulAdd(hn::Zero(d), fraction, none);
      const auto is_up = hn::VecFromMask(d32, hn::RebindMask(d32, hn::Gt(fraction, half)));
      auto voxel = hn::Load(d32, cells.voxel[a] + i);
      voxel = hn::Sub(voxel, is_up);
      const std::int64_t last = pass.axes[a].extent - 1;
      outside = hn::Or(outside, hn::Or(voxel, hn::Sub(set(last), voxel)));
      at = hn::Add(at, hn::Mul(voxel, set(pass.image.strides[4 - a])));
    }
    const auto is_outside = hn::Lt(outside, hn::Zero(d32));
    hn::Store(hn::IfThenElse(is_outside, set(NearestVoxels<float>::kNone), at), d32, offset + i);
    hn::Store(none, d, value_where_none + i);
  }
  return hn::AllFalse(d, hn::Lt(least, inexact));
}

template <class T, class E>
void sample_nearest(const NearestVoxels<T>& voxels, std::int64_t count, const E* plane,
    bool with_slopes, Samples<T>* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = voxels.offset[i];
    out->value[i] =
        at == NearestVoxels<T>::kNone ? voxels.none[i] : static_cast<T>(load(plane[at]));
  }
  if (!with_slopes) return;
  for (int a = 0; a < 3; ++a) {
    for (std::int64_t i = 0; i < count; ++i) out->slope[a][i] = 0 * out->value[i];
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
