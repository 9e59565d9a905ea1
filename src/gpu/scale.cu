// SPDX-License-Identifier: Apache-2.0
// scale() on the GPU: every thread reads the factor, and leaves at once where it is 1.
#include "src/core/scale.h"

#include <algorithm>

#include "src/gpu/view.h"

namespace similis::core_internal {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksAMultiprocessor = 8;  // all that run at once
constexpr int kAtOnce = 4;                 // loads of a thread under way

template <class T>
__device__ void scale_as(T* data, const Walk& walk, bool is_dense, double factor) {
  const auto by = static_cast<decltype(load(T{}))>(factor);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  const auto at = [&](std::int64_t i) { return data + (is_dense ? i : walk.offset(i)); };
  std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (; i + (kAtOnce - 1) * step < walk.count; i += kAtOnce * step) {
    T values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) values[k] = *at(i + k * step);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) store(load(values[k]) * by, at(i + k * step));
  }
  for (; i < walk.count; i += step) store(load(*at(i)) * by, at(i));
}

__global__ void __launch_bounds__(kThreads) scale_kernel(void* data, DType dtype,
    const SIMILIS_GRID_CONSTANT Walk walk, bool is_dense, const gpu::View factor) {
  const double by = factor.load(0);
  if (by == 1) return;
  switch (dtype) {
    case DType::f16: return scale_as(static_cast<F16*>(data), walk, is_dense, by);
    case DType::bf16: return scale_as(static_cast<BF16*>(data), walk, is_dense, by);
    case DType::f32: return scale_as(static_cast<float*>(data), walk, is_dense, by);
    default: return scale_as(static_cast<double*>(data), walk, is_dense, by);
  }
}

}  // namespace

void scale_cuda(const TensorView& tensor, const TensorView& factor, const Execution& exec) {
  const gpu::Current current(tensor.device);
  const Walk walk(tensor);
  const std::int64_t blocks = std::min<std::int64_t>((walk.count + kThreads - 1) / kThreads,
      std::int64_t{kBlocksAMultiprocessor} * gpu::limits(tensor.device).multiprocessors);
  gpu::launch("scale", exec.stream, static_cast<unsigned>(blocks), kThreads, 0, scale_kernel,
      tensor.data, tensor.dtype, walk, walk.is_dense(), gpu::View(factor));
}

}  // namespace similis::core_internal
