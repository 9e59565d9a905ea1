// SPDX-License-Identifier: Apache-2.0
// Joint histograms on the GPU: each image is read once, and each voxel's weights are added as
// integers, so that their order does not matter.
//   voxel ─> 4 (6) weights of x and of y ─> 16 (36) products              registers
//         ─> added to a copy of the histogram, one a lane                 shared, 32-bit atomics
//   copies ─> summed before they can overflow                             global, 64-bit atomics
// With a copy for each lane of a warp neither a background nor a narrow distribution makes lanes
// wait for each other. Voxels with the values of the first voxel, which is where a background would
// be, are counted in a register. A weight of 1 is 2^21 steps with 32 copies, less with fewer.
//
// If no copy fits (more than 240 bins), in f64, and for wider Gaussians, weights are f64 and are
// added in global memory in finer steps.
#include "src/mutual_information/cuda.h"

namespace similis::mutual_information_internal {
namespace {

constexpr int kDirectThreads = 256;

// The copies of a histogram in shared memory. With kCopies 0 the launch says how many there are.
template <int kCopies> class Copies {
 public:
  __device__ Copies(unsigned* memory, int bins, int copies)
      : memory_(memory + spare_entries(bins) * (kCopies > 0 ? kCopies : copies)),
        bins_(bins),
        copies_(copies) {
    for (int i = threadIdx.x; i < all_entries(bins) * count(); i += kThreads) memory[i] = 0;
    __syncthreads();
  }
  __device__ int count() const { return kCopies > 0 ? kCopies : copies_; }

  template <int taps>
  __device__ __forceinline__ void add(const Weights<taps>& x, const Weights<taps>& y) {
    unsigned* row =
        memory_ + (x.first * bins_ + y.first) * count() + static_cast<int>(threadIdx.x) % count();
#pragma unroll
    for (int a = 0; a < taps; ++a, row += bins_ * count()) {
#pragma unroll
      for (int b = 0; b < taps; ++b) {
        atomicAdd(row + b * count(), __float2uint_rn(x.value[a] * y.value[b]));
      }
    }
  }

  // Adds all copies to `sums` and clears them. Copies are read in an order that keeps the lanes of
  // a warp in different banks.
  __device__ void flush(unsigned long long* sums) {
    __syncthreads();
    for (int entry = threadIdx.x; entry < bins_ * bins_; entry += kThreads) {
      unsigned long long sum = 0;
      for (int k = 0; k < count(); ++k) {
        unsigned& copy = memory_[entry * count() + (k + static_cast<int>(threadIdx.x)) % count()];
        sum += copy;
        copy = 0;
      }
      if (sum != 0) atomicAdd(sums + entry, sum);
    }
    __syncthreads();
  }

  // Returns the sum over the block of numbers whose sum is below 2³². It uses an entry that is 0
  // after a flush.
  __device__ unsigned sum_over_block(unsigned number) {
    if (number != 0) atomicAdd(memory_ - 1, number);
    __syncthreads();
    return memory_[-1];
  }

 private:
  unsigned* memory_;
  int bins_, copies_;
};

template <ParzenKernel kernel, int taps>
__device__ __forceinline__ Weights<taps> counted(
    float v, const Scale<float>& scale, const Job& job, float one) {
  if constexpr (kernel == ParzenKernel::delta) {
    return {holding_bin(v, scale, job.bins), {one}, {0}};
  } else {
    return weights_of<kernel, taps>(v, scale, job.bins, static_cast<float>(job.decay), one);
  }
}

template <class Images, ParzenKernel kernel, int taps, int kCopies>
__global__ __launch_bounds__(kThreads) void histogram_kernel(
    const Job job, int copies, std::int64_t voxels_between_flushes) {
  SIMILIS_DYNAMIC_SHARED(unsigned char, shared, 128);
  const std::int64_t result = job.result();
  const Images images(job, result);
  const Limits limits = job.limits_of(result);
  const auto x_scale = scale_of<float>(limits.x_low, limits.x_high, job.bins);
  const auto y_scale = scale_of<float>(limits.y_low, limits.y_high, job.bins);
  const float one = static_cast<float>(1u << job.step_bits);
  unsigned long long* const sums = job.counts + result * job.bins * job.bins;
  Copies<kCopies> histogram(reinterpret_cast<unsigned*>(shared), job.bins, copies);
  const Pair<float> background = images.first();
  unsigned repeats = 0;
  bool found_nan = false;
  std::int64_t since = 0;
  for (std::int64_t chunk = job.slot() * kChunk; chunk < job.voxels.count;
       chunk += job.slots * kChunk) {
    const Batch<float> batch = images.load(chunk);
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const Pair<float> v = batch.v[k];
      if (!batch.counts[k]) continue;
      if (v.x == background.x && v.y == background.y) {
        ++repeats;
        continue;
      }
      const float place = position(v.x, x_scale) + position(v.y, y_scale);
      if (place != place) {
        found_nan = true;
        continue;
      }
      histogram.add(counted<kernel, taps>(v.x, x_scale, job, one),
          counted<kernel, taps>(v.y, y_scale, job, 1));
    }
    since += kBatch;
    if (since + kBatch > voxels_between_flushes) {
      histogram.flush(sums);
      since = 0;
    }
  }
  histogram.flush(sums);
  const unsigned long long times = histogram.sum_over_block(repeats);
  const float place = position(background.x, x_scale) + position(background.y, y_scale);
  if (found_nan || (times != 0 && place != place)) job.found_nan[result] = 1;
  if (times == 0 || threadIdx.x != 0) return;
  const auto x = counted<kernel, taps>(background.x, x_scale, job, one);
  const auto y = counted<kernel, taps>(background.y, y_scale, job, 1);
#pragma unroll
  for (int a = 0; a < taps; ++a) {
#pragma unroll
    for (int b = 0; b < taps; ++b) {
      const unsigned steps = __float2uint_rn(x.value[a] * y.value[b]);
      if (steps != 0) {
        atomicAdd(sums + (x.first + a) * job.bins + y.first + b, times * steps);
      }
    }
  }
}

__global__ __launch_bounds__(kDirectThreads) void direct_histogram_kernel(const Job job) {
  const std::int64_t result = job.result(), step = job.slots * kDirectThreads;
  const AnyVoxels<double> images(job, result);
  const Limits limits = job.limits_of(result);
  const auto x_scale = scale_of<double>(limits.x_low, limits.x_high, job.bins);
  const auto y_scale = scale_of<double>(limits.y_low, limits.y_high, job.bins);
  const double one = static_cast<double>(1ull << job.step_bits);
  const int taps = job.kernel == ParzenKernel::delta ? 1 : job.taps;
  unsigned long long* const sums = job.counts + result * job.bins * job.bins;
  const auto add = [&](const Pair<double>& v, unsigned long long times) {
    const AnyWeights x(v.x, x_scale, job), y(v.y, y_scale, job);
    for (int a = 0; a < taps; ++a) {
      const double scaled = x.at(a).value * one;
      unsigned long long* row = sums + (x.first() + a) * job.bins + y.first();
      for (int b = 0; b < taps; ++b) {
        const auto steps = static_cast<unsigned long long>(scaled * y.at(b).value + 0.5);
        if (steps != 0) atomicAdd(row + b, times * steps);
      }
    }
  };
  const Pair<double> background = images.first();
  unsigned repeats = 0;
  for (std::int64_t i = job.slot() * kDirectThreads + threadIdx.x; i < job.voxels.count;
       i += step) {
    const float weight = images.weight(i);
    if (weight == 0) continue;
    const Pair<double> v = images.load_one(i);
    const double place = position(v.x, x_scale) + position(v.y, y_scale);
    if (place != place || weight != weight) {
      job.found_nan[result] = 1;
    } else if (v.x == background.x && v.y == background.y) {
      ++repeats;
    } else {
      add(v, 1);
    }
  }
  const auto times = static_cast<unsigned long long>(gpu::block_sum<kDirectThreads>(repeats));
  if (times != 0 && threadIdx.x == 0) add(background, times);
}

template <ParzenKernel kernel, int taps>
void launch(const Job& job, std::int64_t results, int copies, const Execution& exec) {
  const bool is_fast = copies == kMostCopies && is_dense(job);
  const auto run = is_fast ? histogram_kernel<DenseVoxels, kernel, taps, kMostCopies>
                           : histogram_kernel<AnyVoxels<float>, kernel, taps, 0>;
  const std::size_t bytes = shared_bytes_of(job.bins, copies);
  gpu::allow_shared_bytes(run, bytes);
  // Threads that share a copy must not fill its 32 bits.
  const std::int64_t between = (std::int64_t{0xffffffff} >> job.step_bits) / (kThreads / copies);
  gpu::launch("histogram", exec.queue.handle, static_cast<unsigned>(results * job.slots), kThreads,
      bytes, run, job, copies, between);
}

}  // namespace

void count_voxels(const Job& job, std::int64_t results, int copies, const Execution& exec) {
  if (copies == 0) {
    return gpu::launch("histogram", exec.queue.handle, static_cast<unsigned>(results * job.slots),
        kDirectThreads, 0, direct_histogram_kernel, job);
  }
  switch (job.kernel) {
    case ParzenKernel::b_spline:
      return launch<ParzenKernel::b_spline, 4>(job, results, copies, exec);
    case ParzenKernel::gaussian:
      return launch<ParzenKernel::gaussian, 6>(job, results, copies, exec);
    case ParzenKernel::delta: return launch<ParzenKernel::delta, 1>(job, results, copies, exec);
  }
}

}  // namespace similis::mutual_information_internal
