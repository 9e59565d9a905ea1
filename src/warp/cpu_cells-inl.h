// SPDX-License-Identifier: Apache-2.0
// Part of a row of the output as cells: the voxels around each index, and how far it is between
// them.
//
// In f32 no index is formed in f64. It is a column's part, a row's and the field's, and each is
// split into a whole number and the rest: the first two when the pass is planned, in f64, and the
// product s·w with its rounding error, which a fused multiply-add gives. Whole numbers add up
// exactly, the rests stay within two voxels: the fraction is off by 2e-7 of a voxel at most, however
// far the voxel moved, and depends on nothing but the voxel. Included once per SIMD target, hence
// the guard that flips.
#if defined(SIMILIS_WARP_CPU_CELLS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_CELLS_INL_H
#undef SIMILIS_WARP_CPU_CELLS_INL_H
#else
#define SIMILIS_WARP_CPU_CELLS_INL_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "src/warp/cpu_chunk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The eight (four) voxels around each index.
template <class T> struct Cells {
  alignas(64) T fraction[3][kChunk];          // of the step from the first to the second
  alignas(64) std::int32_t voxel[3][kChunk];  // the first; outside of the image where count ends
  alignas(64) T slope[3][kChunk];             // as Chunk's
};

// One cell from an index that has its padding folded in.
template <class T> HWY_INLINE void set_cell(int axis, std::int64_t i, Place at, Cells<T>* cells) {
  const double first = std::floor(at.index);
  cells->fraction[axis][i] = static_cast<T>(at.index - first);
  cells->voxel[axis][i] = static_cast<std::int32_t>(first);
  cells->slope[axis][i] = static_cast<T>(at.slope);
}

#if HWY_NATIVE_FMA
// Cells along one axis from indices in two parts.
template <Outside padding, bool mixes> class RowOfCells {
 public:
  RowOfCells(const Pass& pass, const Transform& t, const Chunk& chunk, int axis)
      : pass_(pass), transform_(t), chunk_(chunk), axis_(axis), last_(pass.axes[axis].extent - 1) {
    first_component_ = mixes ? 0 : axis;
    end_component_ = mixes ? pass.rank : axis + 1;
    row_ = split_index(t.row(axis, chunk.position(pass, 1), chunk.position(pass, 2)));
    for (int j = 0; j < 3; ++j) {
      factor_[j] = static_cast<float>(t.s[axis][j]);
      rest_of_factor_[j] = static_cast<float>(t.s[axis][j] - static_cast<double>(factor_[j]));
    }
  }

  HWY_INLINE void place(const Columns& columns, const float (&field)[3][kChunk],
      Cells<float>* cells) const {
    const float* column = columns.whole[axis_].data() + chunk_.x;
    const float* rest_of_column = columns.rest[axis_].data() + chunk_.x;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t i = 0; i < chunk_.count; i += lanes) {
      V whole = hn::Add(hn::LoadU(d, column + i), set(row_.whole));
      V rest = hn::Add(hn::LoadU(d, rest_of_column + i), set(row_.rest));
      auto is_near = hn::Eq(whole, whole);
      for (int j = first_component_; j < end_component_; ++j) {
        const V w = hn::Load(d, field[j] + i), factor = set(factor_[j]);
        const V product = hn::Mul(factor, w), of_product = hn::Round(product);
        const V error =
            hn::MulAdd(set(rest_of_factor_[j]), w, hn::MulSub(factor, w, product));
        whole = hn::Add(whole, of_product);
        rest = hn::Add(rest, hn::Add(hn::Sub(product, of_product), error));
        if constexpr (mixes) is_near = hn::And(is_near, is_short(of_product));
      }
      is_near = mixes ? hn::And(is_near, is_short(whole)) : is_short(whole);
      const V floor = hn::Floor(rest);
      whole = hn::Add(whole, floor);
      rest = hn::Sub(rest, floor);
      fold(&whole, &rest, i, cells);
      hn::Store(hn::IfThenElseZero(is_near, rest), d, cells->fraction[axis_] + i);
      const auto far = hn::Set(di, static_cast<std::int32_t>(kFarOutside));
      hn::Store(hn::IfThenElse(hn::RebindMask(di, is_near), hn::ConvertTo(di, whole), far), di,
          cells->voxel[axis_] + i);
      if (HWY_UNLIKELY(!hn::AllTrue(d, is_near))) place_far(is_near, i, field, cells);
    }
    for (std::int64_t i = chunk_.count; i < hwy::RoundUpTo(chunk_.count, lanes); ++i) {
      set_cell(axis_, i, {kFarOutside, 0}, cells);
    }
  }

 private:
  static constexpr hn::ScalableTag<float> d{};
  static constexpr hn::RebindToSigned<hn::ScalableTag<float>> di{};
  using V = hn::Vec<hn::ScalableTag<float>>;
  using M = hn::Mask<hn::ScalableTag<float>>;

  static HWY_INLINE V set(float value) { return hn::Set(d, value); }
  static HWY_INLINE M is_short(V whole) { return hn::Lt(hn::Abs(whole), set(kReach)); }

  // Not a number, infinite, or too far for f32.
  HWY_NOINLINE void place_far(
      M is_near, std::int64_t start, const float (&field)[3][kChunk], Cells<float>* cells) const {
    alignas(64) float near[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(hn::IfThenElse(is_near, set(1), set(0)), d, near);
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(hn::Lanes(d)); ++k) {
      if (near[k] != 0) continue;
      const std::int64_t i = start + k;
      double index = index_without_field(pass_, transform_, chunk_, axis_, i);
      for (int j = first_component_; j < end_component_; ++j) {
        index += transform_.s[axis_][j] * static_cast<double>(field[j][i]);
      }
      set_cell(axis_, i,
          warp_internal::place(index, static_cast<double>(last_), padding, pass_.align_corners),
          cells);
    }
  }

  // place() for an index in two parts.
  HWY_INLINE void fold(V* whole, V* rest, std::int64_t i, Cells<float>* cells) const {
    if constexpr (padding == Outside::zeros) return;
    const V zero = set(0), one = set(1), last = set(static_cast<float>(last_));
    V slope = one;
    if constexpr (padding == Outside::reflection) reflect(whole, rest, &slope);
    const M is_low = hn::Lt(*whole, zero), is_high = hn::Ge(*whole, last);
    const M is_first = hn::And(hn::Eq(*whole, zero), hn::Eq(*rest, zero));
    const M is_outside = hn::Or(is_low, is_high);
    hn::Store(hn::IfThenZeroElse(hn::Or(is_outside, is_first), slope), d, cells->slope[axis_] + i);
    *whole = hn::Min(hn::Max(*whole, zero), last);
    *rest = hn::IfThenZeroElse(is_outside, *rest);
  }

  // From 0, or from half a voxel before it, there and back over what lies between the borders.
  HWY_INLINE void reflect(V* whole, V* rest, V* slope) const {
    if (last_ == 0) return;
    const V zero = set(0), one = set(1), half = set(0.5f);
    const V span = set(static_cast<float>(pass_.align_corners ? last_ : last_ + 1));
    const auto carry = [&] HWY_ATTR {
      const V floor = hn::Floor(*rest);
      *whole = hn::Add(*whole, floor);
      *rest = hn::Sub(*rest, floor);
    };
    const auto mirror_at = [&](V end, M where) HWY_ATTR {  // end - (whole + rest)
      *whole = hn::IfThenElse(where, hn::Sub(end, *whole), *whole);
      *rest = hn::IfThenElse(where, hn::Neg(*rest), *rest);
      carry();
    };
    if (!pass_.align_corners) {
      *rest = hn::Add(*rest, half);
      carry();
    }
    const M is_negative = hn::Lt(*whole, zero);
    mirror_at(zero, is_negative);
    const V flips = hn::Floor(hn::Div(*whole, span));
    *whole = hn::NegMulAdd(flips, span, *whole);
    const M is_odd = hn::Ne(hn::Sub(flips, hn::Mul(set(2), hn::Floor(hn::Mul(flips, half)))), zero);
    mirror_at(span, is_odd);
    *slope = hn::IfThenElse(hn::Xor(is_negative, is_odd), hn::Neg(one), one);
    if (!pass_.align_corners) {
      *rest = hn::Sub(*rest, half);
      carry();
    }
  }

  const Pass& pass_;
  const Transform& transform_;
  const Chunk& chunk_;
  int axis_, first_component_, end_component_;
  std::int64_t last_;
  WholeAndRest row_;
  float factor_[3], rest_of_factor_[3];
};

template <bool mixes>
void place_cells_in_f32(const Pass& pass, const Transform& t, const Columns& columns,
    const float (&field)[3][kChunk], const Chunk& chunk, Cells<float>* cells) {
  visit_padding(pass.padding, [&]<Outside padding>() HWY_ATTR {
    for (int axis = 0; axis < pass.rank; ++axis) {
      RowOfCells<padding, mixes>(pass, t, chunk, axis).place(columns, field, cells);
    }
  });
}
#endif

/// place_chunk() for cells of image n of the plan.
template <class T>
void place_cells(const Plan& plan, std::int64_t n, Chunk* chunk, Cells<T>* cells) {
  const Pass& pass = plan.pass;
  const Transform& t = plan.transforms[static_cast<std::size_t>(n)];
#if HWY_NATIVE_FMA
  if constexpr (sizeof(T) == 4) {
    if (!plan.columns.empty()) {
      alignas(64) float field[3][kChunk];
      load_field(pass, *chunk, field);
      const Columns& columns = plan.columns[static_cast<std::size_t>(n)];
      const auto place = mixes_components(pass, t) ? place_cells_in_f32<true>
                                                   : place_cells_in_f32<false>;
      place(pass, t, columns, field, *chunk, cells);
      if (pass.grid_affine_gradient.empty()) return;
      for (int j = 0; j < pass.rank; ++j) {
        std::copy_n(field[j], chunk->count, chunk->field[j]);
      }
      return;
    }
  }
#endif
  place_voxels(pass, t, chunk,
      [=](int axis, std::int32_t i, Place at) HWY_ATTR { set_cell(axis, i, at, cells); });
  for (int a = 0; a < pass.rank; ++a) {
    for (std::int64_t i = chunk->count; i < kChunk; ++i) {
      cells->fraction[a][i] = 0;
      cells->voxel[a][i] = static_cast<std::int32_t>(kFarOutside);
    }
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
