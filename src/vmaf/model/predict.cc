// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "src/core/require.h"
#include "src/vmaf/model/model.h"

namespace similis::vmaf_internal {
namespace {

// A percentile of ascending values, between neighbours linearly.
double percentile(const std::vector<double>& ascending, double percent) {
  const double at = percent * static_cast<double>(ascending.size() - 1) / 100;
  const auto below = static_cast<std::size_t>(std::floor(at));
  const auto above = static_cast<std::size_t>(std::ceil(at));
  if (below == above) return ascending[below];
  return ascending[below] * (static_cast<double>(above) - at) +
         ascending[above] * (at - static_cast<double>(below));
}

double on_knots(const std::vector<std::pair<double, double>>& knots, double x) {
  std::size_t i = 0;
  while (i + 2 < knots.size() && x > knots[i + 1].first) ++i;
  const auto& [x0, y0] = knots[i];
  const auto& [x1, y1] = knots[i + 1];
  if (y0 == y1) return y0;
  const double slope = (y1 - y0) / (x1 - x0);
  return slope * x + (y0 - x0 * slope);
}

}  // namespace

double ScoreTransform::operator()(double score) const {
  if (!is_enabled) return score;
  double result = score;
  if (polynomial[0] || polynomial[1] || polynomial[2]) {
    result = 0;
    if (polynomial[0]) result += *polynomial[0];
    if (polynomial[1]) result += *polynomial[1] * score;
    if (polynomial[2]) result += *polynomial[2] * score * score;
  }
  if (knots.size() > 1) result = on_knots(knots, result);
  if (is_at_most_input) result = std::min(result, score);
  if (is_at_least_input) result = std::max(result, score);
  return result;
}

double Regression::predict(std::span<const double> values) const {
  std::vector<double> x(values.begin(), values.end());
  if (is_rescaled) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = slopes[i + 1] * x[i] + intercepts[i + 1];
  }
  double sum = 0;
  for (const SupportVector& vector : vectors) {
    double distance = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double difference = x[i] - vector.place[i];
      distance += difference * difference;
    }
    sum += vector.coefficient * std::exp(-gamma * distance);
  }
  sum -= rho;
  return is_rescaled ? (sum - intercepts[0]) / slopes[0] : sum;
}

double Regression::transformed(double score) const {
  const double result = transform(score);
  return clip ? std::clamp(result, clip->first, clip->second) : result;
}

double model_score(const Model& model, std::span<const double> predicted) {
  return model.regressions[0].transformed(predicted[0]);
}

std::vector<std::string> Model::member_columns() const {
  std::vector<std::string> columns;
  if (!is_set()) return columns;
  for (std::size_t i = 1; i < regressions.size(); ++i) {
    columns.push_back(fmt::format("{}_{:04}", name, i));
  }
  for (const char* end : {"bagging", "stddev", "ci_p95_lo", "ci_p95_hi"}) {
    columns.push_back(fmt::format("{}_{}", name, end));
  }
  return columns;
}

std::vector<double> member_scores(const Model& model, std::span<const double> predicted) {
  std::vector<double> scores;
  if (!model.is_set()) return scores;
  for (std::size_t i = 1; i < predicted.size(); ++i) {
    scores.push_back(model.regressions[i].transformed(predicted[i]));
  }
  std::vector<double> members(predicted.begin() + 1, predicted.end());
  const auto count = static_cast<double>(members.size());
  double sum = 0, squares = 0;
  for (const double score : members) sum += score;
  const double mean = sum / count;
  for (const double score : members) squares += (score - mean) * (score - mean);
  std::sort(members.begin(), members.end());
  const Regression& first = model.regressions[1];
  // The deviation is scaled by the slope of the transform about the mean.
  constexpr double step = 0.01;
  const double slope =
      (first.transformed(mean + step) - first.transformed(mean - step)) / (2.0 * step);
  scores.push_back(first.transformed(mean));
  scores.push_back(std::sqrt(squares / count) * slope);
  scores.push_back(first.transformed(percentile(members, 2.5)));
  scores.push_back(first.transformed(percentile(members, 97.5)));
  return scores;
}

}  // namespace similis::vmaf_internal
