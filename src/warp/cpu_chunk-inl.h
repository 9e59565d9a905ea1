// SPDX-License-Identifier: Apache-2.0
// Part of a row of the output: its coordinates as indices of the image, with the padding folded in.
// Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_CHUNK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_CHUNK_INL_H
#undef SIMILIS_WARP_CPU_CHUNK_INL_H
#else
#define SIMILIS_WARP_CPU_CHUNK_INL_H
#endif

#include <cstdint>

#include "src/core/tensor_row-inl.h"
#include "src/warp/cpu_plan.h"
#include "src/warp/formula.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

struct Chunk {
  std::int64_t image, z, y, x, count;   // where it begins, and how many voxels
  alignas(64) double field[3][kChunk];  // displacement or grid, as given
  alignas(64) double index[3][kChunk];  // of the image's voxels, x, y, z
  alignas(64) double slope[3][kChunk];  // of the folded index by the index
};

template <Outside padding>
void place_row(
    const Axis& axis, bool align_corners, std::int64_t count, double* index, double* slope) {
  const double last = static_cast<double>(axis.extent - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const Place placed = place(index[i], last, padding, align_corners);
    index[i] = placed.index;
    slope[i] = placed.slope;
  }
}

inline void load_field(const Pass& pass, Chunk* chunk) {
  const TensorView& field = pass.field;
  const Extents& s = field.strides;
  const std::int64_t start =
      chunk->image * s[0] + chunk->z * s[1] + chunk->y * s[2] + chunk->x * s[3];
  for (int j = 0; j < pass.rank; ++j) {
    core_internal::HWY_NAMESPACE::load_row(
        field, start + j * s[4], s[3], chunk->count, chunk->field[j]);
  }
}

// Fills in what follows from where the chunk is.
inline void place_chunk(const Pass& pass, const Transform& t, Chunk* chunk) {
  if (!pass.field.empty()) load_field(pass, chunk);
  const Axis* axes = pass.axes;
  const double gx = axes[0].first + static_cast<double>(chunk->x);
  const double gy = axes[1].first + static_cast<double>(chunk->y);
  const double gz = axes[2].first + static_cast<double>(chunk->z);
  for (int a = 0; a < pass.rank; ++a) {
    double* HWY_RESTRICT index = chunk->index[a];
    const double row = t.row(a, gy, gz), step = t.m[a][0];
    for (std::int64_t i = 0; i < chunk->count; ++i) {
      index[i] = multiply_add(step, gx + static_cast<double>(i), row);
    }
    for (int j = 0; !pass.field.empty() && j < pass.rank; ++j) {
      const double factor = t.s[a][j];
      if (factor == 0 && j != a) continue;
      const double* HWY_RESTRICT field = chunk->field[j];
      for (std::int64_t i = 0; i < chunk->count; ++i) {
        index[i] = multiply_add(factor, field[i], index[i]);
      }
    }
    const auto fold = pass.padding == Outside::zeros    ? place_row<Outside::zeros>
                      : pass.padding == Outside::border ? place_row<Outside::border>
                                                        : place_row<Outside::reflection>;
    fold(axes[a], pass.align_corners, chunk->count, index, chunk->slope[a]);
  }
}

template <class T, int count>
HWY_INLINE void taps_of(
    const Pass& pass, const Chunk& chunk, std::int64_t i, Taps<T, count> (&out)[3]) {
  for (int a = 0; a < 3; ++a) {
    out[a] = a < pass.rank
                 ? taps<T, count>(chunk.index[a][i], static_cast<int>(pass.axes[a].extent))
                 : flat_taps<T, count>();
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
