// SPDX-License-Identifier: Apache-2.0
// The deformable stages, coarse to fine: greedy (a displacement that grows step by step) and
// symmetric (a velocity that moves both images).
#pragma once

#include <memory>

#include "src/registration/guard.h"
#include "src/registration/linear/linear.h"

namespace similis::registration_internal {

/// The numbers of a deformable stage, with the library's where the caller left them open.
struct DeformableSettings {
  double fluid = 0, elastic = 0;
  bool follows_noise = false;  ///< noise in the images adds to fluid at full resolution
  double damping = 0;          ///< of Gauss-Newton steps of the greedy stage; 0: steps by gradients
  std::vector<int> levels, iterations;
};
DeformableSettings deformable_settings(const RegisterOptions& options, const Grid& grid);

struct DeformableResult {
  Tensor u;  ///< in voxels of the fixed grid, f32, dense
  RegisterStageReport report;
  std::int64_t repairs = 0;
  double repaired_share = 0;
  double min_jacobian = 1;
  DeformableSettings settings;

  /// Counts the voxels that a guard changed in an iteration or at the end of a level.
  void add_repair(std::int64_t repaired, std::int64_t voxels);
};

/// The share of the last smoothed gradient that is added to the next one before it is smoothed.
/// Without it steps go back and forth across the narrow valleys of the loss, such as an edge's, and
/// hardly along them. Earlier gradients are smoothed once more in each iteration, so that the sum
/// is stiffer than the last of them: where both images are flat it carries on what lies around.
constexpr double kMomentum = 0.95;

/// Images that a stage registers, as a level has them.
struct LevelPair {
  Image fixed;       ///< on the level's grid
  Image soft_fixed;  ///< smoothed as the moving image is, on its own grid; read by symmetric alone
  Image moving;      ///< smoothed as the level asks, on its own grid
};

/// The images and the map of a level.
struct LevelImages : LevelPair {
  LevelPair labels;  ///< their labels; without channels where no metric is dice
  const Map& affine;
};

/// The images that a stage registers; labels have no channels where no metric is dice.
struct StageImages {
  const Image &fixed, &moving, &fixed_labels, &moving_labels;
};

/// A level's iterations, as its stage asks for them.
struct LevelRun {
  RegisterStage stage;
  int shrink, iterations;
  const RegisterOptions& options;
  const Watch& watch;

  /// The longest step of an iteration, in voxels.
  double step(int iteration) const;
  /// Adds an iteration's loss to the report and tells the watch. False ends the level.
  bool goes_on(double loss, double least, RegisterLevel& report) const;
  /// By how much the loss must fall in an iteration. Steps of one length leave the loss on a
  /// plateau from which shorter ones go on, so a level does not end before they become shorter.
  double tolerance(int iteration) const;
  /// Returns true if the loss no longer falls.
  bool is_converged(const RegisterLevel& report) const;
};

/// One level of a stage. Its field, on the level's grid in voxels, is what passes between levels.
/// It has the type of the images: f32 at full resolution, else f64.
class DeformableLevel {
 public:
  virtual ~DeformableLevel() = default;
  /// Iterates until an end that the report says.
  virtual void run(const LevelRun& run, RegisterLevel& report, DeformableResult& result) = 0;
  virtual const Tensor& field() const = 0;
};

/// A level whose iterations are taken one by one.
class SteppedLevel : public DeformableLevel {
 public:
  void run(const LevelRun& run, RegisterLevel& report, DeformableResult& result) override;

 protected:
  /// Finds the smoothed derivative of the loss by the field; returns the loss.
  virtual double differentiate() = 0;
  /// Moves the field by at most `step` voxels along it. False where no step is valid.
  virtual bool advance(double step, DeformableResult& result) = 0;
  virtual double least() const = 0;  ///< determinant of the displacement
};

/// The number of times that a step is halved if no repair makes it valid.
constexpr int kHalvings = 4;

/// Rounds a field of f64 to multiples of rounding_unit(largest). A field of f32 stays.
void drop_last_digits(const Tensor& field, double largest, const Execution& exec);

std::unique_ptr<DeformableLevel> greedy_level(const LevelImages& images, const Tensor& u,
    const RegisterOptions& options, const DeformableSettings& settings, const Execution& exec);
/// The greedy level by fused passes on a GPU; null where it takes other options or images.
std::unique_ptr<DeformableLevel> fused_greedy_level(const LevelImages& images, const Tensor& u,
    const RegisterOptions& options, const DeformableSettings& settings, const Execution& exec);
std::unique_ptr<DeformableLevel> symmetric_level(const LevelImages& images, const Tensor& v,
    const RegisterOptions& options, const DeformableSettings& settings, const Execution& exec);

/// stage: deformable or symmetric.
DeformableResult run_deformable(RegisterStage stage, const StageImages& images, const Map& affine,
    const RegisterOptions& options, const Watch& watch, const Execution& exec);

}  // namespace similis::registration_internal
