// SPDX-License-Identifier: Apache-2.0
// The symmetric stage: a stationary velocity v moves both images, φ = exp(v) and ψ = exp(-v) = φ⁻¹.
// Per iteration, on a level's grid, with M' the moving image at A(x):
//
//   a ← ∂/∂φ of metrics(F, M∘A∘φ);  b ← ∂/∂ψ of metrics(M', F∘ψ);  loss -½ of their sum
//   g ← G_fluid (a - b + momentum·g);  d ← step·g / max|g|;  v ← G_elastic (v + d)
//
// Both images are smoothed alike, so that swapping them swaps φ and ψ.
#include <cmath>

#include "similis/smooth.hpp"
#include "src/registration/deformable.h"
#include "src/registration/exponential.h"
#include "src/registration/moved_metric.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

// The image where the map lays it on the level's grid; an image without channels stays one.
Image laid_on(const Grid& grid, const Image& moving, const Map& affine, const Execution& exec) {
  if (moving.channels() == 0) return {};
  const Map voxels = between_voxels(grid, affine, moving.grid);
  Image result{.grid = grid,
      .values =
          allocate(grid.image_shape(moving.channels()), moving.values.dtype, grid.device, exec),
      .mask = allocate(grid.image_shape(1), moving.values.dtype, grid.device, exec)};
  sample_at(moving.values, moving.grid, voxels, grid, {}, false, result.values, exec);
  const GridRows rows(grid);
  std::int64_t count = weigh_inside(rows, voxels, moving.grid, nullptr, nullptr, result.mask, exec);
  if (!moving.mask.empty()) {
    const Tensor mask = result.allocated(1, exec);
    sample_at(moving.mask, moving.grid, voxels, grid, {}, false, mask, exec);
    count = drop_below(rows, mask, kInsideMask, result.mask, exec);
  }
  if (count == grid.voxels()) result.mask = Tensor();
  return result;
}

class SymmetricLevel : public SteppedLevel {
 public:
  SymmetricLevel(const LevelImages& images, const Tensor& v, const RegisterOptions& options,
      const DeformableSettings& settings, const Execution& exec)
      : grid_(images.fixed.grid),
        settings_(settings),
        exec_(exec),
        fixed_(laid_on(grid_, images.soft_fixed, {}, exec)),
        moving_(laid_on(grid_, images.moving, images.affine, exec)),
        fixed_labels_(laid_on(grid_, images.labels.soft_fixed, {}, exec)),
        moving_labels_(laid_on(grid_, images.labels.moving, images.affine, exec)),
        forward_(fixed_, images.moving, fixed_labels_, images.labels.moving, images.affine,
            options.metrics, exec),
        backward_(moving_, images.soft_fixed, moving_labels_, images.labels.soft_fixed, {},
            options.metrics, exec),
        v_(v),
        u_(allocate(v.shape, v.dtype, v.device, exec)),
        g_(allocate(v.shape, v.dtype, v.device, exec)),
        d_(allocate(v.shape, v.dtype, v.device, exec)),
        other_(allocate(v.shape, v.dtype, v.device, exec)) {
    fill(v.device, v.shape.count(), 0, g_, exec);
  }

  double differentiate() override {
    least_ = 1;
    const double by_moving = moved(forward_, 1, d_), by_fixed = moved(backward_, -1, other_);
    const auto add = [&](double factor, const Tensor& field) {
      add_scaled(grid_.device, d_.shape.count(), factor, field, d_, exec_);
    };
    add(-1, other_);
    add(kMomentum, g_);
    smooth_into(d_, {.output = g_},
        {.sigma = settings_.fluid, .field = true, .padding = SmoothPadding::zeros}, exec_);
    return -(by_moving + by_fixed) / 2;
  }

  bool advance(double step, DeformableResult&) override {
    const double largest =
        without_last_digits(std::sqrt(largest_square(GridRows(grid_), g_, exec_)));
    if (!(largest > 0) || !std::isfinite(largest)) return false;
    drop_last_digits(g_, largest, exec_);
    add_scaled(grid_.device, g_.shape.count(), step / largest, g_, v_, exec_);
    smooth_into(v_, {.output = v_}, {.sigma = settings_.elastic, .field = true}, exec_);
    drop_last_digits(v_, 1, exec_);
    return true;
  }

  double least() const override { return least_; }
  const Tensor& field() const override { return v_; }

 private:
  double moved(MovedMetrics& metric, int sign, const Tensor& gradient) {
    exponential(grid_, v_, sign, u_, exec_);
    const Determinants found =
        corner_determinants(GridRows(grid_), u_, {.size = grid_.size}, 0, nullptr, exec_);
    least_ = std::min(least_, found.least);
    return metric.differentiate(u_, gradient, u_);
  }

  const Grid& grid_;
  const DeformableSettings& settings_;
  const Execution& exec_;
  Image fixed_, moving_, fixed_labels_, moving_labels_;
  MovedMetrics forward_, backward_;
  Tensor v_, u_, g_, d_, other_;
  double least_ = 1;
};

}  // namespace

std::unique_ptr<DeformableLevel> symmetric_level(const LevelImages& images, const Tensor& v,
    const RegisterOptions& options, const DeformableSettings& settings, const Execution& exec) {
  return std::make_unique<SymmetricLevel>(images, v, options, settings, exec);
}

}  // namespace similis::registration_internal
