// SPDX-License-Identifier: Apache-2.0
// Gradients of mutual information on the GPU; each image is read once more:
//   table ∂value/∂p ─> 32 copies, one a lane                                  shared, 128 KB
//   voxel ─> weights of one image, slopes of the other ─> 16 (36) look-ups    registers, shared
//         ─> slope                                                            global
// Each voxel takes 8 B of reading, and 4 B of writing for each image that has a gradient.
#include "src/mutual_information/cuda.h"

namespace similis::mutual_information_internal {
namespace {

constexpr int kDirectThreads = 256;

struct Sums {
  float by_x, by_y;
};

// Returns Σ_ab slope_a·weight_b·table[a][b], and the same with x and y exchanged. The table is the
// thread's copy from the first bins on.
template <int taps>
__device__ __forceinline__ Sums look_up(
    const float* table, int next_row, int next, const Weights<taps>& x, const Weights<taps>& y) {
  Sums sums{0, 0};
#pragma unroll
  for (int a = 0; a < taps; ++a) {
    float by_value = 0, by_slope = 0;
#pragma unroll
    for (int b = 0; b < taps; ++b) {
      const float entry = table[a * next_row + b * next];
      by_value = fmaf(entry, y.value[b], by_value);
      by_slope = fmaf(entry, y.slope[b], by_slope);
    }
    sums.by_x = fmaf(x.slope[a], by_value, sums.by_x);
    sums.by_y = fmaf(x.value[a], by_slope, sums.by_y);
  }
  return sums;
}

template <class Images, ParzenKernel kernel, int taps, int kCopies, bool of_x, bool of_y>
__global__ __launch_bounds__(kThreads) void gradient_kernel(const Job job, int launched_copies) {
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 128);
  float* const table = reinterpret_cast<float*>(shared);
  const int copies = kCopies > 0 ? kCopies : launched_copies;
  const std::int64_t result = job.result();
  const int spare = spare_entries(job.bins), entries = job.bins * job.bins;
  for (int i = threadIdx.x; i < all_entries(job.bins) * copies; i += kThreads) {
    const int entry = i / copies - spare;
    const bool exists = entry >= 0 && entry < entries;
    table[i] = exists ? static_cast<float>(job.table[result * entries + entry]) : 0;
  }
  __syncthreads();
  const Images images(job, result);
  const Limits limits = job.limits_of(result);
  const auto x_scale = scale_of<float>(limits.x_low, limits.x_high, job.bins);
  const auto y_scale = scale_of<float>(limits.y_low, limits.y_high, job.bins);
  const float x_factor = static_cast<float>(job.factors[result]) * x_scale.bins_per_unit;
  const float y_factor = static_cast<float>(job.factors[result]) * y_scale.bins_per_unit;
  const float* const own = table + spare * copies + static_cast<int>(threadIdx.x) % copies;
  const float decay = static_cast<float>(job.decay);
  for (std::int64_t chunk = job.slot() * kChunk; chunk < job.voxels.count;
       chunk += job.slots * kChunk) {
    const Batch<float> batch = images.load(chunk);
    float by_x[kBatch], by_y[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const Pair<float> v = batch.v[k];
      const auto x = weights_of<kernel, taps>(v.x, x_scale, job.bins, decay, 1);
      const auto y = weights_of<kernel, taps>(v.y, y_scale, job.bins, decay, 1);
      const Sums sums =
          look_up(own + (x.first * job.bins + y.first) * copies, job.bins * copies, copies, x, y);
      const bool counts = batch.counts[k];
      by_x[k] = counts && v.x >= x_scale.low && v.x <= x_scale.high ? sums.by_x * x_factor : 0;
      by_y[k] = counts && v.y >= y_scale.low && v.y <= y_scale.high ? sums.by_y * y_factor : 0;
    }
    if (of_x) images.store_x(chunk, by_x);
    if (of_y) images.store_y(chunk, by_y);
  }
}

__global__ __launch_bounds__(kDirectThreads) void direct_gradient_kernel(const Job job) {
  const std::int64_t result = job.result(), step = job.slots * kDirectThreads;
  const AnyVoxels<double> images(job, result);
  const Limits limits = job.limits_of(result);
  const auto x_scale = scale_of<double>(limits.x_low, limits.x_high, job.bins);
  const auto y_scale = scale_of<double>(limits.y_low, limits.y_high, job.bins);
  const double x_factor = job.factors[result] * x_scale.bins_per_unit;
  const double y_factor = job.factors[result] * y_scale.bins_per_unit;
  const double* const table = job.table + result * job.bins * job.bins;
  for (std::int64_t i = job.slot() * kDirectThreads + threadIdx.x; i < job.voxels.count;
       i += step) {
    const Pair<double> v = images.load_one(i);
    const AnyWeights x(v.x, x_scale, job), y(v.y, y_scale, job);
    double by_x = 0, by_y = 0;
    for (int a = 0; a < job.taps; ++a) {
      const double* row = table + (x.first() + a) * job.bins + y.first();
      double by_value = 0, by_slope = 0;
      for (int b = 0; b < job.taps; ++b) {
        const Weight<double> each = y.at(b);
        by_value += row[b] * each.value;
        by_slope += row[b] * each.slope;
      }
      const Weight<double> each = x.at(a);
      by_x += each.slope * by_value;
      by_y += each.value * by_slope;
    }
    const bool counts = images.weight(i) > 0;
    if (job.x_gradient != nullptr) {
      images.store_x_one(i, counts && is_inside(v.x, x_scale) != 0 ? by_x * x_factor : 0);
    }
    if (job.y_gradient != nullptr) {
      images.store_y_one(i, counts && is_inside(v.y, y_scale) != 0 ? by_y * y_factor : 0);
    }
  }
}

template <ParzenKernel kernel, int taps, int kCopies, class Images>
auto kernel_for(const Job& job) {
  if (job.y_gradient == nullptr) return gradient_kernel<Images, kernel, taps, kCopies, true, false>;
  if (job.x_gradient == nullptr) return gradient_kernel<Images, kernel, taps, kCopies, false, true>;
  return gradient_kernel<Images, kernel, taps, kCopies, true, true>;
}

template <ParzenKernel kernel, int taps>
void launch(const Job& job, std::int64_t results, int copies, const Execution& exec) {
  const bool is_fast = copies == kMostCopies && is_dense(job);
  const auto run = is_fast ? kernel_for<kernel, taps, kMostCopies, DenseVoxels>(job)
                           : kernel_for<kernel, taps, 0, AnyVoxels<float>>(job);
  const std::size_t bytes = shared_bytes_of(job.bins, copies);
  gpu::allow_shared_bytes(run, bytes);
  gpu::launch("mutual_information", exec.queue.handle, static_cast<unsigned>(results * job.slots),
      kThreads, bytes, run, job, copies);
}

}  // namespace

void write_gradients(const Job& job, std::int64_t results, int copies, const Execution& exec) {
  if (copies == 0) {
    return gpu::launch("mutual_information", exec.queue.handle,
        static_cast<unsigned>(results * job.slots), kDirectThreads, 0, direct_gradient_kernel, job);
  }
  if (job.kernel == ParzenKernel::b_spline) {
    return launch<ParzenKernel::b_spline, 4>(job, results, copies, exec);
  }
  launch<ParzenKernel::gaussian, 6>(job, results, copies, exec);
}

}  // namespace similis::mutual_information_internal
