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

/// place_in_slots() where axes are plain, or any.
template <int rank, bool is_padded, bool is_plain>
void place_along(const AxesOfCells<rank, is_padded>& axes, const Plan& plan, const Chunk& chunk,
    const Wanted& wanted, Touched* touched, ReadyCells* ready) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  const Pass& pass = plan.pass;
  const Sampler<float, rank, false> sampler(pass, nullptr);
  const Extents& s = pass.field.strides;
  const float* const field = pass.field.empty() ? nullptr
                                                : static_cast<const float*>(pass.field.data()) +
                                                      chunk.image * s[0] + chunk.z * s[1] +
                                                      chunk.y * s[2] + chunk.x * s[3];
  const bool is_dense = pass.image.strides[4] == 1;
  const bool keeps_voxels = wanted.voxels, keeps_slopes = is_padded && wanted.slopes;
  auto least = hn::Set(di, 1 << 30), most = hn::Set(di, -(1 << 30));
  Cells<float>& cells = ready->cells;
  const auto last = sampler.last_cells();
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), end = chunk.count;
  for (std::int64_t slot = 0; slot < end; slot += lanes) {
    const std::int64_t i = std::min(slot, end - lanes);
    V w[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)}, fraction[3], slope[3];
    hn::Vec<decltype(di)> voxel[3];
    if (field != nullptr) load_field<rank>(field + rank * i, w);
    for (int a = 0; a < rank; ++a) {
      const CellsInF32 placed = axes.of[a].template place<is_plain>(i, a, w);
      fraction[a] = placed.fraction;
      voxel[a] = placed.voxel;
      slope[a] = placed.slope;
    }
    const bool is_inside = sampler.has_all_corners(voxel, last);  // and so nothing is far
    if (HWY_UNLIKELY(!is_inside)) {
      const V field_of_far[3] = {w[0], w[1], w[2]};  // a copy: w itself can stay in registers
      for (int a = 0; a < rank; ++a) {
        CellsInF32 placed{fraction[a], slope[a], voxel[a]};
        axes.of[a].correct(i, field_of_far, &placed);
        fraction[a] = placed.fraction;
        voxel[a] = placed.voxel;
        slope[a] = placed.slope;
      }
    }
    for (int a = 0; a < rank && keeps_slopes; ++a) hn::Store(slope[a], d, cells.slope[a] + slot);
    if (touched != nullptr) {
      const auto along_slabs = rank == 2 || plan.slab_axis == 1 ? voxel[1] : voxel[rank - 1];
      least = hn::Min(least, along_slabs);
      most = hn::Max(most, along_slabs);
    }
    for (int a = 0; a < rank; ++a) {
      hn::Store(fraction[a], d, cells.fraction[a] + slot);
      if (!is_inside || keeps_voxels) hn::Store(voxel[a], di, cells.voxel[a] + slot);
    }
    hn::Store(sampler.offsets_of(voxel, is_dense), di, ready->offset + slot);
    ready->is_inside[slot] = is_inside;
  }
  if (touched != nullptr) {
    touched->first = std::min(touched->first, hn::GetLane(hn::MinOfLanes(di, least)));
    touched->last = std::max(touched->last, hn::GetLane(hn::MaxOfLanes(di, most)));
  }
}

template <int rank, bool is_padded>
void place_with_padding(const Plan& plan, const Chunk& chunk, const Wanted& wanted,
    Touched* touched, ReadyCells* ready) {
  const AxesOfCells<rank, is_padded> axes(plan, chunk);
  const auto place =
      axes.is_plain ? place_along<rank, is_padded, true> : place_along<rank, is_padded, false>;
  place(axes, plan, chunk, wanted, touched, ready);
}

template <int rank>
void place_in_slots(const Plan& plan, const Chunk& chunk, const Wanted& wanted, Touched* touched,
    ReadyCells* ready) {
  const auto place = plan.pass.padding == Outside::zeros ? place_with_padding<rank, false>
                                                         : place_with_padding<rank, true>;
  place(plan, chunk, wanted, touched, ready);
}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
