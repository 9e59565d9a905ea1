// SPDX-License-Identifier: Apache-2.0
// B-spline coefficients on the GPU. The filter of spline.h is the sum of both recursions, each from
// its end of the mirrored line:
//   c[i] = √3·(causal[i] + anticausal[i] - s[i]),  causal[i] = s[i] + pole·causal[i - 1]
// and forgets what is `Spline::kReach` samples away. So each thread computes a few neighbours along
// the line from their surroundings, whatever the line's length; a thread a line took 7.6 ms for
// 1×1×20000×64 on an H200. Neighbouring threads read neighbouring lines, or pieces of one line.
#include <cstdint>
#include <memory>
#include <utility>

#include "src/core/tensor/memory.h"
#include "src/warp/cuda/voxels.cuh"
#include "src/warp/spline.h"

namespace similis::warp_internal {
namespace {

// |pole|^17 is below 2⁻³², |pole|^29 below 2⁻⁵⁴: less than a rounding of the result.
template <class T> struct Spline {
  static constexpr int kOutputs = 8;  // neighbours of a thread
  static constexpr int kReach = sizeof(T) == 8 ? 28 : 16;
};

// Lines of dense arrays [outer][count][stride].
template <class T> struct Lines {
  const T* from;
  T* to;
  std::int64_t count, stride, pieces;
  bool is_transposed;
};

// Writes the coefficients of neighbours; load(k) is sample k of the line, k from -kReach on.
template <class T, class Load, class Store>
__device__ __forceinline__ void filter_piece(const Load& load, const Store& store) {
  constexpr int kOutputs = Spline<T>::kOutputs, kReach = Spline<T>::kReach;
  constexpr double kGain = 1.7320508075688772935;  // -6·kPole / (1 - kPole²)
  double sample[kOutputs], causal[kOutputs], sum = 0;
#pragma unroll
  for (int k = -kReach; k < 0; ++k) sum = fma(kPole, sum, load(k));
#pragma unroll
  for (int k = 0; k < kOutputs; ++k) {
    sample[k] = load(k);
    sum = fma(kPole, sum, sample[k]);
    causal[k] = sum;
  }
  sum = 0;
#pragma unroll
  for (int k = kOutputs + kReach - 1; k >= kOutputs; --k) sum = fma(kPole, sum, load(k));
#pragma unroll
  for (int k = kOutputs - 1; k >= 0; --k) {
    sum = fma(kPole, sum, sample[k]);
    store(k, kGain * (causal[k] + sum - sample[k]));
  }
}

template <class T>
__global__ __launch_bounds__(kThreads) void spline_kernel(const Lines<T> w, std::int64_t threads) {
  constexpr int kOutputs = Spline<T>::kOutputs, kReach = Spline<T>::kReach;
  const std::int64_t last = w.count - 1;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < threads; i += step) {
    const std::int64_t in_line = i / w.stride, outer = in_line / w.pieces;
    const std::int64_t line = outer * w.count * w.stride + i % w.stride;
    const std::int64_t first = (in_line - outer * w.pieces) * kOutputs;
    const T* const from = w.from + line + first * w.stride;
    T* const to = w.to + line + first * w.stride;
    if (first >= kReach && first + kOutputs + kReach <= w.count &&
        !(w.is_transposed && (first == kReach || first + kOutputs + kReach == w.count))) {
      filter_piece<T>([&](int k) { return static_cast<double>(from[k * w.stride]); },
          [&](int k, double value) { to[k * w.stride] = static_cast<T>(value); });
      continue;
    }
    filter_piece<T>(
        [&](int k) {
          std::int64_t at = first + k;
          while (at < 0 || at > last) at = at < 0 ? -at : 2 * last - at;  // mirrored
          const double value = static_cast<double>(w.from[line + at * w.stride]);
          return w.is_transposed && (at == 0 || at == last) ? 2 * value : value;
        },
        [&](int k, double value) {
          if (first + k > last) return;
          const bool is_end = first + k == 0 || first + k == last;
          to[k * w.stride] = static_cast<T>(w.is_transposed && is_end ? value / 2 : value);
        });
  }
}

template <class T>
void filter(const TensorView& image, int rank, bool is_transposed, const Execution& exec) {
  const std::int64_t elements = image.shape.count();
  const auto bytes = static_cast<std::size_t>(elements) * sizeof(T);
  const std::shared_ptr<void> memory = allocate_bytes(bytes, image.device, exec);
  const TensorView other(
      memory.get(), image.shape, dense_strides(image.shape), image.dtype, image.device);
  const TensorView *from = &image, *to = &other;
  for (int axis = 5 - rank; axis < 5; ++axis) {
    const std::int64_t count = image.shape[axis], stride = image.strides[axis];
    if (count == 1) continue;
    constexpr int kOutputs = Spline<T>::kOutputs;
    const Lines<T> lines{.from = static_cast<const T*>(from->data()),
        .to = static_cast<T*>(to->data()),
        .count = count,
        .stride = stride,
        .pieces = (count + kOutputs - 1) / kOutputs,
        .is_transposed = is_transposed};
    const std::int64_t threads = elements / count * lines.pieces;
    gpu::launch("sample", exec.queue.handle, blocks_for_items(threads), kThreads, 0,
        spline_kernel<T>, lines, threads);
    std::swap(from, to);
  }
  if (from != &image) copy_cuda(other, image, exec);
}

}  // namespace

void spline_filter_cuda(
    const TensorView& image, int rank, Filter direction, const Execution& exec) {
  const gpu::Current current(image.device);
  const bool is_transposed = direction == Filter::transposed;
  image.dtype == DType::f64 ? filter<double>(image, rank, is_transposed, exec)
                            : filter<float>(image, rank, is_transposed, exec);
}

}  // namespace similis::warp_internal
