// SPDX-License-Identifier: Apache-2.0
// Linear interpolation of fields, whose vectors lie side by side: a cell's vectors are loaded
// whole, two neighbours along x in two loads, and all components of a voxel are interpolated
// together, by mix_corners()'s operations. compose.cc compiles sample_vectors() for each SIMD
// target. Included once per target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_COMPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_COMPOSE_INL_H
#undef SIMILIS_WARP_CPU_COMPOSE_INL_H
#else
#define SIMILIS_WARP_CPU_COMPOSE_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/warp/cpu/cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

/// True if a view [N,C,Z,Y,X] of f32 is a field of vectors that lie side by side; empty ones are.
inline bool has_vectors(const TensorView& view, int rank) {
  return view.empty() || (view.dtype == DType::f32 && view.shape[1] == rank &&
                             view.strides[1] == 1 && view.strides[4] == rank);
}

/// A chunk's vectors, and one element more than there are.
struct ChunkVectors {
  void load_upstream(const Pass& pass, std::int64_t start, std::int64_t count) {
    const float* const from = static_cast<const float*>(pass.upstream.data()) + start;
    std::copy_n(from, count * pass.rank, upstream);
    fetch_next_chunk(from, count * pass.rank);
  }

  // Writes addend + factor·value of the vectors [first_vector, count_of_vectors) as the pass wants
  // them. The chunk before has written those before the first, which an addend may be.
  void store(const Pass& pass, std::int64_t start_of_output, std::int64_t start_of_addend,
      std::int64_t first_vector, std::int64_t count_of_vectors) {
    const std::int64_t begin = first_vector * pass.rank, count = count_of_vectors * pass.rank;
    const auto factor = static_cast<float>(pass.factor);
    const auto of_addend = static_cast<float>(pass.field_factor);
    const float* HWY_RESTRICT from = value;
    float* const to = static_cast<float*>(pass.output.data()) + start_of_output;
    fetch_next_chunk(to, count);
    if (!pass.addend.empty()) {  // which may be the output
      const float* const added = static_cast<const float*>(pass.addend.data()) + start_of_addend;
      for (std::int64_t i = begin; i < count; ++i) to[i] = of_addend * added[i] + factor * from[i];
    } else {
      for (std::int64_t i = begin; i < count; ++i) to[i] = factor * from[i];
    }
  }

  // Fetches what follows the numbers of this chunk.
  static void fetch_next_chunk(const float* numbers, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 16) hwy::Prefetch(numbers + count + i);
  }

  alignas(64) float value[3 * kChunk + 2];
  alignas(64) float upstream[3 * kChunk + 2] = {};
};

/// Samples a chunk's cells in one image of a field into out->value and, with slopes, writes the
/// gradients to the index, Σ upstream·slope over the components.
template <int rank, bool with_slopes>
void sample_vectors(const Pass& pass, const Cells<float>& cells, const float* image,
    std::int64_t count, ChunkVectors* out, float (&gradient)[3][kChunk]);

constexpr bool kMixesVectors = HWY_TARGET != HWY_SCALAR;  // which has no vectors of four

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
