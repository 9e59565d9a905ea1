// SPDX-License-Identifier: Apache-2.0
// The gradient to the image on the CPU. A task owns a slab of the image and adds to it the part of
// every row of the output that touches it, row after row: no two tasks write one voxel, and each
// voxel's sum has one order, whatever the threads. Rows between two slabs are computed for both.
// With one thread, fast_path.cc adds the same numbers in the same order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/warp/cpu/scatter.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>

#include "src/core/most_threads.h"
#include "src/core/parallel.h"
#include "src/warp/cpu/scatter-inl.h"
#include "src/warp/cpu/scatter.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

void scatter_slab(const Plan& plan, const TensorView& sums, std::int64_t image, std::int64_t first,
    std::int64_t end) {
  if (sums.dtype == DType::f64) {
    Slab<double>{{plan, sums, image, first, end}}.run();
  } else {
    Slab<float>{{plan, sums, image, first, end}}.run();
  }
}

#if HWY_NATIVE_FMA
// Calls visit(slab) with a slab of the plan's sums.
template <class Visit>
void visit_slab(const Plan& plan, std::int64_t image, std::int64_t first, std::int64_t end,
    const Visit& visit) {
  const TensorView& sums = plan.sums_of_image;
  if (sums.dtype == DType::f64) {
    visit(Slab<double>{{plan, sums, image, first, end}});
  } else {
    visit(Slab<float>{{plan, sums, image, first, end}});
  }
}

void clear_sums(Plan* plan, std::int64_t image, std::int64_t end) {
  std::int64_t& cleared = plan->cleared[static_cast<std::size_t>(image)];
  visit_slab(*plan, image, cleared, end, [](const auto& slab) HWY_ATTR { slab.clear(); });
  cleared = end;
}

void add_to_sums(const Plan& plan, std::int64_t image, const Chunk& chunk, const ReadyCells& ready,
    std::int64_t begin) {
  visit_slab(plan, image, 0, plan.pass.axes[plan.slab_axis].extent,
      [&](const auto& slab) HWY_ATTR { slab.add_ready(chunk, ready, begin); });
}
#endif

// Rounds a row of sums in f32 to the gradient's dtype.
void round_row(const TensorView& sums, const TensorView& gradient, std::int64_t row) {
  const auto offset_in = [row](const TensorView& view) {
    std::int64_t offset = 0, rest = row;
    for (int axis = 3; axis >= 0; --axis) {
      offset += rest % view.shape[axis] * view.strides[axis];
      rest /= view.shape[axis];
    }
    return offset;
  };
  const std::int64_t from = offset_in(sums), to = offset_in(gradient);
  const std::int64_t width = sums.shape[4], stride = sums.strides[4];
  alignas(64) float chunk[kChunk];
  for (std::int64_t x = 0; x < width; x += kChunk) {
    const std::int64_t count = std::min(kChunk, width - x);
    core_internal::HWY_NAMESPACE::load_row(sums, from + x * stride, stride, count, chunk);
    core_internal::HWY_NAMESPACE::store_row(
        chunk, count, gradient, to + x * gradient.strides[4], gradient.strides[4]);
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::warp_internal {
HWY_EXPORT(round_row);
HWY_EXPORT(scatter_slab);

// Slabs of an image for each thread, for these to end together, and voxels of the thinnest: thick
// ones have fewer rows computed twice. No bit depends on where slabs end.
constexpr std::int64_t kSlabsOfThread = 4, kThinnest = 8;

ImageSums sums_of_image(const Pass& pass, const Execution& exec) {
  const TensorView& gradient = pass.image_gradient;
  if (gradient.empty() || gradient.dtype == DType::f32 || gradient.dtype == DType::f64) {
    return {{}, gradient};
  }
  ImageSums sums;
  sums.workspace = allocate(gradient.shape, DType::f32, gradient.device, exec);
  sums.view = sums.workspace;
  return sums;
}

void scatter_cpu(const Plan& plan, const TensorView& sums, const Execution& exec) {
  const std::int64_t extent = plan.pass.axes[plan.slab_axis].extent;
  const int threads = most_threads(exec);
  const std::int64_t wanted = threads == 1 ? 1 : kSlabsOfThread * threads;
  const std::int64_t thickness = std::max(kThinnest, (extent + wanted - 1) / wanted);
  const std::int64_t slabs = (extent + thickness - 1) / thickness;
  parallel_for(exec, sums.shape[0] * slabs, [&](std::int64_t task) {
    const std::int64_t first = task % slabs * thickness;
    HWY_DYNAMIC_DISPATCH(scatter_slab)
    (plan, sums, task / slabs, first, std::min(first + thickness, extent));
  });
}

void store_image_gradient(const Pass& pass, const ImageSums& sums, const Execution& exec) {
  if (sums.workspace.empty()) return;
  const TensorView& gradient = pass.image_gradient;
  parallel_for(exec, gradient.shape.count() / gradient.shape[4], [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(round_row)(sums.view, gradient, row);
  });
}

}  // namespace similis::warp_internal
#endif
