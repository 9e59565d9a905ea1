// SPDX-License-Identifier: Apache-2.0
// Mutual information on the GPU; nothing is done on the host:
//   limits       the images' smallest and largest values, if the range is not given
//   histogram    cuda_histogram.cu: integers, in any order
//   information  cuda_information.cuh: one block a result: p, its margins, the value, and ∂value/∂p
//   as a table gradient     cuda_gradient.cu values       results to one value, in their order
// Results are taken in groups whose tables fit 64 MB.
#include "src/mutual_information/cuda.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/mutual_information/cuda_information.cuh"

namespace similis::mutual_information_internal {
namespace {

constexpr std::int64_t kVoxelsOfBlock = 16384;  // enough to hide clearing and adding up the copies
constexpr std::int64_t kMostEntries = std::int64_t{1} << 21;  // in the tables of a group
constexpr std::int64_t kMostResults = 32768;                  // in a group

constexpr double kInfinity = std::numeric_limits<double>::infinity();

__device__ Limits none() { return {kInfinity, -kInfinity, kInfinity, -kInfinity}; }

// No NaN passes these comparisons.
__device__ Limits around(const Limits& a, const Limits& b) {
  return {b.x_low < a.x_low ? b.x_low : a.x_low, b.x_high > a.x_high ? b.x_high : a.x_high,
      b.y_low < a.y_low ? b.y_low : a.y_low, b.y_high > a.y_high ? b.y_high : a.y_high};
}

__device__ Limits common(const Limits& a) {
  const double low = a.x_low < a.y_low ? a.x_low : a.y_low;
  const double high = a.x_high > a.y_high ? a.x_high : a.y_high;
  return {low, high, low, high};
}

// Returns the limits of all threads of the block to all of them.
template <int threads> __device__ Limits block_limits(const Limits& own) {
  __shared__ Limits all[threads];
  all[threadIdx.x] = own;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] = around(all[threadIdx.x], all[threadIdx.x + half]);
  }
  __syncthreads();
  return all[0];
}

// Writes the limits of the voxels of each block to parts[result][slot].
template <class Images>
__global__ __launch_bounds__(kThreads) void limits_kernel(const Job job, Limits* parts) {
  const Images images(job, job.result());
  Limits own = none();
  for (std::int64_t chunk = job.slot() * kChunk; chunk < job.voxels.count;
       chunk += job.slots * kChunk) {
    const auto batch = images.load(chunk);
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const double x = batch.v[k].x, y = batch.v[k].y;
      if (batch.counts[k]) own = around(own, {x, x, y, y});
    }
  }
  const Limits all = block_limits<kThreads>(own);
  if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

// One block turns the parts of all results into their limits, as the range says, and notes in
// has_voxels, unless it is null, which results have a voxel that counts and is a number.
__global__ __launch_bounds__(kSmallThreads) void range_kernel(const Limits* parts,
    std::int64_t results, std::int64_t slots, ValueRange range, Limits* limits,
    unsigned* has_voxels) {
  Limits own = none();
  for (std::int64_t result = threadIdx.x; result < results; result += kSmallThreads) {
    Limits each = none();
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      each = around(each, parts[result * slots + slot]);
    }
    if (has_voxels != nullptr) {
      has_voxels[result] = each.x_low <= each.x_high || each.y_low <= each.y_high ? 1 : 0;
    }
    limits[result] = range == ValueRange::common ? common(each) : each;
    own = around(own, each);
  }
  if (range != ValueRange::unit_or_common) return;
  Limits all = common(block_limits<kSmallThreads>(own));
  if (all.x_low >= 0 && all.x_high <= 1) all = {0, 1, 0, 1};
  for (std::int64_t result = threadIdx.x; result < results; result += kSmallThreads) {
    limits[result] = all;
  }
}

// A mean leaves out the results without voxels: a measure of nothing is NaN, a loss 0.
__global__ __launch_bounds__(kSmallThreads) void values_kernel(const double* values,
    const double* voxels, std::int64_t count, std::int64_t results_of_value, double sign,
    bool is_sum, void* out, DType dtype) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kSmallThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kSmallThreads) {
    double sum = 0, results = 0;
    for (std::int64_t k = i * results_of_value; k < (i + 1) * results_of_value; ++k) {
      sum += values[k];
      results += voxels[k] != 0 ? 1 : 0;
    }
    const bool is_nothing = results == 0 && !is_sum && sign > 0;
    gpu::store_element(
        out, dtype, i, is_nothing ? nan("") : sum * Pass::value_factor(sign, is_sum, results));
  }
}

// The memory of one call, cut into arrays.
class Workspace {
 public:
  Workspace(const Device& device, const Execution& exec) : device_(device), exec_(exec) {}
  template <class T> T* array(std::int64_t count) {
    memory_.push_back(allocate_bytes(static_cast<std::size_t>(count) * sizeof(T), device_, exec_));
    return static_cast<T*>(memory_.back().get());
  }

 private:
  Device device_;
  const Execution& exec_;
  std::vector<std::shared_ptr<void>> memory_;
};

Job job_of(const Pass& pass) {
  Job job{.voxels = pass.voxels,
      .x = pass.x.data(),
      .y = pass.y.data(),
      .mask = pass.mask.data(),
      .x_gradient = pass.x_gradient.data(),
      .y_gradient = pass.y_gradient.data(),
      .dtype = pass.x.dtype,
      .mask_dtype = pass.mask.dtype,
      .takes_samples = pass.takes_samples,
      .threshold = pass.threshold,
      .seed = pass.seed,
      .bins = pass.bins,
      .taps = pass.taps,
      .kernel = pass.kernel,
      .decay = 1 / (2 * pass.sigma * pass.sigma),
      .fixed = {pass.low, pass.high, pass.low, pass.high}};
  return job;
}

// Returns the number of copies of a histogram or table in shared memory that a kernel with so many
// taps has; 0 sends it to the direct kernels.
int copies_for(const Job& job, ParzenKernel kernel, const gpu::Limits& limits) {
  const bool is_fixed = kernel != ParzenKernel::gaussian || job.taps == 6;
  if (job.dtype == DType::f64 || !is_fixed) return 0;
  return copies_of(job.bins, static_cast<std::size_t>(limits.shared_bytes_a_block));
}

// Returns the number of bits in which a weight of 1 is counted: as many as the copies can take
// between flushes that cost little beside the voxels, or as 64 bits can take over all voxels.
int step_bits_of(const Job& job, int copies) {
  if (copies > 0) {
    if (job.kernel == ParzenKernel::delta) return 0;
    return std::min(21, 18 + static_cast<int>(std::bit_width(static_cast<unsigned>(copies))));
  }
  return std::min(
      40, 62 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(job.voxels.count))));
}

std::int64_t slots_of(
    const Job& job, std::int64_t results, std::int64_t voxels_of_block, int blocks) {
  return std::clamp<std::int64_t>(
      job.voxels.count / voxels_of_block, 1, std::max<std::int64_t>(1, blocks / results));
}

// Returns the limits of the results, null if all have the same fixed ones, and in has_voxels,
// unless it is null, which results have voxels.
const Limits* queue_limits(const Pass& pass, Job job, int multiprocessors, unsigned* has_voxels,
    Workspace& workspace, const Execution& exec) {
  const bool is_fixed = pass.range == ValueRange::fixed;
  const auto* const given = static_cast<const Limits*>(pass.limits.data());  // four numbers each
  if (is_fixed && has_voxels == nullptr) return given;
  Limits* const limits = workspace.array<Limits>(pass.results);
  job.slots = slots_of(job, pass.results, kVoxelsOfBlock, 2 * multiprocessors);
  Limits* const parts = workspace.array<Limits>(pass.results * job.slots);
  const auto run = is_dense(job)             ? limits_kernel<DenseVoxels>
                   : job.dtype == DType::f64 ? limits_kernel<AnyVoxels<double>>
                                             : limits_kernel<AnyVoxels<float>>;
  gpu::launch("mutual_information", exec.queue.handle,
      static_cast<unsigned>(pass.results * job.slots), kThreads, 0, run, job, parts);
  gpu::launch("mutual_information", exec.queue.handle, 1, kSmallThreads, 0, range_kernel,
      static_cast<const Limits*>(parts), pass.results, job.slots, pass.range, limits, has_voxels);
  return is_fixed ? given : limits;
}

void clear(void* memory, std::int64_t bytes, const Execution& exec) {
  gpu::clear("mutual_information", exec.queue.handle, memory, static_cast<std::size_t>(bytes));
}

// The launches of a pass.
class Queue {
 public:
  Queue(const Pass& pass, const Execution& exec)
      : pass_(pass),
        exec_(exec),
        device_(pass.x.empty() ? pass.given_histogram.device : pass.x.device),
        limits_(gpu::limits(device_)),
        workspace_(device_, exec),
        job_(job_of(pass)),
        entries_(pass.entries()),
        group_(std::clamp<std::int64_t>(
            kMostEntries / entries_, 1, std::min(pass.results, kMostResults))) {}

  void run() {
    counts_ = workspace_.array<unsigned long long>(group_ * entries_);
    found_nan_ = workspace_.array<unsigned>(group_);
    double* const p = workspace_.array<double>(group_ * entries_);
    double* const table = workspace_.array<double>(group_ * entries_);
    double* const values = workspace_.array<double>(pass_.results);
    double* const voxels = workspace_.array<double>(pass_.results);
    double* const factors = workspace_.array<double>(group_);
    // The gradient of a mean needs to know the results without voxels before their values are.
    const bool is_mean_of_some = pass_.has_gradient() && pass_.has_exclusions() &&
                                 pass_.given_histogram.empty() && !pass_.is_sum() &&
                                 pass_.results_of_value() > 1;
    unsigned* const has_voxels =
        is_mean_of_some ? workspace_.array<unsigned>(pass_.results) : nullptr;
    if (!pass_.x.empty()) {
      job_.limits =
          queue_limits(pass_, job_, limits_.multiprocessors, has_voxels, workspace_, exec_);
    }
    job_.table = table;
    job_.factors = factors;
    Tables tables{.counts = counts_,
        .found_nan = found_nan_,
        .has_voxels = has_voxels,
        .p = p,
        .table = table,
        .values = values,
        .voxels = voxels,
        .factors = factors,
        .upstream = gpu::Upstream(pass_.upstream),
        .blur = pass_.is_binned ? blur_of(pass_.sigma, pass_.bins) : Blur{},
        .smoothing = pass_.smoothing,
        .results_of_value = pass_.results_of_value(),
        .sign = pass_.sign,
        .bins = pass_.bins,
        .is_binned = pass_.is_binned,
        .is_normalized = pass_.is_normalized,
        .needs_margin_slopes = pass_.needs_margin_slopes(),
        .is_sum = pass_.is_sum(),
        .has_gradient = pass_.has_gradient()};
    for (std::int64_t first = 0; first < pass_.results; first += group_) {
      run_group(first, std::min(group_, pass_.results - first), tables);
    }
    if (pass_.value.empty()) return;
    const std::int64_t count = pass_.results / pass_.results_of_value();
    const auto blocks = static_cast<unsigned>(
        std::min<std::int64_t>((count + kSmallThreads - 1) / kSmallThreads, 1024));
    gpu::launch("mutual_information", exec_.queue.handle, blocks, kSmallThreads, 0, values_kernel,
        static_cast<const double*>(values), static_cast<const double*>(voxels), count,
        pass_.results_of_value(), pass_.sign, pass_.is_sum(), pass_.value.data(),
        pass_.value.dtype);
  }

 private:
  void run_group(std::int64_t first, std::int64_t results, Tables& tables) {
    job_.first = tables.first = first;
    const auto* given = static_cast<const double*>(pass_.given_histogram.data());
    auto* histogram = static_cast<double*>(pass_.histogram.data());
    tables.given = given == nullptr ? nullptr : given + first * entries_;
    tables.histogram = histogram == nullptr ? nullptr : histogram + first * entries_;
    tables.step = step_of_counts(results);
    if (given == nullptr) count(results);
    gpu::launch("mutual_information", exec_.queue.handle, static_cast<unsigned>(results),
        kSmallThreads, 0, information_kernel, tables);
    if (!pass_.has_gradient()) return;
    const int copies = copies_for(job_, pass_.kernel, limits_);
    job_.kernel = pass_.kernel;
    job_.slots = slots_for(copies, results);
    write_gradients(job_, results, copies, exec_);
  }

  // Returns the number of voxels that a count of 1 stands for, here and in a given histogram of the
  // whole that these images are parts of.
  double step_of_counts(std::int64_t results) {
    job_.kernel = pass_.is_binned ? ParzenKernel::delta : pass_.kernel;
    copies_ = copies_for(job_, job_.kernel, limits_);
    job_.slots = slots_for(copies_, results);
    job_.step_bits = step_bits_of(job_, copies_);
    return 1 / static_cast<double>(std::uint64_t{1} << job_.step_bits);
  }

  void count(std::int64_t results) {
    clear(counts_, group_ * entries_ * static_cast<std::int64_t>(sizeof(*counts_)), exec_);
    clear(found_nan_, group_ * static_cast<std::int64_t>(sizeof(*found_nan_)), exec_);
    job_.counts = counts_;
    job_.found_nan = found_nan_;
    count_voxels(job_, results, copies_, exec_);
  }

  std::int64_t slots_for(int copies, std::int64_t results) const {
    if (copies > 0) return slots_of(job_, results, kVoxelsOfBlock, limits_.multiprocessors);
    return slots_of(job_, results, kVoxelsOfBlock / 8, 8 * limits_.multiprocessors);
  }

  const Pass& pass_;
  const Execution& exec_;
  const Device device_;
  const gpu::Limits& limits_;
  Workspace workspace_;
  Job job_;
  const std::int64_t entries_, group_;
  int copies_ = 0;  // of a histogram in shared memory
  unsigned long long* counts_ = nullptr;
  unsigned* found_nan_ = nullptr;
};

}  // namespace

bool is_dense(const Job& job) {
  const Offsets& stride = job.voxels.axes[0].stride;
  const auto is_aligned = [](const void* data, std::int64_t image, std::int64_t channel) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && image % 4 == 0 && channel % 4 == 0;
  };
  const Offsets &image = job.voxels.image, &channel = job.voxels.channel;
  return is_aligned(job.x, image.x, channel.x) && is_aligned(job.y, image.y, channel.y) &&
         is_aligned(job.x_gradient, image.x_gradient, channel.x_gradient) &&
         is_aligned(job.y_gradient, image.y_gradient, channel.y_gradient) &&
         job.dtype == DType::f32 && job.mask == nullptr && !job.takes_samples &&
         job.voxels.rank == 1 && stride.x == 1 && stride.y == 1 &&
         (job.x_gradient == nullptr || stride.x_gradient == 1) &&
         (job.y_gradient == nullptr || stride.y_gradient == 1);
}

void mutual_information_cuda(const Pass& pass, const Execution& exec) {
  const gpu::Current current(pass.x.empty() ? pass.given_histogram.device : pass.x.device);
  Queue(pass, exec).run();
}

}  // namespace similis::mutual_information_internal
