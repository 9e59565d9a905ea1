// SPDX-License-Identifier: Apache-2.0
// Parts that the kernels of mutual information share: a pass as they take it, voxels, and their
// weights. For .cu files.
#pragma once

#include <cstdint>

#include "src/gpu/cuda/view.h"
#include "src/mutual_information/mutual_information.h"

namespace similis::mutual_information_internal {

/// The smallest and largest value of each image.
struct Limits {
  double x_low, x_high, y_low, y_high;
};

/// One group of results, which share launches, and the division of each result's voxels among
/// blocks.
struct Job {
  Voxels voxels;
  const void *x, *y, *mask;
  void *x_gradient, *y_gradient;  // null if not wanted
  DType dtype, mask_dtype;
  bool takes_samples;
  std::uint64_t threshold, seed;
  int bins, taps;
  ParzenKernel kernel;
  double decay;                          // 1 / (2σ²) of the Gaussian, in bins
  Limits fixed;                          // taken if `limits` is null
  const Limits* limits = nullptr;        // [result]
  std::int64_t first = 0;                // the group's first result
  std::int64_t slots = 1;                // number of blocks that share a result
  int step_bits = 0;                     // a weight of 1 is counted as 2^step_bits
  unsigned long long* counts = nullptr;  // [result of the group][bins][bins]
  unsigned* found_nan = nullptr;         // [result of the group]
  const double* table = nullptr;         // [result of the group][bins][bins]: ∂value/∂p
  const double* factors = nullptr;       // [result of the group]: factor of the gradient

  __device__ std::int64_t result() const { return blockIdx.x / slots; }  // within the group
  __device__ std::int64_t slot() const { return blockIdx.x % slots; }
  __device__ Limits limits_of(std::int64_t result) const {
    return limits == nullptr ? fixed : limits[first + result];
  }
};

template <class T> struct Pair { T x, y; };

/// A block takes kChunk voxels at a time, and each of its threads kBatch of them.
constexpr int kThreads = 1024, kBatch = 4, kChunk = kThreads * kBatch;

template <class T> struct Batch {
  Pair<T> v[kBatch];
  bool counts[kBatch];
};

/// The voxels of one result, for f32 arrays without gaps that begin at multiples of 16 bytes and of
/// which every voxel counts. A thread takes neighbouring voxels.
class DenseVoxels {
 public:
  __device__ DenseVoxels(const Job& job, std::int64_t result) : count_(job.voxels.count) {
    const Offsets start = job.voxels.start(job.first + result);
    x_ = static_cast<const float*>(job.x) + start.x;
    y_ = static_cast<const float*>(job.y) + start.y;
    x_gradient_ = static_cast<float*>(job.x_gradient) + start.x_gradient;
    y_gradient_ = static_cast<float*>(job.y_gradient) + start.y_gradient;
  }
  __device__ Pair<float> first() const { return {x_[0], y_[0]}; }

  __device__ __forceinline__ Batch<float> load(std::int64_t chunk) const {
    const std::int64_t index = chunk + kBatch * threadIdx.x;
    if (index + kBatch <= count_) {
      const float4 x = *reinterpret_cast<const float4*>(x_ + index);
      const float4 y = *reinterpret_cast<const float4*>(y_ + index);
      return {{{x.x, y.x}, {x.y, y.y}, {x.z, y.z}, {x.w, y.w}}, {true, true, true, true}};
    }
    Batch<float> batch;
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      batch.counts[k] = index + k < count_;
      batch.v[k] = batch.counts[k] ? Pair<float>{x_[index + k], y_[index + k]} : first();
    }
    return batch;
  }
  __device__ void store_x(std::int64_t chunk, const float (&slopes)[kBatch]) const {
    store(slopes, chunk + kBatch * threadIdx.x, x_gradient_);
  }
  __device__ void store_y(std::int64_t chunk, const float (&slopes)[kBatch]) const {
    store(slopes, chunk + kBatch * threadIdx.x, y_gradient_);
  }

 private:
  __device__ __forceinline__ void store(
      const float (&slopes)[kBatch], std::int64_t index, float* gradient) const {
    if (index + kBatch <= count_) {
      *reinterpret_cast<float4*>(gradient + index) =
          make_float4(slopes[0], slopes[1], slopes[2], slopes[3]);
      return;
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (index + k < count_) gradient[index + k] = slopes[k];
    }
  }

  std::int64_t count_;
  const float *x_, *y_;
  float *x_gradient_, *y_gradient_;
};

/// The voxels of one result, for any dtype and strides; some may not count. Numbers are of type T.
/// A warp takes neighbouring voxels.
template <class T> class AnyVoxels {
 public:
  __device__ AnyVoxels(const Job& job, std::int64_t result)
      : job_(job), start_(job.voxels.start(job.first + result)) {}
  /// 1 for a voxel that counts, 0 for any other, NaN for one whose mask is negative or NaN: its
  /// result then is NaN.
  __device__ float weight(std::int64_t index) const {
    if (job_.mask != nullptr) {
      const Offsets at = start_ + job_.voxels.at(index);
      const double mask = gpu::load_element(job_.mask, job_.mask_dtype, at.mask);
      if (!(mask >= 0)) return nanf("");
      if (mask == 0) return 0;
    }
    const bool counts = !job_.takes_samples ||
                        is_sampled(static_cast<std::uint64_t>(index), job_.seed, job_.threshold);
    return counts ? 1 : 0;
  }
  __device__ Pair<T> first() const { return load_one(0); }
  __device__ Pair<T> load_one(std::int64_t index) const {
    const Offsets at = start_ + job_.voxels.at(index);
    return {element(job_.x, at.x), element(job_.y, at.y)};
  }
  __device__ Batch<T> load(std::int64_t chunk) const {
    Batch<T> batch;
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const std::int64_t index = chunk + k * kThreads + threadIdx.x;
      const float own = index < job_.voxels.count ? weight(index) : 0;
      batch.counts[k] = own != 0;
      batch.v[k] = batch.counts[k] ? load_one(index) : first();
      batch.v[k].x *= own;  // a NaN stays one
    }
    return batch;
  }
  __device__ void store_x(std::int64_t chunk, const T (&slopes)[kBatch]) const {
    for (int k = 0; k < kBatch; ++k) {
      const std::int64_t index = chunk + k * kThreads + threadIdx.x;
      if (index < job_.voxels.count) store_x_one(index, slopes[k]);
    }
  }
  __device__ void store_y(std::int64_t chunk, const T (&slopes)[kBatch]) const {
    for (int k = 0; k < kBatch; ++k) {
      const std::int64_t index = chunk + k * kThreads + threadIdx.x;
      if (index < job_.voxels.count) store_y_one(index, slopes[k]);
    }
  }
  __device__ void store_x_one(std::int64_t index, T slope) const {
    gpu::store_element(
        job_.x_gradient, job_.dtype, (start_ + job_.voxels.at(index)).x_gradient, slope);
  }
  __device__ void store_y_one(std::int64_t index, T slope) const {
    gpu::store_element(
        job_.y_gradient, job_.dtype, (start_ + job_.voxels.at(index)).y_gradient, slope);
  }

 private:
  __device__ T element(const void* data, std::int64_t offset) const {
    if constexpr (sizeof(T) == sizeof(double)) return gpu::load_element(data, job_.dtype, offset);
    return gpu::load_element_f32(data, job_.dtype, offset);
  }

  const Job& job_;
  Offsets start_;
};

/// Weights of a value in neighbouring bins, kept in registers. `first` may be -2 and the last bin
/// bins + 1: bins that do not exist have weight 0, and memory to spare stands for them.
template <int taps> struct Weights {
  int first;
  float value[taps], slope[taps];
};

/// Scales the values to sum to `one`. The compiler drops the slopes if nobody reads them.
template <int taps> __device__ __forceinline__ void normalize(float one, Weights<taps>* w) {
  float sum = 0, slope_sum = 0;
#pragma unroll
  for (int k = 0; k < taps; ++k) {
    sum += w->value[k];
    slope_sum += w->slope[k];
  }
  const float inverse = __fdividef(one, sum), slope_share = __fdividef(slope_sum, sum);
#pragma unroll
  for (int k = 0; k < taps; ++k) {
    w->slope[k] = fused(-w->value[k], slope_share, w->slope[k]) * inverse;
    w->value[k] *= inverse;
  }
}

/// Returns the cubic B-spline's weights, one polynomial of f = t - ⌊t⌋ for each neighbour, in a
/// third of b_spline_weight()'s instructions; bins that do not exist get 0.
__device__ __forceinline__ Weights<4> b_spline_weights(float t, int bins) {
  const int floor = static_cast<int>(t + 1) - 1;
  const float f = t - static_cast<float>(floor), g = 1 - f;
  const float f2 = f * f, g2 = g * g;
  constexpr float kSixth = 1.0f / 6;
  Weights<4> w;
  w.first = floor - 1;
  w.value[0] = g2 * (g * kSixth);
  w.value[3] = f2 * (f * kSixth);
  w.value[1] = fmaf(f2, fmaf(f, 0.5f, -1.0f), 2.0f / 3);
  w.value[2] = fmaf(g2, fmaf(g, 0.5f, -1.0f), 2.0f / 3);
  w.slope[0] = -0.5f * g2;
  w.slope[3] = 0.5f * f2;
  w.slope[1] = f * fmaf(f, 1.5f, -2.0f);
  w.slope[2] = -g * fmaf(g, 1.5f, -2.0f);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const bool exists = k < 2 ? w.first + k >= 0 : w.first + k < bins;
    w.value[k] = exists ? w.value[k] : 0;
    w.slope[k] = exists ? w.slope[k] : 0;
  }
  return w;
}

template <ParzenKernel kernel, int taps>
__device__ __forceinline__ Weights<taps> weights_of(
    float v, const Scale<float>& scale, int bins, float decay, float one) {
  const float t = within(position(v, scale), bins);
  Weights<taps> w;
  if constexpr (kernel == ParzenKernel::b_spline) {
    w = b_spline_weights(t, bins);
  } else {
    w.first = first_bin(t, bins, taps);
#pragma unroll
    for (int k = 0; k < taps; ++k) {
      const Weight<float> each = gaussian_weight(t - static_cast<float>(w.first + k), decay);
      w.value[k] = each.value;
      w.slope[k] = each.slope;
    }
  }
  normalize(one, &w);
  return w;
}

/// The same for a number of bins known at run time; each weight is computed when it is asked for.
class AnyWeights {
 public:
  __device__ AnyWeights(double v, const Scale<double>& scale, const Job& job)
      : kernel_(job.kernel), decay_(job.decay) {
    if (kernel_ == ParzenKernel::delta) {
      first_ = holding_bin(v, scale, job.bins);
      return;
    }
    const double t = within(position(v, scale), job.bins);
    first_ = first_bin(t, job.bins, job.taps);
    from_first_ = t - first_;
    for (int k = 0; k < job.taps; ++k) {
      const Weight<double> each = raw(k);
      sum_ += each.value;
      slope_sum_ += each.slope;
    }
  }
  __device__ int first() const { return first_; }
  __device__ Weight<double> at(int k) const {
    if (kernel_ == ParzenKernel::delta) return {1, 0};
    const Weight<double> each = raw(k);
    return {each.value / sum_, (each.slope - each.value / sum_ * slope_sum_) / sum_};
  }

 private:
  __device__ Weight<double> raw(int k) const {
    const double d = from_first_ - k;
    return kernel_ == ParzenKernel::b_spline ? b_spline_weight(d) : gaussian_weight(d, decay_);
  }

  ParzenKernel kernel_;
  double decay_, from_first_ = 0, sum_ = 0, slope_sum_ = 0;
  int first_;
};

/// Copies of a histogram or table lie in shared memory with copy k of entry e at e·copies + k, and
/// each thread takes the copy of its number. With 32 copies each lane of a warp has a bank of its
/// own, whatever the values are. Spare entries before and behind stand for the bins of weight 0.
constexpr int kMostCopies = 32;

SIMILIS_HOST_DEVICE int spare_entries(int bins) { return 2 * bins + 2; }
SIMILIS_HOST_DEVICE int all_entries(int bins) { return bins * bins + 2 * spare_entries(bins); }

inline std::size_t shared_bytes_of(int bins, int copies) {
  return static_cast<std::size_t>(all_entries(bins)) * static_cast<std::size_t>(copies) * 4;
}

/// Returns the number of copies that fit: 0 to 32.
inline int copies_of(int bins, std::size_t shared_bytes) {
  int copies = kMostCopies;
  while (copies > 0 && shared_bytes_of(bins, copies) > shared_bytes) copies /= 2;
  return copies;
}

/// Returns whether DenseVoxels takes the images.
bool is_dense(const Job& job);

/// Queue the kernels of cuda_histogram.cu and cuda_gradient.cu over `results` results of the group;
/// with 0 copies they work in f64 and global memory.
void count_voxels(const Job& job, std::int64_t results, int copies, const Execution& exec);
void write_gradients(const Job& job, std::int64_t results, int copies, const Execution& exec);

}  // namespace similis::mutual_information_internal
