// SPDX-License-Identifier: Apache-2.0
// The parameters of a linear map:
// A(p) = L(θ)·S·(p - c) + S(c) + t, with S the start, c the fixed image's centre of mass and
//   L = R = e^[ω]×                    rigid
//       e^σ·R                         similarity
//       R·e^S', S' symmetric          affine
// θ holds t, then ω, σ and S' times r = 70 mm for a head of 220 mm, so that a step moves all by
// about as much.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "similis/register.hpp"
#include "src/registration/levels.h"

namespace similis::registration_internal {

using Parameters = std::vector<double>;

inline int rotations(int rank) { return rank == 3 ? 3 : 1; }

/// Returns the number of parameters of a stage.
inline std::size_t count_of(RegisterStage stage, int rank) {
  const int symmetric = rank * (rank + 1) / 2;
  int count = rank;
  if (stage != RegisterStage::translation) count += rotations(rank);
  if (stage == RegisterStage::similarity) count += 1;
  if (stage == RegisterStage::affine) count += symmetric;
  return static_cast<std::size_t>(count);
}

/// The map of parameters relative to a start.
struct Model {
  int rank;
  double radius;  // mm
  Map start;
  Point centre;

  Map map(RegisterStage stage, const Parameters& theta) const {
    Matrix turn = 0.0 * Matrix();
    std::size_t k = static_cast<std::size_t>(rank);
    Matrix linear;
    if (stage != RegisterStage::translation) {
      if (rank == 2) {
        turn(1, 0) = theta[k++] / radius;
        turn(0, 1) = -turn(1, 0);
      } else {
        const double x = theta[k] / radius, y = theta[k + 1] / radius, z = theta[k + 2] / radius;
        k += 3;
        turn.rows = {{{0, -z, y}, {z, 0, -x}, {-y, x, 0}}};
      }
      linear = exponential(turn);
    }
    if (stage == RegisterStage::similarity) {
      const double scale = std::exp(theta[k] / radius);
      for (int r = 0; r < rank; ++r) {
        for (int c = 0; c < rank; ++c) linear(r, c) *= scale;
      }
    }
    if (stage == RegisterStage::affine) {
      Matrix stretch = 0.0 * Matrix();
      for (int r = 0; r < rank; ++r) {
        for (int c = r; c < rank; ++c) stretch(r, c) = stretch(c, r) = theta[k++] / radius;
      }
      linear = linear * exponential(stretch);
    }
    const Matrix whole = linear * start.linear;
    Point shift = start(centre) - whole * centre;
    for (std::size_t a = 0; a < static_cast<std::size_t>(rank); ++a) shift[a] += theta[a];
    return {whole, shift};
  }

  /// The parameters of the same map in a later stage.
  Parameters widened(RegisterStage from, RegisterStage to, const Parameters& theta) const {
    Parameters result = theta;
    const auto before = count_of(RegisterStage::rigid, rank);
    const double scale = from == RegisterStage::similarity ? theta[before] : 0;
    if (from == RegisterStage::similarity) result.resize(before);
    result.resize(count_of(to, rank), 0.0);
    if (from == RegisterStage::similarity && to == RegisterStage::similarity) result.back() = scale;
    if (from == RegisterStage::similarity && to == RegisterStage::affine) {
      std::size_t k = before;
      for (int r = 0; r < rank; ++r) {
        for (int c = r; c < rank; ++c) result[k++] = r == c ? scale : 0;
      }
    }
    return result;
  }
};

}  // namespace similis::registration_internal
