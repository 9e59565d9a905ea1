// SPDX-License-Identifier: Apache-2.0
// NCC on the GPU: blocks share the rows of each plane and add five sums; a second launch adds the
// sums of a plane's blocks in their order, a third the planes, and a fourth writes gradients. The
// bits of a result depend on the shape alone.
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/upstream.h"
#include "src/gpu/cuda/view.h"
#include "src/ncc/ncc.h"

namespace similis::ncc_internal {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostSlots = 1024;   // blocks that share a plane
constexpr std::int64_t kMostBlocks = 4096;  // of planes that need not be shared that much
constexpr std::int64_t kPiece = 1024;       // columns of a row that are shared out at once

struct Shape {
  std::int64_t planes, channels, rows, height, width;
  std::int64_t pieces;  // of a row
  int across;           // threads of a row, a power of two; the others of a block take other rows
};

int threads_across(std::int64_t width) {
  int threads = 32;
  while (threads < width && threads < kThreads) threads *= 2;
  return threads;
}

// Calls function(z, h, w) for the pixels of a block's share of a plane.
template <class Function>
__device__ __forceinline__ void for_each_pixel(
    const Shape& shape, std::int64_t slot, std::int64_t slots, const Function& function) {
  const int own = static_cast<int>(threadIdx.x) / shape.across, apart = kThreads / shape.across;
  for (std::int64_t i = slot * apart + own; i < shape.rows * shape.pieces; i += slots * apart) {
    const std::int64_t row = i / shape.pieces, first = (i - row * shape.pieces) * kPiece;
    const std::int64_t z = row / shape.height, h = row % shape.height;
    const std::int64_t end = first + kPiece < shape.width ? first + kPiece : shape.width;
    for (std::int64_t w = first + static_cast<int>(threadIdx.x) % shape.across; w < end;
         w += shape.across) {
      function(z, h, w);
    }
  }
}

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
    for_each_pixel(
        shape, block % slots, slots, [&](std::int64_t z, std::int64_t h, std::int64_t w) {
          own.add_pixel(
              x.load(x_plane + x.at(z, h, w)) - shift_x, y.load(y_plane + y.at(z, h, w)) - shift_y);
        });
    const Sums total = block_sums(own);
    if (threadIdx.x == 0) sums[block] = total;
  }
}

__global__ __launch_bounds__(kThreads) void correlations_kernel(const Sums* sums,
    std::int64_t slots, std::int64_t planes, double count, Correlation* correlations) {
  for (std::int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
    Sums own;
    for (std::int64_t i = threadIdx.x; i < slots; i += kThreads) own.add(sums[plane * slots + i]);
    const Correlation of_plane = correlation(block_sums(own), count);
    if (threadIdx.x == 0) correlations[plane] = of_plane;
  }
}

__global__ __launch_bounds__(kThreads) void values_kernel(const Correlation* correlations,
    std::int64_t results, std::int64_t planes_each, double divisor, gpu::View value) {
  for (std::int64_t result = blockIdx.x; result < results; result += gridDim.x) {
    double own = 0;
    for (std::int64_t i = threadIdx.x; i < planes_each; i += kThreads) {
      own += correlations[result * planes_each + i].value;
    }
    const double sum = gpu::block_sum<kThreads>(own);
    if (threadIdx.x == 0) value.store(result, sum / divisor);
    __syncthreads();
  }
}

__global__ __launch_bounds__(kThreads, 3) void gradients_kernel(gpu::View x, gpu::View y,
    gpu::View x_gradient, gpu::View y_gradient, Shape shape, std::int64_t slots,
    const Correlation* correlations, gpu::Upstream upstream, std::int64_t planes_each,
    double divisor) {
  for (std::int64_t block = blockIdx.x; block < shape.planes * slots; block += gridDim.x) {
    const std::int64_t plane = block / slots;
    const std::int64_t image = plane / shape.channels, channel = plane % shape.channels;
    const std::int64_t x_plane = x.plane(image, channel), y_plane = y.plane(image, channel);
    const double shift_x = middle(x, x_plane, shape), shift_y = middle(y, y_plane, shape);
    const Correlation of_plane = correlations[plane];
    const double scale = upstream.of(plane / planes_each) / divisor;
    for_each_pixel(
        shape, block % slots, slots, [&](std::int64_t z, std::int64_t h, std::int64_t w) {
          const double a = x.load(x_plane + x.at(z, h, w)) - shift_x;
          const double b = y.load(y_plane + y.at(z, h, w)) - shift_y;
          if (x_gradient.data) {
            x_gradient.store(x_gradient.plane(image, channel) + x_gradient.at(z, h, w),
                scale * of_plane.slope_x(a, b));
          }
          if (y_gradient.data) {
            y_gradient.store(y_gradient.plane(image, channel) + y_gradient.at(z, h, w),
                scale * of_plane.slope_y(a, b));
          }
        });
  }
}

}  // namespace

void ncc_cuda(const PixelPass& pass, const Execution& exec) {
  const gpu::Current current(pass.x.device);
  const Extents& extents = pass.x.shape;
  const Shape shape{planes(pass), extents[1], extents[2] * extents[3], extents[3], extents[4],
      (extents[4] + kPiece - 1) / kPiece, threads_across(extents[4])};
  const std::int64_t most = std::clamp<std::int64_t>(kMostBlocks / shape.planes, 1, kMostSlots);
  const std::int64_t slots = std::clamp<std::int64_t>(
      shape.rows * shape.pieces / (std::int64_t{4} * kThreads / shape.across), 1, most);
  const std::int64_t blocks = shape.planes * slots, results = pass.result_shape.count();
  const auto bytes_of = [](std::int64_t count, std::size_t each) {
    return static_cast<std::size_t>(count) * each;
  };
  const auto of_sums = allocate_bytes(bytes_of(blocks, sizeof(Sums)), pass.x.device, exec);
  const auto of_planes =
      allocate_bytes(bytes_of(shape.planes, sizeof(Correlation)), pass.x.device, exec);
  auto* const sums = static_cast<Sums*>(of_sums.get());
  auto* const correlations = static_cast<Correlation*>(of_planes.get());
  const gpu::View x(pass.x), y(pass.y), x_gradient(pass.x_gradient), y_gradient(pass.y_gradient);
  gpu::launch("ncc", exec.queue.handle, gpu::blocks_of(blocks), kThreads, 0, sums_kernel, x, y,
      shape, slots, sums);
  gpu::launch("ncc", exec.queue.handle, gpu::blocks_of(shape.planes), kThreads, 0,
      correlations_kernel, static_cast<const Sums*>(sums), slots, shape.planes,
      static_cast<double>(shape.rows * shape.width), correlations);
  if (!pass.value.empty()) {
    gpu::launch("ncc", exec.queue.handle, gpu::blocks_of(results), kThreads, 0, values_kernel,
        static_cast<const Correlation*>(correlations), results, planes_each(pass), pass.divisor,
        gpu::View(pass.value));
  }
  if (!x_gradient.data && !y_gradient.data) return;
  gpu::launch("ncc", exec.queue.handle, gpu::blocks_of(blocks), kThreads, 0, gradients_kernel, x, y,
      x_gradient, y_gradient, shape, slots, static_cast<const Correlation*>(correlations),
      gpu::Upstream(pass.upstream), planes_each(pass), pass.divisor);
}

}  // namespace similis::ncc_internal
