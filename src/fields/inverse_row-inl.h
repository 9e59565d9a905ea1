// SPDX-License-Identifier: Apache-2.0
// A row of inverse.h's inverses on the CPU, a voxel in each lane: the same operations in the same
// order, so with the bits of invert_voxel(). A lane that has found its inverse waits for the others
// of its vector. Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_FIELDS_INVERSE_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_FIELDS_INVERSE_ROW_INL_H
#undef SIMILIS_FIELDS_INVERSE_ROW_INL_H
#else
#define SIMILIS_FIELDS_INVERSE_ROW_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "src/fields/inverse.h"

HWY_BEFORE_NAMESPACE();
namespace similis::fields_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // which has no vectors of four
template <int rank> class InverseOfRow {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using DI = hn::RebindToSigned<D>;
  using VI = hn::Vec<DI>;

  // The inverse at a vector's voxels, and what is left there, x, y, z.
  struct Inverse {
    V w[rank], r[rank];
  };

  // field: one image of `elements` f32, whose components lie side by side; y, z: of the row.
  InverseOfRow(const InverseOptions<float>& o, const float* field, std::int64_t elements,
      std::int64_t y, std::int64_t z)
      : o_(o),
        field_(field),
        last_whole_(hn::Set(di, static_cast<std::int32_t>(elements - 4))),
        y_(static_cast<std::int32_t>(y)),
        z_(static_cast<std::int32_t>(z)) {}

  // At the voxels from x on.
  Inverse invert(std::int64_t x) {
    voxel_[0] = hn::Iota(di, static_cast<std::int32_t>(x));
    voxel_[1] = hn::Set(di, y_);
    if constexpr (rank == 3) voxel_[2] = hn::Set(di, z_);
    VI own = hn::Zero(di);
    for (int a = 0; a < rank; ++a) own = hn::Add(own, hn::Mul(voxel_[a], stride(a)));
    Inverse found;
    for (int i = 0; i < rank; ++i) found.w[i] = hn::Neg(hn::GatherIndex(d, field_ + i, own));
    Residual at = residual_at(found.w);
    V norm_squared = at.norm_squared, step[rank], length = set(1);
    find_newton_step(at, step);
    for (int i = 0; i < rank; ++i) found.r[i] = at.r[i];
    const V tolerance_squared = set(o_.tolerance_squared), least = set(1.0f / 64);
    for (int k = 0; k < o_.iterations; ++k) {
      const auto is_active = hn::Gt(norm_squared, tolerance_squared);
      if (hn::AllFalse(d, is_active)) break;
      V other[rank], other_step[rank];
      for (int i = 0; i < rank; ++i) other[i] = hn::Sub(found.w[i], hn::Mul(length, step[i]));
      at = residual_at(other);
      find_newton_step(at, other_step);
      const auto is_better = hn::And(is_active, hn::Lt(at.norm_squared, norm_squared));
      const auto is_worse = hn::AndNot(is_better, is_active);
      const auto is_longer = hn::Gt(length, least);
      const auto starts_again = hn::AndNot(is_longer, is_worse);
      norm_squared = hn::IfThenElse(is_better, at.norm_squared, norm_squared);
      for (int i = 0; i < rank; ++i) {
        found.w[i] = hn::IfThenElse(is_better, other[i], found.w[i]);
        found.r[i] = hn::IfThenElse(is_better, at.r[i], found.r[i]);
        step[i] = hn::IfThenElse(is_better, other_step[i], step[i]);
        step[i] = hn::IfThenElse(starts_again, found.r[i], step[i]);
      }
      const V half = hn::Mul(length, set(0.5f));
      const V grown = hn::IfThenElse(hn::Lt(length, set(1)), hn::Add(length, length), length);
      length = hn::IfThenElse(is_better, grown, length);
      length = hn::IfThenElse(is_worse, hn::IfThenElse(is_longer, half, set(1)), length);
    }
    return found;
  }

 private:
  static constexpr D d{};
  static constexpr DI di{};
  static constexpr hn::FixedTag<float, 4> d4{};
  static constexpr std::size_t kMost = HWY_MAX_BYTES / sizeof(float);

  struct Residual {
    V r[rank], by_w[rank][rank], norm_squared;
  };
  // For one plane of cells: u, and its differences along x and y.
  struct Face {
    V value, by_x, by_y;
  };

  static HWY_INLINE V set(float value) { return hn::Set(d, value); }
  static HWY_INLINE V blend(V f, V a, V b) { return hn::Add(hn::Mul(f, hn::Sub(b, a)), a); }
  HWY_INLINE VI stride(int a) const { return hn::Set(di, static_cast<std::int32_t>(o_.stride[a])); }

  HWY_INLINE Residual residual_at(const V (&w)[rank]) const {
    VI first = hn::Zero(di), beside[3] = {first, first, first}, reached = first;
    V f[rank], scale[rank];
    for (int a = 0; a < rank; ++a) {
      const V reach = set(static_cast<float>(o_.last[a] + 2)), least = hn::Neg(reach);
      V v = hn::Mul(w[a], set(o_.scale[a]));
      v = hn::IfThenElse(hn::Gt(v, least), v, least);
      v = hn::IfThenElse(hn::Lt(v, reach), v, reach);
      const V whole = hn::Floor(v);
      const VI last = hn::Set(di, o_.last[a]), zero = hn::Zero(di);
      const VI cell = hn::Add(voxel_[a], hn::ConvertTo(di, whole));
      const VI clamped = hn::Min(hn::Max(cell, zero), last);
      const auto is_outside =
          hn::RebindMask(d, hn::Or(hn::Lt(cell, zero), hn::Not(hn::Lt(cell, last))));
      f[a] = hn::IfThenZeroElse(is_outside, hn::Sub(v, whole));
      scale[a] = hn::IfThenZeroElse(is_outside, set(o_.scale[a]));
      beside[a] = hn::IfThenElseZero(hn::Lt(clamped, last), stride(a));
      first = hn::Add(first, hn::Mul(clamped, stride(a)));
      reached = hn::Add(reached, beside[a]);
    }
    // Four numbers are loaded for each vector, which may be one or two more than the field has.
    const bool loads_fours = hn::AllFalse(di, hn::Gt(hn::Add(first, reached), last_whole_));
    Face faces[rank - 1][rank];
    for (int z = 0; z < rank - 1; ++z) {
      if (z == 1) first = hn::Add(first, beside[2]);
      V corner[4][rank];
      const VI second = hn::Add(first, beside[0]);
      load_vectors(first, loads_fours, corner[0]);
      load_vectors(second, loads_fours, corner[1]);
      load_vectors(hn::Add(first, beside[1]), loads_fours, corner[2]);
      load_vectors(hn::Add(second, beside[1]), loads_fours, corner[3]);
      for (int i = 0; i < rank; ++i) {
        const V v0 = corner[0][i], v1 = corner[1][i], v2 = corner[2][i], v3 = corner[3][i];
        const V near = blend(f[0], v0, v1), far = blend(f[0], v2, v3);
        faces[z][i] = {blend(f[1], near, far), blend(f[1], hn::Sub(v1, v0), hn::Sub(v3, v2)),
            hn::Sub(far, near)};
      }
    }
    Residual result;
    result.norm_squared = hn::Zero(d);
    for (int i = 0; i < rank; ++i) {
      Face u = faces[0][i];
      if constexpr (rank == 3) {
        const Face& behind = faces[1][i];
        result.by_w[i][2] = hn::Mul(scale[2], hn::Sub(behind.value, u.value));
        u = {blend(f[2], u.value, behind.value), blend(f[2], u.by_x, behind.by_x),
            blend(f[2], u.by_y, behind.by_y)};
      }
      result.by_w[i][0] = hn::Mul(scale[0], u.by_x);
      result.by_w[i][1] = hn::Mul(scale[1], u.by_y);
      result.r[i] = hn::Add(w[i], u.value);
      const V voxels = hn::Mul(result.r[i], set(o_.unit[i]));
      result.norm_squared = hn::Add(result.norm_squared, hn::Mul(voxels, voxels));
    }
    return result;
  }

  // The components of the vectors at these offsets. Four lanes of each 128 bits are transposed.
  HWY_INLINE void load_vectors(VI offsets, bool loads_fours, V (&component)[rank]) const {
    if (HWY_UNLIKELY(!loads_fours)) {
      for (int i = 0; i < rank; ++i) component[i] = hn::GatherIndex(d, field_ + i, offsets);
      return;
    }
    alignas(64) std::int32_t at[kMost];
    hn::Store(offsets, di, at);
    V lane[4];
    for (std::size_t k = 0; k < 4; ++k) lane[k] = load_blocks(d, at + k);
    const hn::Repartition<std::uint64_t, D> d64;
    const auto as_pairs = [&](V v) HWY_ATTR { return hn::BitCast(d64, v); };
    const auto low = as_pairs(hn::InterleaveLower(d, lane[0], lane[1]));
    const auto high = as_pairs(hn::InterleaveLower(d, lane[2], lane[3]));
    component[0] = hn::BitCast(d, hn::InterleaveLower(d64, low, high));
    component[1] = hn::BitCast(d, hn::InterleaveUpper(d64, low, high));
    if constexpr (rank == 3) {
      const auto low_z = as_pairs(hn::InterleaveUpper(d, lane[0], lane[1]));
      const auto high_z = as_pairs(hn::InterleaveUpper(d, lane[2], lane[3]));
      component[2] = hn::BitCast(d, hn::InterleaveLower(d64, low_z, high_z));
    }
  }

  // The vectors at at[0], at[4], …: each one's block of 128 bits.
  template <class DN> HWY_INLINE hn::Vec<DN> load_blocks(DN dn, const std::int32_t* at) const {
    if constexpr (hn::MaxLanes(DN()) == 4) {
      return hn::LoadU(dn, field_ + at[0]);
    } else {
      const hn::Half<DN> half;
      return hn::Combine(dn, load_blocks(half, at + hn::MaxLanes(half)), load_blocks(half, at));
    }
  }

  // newton_step() of each lane.
  static HWY_INLINE void find_newton_step(const Residual& at, V (&step)[rank]) {
    const V zero = hn::Zero(d), one = set(1), singular = set(1e-3f);
    V m[3][3] = {{one, zero, zero}, {zero, one, zero}, {zero, zero, one}},
      r[3] = {zero, zero, zero};
    for (int i = 0; i < rank; ++i) {
      for (int a = 0; a < rank; ++a) m[i][a] = hn::Add(m[i][a], at.by_w[i][a]);
      r[i] = at.r[i];
    }
    const auto minor = [](V a, V b, V e, V f)
                           HWY_ATTR { return hn::Sub(hn::Mul(a, b), hn::Mul(e, f)); };
    const auto sum = [](V a, V b, V e, V f, V g, V h) HWY_ATTR {
      return hn::Add(hn::Add(hn::Mul(a, b), hn::Mul(e, f)), hn::Mul(g, h));
    };
    const V c0 = minor(m[1][1], m[2][2], m[1][2], m[2][1]);
    const V c1 = minor(m[1][2], m[2][0], m[1][0], m[2][2]);
    const V c2 = minor(m[1][0], m[2][1], m[1][1], m[2][0]);
    const V det = sum(m[0][0], c0, m[0][1], c1, m[0][2], c2);
    const auto is_regular = hn::Or(hn::Gt(det, singular), hn::Lt(det, hn::Neg(singular)));
    const V by = hn::IfThenElseZero(is_regular, hn::Div(one, det));
    const V solved[3] = {sum(r[0], c0, r[1], minor(m[0][2], m[2][1], m[0][1], m[2][2]), r[2],
                             minor(m[0][1], m[1][2], m[0][2], m[1][1])),
        sum(r[0], c1, r[1], minor(m[0][0], m[2][2], m[0][2], m[2][0]), r[2],
            minor(m[0][2], m[1][0], m[0][0], m[1][2])),
        sum(r[0], c2, r[1], minor(m[0][1], m[2][0], m[0][0], m[2][1]), r[2],
            minor(m[0][0], m[1][1], m[0][1], m[1][0]))};
    for (int i = 0; i < rank; ++i) {
      step[i] = hn::IfThenElse(is_regular, hn::Mul(solved[i], by), r[i]);
    }
  }

  const InverseOptions<float>& o_;
  const float* const field_;
  const VI last_whole_;  // the last offset that has four numbers
  const std::int32_t y_, z_;
  VI voxel_[rank];
};
#endif

}  // namespace similis::fields_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
