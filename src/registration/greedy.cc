// SPDX-License-Identifier: Apache-2.0
// Per iteration, on a level's grid, with u in voxels and J the moving image at A(x + u(x)):
//
//   g ← G_fluid ∂/∂u of -Σ metrics(F, J);  d ← -step·g / max|g|
//   u' ← G_elastic (d + u(x + d));  guard;  u ← u' if it passes
#include "src/registration/greedy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "similis/smooth.hpp"
#include "similis/warp.hpp"
#include "src/registration/guard.h"
#include "src/registration/passes.h"
#include "src/registration/similarity.h"

namespace similis::registration_internal {
namespace {

constexpr std::size_t kSlopeLosses = 10;
constexpr int kHalvings = 4;

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

class GreedyLevel {
 public:
  GreedyLevel(const Image& fixed, const Image& moving, const Map& affine, const Tensor& u,
      const RegisterOptions& options, const GreedySettings& settings, const Execution& exec)
      : fixed_(fixed),
        moving_(moving),
        rows_(fixed.grid),
        voxels_(between_voxels(fixed.grid, affine, moving.grid)),
        options_(options),
        settings_(settings),
        exec_(exec),
        u_(u),
        next_(allocate(u.shape, DType::f32, {}, exec)),
        g_(allocate(u.shape, DType::f32, {}, exec)),
        j_(allocate(fixed.values.shape, DType::f32, {}, exec)),
        slope_(allocate(fixed.values.shape, DType::f32, {}, exec)),
        weights_(allocate(fixed.grid.image_shape(1), DType::f32, {}, exec)) {
    if (!moving.mask.empty()) moving_mask_ = allocate(weights_.shape, DType::f32, {}, exec);
  }

  // Sets g to the smoothed gradient of the loss; returns the loss.
  double differentiate() {
    float* const weights = weights_.elements<float>();
    std::int64_t count = weigh_inside(
        rows_, voxels_, moving_.grid, u_.elements<float>(), fixed_.mask_elements(), weights, exec_);
    if (!moving_mask_.empty()) {
      sample_at(moving_.mask, moving_.grid, voxels_, fixed_.grid, u_, false, moving_mask_, exec_);
      count = drop_below(rows_, moving_mask_.elements<float>(), 0.999f, weights, exec_);
    }
    sample_at(moving_.values, moving_.grid, voxels_, fixed_.grid, u_, false, j_, exec_);
    const bool all_count = count == fixed_.grid.voxels();
    const double value = similarity(options_.metrics, fixed_.grid, fixed_.values, j_,
        all_count ? TensorView() : TensorView(weights_), count, slope_, exec_);
    const Tensor matrix = coordinate_matrix(voxels_, fixed_.grid, moving_.grid);
    const Tensor by_u = displacement_matrix(voxels_, moving_.grid);
    sample_into(moving_.values, {.upstream = slope_, .grid_gradient = g_},
        {.affine = matrix, .displacement = u_, .grid_affine = by_u}, exec_);
    smooth_into(g_, {.output = g_},
        {.sigma = settings_.fluid, .field = true, .padding = SmoothPadding::zeros}, exec_);
    return -value;
  }

  // Moves u by at most `step` voxels along g. False if no step passes the guard.
  bool advance(double step, GreedyResult& result) {
    const double largest = std::sqrt(largest_square(rows_, g_.elements<float>(), exec_));
    if (!(largest > 0) || !std::isfinite(largest)) return false;
    const std::int64_t count = g_.shape.count();
    // The gradient is that of the metrics, which d makes larger.
    scale(count, static_cast<float>(step / largest), g_.elements<float>(), g_.elements<float>(),
        exec_);
    for (int i = 0; i <= kHalvings; ++i) {
      if (i > 0) scale(count, 0.5f, g_.elements<float>(), g_.elements<float>(), exec_);
      compose();
      const Guarded guarded = guard(fixed_.grid, next_, options_.min_jacobian, exec_);
      if (guarded.repaired > 0) {
        ++result.repairs;
        result.repaired_share = std::max(result.repaired_share,
            static_cast<double>(guarded.repaired) / static_cast<double>(fixed_.grid.voxels()));
      }
      if (!guarded.passed) continue;
      std::swap(u_, next_);
      least_ = guarded.least;
      return true;
    }
    return false;
  }

  const Tensor& u() const { return u_; }
  double least() const { return least_; }

 private:
  // next = G_elastic (g + u(x + g)).
  void compose() {
    std::memcpy(
        next_.data(), g_.data(), static_cast<std::size_t>(g_.shape.count()) * sizeof(float));
    const Tensor by_voxel = displacement_matrix({}, fixed_.grid);
    sample_into(components_first(u_), {.output = components_first(next_), .accumulate = true},
        {.displacement = g_, .grid_affine = by_voxel, .padding_mode = Outside::border}, exec_);
    smooth_into(next_, {.output = next_}, {.sigma = settings_.elastic, .field = true}, exec_);
  }

  const Image &fixed_, &moving_;
  GridRows rows_;
  Map voxels_;
  const RegisterOptions& options_;
  const GreedySettings& settings_;
  const Execution& exec_;
  Tensor u_, next_, g_, j_, slope_, weights_, moving_mask_;
  double least_ = 1;
};

}  // namespace

GreedySettings greedy_settings(const RegisterOptions& options, const Grid& grid) {
  const bool is_mi = std::all_of(options.metrics.begin(), options.metrics.end(),
      [](const MetricTerm& term) { return term.metric == RegisterMetric::mi; });
  GreedySettings result{.fluid = options.fluid.value_or(is_mi ? 5 : 3),
      .elastic = options.elastic.value_or(is_mi ? 0.5 : 0.25),
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

GreedyResult run_greedy(const Image& fixed, const Image& moving, const Map& affine,
    const RegisterOptions& options, const Watch& watch, const Execution& exec) {
  const auto begin = std::chrono::steady_clock::now();
  const GreedySettings settings = greedy_settings(options, fixed.grid);
  GreedyResult result{.report = {.stage = RegisterStage::deformable}, .settings = settings};
  const double spacing = fixed.grid.smallest_spacing();
  Grid before = fixed.grid;
  Tensor u;
  bool was_stopped = false;
  for (std::size_t l = 0; l < settings.levels.size() && !was_stopped; ++l) {
    const int shrink = settings.levels[l], iterations = settings.iterations[l];
    const Image small = shrink > 1 ? shrunk(fixed, shrink * spacing, exec) : fixed;
    const Image soft = shrink > 1 ? blurred(moving, 0.5 * shrink * spacing, exec) : moving;
    if (u.empty()) {
      u = allocate(small.grid.field_shape(), DType::f32);
      std::fill_n(u.elements<float>(), u.shape.count(), 0.0f);
    } else {
      u = resampled_field(u, before, small.grid, exec);
      guard_or_shorten(small.grid, u, options.min_jacobian, exec);
    }
    before = small.grid;
    GreedyLevel level(small, soft, affine, u, options, settings, exec);
    RegisterLevel report{.shrink = shrink};
    for (int i = 0; i < iterations; ++i) {
      const double loss = level.differentiate();
      report.loss.push_back(loss);
      const bool may_go_on =
          !watch || watch({RegisterStage::deformable, shrink, i, iterations, loss, level.least()});
      if (!may_go_on) {
        report.stopped = "callback";
        was_stopped = true;
        break;
      }
      const double share = static_cast<double>(i) / iterations;
      const double step = options.step * (share < 0.5 ? 1.0 : 0.2 + 1.6 * (1 - share));
      if (!level.advance(step, result)) {
        report.stopped = "guard";
        break;
      }
      report.min_jacobian.push_back(level.least());
      if (report.loss.size() >= kSlopeLosses && -slope_of(report.loss) < options.tolerance) {
        report.stopped = "tolerance";
        break;
      }
    }
    u = level.u();
    result.report.levels.push_back(report);
  }
  if (before.size != fixed.grid.size) {
    u = resampled_field(u, before, fixed.grid, exec);
  }
  result.min_jacobian = guard_or_shorten(fixed.grid, u, options.min_jacobian, exec).least;
  result.u = u;
  result.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace similis::registration_internal
