// SPDX-License-Identifier: Apache-2.0
// Norms and Jacobian determinants of vector fields on the GPU: one thread computes one voxel.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "src/core/tensor/memory.h"
#include "src/fields/fields.h"
#include "src/fields/jacobian.h"
#include "src/warp/cuda/voxels.cuh"

namespace similis::fields_internal {
namespace {

using warp_internal::blocks_for_items;
using warp_internal::kThreads;
using warp_internal::Voxel;
using warp_internal::voxel_count;

// Squares of norms are not negative, so their bits order as they do; NaN stands above all.
__global__ __launch_bounds__(kThreads) void norms_kernel(const gpu::View field, const Axis x,
    const Axis y, const Axis z, int components, std::int64_t voxels, unsigned blocks,
    unsigned long long* largest) {
  __shared__ unsigned long long shared[kThreads];
  const Axis axes[3] = {x, y, z};
  const std::int64_t n = blockIdx.x / blocks;
  unsigned long long most = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; i < voxels;
       i += std::int64_t{blocks} * kThreads) {
    const std::int64_t at = Voxel(axes, i).in(field, n);
    double square = 0;
    for (int j = 0; j < components; ++j) {
      const double c = field.load(at + j * field.strides[4]);
      square = fma(c, c, square);
    }
    most = max(most, bits_as<unsigned long long>(fabs(square)));
  }
  shared[threadIdx.x] = most;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      shared[threadIdx.x] = max(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
  }
  if (threadIdx.x == 0) atomicMax(largest + n, shared[0]);
}

// Writes counts, or the square roots of numbers given as bits.
__global__ void results_kernel(const unsigned long long* found, std::int64_t count, bool is_square,
    void* data, DType dtype, std::int64_t stride) {
  const std::int64_t n = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= count) return;
  const double result = is_square ? sqrt(bits_as<double>(found[n])) : static_cast<double>(found[n]);
  gpu::store_element(data, dtype, n * stride, result);
}

struct JacobianView {
  Axis axes[3] = {};
  int rank = 3;
  gpu::View u;
  void* determinant = nullptr;
  DType dtype = DType::f32;
  std::int64_t strides[4] = {};
};

__global__ __launch_bounds__(kThreads) void jacobian_kernel(
    const JacobianView p, std::int64_t voxels, unsigned blocks, unsigned long long* folds) {
  __shared__ unsigned long long folded;
  if (threadIdx.x == 0) folded = 0;
  __syncthreads();
  const std::int64_t n = blockIdx.x / blocks;
  for (std::int64_t i = std::int64_t{blockIdx.x % blocks} * kThreads + threadIdx.x; i < voxels;
       i += std::int64_t{blocks} * kThreads) {
    const Voxel v(p.axes, i);
    const std::int64_t here = v.in(p.u, n), voxel[3] = {v.x, v.y, v.z};
    const double value =
        determinant(p.axes, p.rank, voxel, [&](int component, int a, std::int64_t other) {
          return p.u.load(
              here + (other - voxel[a]) * p.u.strides[3 - a] + component * p.u.strides[4]);
        });
    const std::int64_t* s = p.strides;
    gpu::store_element(
        p.determinant, p.dtype, n * s[0] + v.z * s[1] + v.y * s[2] + v.x * s[3], value);
    if (value <= 0) atomicAdd(&folded, 1ull);
  }
  __syncthreads();
  if (threadIdx.x == 0 && folded != 0) atomicAdd(folds + n, folded);
}

std::shared_ptr<void> cleared(
    std::int64_t bytes, Device device, const char* operation, const Execution& exec) {
  std::shared_ptr<void> memory = allocate_bytes(static_cast<std::size_t>(bytes), device, exec);
  gpu::clear(operation, exec.queue.handle, memory.get(), static_cast<std::size_t>(bytes));
  return memory;
}

}  // namespace

void largest_norm_cuda(const TensorView& field, const TensorView& residual, const Execution& exec) {
  const gpu::Current current(field.device);
  const std::int64_t count = field.shape[0];
  const auto memory = cleared(count * 8, field.device, "invert", exec);
  auto* largest = static_cast<unsigned long long*>(memory.get());
  Axis axes[3];
  for (int a = 0; a < 3; ++a) axes[a].out_extent = field.shape[3 - a];
  const std::int64_t voxels = voxel_count(axes);
  const unsigned blocks = std::min(blocks_for_items(voxels), 1024u);
  gpu::launch("invert", exec.queue.handle, static_cast<unsigned>(count) * blocks, kThreads, 0,
      norms_kernel, gpu::View(field), axes[0], axes[1], axes[2], static_cast<int>(field.shape[4]),
      voxels, blocks, largest);
  gpu::launch("invert", exec.queue.handle, blocks_for_items(count), kThreads, 0, results_kernel,
      static_cast<const unsigned long long*>(largest), count, true, residual.data(), residual.dtype,
      residual.strides[0]);
}

void jacobian_cuda(const JacobianPass& pass, const Execution& exec) {
  const gpu::Current current(pass.u.device);
  const std::int64_t count = pass.u.shape[0];
  const auto memory = cleared(count * 8, pass.u.device, "jacobian_determinant", exec);
  auto* folds = static_cast<unsigned long long*>(memory.get());
  JacobianView p;
  p.rank = pass.rank;
  p.u = gpu::View(pass.u);
  p.determinant = pass.determinant.data();
  p.dtype = pass.determinant.dtype;
  for (int a = 0; a < 3; ++a) p.axes[a] = pass.axes[a];
  for (int axis = 0; axis < 4; ++axis) p.strides[axis] = pass.determinant.strides[axis];
  const std::int64_t voxels = voxel_count(pass.axes);
  const unsigned blocks = std::min(blocks_for_items(voxels), 4096u);
  gpu::launch("jacobian_determinant", exec.queue.handle, static_cast<unsigned>(count) * blocks,
      kThreads, 0, jacobian_kernel, p, voxels, blocks, folds);
  gpu::launch("jacobian_determinant", exec.queue.handle, blocks_for_items(count), kThreads, 0,
      results_kernel, static_cast<const unsigned long long*>(folds), count, false,
      pass.folds.data(), pass.folds.dtype, pass.folds.strides[0]);
}

}  // namespace similis::fields_internal
