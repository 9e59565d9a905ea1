// SPDX-License-Identifier: Apache-2.0
// Sampling voxel by voxel, and its gradient to the image: labels, and what vectors do not take,
// which is images of offsets beyond 32 bits, parts of images, and cubic ones in f64. voxels.cc
// compiles what is declared here for each SIMD target: labels take up to a quarter less time with
// AVX2's instructions. Included once per target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_VOXELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_VOXELS_INL_H
#undef SIMILIS_WARP_CPU_VOXELS_INL_H
#else
#define SIMILIS_WARP_CPU_VOXELS_INL_H
#endif

#include "hwy/highway.h"
#include "src/warp/cpu/chunk.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

/// Linear or cubic samples, as the pass says, of the voxels [first, end) in channel c. T is double
/// for images in f64, else float.
template <class T>
void sample_voxels(const Pass& pass, const Chunk& chunk, std::int64_t c, std::int64_t first,
    std::int64_t end, Samples<T>* out);

/// Votes of a chunk in channel c: their weights and slopes, and label[i].
template <class T>
void sample_labels(
    const Pass& pass, const Chunk& chunk, std::int64_t c, Samples<T>* out, double* label);

/// Writes labels, which may be integers, without rounding.
void store_labels(const double* label, std::int64_t count, const TensorView& output,
    std::int64_t start, std::int64_t stride);

/// Adds a chunk of nearest or cubic voxels, as the pass says, to a channel of the gradient to the
/// image, at `plane`, where the slab [first, end) owns them.
template <class T>
void add_voxels(const Plan& plan, const TensorView& sums, std::int64_t first, std::int64_t end,
    const Chunk& chunk, const T* upstream, T* plane);

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
