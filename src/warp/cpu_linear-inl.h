// SPDX-License-Identifier: Apache-2.0
// Linear interpolation of a chunk in whole vectors, where the image is of the arithmetic's own
// type: eight gathers a vector from one offset where all of it is inside, else eight that are
// masked. Both compute interpolate()'s operations in its order. Included once per SIMD target,
// hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_LINEAR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_LINEAR_INL_H
#undef SIMILIS_WARP_CPU_LINEAR_INL_H
#else
#define SIMILIS_WARP_CPU_LINEAR_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "hwy/highway.h"
#include "src/warp/cpu_cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What a chunk's voxels sample in one channel.
template <class T> struct Samples {
  alignas(64) T value[kChunk];
  alignas(64) T slope[3][kChunk];
  alignas(64) T weight[kChunk];  // of labels
};

/// Whether a view's offsets, and those of cells beside it, fit 32 bits.
inline bool has_short_offsets(const TensorView& view) {
  std::int64_t reach = 0;
  for (int axis = 2; axis < 5; ++axis) {
    reach += (view.shape[axis] - 1) * std::abs(view.strides[axis]);
  }
  return reach < std::numeric_limits<std::int32_t>::max();
}

// Interpolates one vector; load(ky, kz, first, second) gives the voxels on an edge of its cells.
template <class T, int rank, bool with_slopes, class Load>
HWY_INLINE void mix_corners(
    const Cells<T>& cells, std::int64_t i, const Load& load, Samples<T>* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const V one = hn::Set(d, T{1});
  const V fx = hn::Load(d, cells.fraction[0] + i), fy = hn::Load(d, cells.fraction[1] + i);
  const V gx = hn::Sub(one, fx), gy = hn::Sub(one, fy);
  const auto mix = [](V g, V first, V f, V second)
                       HWY_ATTR { return hn::MulAdd(f, second, hn::Mul(g, first)); };
  const auto face = [&](int kz, V* value, V* slope_x, V* slope_y) HWY_ATTR {
    V v00 = one, v01 = one, v10 = one, v11 = one;
    load(0, kz, &v00, &v01);
    load(1, kz, &v10, &v11);
    const V low = mix(gx, v00, fx, v01), high = mix(gx, v10, fx, v11);
    *value = mix(gy, low, fy, high);
    if (with_slopes) {
      *slope_x = mix(gy, hn::Sub(v01, v00), fy, hn::Sub(v11, v10));
      *slope_y = hn::Sub(high, low);
    }
  };
  V value = one, slope_x = one, slope_y = one;
  face(0, &value, &slope_x, &slope_y);
  if (rank == 3) {
    const V fz = hn::Load(d, cells.fraction[2] + i), gz = hn::Sub(one, fz);
    V value1 = one, slope_x1 = one, slope_y1 = one;
    face(1, &value1, &slope_x1, &slope_y1);
    if (with_slopes) {
      hn::Store(hn::Sub(value1, value), d, out->slope[2] + i);
      slope_x = mix(gz, slope_x, fz, slope_x1);
      slope_y = mix(gz, slope_y, fz, slope_y1);
    }
    value = mix(gz, value, fz, value1);
  }
  hn::Store(value, d, out->value + i);
  if (with_slopes) {
    hn::Store(slope_x, d, out->slope[0] + i);
    hn::Store(slope_y, d, out->slope[1] + i);
  }
}

// 32-bit integers as the offsets of a vector of T.
template <class D, class V32> HWY_INLINE auto as_offsets(D di, V32 v) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return v;
  } else {
    return hn::PromoteTo(di, v);
  }
}

// One vector of cells in one channel of an image.
template <class T, int rank, bool with_slopes> class Sampler {
 public:
  Sampler(const Pass& pass, const T* plane) : axes_(pass.axes), plane_(plane) {
    for (int a = 0; a < rank; ++a) step_[a] = pass.image.strides[4 - a];
  }

  HWY_INLINE void sample(const Cells<T>& cells, std::int64_t i, Samples<T>* out) const {
    const hn::Rebind<std::int32_t, decltype(d)> d32;
    auto offset = hn::Zero(d32), outside = offset;  // below 0 where a corner is outside
    for (int a = 0; a < rank; ++a) {
      const auto voxel = hn::Load(d32, cells.voxel[a] + i);
      offset = hn::Add(offset, hn::Mul(voxel, set(step_[a])));
      outside = hn::Or(outside, hn::Or(voxel, hn::Sub(set(axes_[a].extent - 2), voxel)));
    }
    if (!hn::AllFalse(d32, hn::Lt(outside, hn::Zero(d32)))) return sample_border(cells, i, out);
#if HWY_TARGET <= HWY_AVX2  // two neighbours in one: a fifth of the time, where gathers are native
    if constexpr (sizeof(T) == 4) {
      if (step_[0] == 1) return sample_pairs(cells, offset, i, out);
    }
#endif
    const auto first = as_offsets(di, offset);
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const T* at = edge(ky, kz);
      *v0 = hn::GatherIndex(d, at, first);
      *v1 = hn::GatherIndex(d, at + step_[0], first);
    };
    mix_corners<T, rank, with_slopes>(cells, i, load, out);
  }

 private:
  static constexpr hn::ScalableTag<T> d{};
  static constexpr hn::RebindToSigned<hn::ScalableTag<T>> di{};
  using V = hn::Vec<hn::ScalableTag<T>>;
  using D32 = hn::Rebind<std::int32_t, hn::ScalableTag<T>>;
  using V32 = hn::Vec<D32>;

  static HWY_INLINE V32 set(std::int64_t value) {
    return hn::Set(D32(), static_cast<std::int32_t>(value));
  }
  HWY_INLINE const T* edge(int ky, int kz) const {
    return plane_ + ky * step_[1] + (rank == 3 ? kz * step_[2] : 0);
  }

#if HWY_TARGET <= HWY_AVX2
  HWY_INLINE void sample_pairs(
      const Cells<T>& cells, V32 offset, std::int64_t i, Samples<T>* out) const {
    const hn::Repartition<std::int64_t, decltype(d)> d64;
    const hn::Half<decltype(di)> half;
    const auto low = hn::ShiftLeft<2>(hn::PromoteTo(d64, hn::LowerHalf(half, offset)));
    const auto high = hn::ShiftLeft<2>(hn::PromoteTo(d64, hn::UpperHalf(half, offset)));
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const auto* at = reinterpret_cast<const std::int64_t*>(edge(ky, kz));
      const V pairs0 = hn::BitCast(d, hn::GatherOffset(d64, at, low));
      const V pairs1 = hn::BitCast(d, hn::GatherOffset(d64, at, high));
      *v0 = hn::ConcatEven(d, pairs1, pairs0);
      *v1 = hn::ConcatOdd(d, pairs1, pairs0);
    };
    mix_corners<T, rank, with_slopes>(cells, i, load, out);
  }
#endif

  // Corners that are not there take the nearest voxel's place and become 0.
  HWY_INLINE void sample_border(const Cells<T>& cells, std::int64_t i, Samples<T>* out) const {
    V32 offsets[3][2], exists[3][2];  // of the two voxels along each axis; all bits set, or none
    for (int a = 0; a < rank; ++a) {
      const V32 last = set(axes_[a].extent - 1);
      for (int k = 0; k < 2; ++k) {
        const V32 voxel = hn::Add(hn::Load(D32(), cells.voxel[a] + i), set(k));
        const V32 outside = hn::BroadcastSignBit(hn::Or(voxel, hn::Sub(last, voxel)));
        exists[a][k] = hn::AndNot(outside, set(-1));
        offsets[a][k] = hn::Mul(hn::Min(hn::Max(voxel, set(0)), last), set(step_[a]));
      }
    }
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      V32 row = offsets[1][ky], exists_row = exists[1][ky];
      if (rank == 3) {
        row = hn::Add(row, offsets[2][kz]);
        exists_row = hn::And(exists_row, exists[2][kz]);
      }
      const auto corner = [&](int kx) HWY_ATTR {
        const V voxel = hn::GatherIndex(d, plane_, as_offsets(di, hn::Add(row, offsets[0][kx])));
        const auto mask = as_offsets(di, hn::And(exists_row, exists[0][kx]));
        return hn::BitCast(d, hn::And(hn::BitCast(di, voxel), mask));
      };
      *v0 = corner(0);
      *v1 = corner(1);
    };
    mix_corners<T, rank, with_slopes>(cells, i, load, out);
  }

  const Axis (&axes_)[3];
  const T* const plane_;
  std::int64_t step_[rank];
};

template <class T, int rank, bool with_slopes>
void sample_cells(
    const Pass& pass, const Cells<T>& cells, const T* plane, std::int64_t count, Samples<T>* out) {
  const Sampler<T, rank, with_slopes> sampler(pass, plane);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (std::int64_t i = 0; i < count; i += lanes) sampler.sample(cells, i, out);
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
