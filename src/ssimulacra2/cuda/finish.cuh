// SPDX-License-Identifier: Apache-2.0
// Turns the sums of every scale into scores, a block for a pair.
#pragma once

#include "src/ssimulacra2/cuda/scale.cuh"

namespace similis::ssimulacra2_internal {

struct Finish {
  Scales scales;
  Weights weights;
  int backgrounds;
  unsigned terms[kMaxScales][kChannels];  // sums of channels without terms were never written
  double* partials[kMaxScales];           // as in Scale
  double* groups[kMaxScales];             // [image][group][channel][term][norm]
  double* scores;

  __host__ __device__ std::int64_t groups_of(int scale) const {
    return (scales.extents[scale].width + kGroup - 1) / kGroup;
  }
  __host__ __device__ std::int64_t stripes_of(int scale) const {
    return (scales.extents[scale].height + kStripe - 1) / kStripe;
  }
};

constexpr int kFinishThreads = 256;

// Computes one pair over one background, by all threads of a block.
__device__ inline double finish(const Finish& f, std::int64_t image, double* norms) {
  for (int scale = 0; scale < f.scales.count; ++scale) {
    const std::int64_t count = f.groups_of(scale) * kSumsOfScale;
    const double* partials = f.partials[scale] + image * f.stripes_of(scale) * count;
    for (std::int64_t i = threadIdx.x; i < count; i += kFinishThreads) {
      if (f.terms[scale][i % kSumsOfScale / kSums] == 0) continue;
      double sum = 0;
      for (std::int64_t stripe = 0; stripe < f.stripes_of(scale); ++stripe) {
        sum += partials[stripe * count + i];
      }
      f.groups[scale][image * count + i] = sum;
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < f.scales.count * kSumsOfScale;
       i += kFinishThreads) {
    const int scale = i / kSumsOfScale, of = i % kSumsOfScale;
    const SumAt at{.scale = scale,
        .channel = of / kSums,
        .term = of / kNorms % kTerms,
        .norm = static_cast<Norm>(of % kNorms)};
    const double* groups = f.groups[scale] + image * f.groups_of(scale) * kSumsOfScale + of;
    const std::int64_t count = f.terms[scale][at.channel] == 0 ? 0 : f.groups_of(scale);
    double sum = 0;
    for (std::int64_t group = 0; group < count; ++group) sum += groups[group * kSumsOfScale];
    norms[weight_index(f.scales.count, at)] = weighted_norm(f.scales, f.weights, at, sum);
  }
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < f.scales.count * kSumsOfScale; ++i) sum += norms[i];
  __syncthreads();
  return score_of_sum(sum);
}

__global__ __launch_bounds__(kFinishThreads) void finish_kernel(
    SIMILIS_GRID_CONSTANT const Finish f) {
  __shared__ double norms[kWeights];
  const std::int64_t pair = blockIdx.x;
  double lowest = 0;
  for (int i = 0; i < f.backgrounds; ++i) {
    const double score = finish(f, pair * f.backgrounds + i, norms);
    if (i == 0 || score < lowest) lowest = score;
  }
  if (threadIdx.x == 0) f.scores[pair] = lowest;
}

}  // namespace similis::ssimulacra2_internal
