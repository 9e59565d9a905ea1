// SPDX-License-Identifier: Apache-2.0
// place_in_slots(): the cells of part of a row in one loop over the field. Included once per SIMD
// target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_READY_PLACE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_READY_PLACE_INL_H
#undef SIMILIS_WARP_CPU_READY_PLACE_INL_H
#else
#define SIMILIS_WARP_CPU_READY_PLACE_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"
#include "src/warp/cpu/ready_cells-inl.h"
#include "src/warp/cpu/row_of_cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
/// A chunk's indices along the axes.
template <int rank, bool is_padded> struct AxesOfCells {
  using Row = RowOfCells<is_padded, false>;
  AxesOfCells(const Plan& plan, const Chunk& chunk)
      : AxesOfCells(plan, chunk, std::make_integer_sequence<int, rank>()) {}

  const Row of[rank];
  const bool is_plain;

 private:
  template <int... axes>
  AxesOfCells(const Plan& plan, const Chunk& chunk, std::integer_sequence<int, axes...>)
      : of{Row(plan, chunk, axes)...}, is_plain((of[axes].is_plain() && ...)) {}
};

/// Loads a vector of displacements along each axis, whose components lie side by side, and fetches
/// those of the next chunk ahead.
template <int rank, class V> HWY_INLINE void load_field(const float* from, V (&w)[3]) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int line = 0; line < rank; ++line) hwy::Prefetch(from + rank * kChunk + line * lanes);
  if constexpr (rank == 3) {
    hn::LoadInterleaved3(d, from, w[0], w[1], w[2]);
  } else {
    hn::LoadInterleaved2(d, from, w[0], w[1]);
  }
}

// True if a cell begins at voxel 0 of an axis exactly.
template <int rank, class V, class VI>
HWY_INLINE bool begins_at_border(const V (&fraction)[3], const VI (&voxel)[3]) {
  const hn::RebindToSigned<hn::ScalableTag<float>> di;
  const auto is_zero = [&](int a) HWY_ATTR {
    return hn::Eq(hn::Or(voxel[a], hn::BitCast(di, fraction[a])), hn::Zero(di));
  };
  auto begins = hn::Or(is_zero(0), is_zero(1));
  if constexpr (rank == 3) begins = hn::Or(begins, is_zero(2));
  return !hn::AllFalse(di, begins);
}

/// Finds the cells of a chunk, where axes are plain, or any.
template <int rank, bool is_padded> class CellsInSlots {
 public:
  CellsInSlots(const Plan& plan, const Chunk& chunk, bool wants_slopes, ReadyCells* ready)
      : axes_(plan, chunk),
        sampler_(plan.pass, nullptr),
        is_along_y_(rank == 2 || plan.slab_axis == 1),
        is_dense_(plan.pass.image.strides[4] == 1),
        keeps_slopes_(is_padded && wants_slopes),
        ready_(*ready) {
    if (plan.pass.field.empty()) return;
    const Extents& s = plan.pass.field.strides;
    field_ = static_cast<const float*>(plan.pass.field.data()) + chunk.image * s[0] +
             chunk.z * s[1] + chunk.y * s[2] + chunk.x * s[3];
  }

  void run(std::int64_t count, Touched* touched) {
    axes_.is_plain ? run_along<true>(count, touched) : run_along<false>(count, touched);
  }

 private:
  using Row = RowOfCells<is_padded, false>;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using VI = hn::Vec<hn::RebindToSigned<D>>;
  static constexpr D d{};
  static constexpr hn::RebindToSigned<D> di{};

  template <bool is_plain> void run_along(std::int64_t count, Touched* touched) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    // Copies that no store and no call can change, so that the loop need not load them again.
    typename Row::Indices indices[rank];
    for (int a = 0; a < rank; ++a) axes_.of[a].get_indices(&indices[a]);
    const Sampler<float, rank, false> sampler = sampler_;
    const auto last = sampler.last_voxels();
    const float* const field = field_;
    const bool is_along_y = is_along_y_, is_dense = is_dense_;
    const bool keeps_slopes = is_padded && keeps_slopes_;
    ReadyCells& ready = ready_;
    Cells<float>& cells = ready.cells;
    auto least = hn::Set(di, 1 << 30), most = hn::Set(di, -(1 << 30));
    for (std::int64_t slot = 0; slot < count; slot += lanes) {
      const std::int64_t i = std::min(slot, count - lanes);
      V w[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)}, fraction[3];
      VI voxel[3], unchanged;
      if (HWY_LIKELY(field != nullptr)) load_field<rank>(field + rank * i, w);
      for (int a = 0; a < rank; ++a) {
        const CellsInF32 placed =
            Row::template place<is_plain>(indices[a], i, a, rank, w, &unchanged);
        fraction[a] = placed.fraction;
        voxel[a] = placed.voxel;
        hn::Store(fraction[a], d, cells.fraction[a] + slot);
        hn::Store(voxel[a], di, cells.voxel[a] + slot);
        if (keeps_slopes) hn::Store(placed.slope, d, cells.slope[a] + slot);
      }
      hn::Store(sampler.offsets_of(voxel, is_dense), di, ready.offset + slot);
      // Nothing is far or folded where all corners are there, but a slope at voxel 0 itself.
      bool is_inside = sampler.has_all_corners(voxel, last);
      if (is_padded && keeps_slopes) is_inside &= !begins_at_border<rank>(fraction, voxel);
      ready.is_inside[slot] = is_inside;
      if (HWY_UNLIKELY(!is_inside) && (is_padded || is_any_far(voxel))) settle(i, slot);
      if (touched != nullptr) {
        const auto along = hn::Load(di, cells.voxel[is_along_y ? 1 : rank - 1] + slot);
        least = hn::Min(least, along);
        most = hn::Max(most, along);
      }
    }
    if (touched == nullptr) return;
    touched->first = std::min(touched->first, hn::GetLane(hn::MinOfLanes(di, least)));
    touched->last = std::max(touched->last, hn::GetLane(hn::MaxOfLanes(di, most)));
  }

  static HWY_INLINE bool is_any_far(const VI (&voxel)[3]) {
    auto is_far = hn::Or(Row::is_far(voxel[0]), Row::is_far(voxel[1]));
    if constexpr (rank == 3) is_far = hn::Or(is_far, Row::is_far(voxel[2]));
    return !hn::AllFalse(di, is_far);
  }

  // A slot with voxels that are outside, far, or at the border itself. It reads again what the loop
  // keeps in registers.
  HWY_NOINLINE void settle(std::int64_t i, std::int64_t slot) {
    V w[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    VI voxel[3];
    if (field_ != nullptr) load_field<rank>(field_ + rank * i, w);
    Cells<float>& cells = ready_.cells;
    for (int a = 0; a < rank; ++a) {
      CellsInF32 placed{hn::Load(d, cells.fraction[a] + slot), hn::Set(d, 1.0f),
          hn::Load(di, cells.voxel[a] + slot)};
      axes_.of[a].settle(i, w, hn::Zero(di), &placed);
      voxel[a] = placed.voxel;
      hn::Store(placed.fraction, d, cells.fraction[a] + slot);
      hn::Store(placed.voxel, di, cells.voxel[a] + slot);
      if (keeps_slopes_) hn::Store(placed.slope, d, cells.slope[a] + slot);
    }
    hn::Store(sampler_.offsets_of(voxel, is_dense_), di, ready_.offset + slot);
    ready_.is_inside[slot] = sampler_.has_all_corners(voxel, sampler_.last_voxels());
  }

  const AxesOfCells<rank, is_padded> axes_;
  const Sampler<float, rank, false> sampler_;
  const bool is_along_y_, is_dense_, keeps_slopes_;
  ReadyCells& ready_;
  const float* field_ = nullptr;  // of the chunk's first voxel
};

template <int rank>
void place_in_slots(
    const Plan& plan, const Chunk& chunk, bool wants_slopes, Touched* touched, ReadyCells* ready) {
  if (plan.pass.padding == Outside::zeros) {
    CellsInSlots<rank, false>(plan, chunk, wants_slopes, ready).run(chunk.count, touched);
  } else {
    CellsInSlots<rank, true>(plan, chunk, wants_slopes, ready).run(chunk.count, touched);
  }
}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
