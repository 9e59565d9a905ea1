// SPDX-License-Identifier: Apache-2.0
#include "src/registration/levels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <vector>

#include "similis/smooth.hpp"
#include "similis/warp.hpp"
#include "src/core/counted.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

constexpr const char* kName = "register";
constexpr double kHighest = 0.999;  // share of the values above the least that [0, 1] holds
constexpr std::int64_t kMostOnGpu = std::int64_t{1} << 31;  // kernels count voxels in 32 bits

Tensor floats_of(
    const TensorView& view, const Extents& shape, Device device, const Execution& exec) {
  const Tensor result = allocate(shape, DType::f32, device, exec);
  to_floats(view, result.elements<float>(), exec);
  return result;
}

// Refuses a volume whose grid is none.
Grid checked_grid_of(const char* name, const Volume& volume) {
  const TensorView& data = volume.data;
  require(!data.empty(), "{}: {} has no data", kName, name);
  const bool is_on_gpu = data.device.kind != DeviceKind::cpu;
  require(!is_on_gpu || !is_cpu_only(data.dtype),
      "{}: {} is {} on {}; a GPU takes uint8, uint16 and floating-point numbers", kName, name,
      data.dtype, data.device);
  require(!is_on_gpu || data.shape.count() < kMostOnGpu,
      "{}: {} has {} values; on a GPU it must have fewer than 2147483648", kName, name,
      data.shape.count());
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
  require(!is_singular(grid.to_world.linear),
      "{}: {}'s map to the world is singular: its determinant is {}", kName, name,
      determinant(grid.to_world.linear));
  return grid;
}

// A mask or labels of an image as floats [1,1,…]. what: mask or labels.
Tensor floats_on(const char* name, const char* what, const TensorView& mask, const Grid& grid,
    const Execution& exec) {
  const Extents image = grid.image_shape(1);
  const Extents space(
      std::span<const std::int64_t>(image.begin() + 2, static_cast<std::size_t>(grid.rank)));
  require(mask.shape == space, "{}: {}_{} has shape {}; it must be that of {}, {}", kName, name,
      what, mask.shape, name, space);
  require(grid.device.kind == DeviceKind::cpu || mask.dtype == DType::boolean ||
              !is_cpu_only(mask.dtype),
      "{}: {}_{} is {} on {}; a GPU takes booleans, uint8, uint16 and floating-point numbers",
      kName, name, what, mask.dtype, mask.device);
  require(mask.device == grid.device, "{}: {}_{} is on {}; it must be on {} as {} is", kName, name,
      what, mask.device, grid.device, name);
  return floats_of(mask, image, grid.device, exec);
}

float* channel_of(const Image& image, std::int64_t channel) {
  return image.values.elements<float>() + channel * image.grid.voxels();
}

// Voxels that are not finite leave the mask or are refused.
void remove_gaps(const char* name, bool mask_not_finite, Image& image, const Execution& exec) {
  const GridRows rows(image.grid);
  std::int64_t gaps = 0;
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    const float* const values = channel_of(image, c);
    // A mask leaves such voxels out whether it is told to look for them or not.
    float* mask = image.mask.empty() ? nullptr : image.mask.elements<float>();
    const std::int64_t found = look_for_gaps(rows, values, mask, false, exec);
    gaps += found;
    require(found < rows.voxels(), "{}: {} has no value that is finite", kName, name);
    if (found == 0 || !mask_not_finite) continue;
    if (mask == nullptr) {
      image.mask = image.allocated(1, exec);
      mask = image.mask.elements<float>();
      fill(image.grid.device, rows.voxels(), 1, mask, exec);
    }
    look_for_gaps(rows, values, mask, true, exec);
  }
  require(gaps == 0 || mask_not_finite,
      "{}: {} has values that are not finite in {}; mask them, or let nan=mask leave them out",
      kName, name, counted(gaps, "voxel"));
}

// To [0, 1], which holds all but the highest thousandth of the values above the least.
void normalize(const char* name, const Image& image, const Execution& exec) {
  const GridRows rows(image.grid);
  const float* const mask = image.mask_elements();
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    float* const values = channel_of(image, c);
    const Spread found = spread(rows, values, mask, exec);
    require(found.count > 0, "{}: {}'s mask counts no voxel", kName, name);
    const std::int64_t above = found.count - found.lowest;
    require(above > 0, "{}: {}{} is {} everywhere{}; it must have more than one value", kName,
        image.channels() > 1 ? fmt::format("channel {} of ", c) : "", name, found.least,
        mask == nullptr ? "" : " in its mask");
    const double place = kHighest * static_cast<double>(above - 1);
    const auto before = static_cast<std::int64_t>(place);
    const Neighbours at = nth_above(rows, values, mask, found.least, before, exec);
    const auto value = static_cast<double>(at.value);
    const double high =
        value + (place - static_cast<double>(before)) * (static_cast<double>(at.next) - value);
    rescale(rows, found.least, static_cast<float>(1 / (high - static_cast<double>(found.least))),
        mask, values, exec);
  }
}

PerAxis<double> per_axis(const Point& sigma, int rank) {
  if (rank == 2) return {sigma[1], sigma[0]};
  return {sigma[2], sigma[1], sigma[0]};
}

Tensor in_f64(const Tensor& values, const Execution& exec) {
  if (values.empty()) return values;
  const Tensor result = allocate(values.shape, DType::f64, values.device, exec);
  scale(values.device, values.shape.count(), 1, values, result, exec);
  return result;
}

// Smoothed by sigma voxels along x, y, z, in f64. With a mask both are smoothed and their quotient
// taken.
Image smoothed(const Image& image, const Point& sigma, const Execution& exec) {
  constexpr double kLeast = 1e-3;
  Image result{image.grid, in_f64(image.values, exec), in_f64(image.mask, exec)};
  const SmoothOptions options{.sigma = per_axis(sigma, image.grid.rank)};
  smooth_into(result.values, {.output = result.values}, options, exec);
  if (image.mask.empty()) return result;
  smooth_into(result.mask, {.output = result.mask}, options, exec);
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    divide(GridRows(image.grid), result.mask, kLeast,
        result.values.elements<double>() + c * image.grid.voxels(), exec);
  }
  return result;
}

constexpr float kLargestLabel = 1 << 24;  // f32 holds the integers up to here

// The labels of a map but 0.
std::set<float> distinct(const char* name, const Tensor& labels, const Execution& exec) {
  const Tensor there = on_cpu(labels, exec);
  const float* const values = there.elements<float>();
  std::set<float> result(values, values + there.shape.count());
  for (const float value : result) {
    require(value == std::floor(value) && std::abs(value) <= kLargestLabel,
        "{}: {}_labels holds {}; labels are integers up to 16777216", kName, name, value);
  }
  result.erase(0);
  return result;
}

// An integer v is `label` where min(1, max(0, v - label + 1)) and min(1, max(0, v - label)) differ.
Image channels_of(const Image& image, const Tensor& labels, const std::vector<float>& chosen,
    const Execution& exec) {
  const GridRows rows(image.grid);
  const std::int64_t voxels = image.grid.voxels();
  const Device device = image.grid.device;
  Image result{.grid = image.grid, .values = {}, .mask = image.mask};
  result.values = result.allocated(static_cast<std::int64_t>(chosen.size()), exec);
  const Tensor above = image.allocated(1, exec);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    float* const channel = channel_of(result, static_cast<std::int64_t>(k));
    scale(device, voxels, 1, labels.elements<float>(), channel, exec);
    scale(device, voxels, 1, channel, above.elements<float>(), exec);
    rescale(rows, chosen[k] - 1, 1, image.mask_elements(), channel, exec);
    rescale(rows, chosen[k], 1, image.mask_elements(), above.elements<float>(), exec);
    add_scaled(device, voxels, -1, above.elements<float>(), channel, exec);
  }
  return result;
}

// A mask of shares becomes one of 1 and 0. Voxels of a coarser grid that a mask's edge halves
// count: rounding, which differs between devices, must not decide on them.
void make_binary(const Tensor& mask, const Execution& exec) {
  constexpr double kHalf = 0.4999;
  if (!mask.empty()) threshold(mask.device, mask.shape.count(), kHalf, mask, exec);
}

}  // namespace

std::int64_t Image::count(const Execution& exec) const {
  if (mask.empty()) return grid.voxels();
  return count_nonzero(GridRows(grid), mask, exec);
}

Tensor mask_of(const char* name, const TensorView& mask, const Grid& grid, const Execution& exec) {
  if (mask.empty()) return {};
  Tensor result = floats_on(name, "mask", mask, grid, exec);
  normalize_mask(grid.device, result.shape.count(), result.elements<float>(), exec);
  return result;
}

Image prepared(const char* name, const Volume& volume, const TensorView& mask, bool mask_not_finite,
    const Execution& exec) {
  Image image{.grid = checked_grid_of(name, volume)};
  image.mask = mask_of(name, mask, image.grid, exec);
  image.values = floats_of(volume.data, volume.data.shape, image.grid.device, exec);
  remove_gaps(name, mask_not_finite, image, exec);
  normalize(name, image, exec);
  return image;
}

LabelChannels label_channels(const RegisterOptions& options, const Image& fixed,
    const Image& moving, const Execution& exec) {
  if (std::none_of(options.metrics.begin(), options.metrics.end(),
          [](const MetricTerm& term) { return term.metric == RegisterMetric::dice; })) {
    return {};
  }
  require(!options.fixed_labels.empty() && !options.moving_labels.empty(),
      "{}: the metric dice is given without fixed_labels and moving_labels, which it compares",
      kName);
  const Tensor own = floats_on("fixed", "labels", options.fixed_labels, fixed.grid, exec),
               other = floats_on("moving", "labels", options.moving_labels, moving.grid, exec);
  const std::set<float> of_fixed = distinct("fixed", own, exec),
                        of_moving = distinct("moving", other, exec);
  std::vector<float> both;
  std::set_intersection(of_fixed.begin(), of_fixed.end(), of_moving.begin(), of_moving.end(),
      std::back_inserter(both));
  require(!both.empty(), "{}: fixed_labels and moving_labels have no label in common", kName);
  return {.fixed = channels_of(fixed, own, both, exec),
      .moving = channels_of(moving, other, both, exec)};
}

Tensor coordinate_matrix(
    const Map& voxels, const Grid& from, const Grid& to, const Execution& exec) {
  const int rank = from.rank;
  return upload(to.device, {1, rank, rank + 1}, coordinate_numbers(voxels, from, to), exec);
}

Tensor displacement_matrix(const Map& voxels, const Grid& to, const Execution& exec) {
  return upload(to.device, {1, to.rank, to.rank}, displacement_numbers(voxels, to), exec);
}

void sample_at(const TensorView& values, const Grid& from, const Map& voxels, const Grid& grid,
    const TensorView& u, bool replicates, const TensorView& output, const Execution& exec) {
  const Tensor affine = coordinate_matrix(voxels, grid, from, exec);
  Tensor by_u;
  SampleOptions options{.affine = affine,
      .displacement = u,
      .padding_mode = replicates ? Outside::border : Outside::zeros};
  if (u.empty()) {
    const Extents shape = grid.image_shape(1);
    options.out_shape = Extents(
        std::span<const std::int64_t>(shape.begin() + 2, static_cast<std::size_t>(grid.rank)));
  } else {
    by_u = displacement_matrix(voxels, from, exec);
    options.grid_affine = by_u;
  }
  sample_into(values, {.output = output}, options, exec);
}

Image shrunk(const Image& image, double millimetres, double softness, const Execution& exec) {
  Image result{.grid = coarsened(image.grid, millimetres)};
  Point sigma{};
  for (std::size_t a = 0; a < 3; ++a) {
    const double shrink =
        static_cast<double>(image.grid.size[a]) / static_cast<double>(result.grid.size[a]);
    sigma[a] = shrink > 1.01 ? softness * shrink : 0;
  }
  const Image smooth = smoothed(image, sigma, exec);
  if (sigma == Point{0, 0, 0}) return smooth;
  const Map voxels = between_voxels(result.grid, {}, image.grid);
  result.values =
      allocate(result.grid.image_shape(image.channels()), DType::f64, result.grid.device, exec);
  sample_at(smooth.values, image.grid, voxels, result.grid, {}, true, result.values, exec);
  if (!image.mask.empty()) {
    result.mask = result.allocated(1, exec);
    sample_at(smooth.mask, image.grid, voxels, result.grid, {}, true, result.mask, exec);
    make_binary(result.mask, exec);
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
  make_binary(result.mask, exec);
  return result;
}

double noise_of(const Image& image, const Execution& exec) {
  constexpr double kSigma = 0.45;       // its taps reach one voxel: v + b·(second difference)
  constexpr float kTissue = 0.1f;       // of the intensities' range
  constexpr double kMedian = 0.674490;  // of the absolute values of a normal distribution
  const double beside = std::exp(-0.5 / (kSigma * kSigma)), b = beside / (1 + 2 * beside);
  const GridRows rows(image.grid);
  const std::int64_t voxels = rows.voxels();
  const Device device = image.grid.device;
  Tensor differences = image.allocated(1, exec), other = image.allocated(1, exec);
  double squares = 0;
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    const float* const values = channel_of(image, c);
    scale(device, voxels, 1, values, differences.elements<float>(), exec);
    double gain = 1;
    for (std::size_t a = 0; a < static_cast<std::size_t>(image.grid.rank); ++a) {
      Point sigma{};
      sigma[a] = kSigma;
      smooth_into(
          differences, {.output = other}, {.sigma = per_axis(sigma, image.grid.rank)}, exec);
      add_scaled(device, voxels, -1, differences.elements<float>(), other.elements<float>(), exec);
      std::swap(differences, other);
      gain *= b * std::sqrt(6.0);
    }
    // Absolute values, below 1: the sum of both signs' positive parts.
    float* const absolute = differences.elements<float>();
    scale(device, voxels, 1, absolute, other.elements<float>(), exec);
    rescale(rows, 0, 1, nullptr, other.elements<float>(), exec);
    scale(device, voxels, -1, absolute, absolute, exec);
    rescale(rows, 0, 1, nullptr, absolute, exec);
    add_scaled(device, voxels, 1, other.elements<float>(), absolute, exec);
    float* const tissue = other.elements<float>();
    scale(device, voxels, 1, values, tissue, exec);
    threshold(device, voxels, kTissue, tissue, exec);
    const std::int64_t count = count_nonzero(rows, tissue, exec);
    if (count == 0) continue;
    const Neighbours at = nth_above(rows, absolute, tissue, -1, count / 2, exec);
    const double noise = static_cast<double>(at.value) / (kMedian * gain);
    squares += noise * noise;
  }
  return std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(image.channels(), 1)));
}

Point centre_of_mass(const Image& image, const Execution& exec) {
  Mass all;
  for (std::int64_t c = 0; c < image.channels(); ++c) {
    const Mass own = mass(GridRows(image.grid), channel_of(image, c), exec);
    all.sum += own.sum;
    all.first = all.first + own.first;
  }
  for (double& number : all.first) number /= all.sum;
  constexpr int kBits = 20;
  const double unit = std::ldexp(1, std::ilogb(image.grid.extent()) - kBits);
  Point centre = image.grid.to_world(all.first);
  for (double& number : centre) number = std::rint(number / unit) * unit;
  return centre;
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
    const TensorView& u, const Grid& from, const Grid& to, DType dtype, const Execution& exec) {
  const Tensor result = allocate(to.field_shape(), dtype, to.device, exec);
  const Map voxels = between_voxels(to, {}, from);
  sample_at(components_first(u), from, voxels, to, {}, true, components_first(result), exec);
  // Both grids have the same axes, so a voxel of one is a number of the other's along each.
  Matrix factors;
  for (int a = 0; a < to.rank; ++a) factors(a, a) = 1 / voxels.linear(a, a);
  turn(GridRows(to), factors, result, result, exec);
  return result;
}

}  // namespace similis::registration_internal
