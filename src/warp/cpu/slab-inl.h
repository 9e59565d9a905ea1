// SPDX-License-Identifier: Apache-2.0
// A slab of the gradient to an image, and how the nearest voxels and cubic weights are added to it.
// Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_SLAB_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_SLAB_INL_H
#undef SIMILIS_WARP_CPU_SLAB_INL_H
#else
#define SIMILIS_WARP_CPU_SLAB_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "src/warp/cpu/cubic-inl.h"
#include "src/warp/cpu/nearest-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct SlabOfImage {
  const Plan& plan;
  TensorView sums;  // [N or 1,C,Z,Y,X] of T
  std::int64_t image, first, end;

  T* plane(std::int64_t channel) const {
    return static_cast<T*>(sums.data()) + image * sums.strides[0] + channel * sums.strides[1];
  }

  void clear() const {
    std::int64_t extents[3], starts[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a) extents[a] = plan.pass.axes[a].extent;
    starts[plan.slab_axis] = first;
    extents[plan.slab_axis] = end;
    const Extents& s = sums.strides;
    for (std::int64_t c = 0; c < plan.pass.channels; ++c) {
      for (std::int64_t z = starts[2]; z < extents[2]; ++z) {
        for (std::int64_t y = starts[1]; y < extents[1]; ++y) {
          T* row = plane(c) + z * s[2] + y * s[3];
          if (s[4] == 1) {
            std::fill_n(row, extents[0], T{0});
          } else {
            for (std::int64_t x = 0; x < extents[0]; ++x) row[x * s[4]] = 0;
          }
        }
      }
    }
  }

  // The axes in the order of a corner's bits: x, the other one, that of slabs.
  int axis_of_bit(int bit) const {
    return bit == 0 ? 0 : bit == plan.pass.rank - 1 ? plan.slab_axis : 3 - plan.slab_axis;
  }

  // True if the nearest voxels are found by cells in f32.
  bool rounds_cells() const {
    const Pass& pass = plan.pass;
    return sizeof(T) == 4 && pass.mode == Interpolation::nearest && !plan.columns.empty() &&
           !pass.axes[pass.rank - 1].is_part() && has_short_offsets(sums);
  }
  bool takes_cubic_vectors() const {
    const Pass& pass = plan.pass;
    return kHasCubicVectors && sizeof(T) == 4 && pass.mode == Interpolation::cubic &&
           sums.strides[4] == 1 && has_short_offsets(sums) && !pass.axes[pass.rank - 1].is_part();
  }

  static constexpr std::int64_t kChains = 8;

  // Calls add(i) for i in [begin, end), from kChains places in turn: neighbours add to the same
  // voxels, and each would wait for the numbers that the one before it stores. 32 places are no
  // faster.
  template <class Add>
  static HWY_INLINE void in_chains(std::int64_t begin, std::int64_t end, const Add& add) {
    constexpr std::int64_t kWhole = kChunk / kChains;
    if (end - begin == kChunk) {  // whose steps the compiler knows
      for (std::int64_t i = begin; i < begin + kWhole; ++i) {
        for (std::int64_t k = 0; k < kChains; ++k) add(i + k * kWhole);
      }
      return;
    }
    in_chains_of_any_length(begin, end, add);
  }
  // The same with one call, which the compiler inlines however long add() is.
  template <class Add>
  static HWY_INLINE void in_chains_of_any_length(
      std::int64_t begin, std::int64_t end, const Add& add) {
    const std::int64_t length = (end - begin + kChains - 1) / kChains;
    for (std::int64_t i = begin; i < begin + length; ++i) {
      for (std::int64_t at = i; at < end; at += length) add(at);
    }
  }

  bool owns(std::int64_t along_slabs) const { return along_slabs >= first && along_slabs < end; }

  // Adds the nearest voxels of cells in f32, all of which it must be certain of: if not, it adds
  // none and returns false.
  bool add_nearest(
      const Cells<float>& cells, const T* upstream, std::int64_t count, T* plane) const {
    alignas(64) std::int32_t offset[kChunk], along_slabs[kChunk];
    Extents steps{0, 0, 0, 0, 0};
    steps[4 - plan.slab_axis] = 1;
    if (!round_cells(plan.pass, sums.strides, cells, count, offset, nullptr) ||
        !round_cells(plan.pass, steps, cells, count, along_slabs, nullptr)) {
      return false;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (owns(along_slabs[i])) plane[offset[i]] += upstream[i];
    }
    return true;
  }

#if HWY_TARGET != HWY_SCALAR
  // A voxel some of whose cubic taps are mirrored.
  HWY_NOINLINE void add_rim(
      const Chunk& chunk, const CubicTaps& taps, std::int64_t i, T upstream, float* plane) const {
    const Pass& pass = plan.pass;
    if (CubicTaps::is_missing(pass, chunk, i)) return;
    const int rank = pass.rank, planes = rank == 2 ? 1 : 4;
    std::int32_t voxel[3][4];
    for (int a = 0; a < rank; ++a) {
      const auto last = static_cast<std::int32_t>(pass.axes[a].extent - 1);
      for (int k = 0; k < 4; ++k) voxel[a][k] = mirrored_tap(taps.first[a][i] + k, last);
    }
    const Extents& s = sums.strides;
    for (int kz = 0; kz < planes; ++kz) {
      if (plan.slab_axis == 2 && !owns(voxel[2][kz])) continue;
      const float of_plane = rank == 2 ? upstream : upstream * taps.weight[2][kz][i];
      float* const first_row = rank == 2 ? plane : plane + voxel[2][kz] * s[2];
      for (int ky = 0; ky < 4; ++ky) {
        if (plan.slab_axis == 1 && !owns(voxel[1][ky])) continue;
        const float of_row = of_plane * taps.weight[1][ky][i];
        float* const row = first_row + voxel[1][ky] * s[3];
        for (int kx = 0; kx < 4; ++kx) row[voxel[0][kx]] += of_row * taps.weight[0][kx][i];
      }
    }
  }

  // Adds cubic weights to dense rows of f32, four neighbours along x at once.
  void add_cubic(const Chunk& chunk, const CubicTaps& taps, const T* upstream, float* plane) const {
    const hn::FixedTag<float, 4> d4;
    const hn::CappedTag<float, 16> d;
    const Extents& s = sums.strides;
    const int rank = plan.pass.rank, planes = rank == 2 ? 1 : 4;
    alignas(64) float along_x[4 * kChunk];
    for (std::int64_t i = 0; i < chunk.count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto weight = [&](int k) HWY_ATTR { return hn::Load(d, taps.weight[0][k] + i); };
      hn::StoreInterleaved4(weight(0), weight(1), weight(2), weight(3), d, along_x + 4 * i);
    }
    in_chains(0, chunk.count, [&](std::int64_t i) HWY_ATTR {
      if (HWY_UNLIKELY(taps.outside[i] < 0)) return add_rim(chunk, taps, i, upstream[i], plane);
      const auto weights = hn::Load(d4, along_x + 4 * i);
      float* const corner = plane + taps.offset(s, rank, i);
      const std::int32_t at = taps.first[plan.slab_axis][i];
      for (int kz = 0; kz < planes; ++kz) {
        if (plan.slab_axis == 2 && !owns(at + kz)) continue;
        const float of_plane = rank == 2 ? upstream[i] : upstream[i] * taps.weight[2][kz][i];
        for (int ky = 0; ky < 4; ++ky) {
          if (plan.slab_axis == 1 && !owns(at + ky)) continue;
          const auto of_row = hn::Set(d4, of_plane * taps.weight[1][ky][i]);
          float* const row = corner + kz * s[2] + ky * s[3];
          hn::StoreU(hn::Add(hn::LoadU(d4, row), hn::Mul(of_row, weights)), d4, row);
        }
      }
    });
  }
#endif
};

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
