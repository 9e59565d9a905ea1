// SPDX-License-Identifier: Apache-2.0
// The frame of SSIM on the GPU around the kernels that average windows: sums of planes become
// values, and upstream becomes the slope of each plane, on the device, so that nothing waits for
// the host. The sliding window kernel (sliding_window.cu) takes the calls of training and
// evaluation, the separable kernels (separable.cu) volumes under windows of up to 11, the kernels
// for any window (any_window.cu) all other calls under windows of up to 33, and the direct kernels
// (direct.cu) everything else.
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/finish.cuh"

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 256;

__global__ void fill_weights_kernel(
    std::int64_t planes, double weight, double l1_weight, PlaneSums* sums) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t p = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < planes;
       p += step) {
    sums[p].of[kWeight] = weight;
    sums[p].of[kL1Weight] = l1_weight;
  }
}

__global__ void sum_partials_kernel(
    std::int64_t planes, int kinds, int slots, const double* partials, PlaneSums* sums, int first) {
  for (std::int64_t i = blockIdx.x; i < planes * kinds; i += gridDim.x) {
    const double total =
        gpu::block_sum_of<kThreads>(slots, [&](int slot) { return partials[i * slots + slot]; });
    if (threadIdx.x == 0) sums[i % planes].of[first + i / planes] = total;
    __syncthreads();
  }
}

// Adds one of the sums over a group's planes, by one block.
__device__ double group_sum(const PlaneSums* sums, std::int64_t first, std::int64_t count, Sum of) {
  const double total =
      gpu::block_sum_of<kThreads>(count, [&](std::int64_t i) { return sums[first + i].of[of]; });
  __syncthreads();
  return total;
}

// The factor of a sum in its result, 0 where nothing has weight. The weights' sum is NaN if one of
// them is negative or NaN, and so is all that they weigh.
__device__ double per_weight(double weight, bool is_sum) {
  if (weight != weight) return weight;
  return is_sum ? 1 : weight > 0 ? 1 / weight : 0;
}

struct Terms {
  double bias, term_weight, l1_weight, of_nothing;
  bool is_sum, writes_sums;
};

Terms terms_of(const Pass& pass) {
  return {pass.bias, pass.term_weight, pass.l1_weight, pass.of_nothing, pass.adds_up(), pass.sums};
}

// 1 for pixels in these rows, else 0.
__global__ void counted_rows_kernel(std::int64_t rows, Interval counted, std::uint8_t* mask) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows; i += step)
    mask[i] = i >= counted.first && i < counted.last;
}

__global__ void values_kernel(const PlaneSums* sums, std::int64_t groups, std::int64_t planes_each,
    Terms terms, void* value, DType dtype) {
  for (std::int64_t g = blockIdx.x; g < groups; g += gridDim.x) {
    const std::int64_t first = g * planes_each;
    const double term = group_sum(sums, first, planes_each, kTerm);
    const double weight = group_sum(sums, first, planes_each, kWeight);
    double l1 = 0, l1_weight = 0;
    if (terms.l1_weight != 0) {
      l1 = group_sum(sums, first, planes_each, kL1);
      l1_weight = group_sum(sums, first, planes_each, kL1Weight);
    }
    if (threadIdx.x != 0) continue;
    if (terms.writes_sums) {  // a group is a plane
      auto* const of_plane = static_cast<double*>(value) + g;
      of_plane[0] = terms.bias * weight + terms.term_weight * term;
      of_plane[groups] = weight;
      if (terms.l1_weight == 0) continue;
      of_plane[2 * groups] = terms.l1_weight * l1;
      of_plane[3 * groups] = l1_weight;
      continue;
    }
    const bool is_nothing = weight == 0 && terms.of_nothing != 0;
    const double mean_bias = is_nothing ? terms.of_nothing : terms.bias;
    const double result = (terms.is_sum ? terms.bias * weight : mean_bias) +
                          terms.term_weight * term * per_weight(weight, terms.is_sum) +
                          terms.l1_weight * l1 * per_weight(l1_weight, terms.is_sum);
    gpu::store_element(value, dtype, g, result);
  }
}

__global__ void __launch_bounds__(kThreads) finish_kernel(const Finish f) {
  finish<kThreads>(f, blockIdx.x, gridDim.x);
}

__global__ void slopes_kernel(const PlaneSums* sums, std::int64_t groups, std::int64_t planes_each,
    Terms terms, gpu::Upstream upstream, gpu::Upstream l1_upstream, PlaneSlopes* slopes) {
  for (std::int64_t g = blockIdx.x; g < groups; g += gridDim.x) {
    const std::int64_t first = g * planes_each;
    __shared__ double term, l1;
    const double weight = group_sum(sums, first, planes_each, kWeight);
    double l1_weight = 1;
    if (terms.l1_weight != 0) l1_weight = group_sum(sums, first, planes_each, kL1Weight);
    if (threadIdx.x == 0) {
      term = terms.term_weight * per_weight(weight, terms.is_sum);
      l1 = terms.l1_weight * per_weight(l1_weight, terms.is_sum);
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < planes_each; i += kThreads) {
      slopes[first + i] = {upstream.of(first + i) * term, l1_upstream.of(first + i) * l1};
    }
    __syncthreads();
  }
}

}  // namespace

Geometry::Geometry(const Pass& pass)
    : channels(pass.x.shape[1]),
      planes(pass.x.shape[0] * pass.x.shape[1]),
      radius{pass.window.radius_z(), pass.window.radius_y(), pass.window.radius_x()},
      padding(pass.padding) {
  const Extents map = map_shape(pass);
  for (int axis = 0; axis < 3; ++axis) {
    extent[axis] = pass.x.shape[2 + axis];
    map_extent[axis] = map[2 + axis];
    first_centre[axis] = pass.padding == Padding::valid ? radius[axis] : 0;
  }
  first_centre[0] = std::max(first_centre[0], pass.counted.z.first);
  first_centre[1] = std::max(first_centre[1], pass.counted.y.first);
}

CudaPlan::CudaPlan(const Pass& the_pass, const Execution& execution)
    : pass(the_pass),
      geometry(the_pass),
      device(the_pass.x.device),
      exec(execution),
      groups(pass.reduction == Reduction::per_channel ? geometry.planes
             : pass.reduction == Reduction::per_image ? pass.x.shape[0]
                                                      : 1),
      planes_each(geometry.planes / groups) {}

PlaneSlopes CudaPlan::each_slopes() const {
  const double planes = static_cast<double>(planes_each);
  const bool is_mean = reduces() && !pass.adds_up();
  return {pass.term_weight / (is_mean ? planes * static_cast<double>(geometry.map_elements()) : 1),
      pass.l1_weight / (is_mean ? planes * static_cast<double>(geometry.pixels()) : 1)};
}

void CudaPlan::allocate_sums() {
  if (sums != nullptr) return;
  const auto count = static_cast<std::size_t>(geometry.planes);
  memory = allocate_bytes(count * (sizeof(PlaneSums) + sizeof(PlaneSlopes)), device, exec);
  sums = static_cast<PlaneSums*>(memory.get());
}

void sum_partials(const CudaPlan& plan, const double* partials, int slots, Sum first, int kinds) {
  const std::int64_t planes = plan.geometry.planes;
  gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_of(planes * kinds), kThreads, 0,
      sum_partials_kernel, planes, kinds, slots, partials, plan.sums, static_cast<int>(first));
}

void fill_weights(const CudaPlan& plan) {
  const Geometry& g = plan.geometry;
  gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_for_items(g.planes, kThreads), kThreads,
      0, fill_weights_kernel, g.planes, static_cast<double>(g.map_elements()),
      static_cast<double>(g.pixels()), plan.sums);
}

PlaneSlope slope_of(CudaPlan& plan) {
  const TensorView& u = plan.pass.upstream;
  PlaneSlope slope;
  slope.each = plan.each_slopes();
  if (plan.reduces() && !u.empty()) {
    slope.upstream = gpu::Upstream(u, plan.geometry.channels);
  }
  const bool has_two_upstreams = plan.pass.sums && plan.pass.l1_weight != 0;
  if (plan.reduces() && (plan.has_masks() || has_two_upstreams)) {
    const gpu::Upstream l1_upstream =
        has_two_upstreams ? gpu::Upstream(plan.pass.l1_upstream, plan.geometry.channels)
                          : slope.upstream;
    auto* const slopes = reinterpret_cast<PlaneSlopes*>(plan.sums + plan.geometry.planes);
    gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_of(plan.groups), kThreads, 0,
        slopes_kernel, plan.sums, plan.groups, plan.planes_each, terms_of(plan.pass),
        slope.upstream, l1_upstream, slopes);
    slope.found = slopes;
  }
  return slope;
}

void write_values(const CudaPlan& plan) {
  if (plan.pass.value.empty()) return;
  gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_of(plan.groups), kThreads, 0,
      values_kernel, plan.sums, plan.groups, plan.planes_each, terms_of(plan.pass),
      plan.pass.value.data(), plan.pass.value.dtype);
}

Finish finish_of(const CudaPlan& plan, const double* partials, std::int64_t slots) {
  const TensorView& value = plan.pass.value;
  const double elements = static_cast<double>(plan.planes_each * plan.geometry.map_elements());
  return {.partials = partials,
      .groups = plan.groups,
      .each = plan.planes_each * slots,
      .bias = plan.pass.adds_up() ? plan.pass.bias * elements : plan.pass.bias,
      .term = plan.each_slopes().term,
      .weight = elements,
      .value = value.data(),
      .dtype = value.dtype,
      .sums = plan.pass.sums};
}

void write_values(const CudaPlan& plan, const double* partials, std::int64_t slots) {
  gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_of(plan.groups), kThreads, 0,
      finish_kernel, finish_of(plan, partials, slots));
}

namespace {

// A mask of the counted rows: with it the kernels take |x - y| of their pixels alone.
TensorView mask_of_rows(const Pass& pass, const Execution& exec, std::shared_ptr<void>& memory) {
  const Extents& shape = pass.x.shape;
  const bool along_z = pass.counted.z.last != kEverywhere.last;
  const std::int64_t rows = shape[along_z ? 2 : 3];
  memory = allocate_bytes(static_cast<std::size_t>(rows), pass.x.device, exec);
  gpu::launch("l1_ssim", exec.queue.handle, gpu::blocks_for_items(rows, kThreads), kThreads, 0,
      counted_rows_kernel, rows, along_z ? pass.counted.z : pass.counted.y,
      static_cast<std::uint8_t*>(memory.get()));
  const Extents strides = along_z ? Extents{0, 0, 1, 0, 0} : Extents{0, 0, 0, 1, 0};
  return TensorView(memory.get(), shape, strides, DType::u8, pass.x.device);
}

// The separable kernels take f32, volumes above all.
bool uses_separable(const Pass& pass) {
  const CudaPlan plan(pass, {});
  const bool has_slices = plan.geometry.extent[0] > 1 || !pass.middle.empty();
  return can_separate(plan) && (has_slices || !can_take_any_window(plan));
}

}  // namespace

bool uses_sliding_window(const Pass& pass) { return can_halve_on_the_way(CudaPlan(pass, {})); }

void ssim_cuda(const Pass& given, const Execution& exec) {
  const gpu::Current current(given.x.device);
  Pass pass = given;
  std::shared_ptr<void> rows;
  if (pass.l1_weight != 0 && !pass.counted.are_all()) pass.mask = mask_of_rows(pass, exec, rows);
  CudaPlan plan(pass, exec);
  if (can_slide_window(plan)) {
    run_sliding_window(plan);
  } else if (uses_separable(pass)) {
    run_separable(plan);
  } else if (can_take_any_window(plan)) {
    run_any_window(plan);
  } else {
    run_direct(plan);
  }
}

}  // namespace similis::ssim_internal
