// SPDX-License-Identifier: Apache-2.0
// The score from the sums of the terms. CPU and GPU compile the same text, the power included, so
// that the score has the same bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"

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

/// x to the power e in double, in operations that every IEEE machine rounds alike; x > 0 and
/// normal, within 1e-14 of the true power for the scores that there are.
SIMILIS_HOST_DEVICE double power(double x, double e) {
  const std::uint64_t bits = bits_as<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = bits_as<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  const bool is_upper = m > 1.4142135623730951;
  m = is_upper ? m * .5 : m;
  exponent += is_upper ? 1 : 0;
  // log m = 2·atanh(s), |s| < 0.172
  const double s = (m - 1) / (m + 1), ss = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = ::fma(series, ss, 1.0 / k);
  constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  const double log_m = 2 * s * series;
  const double t = e * (exponent * ln2_high + (exponent * ln2_low + log_m));
  const double n = ::floor(t * 1.4426950408889634 + .5);
  const double r = (t - n * ln2_high) - n * ln2_low;
  double exponential = 1;
  for (int k = 14; k >= 1; --k) exponential = ::fma(exponential * r, 1.0 / k, 1.0);
  const auto biased = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023);
  return exponential * bits_as<double>(biased << 52);
}

/// The norm of a term: its mean, or the fourth root of its mean fourth power.
SIMILIS_HOST_DEVICE double norm_of(double sum, Norm norm, const Extent& extent) {
  const double mean = 1.0 / static_cast<double>(extent.height * extent.width) * sum;
  return norm == kFirst ? mean : ::sqrt(::sqrt(mean));
}

/// The score that a weighted sum of norms makes.
SIMILIS_HOST_DEVICE double score_of_sum(double weighted) {
  const double s = weighted * .9562382616834844;
  const double polynomial =
      2.326765642916932 * s - .020884521182843837 * s * s + 6.248496625763138e-05 * s * s * s;
  if (polynomial > 0) return 100 - 10 * power(polynomial, .6276336467831387);
  return polynomial <= 0 ? 100 : polynomial;  // NaN stays
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
