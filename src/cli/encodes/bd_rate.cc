// SPDX-License-Identifier: Apache-2.0
#include "src/cli/encodes/bd_rate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "src/core/joined.h"

namespace similis::cli {
namespace {

// A common interval below this share of either curve's is noted.
constexpr double kSmallShare = 0.5;

// The slope at an end of the curve: that of a parabola through three points, cut so that it does
// not turn.
double end_slope(double h0, double h1, double d0, double d1) {
  const double slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
  if (slope * d0 <= 0) return 0;
  if (d0 * d1 <= 0 && std::abs(slope) > 3 * std::abs(d0)) return 3 * d0;
  return slope;
}

std::vector<double> slopes(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  std::vector<double> h(n - 1), d(n - 1), m(n);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    h[i] = x[i + 1] - x[i];
    d[i] = (y[i + 1] - y[i]) / h[i];
  }
  if (n == 2) return {d[0], d[0]};
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (d[i - 1] * d[i] <= 0) continue;  // a weighted harmonic mean, 0 at a turn
    const double before = 2 * h[i] + h[i - 1], after = h[i] + 2 * h[i - 1];
    m[i] = (before + after) / (before / d[i - 1] + after / d[i]);
  }
  m[0] = end_slope(h[0], h[1], d[0], d[1]);
  m[n - 1] = end_slope(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
  return m;
}

// A curve as a function of its growing first coordinate.
struct Function {
  std::vector<double> x, y;
};

// Empty if two points have the same x.
std::optional<Function> function_of(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  Function function;
  for (const auto& [x, y] : points) {
    if (!function.x.empty() && x == function.x.back()) return std::nullopt;
    function.x.push_back(x);
    function.y.push_back(y);
  }
  return function;
}

struct Mean {
  std::optional<double> difference;
  bool is_narrow = false;  // the common interval is a small share of a curve
};

// The mean of curve - base over the interval that both have.
Mean mean_difference(const Function& base, const Function& curve) {
  const double first = std::max(base.x.front(), curve.x.front());
  const double last = std::min(base.x.back(), curve.x.back());
  if (!(last > first)) return {};
  const double longest = std::max(base.x.back() - base.x.front(), curve.x.back() - curve.x.front());
  const double difference =
      pchip_integral(curve.x, curve.y, first, last) - pchip_integral(base.x, base.y, first, last);
  return {difference / (last - first), last - first < kSmallShare * longest};
}

bool falls(std::vector<RatePoint> points) {
  std::sort(points.begin(), points.end(),
      [](const RatePoint& a, const RatePoint& b) { return a.rate < b.rate; });
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].quality <= points[i - 1].quality) return true;
  }
  return false;
}

std::vector<std::pair<double, double>> by_quality(const std::vector<RatePoint>& points) {
  std::vector<std::pair<double, double>> pairs;
  for (const RatePoint& point : points) pairs.emplace_back(point.quality, std::log10(point.rate));
  return pairs;
}

std::vector<std::pair<double, double>> by_rate(const std::vector<RatePoint>& points) {
  std::vector<std::pair<double, double>> pairs;
  for (const RatePoint& point : points) pairs.emplace_back(std::log10(point.rate), point.quality);
  return pairs;
}

}  // namespace

double pchip_integral(
    const std::vector<double>& x, const std::vector<double>& y, double a, double b) {
  const std::vector<double> m = slopes(x, y);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double from = std::max(a, x[i]), to = std::min(b, x[i + 1]);
    if (!(to > from)) continue;
    const double h = x[i + 1] - x[i], d = (y[i + 1] - y[i]) / h;
    const double c = (3 * d - 2 * m[i] - m[i + 1]) / h;
    const double e = (m[i] + m[i + 1] - 2 * d) / (h * h);
    const auto integral = [&](double t) {  // of y + m t + c t² + e t³
      return t * (y[i] + t * (m[i] / 2 + t * (c / 3 + t * e / 4)));
    };
    sum += integral(to - x[i]) - integral(from - x[i]);
  }
  return sum;
}

BdDifference bd_difference(std::vector<RatePoint> base, std::vector<RatePoint> curve) {
  BdDifference result;
  const auto is_bad = [](const RatePoint& point) {
    return !std::isfinite(point.quality) || !(point.rate > 0) || !std::isfinite(point.rate);
  };
  if (std::any_of(base.begin(), base.end(), is_bad) ||
      std::any_of(curve.begin(), curve.end(), is_bad)) {
    result.note = "a quality is not finite";
    return result;
  }
  const auto base_rates = function_of(by_quality(base)), rates = function_of(by_quality(curve));
  const auto base_qualities = function_of(by_rate(base)), qualities = function_of(by_rate(curve));
  if (!base_rates || !rates || !base_qualities || !qualities) {
    result.note = "two points have the same quality or the same rate";
    return result;
  }
  const Mean of_rate = mean_difference(*base_rates, *rates);
  const Mean of_quality = mean_difference(*base_qualities, *qualities);
  if (of_rate.difference) result.rate = 100 * (std::pow(10, *of_rate.difference) - 1);
  result.quality = of_quality.difference;
  std::vector<std::string> notes;
  if (!result.rate || !result.quality) {
    notes.emplace_back("the curves have no common interval");
  } else if (of_rate.is_narrow || of_quality.is_narrow) {
    notes.emplace_back("the common interval is less than half of a curve");
  }
  if (falls(base) || falls(curve)) notes.emplace_back("quality falls as the rate rises");
  result.note = joined(notes, "; ");
  return result;
}

}  // namespace similis::cli
