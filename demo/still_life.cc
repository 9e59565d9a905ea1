// SPDX-License-Identifier: Apache-2.0
// A path tracer for spheres on a table. At each rough surface the window is sampled as well, which
// keeps the noise low.
#include "demo/still_life.h"

#include <limits>
#include <numbers>
#include <vector>

namespace demo {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kFar = 1e9;
constexpr int kBounces = 6;

enum class Surface : unsigned char { wood, wall, marble, stripes, glazed, copper, glass };

struct Sphere {
  Vector center;
  double radius;
  Surface surface;
  Vector color;
};

struct Ray {
  Vector origin, direction;
};

struct Hit {
  double distance = kFar;
  Vector point, normal;
  Surface surface = Surface::wall;
  Vector color;
};

std::vector<Sphere> make_spheres() {
  std::vector<Sphere> spheres = {
      {{-1.55, 0.95, 0.35}, 0.95, Surface::marble, {0.9, 0.88, 0.85}},
      {{0.25, 0.72, 0.95}, 0.72, Surface::glass, {1, 1, 1}},
      {{1.75, 0.85, -0.15}, 0.85, Surface::copper, {0.95, 0.62, 0.42}},
      {{0.45, 0.6, -0.95}, 0.6, Surface::stripes, {0.85, 0.85, 0.8}},
      {{-0.55, 0.38, 1.65}, 0.38, Surface::glazed, {0.08, 0.25, 0.45}},
  };
  const Vector colors[] = {{0.75, 0.12, 0.1}, {0.9, 0.65, 0.12}, {0.12, 0.45, 0.3},
      {0.85, 0.83, 0.78}, {0.25, 0.12, 0.35}};
  Random random(7);
  while (spheres.size() < 26) {  // beads, where there is room for them
    const double radius = 0.07 + 0.06 * random();
    const Vector center = {-2.4 + 5 * random(), radius, 0.9 + 1.9 * random()};
    const Vector& color = colors[spheres.size() % 5];
    bool is_free = true;
    for (const Sphere& other : spheres) {
      const Vector offset = other.center - center;
      is_free &= dot(offset, offset) > (other.radius + radius) * (other.radius + radius);
    }
    if (is_free) spheres.push_back({center, radius, Surface::glazed, color});
  }
  return spheres;
}

const std::vector<Sphere>& spheres() {
  static const std::vector<Sphere> all = make_spheres();
  return all;
}

// The window: a lit rectangle at the left, in front of the objects and above them.
struct Window {
  Vector corner = {-5.5, 2.2, 0.2}, across = {0.8, 0, 3.2}, up = {0.4, 2.8, 0};
  Vector light = {15, 14, 12.5};
  Vector normal = normalized(cross(up, across));
  double area = std::sqrt(dot(cross(across, up), cross(across, up)));
};
const Window kWindow;

// Planks along x with a gap between them; the grain is noise drawn out along the plank.
Vector wood(const Vector& p) {
  const double plank = std::floor(p.z / 0.55), across = p.z / 0.55 - plank;
  const double tone = at_lattice_point(static_cast<std::int64_t>(plank), 3, 5);
  const double wave = fractal_noise({0.5 * p.x + 9 * plank, 0, 2.2 * p.z}, 3);
  const double rings = 0.5 + 0.5 * std::sin(60 * (wave + 0.12 * p.z));
  const double fibre = fractal_noise({3 * p.x + 5 * plank, 1, 90 * p.z}, 3);
  const Vector light = {0.52, 0.33, 0.18}, dark = {0.27, 0.145, 0.07};
  const Vector color = mix(light, dark, 0.45 * rings + 0.55 * fibre);
  const double gap = smooth_step(0, 0.02, across) * smooth_step(0, 0.02, 1 - across);
  return (0.75 + 0.4 * tone) * (0.25 + 0.75 * gap) * color;
}

// Plaster, rougher towards fine scales, with a dado line.
Vector wall(const Vector& p) {
  const double grain = fractal_noise({14 * p.x, 14 * p.y, 3}, 5);
  const double stain = fractal_noise({0.7 * p.x, 0.7 * p.y, 8}, 3);
  const Vector upper = {0.42, 0.47, 0.45}, lower = {0.2, 0.29, 0.3};
  const Vector color = mix(lower, upper, smooth_step(1.62, 1.64, p.y));
  const double line = 1 - 0.6 * smooth_step(0.035, 0.025, std::abs(p.y - 1.63));
  return (0.55 + 0.5 * grain + 0.35 * stain) * line * color;
}

Vector marble(const Vector& p, const Vector& base) {
  const double warp = fractal_noise(2.1 * p, 5);
  const double vein = std::abs(std::sin(3.1 * p.x + 2.3 * p.y + 9 * warp));
  const double fine = std::abs(std::sin(11 * p.z - 5 * p.y + 14 * fractal_noise(3.7 * p, 4)));
  const double dark = 0.75 * std::exp(-9 * vein) + 0.3 * std::exp(-14 * fine);
  return mix(base, {0.16, 0.17, 0.2}, std::min(1.0, dark + 0.1 * warp));
}

Vector stripes(const Sphere& sphere, const Vector& normal) {
  const double height = std::asin(std::clamp(normal.y, -1.0, 1.0));
  const double angle = std::atan2(normal.z, normal.x);
  const bool is_band = std::sin(22 * height + 2.2 * std::sin(7 * angle)) > 0.1;
  return is_band ? Vector{0.62, 0.16, 0.1} : sphere.color;
}

Vector color_of(const Sphere& sphere, const Vector& point, const Vector& normal) {
  if (sphere.surface == Surface::marble) return marble(point, sphere.color);
  if (sphere.surface == Surface::stripes) return stripes(sphere, normal);
  return sphere.color;
}

double distance_to(const Sphere& sphere, const Ray& ray) {
  const Vector offset = ray.origin - sphere.center;
  const double b = dot(offset, ray.direction);
  const double discriminant = b * b - dot(offset, offset) + sphere.radius * sphere.radius;
  if (discriminant < 0) return kFar;
  const double root = std::sqrt(discriminant);
  if (-b - root > 1e-4) return -b - root;
  return -b + root > 1e-4 ? -b + root : kFar;
}

// The point where the ray meets the plane at this height (or depth), if it does.
double distance_to_plane(double position, double origin, double direction) {
  const double distance = (position - origin) / direction;
  return distance > 1e-4 ? distance : kFar;
}

constexpr double kWallDepth = -2.6;

Hit first_hit(const Ray& ray) {
  Hit hit;
  const Sphere* nearest = nullptr;
  for (const Sphere& sphere : spheres()) {
    const double distance = distance_to(sphere, ray);
    if (distance >= hit.distance) continue;
    hit.distance = distance;
    nearest = &sphere;
  }
  const double table = distance_to_plane(0, ray.origin.y, ray.direction.y);
  const double back = distance_to_plane(kWallDepth, ray.origin.z, ray.direction.z);
  hit.distance = std::min({hit.distance, table, back});
  if (hit.distance == kFar) return hit;
  hit.point = ray.origin + hit.distance * ray.direction;
  if (hit.distance == table) {
    hit.normal = {0, 1, 0};
    hit.surface = Surface::wood;
    hit.color = wood(hit.point);
  } else if (hit.distance == back) {
    hit.normal = {0, 0, 1};
    hit.surface = Surface::wall;
    hit.color = wall(hit.point);
  } else {
    hit.normal = 1 / nearest->radius * (hit.point - nearest->center);
    hit.surface = nearest->surface;
    hit.color = color_of(*nearest, hit.point, hit.normal);
  }
  return hit;
}

bool is_blocked(const Ray& ray, double distance) {
  for (const Sphere& sphere : spheres()) {
    // Glass lets light through; its shadow is only softened by what other paths bring.
    if (sphere.surface != Surface::glass && distance_to(sphere, ray) < distance) return true;
  }
  return false;
}

// Light of the empty room: a dim ceiling and the window itself.
Vector surroundings(const Ray& ray) {
  const double facing = dot(ray.direction, kWindow.normal);
  if (facing < 0) {
    const double distance = dot(kWindow.corner - ray.origin, kWindow.normal) / facing;
    const Vector p = ray.origin + distance * ray.direction - kWindow.corner;
    const double s = dot(p, kWindow.across) / dot(kWindow.across, kWindow.across);
    const double t = dot(p, kWindow.up) / dot(kWindow.up, kWindow.up);
    const bool is_frame = std::abs(s - 0.5) < 0.03 || std::abs(t - 0.5) < 0.03;
    if (distance > 0 && s > 0 && s < 1 && t > 0 && t < 1 && !is_frame) return kWindow.light;
  }
  return mix({0.10, 0.09, 0.08}, {0.32, 0.34, 0.38}, smooth_step(-0.3, 1, ray.direction.y));
}

// Light that reaches a rough surface straight from a random point of the window.
Vector light_of_window(const Hit& hit, Random& random) {
  const Vector target = kWindow.corner + random() * kWindow.across + random() * kWindow.up;
  const Vector offset = target - hit.point;
  const double distance = std::sqrt(dot(offset, offset));
  const Vector direction = 1 / distance * offset;
  const double cosines = dot(direction, hit.normal) * -dot(direction, kWindow.normal);
  if (dot(direction, hit.normal) <= 0 || cosines <= 0) return {};
  if (is_blocked({hit.point + 1e-4 * hit.normal, direction}, distance)) return {};
  return cosines * kWindow.area / (kPi * distance * distance) * kWindow.light;
}

Vector random_direction_around(const Vector& normal, Random& random) {
  const double angle = 2 * kPi * random(), height = 2 * random() - 1;
  const double radius = std::sqrt(1 - height * height);
  const Vector on_sphere = {radius * std::cos(angle), radius * std::sin(angle), height};
  return normalized(normal + 0.999 * on_sphere);  // proportional to the cosine
}

double fresnel(double cosine, double index) {
  const double r = (index - 1) / (index + 1);
  return r * r + (1 - r * r) * std::pow(1 - cosine, 5);
}

// The two ways on from a surface of glass.
struct GlassPaths {
  Ray reflected, refracted;
  double reflected_share;
};

GlassPaths glass_paths(const Ray& ray, const Hit& hit) {
  constexpr double kIndex = 1.5;
  const bool is_entering = dot(ray.direction, hit.normal) < 0;
  const Vector normal = is_entering ? hit.normal : -hit.normal;
  const double ratio = is_entering ? 1 / kIndex : kIndex;
  const double cosine = -dot(ray.direction, normal);
  const double squared = 1 - ratio * ratio * (1 - cosine * cosine);
  const Ray mirror = {hit.point, reflected(ray.direction, normal)};
  if (squared < 0) return {mirror, mirror, 1};  // total reflection
  const double bend = ratio * cosine - std::sqrt(squared);
  return {mirror, {hit.point, normalized(ratio * ray.direction + bend * normal)},
      fresnel(cosine, kIndex)};
}

bool is_glossy(Surface surface) {
  return surface == Surface::glazed || surface == Surface::stripes || surface == Surface::marble ||
         surface == Surface::wood;
}

Ray mirrored(const Ray& ray, const Hit& hit, Random& random) {
  const double roughness = hit.surface == Surface::wood ? 0.1 : 0.012;
  const Vector scatter = random_direction_around(hit.normal, random);
  return {hit.point, normalized(reflected(ray.direction, hit.normal) + roughness * scatter)};
}

// Light that comes back along the ray. Off a rough surface the window does not count, since
// light_of_window() brought it, and neither does its mirror image, which would leave white dots.
Vector radiance(const Ray& ray, int bounces, bool counts_window, Random& random) {
  if (bounces == 0) return {};
  const Hit hit = first_hit(ray);
  if (hit.distance == kFar) {
    const Vector light = surroundings(ray);
    return counts_window || light.x < 1 ? light : Vector{};
  }
  const bool is_first = bounces == kBounces;  // rays from the eye are followed both ways
  if (hit.surface == Surface::glass) {
    const GlassPaths paths = glass_paths(ray, hit);
    const auto follow = [&](const Ray& path) {
      return Vector{0.97, 0.99, 0.98} * radiance(path, bounces - 1, counts_window, random);
    };
    if (!is_first) {
      return follow(random() < paths.reflected_share ? paths.reflected : paths.refracted);
    }
    return paths.reflected_share * follow(paths.reflected) +
           (1 - paths.reflected_share) * follow(paths.refracted);
  }
  if (hit.surface == Surface::copper) {
    return hit.color * radiance(mirrored(ray, hit, random), bounces - 1, counts_window, random);
  }
  double gloss =
      is_glossy(hit.surface) ? fresnel(std::abs(dot(ray.direction, hit.normal)), 1.5) : 0.0;
  Vector sum;
  if (is_first) {
    if (gloss > 0) sum = gloss * radiance(mirrored(ray, hit, random), bounces - 1, true, random);
  } else if (random() < gloss) {
    return radiance(mirrored(ray, hit, random), bounces - 1, counts_window, random);
  } else {
    gloss = 0;  // chance has already decided
  }
  const Ray scattered = {hit.point, random_direction_around(hit.normal, random)};
  const Vector rough =
      light_of_window(hit, random) + radiance(scattered, bounces - 1, false, random);
  return sum + (1 - gloss) * hit.color * rough;
}

}  // namespace

Vector still_life(double u, double v, Random& random) {
  const Vector eye = {0.2, 2.1, 7.2}, target = {0.05, 0.72, 0.2};
  const Vector forward = normalized(target - eye);
  const Vector right = normalized(cross(forward, {0, 1, 0})), up = cross(right, forward);
  const Vector direction = normalized(forward + 0.29 * u * right + 0.29 * v * up);
  return radiance({eye, direction}, kBounces, true, random);
}

}  // namespace demo
