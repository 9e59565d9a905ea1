// SPDX-License-Identifier: Apache-2.0
// Indices of part of a row in f32, as cells or nearest voxels; cells.cc alone makes code of them.
//
// In f32 no index is formed in f64. It is a column's part, a row's and the field's, and each is
// split into a whole number and the rest: the first two when the pass is planned, in f64, and the
// product s·w with its rounding error, which a fused multiply-add gives. Whole numbers add up
// exactly, the rests stay within two voxels: the fraction is off by 2e-7 of a voxel at most,
// however far the voxel moved, and depends on nothing but the voxel. Included once per SIMD target,
// hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_ROW_OF_CELLS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_ROW_OF_CELLS_INL_H
#undef SIMILIS_WARP_CPU_ROW_OF_CELLS_INL_H
#else
#define SIMILIS_WARP_CPU_ROW_OF_CELLS_INL_H
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "src/warp/cpu/cells-inl.h"
#include "src/warp/cpu/chunk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
// One vector of cells along one axis.
struct CellsInF32 {
  using D = hn::ScalableTag<float>;
  hn::Vec<D> fraction, slope;
  hn::Vec<hn::RebindToSigned<D>> voxel;
};

// Indices of a row's voxels along one axis in two parts. Whole numbers have kWholeBias added to
// them: between 2^23 and 2^24 every f32 is one, and its bits are those of kWholeBias plus it as an
// integer.
template <bool mixes> struct IndicesOfRow {
  using D = CellsInF32::D;
  using V = hn::Vec<D>;
  using VI = hn::Vec<hn::RebindToSigned<D>>;
  static constexpr D d{};
  static constexpr hn::RebindToSigned<D> di{};

  // The sum of whole numbers, kWholeBias among them, and the rest, which stays within two voxels.
  // `changed` has the bits in which sums of whole numbers differ from kWholeBias.
  struct Parts {
    V whole, rest;
    VI changed;
  };
  // The parts for the voxels from i on, whose field is w.
  template <bool is_plain>
  HWY_INLINE Parts split(std::int64_t i, int axis, int rank, const V (&w)[3]) const {
    V whole = whole_of_row, rest = rest_of_row;
    if constexpr (is_plain) {
      if (axis == 0) {
        whole = hn::LoadU(d, column + i);
        rest = hn::LoadU(d, rest_of_column + i);
      }
    } else {
      whole = hn::Add(hn::LoadU(d, column + i), whole);
      rest = hn::Add(hn::LoadU(d, rest_of_column + i), rest);
    }
    VI changed = hn::Zero(di);
    const auto add = [&](int j) HWY_ATTR {
      const int k = mixes ? j : 0;
      const V of_product = hn::Round(hn::Mul(factor[k], w[j]));
      if (!is_plain) rest = hn::MulAdd(rest_of_factor[k], w[j], rest);
      rest = hn::Add(rest, hn::MulSub(factor[k], w[j], of_product));
      whole = hn::Add(whole, of_product);
      if (mixes) changed = hn::Or(changed, hn::Xor(hn::BitCast(di, whole), bias()));
    };
    if constexpr (mixes) {
      for (int j = 0; j < rank; ++j) add(j);
    } else {
      add(axis);
    }
    return {whole, rest, changed};
  }

  static HWY_INLINE VI bias() { return hn::BitCast(di, hn::Set(d, kWholeBias)); }

  const float *column, *rest_of_column;
  V whole_of_row, rest_of_row;
  V factor[mixes ? 3 : 1], rest_of_factor[mixes ? 3 : 1];  // of the components that it takes
};

// A row's cells along one axis. Indices that are too large for two parts, and NaN, are placed again
// in f64.
// is_padded: the padding is border or reflection; which, the rare vectors that it changes ask.
template <bool is_padded, bool mixes> class RowOfCells {
 public:
  RowOfCells(const Plan& plan, const Chunk& chunk, int axis)
      : pass_(plan.pass),
        transform_(plan.transforms[static_cast<std::size_t>(chunk.image)]),
        chunk_(chunk),
        axis_(axis),
        last_(pass_.axes[axis].whole - 1) {
    const Columns& columns = plan.columns_of(chunk.image);
    column_ = columns.whole[axis].data() + chunk.x;
    rest_of_column_ = columns.rest[axis].data() + chunk.x;
    const bool column_has_row = axis == 0 && columns.include_row;
    if (!column_has_row) {
      row_ = split_index(transform_.row(axis, chunk.position(pass_, 1), chunk.position(pass_, 2)));
      row_.whole += kWholeBias;
    }
    is_plain_ = axis == 0 ? column_has_row : transform_.m[axis][0] == 0;
    for (int j = mixes ? 0 : axis; j < (mixes ? 3 : axis + 1); ++j) {
      const double factor = transform_.s[axis][j];
      const int k = mixes ? j : 0;
      factor_[k] = static_cast<float>(factor);
      rest_of_factor_[k] = static_cast<float>(factor - static_cast<double>(factor_[k]));
      is_plain_ = is_plain_ && (j != axis || rest_of_factor_[k] == 0);
    }
  }

  using Indices = IndicesOfRow<mixes>;
  using V = typename Indices::V;
  using VI = typename Indices::VI;

  // Writes them in vectors, which a loop needs once. They are not returned, as GCC 12 would copy
  // them in 60 instructions.
  HWY_INLINE void get_indices(Indices* out) const {
    out->column = column_;
    out->rest_of_column = rest_of_column_;
    out->whole_of_row = set(row_.whole);
    out->rest_of_row = set(row_.rest);
    for (int k = 0; k < (mixes ? 3 : 1); ++k) {
      out->factor[k] = set(factor_[k]);
      out->rest_of_factor[k] = set(rest_of_factor_[k]);
    }
  }

  // True if columns change no index but x, rows do not change that one, and f32 holds the field's
  // factor, as without matrices: split() then leaves out what adds 0.
  bool is_plain() const { return is_plain_; }

  // The cells of the chunk's voxels from i on, whose field is w, before settle(). `own` is
  // get_indices()'s. `axis` is the constructor's, passed again so that the compiler knows the
  // element of w. `changed` is Indices::Parts's.
  template <bool is_plain>
  static HWY_INLINE CellsInF32 place(
      const Indices& own, std::int64_t i, int axis, int rank, const V (&w)[3], VI* changed) {
    const auto parts = own.template split<is_plain>(i, axis, rank, w);
#if HWY_TARGET < HWY_AVX2  // adds and rounds down in one instruction
    const V sum{_mm512_add_round_ps(
        parts.whole.raw, parts.rest.raw, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
    const V floor = hn::Sub(sum, parts.whole);
#else
    const V floor = hn::Floor(parts.rest), sum = hn::Add(parts.whole, floor);
#endif
    *changed = parts.changed;
    return {.fraction = hn::Sub(parts.rest, floor),
        .slope = set(1),
        .voxel = hn::Sub(hn::BitCast(di, sum), Indices::bias())};
  }

  // True for whole numbers that are not kWholeBias plus 22 bits with a sign.
  static HWY_INLINE auto is_far(VI voxel) {
    return hn::Ne(hn::ShiftRight<22>(voxel), hn::BroadcastSignBit(voxel));
  }

  // Folds the padding into cells, and places those again for which f32 does not do. Cells whose
  // voxels are all in the image, and that do not begin at voxel 0 exactly, stay as they are.
  HWY_INLINE void settle(std::int64_t i, const V (&w)[3], VI changed, CellsInF32* cells) const {
    if constexpr (mixes || is_padded) {
      const auto is_lost =
          hn::Or(is_far(cells->voxel), hn::Ne(hn::ShiftRight<23>(changed), hn::Zero(di)));
      if constexpr (is_padded) {
        if (!hn::AllFalse(di, is_folded(*cells))) {
          CellsInF32 folded = *cells;  // a copy: the cells can stay in registers
          fold(&folded);
          *cells = folded;
        }
      }
      cells->voxel = hn::IfThenElse(is_lost, hn::Set(di, kLost), cells->voxel);
    }
    if (HWY_UNLIKELY(!hn::AllFalse(di, is_far(cells->voxel)))) {
      CellsInF32 placed = *cells;
      place_far(i, w, &placed);
      *cells = placed;
    }
  }

  // The nearest voxels without padding; far ones are not right. Sets signs in `doubt` where an
  // index is too near to the middle of two voxels for f32 to tell its side.
  template <bool is_plain>
  static HWY_INLINE VI nearest(
      const Indices& own, std::int64_t i, int axis, int rank, const V (&w)[3], VI* doubt) {
    const auto parts = own.template split<is_plain>(i, axis, rank, w);
    const V nearest = hn::Round(parts.rest);
    const V distance = hn::Abs(hn::Sub(parts.rest, nearest));
    *doubt = hn::Or(*doubt, hn::BitCast(di, hn::Sub(set(0.5f - kInexact), distance)));
    return hn::Sub(hn::BitCast(di, hn::Add(parts.whole, nearest)), Indices::bias());
  }

  // Folds the padding into nearest voxels. Sets signs in `doubt` for far ones, and for those that
  // are mirrored more than once at an end.
  HWY_INLINE VI fold_nearest(VI voxel, VI* doubt) const {
    *doubt = hn::Or(*doubt, hn::VecFromMask(di, is_far(voxel)));
    const VI last = hn::Set(di, static_cast<std::int32_t>(last_));
    if (pass_.padding == Outside::border) {
      voxel = hn::Min(hn::Max(voxel, hn::Zero(di)), last);
    } else if (pass_.padding == Outside::reflection) {
      if (pass_.align_corners) {
        voxel = hn::Sub(last, hn::Abs(hn::Sub(last, hn::Abs(voxel))));
      } else {
        voxel = hn::Xor(voxel, hn::BroadcastSignBit(voxel));
        voxel =
            hn::Min(voxel, hn::Sub(hn::Set(di, static_cast<std::int32_t>(2 * last_ + 1)), voxel));
      }
      *doubt = hn::Or(*doubt, voxel);
    }
    return voxel;
  }

  // The place of voxel i of the chunk, whose field is w.
  Place place_in_f64(std::int64_t i, const float (&w)[3]) const {
    double index = index_without_field(pass_, transform_, chunk_, axis_, i);
    for (int j = mixes ? 0 : axis_; j < (mixes ? pass_.rank : axis_ + 1); ++j) {
      index += transform_.s[axis_][j] * static_cast<double>(w[j]);
    }
    return warp_internal::place(
        index, static_cast<double>(last_), pass_.padding, pass_.align_corners);
  }

 private:
  static constexpr CellsInF32::D d{};
  static constexpr hn::RebindToSigned<CellsInF32::D> di{};
  using M = hn::Mask<CellsInF32::D>;

  static constexpr std::int32_t kLost = 1 << 30;

  static HWY_INLINE V set(float value) { return hn::Set(d, value); }

  HWY_NOINLINE void place_far(std::int64_t start, const V (&w)[3], CellsInF32* result) const {
    constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);
    alignas(64) float field[3][kMost] = {}, fraction[kMost], slope[kMost];
    alignas(64) std::int32_t voxel[kMost];
    for (int j = 0; j < pass_.rank; ++j) hn::Store(w[j], d, field[j]);
    hn::Store(result->fraction, d, fraction);
    hn::Store(result->slope, d, slope);
    hn::Store(result->voxel, di, voxel);
    for (std::size_t k = 0; k < hn::Lanes(d); ++k) {
      if (std::abs(voxel[k] / 2) < static_cast<std::int32_t>(kReach)) continue;
      const Place at = place_in_f64(
          start + static_cast<std::int64_t>(k), {field[0][k], field[1][k], field[2][k]});
      const double first = std::floor(at.index);
      fraction[k] = fraction_above<float>(first, at.index);
      slope[k] = static_cast<float>(at.slope);
      voxel[k] = static_cast<std::int32_t>(first);
    }
    result->fraction = hn::Load(d, fraction);
    result->slope = hn::Load(d, slope);
    result->voxel = hn::Load(di, voxel);
  }

  // True for the lanes that the padding changes: outside, or at the first voxel, whose slope is 0.
  HWY_INLINE auto is_folded(const CellsInF32& cells) const {
    const VI zero = hn::Zero(di);
    const VI to_last = hn::Sub(hn::Set(di, static_cast<std::int32_t>(last_ - 1)), cells.voxel);
    return hn::Or(hn::Lt(hn::Or(cells.voxel, to_last), zero),
        hn::Eq(hn::Or(cells.voxel, hn::BitCast(di, cells.fraction)), zero));
  }

  // place() for indices in two parts.
  HWY_NOINLINE void fold(CellsInF32* cells) const {
    const V zero = set(0), last = set(static_cast<float>(last_));
    V whole = hn::ConvertTo(d, cells->voxel), rest = cells->fraction;
    if (pass_.padding == Outside::reflection) {
      const M changes = hn::RebindMask(d, is_folded(*cells));
      const V own_whole = whole, own_rest = rest;  // of cells inside: they keep their bits
      reflect(&whole, &rest, &cells->slope);
      whole = hn::IfThenElse(changes, whole, own_whole);
      rest = hn::IfThenElse(changes, rest, own_rest);
    }
    const M is_outside = hn::Or(hn::Lt(whole, zero), hn::Ge(whole, last));
    const M is_first = hn::And(hn::Eq(whole, zero), hn::Eq(rest, zero));
    cells->slope = hn::IfThenZeroElse(hn::Or(is_outside, is_first), cells->slope);
    cells->fraction = hn::IfThenZeroElse(is_outside, rest);
    cells->voxel = hn::ConvertTo(di, hn::Min(hn::Max(whole, zero), last));
  }

  // The position runs from 0, or from half a voxel before it, there and back between the borders.
  HWY_INLINE void reflect(V* whole, V* rest, V* slope) const {
    if (last_ == 0) return;
    const V zero = set(0), one = set(1), half = set(0.5f);
    const V span = set(static_cast<float>(pass_.align_corners ? last_ : last_ + 1));
    const auto carry = [&]() HWY_ATTR {
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
  int axis_;
  std::int64_t last_;
  const float *column_, *rest_of_column_;
  WholeAndRest row_{0, 0};
  float factor_[mixes ? 3 : 1], rest_of_factor_[mixes ? 3 : 1];  // of components that it takes
  bool is_plain_;
};

template <bool is_padded, bool mixes>
void place_cells_in_f32(
    const Plan& plan, const Chunk& chunk, const float (&field)[3][kChunk], Cells<float>* cells) {
  const CellsInF32::D d;
  const hn::RebindToSigned<CellsInF32::D> di;
  for (int axis = 0; axis < plan.pass.rank; ++axis) {
    using Row = RowOfCells<is_padded, mixes>;
    const Row row(plan, chunk, axis);
    typename Row::Indices indices;
    row.get_indices(&indices);
    for (std::int64_t i = 0; i < chunk.count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const hn::Vec<CellsInF32::D> w[3] = {
          hn::Load(d, field[0] + i), hn::Load(d, field[1] + i), hn::Load(d, field[2] + i)};
      hn::Vec<decltype(di)> changed;
      CellsInF32 placed = Row::template place<false>(indices, i, axis, plan.pass.rank, w, &changed);
      row.settle(i, w, changed, &placed);
      hn::Store(placed.fraction, d, cells->fraction[axis] + i);
      if constexpr (is_padded) hn::Store(placed.slope, d, cells->slope[axis] + i);
      hn::Store(placed.voxel, di, cells->voxel[axis] + i);
    }
  }
}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
