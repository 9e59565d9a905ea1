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

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/warp/cpu/cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The values and slopes of a chunk's voxels in one channel.
template <class T> struct Samples {
  alignas(64) T value[kChunk];
  alignas(64) T slope[3][kChunk];
  alignas(64) T weight[kChunk];  // for labels
};

// One vector of it.
template <class T> struct SampledVector { hn::Vec<hn::ScalableTag<T>> value, slope[3]; };

/// True if a view's offsets, and those of cells beside it, fit 32 bits.
inline bool has_short_offsets(const TensorView& view) {
  std::int64_t reach = 0;
  for (int axis = 2; axis < 5; ++axis) {
    reach += (view.shape[axis] - 1) * std::abs(view.strides[axis]);
  }
  return reach < std::numeric_limits<std::int32_t>::max();
}

// Interpolates one vector; load(ky, kz, first, second) gives the voxels on an edge of its cells.
template <class T, int rank, bool with_slopes, class V, class Load>
HWY_INLINE SampledVector<T> mix_corners(const V (&fraction)[3], const Load& load) {
  const V one = hn::Set(hn::ScalableTag<T>(), T{1});
  const V fx = fraction[0], fy = fraction[1], gx = hn::Sub(one, fx), gy = hn::Sub(one, fy);
  const auto mix = [](V g, V first, V f, V second)
                       HWY_ATTR { return hn::MulAdd(f, second, hn::Mul(g, first)); };
  const auto face = [&](int kz) HWY_ATTR {
    V v00 = one, v01 = one, v10 = one, v11 = one;
    load(0, kz, &v00, &v01);
    load(1, kz, &v10, &v11);
    const V low = mix(gx, v00, fx, v01), high = mix(gx, v10, fx, v11);
    SampledVector<T> of_face{mix(gy, low, fy, high), {one, one, one}};
    if (with_slopes) {
      of_face.slope[0] = mix(gy, hn::Sub(v01, v00), fy, hn::Sub(v11, v10));
      of_face.slope[1] = hn::Sub(high, low);
    }
    return of_face;
  };
  SampledVector<T> result = face(0);
  if constexpr (rank == 3) {
    const V fz = fraction[2], gz = hn::Sub(one, fz);
    const SampledVector<T> second = face(1);
    if (with_slopes) {
      result.slope[2] = hn::Sub(second.value, result.value);
      for (int a = 0; a < 2; ++a) {
        result.slope[a] = mix(gz, result.slope[a], fz, second.slope[a]);
      }
    }
    result.value = mix(gz, result.value, fz, second.value);
  }
  return result;
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

  using V = hn::Vec<hn::ScalableTag<T>>;
  using D32 = hn::Rebind<std::int32_t, hn::ScalableTag<T>>;
  using V32 = hn::Vec<D32>;

  HWY_INLINE bool has_all_corners(const V32 (&voxel)[3]) const {
    const D32 d32;
    V32 outside = hn::Zero(d32);  // below 0 where a corner is outside
    for (int a = 0; a < rank; ++a) {
      outside = hn::Or(outside, hn::Or(voxel[a], hn::Sub(set(axes_[a].extent - 2), voxel[a])));
    }
    return hn::AllFalse(d32, hn::Lt(outside, hn::Zero(d32)));
  }

  // Samples cells that have all their corners.
  HWY_INLINE SampledVector<T> sample_inside(const V (&fraction)[3], const V32 (&voxel)[3]) const {
    V32 offset = hn::Mul(voxel[0], set(step_[0]));
    for (int a = 1; a < rank; ++a) offset = hn::Add(offset, hn::Mul(voxel[a], set(step_[a])));
    // Voxels that no row before has touched: a fifteenth of the time of a gradient.
    constexpr std::int64_t kAhead = 3 * HWY_MAX_BYTES / sizeof(T);
    hwy::Prefetch(edge(1, 1) + hn::GetLane(offset) + kAhead * step_[0]);
#if HWY_TARGET <= HWY_AVX2  // two neighbours in one: a fifth of the time, where gathers are native
    if constexpr (sizeof(T) == 4) {
      if (step_[0] == 1) {
        const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
          const auto pair = [&](auto offsets) HWY_ATTR { return gather(edge(ky, kz), offsets); };
          split(pair(lower(offset)), pair(upper(offset)), v0, v1);
        };
        return mix_corners<T, rank, with_slopes>(fraction, load);
      }
    }
#endif
    const auto first = as_offsets(di, offset);
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const T* at = edge(ky, kz);
      *v0 = hn::GatherIndex(d, at, first);
      *v1 = hn::GatherIndex(d, at + step_[0], first);
    };
    return mix_corners<T, rank, with_slopes>(fraction, load);
  }

  // Corners that are not there take the nearest voxel's place and become 0.
  HWY_INLINE SampledVector<T> sample_border(const V (&fraction)[3], const V32 (&voxel)[3]) const {
    SampledVector<T> result = sample_corners(fraction, voxel);
    if constexpr (with_slopes) {  // the slope along an axis does not see its own fraction
      V nothing = hn::Zero(d);    // or NaN
      for (int a = 0; a < rank; ++a) nothing = hn::MulAdd(hn::Zero(d), fraction[a], nothing);
      for (int a = 0; a < rank; ++a) result.slope[a] = hn::Add(result.slope[a], nothing);
    }
    return result;
  }

 private:
  HWY_INLINE SampledVector<T> sample_corners(const V (&fraction)[3], const V32 (&voxel)[3]) const {
    V32 offsets[3][2], exists[3][2];  // for the two voxels along each axis; all bits set, or none
    for (int a = 0; a < rank; ++a) {
      const V32 last = set(axes_[a].extent - 1);
      for (int k = 0; k < 2; ++k) {
        const V32 corner = hn::Add(voxel[a], set(k));
        const V32 outside = hn::BroadcastSignBit(hn::Or(corner, hn::Sub(last, corner)));
        exists[a][k] = hn::AndNot(outside, set(-1));
        offsets[a][k] = hn::Mul(hn::Min(hn::Max(corner, set(0)), last), set(step_[a]));
      }
    }
    const auto row = [&](const V32(&of)[3][2], int ky, int kz, auto join)
                         HWY_ATTR { return rank == 3 ? join(of[1][ky], of[2][kz]) : of[1][ky]; };
    const auto add = [](V32 a, V32 b) HWY_ATTR { return hn::Add(a, b); };
    const auto both = [](V32 a, V32 b) HWY_ATTR { return hn::And(a, b); };
#if HWY_TARGET <= HWY_AVX2
    if constexpr (sizeof(T) == 4) {
      if (step_[0] == 1 && axes_[0].extent > 1) {
        // The nearest pair, whose one voxel changes places where the other is not there.
        const V32 last = set(axes_[0].extent - 2), x = hn::Min(hn::Max(voxel[0], set(0)), last);
        const V32 any_x = hn::Or(exists[0][0], exists[0][1]);
        const V32 up = hn::AndNot(exists[0][0], set(32)), down = hn::AndNot(exists[0][1], set(32));
        const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
          const V32 offset = hn::Add(x, row(offsets, ky, kz, add));
          const V32 is_there = hn::And(any_x, row(exists, ky, kz, both));
          const auto pair = [&](auto half) HWY_ATTR {
            const auto found = hn::BitCast(du64, gather(plane_, half(offset)));
            const auto moved =
                hn::Shr(hn::Shl(found, hn::BitCast(du64, half(up))), hn::BitCast(du64, half(down)));
            return hn::And(hn::BitCast(d64, moved), half(is_there));
          };
          split(pair([](V32 v) HWY_ATTR { return lower(v); }),
              pair([](V32 v) HWY_ATTR { return upper(v); }), v0, v1);
        };
        return mix_corners<T, rank, with_slopes>(fraction, load);
      }
    }
#endif
    const auto load = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const V32 of_row = row(offsets, ky, kz, add), exists_row = row(exists, ky, kz, both);
      const auto corner = [&](int kx) HWY_ATTR {
        const V value = hn::GatherIndex(d, plane_, as_offsets(di, hn::Add(of_row, offsets[0][kx])));
        const auto mask = as_offsets(di, hn::And(exists_row, exists[0][kx]));
        return hn::BitCast(d, hn::And(hn::BitCast(di, value), mask));
      };
      *v0 = corner(0);
      *v1 = corner(1);
    };
    return mix_corners<T, rank, with_slopes>(fraction, load);
  }

  static constexpr hn::ScalableTag<T> d{};
  static constexpr hn::RebindToSigned<hn::ScalableTag<T>> di{};
  static HWY_INLINE V32 set(std::int64_t value) {
    return hn::Set(D32(), static_cast<std::int32_t>(value));
  }
  HWY_INLINE const T* edge(int ky, int kz) const {
    return plane_ + ky * step_[1] + (rank == 3 ? kz * step_[2] : 0);
  }

#if HWY_TARGET <= HWY_AVX2
  // Half of a vector of 32-bit integers, and pairs of neighbours in f32 that it is the offsets of.
  static constexpr hn::Repartition<std::int64_t, hn::ScalableTag<T>> d64{};
  static constexpr hn::Repartition<std::uint64_t, hn::ScalableTag<T>> du64{};
  static HWY_INLINE auto lower(V32 v) {
    return hn::PromoteTo(d64, hn::LowerHalf(hn::Half<D32>(), v));
  }
  static HWY_INLINE auto upper(V32 v) {
    return hn::PromoteTo(d64, hn::UpperHalf(hn::Half<D32>(), v));
  }
  template <class V64> static HWY_INLINE V64 gather(const T* at, V64 offsets) {
    const auto* pairs = reinterpret_cast<const std::int64_t*>(at);
    return hn::GatherOffset(d64, pairs, hn::ShiftLeft<2>(offsets));
  }
  template <class V64> static HWY_INLINE void split(V64 low, V64 high, V* v0, V* v1) {
    *v0 = hn::ConcatEven(d, hn::BitCast(d, high), hn::BitCast(d, low));
    *v1 = hn::ConcatOdd(d, hn::BitCast(d, high), hn::BitCast(d, low));
  }
#endif

  const Axis (&axes_)[3];
  const T* const plane_;
  std::int64_t step_[rank];
};

template <class T, int rank, bool with_slopes>
void sample_cells(
    const Pass& pass, const Cells<T>& cells, const T* plane, std::int64_t count, Samples<T>* out) {
  using S = Sampler<T, rank, with_slopes>;
  const S sampler(pass, plane);
  const hn::ScalableTag<T> d;
  const typename S::D32 d32;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    typename S::V fraction[3];
    typename S::V32 voxel[3];
    for (int a = 0; a < rank; ++a) {
      fraction[a] = hn::Load(d, cells.fraction[a] + i);
      voxel[a] = hn::Load(d32, cells.voxel[a] + i);
    }
    const SampledVector<T> sampled = sampler.has_all_corners(voxel)
                                         ? sampler.sample_inside(fraction, voxel)
                                         : sampler.sample_border(fraction, voxel);
    hn::Store(sampled.value, d, out->value + i);
    for (int a = 0; with_slopes && a < rank; ++a) hn::Store(sampled.slope[a], d, out->slope[a] + i);
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
