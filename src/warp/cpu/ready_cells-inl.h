// SPDX-License-Identifier: Apache-2.0
// The cells of part of a row, found in one loop over the field, for images and fields of the usual
// layouts: what place_cells() finds, with the same bits. cells.cc compiles what is declared here
// for each SIMD target. Included once per target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_READY_CELLS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_READY_CELLS_INL_H
#undef SIMILIS_WARP_CPU_READY_CELLS_INL_H
#else
#define SIMILIS_WARP_CPU_READY_CELLS_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"
#include "src/warp/cpu/nearest-inl.h"
#include "src/warp/cpu/vectors-inl.h"

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

  static constexpr std::int32_t kNone = NearestVoxels::kNone;
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

/// Finds the cells of a chunk of at least one vector, with slopes if a padding makes them and they
/// are wanted, and widens `touched` by the least and the largest along the slabs' axis, if it is
/// given.
template <int rank>
void place_in_slots(
    const Plan& plan, const Chunk& chunk, bool wants_slopes, Touched* touched, ReadyCells* ready);

/// The same for the offsets of the nearest voxels.
template <int rank>
void place_nearest_in_slots(
    const Plan& plan, const Chunk& chunk, Touched* touched, ReadyCells* ready);

/// Clears the gradient to an image up to a plane (row in 2D) along the slabs' axis, where tasks run
/// one after the other. It and add_to_sums() are compiled by scatter.cc.
void clear_sums(Plan* plan, std::int64_t image, std::int64_t end);

/// Adds to the gradient to an image what the voxels [begin, chunk.count) bring, whose cells have
/// left their slots.
void add_to_sums(const Plan& plan, std::int64_t image, const Chunk& chunk, const ReadyCells& ready,
    std::int64_t begin);

/// Moves what the last slot holds, so that voxel i of the chunk is element i of the array.
template <class T> void leave_slots(std::int64_t count, T* row) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::int64_t rest = count % lanes, slot = count - rest;
  if (rest != 0) std::copy_n(row + slot + lanes - rest, rest, row + slot);
}

/// The same of cells.
inline void leave_slots(int rank, std::int64_t count, bool with_slopes, Cells<float>* cells) {
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
