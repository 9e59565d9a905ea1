// SPDX-License-Identifier: Apache-2.0
#include "src/window/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace similis {
namespace {

TEST(GaussianTaps, AreTheNormalisedGaussian) {
  const std::vector<double> taps = gaussian_taps(5, 1.5);
  const double one = std::exp(-1 / 4.5), two = std::exp(-4 / 4.5), sum = 1 + 2 * one + 2 * two;
  ASSERT_EQ(taps.size(), 5u);
  for (const int side : {-1, 1}) {
    EXPECT_NEAR(taps[static_cast<std::size_t>(2 + side)], one / sum, 1e-16);
    EXPECT_NEAR(taps[static_cast<std::size_t>(2 + 2 * side)], two / sum, 1e-16);
  }
  EXPECT_EQ(gaussian_taps(1, 0.3), std::vector<double>{1});
}

TEST(GaussianTaps, SumToOneInBothTypesAndAnyOrder) {
  for (int size = 1; size <= 63; size += 2) {
    for (const double sigma : {0.1, 0.5, 1.0, 1.5, 2.0, 7.3, 100.0}) {
      const std::vector<double> taps = gaussian_taps(size, sigma);
      double sum = 0;
      for (const double tap : taps) sum += tap;
      EXPECT_NEAR(sum, 1, 1e-15) << size << " " << sigma;
      std::vector<float> in_f32 = taps_in_f32(taps);
      EXPECT_EQ(std::accumulate(in_f32.begin(), in_f32.end(), 0.0f), 1) << size << " " << sigma;
      std::sort(in_f32.begin(), in_f32.end());
      EXPECT_EQ(std::accumulate(in_f32.begin(), in_f32.end(), 0.0f), 1) << size << " " << sigma;
    }
  }
}

TEST(GaussianTaps, InF32AreNearThoseInF64) {
  const std::vector<double> taps = gaussian_taps(11, 1.5);
  const std::vector<float> in_f32 = taps_in_f32(taps);
  for (std::size_t i = 0; i < taps.size(); ++i) {
    EXPECT_NEAR(in_f32[i], taps[i], i == 5 ? 11 * 0x1p-25 : 0x1p-25) << i;
  }
}

}  // namespace
}  // namespace similis
