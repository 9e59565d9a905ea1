// SPDX-License-Identifier: Apache-2.0
// The score from the sums of the terms. CPU and GPU compile the same text, the power included, so
// that the score has the same bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"
#include "src/ssimulacra2/formula.h"

namespace similis::ssimulacra2_internal {

constexpr int kMaxScales = 6, kChannels = 3, kTerms = 3, kNorms = 2;
constexpr int kWeights = kMaxScales * kChannels * kTerms * kNorms;

/// A pixel's terms, in the order of the weights.
enum Term : int { kDissimilarity, kRinging, kBlurring };

struct Extent {
  std::int64_t height, width;
};

/// The scales of a picture: the first is the picture, each later one half of the one before.
struct Scales {
  int count = 0;
  Extent extents[kMaxScales] = {};
};
Scales scales_of(std::int64_t height, std::int64_t width);

/// The index into the sums below: the sum of the values, or of their fourth powers.
enum Norm : int { kFirst, kFourth };

/// Sums over the pixels of one scale, in one fixed order: columns within a stripe of kStripe rows
/// from the top; 32 neighbouring columns by halves (0 and 16, 1 and 17, …, then 0 and 8, …);
/// stripes from the top; groups of 32 columns from the left.
struct ScaleSums {
  double of[kChannels][kTerms][kNorms] = {};
};
struct PairSums {
  ScaleSums scales[kMaxScales];
};
constexpr int kStripe = 32;
constexpr int kGroup = 32;

/// The weights of the pictures' scales: [channel][scale][norm][term] without gaps, so that pictures
/// of fewer scales have other weights, as in the reference program.
struct Weights {
  double of[kWeights];
};
extern const Weights kScoreWeights;

/// One of a pair's sums.
struct SumAt {
  int scale, channel, term;
  Norm norm;
};
SIMILIS_HOST_DEVICE int weight_index(int scales, const SumAt& at) {
  return ((at.channel * scales + at.scale) * kNorms + at.norm) * kTerms + at.term;
}

/// The terms of a channel at a scale that have a weight: bit t for term t. The others need not be
/// computed.
unsigned weighted_terms(int scales, int scale, int channel);

// The words of score_steps.h, whose text GLSL compiles too.
using u64 = std::uint64_t;
#define U64(number) \
  u64 { number }
#define SIMILIS_NUMBER(value, high, low)                                           \
  ([] {                                                                            \
    static_assert(__builtin_bit_cast(u64, value) == (u64{high} << 32 | u64{low})); \
    return value;                                                                  \
  }())
SIMILIS_HOST_DEVICE f64 f64_fused(f64 a, f64 b, f64 c) { return ::fma(a, b, c); }
SIMILIS_HOST_DEVICE f64 f64_root(f64 a) { return ::sqrt(a); }
SIMILIS_HOST_DEVICE int f64_floor_to_int(f64 a) { return static_cast<int>(::floor(a)); }
SIMILIS_HOST_DEVICE u64 f64_bits(f64 a) { return bits_as<u64>(a); }
SIMILIS_HOST_DEVICE f64 f64_of_bits(u64 bits) { return bits_as<f64>(bits); }

#include "src/ssimulacra2/score_steps.h"

#undef U64
#undef SIMILIS_NUMBER

/// The norm of a term: its mean, or the fourth root of its mean fourth power.
SIMILIS_HOST_DEVICE double norm_of(double sum, Norm norm, const Extent& extent) {
  return norm_of_sum(sum, norm == kFourth, static_cast<double>(extent.height * extent.width));
}

SIMILIS_HOST_DEVICE double weighted_norm(
    const Scales& scales, const Weights& weights, const SumAt& at, double sum) {
  return weights.of[weight_index(scales.count, at)] *
         norm_of(sum, at.norm, scales.extents[at.scale]);
}

/// The norms times their weights, added in the order of the weights.
double weighted_sum(const Scales& scales, const PairSums& sums);

/// The weights of a pixel's terms in the weighted sum: linear·t + fourth·t⁴, so that the mean over
/// a scale's pixels is its part of the sum.
struct LossWeights {
  struct {
    double linear = 0, fourth = 0;
  } of[kMaxScales][kChannels][kTerms];
};
LossWeights loss_weights(const Scales& scales, const PairSums& sums);

}  // namespace similis::ssimulacra2_internal
