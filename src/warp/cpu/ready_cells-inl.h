// SPDX-License-Identifier: Apache-2.0
// The cells of part of a row in one loop over the field, for images and fields of the usual
// layouts: what place_cells() finds, with the same bits. Included once per SIMD target, hence the
// guard that flips.
#if defined(SIMILIS_WARP_CPU_READY_CELLS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_READY_CELLS_INL_H
#undef SIMILIS_WARP_CPU_READY_CELLS_INL_H
#else
#define SIMILIS_WARP_CPU_READY_CELLS_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"
#include "src/warp/cpu/nearest-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Cells of a chunk, and what all channels share. Each vector has its own slot of as many elements
// as lanes; the last vector ends where the chunk ends, and repeats voxels of the one before it.
struct ReadyCells {
  Cells<float> cells;
  alignas(64) std::int32_t offset[kChunk];  // of the first voxel; of the nearest one, or kNone
  bool is_inside[kChunk];  // at a slot's first element: all corners, or nearest voxels, are there
  alignas(64) float none[kChunk];         // the value where there is no nearest voxel: 0 or NaN
  alignas(64) float gradient[3][kChunk];  // to the index

  static constexpr std::int32_t kNone = NearestVoxels<float>::kNone;
};

#if HWY_NATIVE_FMA
/// True if place_in_slots() finds the cells of all images of the plan.
inline bool has_ready_cells(const Plan& plan) {
  const Pass& pass = plan.pass;
  bool result =
      pass.axes[0].out_extent >= static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>())) &&
      !plan.columns.empty() && has_short_offsets(pass.image) &&
      (pass.field.empty() || is_interleaved(pass.field));
  for (const Axis& axis : pass.axes) {
    result = result && static_cast<float>(axis.extent) <= 2 * kReach && !axis.is_part();
  }
  for (std::int64_t n = 0; n < pass.batch; ++n) result = result && !plan.mixes_components(n);
  return result;
}

/// Which arrays are wanted besides fractions and offsets: the voxels of cells that have all their
/// corners, and slopes.
struct Wanted {
  bool voxels, slopes;
};

/// A chunk's indices along the axes.
template <int rank, Outside padding> struct AxesOfCells {
  using Row = RowOfCells<padding, false>;
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
template <int rank, Outside padding, bool is_plain>
void place_along(const AxesOfCells<rank, padding>& axes, const Plan& plan, const Chunk& chunk,
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
  const bool keeps_voxels = wanted.voxels,
             keeps_slopes = padding != Outside::zeros && wanted.slopes;
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

/// Finds the cells of a chunk of at least one vector, and widens `touched` by the least and the
/// largest along the slabs' axis, if it is given.
template <int rank, Outside padding>
void place_in_slots(const Plan& plan, const Chunk& chunk, const Wanted& wanted, Touched* touched,
    ReadyCells* ready) {
  const AxesOfCells<rank, padding> axes(plan, chunk);
  const auto place =
      axes.is_plain ? place_along<rank, padding, true> : place_along<rank, padding, false>;
  place(axes, plan, chunk, wanted, touched, ready);
}

/// Moves what the last slot holds, so that voxel i of the chunk is element i of the array.
template <class T> void leave_slots(std::int64_t count, T* row) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::int64_t rest = count % lanes, slot = count - rest;
  if (rest != 0) std::copy_n(row + slot + lanes - rest, rest, row + slot);
}

/// The same of cells.
template <int rank> void leave_slots(std::int64_t count, bool with_slopes, Cells<float>* cells) {
  for (int a = 0; a < rank; ++a) {
    leave_slots(count, cells->fraction[a]);
    leave_slots(count, cells->voxel[a]);
    if (with_slopes) leave_slots(count, cells->slope[a]);
  }
}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
