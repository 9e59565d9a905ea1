// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/voxels.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <type_traits>

#include "src/core/tensor/dispatch.h"
#include "src/warp/cpu/voxels-inl.h"
#include "src/warp/vote.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {
namespace {

// Calls function(the first voxel of the chunk's image in channel c) if its dtype goes with T.
template <class T, class Function>
void visit_plane(
    const TensorView& image, const Chunk& chunk, std::int64_t c, const Function& function) {
  visit_dtype(image.dtype, [&]<class E>(std::type_identity<E>) HWY_ATTR {
    if constexpr (std::is_same_v<E, double> == std::is_same_v<T, double>) {
      function(static_cast<const E*>(image.data()) + chunk.image * image.strides[0] +
               c * image.strides[1]);
    }
  });
}

template <class T, class E, int count>
void sample_range(const Pass& pass, const Chunk& chunk, const E* plane, std::int64_t first,
    std::int64_t end, Samples<T>* out) {
  const Extents& s = pass.image.strides;
  const auto voxel = [&](int x, int y, int z) HWY_ATTR {
    return static_cast<T>(load(plane[x * s[4] + y * s[3] + z * s[2]]));
  };
  for (std::int64_t i = first; i < end; ++i) {
    Taps<T, count> axis[3];
    taps_of(pass, chunk, i, axis);
    const Sampled<T> sampled = interpolate(axis, pass.rank == 2 ? 1 : count, voxel);
    out->value[i] = sampled.value;
    for (int a = 0; a < 3; ++a) out->slope[a][i] = sampled.slope[a];
  }
}

template <class T, int count>
void add_range(const Plan& plan, const Extents& strides, std::int64_t first, std::int64_t end,
    const Chunk& chunk, const T* upstream, T* plane) {
  const int planes = plan.pass.rank == 2 ? 1 : count;
  for (std::int64_t i = 0; i < chunk.count; ++i) {
    Taps<T, count> axis[3];
    taps_of(plan.pass, chunk, i, axis);
    for (int& voxel : axis[plan.slab_axis].voxel) {
      voxel = voxel >= first && voxel < end ? voxel : kNoVoxel;
    }
    for (int kz = 0; kz < planes; ++kz) {
      const int z = axis[2].voxel[kz];
      const T of_plane = upstream[i] * axis[2].weight[kz];
      for (int ky = 0; ky < count && z != kNoVoxel; ++ky) {
        const int y = axis[1].voxel[ky];
        if (y == kNoVoxel) continue;
        const T of_row = of_plane * axis[1].weight[ky];
        T* row = plane + z * strides[2] + y * strides[3];
        for (int kx = 0; kx < count; ++kx) {
          const int x = axis[0].voxel[kx];
          if (x != kNoVoxel) row[x * strides[4]] += of_row * axis[0].weight[kx];
        }
      }
    }
  }
}

}  // namespace

template <class T>
void add_voxels(const Plan& plan, const TensorView& sums, std::int64_t first, std::int64_t end,
    const Chunk& chunk, const T* upstream, T* plane) {
  plan.pass.mode == Interpolation::nearest
      ? add_range<T, 1>(plan, sums.strides, first, end, chunk, upstream, plane)
      : add_range<T, 4>(plan, sums.strides, first, end, chunk, upstream, plane);
}
template void add_voxels(
    const Plan&, const TensorView&, std::int64_t, std::int64_t, const Chunk&, const float*, float*);
template void add_voxels(const Plan&, const TensorView&, std::int64_t, std::int64_t, const Chunk&,
    const double*, double*);

template <class T>
void sample_voxels(const Pass& pass, const Chunk& chunk, std::int64_t c, std::int64_t first,
    std::int64_t end, Samples<T>* out) {
  visit_plane<T>(pass.image, chunk, c, [&]<class E>(const E* plane) HWY_ATTR {
    if constexpr (!std::is_integral_v<E>) {
      pass.mode == Interpolation::cubic
          ? sample_range<T, E, 4>(pass, chunk, plane, first, end, out)
          : sample_range<T, E, 2>(pass, chunk, plane, first, end, out);
    }
  });
}
template void sample_voxels(
    const Pass&, const Chunk&, std::int64_t, std::int64_t, std::int64_t, Samples<float>*);
template void sample_voxels(
    const Pass&, const Chunk&, std::int64_t, std::int64_t, std::int64_t, Samples<double>*);

template <class T>
void sample_labels(
    const Pass& pass, const Chunk& chunk, std::int64_t c, Samples<T>* out, double* label) {
  const Extents& s = pass.image.strides;
  visit_plane<T>(pass.image, chunk, c, [&]<class E>(const E* plane) HWY_ATTR {
    const auto voxel = [&](int x, int y, int z) HWY_ATTR {
      return static_cast<double>(load(plane[x * s[4] + y * s[3] + z * s[2]]));
    };
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      Taps<T, 2> axis[3];
      taps_of(pass, chunk, i, axis);
      Vote<T> best{};
      if (!is_unanimous(
              axis, pass.rank - 1, pass.smallest_label, voxel, &best.label, &best.weight)) {
        best = vote(axis, pass.rank - 1, pass.smallest_label, pass.background, voxel);
      }
      label[i] = best.label;
      out->weight[i] = best.weight;
      for (int a = 0; a < 3; ++a) out->slope[a][i] = best.slope[a];
    }
  });
}
template void sample_labels(const Pass&, const Chunk&, std::int64_t, Samples<float>*, double*);
template void sample_labels(const Pass&, const Chunk&, std::int64_t, Samples<double>*, double*);

void store_labels(const double* label, std::int64_t count, const TensorView& output,
    std::int64_t start, std::int64_t stride) {
  visit_dtype(output.dtype, [&]<class E>(std::type_identity<E>) HWY_ATTR {
    E* out = static_cast<E*>(output.data()) + start;
    for (std::int64_t i = 0; i < count; ++i) store(label[i], out + i * stride);
  });
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
