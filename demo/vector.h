// SPDX-License-Identifier: Apache-2.0
// Three numbers: a point, a direction or a linear RGB colour.
#pragma once

#include <algorithm>
#include <cmath>

namespace demo {

struct Vector {
  double x = 0, y = 0, z = 0;
};

inline Vector operator+(const Vector& a, const Vector& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline Vector operator-(const Vector& a, const Vector& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
inline Vector operator*(const Vector& a, const Vector& b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}
inline Vector operator*(double s, const Vector& a) { return {s * a.x, s * a.y, s * a.z}; }
inline Vector operator-(const Vector& a) { return {-a.x, -a.y, -a.z}; }

inline double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vector cross(const Vector& a, const Vector& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline Vector normalized(const Vector& a) { return 1 / std::sqrt(dot(a, a)) * a; }
inline Vector mix(const Vector& a, const Vector& b, double t) { return (1 - t) * a + t * b; }
inline Vector reflected(const Vector& direction, const Vector& normal) {
  return direction - 2 * dot(direction, normal) * normal;
}

/// 0 below low, 1 above high, smooth between.
inline double smooth_step(double low, double high, double value) {
  const double t = std::clamp((value - low) / (high - low), 0.0, 1.0);
  return t * t * (3 - 2 * t);
}

}  // namespace demo
