// SPDX-License-Identifier: Apache-2.0
// Places of a chunk's voxels in the image: as indices, as cells, as the nearest voxels, and in
// slots. Compiled once for each SIMD target: sample.cc, fast_path.cc and scatter.cc call what
// cells-inl.h, nearest-inl.h and ready_cells-inl.h declare.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/cells.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/warp/cpu/cells-inl.h"
#include "src/warp/cpu/chunk-inl.h"
#include "src/warp/cpu/nearest-inl.h"
#include "src/warp/cpu/ready_cells-inl.h"
#include "src/warp/cpu/ready_nearest-inl.h"
#include "src/warp/cpu/ready_place-inl.h"
#include "src/warp/cpu/row_of_cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

void place_chunk(const Plan& plan, Chunk* chunk) {
  const Pass& pass = plan.pass;
  const Transform& t = plan.transforms[static_cast<std::size_t>(chunk->image)];
  load_field(pass, *chunk, chunk->field);
  const bool mixes = plan.mixes_components(chunk->image);
  visit_padding(pass.padding, [&]<Outside padding>() HWY_ATTR {
    for (int a = 0; a < pass.rank; ++a) {
      double *index = chunk->index[a], *slope = chunk->slope[a];
      const auto keep = [=](std::int32_t i, Place at) HWY_ATTR {
        index[i] = at.index;
        if constexpr (padding != Outside::zeros) slope[i] = at.slope;
      };
      if (mixes) {
        place_axis<padding, true>(pass, t, *chunk, a, keep);
      } else {
        place_axis<padding, false>(pass, t, *chunk, a, keep);
      }
    }
  });
}

// The cells of indices in f64.
template <class T> void make_cells(const Pass& pass, const Chunk& chunk, Cells<T>* cells) {
  for (int a = 0; a < pass.rank; ++a) {
    const double *HWY_RESTRICT index = chunk.index[a], *HWY_RESTRICT slope = chunk.slope[a];
    T *HWY_RESTRICT fraction = cells->fraction[a], *HWY_RESTRICT of_cell = cells->slope[a];
    std::int32_t* HWY_RESTRICT voxel = cells->voxel[a];
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      const double first = std::floor(index[i]);
      fraction[i] = fraction_above<T>(first, index[i]);
      voxel[i] = static_cast<std::int32_t>(first);
    }
    if (pass.padding == Outside::zeros) continue;
    for (std::int64_t i = 0; i < chunk.count; ++i) of_cell[i] = static_cast<T>(slope[i]);
  }
}

// keep_part() for the cells of a chunk.
void keep_part_of_cells(const Axis& axis, std::int64_t count, std::int32_t* at) {
  const auto last = static_cast<std::int32_t>(axis.whole - 1);
  const auto first_cell = static_cast<std::int32_t>(axis.first_cell);
  const auto end_cell = static_cast<std::int32_t>(axis.end_cell);
  const auto start = static_cast<std::int32_t>(axis.start);
  const auto outside = static_cast<std::int32_t>(kFarOutside);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t cell = std::min(std::max(at[i], -1), last);
    at[i] = cell >= first_cell && cell < end_cell ? at[i] - start : outside;
  }
}

template <class T> void place_cells(const Plan& plan, Chunk* chunk, Cells<T>* cells) {
  const Pass& pass = plan.pass;
  bool is_placed = false;
#if HWY_NATIVE_FMA
  if constexpr (sizeof(T) == 4) {
    if (!plan.columns.empty()) {
      alignas(64) float field[3][kChunk];
      load_field(pass, *chunk, field);
      const bool is_padded = pass.padding != Outside::zeros;
      const auto place =
          plan.mixes_components(chunk->image)
              ? is_padded ? place_cells_in_f32<true, true> : place_cells_in_f32<false, true>
          : is_padded ? place_cells_in_f32<true, false>
                      : place_cells_in_f32<false, false>;
      place(plan, *chunk, field, cells);
      for (int j = 0; j < pass.rank && !pass.grid_affine_gradient.empty(); ++j) {
        std::copy_n(field[j], chunk->count, chunk->field[j]);
      }
      is_placed = true;
    }
  }
#endif
  if (!is_placed) {
    place_chunk(plan, chunk);
    make_cells(pass, *chunk, cells);
  }
  const int cut = pass.rank - 1;
  if (pass.axes[cut].is_part()) {
    keep_part_of_cells(pass.axes[cut], chunk->count, cells->voxel[cut]);
  }
  constexpr std::int64_t kLanes = HWY_MAX_BYTES / sizeof(T);
  for (int a = 0; a < pass.rank; ++a) {
    for (std::int64_t i = chunk->count; i % kLanes != 0; ++i) {
      cells->fraction[a][i] = 0;
      cells->voxel[a][i] = static_cast<std::int32_t>(kFarOutside);
      cells->slope[a][i] = 0;
    }
  }
}
template void place_cells(const Plan&, Chunk*, Cells<float>*);
template void place_cells(const Plan&, Chunk*, Cells<double>*);

void place_nearest(const Pass& pass, const Chunk& chunk, NearestVoxels* out) {
  const Extents& s = pass.image.strides;
  const std::int64_t count = chunk.count;
  if (pass.axes[pass.rank - 1].is_part()) {
    for (std::int64_t i = 0; i < count; ++i) {
      Taps<float, 1> axis[3];
      taps_of(pass, chunk, i, axis);
      const int x = axis[0].voxel[0], y = axis[1].voxel[0], z = axis[2].voxel[0];
      const bool is_there = x != kNoVoxel && y != kNoVoxel && z != kNoVoxel;
      out->offset[i] = is_there ? x * s[4] + y * s[3] + z * s[2] : NearestVoxels::kNone;
      out->none[i] = 0 * (axis[0].weight[0] + axis[1].weight[0] + axis[2].weight[0]);
    }
    return;
  }
  alignas(64) std::int32_t outside[kChunk];  // below 0 where there is no voxel
  for (int a = 0; a < pass.rank; ++a) {
    const double* HWY_RESTRICT index = chunk.index[a];
    const auto last = static_cast<std::int32_t>(pass.axes[a].extent - 1);
    const std::int64_t stride = s[4 - a];
    for (std::int64_t i = 0; i < count; ++i) {
      const auto voxel = static_cast<std::int32_t>(std::rint(index[i]));
      const float nothing = 0 * fraction_above<float>(index[i], index[i]);
      outside[i] = (a == 0 ? 0 : outside[i]) | voxel | (last - voxel);
      out->offset[i] = (a == 0 ? 0 : out->offset[i]) + voxel * stride;
      out->none[i] = (a == 0 ? 0 : out->none[i]) + nothing;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    out->offset[i] = outside[i] < 0 ? NearestVoxels::kNone : out->offset[i];
  }
}

#if HWY_NATIVE_FMA
template void place_in_slots<2>(const Plan&, const Chunk&, bool, Touched*, ReadyCells*);
template void place_in_slots<3>(const Plan&, const Chunk&, bool, Touched*, ReadyCells*);

template <int rank>
void place_nearest_in_slots(
    const Plan& plan, const Chunk& chunk, Touched* touched, ReadyCells* ready) {
  NearestInSlots<rank>(plan, chunk, ready).run(chunk.count, touched);
}
template void place_nearest_in_slots<2>(const Plan&, const Chunk&, Touched*, ReadyCells*);
template void place_nearest_in_slots<3>(const Plan&, const Chunk&, Touched*, ReadyCells*);
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
