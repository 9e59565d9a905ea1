// SPDX-License-Identifier: Apache-2.0
// Smoothing along one axis, each output from memory: what the two passes of cuda.cu do not take.
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

struct DirectPass {
  Elements from, to;
  std::int64_t shape[6] = {};
  std::int64_t count = 0;  // of elements
  int axis = 0;
  Outside outside = Outside::zero;
  std::int64_t radius = 0;
  const double *taps = nullptr, *tails = nullptr;
};

// One output a thread, and another behind all threads.
template <class T>
__global__ __launch_bounds__(256) void direct_kernel(const SIMILIS_GRID_CONSTANT DirectPass p) {
  const std::int64_t threads = std::int64_t{gridDim.x} * 256;
  for (std::int64_t i = std::int64_t{blockIdx.x} * 256 + threadIdx.x; i < p.count; i += threads) {
    std::int64_t rest = i, from = 0, to = 0, at = 0;
    for (int axis = 5; axis >= 0; --axis) {
      const std::int64_t place = rest % p.shape[axis];
      rest /= p.shape[axis];
      to += place * p.to.strides[axis];
      if (axis == p.axis) {
        at = place;
      } else {
        from += place * p.from.strides[axis];
      }
    }
    const std::int64_t last = p.shape[p.axis] - 1, step = p.from.strides[p.axis];
    const bool folds = p.outside == Outside::folded && (at == 0 || at == last) && last > 0;
    const auto value_at = [&](std::int64_t place) {
      return static_cast<T>(gpu::load_element(p.from.data, p.from.dtype, from + place * step));
    };
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
        const double weight = (folds ? p.tails : p.taps)[k < 0 ? -k : k];
        sum = fma(static_cast<T>(weight), value_at(place), sum);
      }
    }
    gpu::store_element(p.to.data, p.to.dtype, to, static_cast<double>(sum));
  }
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
    DirectPass p{.from = Elements(from),
        .to = Elements(to),
        .count = shape.count(),
        .axis = axes[step] < 0 ? int{kX} : kZ + axes[step],
        .outside = outside_of(pass)};
    for (int axis = 0; axis < 6; ++axis) p.shape[axis] = shape[axis];
    const std::vector<double> one = {1};
    const std::vector<double>& taps =
        axes[step] < 0 ? one : pass.taps[static_cast<std::size_t>(axes[step])];
    if (axes[step] < 0) p.outside = Outside::zero;
    p.radius = radius_of(taps);
    weights.push_back(allocate_bytes(2 * sizeof(double) * taps.size(), pass.x.device, exec));
    auto* const on_device = static_cast<double*>(weights.back().get());
    gpu::upload("smooth", exec.queue.handle, taps, on_device);
    gpu::upload("smooth", exec.queue.handle, tails_of(taps), on_device + taps.size());
    p.taps = on_device;
    p.tails = on_device + taps.size();
    gpu::launch("smooth", exec.queue.handle, gpu::blocks_for_items(p.count, 256), 256, 0,
        arithmetic == DType::f64 ? direct_kernel<double> : direct_kernel<float>, p);
    from = to;
  }
}

}  // namespace similis::smooth_internal
