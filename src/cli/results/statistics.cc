// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace similis::cli {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The score of the mean error: psnr is 10·log10(range² / mse).
double score_of_mean_error(const std::vector<double>& decibels) {
  constexpr double kTen = 10;
  double errors = 0;
  for (const double score : decibels) errors += std::pow(kTen, -score / kTen);
  return -kTen * std::log10(errors / static_cast<double>(decibels.size()));
}

// Between the two scores around rank (n - 1)·percent / 100.
double percentile(const std::vector<double>& sorted, double percent) {
  const double rank = static_cast<double>(sorted.size() - 1) * percent / 100;
  const auto below = static_cast<std::size_t>(rank);
  const double fraction = rank - static_cast<double>(below);
  if (fraction == 0 || sorted[below] == sorted[below + 1]) return sorted[below];
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

}  // namespace

std::array<std::pair<const char*, double>, 12> Statistics::named() const {
  return {{{"mean", mean}, {"min", min}, {"max", max}, {"stdev", stdev}, {"median", median},
      {"harmonic_mean", harmonic_mean}, {"p1", p1}, {"p5", p5}, {"p10", p10}, {"p25", p25},
      {"p75", p75}, {"p95", p95}}};
}

Statistics statistics(std::vector<double> scores, Pooling pooling) {
  const bool has_nan =
      std::any_of(scores.begin(), scores.end(), [](double score) { return std::isnan(score); });
  if (scores.empty() || has_nan) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan};
  }
  Statistics result{};
  result.mean = mean_of(scores);  // in the order of the frames, before they are sorted
  double squares = 0, inverses = 0;
  for (const double score : scores) {
    squares += (score - result.mean) * (score - result.mean);
    inverses += 1 / (score + 1);
  }
  const auto count = static_cast<double>(scores.size());
  result.stdev = std::sqrt(squares / count);
  result.harmonic_mean = count / inverses - 1;
  if (pooling == Pooling::of_errors) result.mean = score_of_mean_error(scores);
  std::sort(scores.begin(), scores.end());
  result.min = scores.front();
  result.max = scores.back();
  result.median = percentile(scores, 50);
  result.p1 = percentile(scores, 1);
  result.p5 = percentile(scores, 5);
  result.p10 = percentile(scores, 10);
  result.p25 = percentile(scores, 25);
  result.p75 = percentile(scores, 75);
  result.p95 = percentile(scores, 95);
  return result;
}

}  // namespace similis::cli
