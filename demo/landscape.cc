// SPDX-License-Identifier: Apache-2.0
// A height field, marched along each ray. Its coarse octaves are tabulated once; the fine ones are
// added where a surface is shaded. One unit is a kilometre; the lake is at height 0.
#include "demo/landscape.h"

#include <cstdint>
#include <vector>

#include "demo/noise.h"

namespace demo {
namespace {

constexpr double kFar = 26;
const Vector kSun = normalized({-0.62, 0.38, -0.52});
const Vector kSunlight = {3.1, 2.55, 1.95};
const Vector kSkylight = {0.30, 0.40, 0.58};
const Vector kHaze = {0.56, 0.66, 0.80};

// Ridges where noise crosses its middle; each octave is finer, and weaker in the valleys.
double ridges(double x, double z, int octaves) {
  double sum = 0, weight = 0.5, on_ridge = 1;
  for (int octave = 0; octave < octaves; ++octave, weight *= 0.5) {
    const double n = 1 - std::abs(2 * noise({x, 0.5 + octave, z}) - 1);
    sum += weight * n * n * on_ridge;
    on_ridge = std::min(1.0, 1.6 * n * n);
    const double turned = 1.6 * x + 1.2 * z;
    z = -1.2 * x + 1.6 * z + 5.1;
    x = turned + 2.3;
  }
  return sum;
}

double height_by_formula(double x, double z, int octaves) {
  // A valley with the lake runs away from the eye; the mountains rise beyond and beside it.
  const double bend = 1.1 * std::sin(0.32 * z) + 0.4 * std::sin(0.9 * z + 1);
  const double aside = std::abs(x - bend) / 1.9;
  const double rise = smooth_step(0.35, 2.6, aside) + 0.9 * smooth_step(-9, -16, z);
  return 0.14 * (fractal_noise({1.3 * x, 2, 1.3 * z}, 4) - 0.62) +
         2.7 * rise * ridges(0.36 * x + 3.7, 0.36 * z, octaves);
}

// The formula on a grid over the part of the land that can be seen.
class Heights {
 public:
  Heights() : samples_(static_cast<std::size_t>(kSide * kSide)) {
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        samples_[index(column, row)] = static_cast<float>(
            height_by_formula(kLeft + kStep * column, kBack + kStep * row, kOctaves));
      }
    }
  }

  double operator()(double x, double z) const {
    const double u = std::clamp((x - kLeft) / kStep, 0.0, kSide - 1.001);
    const double w = std::clamp((z - kBack) / kStep, 0.0, kSide - 1.001);
    const int column = static_cast<int>(u), row = static_cast<int>(w);
    const double s = u - column, t = w - row;
    const auto at = [&](int dx, int dz) {
      return static_cast<double>(samples_[index(column + dx, row + dz)]);
    };
    return (1 - t) * ((1 - s) * at(0, 0) + s * at(1, 0)) + t * ((1 - s) * at(0, 1) + s * at(1, 1));
  }

  static constexpr int kOctaves = 9;

 private:
  static constexpr int kSide = 1400;
  static constexpr double kLeft = -14, kBack = -26, kStep = 0.02;
  static std::size_t index(int column, int row) {
    return static_cast<std::size_t>(row) * kSide + static_cast<std::size_t>(column);
  }
  std::vector<float> samples_;
};

double height(double x, double z) {
  static const Heights heights;
  return heights(x, z);
}

/// The distance to the land along the ray, or kFar.
double distance_to_land(const Vector& origin, const Vector& direction, double start) {
  double distance = start, before = start;
  while (distance < kFar) {
    const Vector p = origin + distance * direction;
    if (p.y > 3.2 && direction.y > 0) return kFar;
    const double above = p.y - height(p.x, p.z);
    if (above < 0) {  // between the last two steps: halve
      double after = distance;
      for (int i = 0; i < 10; ++i) {
        const double middle = (before + after) / 2;
        const Vector q = origin + middle * direction;
        (q.y < height(q.x, q.z) ? after : before) = middle;
      }
      return after;
    }
    before = distance;
    distance += std::max(0.004 + 0.0012 * distance, 0.35 * above);
  }
  return kFar;
}

Vector normal_of_land(double x, double z, double distance) {
  const double step = 0.003 + 0.0012 * distance;  // about a pixel
  const auto fine = [&](double px, double pz) {
    return height(px, pz) + 0.03 * fractal_noise({24 * px, 4, 24 * pz}, 6);
  };
  return normalized(
      {fine(x - step, z) - fine(x + step, z), 2 * step, fine(x, z - step) - fine(x, z + step)});
}

double sunlight_at(const Vector& p) {
  const double distance = distance_to_land(p + Vector{0, 0.01, 0}, kSun, 0.03);
  return distance < kFar ? smooth_step(5, 12, distance) : 1.0;
}

Vector clear_sky(const Vector& direction) {
  const double up = std::max(0.0, direction.y);
  const Vector zenith = {0.11, 0.23, 0.52};
  const double near_sun = std::max(0.0, dot(direction, kSun));
  return mix(kHaze, zenith, 1 - std::exp(-3.4 * up)) +
         (0.35 * std::pow(near_sun, 6) + 0.8 * std::pow(near_sun, 60)) * Vector{1, 0.72, 0.42};
}

Vector sky(const Vector& direction) {
  const Vector clear = clear_sky(direction);
  if (direction.y < 0.01) return clear;
  const double scale = 1 / (direction.y + 0.12);  // a layer overhead, curved down at the horizon
  const Vector p = {1.5 * scale * direction.x, 0.4, 1.5 * scale * direction.z};
  const double density = fractal_noise(p + Vector{0.4 * fractal_noise(2 * p, 3), 0, 0}, 7);
  const double thickness = smooth_step(0.5, 0.74, density) * smooth_step(0.01, 0.12, direction.y);
  const double lit =
      smooth_step(0.35, 0.75, density - 0.5 * (fractal_noise(p + 0.12 * kSun, 5) - 0.5));
  const Vector cloud = mix({1.02, 0.96, 0.90}, {0.52, 0.57, 0.66}, lit);
  return mix(clear, cloud, 0.9 * thickness);
}

Vector ground_color(const Vector& p, const Vector& normal) {
  const double patches = fractal_noise({3 * p.x, 9, 3 * p.z}, 5);
  const double trees = fractal_noise({130 * p.x, 130 * p.y, 130 * p.z}, 4);
  const Vector rock =
      (0.55 + 0.7 * fractal_noise({40 * p.x, 70 * p.y, 40 * p.z}, 5)) * Vector{0.27, 0.24, 0.21};
  const Vector meadow = mix({0.115, 0.125, 0.045}, {0.20, 0.17, 0.085}, patches);
  const Vector forest = (0.2 + 1.3 * trees * trees) * Vector{0.062, 0.082, 0.038};
  const double flat = normal.y;
  Vector color = mix(rock, meadow, smooth_step(0.62, 0.82, flat + 0.2 * (patches - 0.5)));
  const double wooded = smooth_step(0.95, 0.55, p.y + 0.5 * (patches - 0.5)) *
                        smooth_step(0.5, 0.66, flat) * smooth_step(0.42, 0.55, patches + 0.1);
  color = mix(color, forest, wooded);
  const double snow =
      smooth_step(1.15, 1.45, p.y + 0.6 * (patches - 0.5)) * smooth_step(0.45, 0.68, flat);
  color = mix(color, {0.86, 0.88, 0.92}, snow);
  return mix({0.30, 0.26, 0.19}, color, smooth_step(0.004, 0.02, p.y));  // the shore
}

Vector hazed(const Vector& color, const Vector& direction, double distance) {
  const double seen = std::exp(-std::pow(0.062 * distance, 1.5));
  return mix(clear_sky({direction.x, std::max(0.02, direction.y), direction.z}), color, seen);
}

Vector shaded_land(const Vector& origin, const Vector& direction, double distance) {
  const Vector p = origin + distance * direction;
  const Vector normal = normal_of_land(p.x, p.z, distance);
  const double sun = std::max(0.0, dot(normal, kSun)) * sunlight_at(p);
  const Vector light = sun * kSunlight + (0.55 + 0.45 * normal.y) * kSkylight;
  return hazed(ground_color(p, normal) * light, direction, distance);
}

// Land and sky, without the lake.
Vector seen_along(const Vector& origin, const Vector& direction) {
  const double distance = distance_to_land(origin, direction, 0.02);
  return distance < kFar ? shaded_land(origin, direction, distance) : sky(direction);
}

Vector ripples(const Vector& p, double distance) {
  const double step = 0.004, strength = 0.0016 / (1 + 0.25 * distance);
  const auto wave = [](double x, double z) {
    return fractal_noise({26 * x, 6, 70 * z}, 4) + 0.5 * fractal_noise({9 * x, 2, 15 * z}, 2);
  };
  const double middle = wave(p.x, p.z);
  return normalized({strength * (middle - wave(p.x + step, p.z)) / step, 1,
      strength * (middle - wave(p.x, p.z + step)) / step});
}

Vector shaded_lake(const Vector& p, const Vector& direction, double distance) {
  const Vector normal = ripples(p, distance);
  Vector mirror = reflected(direction, normal);
  mirror.y = std::abs(mirror.y);
  const double cosine = std::max(0.0, -dot(direction, normal));
  const double share = 0.03 + 0.97 * std::pow(1 - cosine, 5);
  const double depth = smooth_step(0, -0.05, height(p.x, p.z));
  const Vector bottom = mix({0.16, 0.15, 0.10}, {0.012, 0.045, 0.055}, depth);
  return hazed(mix(bottom, seen_along(p + Vector{0, 1e-3, 0}, mirror), share), direction, distance);
}

}  // namespace

Vector landscape(double u, double v) {
  const Vector eye = {0.9, 0.42, 1.2};
  const Vector forward = normalized({-0.06, -0.02, -1});
  const Vector right = normalized(cross(forward, {0, 1, 0})), up = cross(right, forward);
  const Vector direction = normalized(forward + 0.5 * u * right + 0.5 * v * up);
  const double land = distance_to_land(eye, direction, 0.05);
  const double lake = direction.y < 0 ? -eye.y / direction.y : kFar;
  if (lake < land && lake < kFar) return shaded_lake(eye + lake * direction, direction, lake);
  return land < kFar ? shaded_land(eye, direction, land) : sky(direction);
}

}  // namespace demo
