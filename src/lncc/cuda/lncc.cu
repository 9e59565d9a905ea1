// SPDX-License-Identifier: Apache-2.0
// The frame of LNCC on the GPU around the kernels that look through windows: weights become the
// slope of each plane, and sums become values, on the device, so that nothing waits for the host.
// The sliding window kernels (fast_path.cu) take most calls, the direct kernels
// (direct.cu) take everything else.
#include <algorithm>
#include <utility>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/blocks.h"
#include "src/lncc/cuda/raw_element.cuh"
#include "src/lncc/cuda/values.cuh"

namespace similis::lncc_internal {
namespace {

constexpr int kThreads = 256;

constexpr int kAtOnce = 8;  // loads of a lane in flight together

// Pixels with a smaller share of all weights add less than a last digit to a result. Sums that
// slide cannot tell their windows from what is left of others.
constexpr double kLeastShare = 0x1p-60;

// Calls add_row(at) for rows [first, last) of a plane; warps take them in turn.
template <class AddRow>
__device__ __forceinline__ void for_each_row(
    const Geometry& g, std::int64_t first, std::int64_t last, Place at, const AddRow& add_row) {
  constexpr int kWarps = kThreads / gpu::kSubgroup;
  const std::int64_t row = first + threadIdx.x / gpu::kSubgroup;
  at.z = row / g.centres(1) + g.first_centre[0];
  at.y = row % g.centres(1) + g.first_centre[1];
  for (std::int64_t i = row; i < last; i += kWarps) {
    add_row(at);
    at.y += kWarps;
    while (at.y >= g.last_centre[1]) {
      at.y -= g.centres(1);
      ++at.z;
    }
  }
}

// Adds Σ weight over the centres of each plane, [planes][slots].
__global__ __launch_bounds__(kThreads) void weights_kernel(
    const Problem m, int slots, double* weights) {
  const Geometry& g = m.geometry;
  const std::int64_t rows = g.centres(0) * g.centres(1);
  const int lane = static_cast<int>(threadIdx.x) % gpu::kSubgroup;
  for (std::int64_t block = blockIdx.x; block < g.planes * slots; block += gridDim.x) {
    const std::int64_t plane = block / slots, each = (rows + slots - 1) / slots;
    const std::int64_t first = block % slots * each;
    const std::int64_t last = first + each < rows ? first + each : rows;
    const Place begin{plane / g.channels, plane % g.channels, 0, 0, g.first_centre[2] + lane};
    double sum = 0;
    if (m.valid_mask.data == nullptr || m.mask.data == nullptr) {  // the weights are those of one
      const gpu::View& view = m.mask.data == nullptr ? m.valid_mask : m.mask;
      visit_type(view.dtype, [&](auto type) {
        for_each_row(g, first, last, begin, [&](Place at) {
          for (; at.x < g.last_centre[2]; at.x += kAtOnce * gpu::kSubgroup) {
            const std::int64_t from = Problem::offset(view, at);
            const std::int64_t step = gpu::kSubgroup * view.strides[4];
            RawElement raw[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
              if (at.x + i * gpu::kSubgroup < g.last_centre[2])
                raw[i].ask(type, view, from + i * step);
            }
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
              if (at.x + i * gpu::kSubgroup >= g.last_centre[2]) break;
              const double weight = raw[i].value(type, view, from + i * step);
              sum += weight >= 0 ? weight : NAN;
            }
          }
        });
      });
    } else {
      for_each_row(g, first, last, begin, [&](Place at) {
        for (; at.x < g.last_centre[2]; at.x += gpu::kSubgroup) sum += m.pixel_weight(at);
      });
    }
    const double total = gpu::block_sum<kThreads>(sum);
    if (threadIdx.x == 0) weights[block] = total;
    __syncthreads();
  }
}

// Returns the sum of `count` numbers, by one block.
__device__ double sum_of(const double* numbers, std::int64_t count) {
  const double total =
      gpu::block_sum_of<kThreads>(count, [&](std::int64_t i) { return numbers[i]; });
  __syncthreads();
  return total;
}

// The amounts that a unit of v at a pixel of weight 1 adds to a group's value, and to Σ
// upstream·value by an upstream gradient of 1, if all its pixels weigh `total`. A mean without
// weights has gradient 0 and is NaN, or 0 for a loss; weights that are NaN make all of it NaN.
struct Unit {
  double slope, of_value;

  SIMILIS_HOST_DEVICE Unit(double total, double weight, bool is_sum) {
    const bool is_empty = !is_sum && total == 0;
    slope = is_empty ? 0 : is_sum && total == total ? weight : weight / total;
    of_value = is_empty && weight >= 0 ? static_cast<double>(NAN) : slope;
  }
};

// Writes the amount that a unit of v at a pixel of weight 1 adds to each group's value, and the
// amount that it adds, with upstream, to Σ upstream·value from each plane; behind these, of each
// plane, the weight below which a pixel does not count. totals: where the groups' weights go, or
// null.
__global__ __launch_bounds__(kThreads) void slopes_kernel(Groups groups, const double* weights,
    int slots, double known_weight, double weight, bool is_sum, gpu::Upstream upstream,
    double* units, double* slopes, double* totals) {
  __shared__ double slope, least;
  for (std::int64_t group = blockIdx.x; group < groups.count; group += gridDim.x) {
    const std::int64_t first = group * groups.planes_each;
    double total = known_weight;
    if (weights != nullptr) total = sum_of(weights + first * slots, groups.planes_each * slots);
    if (threadIdx.x == 0) {
      if (totals != nullptr) totals[group] = total;
      least = total * kLeastShare;
      const Unit unit(total, weight, is_sum);
      slope = unit.slope;
      units[group] = unit.of_value;
    }
    __syncthreads();
    const std::int64_t planes = groups.count * groups.planes_each;
    for (std::int64_t i = threadIdx.x; i < groups.planes_each; i += kThreads) {
      slopes[first + i] = slope * upstream.of(first + i);
      slopes[planes + first + i] = least;
    }
    __syncthreads();
  }
}

__global__ __launch_bounds__(kAdders) void values_kernel(const Values values) {
  __shared__ double room[kAdders / gpu::kSubgroup];
  write_values(values, blockIdx.x, room);
}

Groups groups_of(const Pass& pass) {
  const std::int64_t planes = pass.x.shape[0] * pass.x.shape[1];
  const std::int64_t count = pass.reduction == Reduction::per_channel ? planes
                             : pass.reduction == Reduction::per_image ? pass.x.shape[0]
                                                                      : 1;
  return {count, planes / count};
}

void run_windows(const CudaPlan& plan, const FastPath* fast_path) {
  if (fast_path != nullptr) return run_fast_path(*fast_path);
  run_direct(plan);
}

// Says where the slopes of planes come from.
struct Weighing {
  std::int64_t blocks = 0;  // 0: weights are known
  int slots = 0;            // partial sums of weights of a plane
  bool has_slopes = false;  // slopes are found on the device

  Weighing(const Pass& pass, std::int64_t planes) {
    constexpr std::int64_t kMostBlocks = 1024, kLeastSlots = 64;  // enough blocks for any GPU
    const bool is_weighted = !pass.mask.empty() || !pass.valid_mask.empty();
    slots = static_cast<int>(std::max(kLeastSlots, kMostBlocks / planes));
    blocks = is_weighted ? planes * slots : 0;
    has_slopes = is_weighted || (pass.sums && !pass.value.empty());
  }
  std::int64_t numbers(const Groups& groups, std::int64_t planes) const {
    return has_slopes ? groups.count + 2 * planes + blocks : 0;
  }
};

// Queues the kernels that find units, which come first in `numbers`, and slopes.
void find_slopes(CudaPlan& plan, const Weighing& weighing, const Groups& groups,
    double known_weight, double* numbers) {
  const Pass& pass = plan.pass;
  const std::int64_t planes = plan.problem.geometry.planes;
  double* const slopes = numbers + groups.count;
  double* const weights = weighing.blocks > 0 ? slopes + 2 * planes : nullptr;
  plan.problem.slopes = slopes;
  plan.values.units = numbers;
  if (weights != nullptr) {
    gpu::launch("lncc", plan.exec.queue.handle, gpu::blocks_of(weighing.blocks), kThreads, 0,
        weights_kernel, plan.problem, weighing.slots, weights);
  }
  gpu::launch("lncc", plan.exec.queue.handle, gpu::blocks_of(groups.count), kThreads, 0,
      slopes_kernel, groups, static_cast<const double*>(weights), weighing.slots, known_weight,
      pass.weight, pass.adds_up(), plan.problem.plane_upstream, numbers, slopes,
      pass.sums && !pass.value.empty() ? static_cast<double*>(pass.value.data()) + groups.count
                                       : nullptr);
}

// Runs a pass that reduces to numbers, with memory for its sums.
void run_reduced(CudaPlan& plan, const FastPath* fast_path) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.problem.geometry;
  const Groups groups = groups_of(pass);
  const Weighing weighing(pass, g.planes);
  plan.slots = fast_path != nullptr ? fast_path_slots(*fast_path) : direct_slots(plan);
  const std::int64_t partials = g.planes * plan.slots;
  const std::int64_t count = partials + weighing.numbers(groups, g.planes);
  const auto memory =
      allocate_bytes(static_cast<std::size_t>(count) * sizeof(double), plan.device, plan.exec);
  plan.partials = static_cast<double*>(memory.get());
  const double known_weight = static_cast<double>(groups.planes_each * g.map_elements());
  const Unit unit(known_weight, pass.weight, pass.adds_up());
  plan.problem.each_slope = unit.slope;
  plan.problem.plane_upstream = gpu::Upstream(pass.upstream, g.channels);
  plan.values = {.groups = groups,
      .partials = plan.partials,
      .slots = plan.slots,
      .units = nullptr,
      .unit = unit.of_value,
      .value = pass.value.data(),
      .dtype = pass.value.dtype};
  if (weighing.has_slopes) {
    find_slopes(plan, weighing, groups, known_weight, plan.partials + partials);
  }
  run_windows(plan, fast_path);
  if (pass.value.empty() || (fast_path != nullptr && fast_path_writes_values(*fast_path))) return;
  gpu::launch("lncc", plan.exec.queue.handle, gpu::blocks_of(groups.count), kAdders, 0,
      values_kernel, plan.values);
}

}  // namespace

Geometry::Geometry(const Pass& pass)
    : channels(pass.x.shape[1]),
      planes(pass.x.shape[0] * pass.x.shape[1]),
      radius{pass.window.radius_z(), pass.window.radius_y(), pass.window.radius_x()},
      padding(pass.padding) {
  for (int axis = 0; axis < 3; ++axis) {
    extent[axis] = pass.x.shape[2 + axis];
    first_centre[axis] = padding == Padding::valid ? radius[axis] : 0;
    last_centre[axis] = extent[axis] - first_centre[axis];
  }
  const Interval counted[] = {pass.counted.z, pass.counted.y};
  for (int axis = 0; axis < 2; ++axis) {
    first_centre[axis] = std::max(first_centre[axis], counted[axis].first);
    last_centre[axis] = std::min(last_centre[axis], counted[axis].last);
  }
}

Problem::Problem(const Pass& pass)
    : geometry(pass),
      x(pass.x),
      y(pass.y),
      mask(pass.mask),
      valid_mask(pass.valid_mask),
      constants(pass.constants),
      taps(pass.taps),
      weight(pass.weight),
      is_signed(pass.is_signed),
      is_ants(pass.gradient == LnccGradient::ants),
      reduces(pass.reduction != Reduction::none) {
  x_gradient = gpu::View(pass.x_gradient);
  y_gradient = gpu::View(pass.y_gradient);
  if (reduces) return;
  map = gpu::View(pass.value);
  upstream = gpu::View(pass.upstream);
}

CudaPlan::CudaPlan(const Pass& the_pass, const Execution& execution)
    : pass(the_pass), exec(execution), device(the_pass.x.device), problem(the_pass) {}

void lncc_cuda(const Pass& given, const Execution& exec) {
  const gpu::Current current(given.x.device);
  Pass pass = given;
  if (pass.x_gradient.empty()) {  // LNCC is symmetric
    std::swap(pass.x, pass.y);
    std::swap(pass.x_gradient, pass.y_gradient);
  }
  CudaPlan plan(pass, exec);
  const std::shared_ptr<const FastPath> fast_path = find_fast_path(plan);
  if (plan.problem.reduces) {
    run_reduced(plan, fast_path.get());
  } else {
    run_windows(plan, fast_path.get());
  }
}

}  // namespace similis::lncc_internal
