// SPDX-License-Identifier: Apache-2.0
// Cubic interpolation of a chunk in f32: weights of all its voxels in plain loops, and values and
// slopes a vector of voxels at a time, whose four neighbours along x are loaded together. Vectors
// at the rim load each tap where it is mirrored to. Computes interpolate()'s operations in its
// order. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_CUBIC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_CUBIC_INL_H
#undef SIMILIS_WARP_CPU_CUBIC_INL_H
#else
#define SIMILIS_WARP_CPU_CUBIC_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr bool kHasCubicVectors = HWY_TARGET != HWY_SCALAR;  // which has no vectors of four

#if HWY_TARGET != HWY_SCALAR
/// mirrored() for taps that count: two voxels outside at most.
HWY_INLINE std::int32_t mirrored_tap(std::int32_t voxel, std::int32_t last) {
  const std::int32_t inside = std::abs(last - std::abs(last - std::abs(voxel)));
  return std::min(inside, last);
}

/// The offsets of one vector's taps where they are mirrored to.
struct MirroredTaps {
  static constexpr std::int64_t kMost = HWY_MAX_BYTES / sizeof(float);
  alignas(64) std::int32_t offset[3][4][kMost];  // by axis, 0 along other axes than the pass has
  alignas(64) std::int32_t is_missing[kMost];    // all bits set where no tap counts
};

/// The taps of a chunk's voxels along each axis.
struct CubicTaps {
  alignas(64) float weight[3][4][kChunk], slope[3][4][kChunk];
  alignas(64) std::int32_t first[3][kChunk];  // voxel of the first
  alignas(64) std::int32_t outside[kChunk];   // below 0 where not all voxels are in the image

  // Slopes that are not wanted stay as they are.
  void find(const Pass& pass, const Chunk& chunk, bool with_slopes) {
    with_slopes ? find<true>(pass, chunk) : find<false>(pass, chunk);
  }

  /// The first voxel's offset in an array with these strides, whose offsets fit 32 bits.
  std::int64_t offset(const Extents& strides, int rank, std::int64_t i) const {
    std::int64_t result = 0;
    for (int a = 0; a < rank; ++a) result += first[a][i] * strides[4 - a];
    return result;
  }

  /// True if voxel i of the chunk is so far outside that none of its taps counts.
  static HWY_INLINE bool is_missing(const Pass& pass, const Chunk& chunk, std::int64_t i) {
    bool result = false;
    for (int a = 0; a < pass.rank; ++a) {
      const double index = chunk.index[a][i];
      const double most = static_cast<double>(pass.axes[a].extent - 1) + kSplineMargin;
      result = result || !(index >= -kSplineMargin && index <= most);
    }
    return result;
  }

  /// The taps of a vector of voxels from i on.
  void mirror(const Pass& pass, const Chunk& chunk, std::int64_t i, MirroredTaps* taps) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
    for (std::int64_t k = 0; k < lanes; ++k) {
      taps->is_missing[k] = is_missing(pass, chunk, i + k) ? -1 : 0;
    }
    for (int a = 0; a < pass.rank; ++a) {
      const auto last = static_cast<std::int32_t>(pass.axes[a].extent - 1);
      const auto stride = static_cast<std::int32_t>(pass.image.strides[4 - a]);
      for (int tap = 0; tap < 4; ++tap) {
        for (std::int64_t k = 0; k < lanes; ++k) {
          const std::int32_t voxel = mirrored_tap(first[a][i + k] + tap, last);
          taps->offset[a][tap][k] = taps->is_missing[k] != 0 ? 0 : stride * voxel;
        }
      }
    }
  }

 private:
  template <bool with_slopes> void find(const Pass& pass, const Chunk& chunk) {
    const std::int64_t count = chunk.count;
    for (std::int64_t i = 0; i < count; ++i) outside[i] = 0;
    for (int a = 0; a < pass.rank; ++a) {
      const double* HWY_RESTRICT index = chunk.index[a];
      float *HWY_RESTRICT w0 = weight[a][0], *HWY_RESTRICT w1 = weight[a][1],
                          *HWY_RESTRICT w2 = weight[a][2], *HWY_RESTRICT w3 = weight[a][3];
      float *HWY_RESTRICT s0 = slope[a][0], *HWY_RESTRICT s1 = slope[a][1],
                          *HWY_RESTRICT s2 = slope[a][2], *HWY_RESTRICT s3 = slope[a][3];
      std::int32_t* HWY_RESTRICT at = first[a];
      const auto last = static_cast<std::int32_t>(pass.axes[a].extent - 4);
      for (std::int64_t i = 0; i < count; ++i) {
        const double floor = std::floor(index[i]);
        const SplineWeights<float> w = spline_weights(fraction_above<float>(floor, index[i]));
        w0[i] = w.weight[0], w1[i] = w.weight[1], w2[i] = w.weight[2], w3[i] = w.weight[3];
        if constexpr (with_slopes) {
          s0[i] = w.slope[0], s1[i] = w.slope[1], s2[i] = w.slope[2], s3[i] = w.slope[3];
        }
        at[i] = static_cast<std::int32_t>(floor) - 1;
      }
      for (std::int64_t i = 0; i < count; ++i) outside[i] |= at[i] | (last - at[i]);
    }
  }
};

/// Values and, with slopes, these of all voxels, at least a vector's. The last vector ends where
/// they end.
template <int rank, bool with_slopes> class CubicSampler {
 public:
  CubicSampler(const Pass& pass, const Chunk& chunk, const CubicTaps& taps, const float* plane,
      Samples<float>* out)
      : pass_(pass),
        chunk_(chunk),
        taps_(taps),
        strides_(pass.image.strides),
        plane_(plane),
        out_(*out) {}

  void run() {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), count = chunk_.count;
    for (std::int64_t at = 0; at < count; at += lanes) {
      const std::int64_t i = std::min(at, count - lanes);
      if (HWY_LIKELY(hn::AllFalse(di, hn::Lt(hn::LoadU(di, taps_.outside + i), hn::Zero(di))))) {
        sample_inside(i);
      } else {
        sample_rim(i);
      }
    }
  }

 private:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr D d{};
  static constexpr hn::RebindToSigned<D> di{};

  struct Four {
    V of[4];
  };

  HWY_INLINE V weight(int axis, int k, std::int64_t i) const {
    return hn::LoadU(d, taps_.weight[axis][k] + i);
  }
  HWY_INLINE V slope(int axis, int k, std::int64_t i) const {
    return hn::LoadU(d, taps_.slope[axis][k] + i);
  }
  // first·w for the first tap, sum + v·w for others: not fused, as interpolate() is not.
  static HWY_INLINE V add(int k, V sum, V w, V v) {
    return k == 0 ? hn::Mul(w, v) : hn::Add(sum, hn::Mul(w, v));
  }

  // Four neighbours of each fourth voxel, one after the other.
  template <class DF>
  static HWY_INLINE hn::Vec<DF> load_fours(DF df, const float* from, const std::int32_t* offset) {
    if constexpr (hn::MaxLanes(DF()) == 4) {
      return hn::LoadU(df, from + *offset);
    } else {
      const hn::Half<DF> half;
      return hn::Combine(
          df, load_fours(half, from, offset + hn::MaxLanes(half)), load_fours(half, from, offset));
    }
  }
  // of[k] = the k-th neighbours of all voxels.
  static HWY_INLINE Four load_row(const float* from, const std::int32_t* offset) {
    const hn::Repartition<double, D> d64;
    const V a = load_fours(d, from, offset), b = load_fours(d, from, offset + 1);
    const V c = load_fours(d, from, offset + 2), e = load_fours(d, from, offset + 3);
    const auto pair = [&](V first, V second, bool is_low) HWY_ATTR {
      return hn::BitCast(d64,
          is_low ? hn::InterleaveLower(d, first, second) : hn::InterleaveUpper(d, first, second));
    };
    const auto low_ab = pair(a, b, true), low_ce = pair(c, e, true);
    const auto high_ab = pair(a, b, false), high_ce = pair(c, e, false);
    return {{hn::BitCast(d, hn::InterleaveLower(d64, low_ab, low_ce)),
        hn::BitCast(d, hn::InterleaveUpper(d64, low_ab, low_ce)),
        hn::BitCast(d, hn::InterleaveLower(d64, high_ab, high_ce)),
        hn::BitCast(d, hn::InterleaveUpper(d64, high_ab, high_ce))}};
  }

  // load_row(ky) gives the four neighbours along x.
  template <class LoadRow>
  HWY_INLINE SampledVector<float> sample_plane(std::int64_t i, const LoadRow& load_row_of) const {
    const V zero = hn::Zero(d);
    SampledVector<float> result{zero, {zero, zero, zero}};
    for (int ky = 0; ky < 4; ++ky) {
      const Four row = load_row_of(ky);
      V value = zero, along_x = zero;
      for (int kx = 0; kx < 4; ++kx) {
        value = add(kx, value, weight(0, kx, i), row.of[kx]);
        if (with_slopes) along_x = add(kx, along_x, slope(0, kx, i), row.of[kx]);
      }
      const V w = weight(1, ky, i);
      result.value = add(ky, result.value, w, value);
      if (with_slopes) {
        result.slope[0] = add(ky, result.slope[0], w, along_x);
        result.slope[1] = add(ky, result.slope[1], slope(1, ky, i), value);
      }
    }
    return result;
  }

  // load_row_of(ky, kz) likewise.
  template <class LoadRow> HWY_INLINE void sample(std::int64_t i, const LoadRow& load_row_of) {
    SampledVector<float> result =
        sample_plane(i, [&](int ky) HWY_ATTR { return load_row_of(ky, 0); });
    if constexpr (rank == 3) {
      const SampledVector<float> first = result;
      for (int kz = 0; kz < 4; ++kz) {
        const SampledVector<float> plane =
            kz == 0 ? first : sample_plane(i, [&](int ky) HWY_ATTR { return load_row_of(ky, kz); });
        const V w = weight(2, kz, i);
        result.value = add(kz, result.value, w, plane.value);
        if (with_slopes) {
          for (int a = 0; a < 2; ++a) {
            result.slope[a] = add(kz, result.slope[a], w, plane.slope[a]);
          }
          result.slope[2] = add(kz, result.slope[2], slope(2, kz, i), plane.value);
        }
      }
    }
    hn::StoreU(result.value, d, out_.value + i);
    for (int a = 0; with_slopes && a < rank; ++a) hn::StoreU(result.slope[a], d, out_.slope[a] + i);
  }

  HWY_INLINE void sample_inside(std::int64_t i) {
    alignas(64) std::int32_t offset[HWY_MAX_BYTES / sizeof(float)];
    auto offsets = hn::Zero(di);
    for (int a = 0; a < rank; ++a) {
      const auto stride = hn::Set(di, static_cast<std::int32_t>(strides_[4 - a]));
      offsets = hn::Add(offsets, hn::Mul(hn::LoadU(di, taps_.first[a] + i), stride));
    }
    hn::Store(offsets, di, offset);
    sample(i, [&](int ky, int kz) HWY_ATTR {
      return load_row(plane_ + ky * strides_[3] + (rank == 3 ? kz * strides_[2] : 0), offset);
    });
  }

  HWY_NOINLINE void sample_rim(std::int64_t i) {
    MirroredTaps mirrored;
    taps_.mirror(pass_, chunk_, i, &mirrored);
    const auto is_missing =
        hn::RebindMask(d, hn::Ne(hn::Load(di, mirrored.is_missing), hn::Zero(di)));
    sample(i, [&](int ky, int kz) HWY_ATTR {
      auto of_row = hn::Load(di, mirrored.offset[1][ky]);
      if constexpr (rank == 3) of_row = hn::Add(of_row, hn::Load(di, mirrored.offset[2][kz]));
      Four row;
      for (int kx = 0; kx < 4; ++kx) {
        alignas(64) std::int32_t offset[MirroredTaps::kMost];
        alignas(64) float voxel[MirroredTaps::kMost];
        hn::Store(hn::Add(of_row, hn::Load(di, mirrored.offset[0][kx])), di, offset);
        for (std::size_t k = 0; k < hn::Lanes(d); ++k) voxel[k] = plane_[offset[k]];
        row.of[kx] = hn::IfThenZeroElse(is_missing, hn::Load(d, voxel));
      }
      return row;
    });
  }

  const Pass& pass_;
  const Chunk& chunk_;
  const CubicTaps& taps_;
  const Extents& strides_;
  const float* const plane_;
  Samples<float>& out_;
};

/// Samples a chunk; false, without a sample, for chunks of less than a vector.
inline bool sample_cubic(const Pass& pass, const Chunk& chunk, const CubicTaps& taps,
    const float* plane, bool with_slopes, Samples<float>* out) {
  if (chunk.count < static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()))) return false;
  const auto run = [&]<int rank, bool has_slopes>() HWY_ATTR {
    CubicSampler<rank, has_slopes>(pass, chunk, taps, plane, out).run();
  };
  if (pass.rank == 3) {
    with_slopes ? run.template operator()<3, true>() : run.template operator()<3, false>();
  } else {
    with_slopes ? run.template operator()<2, true>() : run.template operator()<2, false>();
  }
  return true;
}
#else
struct CubicTaps {
  void find(const Pass&, const Chunk&, bool) {}
};
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
