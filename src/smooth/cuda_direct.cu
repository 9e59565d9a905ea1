// SPDX-License-Identifier: Apache-2.0
// Smoothing along one axis, from memory: what the two passes of cuda.cu do not take.
//
//   direct_kernel  any axis: a thread sums runs of neighbours from memory, by the caches
//   rows_kernel    along x in dense memory: tiles of 4 rows with their rims in shared memory, as
//                  runs of neighbouring threads would lie far apart
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/upload.cuh"
#include "src/gpu/cuda/view.h"
#include "src/smooth/cuda_parts.h"

namespace similis::smooth_internal {
namespace {

constexpr int kInlineTaps = 33;  // that a launch brings along; more lie in memory
constexpr int kOutputs = 8;      // neighbours along the axis that a thread takes
constexpr int kRowThreads = 192, kRowsAtOnce = 4;
constexpr std::int64_t kMostRim = 96;  // elements beside a tile of rows

struct DirectPass {
  Elements from, to;
  std::int64_t shape[6] = {};
  std::int64_t count = 0;   // of threads' items: runs of kOutputs along the axis
  std::int64_t extent = 0;  // of the axis
  bool is_short = false;    // 32 bits hold the count
  int axis = 0;
  Outside outside = Outside::zero;
  std::int64_t radius = 0;
  const double *taps = nullptr, *tails = nullptr;
  double own_taps[kInlineTaps] = {};

  __device__ double tap(std::int64_t k) const {
    return radius < kInlineTaps ? own_taps[k < 0 ? -k : k] : taps[k < 0 ? -k : k];
  }
};

// Sums of kOutputs neighbours along the axis from `begin` on, of values of type T: a load of a
// value and one of a tap for up to kOutputs products, which are tested at the ends of a run alone.
// Products of values outside the taps are not formed, since a NaN would reach them.
template <class T>
__device__ __forceinline__ void sums_of_run(const DirectPass& p, std::int64_t from,
    std::int64_t begin, std::int64_t step, T (&sums)[kOutputs]) {
  const T* const values = static_cast<const T*>(p.from.data) + from;
  const bool replicates = p.outside == Outside::replicated;
  const int last = 2 * static_cast<int>(p.radius), count = last + kOutputs;
  T weights[kOutputs] = {};  // of tap k at k modulo kOutputs
  for (int block = 0; block < count; block += kOutputs) {
    const bool is_inner = block > 0 && block + kOutputs - 1 <= last;
#pragma unroll
    for (int j = 0; j < kOutputs; ++j) {
      const int i = block + j;
      if (i >= count) break;
      weights[j] = i <= last ? static_cast<T>(p.tap(i - p.radius)) : 0;
      const std::int64_t place = begin - p.radius + i, inside = place < 0          ? 0
                                                                : place < p.extent ? place
                                                                                   : p.extent - 1;
      const T own = replicates || place == inside ? values[inside * step] : static_cast<T>(0);
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        if (is_inner || (i >= o && i - o <= last)) {
          sums[o] = fma(weights[(j - o) & (kOutputs - 1)], own, sums[o]);
        }
      }
    }
  }
}

// A run of outputs a thread, and another behind all threads.
template <class T>
__global__ __launch_bounds__(256) void direct_kernel(const SIMILIS_GRID_CONSTANT DirectPass p) {
  const bool is_own_type = p.from.dtype == (sizeof(T) == sizeof(double) ? DType::f64 : DType::f32);
  const std::int64_t threads = std::int64_t{gridDim.x} * 256;
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < p.count; i += threads) {
    std::int64_t rest = i, from = 0, to = 0, begin = 0;
    for (int axis = 5; axis >= 0; --axis) {
      if (p.shape[axis] == 1) continue;
      std::int64_t place;
      if (p.is_short) {
        const auto number = static_cast<unsigned>(rest),
                   extent = static_cast<unsigned>(p.shape[axis]);
        place = number % extent;
        rest = number / extent;
      } else {
        place = rest % p.shape[axis];
        rest /= p.shape[axis];
      }
      if (axis == p.axis) {
        begin = place * kOutputs;
      } else {
        to += place * p.to.strides[axis];
        from += place * p.from.strides[axis];
      }
    }
    const std::int64_t last = p.extent - 1, step = p.from.strides[p.axis];
    T sums[kOutputs] = {};
    if (is_own_type &&
        (p.outside != Outside::folded || (begin > 0 && begin + kOutputs - 1 < last))) {
      sums_of_run(p, from, begin, step, sums);
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        if (begin + o > last) break;
        gpu::store_element(p.to.data, p.to.dtype, to + (begin + o) * p.to.strides[p.axis],
            static_cast<double>(sums[o]));
      }
      continue;
    }
    const auto value_at = [&](std::int64_t place) {
      return static_cast<T>(gpu::load_element(p.from.data, p.from.dtype, from + place * step));
    };
    for (std::int64_t at = begin; at <= last && at < begin + kOutputs; ++at) {
      const bool folds = p.outside == Outside::folded && (at == 0 || at == last) && last > 0;
      T sum = 0;
      if (p.outside == Outside::folded && last == 0) {
        sum = value_at(0);
      } else {
        for (std::int64_t k = -p.radius; k <= p.radius; ++k) {
          std::int64_t place = at + k;
          if (place < 0 || place > last) {
            if (p.outside != Outside::replicated) continue;
            place = place < 0 ? 0 : last;
          }
          const double weight = folds ? p.tails[k < 0 ? -k : k] : p.tap(k);
          sum = fma(static_cast<T>(weight), value_at(place), sum);
        }
      }
      gpu::store_element(
          p.to.data, p.to.dtype, to + at * p.to.strides[p.axis], static_cast<double>(sum));
    }
  }
}

// Along x, in dense memory of type T; not of an adjoint.
template <class T>
__global__ __launch_bounds__(kRowThreads) void rows_kernel(
    const SIMILIS_GRID_CONSTANT DirectPass p, std::int64_t rows, int parts, int tiles) {
  SIMILIS_DYNAMIC_SHARED(double, shared, 16);  // [kRowsAtOnce][kRowThreads + 2·rim]
  T* const tile = reinterpret_cast<T*>(shared);
  const int t = static_cast<int>(threadIdx.x), radius = static_cast<int>(p.radius),
            rim = radius * parts, pitch = kRowThreads + 2 * rim,
            width = static_cast<int>(p.extent) * parts;
  const std::int64_t block = blockIdx.x, row0 = block / tiles * kRowsAtOnce;
  const int first = static_cast<int>(block % tiles) * kRowThreads;
  const T* const from = static_cast<const T*>(p.from.data);
  for (int i = t; i < pitch; i += kRowThreads) {
    // Beside the row, the same component of the outermost voxel.
    const int e = first - rim + i, part = (e + rim) % parts,
              inside = e < 0       ? part
                       : e < width ? e
                                   : width - parts + part;
    const bool exists = e == inside || p.outside == Outside::replicated;
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      tile[r * pitch + i] =
          exists && row0 + r < rows ? from[(row0 + r) * width + inside] : static_cast<T>(0);
    }
  }
  __syncthreads();
  T sums[kRowsAtOnce] = {};
  for (int k = -radius; k <= radius; ++k) {
    const auto weight = static_cast<T>(p.tap(k));
    const T* const values = tile + t + (radius + k) * parts;
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) sums[r] = fma(weight, values[r * pitch], sums[r]);
  }
  if (first + t >= width) return;
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    if (row0 + r < rows) static_cast<T*>(p.to.data)[(row0 + r) * width + first + t] = sums[r];
  }
}

template <class T> void launch_rows(const DirectPass& p, const Extents& shape, void* stream) {
  const std::int64_t parts = shape[kComponent], width = shape[kX] * parts,
                     rows = shape.count() / width, tiles = (width + kRowThreads - 1) / kRowThreads;
  const std::size_t pitch = kRowThreads + 2 * static_cast<std::size_t>(p.radius * parts);
  gpu::launch("smooth", stream,
      static_cast<unsigned>(tiles * ((rows + kRowsAtOnce - 1) / kRowsAtOnce)), kRowThreads,
      sizeof(T) * kRowsAtOnce * pitch, rows_kernel<T>, p, rows, static_cast<int>(parts),
      static_cast<int>(tiles));
}

bool is_dense(const Elements& view, const Extents& shape) {
  std::int64_t stride = 1;
  for (int axis = kComponent; axis >= kImage; --axis) {
    if (shape[axis] > 1 && view.strides[axis] != stride) return false;
    stride *= shape[axis];
  }
  return true;
}

// Returns true if rows_kernel takes the pass.
bool fits_rows(const DirectPass& p, const Extents& shape, DType arithmetic) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // that 32 bits hold
  return p.axis == kX && p.outside != Outside::folded && p.from.dtype == arithmetic &&
         p.to.dtype == arithmetic && is_dense(p.from, shape) && is_dense(p.to, shape) &&
         p.radius < kInlineTaps && p.radius * shape[kComponent] <= kMostRim &&
         shape.count() < kMost;
}

}  // namespace

void smooth_directly(const SmoothPass& pass, const Execution& exec) {
  const Extents& shape = pass.x.shape;
  const DType arithmetic = pass.x.dtype == DType::f64 ? DType::f64 : DType::f32;
  Tensor works[2];
  std::vector<std::shared_ptr<void>> weights;
  std::vector<int> axes;
  for (int a = 0; a < 3; ++a) {
    if (radius_of(pass.taps[static_cast<std::size_t>(a)]) > 0) axes.push_back(a);
  }
  // Outputs of a step do not overlap its inputs: a copy comes last, which reads what it writes.
  if (axes.size() < 2) axes.push_back(-1);
  TensorView from = pass.x;
  for (std::size_t step = 0; step < axes.size(); ++step) {
    TensorView to = pass.output;
    if (step + 1 < axes.size()) {
      Tensor& work = works[step % 2];
      if (work.empty()) work = allocate(shape, arithmetic, pass.x.device, exec);
      to = work;
    }
    const bool is_copy = axes[step] < 0;
    const int axis = is_copy ? int{kX} : kZ + axes[step];
    const std::vector<double> one = {1};
    const std::vector<double>& taps =
        is_copy ? one : pass.taps[static_cast<std::size_t>(axes[step])];
    DirectPass p{.from = Elements(from),
        .to = Elements(to),
        .extent = shape[axis],
        .axis = axis,
        .outside = is_copy ? Outside::zero : outside_of(pass),
        .radius = radius_of(taps)};
    for (int a = 0; a < 6; ++a) p.shape[a] = shape[a];
    p.shape[axis] = (shape[axis] + kOutputs - 1) / kOutputs;
    p.count = shape.count() / shape[axis] * p.shape[axis];
    p.is_short = p.count < std::int64_t{1} << 31;
    if (p.radius < kInlineTaps) std::copy(taps.begin(), taps.end(), p.own_taps);
    if (p.radius >= kInlineTaps || p.outside == Outside::folded) {
      weights.push_back(allocate_bytes(2 * sizeof(double) * taps.size(), pass.x.device, exec));
      auto* const on_device = static_cast<double*>(weights.back().get());
      gpu::upload("smooth", exec.queue.handle, taps, on_device);
      gpu::upload("smooth", exec.queue.handle, tails_of(taps), on_device + taps.size());
      p.taps = on_device;
      p.tails = on_device + taps.size();
    }
    const bool is_f64 = arithmetic == DType::f64;
    if (!is_copy && fits_rows(p, shape, arithmetic)) {
      (is_f64 ? launch_rows<double> : launch_rows<float>)(p, shape, exec.queue.handle);
    } else {
      gpu::launch("smooth", exec.queue.handle, gpu::blocks_for_items(p.count, 256), 256, 0,
          is_f64 ? direct_kernel<double> : direct_kernel<float>, p);
    }
    from = to;
  }
}

}  // namespace similis::smooth_internal
