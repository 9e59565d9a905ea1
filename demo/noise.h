// SPDX-License-Identifier: Apache-2.0
// Texture that needs no file: smooth noise on a lattice, sums of its octaves, and random numbers.
#pragma once

#include <cstdint>

#include "demo/vector.h"

namespace demo {

inline std::uint32_t mixed_bits(std::uint32_t bits) {
  bits = (bits ^ bits >> 16) * 0x21f0aaadu;
  bits = (bits ^ bits >> 15) * 0x735a2d97u;
  return bits ^ bits >> 15;
}

/// Uniform in [0, 1), one number for each lattice point.
inline double at_lattice_point(std::int64_t x, std::int64_t y, std::int64_t z) {
  const auto bits = mixed_bits(static_cast<std::uint32_t>(x) * 0x9e3779b9u ^
                               mixed_bits(static_cast<std::uint32_t>(y) * 0x85ebca6bu ^
                                          mixed_bits(static_cast<std::uint32_t>(z) + 1u)));
  return bits * 0x1p-32;
}

/// Smooth, in [0, 1), one bump per unit of length.
inline double noise(const Vector& p) {
  const double fx = std::floor(p.x), fy = std::floor(p.y), fz = std::floor(p.z);
  const auto ix = static_cast<std::int64_t>(fx), iy = static_cast<std::int64_t>(fy),
             iz = static_cast<std::int64_t>(fz);
  const auto fade = [](double t) { return t * t * t * (t * (6 * t - 15) + 10); };
  const double tx = fade(p.x - fx), ty = fade(p.y - fy), tz = fade(p.z - fz);
  const auto along_x = [&](std::int64_t y, std::int64_t z) {
    return (1 - tx) * at_lattice_point(ix, y, z) + tx * at_lattice_point(ix + 1, y, z);
  };
  const auto along_xy = [&](std::int64_t z) {
    return (1 - ty) * along_x(iy, z) + ty * along_x(iy + 1, z);
  };
  return (1 - tz) * along_xy(iz) + tz * along_xy(iz + 1);
}

/// Octaves of noise, each twice as fine and half as strong: about 0.5 ± 0.25.
inline double fractal_noise(Vector p, int octaves) {
  double sum = 0, weight = 0.5, total = 0;
  for (int octave = 0; octave < octaves; ++octave, weight /= 2) {
    sum += weight * noise(p);
    total += weight;
    // Turned as well as scaled, so that the lattices of the octaves do not line up.
    p = Vector{1.6 * p.x + 1.2 * p.z + 7.3, 2.03 * p.y + 3.1, -1.2 * p.x + 1.6 * p.z + 1.7};
  }
  return sum / total;
}

/// A stream of uniform numbers in [0, 1).
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(mixed_bits(seed + 0x9e3779b9u)) {}
  double operator()() {
    state_ = state_ * 747796405u + 2891336453u;
    return mixed_bits(state_) * 0x1p-32;
  }

 private:
  std::uint32_t state_;
};

}  // namespace demo
