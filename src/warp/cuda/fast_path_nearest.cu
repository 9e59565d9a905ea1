// SPDX-License-Identifier: Apache-2.0
// Nearest voxels of the fast path: an element is copied, so that nothing but its place is computed.
//
//   u of 4 voxels ─> indices in f64 ─> voxels ─> a load each ─> output
#include "src/warp/cuda/fast_path.cuh"

namespace similis::warp_internal {
namespace {

enum class Source : std::uint8_t { voxel, outside, not_a_number };

/// The place that a value is copied from, in each channel.
struct Nearest {
  int offset;  // of `voxel`; 0 for other sources
  Source source;
};

template <class L>
__device__ __forceinline__ int offset_of(const FastStrides& s, const int (&voxel)[L::rank]) {
  if constexpr (L::rank == 2) return voxel[1] * s.z + voxel[0];
  return voxel[L::rank - 1] * s.z + voxel[1] * s.y + voxel[0];
}

/// Finds the voxel of an index that is not next to one, with the padding folded in.
template <class L>
__device__ SIMILIS_NOINLINE Nearest nearest_outside(
    const FastPass& p, double x, double y, double z) {
  const double index[3] = {x, y, z};
  int voxel[L::rank];
  for (int a = 0; a < L::rank; ++a) {
    if (index[a] != index[a]) return {0, Source::not_a_number};
  }
  for (int a = 0; a < L::rank; ++a) {
    const Place folded = place(index[a], p.last[a], p.padding, p.align_corners);
    voxel[a] = voxel_or_none(static_cast<int>(rint(folded.index)), p.last[a] + 1);
    if (voxel[a] == kNoVoxel) return {0, Source::outside};
  }
  return {offset_of<L>(p.image_strides, voxel), Source::voxel};
}

template <class L>
__device__ __forceinline__ Nearest nearest(
    const FastPass& p, const FastColumn<L>& column, double gz, const float (&u)[L::rank]) {
  double index[3] = {};
  int voxel[L::rank];
  bool is_inside = true;
#pragma unroll
  for (int a = 0; a < L::rank; ++a) {
    index[a] = column.index(p, a, gz, u[a]);
#if defined(__CUDA_ARCH__)
    // The sum is rounded as rint() rounds, and its last bits are the voxel: no conversion is
    // needed.
    const double shifted = __dadd_rn(index[a], 0x1.8p52);
    voxel[a] = __double2loint(shifted);
    is_inside &= __double2hiint(shifted) == 0x43380000;
#else
    const double rounded = rint(index[a]);
    const bool is_near = rounded >= 0 && rounded <= p.last[a];
    voxel[a] = is_near ? static_cast<int>(rounded) : 0;
    is_inside &= is_near;
#endif
    is_inside &= static_cast<unsigned>(voxel[a]) <= static_cast<unsigned>(p.last[a]);
  }
  if (is_inside) return {offset_of<L>(p.image_strides, voxel), Source::voxel};
  return nearest_outside<L>(p, index[0], index[1], index[2]);
}

__device__ __forceinline__ float load_bits(const float* at) { return __ldg(at); }
template <class E> __device__ __forceinline__ E load_bits(const E* at) {
  return E{__ldg(&at->bits)};
}

template <class L, class E>
__device__ __forceinline__ void copy_voxels(const FastPass& p, const FastColumn<L>& column, int z,
    const Nearest (&from)[kBatch], E not_a_number) {
  const unsigned mine = column.mine(z, kBatch);
  for (int c = first_channel(column, p); c < end_channel(column, p); ++c) {
    const E* image = opaque(
        static_cast<const E*>(p.image) + column.n * p.image_strides.image + c * p.image_channel);
    E values[kBatch];
#pragma unroll
    for (int d = 0; d < kBatch; ++d) values[d] = load_bits(image + from[d].offset);
    E* output = static_cast<E*>(p.output) +
                opaque(column.offset(p.output_strides, z) + c * p.output_channel);
#pragma unroll
    for (int d = 0; d < kBatch; ++d, output += p.output_strides.z) {
      const E value = from[d].source == Source::voxel     ? values[d]
                      : from[d].source == Source::outside ? E{}
                                                          : not_a_number;
      if (mine >> d & 1u) *output = value;
    }
  }
}

template <class L>
__global__ __launch_bounds__(kThreads, 4) void fast_nearest_kernel(
    const SIMILIS_GRID_CONSTANT FastPass p) {
  const FastColumn<L> column(p);
  const float* u = opaque(field_at<L>(p, column, column.z));
  with_element_type<L>(p, [&]<class E>(E not_a_number) {
    store_float(NAN, &not_a_number);
    for (int z = column.z; z < column.end; z += kBatch) {
      float loaded[kBatch][L::rank];
      load_field<L>(p, column, z, u, loaded);
      const double gz = column.position(p, z);
      Nearest from[kBatch];
#pragma unroll
      for (int d = 0; d < kBatch; ++d) from[d] = nearest<L>(p, column, gz + d, loaded[d]);
      copy_voxels<L, E>(p, column, z, from, not_a_number);
      u += kBatch * static_cast<std::int64_t>(p.field_strides.z);
    }
  });
}

}  // namespace

FastKernel fast_nearest(FastLayout layout, bool is_half) {
  constexpr int kDepth = 8;
  if (layout == FastLayout::volume) {
    return {is_half ? fast_nearest_kernel<Half<Volume>> : fast_nearest_kernel<Volume>, kDepth, 0};
  }
  return {is_half ? fast_nearest_kernel<Half<Picture>> : fast_nearest_kernel<Picture>, kDepth, 0};
}

}  // namespace similis::warp_internal
