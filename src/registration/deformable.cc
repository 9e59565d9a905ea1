// SPDX-License-Identifier: Apache-2.0
// The levels of a deformable stage, their steps and their ends.
#include "src/registration/deformable.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string_view>

#include "src/registration/exponential.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

constexpr std::size_t kSlopeLosses = 10;

// The slope of a line through the last losses.
double slope_of(const std::vector<double>& losses) {
  constexpr double kMiddle = (kSlopeLosses - 1) / 2.0;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < kSlopeLosses; ++i) {
    const double at = static_cast<double>(i) - kMiddle;
    sum += at * losses[losses.size() - kSlopeLosses + i];
    squares += at * at;
  }
  return sum / squares;
}

constexpr const char* kByCallback = "callback";

// σ of the smoothing of both images before a level, in its voxels. With 0.5, which leaves no
// aliasing, a level sees less of the edges that it is to move.
constexpr double kSoftness = 0.35;

// Noise adds to the fluid smoothing at full resolution: from kQuiet on, a share of the
// intensities' range, one voxel for each kOneVoxel, up to one. Coarser levels have less noise, as
// their images are smoothed. In a plane the smoothing averages a tenth of the voxels, and noise
// counts as kInPlane times as much.
constexpr double kQuiet = 0.01, kOneVoxel = 0.02, kInPlane = 2.7;
double fluid_by_noise(double noise, int rank) {
  const double counted = rank == 2 ? kInPlane * noise : noise;
  return std::clamp((counted - kQuiet) / kOneVoxel, 0.0, 1.0);
}

// The damping of Gauss-Newton steps, which follow noise sooner than others do: those of images
// whose noise is 3 % are hardly other steps than the gradient's.
constexpr double kDamping = 1, kUndamped = 0.0075;
double damping_by_noise(double noise) {
  return kDamping * std::pow(std::max(noise / kUndamped, 1.0), 4);
}

// Returns true if the last level takes Gauss-Newton steps: those of the greedy stage in volumes
// with a mask, by LNCC, whose curvature they take.
bool takes_curvature(
    RegisterStage stage, const StageImages& images, const RegisterOptions& options) {
  const bool has_mask = !images.fixed.mask.empty() || !images.moving.mask.empty();
  return stage == RegisterStage::deformable && images.fixed.grid.rank == 3 && has_mask &&
         std::any_of(options.metrics.begin(), options.metrics.end(),
             [](const MetricTerm& term) { return term.metric == RegisterMetric::lncc; });
}

}  // namespace

void drop_last_digits(const Tensor& field, double largest, const Execution& exec) {
  if (field.dtype != DType::f64) return;
  round_to(field.device, field.shape.count(), rounding_unit(largest), field, exec);
}

double LevelRun::step(int iteration) const {
  const double share = static_cast<double>(iteration) / iterations;
  return options.step * (share < 0.5 ? 1.0 : 0.2 + 1.6 * (1 - share));
}

double LevelRun::tolerance(int iteration) const {
  const bool is_full_step = 2 * iteration < iterations;
  return is_full_step ? -std::numeric_limits<double>::infinity() : options.tolerance;
}

bool LevelRun::goes_on(double loss, double least, RegisterLevel& report) const {
  const int iteration = static_cast<int>(report.loss.size());
  report.loss.push_back(loss);
  if (!watch || watch({stage, shrink, iteration, iterations, loss, least})) return true;
  report.stopped = kByCallback;
  return false;
}

bool LevelRun::is_converged(const RegisterLevel& report) const {
  const int iteration = static_cast<int>(report.loss.size()) - 1;
  return report.loss.size() >= kSlopeLosses && -slope_of(report.loss) < tolerance(iteration);
}

void SteppedLevel::run(const LevelRun& run, RegisterLevel& report, DeformableResult& result) {
  for (int i = 0; i < run.iterations; ++i) {
    if (!run.goes_on(differentiate(), least(), report)) return;
    if (!advance(run.step(i), result)) {
      report.stopped = "guard";
      return;
    }
    report.min_jacobian.push_back(least());
    if (run.is_converged(report)) {
      report.stopped = "tolerance";
      return;
    }
  }
}

DeformableSettings deformable_settings(const RegisterOptions& options, const Grid& grid) {
  const bool is_mi = std::all_of(options.metrics.begin(), options.metrics.end(),
      [](const MetricTerm& term) { return term.metric == RegisterMetric::mi; });
  const double fluid = is_mi ? 4 : options.stages.back() == RegisterStage::symmetric ? 2.5 : 3;
  // Labels have no noise, and mutual information is smoothed more already.
  const bool compares_intensities =
      std::any_of(options.metrics.begin(), options.metrics.end(), [](const MetricTerm& term) {
        return term.metric != RegisterMetric::mi && term.metric != RegisterMetric::dice;
      });
  DeformableSettings result{.fluid = options.fluid.value_or(fluid),
      .elastic = options.elastic.value_or(0.25),
      .follows_noise = !options.fluid && compares_intensities,
      .levels = options.levels,
      .iterations = options.iterations};
  if (result.levels.empty()) {
    result.levels = {4, 2, 1};
    const std::int64_t largest = *std::max_element(grid.size.begin(), grid.size.end());
    for (std::int64_t most = 150;
         largest > most && result.iterations.size() != result.levels.size(); most *= 2) {
      result.levels.insert(result.levels.begin(), 2 * result.levels.front());
    }
  }
  if (result.iterations.empty()) {
    constexpr int kPresets[3][3] = {{30, 20, 10}, {50, 40, 20}, {100, 100, 20}};
    const auto& preset = kPresets[static_cast<std::size_t>(options.preset)];
    for (std::size_t i = 0; i < result.levels.size(); ++i) {
      const std::size_t from_end = result.levels.size() - 1 - i;
      result.iterations.push_back(preset[from_end > 2 ? 0 : 2 - from_end]);
    }
  }
  return result;
}

void DeformableResult::add_repair(std::int64_t repaired, std::int64_t voxels) {
  if (repaired == 0) return;
  ++repairs;
  repaired_share =
      std::max(repaired_share, static_cast<double>(repaired) / static_cast<double>(voxels));
}

DeformableResult run_deformable(RegisterStage stage, const StageImages& whole, const Map& affine,
    const RegisterOptions& options, const Watch& watch, const Execution& exec) {
  const Image& fixed = whole.fixed;
  const auto begin = std::chrono::steady_clock::now();
  const bool is_symmetric = stage == RegisterStage::symmetric;
  const auto make_level = is_symmetric ? symmetric_level : greedy_level;
  const auto settle = is_symmetric ? guard_exponentials : guard_or_shorten;
  DeformableSettings settings = deformable_settings(options, fixed.grid);
  const bool is_damped = takes_curvature(stage, whole, options);
  const bool asks_for_noise = (settings.follows_noise || is_damped) && settings.levels.back() == 1;
  const double noise =
      asks_for_noise
          ? std::hypot(noise_of(fixed, exec), noise_of(whole.moving, exec)) / std::sqrt(2.0)
          : 0;
  DeformableResult result{.report = {.stage = stage}};
  const double spacing = fixed.grid.smallest_spacing();
  Grid before = fixed.grid;
  Tensor field;
  bool was_stopped = false;
  for (std::size_t l = 0; l < settings.levels.size() && !was_stopped; ++l) {
    const int shrink = settings.levels[l], iterations = settings.iterations[l];
    const auto pair_of = [&](const Image& own, const Image& other) {
      if (shrink == 1 || own.channels() == 0) return LevelPair{own, own, other};
      const double sigma = kSoftness * shrink * spacing;
      return LevelPair{.fixed = shrunk(own, shrink * spacing, kSoftness, exec),
          .soft_fixed = is_symmetric ? blurred(own, sigma, exec) : own,
          .moving = blurred(other, sigma, exec)};
    };
    const LevelImages images = {
        pair_of(fixed, whole.moving), pair_of(whole.fixed_labels, whole.moving_labels), affine};
    const Grid& grid = images.fixed.grid;
    if (field.empty()) {
      field = allocate(grid.field_shape(), images.fixed.values.dtype, grid.device, exec);
      fill(grid.device, field.shape.count(), 0, field, exec);
    } else {
      field = resampled_field(field, before, grid, images.fixed.values.dtype, exec);
      settle(grid, field, options.min_jacobian, exec);
    }
    before = grid;
    if (shrink == 1) {
      if (settings.follows_noise) settings.fluid += fluid_by_noise(noise, fixed.grid.rank);
      if (is_damped) settings.damping = damping_by_noise(noise);
    }
    const std::unique_ptr<DeformableLevel> level =
        make_level(images, field, options, settings, exec);
    RegisterLevel report{.shrink = shrink};
    level->run({stage, shrink, iterations, options, watch}, report, result);
    was_stopped = std::string_view(report.stopped) == kByCallback;
    field = level->field();
    if (is_symmetric) {
      const Guarded guarded = settle(grid, field, options.min_jacobian, exec);
      result.add_repair(guarded.repaired, grid.voxels());
    }
    result.report.levels.push_back(report);
  }
  if (field.dtype != DType::f32) {
    field = resampled_field(field, before, fixed.grid, DType::f32, exec);
  }
  result.settings = settings;
  result.min_jacobian = settle(fixed.grid, field, options.min_jacobian, exec).least;
  result.u = field;
  if (is_symmetric) {
    Tensor v = field;
    result.u = allocate(v.shape, DType::f32, v.device, exec);
    exponential(fixed.grid, v, 1, result.u, exec);
  }
  result.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace similis::registration_internal
