// SPDX-License-Identifier: Apache-2.0
// The gradient to the image on the CPU. A task owns a slab of the image and adds to it what every
// row of the output that touches it brings, row after row: no two tasks write one voxel, and each
// voxel's sum has one order, whatever the threads. Rows between two slabs are computed for both.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu_scatter.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>

#include "src/core/parallel.h"
#include "src/warp/cpu_chunk-inl.h"
#include "src/warp/cpu_scatter.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

template <class T> struct Slab {
  const Plan& plan;
  TensorView sums;  // [N or 1,C,Z,Y,X] of T
  std::int64_t image, first, end;

  T* plane(std::int64_t channel) const {
    return static_cast<T*>(sums.data) + image * sums.strides[0] + channel * sums.strides[1];
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
          for (std::int64_t x = 0; x < extents[0]; ++x) row[x * s[4]] = 0;
        }
      }
    }
  }

  template <int count> void add(const Chunk& chunk, const T* upstream, T* plane) const {
    const Extents& s = sums.strides;
    const int planes = plan.pass.rank == 2 ? 1 : count;
    const auto low = static_cast<int>(first), high = static_cast<int>(end);
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      Taps<T, count> axis[3];
      taps_of(plan.pass, chunk, i, axis);
      for (int& voxel : axis[plan.slab_axis].voxel) {
        voxel = voxel >= low && voxel < high ? voxel : kNoVoxel;
      }
      for (int kz = 0; kz < planes; ++kz) {
        const int z = axis[2].voxel[kz];
        const T of_plane = upstream[i] * axis[2].weight[kz];
        for (int ky = 0; ky < count && z != kNoVoxel; ++ky) {
          const int y = axis[1].voxel[ky];
          if (y == kNoVoxel) continue;
          const T of_row = of_plane * axis[1].weight[ky];
          T* row = plane + z * s[2] + y * s[3];
          for (int kx = 0; kx < count; ++kx) {
            const int x = axis[0].voxel[kx];
            if (x != kNoVoxel) row[x * s[4]] += of_row * axis[0].weight[kx];
          }
        }
      }
    }
  }

  void add_row(std::int64_t n, std::int64_t row, Chunk* chunk) const {
    const Pass& pass = plan.pass;
    const TensorView& upstream = pass.upstream;
    const Extents& s = upstream.strides;
    alignas(64) T values[kChunk];
    for (std::int64_t x = 0; x < pass.axes[0].out_extent; x += kChunk) {
      chunk->image = n;
      chunk->z = row / pass.axes[1].out_extent;
      chunk->y = row % pass.axes[1].out_extent;
      chunk->x = x;
      chunk->count = std::min(kChunk, pass.axes[0].out_extent - x);
      place_chunk(pass, plan.transforms[static_cast<std::size_t>(n)], chunk);
      for (std::int64_t c = 0; c < pass.channels; ++c) {
        core_internal::HWY_NAMESPACE::load_row(upstream,
            n * s[0] + c * s[1] + chunk->z * s[2] + chunk->y * s[3] + x * s[4], s[4], chunk->count,
            values);
        switch (pass.mode) {
          case Interpolation::linear: add<2>(*chunk, values, plane(c)); break;
          case Interpolation::nearest: add<1>(*chunk, values, plane(c)); break;
          case Interpolation::cubic: add<4>(*chunk, values, plane(c)); break;
        }
      }
    }
  }

  void run() const {
    clear();
    Chunk chunk;
    const std::int64_t batch = plan.pass.batch;
    const std::int64_t shared = sums.shape[0] < batch ? batch : 1;
    for (std::int64_t n = image * shared; n < (image + 1) * shared; ++n) {
      for (std::int64_t row = 0; row < plan.rows; ++row) {
        const Touched& touched = plan.touched[static_cast<std::size_t>(n * plan.rows + row)];
        if (touched.last >= first && touched.first < end) add_row(n, row, &chunk);
      }
    }
  }
};

void scatter_slab(const Plan& plan, const TensorView& sums, std::int64_t image, std::int64_t first,
    std::int64_t end) {
  if (sums.dtype == DType::f64) {
    Slab<double>{plan, sums, image, first, end}.run();
  } else {
    Slab<float>{plan, sums, image, first, end}.run();
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
HWY_EXPORT(scatter_slab);

// Slabs of an image: enough for the threads of a workstation, thick enough that few rows are
// computed twice.
constexpr std::int64_t kSlabs = 32, kThinnest = 4;

void scatter_cpu(const Plan& plan, const Execution& exec) {
  const Pass& pass = plan.pass;
  const TensorView& gradient = pass.image_gradient;
  const bool is_summed_elsewhere = !(gradient.dtype == DType::f32 || gradient.dtype == DType::f64);
  Tensor workspace;  // halves are rounded once, from sums in f32
  if (is_summed_elsewhere) workspace = allocate(gradient.shape, DType::f32, gradient.device, exec);
  const TensorView sums = is_summed_elsewhere ? TensorView(workspace) : gradient;
  const std::int64_t extent = pass.axes[plan.slab_axis].extent;
  const std::int64_t thickness = std::max(kThinnest, (extent + kSlabs - 1) / kSlabs);
  const std::int64_t slabs = (extent + thickness - 1) / thickness;
  parallel_for(exec, gradient.shape[0] * slabs, [&](std::int64_t task) {
    const std::int64_t first = task % slabs * thickness;
    HWY_DYNAMIC_DISPATCH(scatter_slab)
    (plan, sums, task / slabs, first, std::min(first + thickness, extent));
  });
  if (is_summed_elsewhere) copy_cpu(workspace, gradient, exec);
}

}  // namespace similis::warp_internal
#endif
