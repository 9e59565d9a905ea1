// SPDX-License-Identifier: Apache-2.0
// Part of a row of the output as cells: the voxels around each index, and how far it is between
// them. cells.cc compiles what is declared here for each SIMD target. Included once per target,
// hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_CELLS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_CELLS_INL_H
#undef SIMILIS_WARP_CPU_CELLS_INL_H
#else
#define SIMILIS_WARP_CPU_CELLS_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "src/warp/cpu/chunk.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

// The eight (four) voxels around each index.
template <class T> struct Cells {
  alignas(64) T fraction[3][kChunk];          // position between the first voxel and the second
  alignas(64) std::int32_t voxel[3][kChunk];  // the first; outside of the image where count ends
  alignas(64) T slope[3][kChunk];             // as Chunk's, and unused with zeros too
};

// Fractions in f32 are off by much less: the nearest voxels of those closer to 0.5 follow from f64.
constexpr float kInexact = 1e-5f;

/// Fills in the members of a chunk that follow from its place.
void place_chunk(const Plan& plan, Chunk* chunk);

/// The cells of a chunk. Elements after its last voxel lie outside of the image.
template <class T> void place_cells(const Plan& plan, Chunk* chunk, Cells<T>* cells);

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
