// SPDX-License-Identifier: Apache-2.0
// Adam on the parameters of a linear map.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "similis/register.hpp"
#include "src/registration/linear/linear_level.h"
#include "src/registration/linear/model.h"

namespace similis::registration_internal {

/// The largest value met, and its parameters.
struct Best {
  double value = -std::numeric_limits<double>::infinity();
  Parameters theta;
};

/// The steps of a descent.
struct Run {
  RegisterStage stage;
  int iterations;
  double step;  // mm, for a head
};

/// Adam from theta, with steps that fall to 0.
class Descent {
 public:
  Descent(const Model& model, const Run& run, double size, const Parameters& from)
      : model_(model),
        run_(run),
        size_(size),
        theta_(from),
        first_(from.size()),
        second_(from.size()),
        best_{.theta = from} {}

  Map map() const { return model_.map(run_.stage, theta_); }

  // A step from what the level found for map().
  void step(const LinearLevel& level, const Evaluation& found) {
    std::vector<double> by_matrix = found.by_matrix;
    if (iteration_ == 0) {
      least_share_ = kLeastOverlap * found.share;
      unit_ = unit_of(by_matrix);
    }
    for (double& number : by_matrix) number = std::rint(number / unit_) * unit_;
    if (found.share >= least_share_ && found.value > best_.value) best_ = {found.value, theta_};
    const double rate =
        run_.step * size_ *
        (0.5 + 0.5 * std::cos(M_PI * iteration_ / static_cast<double>(run_.iterations)));
    const Parameters slope = by_parameters(level, by_matrix);
    ++iteration_;
    for (std::size_t k = 0; k < theta_.size(); ++k) {
      first_[k] = kFirst * first_[k] + (1 - kFirst) * slope[k];
      second_[k] = kSecond * second_[k] + (1 - kSecond) * slope[k] * slope[k];
      const double mean = first_[k] / (1 - std::pow(kFirst, iteration_));
      const double square = second_[k] / (1 - std::pow(kSecond, iteration_));
      theta_[k] += rate * mean / (std::sqrt(square) + 1e-12);
    }
  }

  // The parameters that it ends at, by what the level found there, or the best ones met where these
  // are clearly better: a little better are places where the grids lie so that interpolation blurs
  // less, and rounding decides which of them are met.
  void end(const Evaluation& found) {
    const bool overlaps = found.share >= least_share_;
    if (overlaps && found.value > best_.value - kClear * std::abs(best_.value)) {
      best_ = {found.value, theta_};
    }
  }
  const Best& best() const { return best_; }

 private:
  static constexpr double kLeastOverlap = 0.25;  // of that of the start: less is no candidate
  static constexpr double kFirst = 0.9, kSecond = 0.98;
  static constexpr double kClear = 0.001;  // share of the value

  // Derivatives of a run are rounded to its multiples, so that devices that differ in the last
  // digits of their sums take the same steps: 65 steps amplify a difference by 1e6, and where it
  // moves a voxel out of the moving grid by 1e6 more.
  static double unit_of(const std::vector<double>& first) {
    constexpr int kBits = 20;
    double largest = std::numeric_limits<double>::min();
    for (const double number : first) largest = std::max(largest, std::abs(number));
    return std::ldexp(1, std::ilogb(largest) - kBits);
  }

  // The chain rule; the matrix' derivatives by differences, which are exact to 1e-9.
  Parameters by_parameters(const LinearLevel& level, const std::vector<double>& by_matrix) const {
    constexpr double kStep = 1e-4;
    Parameters result(theta_.size());
    for (std::size_t k = 0; k < theta_.size(); ++k) {
      Parameters above = theta_, below = theta_;
      above[k] += kStep;
      below[k] -= kStep;
      const std::vector<double> high = level.matrix(model_.map(run_.stage, above)),
                                low = level.matrix(model_.map(run_.stage, below));
      for (std::size_t i = 0; i < high.size(); ++i) {
        result[k] += by_matrix[i] * (high[i] - low[i]) / (2 * kStep);
      }
    }
    return result;
  }

  Model model_;
  Run run_;
  double size_;
  Parameters theta_, first_, second_;
  Best best_;
  int iteration_ = 0;
  double least_share_ = 0, unit_ = 0;
};

}  // namespace similis::registration_internal
