// SPDX-License-Identifier: Apache-2.0
// The affine grid and its gradient on the GPU: one thread computes one voxel.
#include <algorithm>
#include <cstdint>

#include "src/core/tensor/memory.h"
#include "src/warp/cuda/voxels.cuh"

namespace similis::warp_internal {
namespace {

struct GridPass {
  Axis axes[3];
  int rank;
  bool accumulates;
  const void* affine;
  DType affine_dtype;
  std::int64_t affine_strides[3];
  gpu::View field, output, upstream;

  explicit GridPass(const Pass& pass)
      : rank(pass.rank),
        accumulates(!pass.addend.empty()),
        affine(pass.affine.data()),
        affine_dtype(pass.affine.dtype),
        field(pass.field),
        output(pass.output),
        upstream(pass.upstream) {
    for (int a = 0; a < 3; ++a) {
      axes[a] = pass.axes[a];
      affine_strides[a] = pass.affine.strides[a];
    }
  }
  __device__ double element(std::int64_t n, int i, int j) const {
    return gpu::load_element(affine, affine_dtype,
        n * affine_strides[0] + i * affine_strides[1] + j * affine_strides[2]);
  }
  __device__ double coordinate(int a, std::int64_t voxel) const {
    return axes[a].origin + axes[a].step * (axes[a].first + static_cast<double>(voxel));
  }
};

__global__ __launch_bounds__(kThreads) void affine_grid_kernel(
    const GridPass p, std::int64_t voxels, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const std::int64_t n = i / voxels;
    const Voxel v(p.axes, i % voxels);
    const double x[3] = {p.coordinate(0, v.x), p.coordinate(1, v.y), p.coordinate(2, v.z)};
    for (int a = 0; a < p.rank; ++a) {
      double value = p.element(n, a, p.rank);
      for (int j = 0; j < p.rank; ++j) value = fma(p.element(n, a, j), x[j], value);
      if (p.field.data != nullptr) value += p.field.load(v.in(p.field, n) + a * p.field.strides[4]);
      const std::int64_t at = v.in(p.output, n) + a * p.output.strides[4];
      if (p.accumulates) value += p.output.load(at);
      p.output.store(at, value);
    }
  }
}

// partials[n][block][12]: the sums of one block's voxels.
__global__ __launch_bounds__(kThreads) void affine_sums_kernel(
    const GridPass p, std::int64_t voxels, unsigned blocks, double* partials) {
  const std::int64_t n = blockIdx.x / blocks;
  double sums[12] = {};
  for (std::int64_t i = std::int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; i < voxels;
       i += std::int64_t{blocks} * kThreads) {
    const Voxel v(p.axes, i);
    const double x[3] = {p.coordinate(0, v.x), p.coordinate(1, v.y), p.coordinate(2, v.z)};
    for (int a = 0; a < 3; ++a) {
      if (a >= p.rank) continue;
      const double g = p.upstream.load(v.in(p.upstream, n) + a * p.upstream.strides[4]);
      for (int j = 0; j < 3; ++j) sums[4 * a + j] = fma(g, x[j], sums[4 * a + j]);
      sums[4 * a + 3] += g;
    }
  }
  for (int k = 0; k < 12; ++k) {
    const double sum = gpu::block_sum<kThreads>(sums[k]);
    if (threadIdx.x == 0) partials[std::int64_t{blockIdx.x} * 12 + k] = sum;
    __syncthreads();
  }
}

// An element of the gradient to A a thread.
__global__ void affine_gradient_kernel(const double* partials, std::int64_t rows, int rank,
    std::int64_t matrices, void* data, DType dtype, std::int64_t s0, std::int64_t s1,
    std::int64_t s2) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t n = i / 12;
  const int a = static_cast<int>(i % 12) / 4, j = static_cast<int>(i % 4);
  if (n >= matrices || a >= rank || (j >= rank && j != 3)) return;
  double total = 0;
  for (std::int64_t row = n * rows; row < (n + 1) * rows; ++row)
    total += partials[row * 12 + i % 12];
  gpu::store_element(data, dtype, n * s0 + a * s1 + (j == 3 ? rank : j) * s2, total);
}

}  // namespace

void affine_grid_cuda(const Pass& pass, const Execution& exec) {
  const gpu::Current current(pass.affine.device);
  const GridPass p(pass);
  const std::int64_t voxels = voxel_count(pass.axes);
  if (!pass.output.empty()) {
    gpu::launch("affine_grid", exec.queue.handle, blocks_for_items(voxels * pass.batch), kThreads,
        0, affine_grid_kernel, p, voxels, voxels * pass.batch);
  }
  const TensorView& gradient = pass.affine_gradient;
  if (gradient.empty()) return;
  const unsigned blocks = std::min(blocks_for_items(voxels), 512u);
  const std::int64_t rows = pass.batch * blocks;
  const auto memory =
      allocate_bytes(static_cast<std::size_t>(rows) * 12 * sizeof(double), gradient.device, exec);
  auto* partials = static_cast<double*>(memory.get());
  gpu::launch("affine_grid", exec.queue.handle, static_cast<unsigned>(rows), kThreads, 0,
      affine_sums_kernel, p, voxels, blocks, partials);
  const Extents& s = gradient.strides;
  const std::int64_t matrices = gradient.shape[0];
  gpu::launch("affine_grid", exec.queue.handle, blocks_for_items(matrices * 12), kThreads, 0,
      affine_gradient_kernel, static_cast<const double*>(partials), rows / matrices, pass.rank,
      matrices, gradient.data(), gradient.dtype, s[0], s[1], s[2]);
}

}  // namespace similis::warp_internal
