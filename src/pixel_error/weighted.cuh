// SPDX-License-Identifier: Apache-2.0
// Errors of pixels under a mask. Threads take packs of 16 bytes of an image where pixels lie side
// by side, and else four pixels of a line at once, as far apart as the threads that share it.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "src/pixel_error/errors.cuh"

namespace similis::pixel_error_internal {

// Number of pixels that a thread takes at once where they lie side by side: 16 bytes of floats.
template <class T>
constexpr int kPackUnderMask = std::is_integral_v<T> ? 4 : 16 / static_cast<int>(sizeof(T));

struct WeightedWork {
  Work of;
  const void* mask;
  DType mask_dtype;
  bool adds_weights, adds_errors;  // errors with their gradients
  bool is_dense;  // the pixels of a line lie side by side in all arrays, whole packs of them
  int across;     // threads that share a line, a power of two; the others take other lines
  // Weights that each block adds up, [result][slot], which divide instead of of.divisor; null if
  // nothing is divided by weights.
  double* weights;
  double repeats;  // of each weight in the sum
};

struct WeightedSums {
  double errors = 0, weights = 0;
};

constexpr int kTogetherWeighted = 4;  // pixels of a thread whose loads are under way at once

template <class T>
__device__ __forceinline__ void load_as(const void* data, std::int64_t begin, std::int64_t stride,
    const std::int64_t (&places)[kTogetherWeighted], T (&to)[kTogetherWeighted]) {
#pragma unroll
  for (int k = 0; k < kTogetherWeighted; ++k) {
    to[k] = static_cast<const T*>(data)[begin + places[k] * stride];
  }
}
// Calls load(M{}) with the type of the mask's elements.
template <class Load> __device__ __forceinline__ void visit_mask(DType dtype, const Load& load) {
  switch (dtype) {
    case DType::u8: load(std::uint8_t{}); break;
    case DType::u16: load(std::uint16_t{}); break;
    case DType::f16: load(F16{}); break;
    case DType::bf16: load(BF16{}); break;
    case DType::f32: load(float{}); break;
    default: load(double{}); break;
  }
}

// Adds a pixel's weight and weighted error, and returns the gradient by x.
template <class T>
__device__ __forceinline__ double add_pixel(const WeightedWork& weighted, double own, const T& x,
    const T& y, double scale, WeightedSums& sums) {
  const double weight = own >= 0 ? own : static_cast<double>(NAN);  // it is no weight
  sums.weights += weight;
  if (!weighted.adds_errors) return 0;
  PixelError pixel = {};
  if (own != 0) pixel = error_of(weighted.of.error, number(x) - number(y));  // else it may be NaN
  sums.errors += weight * pixel.error;
  return weight * pixel.slope * scale;
}

// Does add_weighted()'s work for the pixels of a pack, which begin at `at`.
template <class T>
__device__ __forceinline__ void add_weighted_pack(
    const WeightedWork& weighted, const Walk::Axis& at, double scale, WeightedSums& sums) {
  constexpr int kCount = kPackUnderMask<T>;
  using Pixels = Pack<T, kCount>;
  const Work& work = weighted.of;
  Pixels x = {}, y = {}, by_x = {}, by_y = {};
  if (weighted.adds_errors) {
    x = *reinterpret_cast<const Pixels*>(static_cast<const T*>(work.x) + at.x);
    y = *reinterpret_cast<const Pixels*>(static_cast<const T*>(work.y) + at.y);
  }
  double weights[kCount];
  visit_mask(weighted.mask_dtype, [&]<class M>(M) {
    const auto loaded =
        *reinterpret_cast<const Pack<M, kCount>*>(static_cast<const M*>(weighted.mask) + at.mask);
#pragma unroll
    for (int k = 0; k < kCount; ++k) weights[k] = number(loaded.of[k]);
  });
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const double slope = add_pixel(weighted, weights[k], x.of[k], y.of[k], scale, sums);
    if constexpr (!std::is_integral_v<T>) {
      write(slope, &by_x.of[k]);
      write(-slope, &by_y.of[k]);
    }
  }
  if constexpr (!std::is_integral_v<T>) {
    if (!weighted.adds_errors) return;
    if (work.x_gradient) {
      *reinterpret_cast<Pixels*>(static_cast<T*>(work.x_gradient) + at.x_gradient) = by_x;
    }
    if (work.y_gradient) {
      *reinterpret_cast<Pixels*>(static_cast<T*>(work.y_gradient) + at.y_gradient) = by_y;
    }
  }
}

// Adds the weights of up to kTogetherWeighted pixels of a line, which begins at `start`, from place
// `first` on and `across` apart, and their weighted errors, and writes the gradients of these.
// Those beyond the line's end are the first again. The pixels' loads are under way before the
// weights', whose dtype is a switch.
template <class T>
__device__ __forceinline__ void add_weighted(const WeightedWork& weighted, const Walk::Axis& start,
    const Walk::Axis& line, double scale, std::int64_t first, WeightedSums& sums) {
  const Work& work = weighted.of;
  std::int64_t places[kTogetherWeighted];
#pragma unroll
  for (int k = 0; k < kTogetherWeighted; ++k) {
    const std::int64_t place = first + k * weighted.across;
    places[k] = place < line.extent ? place : first;
  }
  T x[kTogetherWeighted] = {}, y[kTogetherWeighted] = {};
  if (weighted.adds_errors) {
    load_as(work.x, start.x, line.x, places, x);
    load_as(work.y, start.y, line.y, places, y);
  }
  double weights[kTogetherWeighted];
  visit_mask(weighted.mask_dtype, [&]<class M>(M) {
    M loaded[kTogetherWeighted];
    load_as(weighted.mask, start.mask, line.mask, places, loaded);
#pragma unroll
    for (int k = 0; k < kTogetherWeighted; ++k) weights[k] = number(loaded[k]);
  });
#pragma unroll
  for (int k = 0; k < kTogetherWeighted; ++k) {
    if (first + k * weighted.across >= line.extent) break;
    const double slope = add_pixel(weighted, weights[k], x[k], y[k], scale, sums);
    if constexpr (!std::is_integral_v<T>) {
      if (!weighted.adds_errors) continue;
      if (work.x_gradient) {
        write(slope,
            static_cast<T*>(work.x_gradient) + start.x_gradient + places[k] * line.x_gradient);
      }
      if (work.y_gradient) {
        write(-slope,
            static_cast<T*>(work.y_gradient) + start.y_gradient + places[k] * line.y_gradient);
      }
    }
  }
}

// Adds what the block of this slot takes of a result, in packs.
template <class T>
__device__ void add_packs(const WeightedWork& weighted, const Walk::Axis& start, double scale,
    std::int64_t slot, WeightedSums& sums) {
  const Walk& walk = weighted.of.walk;
  const std::int64_t packs = walk.axes[walk.rank - 1].extent / kPackUnderMask<T>;
  const std::int64_t all = walk.pixels / kPackUnderMask<T>, step = weighted.of.slots * kThreads;
  for (std::int64_t i = slot * kThreads + threadIdx.x; i < all; i += step) {
    const std::int64_t line = divided(i, packs), first = (i - line * packs) * kPackUnderMask<T>;
    Walk::Axis at = start;
    walk.move(at, walk.kept_axes, walk.rank - 2, line);
    at.x += first;
    at.y += first;
    at.x_gradient += first;
    at.y_gradient += first;
    at.mask += first;
    add_weighted_pack<T>(weighted, at, scale, sums);
  }
}

// Adds what the block of this slot takes of a result, whatever its layout: several lines at once
// where these are short, and parts of them where they are long.
template <class T>
__device__ void add_lines(const WeightedWork& weighted, const Walk::Axis& start, double scale,
    std::int64_t slot, WeightedSums& sums) {
  const Walk& walk = weighted.of.walk;
  const Walk::Axis& line = walk.axes[walk.rank - 1];
  const std::int64_t lines = walk.pixels / line.extent;
  const int lines_at_once = kThreads / weighted.across;
  const int own_line = static_cast<int>(threadIdx.x) / weighted.across;
  const int own_place = static_cast<int>(threadIdx.x) % weighted.across;
  const std::int64_t part = std::int64_t{kTogetherWeighted} * weighted.across;
  const std::int64_t parts = (line.extent + part - 1) / part;
  const std::int64_t units = (lines + lines_at_once - 1) / lines_at_once * parts;
  for (std::int64_t unit = slot; unit < units; unit += weighted.of.slots) {
    const std::int64_t group = divided(unit, parts);
    const std::int64_t index = group * lines_at_once + own_line;
    const std::int64_t first = (unit - group * parts) * part + own_place;
    if (index >= lines || first >= line.extent) continue;
    Walk::Axis at = start;
    walk.move(at, walk.kept_axes, walk.rank - 2, index);
    add_weighted<T>(weighted, at, line, scale, first, sums);
  }
}

template <class T>
__global__ __launch_bounds__(kThreads) void weighted_errors_kernel(const WeightedWork weighted) {
  const Work& work = weighted.of;
  const Walk& walk = work.walk;
  for (std::int64_t block = blockIdx.x; block < walk.results * work.slots; block += gridDim.x) {
    const std::int64_t result = block / work.slots, slot = block - result * work.slots;
    double scale = 0;  // of gradients
    if (weighted.adds_errors && (work.x_gradient || work.y_gradient)) {
      const double divisor =
          weighted.weights ? sum_of_slots(weighted.weights, result, work.slots) : work.divisor;
      scale = divisor == 0 ? 0 : work.upstream.of(result) / divisor;
    }
    Walk::Axis start{};
    walk.move(start, 0, walk.kept_axes - 1, result);
    WeightedSums sums;
    if (weighted.is_dense) {
      add_packs<T>(weighted, start, scale, slot, sums);
    } else {
      add_lines<T>(weighted, start, scale, slot, sums);
    }
    if (weighted.adds_weights) {
      const double total = gpu::block_sum<kThreads>(sums.weights);
      if (threadIdx.x == 0) weighted.weights[block] = total * weighted.repeats;
      __syncthreads();
    }
    if (weighted.adds_errors && work.sums) {
      const double total = gpu::block_sum<kThreads>(sums.errors);
      if (threadIdx.x == 0) work.sums[block] = total;
      __syncthreads();
    }
  }
}

}  // namespace similis::pixel_error_internal
