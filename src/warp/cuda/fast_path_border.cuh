// SPDX-License-Identifier: Apache-2.0
// Voxels of the fast path whose cells are not all inside the image: their cells with the padding
// folded in, notes of cells that lie elsewhere, and the loop over them that a warp's lanes share.
#pragma once

#include "src/warp/cuda/fast_path_corners.cuh"

namespace similis::warp_internal {

/// The cell of a voxel at the border, with the padding folded in. Cells of padded images have all
/// their corners; fractions are NaN where the coordinate is.
template <class L> struct BorderCell : FastCell<L> {
  unsigned corners;      // those that are voxels, a bit each
  float slope[L::rank];  // derivative of the folded index by the index
};

/// An index with the padding folded in, its cell inside the image, and its slope. If fold() knows
/// them these are its bits, so that a voxel has the same ones wherever it is computed.
struct FoldedIndex {
  int voxel;  // kNoVoxel: far outside
  float fraction, slope;
};
__device__ SIMILIS_NOINLINE inline FoldedIndex folded_index(
    double index, int last, Outside padding, bool align_corners) {
  float above;
  const int below = split(index, &above);
  const FoldedAxis known = fold(below, above, last, padding, align_corners);
  if (known.is_known) return {known.voxel, known.fraction, static_cast<float>(known.slope)};
  const Place folded = place(index, last, padding, align_corners);
  if (folded.index < 0) return {kNoVoxel, 0, 0};
  const int voxel = min(static_cast<int>(folded.index), last - 1);
  return {voxel, static_cast<float>(folded.index - voxel), static_cast<float>(folded.slope)};
}

/// The number that SampleRequest::elsewhere counts cells down from.
constexpr int kElsewhere = 1 << 20;

// Numbers above 0 are in the order of their bits.
__device__ __forceinline__ void raise(float* to, float value) {
  if (value > *static_cast<volatile float*>(to)) {
    atomicMax(reinterpret_cast<int*>(to), __float_as_int(value));
  }
}

/// Notes that a voxel's cell is none of those reached.
__device__ SIMILIS_NOINLINE inline void note_beyond(const FastPass& p) {
  raise(p.elsewhere + 2 * static_cast<std::int64_t>(p.out[2]) + 1, 2);
}

/// Notes a cell that does not count here, counted from the first row as in BorderCell.
template <class L>
__device__ SIMILIS_NOINLINE void note_elsewhere(
    const FastPass& p, const FastColumn<L>& column, int voxel) {
  const int cell = voxel + p.rows.counter - kCounterWord;
  if (static_cast<unsigned>(cell + 1) > static_cast<unsigned>(p.rows.whole_last + 1)) return;
  float* const row = p.elsewhere + 2 * static_cast<std::int64_t>(column.z);
  raise(row, static_cast<float>(kElsewhere - cell));
  raise(row + 1, static_cast<float>(cell + 2));
}

template <class L>
__device__ __forceinline__ BorderCell<L> border_cell(
    const FastPass& p, const FastColumn<L>& column, int z) {
  BorderCell<L> cell;
  float u[1][L::rank];
  load_field<L>(p, column, z, field_at<L>(p, column, z), u);
  bool is_number = true, is_near = true, is_reached = true;
  const bool is_padded = L::may_pad && p.padding != Outside::zeros;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    const double index = column.index(p, a, column.position(p, z), u[0][a]);
    is_number &= index == index;
    cell.slope[a] = 1;
    if (!is_padded) {
      if (L::is_part && a == L::rank - 1) {
        is_reached = !(index < p.reached_first || index >= p.reached_end);
      }
      cell.voxel[a] = split(index, &cell.fraction[a], counter_of<L>(p, a));
      continue;
    }
    const int last = last_voxel<L>(p, a);
    const FoldedIndex folded = folded_index(index, last, p.padding, p.align_corners);
    is_near &= folded.voxel != kNoVoxel;
    if (L::is_part && a == L::rank - 1) {
      const double place = folded.voxel + static_cast<double>(folded.fraction);
      is_reached = folded.voxel == kNoVoxel || !(place < p.reached_first || place >= p.reached_end);
    }
    cell.voxel[a] = folded.voxel - first_voxel<L>(p, a);
    cell.fraction[a] = folded.fraction;
    cell.slope[a] = folded.slope;
  }
  const bool is_here = is_counted<L>(p, cell.voxel[L::rank - 1]);
  if constexpr (L::is_part) {
    if (p.elsewhere != nullptr && is_number) {
      if (is_near && !is_here) note_elsewhere<L>(p, column, cell.voxel[L::rank - 1]);
      if (!is_reached) note_beyond(p);
      is_number = is_reached;
    }
  }
  is_near &= is_here;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    if (!is_number) cell.fraction[a] = NAN;
  }
  cell.corners = !is_number || !is_near ? 0
                 : is_padded            ? (L::rank == 3 ? 0xffu : 0xfu)
                                        : corners_inside<L>(p, cell);
  cell.offset = cell.corners == 0 ? 0 : cell.place(p.image_strides);
  return cell;
}

// Return the integer of another lane: of `lane`, or of the one `distance` below.
__device__ __forceinline__ int integer_of(int value, int lane) {
  return __double2loint(gpu::value_of(__hiloint2double(0, value), lane));
}
__device__ __forceinline__ int integer_below(int value, int distance) {
  return __double2loint(gpu::value_below(__hiloint2double(0, value), distance));
}

/// Hands the voxels of the warp's columns in `which`, a bit each, to its lanes, one to each, if
/// there are no more than lanes and some lane has several, as at an end of the rows: there a lane
/// would take its own behind each other. A lane's column becomes the one of its voxel. All lanes
/// call it.
template <class L>
__device__ __forceinline__ void share_voxels(FastColumn<L>* column, unsigned* which) {
  const int count = __popc(*which);
  if (gpu::first_lane(count > 1) == gpu::kSubgroup) return;
  int through = count;  // number of voxels of the lanes up to this one
#pragma unroll
  for (int distance = 1; distance < kTileX; distance *= 2) {
    const int below = integer_below(through, distance);
    if (lane() >= distance) through += below;
  }
  const int total = integer_of(through, kTileX - 1);
  if (total > kTileX) return;
  int owner = 0;
#pragma unroll
  for (int step = kTileX / 2; step > 0; step /= 2) {
    if (integer_of(through, owner + step - 1) <= lane()) owner += step;
  }
  const int skipped = lane() - integer_of(through - count, owner);
  auto bits = static_cast<unsigned>(integer_of(static_cast<int>(*which), owner));
  for (int i = 0; i < skipped; ++i) bits &= bits - 1;
  *which = lane() < total ? bits & (0u - bits) : 0;
  column->x = integer_of(column->x, owner);
#pragma unroll
  for (double& base : column->base) base = gpu::value_of(base, owner);
}

/// Calls body(column, z, cell) for those of the column's voxels in `which`, a bit each, whose cells
/// have some corner that is a voxel, or whose coordinate is NaN. The voxels of a warp's lanes may
/// be handed to others, so that all lanes call it, and what they stored before is there.
template <class L, bool places = false, class Body>
__device__ __forceinline__ void for_each_at_border(
    const FastPass& p, FastColumn<L> column, unsigned which, const Body& body) {
  if constexpr (places) {
    if (gpu::first_lane(which != 0) != gpu::kSubgroup) column.place_again(p);
  }
  share_voxels<L>(&column, &which);
  gpu::sync_warp();
#pragma unroll 1
  for (; which != 0; which &= which - 1) {
    const int z = column.z + __ffs(static_cast<int>(which)) - 1;
    const BorderCell<L> cell = border_cell<L>(p, column, z);
    if (cell.corners != 0 || cell.fraction[0] != cell.fraction[0]) body(column, z, cell);
  }
}

/// Loads the corners, and 0 for those that are no voxels.
template <class L, class E>
__device__ __forceinline__ Corners<L> load_corners_inside(
    const FastPass& p, const BorderCell<L>& cell, const E* plane) {
  return in_f32(load_corners<L, E>(Lines<L, E>(plane, p.image_strides), cell.offset, cell.corners));
}

}  // namespace similis::warp_internal
