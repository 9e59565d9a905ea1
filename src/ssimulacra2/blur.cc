// SPDX-License-Identifier: Apache-2.0
#include "src/ssimulacra2/blur.h"

#include <cmath>
#include <numbers>

namespace similis::ssimulacra2_internal {
namespace {

constexpr double kSigma = 1.5;
constexpr int kRadius = 5;

struct Triple {
  double first, second, third;
};

double determinant(const Triple& a, const Triple& b, const Triple& c) {
  return a.first * (b.second * c.third - b.third * c.second) -
         a.second * (b.first * c.third - b.third * c.first) +
         a.third * (b.first * c.second - b.second * c.first);
}

// x of [rows]·x = right, by Cramer's rule.
Triple solve(const Triple& a, const Triple& b, const Triple& c, const Triple& right) {
  const double whole = determinant(a, b, c);
  const auto with_column = [&](double Triple::*column) {
    Triple x = a, y = b, z = c;
    x.*column = right.first;
    y.*column = right.second;
    z.*column = right.third;
    return determinant(x, y, z) / whole;
  };
  return {with_column(&Triple::first), with_column(&Triple::second), with_column(&Triple::third)};
}

Section section_of(double n2, double d1) {
  const double d2 = d1 * d1;
  Section section{.n2 = static_cast<float>(n2), .d1 = static_cast<float>(d1)};
  const double previous[] = {-d1, d2 - 1, -d2 * d1 + 2 * d1, d2 * d2 - 3 * d2 + 1};
  const double before[] = {-1, d1, -d2 + 1, d2 * d1 - 2 * d1};
  const double fresh[] = {n2, -d1 * n2, d2 * n2 - n2, -d2 * d1 * n2 + 2 * d1 * n2};
  for (int i = 0; i < 4; ++i) {
    section.previous[i] = static_cast<float>(previous[i]);
    section.before[i] = static_cast<float>(before[i]);
    section.fresh[i] = static_cast<float>(fresh[i]);
  }
  return section;
}

}  // namespace

Recursion make_recursion() {
  const double omega[] = {std::numbers::pi / (2 * kRadius), 3 * std::numbers::pi / (2 * kRadius),
      5 * std::numbers::pi / (2 * kRadius)};
  const Triple p = {
      1 / std::tan(omega[0] / 2), -1 / std::tan(omega[1] / 2), 1 / std::tan(omega[2] / 2)};
  const Triple r = {p.first * p.first / std::sin(omega[0]),
      -p.second * p.second / std::sin(omega[1]), p.third * p.third / std::sin(omega[2])};
  const auto rho = [&](int k) {
    return std::exp(-.5 * kSigma * kSigma * omega[k] * omega[k]) / kRadius;
  };
  const double d13 = p.first * r.second - r.first * p.second;
  const double d35 = p.second * r.third - r.second * p.third;
  const double d51 = p.third * r.first - r.third * p.first;
  const double a = d35 / d13, b = d51 / d13;
  const Triple beta = solve(
      p, r, {a, b, 1}, {1, kRadius * kRadius - kSigma * kSigma, a * rho(0) + b * rho(1) + rho(2)});
  const double betas[] = {beta.first, beta.second, beta.third};
  Recursion recursion{};
  for (int k = 0; k < kSections; ++k) {
    recursion.sections[k] =
        section_of(-betas[k] * std::cos(omega[k] * (kRadius + 1)), -2 * std::cos(omega[k]));
  }
  return recursion;
}

}  // namespace similis::ssimulacra2_internal
