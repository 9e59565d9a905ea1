// SPDX-License-Identifier: Apache-2.0
#include "src/ssimulacra2/score.h"

#include <algorithm>

namespace similis::ssimulacra2_internal {

// Those of version 2.1, as the reference program has them.
const Weights kScoreWeights = {{
    // X, the finest scale first: means of dissimilarity, ringing, blurring; then 4-norms
    0,
    0.0007376606707406586,
    0,
    0,
    0.0007793481682867309,
    0,
    0,
    0.0004371155730107379,
    0,
    1.1041726426657346,
    0.00066284834129271,
    0.00015231632783718752,
    0,
    0.0016406437456599754,
    0,
    1.8422455520539298,
    11.441172603757666,
    0,
    0.0007989109436015163,
    0.000176816438078653,
    0,
    1.8787594979546387,
    10.94906990605142,
    0,
    0.0007289346991508072,
    0.9677937080626833,
    0,
    0.00014003424285435884,
    0.9981766977854967,
    0.00031949755934435053,
    0.0004550992113792063,
    0,
    0,
    0.0013648766163243398,
    0,
    0,
    // Y, the finest scale first: means of dissimilarity, ringing, blurring; then 4-norms
    0,
    0,
    0,
    7.466890328078848,
    0,
    17.445833984131262,
    0.0006235601634041466,
    0,
    0,
    6.683678146179332,
    0.00037724407979611296,
    1.027889937768264,
    225.20515300849274,
    0,
    0,
    19.213238186143016,
    0.0011401524586618361,
    0.001237755635509985,
    176.39317598450694,
    0,
    0,
    24.43300999870476,
    0.28520802612117757,
    0.0004485436923833408,
    0,
    0,
    0,
    34.77906344483772,
    44.835625328877896,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    // B, the finest scale first: means of dissimilarity, ringing, blurring; then 4-norms
    0,
    0.0008680556573291698,
    0,
    0,
    0,
    0,
    0,
    0.0005313191874358747,
    0,
    0.00016533814161379112,
    0,
    0,
    0,
    0,
    0,
    0.0004179171803251336,
    0.0017290828234722833,
    0,
    0.0020827005846636437,
    0,
    0,
    8.826982764996862,
    23.19243343998926,
    0,
    95.1080498811086,
    0.9863978034400682,
    0.9834382792465353,
    0.0012286405048278493,
    171.2667255897307,
    0.9807858872435379,
    0,
    0,
    0,
    0.0005130064588990679,
    0,
    0.00010854057858411537,
}};

Scales scales_of(std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kSmallest = 8;  // the last scale is half of one whose sides have this
  Scales scales;
  Extent extent = {height, width};
  while (scales.count < kMaxScales) {
    scales.extents[scales.count++] = extent;
    if (std::min(extent.height, extent.width) < kSmallest) break;
    extent = {(extent.height + 1) / 2, (extent.width + 1) / 2};
  }
  return scales;
}

unsigned weighted_terms(int scales, int scale, int channel) {
  unsigned terms = 0;
  for (const Norm norm : {kFirst, kFourth}) {
    for (int term = 0; term < kTerms; ++term) {
      if (kScoreWeights.of[weight_index(scales, {scale, channel, term, norm})] != 0)
        terms |= 1u << term;
    }
  }
  return terms;
}

double weighted_sum(const Scales& scales, const PairSums& sums) {
  double total = 0;
  for (int channel = 0; channel < kChannels; ++channel) {
    for (int scale = 0; scale < scales.count; ++scale) {
      for (const Norm norm : {kFirst, kFourth}) {
        for (int term = 0; term < kTerms; ++term) {
          total += weighted_norm(scales, kScoreWeights, {scale, channel, term, norm},
              sums.scales[scale].of[channel][term][norm]);
        }
      }
    }
  }
  return total;
}

LossWeights loss_weights(const Scales& scales, const PairSums& sums) {
  LossWeights result;
  for (int scale = 0; scale < scales.count; ++scale) {
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int term = 0; term < kTerms; ++term) {
        const auto weight = [&](Norm norm) {
          return kScoreWeights.of[weight_index(scales.count, {scale, channel, term, norm})];
        };
        const double norm =
            norm_of(sums.scales[scale].of[channel][term][kFourth], kFourth, scales.extents[scale]);
        auto& of = result.of[scale][channel][term];
        of.linear = weight(kFirst);
        of.fourth = norm > 0 ? weight(kFourth) / (norm * norm * norm) : 0;
      }
    }
  }
  return result;
}

}  // namespace similis::ssimulacra2_internal
