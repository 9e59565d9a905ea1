// SPDX-License-Identifier: Apache-2.0
// register_images(): refuses, prepares, runs the stages, and turns the field into millimetres.
//
// The symmetric stage and the linear ones before it see the same two images whichever of them is
// called fixed: one of them is the base by what it is, and a result for the other is its inverse.
// So swapped inputs invert each other up to the interpolation of one field on the other's grid.
#include "similis/register.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "similis/fields.hpp"
#include "similis/smooth.hpp"
#include "similis/warp.hpp"
#include "src/core/backend.h"
#include "src/core/counted.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/registration/deformable.h"
#include "src/registration/guard.h"
#include "src/registration/options.h"
#include "src/registration/passes.h"

namespace similis {
namespace {

using namespace registration_internal;

constexpr double kLeastOfInverse = 1e-2;  // determinant of one-sided differences

void check(const MetricTerm& term) {
  require(std::isfinite(term.weight) && term.weight > 0,
      "register: a metric's weight is {}; it must be a number above 0", term.weight);
  require(term.metric != RegisterMetric::lncc ||
              (term.window_size >= 3 && term.window_size <= 255 && term.window_size % 2 == 1),
      "register: window_size is {}; it must be an odd number from 3 to 255", term.window_size);
  require(term.metric != RegisterMetric::mi || (term.num_bins >= 4 && term.num_bins <= 256),
      "register: num_bins is {}; it must be from 4 to 256", term.num_bins);
  require(term.sampling > 0 && term.sampling <= 1,
      "register: sampling is {}; it must be a number above 0 and up to 1", term.sampling);
}

void require_number(const char* name, double value, double least, double most, const char* words) {
  require(value >= least && value <= most, "register: {} is {}; it must be {}", name, value, words);
}

}  // namespace

void registration_internal::check_options(const RegisterOptions& options) {
  require(!options.stages.empty(), "register: stages is empty; give one stage or more");
  for (std::size_t i = 0; i + 1 < options.stages.size(); ++i) {
    require(options.stages[i] < options.stages[i + 1],
        "register: stages are out of order; each may stand once, in the order translation, rigid, "
        "similarity, affine, deformable, symmetric");
  }
  require(options.stages.size() < 2 || *(options.stages.end() - 2) != RegisterStage::deformable,
      "register: stages holds deformable and symmetric; give one of them");
  require(!options.metrics.empty(), "register: metrics is empty; give one metric or more");
  for (const MetricTerm& term : options.metrics) check(term);
  check(options.linear_metric);
  require(is_linear(options.linear_metric.metric),
      "register: the linear metric is {}; it must be mi, ncc or mse",
      name(options.linear_metric.metric));
  require(options.iterations.empty() || options.levels.empty() ||
              options.iterations.size() == options.levels.size(),
      "register: iterations has {} numbers and levels {}; they must have as many",
      options.iterations.size(), options.levels.size());
  for (const int iterations : options.iterations) {
    require_number("iterations", iterations, 1, 1e6, "from 1 to 1000000 at each level");
  }
  for (std::size_t i = 0; i < options.levels.size(); ++i) {
    require_number("levels", options.levels[i], 1, 1024, "from 1 to 1024");
    require(i == 0 || options.levels[i] < options.levels[i - 1],
        "register: levels holds {} after {}; they must fall, from coarse to fine",
        options.levels[i], i == 0 ? 0 : options.levels[i - 1]);
  }
  require_number("fluid", options.fluid.value_or(0), 0, 1000, "from 0 to 1000");
  require_number("elastic", options.elastic.value_or(0), 0, 1000, "from 0 to 1000");
  require(options.step > 0 && options.step <= 1,
      "register: step is {}; it must be above 0 and up to 1", options.step);
  require(options.min_jacobian > 0 && options.min_jacobian < 1,
      "register: min_jacobian is {}; it must be above 0 and below 1", options.min_jacobian);
  require_number("tolerance", options.tolerance, 0, 1, "from 0 to 1");
  if (options.start != RegisterStart::given) return;
  for (const double number : options.initial) {
    require(std::isfinite(number), "register: initial holds {}; it must be finite", number);
  }
  const Matrix linear = map_of(options.initial).linear;
  require(!is_singular(linear), "register: initial is singular: its determinant is {}",
      determinant(linear));
}

namespace {

// Another function asks if they are images.
void require_alike(const Extents& fixed, const Extents& moving) {
  const int axes = fixed.rank() - 2, of_moving = moving.rank() - 2;
  if (axes < 2 || of_moving < 2) return;
  require(axes == of_moving,
      "register: fixed has {} axes of space and moving {}; they must have as many", axes,
      of_moving);
  require(fixed[1] == moving[1], "register: fixed has {} and moving {}; they must have as many",
      counted(fixed[1], "channel"), moving[1]);
}

void require_runs_on(const char* operation, Device device, const Execution& exec) {
  const Device used = device_of(operation, device, exec);
  require_backend(used, operation, used.kind != DeviceKind::vulkan);
}

Matrix diagonal(const Point& numbers) {
  Matrix result;
  for (int a = 0; a < 3; ++a) result(a, a) = numbers[static_cast<std::size_t>(a)];
  return result;
}

// Voxels to the coordinates of sample().
Matrix units_of(const Grid& grid) {
  Point units = {1, 1, 1};
  for (std::size_t a = 0; a < static_cast<std::size_t>(grid.rank); ++a) {
    units[a] = 2 / static_cast<double>(grid.size[a] - 1);
  }
  return diagonal(units);
}

// The field in mm, rounded, which passes the guard as it is rounded; u: likewise, in voxels.
Tensor in_millimetres(
    const Grid& grid, const Tensor& u, double bound, double* least, const Execution& exec) {
  const GridRows rows(grid);
  const Tensor field = allocate(u.shape, DType::f32, u.device, exec);
  // Multiples of 2⁻¹² of the smallest spacing compress well.
  const double unit = std::ldexp(grid.smallest_spacing(), -12);
  const Matrix& to_world = grid.to_world.linear;
  const Matrix to_voxels = inverse(to_world);
  for (double aim = bound;; aim += 0.01) {
    turn(rows, to_world, u.elements<float>(), field.elements<float>(), exec);
    round_to(field.device, field.shape.count(), unit, field.elements<float>(), exec);
    turn(rows, to_voxels, field.elements<float>(), u.elements<float>(), exec);
    const Determinants found =
        corner_determinants(rows, u.elements<float>(), {.size = grid.size}, bound, nullptr, exec);
    *least = found.least;
    if (found.bad == 0) return field;
    // Rounding moves a determinant by a few thousandths, so a field that keeps more passes.
    guard_or_shorten(grid, u, std::min(aim + 0.01, 0.9), exec);
  }
}

// The inverse of u, both in voxels; memory: of u's size, which may be u's own. It may fold.
Tensor inverse_of(const Grid& grid, const Tensor& u, const Tensor& memory, const Execution& exec) {
  constexpr int kIterations = 60;
  const Tensor result = allocate(u.shape, DType::f32, u.device, exec);
  const GridRows rows(grid);
  const Matrix units = units_of(grid);
  turn(rows, units, u.elements<float>(), memory.elements<float>(), exec);
  invert_into(memory, result, {}, kIterations, true, 0.002, exec);
  turn(rows, inverse(units), result.elements<float>(), result.elements<float>(), exec);
  turn(rows, inverse(units), memory.elements<float>(), memory.elements<float>(), exec);
  return result;
}

// The box about the places that w moves the voxels of a box to. Only these are copied to the CPU: a
// whole field on a GPU takes longer than an iteration.
Box moved_box(const Grid& grid, const Tensor& w, const Box& box, const Execution& exec) {
  // A smoothing that weighs no neighbour makes the box dense.
  const Tensor part =
      on_cpu(smooth(part_of(w, box, grid.rank), {.sigma = 0.0, .field = true}, exec), exec);
  Point least{}, most{};
  const std::int64_t voxels = part.shape.count() / grid.rank;
  for (std::int64_t i = 0; i < voxels; ++i) {
    const std::int64_t at[3] = {
        i % box.size[0], i / box.size[0] % box.size[1], i / box.size[0] / box.size[1]};
    for (std::size_t a = 0; a < static_cast<std::size_t>(grid.rank); ++a) {
      const auto by =
          static_cast<double>(part.elements<float>()[i * grid.rank + static_cast<std::int64_t>(a)]);
      const double place = static_cast<double>(box.first[a] + at[a]) + by;
      least[a] = i == 0 ? place : std::min(least[a], place);
      most[a] = i == 0 ? place : std::max(most[a], place);
    }
  }
  Box result;
  for (std::size_t a = 0; a < 3; ++a) {
    const auto last = static_cast<double>(grid.size[a] - 1);
    result.first[a] = static_cast<std::int64_t>(std::clamp(std::floor(least[a]), 0.0, last));
    const auto end = static_cast<std::int64_t>(std::clamp(std::ceil(most[a]), 0.0, last));
    result.size[a] = end - result.first[a] + 1;
  }
  return result;
}

// Sets the displacement to u, and returns the inverse in voxels. If u shears much, the inverse
// may fold between its voxels though u does not. Its repair would take it millimetres away from u's
// inverse, so u is smoothed there instead, in each spot of a few voxels. The repair takes the
// rest in the end.
Tensor set_displacement(
    const Grid& grid, const Tensor& u, double bound, Registration& result, const Execution& exec) {
  constexpr int kTries = 4;
  constexpr std::int64_t kFewVoxels = 12;  // along an axis
  const GridRows rows(grid);
  for (int i = 0;; ++i) {
    result.displacement = in_millimetres(grid, u, bound, &result.min_jacobian, exec);
    const Tensor w = inverse_of(grid, u, u, exec);
    const Determinants found = corner_determinants(
        rows, w.elements<float>(), {.size = grid.size}, kLeastOfInverse, nullptr, exec);
    if (found.bad == 0) return w;
    std::vector<Box> spots;
    if (i < kTries) spots = bad_spots(grid, w, found.around, kLeastOfInverse, exec);
    std::erase_if(spots, [](const Box& spot) {
      return *std::max_element(spot.size.begin(), spot.size.end()) > kFewVoxels;
    });
    if (spots.empty()) {
      guard_or_shorten(grid, w, kLeastOfInverse, exec);
      return w;
    }
    for (const Box& spot : spots) {
      const Box box = moved_box(grid, w, spot, exec);
      for (int k = 0; k < 1 << i; ++k) smooth_within(grid, box, u, exec);
    }
  }
}

// Lengths of w + u(x + w), both in mm.
RegisterSummary inverse_error(
    const Grid& grid, const Tensor& u, const Tensor& w, const Execution& exec) {
  const Tensor back = allocate(u.shape, DType::f32, u.device, exec);
  scale(u.device, w.shape.count(), 1, w.elements<float>(), back.elements<float>(), exec);
  const Tensor by_mm = displacement_matrix({inverse(grid.to_world.linear)}, grid, exec);
  sample_into(components_first(u), {.output = components_first(back), .accumulate = true},
      {.displacement = w, .grid_affine = by_mm, .padding_mode = Outside::border}, exec);
  return lengths(GridRows(grid), back.elements<float>(), exec);
}

// Returns true if `moving` is the base of a symmetric registration: the image with fewer voxels,
// whose grid makes it cheaper, else the one that its grid or its intensities put first.
bool is_base(const Image& moving, const Image& fixed, const Execution& exec) {
  constexpr double kSame = 1e-9;  // sums of two devices differ by less
  const auto numbers_of = [&](const Image& image) {
    std::vector<double> numbers = {static_cast<double>(image.grid.voxels())};
    for (const std::int64_t extent : image.grid.size)
      numbers.push_back(static_cast<double>(extent));
    for (const double number : rows_of(image.grid.to_world)) numbers.push_back(number);
    const GridRows rows(image.grid);
    const float* const values = image.values.elements<float>();
    const Mass all = mass(rows, values, exec);
    const Moments squares = moments(rows, values, values, nullptr, exec);
    numbers.insert(numbers.end(), {all.sum, squares.ff});
    numbers.insert(numbers.end(), all.first.begin(), all.first.end());
    return numbers;
  };
  const std::vector<double> own = numbers_of(moving), other = numbers_of(fixed);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double difference = own[i] - other[i];
    if (std::abs(difference) > kSame * (std::abs(own[i]) + std::abs(other[i])))
      return difference < 0;
  }
  return false;
}

// For T(p) = A(p + u(p)), u on the grid `from`, the u' on the grid `to` for which
// T⁻¹(q) = A⁻¹(q + u'(q)). With w the inverse of u and L the linear part of A, u' = L·w(A⁻¹(q)):
// that is where the search for u' = -L·u(A⁻¹(q + u'(q))) starts. All are in voxels.
Tensor inverse_on(const Grid& to, const Grid& from, const Tensor& u, const Map& affine,
    double min_jacobian, const Execution& exec) {
  constexpr int kSteps =
      3;  // each divides the error of interpolation by two or more in most places
  const Map back = between_voxels(to, inverse(affine), from);
  const Matrix linear = between_voxels(from, affine, to).linear;
  Tensor result = allocate(to.field_shape(), DType::f32, to.device, exec);
  const Tensor w = inverse_of(from, u, allocate(u.shape, DType::f32, u.device, exec), exec);
  guard_or_shorten(from, w, kLeastOfInverse, exec);
  sample_at(components_first(w), from, back, to, {}, true, components_first(result), exec);
  turn(GridRows(to), linear, result.elements<float>(), result.elements<float>(), exec);
  Tensor next = allocate(to.field_shape(), DType::f32, to.device, exec);
  for (int i = 0; i < kSteps; ++i) {
    sample_at(components_first(u), from, back, to, result, true, components_first(next), exec);
    turn(GridRows(to), -1 * linear, next.elements<float>(), next.elements<float>(), exec);
    std::swap(result, next);
  }
  guard_or_shorten(to, result, min_jacobian, exec);
  return result;
}

double overlap_of(const Image& fixed, const Image& moving, const Map& affine, const Tensor& u,
    const Execution& exec) {
  const Map voxels = between_voxels(fixed.grid, affine, moving.grid);
  const Tensor weights = fixed.allocated(1, exec);
  const std::int64_t count = weigh_inside(GridRows(fixed.grid), voxels, moving.grid,
      u.empty() ? nullptr : u.elements<float>(), fixed.mask_elements(), weights.elements<float>(),
      exec);
  return static_cast<double>(count) / static_cast<double>(fixed.count(exec));
}

}  // namespace

Registration register_images(const Volume& fixed, const Volume& moving,
    const RegisterOptions& options, const Execution& exec) {
  check_options(options);
  require(fixed.data.device == moving.data.device,
      "register: {} is on {} but {} on {}; they must be on one device", options.fixed_name,
      fixed.data.device, options.moving_name, moving.data.device);
  require_runs_on("register", fixed.data.device, exec);
  // Before their values, since an array whose axes are taken for others has odd ones.
  require_alike(fixed.data.shape, moving.data.shape);
  Image own = prepared(
      options.fixed_name.c_str(), fixed, options.fixed_mask, options.mask_not_finite, exec);
  Image other = prepared(
      options.moving_name.c_str(), moving, options.moving_mask, options.mask_not_finite, exec);
  const LabelChannels labels = label_channels(options, own, other, exec);
  std::vector<RegisterStage> linear = options.stages;
  const RegisterStage last = linear.back();
  const bool is_deformable = last >= RegisterStage::deformable;
  if (is_deformable) linear.pop_back();
  const bool is_swapped = last == RegisterStage::symmetric && is_base(other, own, exec);
  const Image &base = is_swapped ? other : own, &moved = is_swapped ? own : other;
  RegisterOptions taken = options;
  if (is_swapped && options.start == RegisterStart::given) {
    taken.initial = rows_of(inverse(map_of(options.initial)));
  }
  const LinearResult by_lines = run_linear(base, moved, linear, taken, options.progress, exec);
  const Map affine = is_swapped ? inverse(by_lines.map) : by_lines.map;
  Registration result{.affine = rows_of(affine), .stages = by_lines.stages};
  Tensor u, w;
  if (is_deformable && !by_lines.was_stopped) {
    DeformableResult deformed = run_deformable(last,
        {base, moved, is_swapped ? labels.moving : labels.fixed,
            is_swapped ? labels.fixed : labels.moving},
        by_lines.map, taken, options.progress, exec);
    result.stages.push_back(deformed.report);
    result.fluid = deformed.settings.fluid;
    result.elastic = deformed.settings.elastic;
    result.levels = deformed.settings.levels;
    result.iterations = deformed.settings.iterations;
    result.repairs = deformed.repairs;
    result.repaired_share = deformed.repaired_share;
    u = std::move(deformed.u);
    if (is_swapped) {
      u = inverse_on(own.grid, other.grid, u, by_lines.map, options.min_jacobian, exec);
    }
    // Three fields are held at once from here on, as in the stages, and the images no more.
    own.values = {};
    other.values = {};
    w = set_displacement(own.grid, u, options.min_jacobian, result, exec);
  }
  result.warped = apply_registration(result, fixed, moving, false, exec);
  result.overlap = overlap_of(own, other, affine, u, exec);
  if (!u.empty()) {
    u = {};
    double least_of_inverse = 1;
    result.inverse_displacement =
        in_millimetres(own.grid, w, kLeastOfInverse, &least_of_inverse, exec);
    w = {};
    result.inverse_error_mm =
        inverse_error(own.grid, result.displacement, result.inverse_displacement, exec);
  }
  // The host has waited for the last numbers, and all is done.
  return result;
}

Tensor apply_registration(const Registration& registration, const Volume& fixed,
    const Volume& image, bool nearest, const Execution& exec) {
  const Grid grid = grid_of(fixed), from = grid_of(image);
  require(grid.rank == from.rank && image.data.shape[0] == 1,
      "register: image has shape {}; it must be [1, C, …] with the fixed image's number of axes",
      image.data.shape);
  require_runs_on("register", image.data.device, exec);
  const Map affine = map_of(registration.affine);
  const Map voxels = between_voxels(grid, affine, from);
  const Tensor output =
      allocate(grid.image_shape(image.data.shape[1]), DType::f32, from.device, exec);
  const Tensor matrix = coordinate_matrix(voxels, grid, from, exec);
  const Tensor& u = registration.displacement;
  Tensor by_u, values;
  SampleOptions options{.affine = matrix,
      .displacement = u,
      .mode = nearest ? Interpolation::nearest : Interpolation::linear};
  if (u.empty()) {
    const Extents shape = grid.image_shape(1);
    options.out_shape = Extents(
        std::span<const std::int64_t>(shape.begin() + 2, static_cast<std::size_t>(grid.rank)));
  } else {
    // Millimetres of the fixed image's world become coordinates of the moving grid.
    const Map of_world{inverse(from.to_world.linear) * affine.linear};
    by_u = displacement_matrix(of_world, from, exec);
    options.grid_affine = by_u;
  }
  TensorView source = image.data;
  if (!is_floating_point(source.dtype)) {
    values = allocate(source.shape, DType::f32, source.device, exec);
    to_floats(source, values.elements<float>(), exec);
    source = values;
  }
  sample_into(source, {.output = output}, options, exec);
  return output;
}

}  // namespace similis
