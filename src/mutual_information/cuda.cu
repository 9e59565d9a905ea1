// SPDX-License-Identifier: Apache-2.0
// Mutual information on the GPU; nothing is done on the host:
//   limits       the images' smallest and largest values, if the range is not given
//   histogram    cuda_histogram.cu: integers, in any order
//   information  one block a result: p, its margins, the value, and ∂value/∂p as a table
//   gradient     cuda_gradient.cu
//   values       results to one value, in their order
// Results are taken in groups whose tables fit 64 MB.
#include "src/mutual_information/cuda.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/upstream.h"

namespace similis::mutual_information_internal {
namespace {

constexpr int kSmallThreads = 256;
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

// Arrays that information_kernel reads and writes, of one group.
struct Tables {
  const unsigned long long* counts;      // [result][bins][bins]
  const unsigned* found_nan;             // [result]
  const double* given = nullptr;         // [result][bins][bins]; if null, counts are taken
  const unsigned* has_voxels = nullptr;  // of all results; if null, each has some or is given
  double* histogram = nullptr;           // [result][bins][bins]; null if not wanted
  double *p, *table;                     // [result][bins][bins]
  double *values, *voxels;               // of all results
  double* factors;                       // [result]
  gpu::Upstream upstream;
  Blur blur;
  Smoothing smoothing;
  std::int64_t first = 0, results_of_value;
  double sign, step = 0;  // step: a count in voxels
  int bins;
  bool is_binned, is_normalized, needs_margin_slopes, is_sum;
};

// Blurs one axis from one array to another; nothing lies outside.
__device__ void blur_axis(
    const Blur& blur, int bins, int step, int across, const double* from, double* to) {
  for (int i = threadIdx.x; i < bins * bins; i += kSmallThreads) {
    const int line = i / bins, place = i % bins;
    double sum = 0;
    for (int k = max(0, place - blur.radius); k <= min(bins - 1, place + blur.radius); ++k) {
      sum += blur.taps[k < place ? place - k : k - place] * from[line * across + k * step];
    }
    to[line * across + place * step] = sum;
  }
  __syncthreads();
}

// Returns the sum over the block of number(i), i < count, to all threads.
template <class Number> __device__ double sum_of(int count, const Number& number) {
  const double total = gpu::block_sum_of<kSmallThreads>(count, number);
  __syncthreads();
  return total;
}

// p of one result and its margins, which a block shares.
struct Joint {
  const double *p, *p_a, *p_b;
  int bins, entries;
  double resolution;

  __device__ Entry at(int i) const { return {p[i], p_a[i / bins], p_b[i % bins]}; }
};

// Computes margins of p or, before it is scaled, of counts; a thread takes a bin.
__device__ void load_margins(const double* p, int bins, double* p_a, double* p_b) {
  const int bin = static_cast<int>(threadIdx.x);
  if (bin < bins) {
    double a = 0, b = 0;
    for (int i = 0; i < bins; ++i) {
      a += p[bin * bins + i];
      b += p[i * bins + bin];
    }
    p_a[bin] = a;
    p_b[bin] = b;
  }
  __syncthreads();
}

// Blurs a margin and scales it to sum to 1.
__device__ void blur_margin(const Blur& blur, int bins, double* margin) {
  const int bin = static_cast<int>(threadIdx.x);
  double own = 0, sum = 0;
  if (bin < bins) {
    for (int k = max(0, bin - blur.radius); k <= min(bins - 1, bin + blur.radius); ++k) {
      own += blur.taps[k < bin ? bin - k : k - bin] * margin[k];
    }
  }
  __syncthreads();
  if (bin < bins) margin[bin] = own;
  __syncthreads();
  for (int k = 0; k < bins; ++k) sum += margin[k];
  __syncthreads();
  if (bin < bins) margin[bin] = own / sum;
  __syncthreads();
}

// Reads or scales the counts into p, blurs them, and scales them to sum to 1 unless they sum to 0.
// Returns the number of voxels and the sum of p before that.
struct Counted {
  double voxels, sum;
};
__device__ Counted load_joint(
    const Tables& t, std::int64_t result, double* p, double* p_a, double* p_b, double* scratch) {
  const int entries = t.bins * t.bins;
  for (int i = threadIdx.x; i < entries; i += kSmallThreads) {
    double count = t.given != nullptr
                       ? t.given[result * entries + i]
                       : static_cast<double>(t.counts[result * entries + i]) * t.step;
    if (i == 0 && t.given == nullptr && t.found_nan[result] != 0) count = nan("");
    p[i] = count;
    if (t.histogram != nullptr) t.histogram[result * entries + i] = count;
  }
  __syncthreads();
  const double voxels = sum_of(entries, [&](int i) { return p[i]; });
  double sum = voxels;
  if (t.is_binned) {
    load_margins(p, t.bins, p_a, p_b);
    blur_margin(t.blur, t.bins, p_a);
    blur_margin(t.blur, t.bins, p_b);
    blur_axis(t.blur, t.bins, 1, t.bins, p, scratch);
    blur_axis(t.blur, t.bins, t.bins, 1, scratch, p);
    sum = sum_of(entries, [&](int i) { return p[i]; });
  }
  if (sum != 0) {
    for (int i = threadIdx.x; i < entries; i += kSmallThreads) p[i] /= sum;
  }
  __syncthreads();
  return {voxels, sum};
}

__device__ double normalized_value(const Joint& joint, double* table) {
  const double h = sum_of(joint.entries, [&](int i) { return entropy_term(joint.p[i]); });
  const double h_a = sum_of(joint.bins, [&](int i) { return entropy_term(joint.p_a[i]); });
  const double h_b = sum_of(joint.bins, [&](int i) { return entropy_term(joint.p_b[i]); });
  const double value = normalized_information(h_a, h_b, h);
  for (int i = threadIdx.x; i < joint.entries; i += kSmallThreads) {
    table[i] = normalized_slope(joint.at(i), value, h, joint.resolution);
  }
  return value;
}

__device__ double plain_value(const Joint& joint, const Tables& t, double* table) {
  __shared__ double by_a[256], by_b[256];
  const int bins = joint.bins, bin = static_cast<int>(threadIdx.x);
  const auto term = [&](int i) { return information(joint.at(i), t.smoothing, joint.resolution); };
  if (bin < bins) {
    double a = 0, b = 0;
    for (int i = 0; t.needs_margin_slopes && i < bins; ++i) {
      a += term(bin * bins + i).by_p_a;
      b += term(i * bins + bin).by_p_b;
    }
    by_a[bin] = a;
    by_b[bin] = b;
  }
  __syncthreads();
  return sum_of(joint.entries, [&](int i) {
    const EntryTerm each = term(i);
    table[i] = each.by_p + by_a[i / bins] + by_b[i % bins];
    return each.value;
  });
}

// Returns to all threads how many of a value's results have voxels that count.
__device__ double counted_results(const Tables& t, std::int64_t value) {
  const std::int64_t first = value * t.results_of_value, entries = std::int64_t{t.bins} * t.bins;
  return sum_of(static_cast<int>(t.results_of_value), [&](int i) -> double {
    if (t.has_voxels != nullptr) return t.has_voxels[first + i];
    if (t.given == nullptr) return 1;
    const double* const histogram = t.given + (first + i - t.first) * entries;
    for (std::int64_t k = 0; k < entries; ++k) {
      if (histogram[k] != 0) return 1;
    }
    return 0;
  });
}

__global__ __launch_bounds__(kSmallThreads) void information_kernel(const Tables t) {
  __shared__ double p_a[256], p_b[256];
  const std::int64_t result = blockIdx.x;
  const int entries = t.bins * t.bins;
  double* const p = t.p + result * entries;
  double* const table = t.table + result * entries;
  const Counted counted = load_joint(t, result, p, p_a, p_b, table);
  double value = 0;
  if (counted.sum == 0) {
    for (int i = threadIdx.x; i < entries; i += kSmallThreads) table[i] = 0;
  } else {
    if (!t.is_binned) load_margins(p, t.bins, p_a, p_b);
    // A blurred histogram has entries of every size.
    const bool is_exact = t.given != nullptr || t.is_binned;
    const Joint joint{p, p_a, p_b, t.bins, entries, is_exact ? 0 : t.step / (2 * counted.sum)};
    value = t.is_normalized ? normalized_value(joint, table) : plain_value(joint, t, table);
  }
  const std::int64_t of_value = (t.first + result) / t.results_of_value;
  const double results = counted_results(t, of_value);
  if (threadIdx.x != 0) return;
  const double factor = Pass::value_factor(t.sign, t.is_sum, results) * t.upstream.of(of_value);
  t.values[t.first + result] = value;
  t.voxels[t.first + result] = counted.voxels;
  t.factors[result] = counted.voxels == 0 ? 0 : factor / counted.voxels;
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

// Returns the limits of the results, null if they are fixed, and in has_voxels, unless it is null,
// which results have voxels.
const Limits* queue_limits(const Pass& pass, Job job, int multiprocessors, unsigned* has_voxels,
    Workspace& workspace, const Execution& exec) {
  const bool is_fixed = pass.range == ValueRange::fixed;
  if (is_fixed && has_voxels == nullptr) return nullptr;
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
  return is_fixed ? nullptr : limits;
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
        .is_sum = pass_.is_sum()};
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
    if (given == nullptr) tables.step = count(results);
    gpu::launch("mutual_information", exec_.queue.handle, static_cast<unsigned>(results),
        kSmallThreads, 0, information_kernel, tables);
    if (!pass_.has_gradient()) return;
    const int copies = copies_for(job_, pass_.kernel, limits_);
    job_.kernel = pass_.kernel;
    job_.slots = slots_for(copies, results);
    write_gradients(job_, results, copies, exec_);
  }

  // Returns the number of voxels that a count of 1 stands for.
  double count(std::int64_t results) {
    clear(counts_, group_ * entries_ * static_cast<std::int64_t>(sizeof(*counts_)), exec_);
    clear(found_nan_, group_ * static_cast<std::int64_t>(sizeof(*found_nan_)), exec_);
    job_.kernel = pass_.is_binned ? ParzenKernel::delta : pass_.kernel;
    const int copies = copies_for(job_, job_.kernel, limits_);
    job_.slots = slots_for(copies, results);
    job_.step_bits = step_bits_of(job_, copies);
    job_.counts = counts_;
    job_.found_nan = found_nan_;
    count_voxels(job_, results, copies, exec_);
    return 1 / static_cast<double>(std::uint64_t{1} << job_.step_bits);
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
