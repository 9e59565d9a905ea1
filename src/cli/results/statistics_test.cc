// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace similis::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Expected values from NumPy: mean, std, percentile(…, method="linear").
TEST(Statistics, OfFiveScores) {
  const Statistics s = statistics({10, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(s.mean, 4);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 10);
  EXPECT_DOUBLE_EQ(s.stdev, std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.harmonic_mean, 5 / (1. / 11 + 1. / 2 + 1. / 5 + 1. / 3 + 1. / 4) - 1);
  EXPECT_DOUBLE_EQ(s.p1, 1.04);
  EXPECT_DOUBLE_EQ(s.p5, 1.2);
  EXPECT_DOUBLE_EQ(s.p10, 1.4);
  EXPECT_DOUBLE_EQ(s.p25, 2);
  EXPECT_DOUBLE_EQ(s.p75, 4);
  EXPECT_DOUBLE_EQ(s.p95, 8.8);
}

TEST(Statistics, OfOneScoreAreThatScore) {
  const Statistics s = statistics({0.875});
  for (const auto& [name, value] : s.named()) {
    EXPECT_DOUBLE_EQ(value, std::string(name) == "stdev" ? 0 : 0.875) << name;
  }
}

TEST(Statistics, InfiniteScoresLeaveTheFiniteOnesStanding) {
  const Statistics s = statistics({20, kInfinity, 30});
  EXPECT_EQ(s.mean, kInfinity);
  EXPECT_EQ(s.min, 20);
  EXPECT_EQ(s.median, 30);
  EXPECT_EQ(s.max, kInfinity);
  EXPECT_EQ(s.p25, 25);
  EXPECT_EQ(s.p75, kInfinity);
  EXPECT_DOUBLE_EQ(s.harmonic_mean, 3 / (1. / 21 + 1. / 31) - 1);
  EXPECT_EQ(statistics({kInfinity, kInfinity}).median, kInfinity);
}

TEST(Statistics, OfNothingAreNotNumbers) {
  for (const auto& [name, value] : statistics({}).named()) EXPECT_TRUE(std::isnan(value)) << name;
}

RC_GTEST_PROP(Statistics, AreOrderedAndInside, (const std::vector<int>& codes)) {
  RC_PRE(!codes.empty());
  std::vector<double> scores;
  for (const int code : codes) scores.push_back(std::abs(code % 1000) / 10.0);
  const Statistics s = statistics(scores);
  const double ordered[] = {s.min, s.p1, s.p5, s.p10, s.p25, s.median, s.p75, s.p95, s.max};
  for (int i = 1; i < 9; ++i) RC_ASSERT(ordered[i - 1] <= ordered[i]);
  RC_ASSERT(s.min <= s.mean + 1e-9 && s.mean <= s.max + 1e-9);
  RC_ASSERT(s.harmonic_mean <= s.mean + 1e-9);
}

}  // namespace
}  // namespace similis::cli
