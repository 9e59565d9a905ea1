// SPDX-License-Identifier: Apache-2.0
// NCC on the GPU: each plane's rows are dealt out to blocks, which add five sums; a second launch
// adds the blocks' up in their order. Bits depend on the shape alone.
#include <algorithm>

#include "src/core/memory.h"
#include "src/gpu/view.h"
#include "src/ncc/ncc.h"

namespace similis::ncc_internal {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostSlots = 1024, kMostBlocks = std::int64_t{1} << 20;

struct Shape {
  std::int64_t planes, channels, rows, height, width;
};

__device__ Sums block_sums(const Sums& own) {
  Sums sums;
  sums.x = gpu::block_sum<kThreads>(own.x);
  __syncthreads();
  sums.y = gpu::block_sum<kThreads>(own.y);
  __syncthreads();
  sums.xx = gpu::block_sum<kThreads>(own.xx);
  __syncthreads();
  sums.yy = gpu::block_sum<kThreads>(own.yy);
  __syncthreads();
  sums.xy = gpu::block_sum<kThreads>(own.xy);
  __syncthreads();
  return sums;
}

__device__ double middle(const gpu::View& view, std::int64_t plane, const Shape& shape) {
  const double value =
      view.load(plane + view.at(shape.rows / shape.height / 2, shape.height / 2, shape.width / 2));
  return value - value == 0 ? value : 0;
}

__global__ __launch_bounds__(kThreads) void sums_kernel(
    gpu::View x, gpu::View y, Shape shape, std::int64_t slots, Sums* sums) {
  for (std::int64_t block = blockIdx.x; block < shape.planes * slots; block += gridDim.x) {
    const std::int64_t plane = block / slots;
    const std::int64_t x_plane = x.plane(plane / shape.channels, plane % shape.channels);
    const std::int64_t y_plane = y.plane(plane / shape.channels, plane % shape.channels);
    const double shift_x = middle(x, x_plane, shape), shift_y = middle(y, y_plane, shape);
    Sums own;
    for (std::int64_t row = block % slots; row < shape.rows; row += slots) {
      const std::int64_t z = row / shape.height, h = row % shape.height;
      for (std::int64_t w = threadIdx.x; w < shape.width; w += kThreads) {
        own.add_pixel(
            x.load(x_plane + x.at(z, h, w)) - shift_x, y.load(y_plane + y.at(z, h, w)) - shift_y);
      }
    }
    const Sums total = block_sums(own);
    if (threadIdx.x == 0) sums[block] = total;
  }
}

__global__ __launch_bounds__(kThreads) void values_kernel(const Sums* sums, std::int64_t slots,
    std::int64_t groups, std::int64_t planes_each, double count, bool is_sum, double* values) {
  for (std::int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    double value = 0;
    for (std::int64_t plane = group * planes_each; plane < (group + 1) * planes_each; ++plane) {
      Sums own;
      for (std::int64_t i = threadIdx.x; i < slots; i += kThreads) own.add(sums[plane * slots + i]);
      value += correlation(block_sums(own), count);
    }
    if (threadIdx.x == 0) values[group] = is_sum ? value : value / static_cast<double>(planes_each);
  }
}

}  // namespace

void ncc_cuda(const Pass& pass, const Execution& exec) {
  const gpu::Current current(pass.x.device);
  const Extents& extents = pass.x.shape;
  const Shape shape{
      extents[0] * extents[1], extents[1], extents[2] * extents[3], extents[3], extents[4]};
  const std::int64_t slots = std::clamp<std::int64_t>(shape.rows / 4, 1, kMostSlots);
  const std::int64_t blocks = shape.planes * slots, groups = pass.value.shape.count();
  const auto memory =
      allocate_bytes(static_cast<std::size_t>(blocks) * sizeof(Sums), pass.x.device, exec);
  auto* const sums = static_cast<Sums*>(memory.get());
  const auto at_most = [](std::int64_t count) {
    return static_cast<unsigned>(std::min(count, kMostBlocks));
  };
  gpu::launch("ncc", exec.stream, at_most(blocks), kThreads, 0, sums_kernel, gpu::View(pass.x),
      gpu::View(pass.y), shape, slots, sums);
  gpu::launch("ncc", exec.stream, at_most(groups), kThreads, 0, values_kernel,
      static_cast<const Sums*>(sums), slots, groups, shape.planes / groups,
      static_cast<double>(shape.rows * shape.width), pass.is_sum,
      static_cast<double*>(pass.value.data));
}

}  // namespace similis::ncc_internal
