// SPDX-License-Identifier: Apache-2.0
// Passes over values, masks and fields that run a few times in a registration.
#include <array>

#include "src/gpu/cuda/upload.cuh"
#include "src/gpu/cuda/view.h"
#include "src/registration/cuda/each.cuh"
#include "src/registration/cuda/passes.h"

namespace similis::registration_internal {
namespace cuda {
namespace {

template <class T, int rank> struct Turn {
  double m[3][3];
  const T* in;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    double moved[rank] = {};
    for (int r = 0; r < rank; ++r) {
      for (int c = 0; c < rank; ++c) moved[r] += m[r][c] * static_cast<double>(in[i * rank + c]);
    }
    for (int r = 0; r < rank; ++r) out[i * rank + r] = static_cast<T>(moved[r]);
  }
};

struct RoundTo {
  double unit;
  Reals elements;

  __device__ void operator()(std::int64_t i) const {
    elements.set(i, rint(elements[i] / unit) * unit);
  }
};

struct ToFloats {
  int rank;
  std::int64_t shape[kMaxRank], strides[kMaxRank];
  const void* data;
  DType dtype;
  float* out;

  __device__ void operator()(std::int64_t i) const {
    std::int64_t rest = i, offset = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    out[i] = gpu::load_element_f32(data, dtype, offset);
  }
};

struct Threshold {
  double least;
  Reals elements;

  __device__ void operator()(std::int64_t i) const {
    elements.set(i, elements[i] >= least ? 1 : 0);
  }
};

struct NormalizeMask {
  float* elements;

  __device__ void operator()(std::int64_t i) const {
    elements[i] = elements[i] != 0 && !isnan(elements[i]) ? 1.0f : 0.0f;
  }
};

struct LookForGaps {
  using Result = Found<1, 1>;
  const float* values;
  float* mask;
  bool drops;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if (isfinite(values[i]) || (mask != nullptr && mask[i] == 0)) return;
    found.sum[0] += 1;
    if (drops) mask[i] = 0;
  }
};

// The number of values, those that are `least`, the largest of -value and value.
struct LookForSpread {
  using Result = Found<2, 2>;
  const float *values, *mask;
  float least;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if (mask != nullptr && mask[i] == 0) return;
    found.sum[0] += 1;
    found.sum[1] += values[i] == least ? 1 : 0;
    const auto value = static_cast<double>(values[i]);
    found.largest[0] = fmax(found.largest[0], -value);
    found.largest[1] = fmax(found.largest[1], value);
  }
};

// Numbers whose order is that of the values.
SIMILIS_HOST_DEVICE unsigned key_of(float value) {
  const auto bits = bits_as<unsigned>(value);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
SIMILIS_HOST_DEVICE float value_of_key(unsigned key) {
  return bits_as<float>(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
using Counts = std::array<unsigned, kDigits>;

// Counts the digits `shift` bits up in the keys of the values above `least` whose bits above these
// are those of `known`.
__global__ __launch_bounds__(kThreads) void digits_kernel(std::int64_t count, const float* values,
    const float* mask, float least, unsigned known, int shift, unsigned* counts) {
  __shared__ unsigned own[kDigits];
  for (int i = static_cast<int>(threadIdx.x); i < kDigits; i += kThreads) own[i] = 0;
  __syncthreads();
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += threads) {
    if ((mask != nullptr && mask[i] == 0) || !(values[i] > least)) continue;
    const unsigned key = key_of(values[i]);
    const int above = shift + kDigitBits;
    if (above < 32 && key >> above != known >> above) continue;
    atomicAdd(own + (key >> shift & (kDigits - 1)), 1u);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kDigits; i += kThreads) {
    if (own[i] != 0) atomicAdd(counts + i, own[i]);
  }
}

struct NextAbove {
  using Result = Found<1, 1>;
  const float *values, *mask;
  float bound;

  __device__ void operator()(std::int64_t i, Result& found) const {
    if ((mask != nullptr && mask[i] == 0) || !(values[i] > bound)) return;
    found.largest[0] = fmax(found.largest[0], -static_cast<double>(values[i]));
  }
};

struct Rescale {
  float low, by;
  const float* mask;
  float* values;

  __device__ void operator()(std::int64_t i) const {
    const bool counts = mask == nullptr || mask[i] != 0;
    values[i] = counts ? fminf(fmaxf((values[i] - low) * by, 0.0f), 1.0f) : 0.0f;
  }
};

struct Divide {
  Reals share;
  double least;
  Reals values;

  __device__ void operator()(std::int64_t i) const {
    values.set(i, share[i] > least ? values[i] / share[i] : 0);
  }
};

struct SumMass {
  using Result = Found<4, 1>;
  Sizes sizes;
  const float* values;

  __device__ void operator()(std::int64_t i, Result& found) const {
    int at[3];
    sizes.place(i, at);
    const auto value = static_cast<double>(values[i]);
    found.sum[0] += value;
    for (int a = 0; a < 3; ++a) found.sum[1 + a] += value * at[a];
  }
};

struct Lengths {
  using Result = Found<1, 1>;
  int rank;
  const float* field;
  float* lengths;

  __device__ void operator()(std::int64_t i, Result& found) const {
    double square = 0;
    for (int c = 0; c < rank; ++c) {
      const auto e = static_cast<double>(field[i * rank + c]);
      square += e * e;
    }
    const double length = sqrt(square);
    lengths[i] = static_cast<float>(length);
    found.sum[0] += length;
    found.largest[0] = fmax(found.largest[0], static_cast<double>(lengths[i]));
  }
};

}  // namespace

void turn(const GridRows& rows, const Matrix& m, Reals in, Reals out, const Execution& exec) {
  with_type(out, [&]<class T>(T) {
    const auto run = [&](auto body) {
      for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 3; ++c) body.m[r][c] = m(r, c);
      }
      each(rows.device, rows.voxels(), exec, body);
    };
    if (rows.rank == 3) {
      run(Turn<T, 3>{.m = {}, .in = in.as<T>(), .out = out.as<T>()});
    } else {
      run(Turn<T, 2>{.m = {}, .in = in.as<T>(), .out = out.as<T>()});
    }
  });
}

void round_to(
    Device device, std::int64_t count, double unit, Reals elements, const Execution& exec) {
  each(device, count, exec, RoundTo{unit, elements});
}

void to_floats(const TensorView& view, float* out, const Execution& exec) {
  ToFloats body{.rank = view.shape.rank(),
      .shape = {},
      .strides = {},
      .data = view.data(),
      .dtype = view.dtype == DType::boolean ? DType::u8 : view.dtype,
      .out = out};
  for (int axis = 0; axis < body.rank; ++axis) {
    body.shape[axis] = view.shape[axis];
    body.strides[axis] = view.strides[axis];
  }
  each(view.device, view.shape.count(), exec, body);
}

void threshold(
    Device device, std::int64_t count, double least, Reals elements, const Execution& exec) {
  each(device, count, exec, Threshold{elements.rounded(least), elements});
}

void normalize_mask(Device device, std::int64_t count, float* elements, const Execution& exec) {
  each(device, count, exec, NormalizeMask{elements});
}

std::int64_t look_for_gaps(
    const GridRows& rows, const float* values, float* mask, bool drops, const Execution& exec) {
  const LookForGaps body{values, mask, drops};
  return static_cast<std::int64_t>(reduce(rows.device, rows.voxels(), exec, body).sum[0]);
}

Spread spread(const GridRows& rows, const float* values, const float* mask, const Execution& exec) {
  const auto look = [&](float least) {
    return reduce(rows.device, rows.voxels(), exec, LookForSpread{values, mask, least});
  };
  const auto least = static_cast<float>(-look(0).largest[0]);
  const auto found = look(least);
  return {.count = static_cast<std::int64_t>(found.sum[0]),
      .lowest = static_cast<std::int64_t>(found.sum[1]),
      .least = least,
      .most = static_cast<float>(found.largest[1])};
}

Neighbours nth_above(const GridRows& rows, const float* values, const float* mask, float least,
    std::int64_t before, const Execution& exec) {
  const gpu::Current current(rows.device);
  const auto memory = allocate_bytes(sizeof(Counts), rows.device, exec);
  Counts counts;
  unsigned known = 0;
  std::int64_t left = before;  // values before it that share the known bits
  bool has_twin = false;
  for (const int shift : {32 - kDigitBits, 32 - 2 * kDigitBits, 0}) {
    gpu::clear(kName, exec.queue.handle, memory.get(), sizeof(Counts));
    // The last digit overlaps the one above it by a bit, which is known.
    gpu::launch(kName, exec.queue.handle,
        gpu::blocks_for_items(rows.voxels(), kThreads, kMostBlocks), kThreads, 0, digits_kernel,
        rows.voxels(), values, mask, least, known, shift, static_cast<unsigned*>(memory.get()));
    gpu::copy_to_cpu(counts.data(), memory.get(), sizeof(Counts), rows.device, exec.queue.handle);
    unsigned digit = 0;
    if (shift == 0) {
      // Digits of values whose overlapping bit is another belong to others.
      digit = known & (kDigits - 1);
    }
    while (digit + 1 < kDigits && left >= counts[digit]) left -= counts[digit++];
    known |= digit << shift;
    has_twin = left + 1 < counts[digit];
  }
  Neighbours result{.value = value_of_key(known), .next = value_of_key(known)};
  if (has_twin) return result;
  const double next =
      -reduce(rows.device, rows.voxels(), exec, NextAbove{values, mask, result.value}).largest[0];
  if (std::isfinite(next)) result.next = static_cast<float>(next);
  return result;
}

void rescale(const GridRows& rows, float low, float by, const float* mask, float* values,
    const Execution& exec) {
  each(rows.device, rows.voxels(), exec, Rescale{low, by, mask, values});
}

void divide(const GridRows& rows, Reals share, double least, Reals values, const Execution& exec) {
  each(rows.device, rows.voxels(), exec, Divide{share, share.rounded(least), values});
}

Mass mass(const GridRows& rows, const float* values, const Execution& exec) {
  const auto found = reduce(rows.device, rows.voxels(), exec, SumMass{Sizes(rows.size), values});
  return {.sum = found.sum[0], .first = {found.sum[1], found.sum[2], found.sum[3]}};
}

RegisterSummary lengths(const GridRows& rows, const float* field, const Execution& exec) {
  const std::int64_t voxels = rows.voxels();
  const Tensor found = allocate({voxels}, DType::f32, rows.device, exec);
  auto* const begin = static_cast<float*>(found.data());
  const auto all = reduce(rows.device, voxels, exec, Lengths{rows.rank, field, begin});
  const Neighbours p99 = cuda::nth_above(rows, begin, nullptr, -1, voxels * 99 / 100, exec);
  return {.mean = all.sum[0] / static_cast<double>(voxels),
      .p99 = static_cast<double>(p99.value),
      .max = all.largest[0]};
}

Tensor upload(Device device, const Extents& shape, const std::vector<double>& numbers,
    const Execution& exec) {
  const gpu::Current current(device);
  Tensor result = allocate(shape, DType::f64, device, exec);
  gpu::upload(kName, exec.queue.handle, numbers, static_cast<double*>(result.data()));
  return result;
}

}  // namespace cuda

// Inside a function: clang would compile a table at namespace scope for the GPU too.
const Passes& cuda_passes() {
  static const Passes passes = {.weigh_inside = cuda::weigh_inside,
      .drop_below = cuda::drop_below,
      .count_nonzero = cuda::count_nonzero,
      .moments = cuda::moments,
      .add_gradient = cuda::add_gradient,
      .add_scaled = cuda::add_scaled,
      .scale = cuda::scale,
      .fill = cuda::fill,
      .blend = cuda::blend,
      .largest_square = cuda::largest_square,
      .turn = cuda::turn,
      .round_to = cuda::round_to,
      .corner_determinants = cuda::corner_determinants,
      .mark_folds = cuda::mark_folds,
      .to_floats = cuda::to_floats,
      .threshold = cuda::threshold,
      .normalize_mask = cuda::normalize_mask,
      .look_for_gaps = cuda::look_for_gaps,
      .spread = cuda::spread,
      .nth_above = cuda::nth_above,
      .rescale = cuda::rescale,
      .divide = cuda::divide,
      .multiply = cuda::multiply,
      .edge_products = cuda::edge_products,
      .precondition = cuda::precondition,
      .mass = cuda::mass,
      .lengths = cuda::lengths,
      .upload = cuda::upload};
  return passes;
}

}  // namespace similis::registration_internal
