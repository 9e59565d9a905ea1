// SPDX-License-Identifier: Apache-2.0
// Linear interpolation of fields, whose vectors lie side by side: a cell's vectors are loaded
// whole, two neighbours along x in two loads, and all components of a voxel are interpolated
// together, by mix_corners()'s operations. Included once per SIMD target, hence the guard that
// flips.
#if defined(SIMILIS_WARP_CPU_COMPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_COMPOSE_INL_H
#undef SIMILIS_WARP_CPU_COMPOSE_INL_H
#else
#define SIMILIS_WARP_CPU_COMPOSE_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "src/warp/cpu/linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// True if a view [N,C,Z,Y,X] of f32 is a field of vectors that lie side by side; empty ones are.
inline bool has_vectors(const TensorView& view, int rank) {
  return view.empty() || (view.dtype == DType::f32 && view.shape[1] == rank &&
                             view.strides[1] == 1 && view.strides[4] == rank);
}

/// A chunk's vectors, and one element more than there are.
struct ChunkVectors {
  alignas(64) float value[3 * kChunk + 1];
  alignas(64) float upstream[3 * kChunk + 1];
};

/// Samples a chunk's cells in one image of a field into out->value and, with slopes, writes the
/// gradients to the index, Σ upstream·slope over the components.
template <int rank, bool with_slopes>
void sample_vectors(const Pass& pass, const Cells<float>& cells, const float* image,
    std::int64_t count, ChunkVectors* out, float (&gradient)[3][kChunk]);

constexpr bool kMixesVectors = HWY_TARGET != HWY_SCALAR;  // which has no vectors of four

#if HWY_TARGET != HWY_SCALAR
template <int rank, bool with_slopes>
void sample_vectors(const Pass& pass, const Cells<float>& cells, const float* image,
    std::int64_t count, ChunkVectors* out, float (&gradient)[3][kChunk]) {
  const hn::FixedTag<float, 4> d;
  using V = hn::Vec<decltype(d)>;
  std::int64_t step[3] = {0, 0, 0};
  std::int32_t last[3] = {0, 0, 0};
  for (int a = 0; a < rank; ++a) {
    step[a] = pass.image.strides[4 - a];
    last[a] = static_cast<std::int32_t>(pass.axes[a].extent - 1);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    V fraction[3];
    std::int32_t voxel[3] = {0, 0, 0}, outside = 0;  // below 0 where a corner is not there
    std::int64_t offset = 0;
    for (int a = 0; a < rank; ++a) {
      fraction[a] = hn::Set(d, cells.fraction[a][i]);
      voxel[a] = cells.voxel[a][i];
      outside |= voxel[a] | (last[a] - 1 - voxel[a]);
      offset += voxel[a] * step[a];
    }
    const auto inside = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const float* const at = image + (offset + ky * step[1] + kz * step[2]);
      *v0 = hn::LoadU(d, at);
      if constexpr (rank == 3) {  // a load at the second vector could end beyond the last one
        *v1 = hn::ShiftRightLanes<1>(d, hn::LoadU(d, at + 2));
      } else {
        *v1 = hn::ShiftRightLanes<2>(d, *v0);
      }
    };
    const auto border = [&](int ky, int kz, V* v0, V* v1) HWY_ATTR {
      const std::int64_t y = voxel[1] + ky, z = voxel[2] + kz;
      V* const of_x[2] = {v0, v1};
      for (int kx = 0; kx < 2; ++kx) {
        const std::int64_t x = voxel[0] + kx;
        alignas(16) float vector[4] = {};
        if (x >= 0 && x <= last[0] && y >= 0 && y <= last[1] && z >= 0 && z <= last[2]) {
          std::copy_n(image + (x * step[0] + y * step[1] + z * step[2]), rank, vector);
        }
        *of_x[kx] = hn::Load(d, vector);
      }
    };
    using D = hn::FixedTag<float, 4>;
    SampledBy<D> sampled = HWY_LIKELY(outside >= 0)
                               ? mix_corners<D, rank, with_slopes>(fraction, inside)
                               : mix_corners<D, rank, with_slopes>(fraction, border);
    hn::StoreU(sampled.value, d, out->value + rank * i);  // the next voxel overwrites the rest
    if constexpr (with_slopes) {
      V nothing = hn::Zero(d);  // or NaN, as in sample_border()
      for (int a = 0; a < rank && outside < 0; ++a) {
        nothing = hn::MulAdd(hn::Zero(d), fraction[a], nothing);
      }
      const V given = hn::LoadU(d, out->upstream + rank * i);
      for (int a = 0; a < rank; ++a) {
        if (outside < 0) sampled.slope[a] = hn::Add(sampled.slope[a], nothing);
        alignas(16) float product[4];
        hn::Store(hn::Mul(given, sampled.slope[a]), d, product);
        float sum = product[0];
        for (int c = 1; c < rank; ++c) sum += product[c];
        gradient[a][i] = sum;
      }
    }
  }
}
#endif

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
