// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "src/vmaf/adm/formula.h"

namespace similis::vmaf_internal {
namespace {

float cube_root(float value) { return std::pow(value, 1.0f / 3.0f); }

// Each band's root and the noise's, in this order.
float pooled(const std::array<float, kAdmBands>& bands, float noise) {
  float sum = 0;
  for (const float band : bands) sum += cube_root(band) + cube_root(noise);
  return sum;
}

float masked_pool(
    const AdmBandSums& sums, int scale, std::int64_t width, std::int64_t height, float noise) {
  std::array<float, kAdmBands> bands{};
  for (int band = 0; band < kAdmBands; ++band) {
    const auto at = static_cast<std::size_t>(band);
    const int end = adm_shifts(scale, band, width, height).end;
    const auto sum = static_cast<double>(sums[at]);
    bands[at] = scale == 0 ? static_cast<float>(std::ldexp(sum, -end))
                           : static_cast<float>(std::ldexp(
                                 static_cast<double>(static_cast<float>(sums[at])), -end));
  }
  return pooled(bands, noise);
}

float reference_pool(const AdmBandSums& sums, const std::array<float, kAdmBands>& sensitivity,
    int scale, std::int64_t width, std::int64_t height, float noise) {
  std::array<float, kAdmBands> bands{};
  const int end = adm_reference_shifts(scale, width, height).end;
  for (std::size_t at = 0; at < bands.size(); ++at) {
    bands[at] = static_cast<float>(std::ldexp(static_cast<double>(sums[at]), -end) *
                                   std::pow(static_cast<double>(sensitivity[at]), 3));
  }
  return pooled(bands, noise);
}

}  // namespace

AdmScores adm_scores(const AdmSums& sums, std::size_t index, const AdmSetting& setting,
    const AdmWeights& weights, std::int64_t width, std::int64_t height) {
  const AdmSensitivity sensitivity = adm_sensitivity(setting);
  const double least = 1e-10 * static_cast<double>(width * height) / (1920.0 * 1080.0);
  AdmScores scores;
  double additive = 0;
  for (int scale = 0; scale < kAdmScales; ++scale) {
    const auto at = static_cast<std::size_t>(scale);
    width = (width + 1) / 2;
    height = (height + 1) / 2;
    if (scale == 0 && weights.skips_scale0) {
      scores.den[at] = static_cast<float>(1e-10);
      scores.den_sum += static_cast<double>(scores.den[at]);
      continue;
    }
    const std::int64_t columns = width - 2 * adm_first_counted(width);
    const std::int64_t rows = height - 2 * adm_first_counted(height);
    const auto noise = static_cast<float>(static_cast<double>(rows * columns) * weights.noise);
    const AdmScaleSums::Masked& masked = sums[at].masked[index];
    scores.num[at] = masked_pool(masked.detail, scale, width, height, noise);
    scores.den[at] =
        reference_pool(sums[at].reference, sensitivity.real[at], scale, columns, rows, noise);
    scores.num_sum += static_cast<double>(scores.num[at]);
    scores.den_sum += static_cast<double>(scores.den[at]);
    if (!weights.skips_aim) {
      additive += static_cast<double>(masked_pool(masked.additive, scale, width, height, 0));
    }
  }
  if (scores.num_sum < least) scores.num_sum = 0;
  if (scores.den_sum < least) scores.den_sum = 0;
  if (scores.den_sum != 0) {
    scores.adm2 = scores.num_sum / scores.den_sum;
    scores.aim = additive / scores.den_sum;
  }
  scores.adm3 =
      std::max(scores.adm2 * weights.dlm + (1 - scores.aim) * (1 - weights.dlm), weights.least);
  return scores;
}

}  // namespace similis::vmaf_internal
