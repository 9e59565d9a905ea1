// SPDX-License-Identifier: Apache-2.0
#include "src/registration/levels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "similis/smooth.hpp"
#include "similis/warp.hpp"
#include "src/core/counted.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/core/tensor/doubles.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

constexpr const char* kName = "register";
constexpr double kHighest = 0.999;  // share of the values above the least that [0, 1] holds
constexpr double kSmallestDeterminant = 1e-12;

Tensor floats_of(const TensorView& view, const Extents& shape) {
  const Tensor result = allocate(shape, DType::f32);
  const std::vector<double> values = to_doubles(view);
  std::transform(values.begin(), values.end(), result.elements<float>(),
      [](double value) { return static_cast<float>(value); });
  return result;
}

// Refuses a volume whose grid is none.
Grid checked_grid_of(const char* name, const Volume& volume) {
  const TensorView& data = volume.data;
  require(!data.empty(), "{}: {} has no data", kName, name);
  require(data.device.kind == DeviceKind::cpu, "{}: {} is on {}; it must be on cpu", kName, name,
      data.device);
  const int rank = data.shape.rank() - 2;
  require((rank == 2 || rank == 3) && data.shape[0] == 1 && data.shape[1] >= 1,
      "{}: {} has shape {}; it must be [1, C, Y, X] or [1, C, Z, Y, X]", kName, name, data.shape);
  for (int a = 0; a < rank; ++a) {
    require(data.shape[2 + a] >= 2,
        "{}: {} has shape {}; every axis of space must have 2 voxels or more", kName, name,
        data.shape);
  }
  for (const double number : volume.to_world) {
    require(std::isfinite(number), "{}: {}'s map to the world holds {}; it must be finite", kName,
        name, number);
  }
  const Grid grid = grid_of(volume);
  const double det = determinant(grid.to_world.linear);
  require(std::abs(det) > kSmallestDeterminant,
      "{}: {}'s map to the world is singular: its determinant is {}", kName, name, det);
  return grid;
}

Tensor mask_of(const char* name, const TensorView& mask, const Grid& grid) {
  if (mask.empty()) return {};
  const Extents image = grid.image_shape(1);
  const Extents space(
      std::span<const std::int64_t>(image.begin() + 2, static_cast<std::size_t>(grid.rank)));
  require(mask.shape == space, "{}: {}_mask has shape {}; it must be that of {}, {}", kName, name,
      mask.shape, name, space);
  const Tensor result = floats_of(mask, image);
  float* const begin = result.elements<float>();
  std::transform(begin, begin + result.shape.count(), begin,
      [](float value) { return value != 0 && !std::isnan(value) ? 1.0f : 0.0f; });
  return result;
}

// Voxels that are not finite leave the mask or are refused.
void look_for_gaps(const char* name, bool mask_not_finite, Image& image) {
  const std::int64_t voxels = image.grid.voxels();
  float* const values = image.values.elements<float>();
  std::int64_t gaps = 0;
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    for (std::int64_t i = 0; i < voxels; ++i) {
      if (std::isfinite(values[c * voxels + i])) continue;
      // A mask leaves such voxels out whether it is told to look for them or not.
      if (!image.mask.empty() && image.mask.elements<float>()[i] == 0) continue;
      ++gaps;
      if (!mask_not_finite) continue;
      if (image.mask.empty()) {
        image.mask = allocate(image.grid.image_shape(1), DType::f32);
        std::fill_n(image.mask.elements<float>(), voxels, 1.0f);
      }
      image.mask.elements<float>()[i] = 0;
    }
  }
  require(gaps == 0 || mask_not_finite,
      "{}: {} has values that are not finite in {}; mask them or let them be masked", kName, name,
      counted(gaps, "voxel"));
}

// To [0, 1], which holds all but the highest thousandth of the values above the least.
void normalize(const char* name, Image& image) {
  const std::int64_t voxels = image.grid.voxels();
  const float* const mask = image.mask_elements();
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    float* const values = image.values.elements<float>() + c * voxels;
    std::vector<float> inside;
    inside.reserve(static_cast<std::size_t>(voxels));
    for (std::int64_t i = 0; i < voxels; ++i) {
      if (mask == nullptr || mask[i] != 0) inside.push_back(values[i]);
    }
    require(!inside.empty(), "{}: {}'s mask counts no voxel", kName, name);
    const float low = *std::min_element(inside.begin(), inside.end());
    std::erase(inside, low);
    require(!inside.empty(), "{}: {} is {} everywhere; it must have more than one value", kName,
        name, low);
    const double place = kHighest * static_cast<double>(inside.size() - 1);
    const auto before = static_cast<std::size_t>(place);
    const auto at = inside.begin() + static_cast<std::ptrdiff_t>(before);
    std::nth_element(inside.begin(), at, inside.end());
    double high = static_cast<double>(*at);
    if (before + 1 < inside.size()) {
      const double next = static_cast<double>(*std::min_element(at + 1, inside.end()));
      high += (place - static_cast<double>(before)) * (next - high);
    }
    const auto by = static_cast<float>(1 / (high - static_cast<double>(low)));
    for (std::int64_t i = 0; i < voxels; ++i) {
      const bool counts = mask == nullptr || mask[i] != 0;
      values[i] = counts ? std::clamp((values[i] - low) * by, 0.0f, 1.0f) : 0.0f;
    }
  }
}

PerAxis<double> per_axis(const Point& sigma, int rank) {
  if (rank == 2) return {sigma[1], sigma[0]};
  return {sigma[2], sigma[1], sigma[0]};
}

// Smoothed by sigma voxels along x, y, z. With a mask both are smoothed and their quotient taken.
Image smoothed(const Image& image, const Point& sigma, const Execution& exec) {
  Image result = image;
  const SmoothOptions options{.sigma = per_axis(sigma, image.grid.rank)};
  result.values = smooth(image.values, options, exec);
  if (image.mask.empty()) return result;
  constexpr float kLeast = 1e-3f;
  result.mask = smooth(image.mask, options, exec);
  const std::int64_t voxels = image.grid.voxels();
  const float* const share = result.mask.elements<float>();
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    float* const values = result.values.elements<float>() + c * voxels;
    for (std::int64_t i = 0; i < voxels; ++i) {
      values[i] = share[i] > kLeast ? values[i] / share[i] : 0.0f;
    }
  }
  return result;
}

// A mask of shares becomes one of 1 and 0.
void threshold(const Tensor& mask) {
  if (mask.empty()) return;
  float* const begin = mask.elements<float>();
  std::transform(begin, begin + mask.shape.count(), begin,
      [](float share) { return share >= 0.5f ? 1.0f : 0.0f; });
}

}  // namespace

std::int64_t Image::count(const Execution&) const {
  if (mask.empty()) return grid.voxels();
  const float* const begin = mask.elements<float>();
  return std::count_if(begin, begin + grid.voxels(), [](float value) { return value != 0; });
}

Image prepared(const char* name, const Volume& volume, const TensorView& mask, bool mask_not_finite,
    const Execution&) {
  Image image{.grid = checked_grid_of(name, volume)};
  image.mask = mask_of(name, mask, image.grid);
  image.values = floats_of(volume.data, volume.data.shape);
  look_for_gaps(name, mask_not_finite, image);
  normalize(name, image);
  return image;
}

void sample_at(const TensorView& values, const Grid& from, const Map& voxels, const Grid& grid,
    const TensorView& u, bool replicates, const TensorView& output, const Execution& exec) {
  const Tensor affine = coordinate_matrix(voxels, grid, from);
  Tensor by_u;
  SampleOptions options{.affine = affine,
      .displacement = u,
      .padding_mode = replicates ? Outside::border : Outside::zeros};
  if (u.empty()) {
    const Extents shape = grid.image_shape(1);
    options.out_shape = Extents(
        std::span<const std::int64_t>(shape.begin() + 2, static_cast<std::size_t>(grid.rank)));
  } else {
    by_u = displacement_matrix(voxels, from);
    options.grid_affine = by_u;
  }
  sample_into(values, {.output = output}, options, exec);
}

Image shrunk(const Image& image, double millimetres, const Execution& exec) {
  Image result{.grid = coarsened(image.grid, millimetres)};
  Point sigma{};
  for (std::size_t a = 0; a < 3; ++a) {
    const double shrink =
        static_cast<double>(image.grid.size[a]) / static_cast<double>(result.grid.size[a]);
    sigma[a] = shrink > 1.01 ? 0.5 * shrink : 0;
  }
  if (sigma == Point{0, 0, 0}) return image;
  const Image smooth = smoothed(image, sigma, exec);
  const Map voxels = between_voxels(result.grid, {}, image.grid);
  result.values = allocate(result.grid.image_shape(image.channels()), DType::f32);
  sample_at(smooth.values, image.grid, voxels, result.grid, {}, true, result.values, exec);
  if (!image.mask.empty()) {
    result.mask = allocate(result.grid.image_shape(1), DType::f32);
    sample_at(smooth.mask, image.grid, voxels, result.grid, {}, true, result.mask, exec);
    threshold(result.mask);
  }
  return result;
}

Image blurred(const Image& image, double millimetres, const Execution& exec) {
  const Point spacing = image.grid.spacing();
  Point sigma{};
  for (std::size_t a = 0; a < static_cast<std::size_t>(image.grid.rank); ++a) {
    sigma[a] = millimetres / spacing[a];
  }
  Image result = smoothed(image, sigma, exec);
  threshold(result.mask);
  return result;
}

Point centre_of_mass(const Image& image) {
  const auto& size = image.grid.size;
  const std::int64_t voxels = image.grid.voxels();
  double mass = 0;
  Point sum{};
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    const float* const values = image.values.elements<float>() + c * voxels;
    for (std::int64_t i = 0; i < voxels; ++i) {
      const auto value = static_cast<double>(values[i]);
      const Point at = {static_cast<double>(i % size[0]),
          static_cast<double>(i / size[0] % size[1]), static_cast<double>(i / size[0] / size[1])};
      mass += value;
      for (std::size_t a = 0; a < 3; ++a) sum[a] += value * at[a];
    }
  }
  for (double& number : sum) number /= mass;
  return image.grid.to_world(sum);
}

TensorView components_first(const TensorView& field) {
  TensorView result = field;
  const int last = field.shape.rank() - 1;
  result.shape[1] = field.shape[last];
  result.strides[1] = field.strides[last];
  for (int axis = 1; axis < last; ++axis) {
    result.shape[axis + 1] = field.shape[axis];
    result.strides[axis + 1] = field.strides[axis];
  }
  return result;
}

Tensor resampled_field(
    const TensorView& u, const Grid& from, const Grid& to, const Execution& exec) {
  const Tensor result = allocate(to.field_shape(), DType::f32);
  const Map voxels = between_voxels(to, {}, from);
  sample_at(components_first(u), from, voxels, to, {}, true, components_first(result), exec);
  // Both grids have the same axes, so a voxel of one is a number of the other's along each.
  const auto rank = static_cast<std::size_t>(to.rank);
  float factors[3];
  for (std::size_t a = 0; a < rank; ++a) {
    factors[a] = static_cast<float>(1 / voxels.linear.rows[a][a]);
  }
  float* const begin = result.elements<float>();
  const std::int64_t count = to.voxels();
  parallel_for(exec, (count + 4095) / 4096, [&](std::int64_t task) {
    const std::int64_t end = std::min(count, (task + 1) * 4096);
    for (std::int64_t i = task * 4096; i < end; ++i) {
      for (std::size_t a = 0; a < rank; ++a) {
        begin[i * static_cast<std::int64_t>(rank) + static_cast<std::int64_t>(a)] *= factors[a];
      }
    }
  });
  return result;
}

}  // namespace similis::registration_internal
