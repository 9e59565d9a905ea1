// SPDX-License-Identifier: Apache-2.0
// Adds a column's terms within a stripe, and the sums of 32 columns by halves, as score.h says.
#pragma once

#include "src/gpu/cuda/reciprocal.h"
#include "src/ssimulacra2/cuda/scale.cuh"
#include "src/ssimulacra2/formula.h"

namespace similis::ssimulacra2_internal {

// Returns a / b by IEEE's rules, for b ≥ 1 and quotients that are normal, or NaN. These are the
// instructions of nvcc's division without its branch for other operands, which would keep the
// neighbours' divisions from running at the same time.
__device__ __forceinline__ double normal_quotient(double a, double b) {
#if defined(__CUDA_ARCH__)
  double r = gpu::approximate_reciprocal(b);
  double e = ::fma(-b, r, 1.0);
  e = ::fma(e, e, e);
  r = ::fma(r, e, r);
  e = ::fma(-b, r, 1.0);
  r = ::fma(r, e, r);
  const double q = a * r;
  return ::fma(r, ::fma(-b, q, a), q);
#else
  return a / b;
#endif
}

// Computes numerator / denominator by IEEE's rules where that decides a term, for all columns at
// once.
template <int columns>
__device__ __forceinline__ void divide(const Similarity (&s)[columns], float (&q)[columns]) {
#if defined(__CUDA_ARCH__)
  bool is_plain = true;
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    const float a = s[c].numerator, b = s[c].denominator;
    float r = gpu::approximate_reciprocal(b);
    r = fused(fused(-b, r, 1.0f), r, r);
    q[c] = a * r;
    q[c] = fused(fused(-b, q[c], a), r, q[c]);
    q[c] = fused(fused(-b, q[c], a), r, q[c]);
    // A numerator too small for this has the term 1.
    is_plain = is_plain && b > 0x1p-60f && b < 0x1p60f && ::fabsf(a) < 0x1p60f;
  }
  if (is_plain) return;
#endif
#pragma unroll
  for (int c = 0; c < columns; ++c) q[c] = s[c].numerator / s[c].denominator;
}

// The sums of one column within a stripe.
struct ColumnSums {
  double of[kTerms][kNorms];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) of[i / kNorms][i % kNorms] = 0;
  }
  __device__ void add(int term, double value) {
    of[term][kFirst] += value;
    of[term][kFourth] += fourth_power(value);
  }
};

// Adds a row of neighbouring pixels of one thread. If a channel has not all products, only edges
// count.
template <int columns, int products>
__device__ __forceinline__ void add_terms(unsigned terms, const float (&x)[columns],
    const float (&y)[columns], const float (&averages)[columns][products],
    ColumnSums (&sums)[columns]) {
  if constexpr (products == kProducts) {
    if ((terms >> kDissimilarity & 1u) != 0) {
      Similarity similarities[columns];
      float quotients[columns];
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const float(&a)[products] = averages[c];
        similarities[c] = similarity(a[0], a[1], a[2], a[3], a[4]);
      }
      divide(similarities, quotients);
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        sums[c].add(kDissimilarity, dissimilarity_of_quotient(quotients[c]));
      }
    }
  }
  if (terms >> kRinging == 0) return;
  double changes[columns];
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    changes[c] = normal_quotient(edge_of(y[c], averages[c][1]), edge_of(x[c], averages[c][0])) - 1;
  }
  if ((terms >> kRinging & 1u) != 0) {
#pragma unroll
    for (int c = 0; c < columns; ++c) sums[c].add(kRinging, ringing(changes[c]));
  }
  if ((terms >> kBlurring & 1u) != 0) {
#pragma unroll
    for (int c = 0; c < columns; ++c) sums[c].add(kBlurring, blurring(changes[c]));
  }
}

// Writes the sums of the groups whose columns the lanes of a warp have: one group if each lane has
// one column, two if each has two neighbours. Columns outside the picture count as 0. Clears the
// sums.
template <int columns>
__device__ void write_partials(const Scale& s, std::int64_t image, int channel, std::int64_t stripe,
    std::int64_t column, ColumnSums (&sums)[columns]) {
  constexpr int lanes = kGroup / columns;  // lanes of a group
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t group = column / kGroup;
  const bool writes = lane % lanes == 0 && column < s.extent.width;
  double* partial = s.partial(image, stripe, writes ? group : 0, channel);
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    double values[columns];
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      values[c] = column + c < s.extent.width ? sums[c].of[i / kNorms][i % kNorms] : 0;
      for (int distance = lanes / 2; distance > 0; distance /= 2) {
        values[c] += gpu::value_of(values[c], (lane + distance) % kLanes);
      }
    }
    if (writes) partial[i] = columns == 1 ? values[0] : values[0] + values[columns - 1];
  }
#pragma unroll
  for (int c = 0; c < columns; ++c) sums[c].clear();
}

}  // namespace similis::ssimulacra2_internal
