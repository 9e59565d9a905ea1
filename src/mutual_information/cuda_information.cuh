// SPDX-License-Identifier: Apache-2.0
// From a histogram to mutual information: one block a result computes p, its margins, the value,
// and ∂value/∂p as a table.
#pragma once

#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/upstream.h"
#include "src/mutual_information/cuda.h"

namespace similis::mutual_information_internal {
namespace {

constexpr int kSmallThreads = 256;

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
  bool is_binned, is_normalized, needs_margin_slopes, is_sum, has_gradient;
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
    // A blurred histogram has entries of every size. One that is given for a gradient was counted
    // in the same steps: parts then look up the logarithms that the whole does.
    const bool is_counted = !t.is_binned && (t.given == nullptr || t.has_gradient);
    const Joint joint{p, p_a, p_b, t.bins, entries, is_counted ? t.step / (2 * counted.sum) : 0};
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

}  // namespace
}  // namespace similis::mutual_information_internal
