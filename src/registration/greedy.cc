// SPDX-License-Identifier: Apache-2.0
// The greedy stage. Per iteration, on a level's grid, with u in voxels and J the moving image at
// A(x + u(x)):
//
//   g ← G_fluid (∂/∂u of Σ metrics(F, J) + momentum·g)
//   p ← (1 + Q)⁻¹ g;  d ← step·p / max|p|
//   u' ← G_elastic (d + u(x + d));  guard;  u ← u' if it passes
//
// On coarse levels g and u' are rounded: full steps go round the best field and amplify any
// difference, 1e-15 to a tenth of a voxel, so a CPU and a GPU must go on from the same bits.
//
// Q is that of damped Gauss-Newton steps where the settings ask for them, else 0.
#include <cmath>

#include "similis/smooth.hpp"
#include "src/core/operation.h"
#include "src/registration/cpu/composed.h"
#include "src/registration/curvature/preconditioner.h"
#include "src/registration/deformable.h"
#include "src/registration/exponential.h"
#include "src/registration/moved_metric.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

class GreedyLevel : public SteppedLevel {
 public:
  GreedyLevel(const LevelImages& images, const Tensor& u, const RegisterOptions& options,
      const DeformableSettings& settings, const Execution& exec)
      : grid_(images.fixed.grid),
        options_(options),
        settings_(settings),
        exec_(exec),
        metric_(images.fixed, images.moving, images.labels.fixed, images.labels.moving,
            images.affine, options.metrics, exec),
        q_(level_preconditioner(images.fixed, settings, exec)),
        u_(u),
        next_(allocate(u.shape, u.dtype, u.device, exec)),
        g_(allocate(u.shape, u.dtype, u.device, exec)),
        d_(allocate(u.shape, u.dtype, u.device, exec)) {
    fill(u.device, u.shape.count(), 0, g_, exec);
  }

  double differentiate() override {
    const double value = metric_.differentiate(u_, d_, next_);
    add_scaled(grid_.device, d_.shape.count(), kMomentum, g_, d_, exec_);
    smooth_into(d_, {.output = g_},
        {.sigma = settings_.fluid, .field = true, .padding = SmoothPadding::zeros}, exec_);
    return -value;
  }

  bool advance(double step, DeformableResult& result) override {
    const std::int64_t count = g_.shape.count();
    if (!q_.empty()) {  // at full resolution, in f32
      scale(grid_.device, count, 1, g_, d_, exec_);
      precondition(GridRows(grid_), q_.elements<float>(), d_.elements<float>(), exec_);
    }
    const Tensor& along = q_.empty() ? g_ : d_;
    const double largest =
        without_last_digits(std::sqrt(largest_square(GridRows(grid_), along, exec_)));
    if (!(largest > 0) || !std::isfinite(largest)) return false;
    drop_last_digits(g_, largest, exec_);
    double factor = step / largest;  // the gradient is that of the metrics, which d makes larger
    for (int i = 0; i <= kHalvings; ++i, factor /= 2) {
      move(along, factor, i > 0);
      const Guarded guarded = guard(grid_, next_, options_.min_jacobian, exec_);
      result.add_repair(guarded.repaired, grid_.voxels());
      if (!guarded.passed) continue;
      std::swap(u_, next_);
      least_ = guarded.least;
      return true;
    }
    return false;
  }

  const Tensor& field() const override { return u_; }
  double least() const override { return least_; }

 private:
  // next = G_elastic (d + u(x + d)), d = factor·along; is_again: half of the d before.
  void move(const Tensor& along, double factor, bool is_again) {
    const Composition how{.factor = factor,
        .smoothing = settings_.elastic,
        .unit = u_.dtype == DType::f64 ? rounding_unit(1) : 0};
    if (can_compose_cpu(grid_, how)) return compose_cpu(grid_, along, u_, how, next_, exec_);
    const std::int64_t count = d_.shape.count();
    if (is_again) {
      scale(grid_.device, count, 0.5, d_, d_, exec_);
    } else {
      scale(grid_.device, count, factor, along, d_, exec_);
    }
    compose(grid_, d_, u_, next_, exec_);
    smooth_into(next_, {.output = next_}, {.sigma = settings_.elastic, .field = true}, exec_);
    drop_last_digits(next_, 1, exec_);
  }

  const Grid& grid_;
  const RegisterOptions& options_;
  const DeformableSettings& settings_;
  const Execution& exec_;
  MovedMetrics metric_;
  Tensor q_;  // of damped Gauss-Newton steps; empty: 0
  Tensor u_, next_, g_, d_;
  double least_ = 1;
};

// Null in a build without CUDA, where no image is on a GPU.
constinit decltype(&fused_greedy_level) const kFused = SIMILIS_IF_CUDA(fused_greedy_level);

}  // namespace

std::unique_ptr<DeformableLevel> greedy_level(const LevelImages& images, const Tensor& u,
    const RegisterOptions& options, const DeformableSettings& settings, const Execution& exec) {
  if (images.fixed.grid.device.kind == DeviceKind::cuda) {
    std::unique_ptr<DeformableLevel> fused = kFused(images, u, options, settings, exec);
    if (fused != nullptr) return fused;
  }
  return std::make_unique<GreedyLevel>(images, u, options, settings, exec);
}

}  // namespace similis::registration_internal
