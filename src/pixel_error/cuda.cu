// SPDX-License-Identifier: Apache-2.0
// Errors of pixels on the GPU. Blocks share the pixels of each result, add them up as doubles and
// write their gradients; a second launch adds the sums of the blocks in their order. Threads take
// 16 bytes at once where pixels lie side by side. The arrays' layout alone decides which thread
// takes which pixels, and so the bits of the result. Under a mask the weights, which a mean is
// divided by, are added up with the errors; in a launch before them if there are gradients, which
// every block then divides by the sum of the blocks' weights.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/pixel_error/errors.cuh"
#include "src/pixel_error/pixel_error.h"
#include "src/pixel_error/weighted.cuh"

namespace similis::pixel_error_internal {
namespace {

constexpr std::int64_t kPixelsOfBlock = 16 * kThreads;
constexpr std::int64_t kMostSlots = 1024;

// Adds the errors of a thread's part of pixels that lie side by side, and writes their gradients.
template <class T>
__device__ double add_dense(
    const Work& work, const Walk::Axis& start, double scale, std::int64_t slot) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T)), kTogether = 2;  // loads under way
  using Pixels = Pack<T, kAtOnce>;
  const auto* const x = reinterpret_cast<const Pixels*>(static_cast<const T*>(work.x) + start.x);
  const auto* const y = reinterpret_cast<const Pixels*>(static_cast<const T*>(work.y) + start.y);
  auto* const x_gradient =
      reinterpret_cast<Pixels*>(static_cast<T*>(work.x_gradient) + start.x_gradient);
  auto* const y_gradient =
      reinterpret_cast<Pixels*>(static_cast<T*>(work.y_gradient) + start.y_gradient);
  const std::int64_t packs = work.walk.pixels / kAtOnce, step = work.slots * kThreads;
  double sum = 0;
  const auto add = [&](const Pixels& a, const Pixels& b, std::int64_t i) {
    Pixels by_x = {}, by_y = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const PixelError pixel = error_of(work.error, number(a.of[k]) - number(b.of[k]));
      sum += pixel.error;
      if constexpr (!std::is_integral_v<T>) {
        write(pixel.slope * scale, &by_x.of[k]);
        write(-pixel.slope * scale, &by_y.of[k]);
      }
    }
    if constexpr (!std::is_integral_v<T>) {
      if (work.x_gradient) x_gradient[i] = by_x;
      if (work.y_gradient) y_gradient[i] = by_y;
    }
  };
  std::int64_t i = slot * kThreads + threadIdx.x;
  for (; i + (kTogether - 1) * step < packs; i += kTogether * step) {
    Pixels a[kTogether], b[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      a[k] = x[i + k * step];
      b[k] = y[i + k * step];
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) add(a[k], b[k], i + k * step);
  }
  if (i < packs) add(x[i], y[i], i);
  return sum;
}

// Adds the errors of every step-th pixel from `first` on, and writes their gradients.
template <class T>
__device__ double add_apart(const Work& work, const Walk::Axis& start, double scale,
    std::int64_t first, std::int64_t step) {
  const Walk& walk = work.walk;
  double sum = 0;
  for (std::int64_t i = first; i < walk.pixels; i += step) {
    Walk::Axis at = start;
    walk.move(at, walk.kept_axes, walk.rank - 1, i);
    const double difference =
        number(static_cast<const T*>(work.x)[at.x]) - number(static_cast<const T*>(work.y)[at.y]);
    const PixelError pixel = error_of(work.error, difference);
    sum += pixel.error;
    if constexpr (!std::is_integral_v<T>) {
      const double slope = pixel.slope * scale;
      if (work.x_gradient) write(slope, static_cast<T*>(work.x_gradient) + at.x_gradient);
      if (work.y_gradient) write(-slope, static_cast<T*>(work.y_gradient) + at.y_gradient);
    }
  }
  return sum;
}

template <class T> __global__ __launch_bounds__(kThreads) void errors_kernel(const Work work) {
  const Walk& walk = work.walk;
  for (std::int64_t block = blockIdx.x; block < walk.results * work.slots; block += gridDim.x) {
    const std::int64_t result = block / work.slots, slot = block - result * work.slots;
    const double scale = work.upstream.of(result) / work.divisor;
    Walk::Axis start{};
    walk.move(start, 0, walk.kept_axes - 1, result);
    double sum = 0;
    std::int64_t first = slot * kThreads + threadIdx.x;
    if (work.is_dense) {
      constexpr std::int64_t kAtOnce = 16 / sizeof(T);
      sum = add_dense<T>(work, start, scale, slot);
      first += walk.pixels / kAtOnce * kAtOnce;  // those that fill no 16 bytes
    }
    sum += add_apart<T>(work, start, scale, first, work.slots * kThreads);
    const double total = gpu::block_sum<kThreads>(sum);
    if (work.sums && threadIdx.x == 0) work.sums[block] = total;
    __syncthreads();
  }
}

struct Values {
  const double* sums;  // [result][slot]
  std::int64_t results, slots;
  double divisor;
  const double* weights;  // [result][slot], which divide instead; null if none do
  void* value;
  DType dtype;
};

__global__ __launch_bounds__(kThreads) void values_kernel(const Values v) {
  for (std::int64_t result = blockIdx.x; result < v.results; result += gridDim.x) {
    const double total = sum_of_slots(v.sums, result, v.slots);
    const double divisor = v.weights ? sum_of_slots(v.weights, result, v.slots) : v.divisor;
    if (threadIdx.x == 0) gpu::store_element(v.value, v.dtype, result, total / divisor);
    __syncthreads();
  }
}

__global__ __launch_bounds__(kThreads) void decibels_kernel(
    const double* errors, std::int64_t count, double peak, void* value, DType dtype) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    gpu::store_element(value, dtype, i, 10 * log10(peak / errors[i]));
  }
}

// True if the pixels of each result lie side by side in all arrays, from multiples of 16 bytes on.
bool is_dense(const Walk& walk, const PixelPass& pass) {
  const auto at_once = 16 / static_cast<std::int64_t>(size_bytes(pass.x.dtype));
  const auto begins = [&](const TensorView& view) {
    return reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0;
  };
  if (!begins(pass.x) || !begins(pass.y) || !begins(pass.x_gradient) || !begins(pass.y_gradient)) {
    return false;
  }
  const bool has_x = !pass.x_gradient.empty(), has_y = !pass.y_gradient.empty();
  for (int i = 0; i < walk.rank; ++i) {
    const Walk::Axis& axis = walk.axes[i];
    const std::int64_t strides[4] = {
        axis.x, axis.y, has_x ? axis.x_gradient : axis.x, has_y ? axis.y_gradient : axis.x};
    for (const std::int64_t stride : strides) {
      const bool fits = i < walk.kept_axes ? stride % at_once == 0 : stride == 1;
      if (!fits) return false;
    }
  }
  return walk.rank - walk.kept_axes == 1;
}

// True if the pixels of each line lie side by side in all arrays, in whole packs from multiples of
// 16 bytes on, or of a pack of the mask where that is less.
bool has_packs(const Walk& walk, const PixelPass& pass) {
  const std::int64_t count = is_floating_point(pass.x.dtype)
                                 ? 16 / static_cast<std::int64_t>(size_bytes(pass.x.dtype))
                                 : 4;
  const auto begins = [&](const TensorView& view) {
    const auto bytes = static_cast<std::uintptr_t>(count) * size_bytes(view.dtype);
    return view.empty() ||
           reinterpret_cast<std::uintptr_t>(view.data()) % std::min<std::uintptr_t>(bytes, 16) == 0;
  };
  if (!begins(pass.x) || !begins(pass.y) || !begins(pass.x_gradient) || !begins(pass.y_gradient) ||
      !begins(pass.mask)) {
    return false;
  }
  const bool has_x = !pass.x_gradient.empty(), has_y = !pass.y_gradient.empty();
  for (int i = 0; i < walk.rank; ++i) {
    const Walk::Axis& axis = walk.axes[i];
    const std::int64_t strides[5] = {axis.x, axis.y, has_x ? axis.x_gradient : axis.x,
        has_y ? axis.y_gradient : axis.x, axis.mask};
    for (const std::int64_t stride : strides) {
      const bool fits = i == walk.rank - 1 ? stride == 1 : stride % count == 0;
      if (!fits) return false;
    }
  }
  return walk.rank > walk.kept_axes && walk.axes[walk.rank - 1].extent % count == 0;
}

auto errors_kernel_of(DType dtype) {
  switch (dtype) {
    case DType::u8: return errors_kernel<std::uint8_t>;
    case DType::u16: return errors_kernel<std::uint16_t>;
    case DType::f16: return errors_kernel<F16>;
    case DType::bf16: return errors_kernel<BF16>;
    case DType::f32: return errors_kernel<float>;
    default: return errors_kernel<double>;
  }
}

auto weighted_kernel_of(DType dtype) {
  switch (dtype) {
    case DType::u8: return weighted_errors_kernel<std::uint8_t>;
    case DType::u16: return weighted_errors_kernel<std::uint16_t>;
    case DType::f16: return weighted_errors_kernel<F16>;
    case DType::bf16: return weighted_errors_kernel<BF16>;
    case DType::f32: return weighted_errors_kernel<float>;
    default: return weighted_errors_kernel<double>;
  }
}

// Returns the number of threads that take a line of this extent.
int threads_across(std::int64_t extent) {
  int threads = 1;
  while (threads < extent && threads < kThreads) threads *= 2;
  return threads;
}

// One call, as work of the device.
class Call {
 public:
  Call(Error error, const PixelPass& pass, const Execution& exec)
      : pass_(pass),
        exec_(exec),
        work_{.walk = Walk(PixelWalk(pass)),
            .is_dense = false,
            .x = pass.x.data(),
            .y = pass.y.data(),
            .x_gradient = pass.x_gradient.data(),
            .y_gradient = pass.y_gradient.data(),
            .upstream = gpu::Upstream(pass.upstream),
            .error = error,
            .divisor = pass.divisor,
            .slots = 1,
            .sums = nullptr} {
    work_.slots = std::clamp<std::int64_t>(work_.walk.pixels / kPixelsOfBlock, 1, kMostSlots);
    const bool divides = !pass.mask.empty() && !pass.is_sum;
    const std::int64_t sums = pass.value.empty() ? 0 : blocks(), weights = divides ? blocks() : 0;
    if (sums + weights == 0) return;
    memory_ = allocate_bytes(
        static_cast<std::size_t>(sums + weights) * sizeof(double), pass.x.device, exec);
    auto* const memory = static_cast<double*>(memory_.get());
    if (sums > 0) work_.sums = memory;
    if (divides) weights_ = memory + sums;
  }

  void run() {
    if (pass_.mask.empty()) {
      work_.is_dense = is_dense(work_.walk, pass_);
      gpu::launch(pass_.operation, exec_.queue.handle, gpu::blocks_of(blocks()), kThreads, 0,
          errors_kernel_of(pass_.x.dtype), work_);
    } else {
      const bool has_gradient = work_.x_gradient || work_.y_gradient;
      if (weights_ && has_gradient) add_weighted(true, false);
      add_weighted(weights_ && !has_gradient, true);
    }
    if (!pass_.value.empty()) write_values();
  }

 private:
  std::int64_t blocks() const { return work_.walk.results * work_.slots; }

  void add_weighted(bool adds_weights, bool adds_errors) const {
    WeightedWork weighted{.of = work_,
        .mask = pass_.mask.data(),
        .mask_dtype = pass_.mask.dtype,
        .adds_weights = adds_weights,
        .adds_errors = adds_errors,
        .is_dense = has_packs(work_.walk, pass_),
        .across = threads_across(work_.walk.axes[work_.walk.rank - 1].extent),
        .weights = weights_,
        .repeats = 1};
    if (!adds_errors) weighted.repeats = weighted.of.walk.leave_out_repeats();
    gpu::launch(pass_.operation, exec_.queue.handle, gpu::blocks_of(blocks()), kThreads, 0,
        weighted_kernel_of(pass_.x.dtype), weighted);
  }

  void write_values() const {
    const Values values{.sums = work_.sums,
        .results = work_.walk.results,
        .slots = work_.slots,
        .divisor = pass_.divisor,
        .weights = weights_,
        .value = pass_.value.data(),
        .dtype = pass_.value.dtype};
    gpu::launch(pass_.operation, exec_.queue.handle, gpu::blocks_of(values.results), kThreads, 0,
        values_kernel, values);
  }

  const PixelPass& pass_;
  const Execution& exec_;
  Work work_;
  std::shared_ptr<void> memory_;  // the blocks' sums, then their weights
  double* weights_ = nullptr;     // null if nothing is divided by weights
};

}  // namespace

void pixel_error_cuda(Error error, const PixelPass& pass, const Execution& exec) {
  const gpu::Current current(pass.x.device);
  Call(error, pass, exec).run();
}

void decibels_cuda(
    const TensorView& error, double data_range, const TensorView& value, const Execution& exec) {
  const gpu::Current current(error.device);
  const std::int64_t count = error.shape.count();
  gpu::launch("psnr", exec.queue.handle, gpu::blocks_for_items(count, kThreads), kThreads, 0,
      decibels_kernel, static_cast<const double*>(error.data()), count, data_range * data_range,
      value.data(), value.dtype);
}

}  // namespace similis::pixel_error_internal
