// SPDX-License-Identifier: Apache-2.0
// scale() on the GPU: every thread reads the factor, and leaves at once if it is 1.
#include "src/scale/scale.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "src/gpu/cuda/half.h"
#include "src/gpu/cuda/view.h"

namespace similis::scale_internal {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksAMultiprocessor = 4;  // as many as run at once
constexpr int kAtOnce = 4;                 // number of loads that a thread has under way

/// The elements of one memory access.
template <class T> struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T values[kCount];
};

template <class T> __device__ void scale_in_place(T& value, double factor) {
  if constexpr (std::is_same_v<T, double>) {
    value *= factor;
  } else {
    value = gpu::rounded<T>(gpu::to_float(value) * static_cast<float>(factor));
  }
}

template <class T> __device__ void scale_in_place(Pack<T>& pack, double factor) {
#pragma unroll
  for (T& value : pack.values) scale_in_place(value, factor);
}

/// Scales `count` elements or packs, each of which belongs to one thread; at(i) is the i-th of
/// them.
template <class At> __device__ void scale_all(std::int64_t count, const At& at, double factor) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (; i + (kAtOnce - 1) * step < count; i += kAtOnce * step) {
    std::decay_t<decltype(*at(i))> values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) values[k] = *at(i + k * step);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      scale_in_place(values[k], factor);
      *at(i + k * step) = values[k];
    }
  }
  for (; i < count; i += step) scale_in_place(*at(i), factor);
}

template <class T>
__device__ void scale_as(T* data, const Walk& walk, bool is_dense, double factor) {
  if (!is_dense) {
    return scale_all(
        walk.count, [&](std::int64_t i) { return data + walk.offset(i); }, factor);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::int64_t unaligned = (-address % sizeof(Pack<T>)) / sizeof(T),
                     before = unaligned < walk.count ? unaligned : walk.count,
                     packs = (walk.count - before) / Pack<T>::kCount,
                     in_packs = packs * Pack<T>::kCount;
  Pack<T>* const first = reinterpret_cast<Pack<T>*>(data + before);
  scale_all(
      packs, [&](std::int64_t i) { return first + i; }, factor);
  const auto at = [&](std::int64_t i) { return data + (i < before ? i : i + in_packs); };
  scale_all(walk.count - in_packs, at, factor);
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

void scale_cuda(const Pass& pass, const Execution& exec) {
  const TensorView &tensor = pass.tensor, &factor = pass.factor;
  const gpu::Current current(tensor.device);
  const Walk walk(tensor);
  const std::int64_t accesses =  // each thread makes one at most, if that fills the GPU
      walk.is_dense() ? walk.count * static_cast<std::int64_t>(size_bytes(tensor.dtype)) / 16
                      : walk.count;
  const std::int64_t blocks = std::min<std::int64_t>(accesses / kThreads + 1,
      std::int64_t{kBlocksAMultiprocessor} * gpu::limits(tensor.device).multiprocessors);
  gpu::launch("scale", exec.queue.handle, static_cast<unsigned>(blocks), kThreads, 0, scale_kernel,
      tensor.data(), tensor.dtype, walk, walk.is_dense(), gpu::View(factor));
}

}  // namespace similis::scale_internal
