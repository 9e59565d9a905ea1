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

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "src/warp/cpu/cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct NearestVoxels {
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();

  alignas(64) std::int64_t offset[kChunk];  // in a channel; kNone: there is no voxel
  alignas(64) float none[kChunk];           // the value there: 0, or NaN where there is no index
};

/// From the indices of a chunk.
void place_nearest(const Pass& pass, const Chunk& chunk, NearestVoxels* out);

/// Rounds cells in f32 to the nearest voxels, a vector at a time. Offsets fit 32 bits.
class Rounding {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using VI = hn::Vec<hn::RebindToSigned<D>>;

  struct Rounded {
    VI offset;  // kNone where there is no voxel
    V none;     // NearestVoxels::none
  };

  /// Offsets are those in an array with these strides [N,C,Z,Y,X].
  Rounding(const Pass& pass, const Extents& strides) {
    for (int a = 0; a < 3; ++a) {
      last_[a] = hn::Set(di, static_cast<std::int32_t>(pass.axes[a].extent - 1));
      stride_[a] = hn::Set(di, static_cast<std::int32_t>(strides[4 - a]));
    }
  }

  /// Rounds in cells that may be anywhere.
  HWY_INLINE Rounded round(int rank, const V (&fraction)[3], const VI (&cell)[3]) {
    VI at = hn::Zero(di), outside = hn::Zero(di);
    V none = hn::Zero(d);
    for (int a = 0; a < rank; ++a) {
      none = hn::MulAdd(hn::Zero(d), fraction[a], none);
      const VI voxel = round_axis(fraction[a], cell[a]);
      outside = hn::Or(outside, hn::Or(voxel, hn::Sub(last_[a], voxel)));
      at = hn::Add(at, hn::Mul(voxel, stride_[a]));
    }
    const auto is_outside = hn::Lt(outside, hn::Zero(di));
    return {hn::IfThenElse(is_outside, hn::Set(di, NearestVoxels::kNone), at), none};
  }

  /// False if a fraction was so close to the middle that f32 does not tell its side.
  bool is_certain() const { return hn::AllFalse(d, hn::Lt(least_, hn::Set(d, kInexact))); }

 private:
  static constexpr D d{};
  static constexpr hn::RebindToSigned<D> di{};

  HWY_INLINE VI round_axis(V fraction, VI cell) {
    const V half = hn::Set(d, 0.5f), distance = hn::Abs(hn::Sub(fraction, half));
    least_ = hn::IfThenElse(hn::Lt(distance, least_), distance, least_);  // NaN is not close
    return hn::Sub(cell, hn::VecFromMask(di, hn::RebindMask(di, hn::Gt(fraction, half))));
  }

  VI last_[3], stride_[3];
  V least_ = hn::Set(d, 0.5f);  // distance from the middle
};

/// The nearest voxels of a chunk, in whole vectors, and where they are not there the value, if it
/// is wanted; false if Rounding is not certain of them.
inline bool round_cells(const Pass& pass, const Extents& strides, const Cells<float>& cells,
    std::int64_t count, std::int32_t* HWY_RESTRICT offset, float* HWY_RESTRICT value_where_none) {
  const Rounding::D d;
  const hn::RebindToSigned<Rounding::D> di;
  Rounding rounding(pass, strides);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    Rounding::V fraction[3];
    Rounding::VI cell[3];
    for (int a = 0; a < pass.rank; ++a) {
      fraction[a] = hn::Load(d, cells.fraction[a] + i);
      cell[a] = hn::Load(di, cells.voxel[a] + i);
    }
    const Rounding::Rounded rounded = rounding.round(pass.rank, fraction, cell);
    hn::Store(rounded.offset, di, offset + i);
    if (value_where_none != nullptr) hn::Store(rounded.none, d, value_where_none + i);
  }
  return rounding.is_certain();
}

template <class T, class E>
void sample_nearest(const NearestVoxels& voxels, std::int64_t count, const E* plane,
    bool with_slopes, Samples<T>* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = voxels.offset[i];
    out->value[i] = at == NearestVoxels::kNone ? static_cast<T>(voxels.none[i])
                                               : static_cast<T>(load(plane[at]));
  }
  if (!with_slopes) return;
  for (int a = 0; a < 3; ++a) {
    for (std::int64_t i = 0; i < count; ++i) out->slope[a][i] = 0 * out->value[i];
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
