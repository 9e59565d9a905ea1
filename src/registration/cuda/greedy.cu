// SPDX-License-Identifier: Apache-2.0
// A level of the greedy stage by fused kernels. The host queues kBatch iterations and then looks at
// their results. If the guard found a fold, later iterations of the batch did nothing, so
// that u, g and the new field are as they were left: the host repairs the field, or halves the
// step.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/vendor.h"
#include "src/gpu/device.h"
#include "src/registration/cuda/curvature.h"
#include "src/registration/cuda/fused.h"
#include "src/registration/curvature/preconditioner.h"
#include "src/registration/deformable.h"
#include "src/registration/guard.h"
#include "src/registration/passes.h"
#include "src/smooth/cuda.h"
#include "src/smooth/smooth.h"

namespace similis::registration_internal {
namespace {

using namespace cuda;

constexpr const char* kName = "register";

// Smoothings of the reach that the kernels are written for.
template <class T> bool can_smooth(const DeformableSettings& settings) {
  constexpr double kTruncate = 3;  // of smooth()
  constexpr int kMost =
      sizeof(T) == sizeof(float) ? smooth_internal::kMostRadius : kMostRadiusOfF64;
  return std::round(kTruncate * settings.fluid) <= kMost &&
         std::round(kTruncate * settings.elastic) <= 1;
}

template <class T> class FusedGreedyLevel : public DeformableLevel {
 public:
  FusedGreedyLevel(const LevelImages& images, const Tensor& u, const RegisterOptions& options,
      const DeformableSettings& settings, const Execution& exec)
      : grid_(images.fixed.grid),
        options_(options),
        exec_(exec),
        fluid_{.sigma = settings.fluid, .field = true, .padding = SmoothPadding::zeros},
        q_(level_preconditioner(images.fixed, settings, exec)),
        u_(u),
        scratch_(allocate(u.shape, u.dtype, grid_.device, exec)),
        g_(allocate(u.shape, u.dtype, grid_.device, exec)),
        j_(images.fixed.allocated(1, exec)),
        state_(allocate_bytes(sizeof(State), grid_.device, exec)) {
    level_ = fused_level<T>(
        images.fixed, images.moving, between_cells(grid_, images.affine, images.moving.grid));
    level_.j = elements(j_);
    level_.state = static_cast<State*>(state_.get());
    fill(grid_.device, g_.shape.count(), 0, g_, exec);
    if (!kIsF32) work_ = allocate(u.shape, u.dtype, grid_.device, exec);
    window_size_ = set_metrics(options.metrics, level_);
    level_.momentum = static_cast<T>(kMomentum);
    const auto taps_of = [&](const SmoothOptions& of) {
      return smooth_internal::smooth_pass(u, {.output = u}, of).taps[0];
    };
    const std::vector<double> taps = taps_of({.sigma = settings.elastic, .field = true});
    elastic_ = {taps[0], taps.size() > 1 ? taps[1] : 0};
    fluid_taps_ = taps_of(fluid_);
    const std::int64_t numbers = std::max(warp_numbers(level_), windows_numbers(level_));
    partials_ =
        allocate_bytes(static_cast<std::size_t>(numbers) * sizeof(double), grid_.device, exec);
    level_.partials = static_cast<double*>(partials_.get());
  }

  void run(const LevelRun& run, RegisterLevel& report, DeformableResult& result) override {
    const gpu::Current current(grid_.device);
    clear(0, sizeof(State));
    warp(kAnyDeterminant);  // of a field that the guard has passed
    int batch = kBatch;
    for (int done = 0; done < run.iterations;) {
      const int count = std::min(batch, run.iterations - done);
      batch = std::min(2 * batch, kBatch);
      const Tensor fields[3] = {u_, scratch_, g_};
      begin_batch();
      for (int i = 0; i < count; ++i) queue_iteration(i, done + i, run);
      State state;
      gpu::copy_to_cpu(&state, state_.get(), sizeof(state), grid_.device, exec_.queue.handle);
      int taken = 0;
      for (; taken < count; ++taken) {
        const Record& record = state.records[taken];
        const bool ran = state.limit == 0 || number_of(taken) <= state.limit || record.is_flat != 0;
        if (!ran) break;
        if (!run.goes_on(record.loss, least_, report)) {
          set_fields(fields, taken_of(state, taken, count));
          return;
        }
        if (record.is_flat != 0) {
          report.stopped = "guard";
          set_fields(fields, taken);
          return;
        }
        least_ = record.least;
        if (record.bad > 0) {
          set_fields(fields, taken + 1);
          if (!repaired(state, taken, run.step(done + taken), result)) {
            report.stopped = "guard";
            return;
          }
        }
        report.min_jacobian.push_back(least_);
        if (record.is_converged != 0) {
          report.stopped = "tolerance";
          if (record.bad == 0) set_fields(fields, taken + 1);
          return;
        }
        if (record.bad > 0) {  // the repair has warped the field
          ++taken;
          batch = kBatchAfterRepair;
          break;
        }
      }
      done += taken;
    }
  }

  const Tensor& field() const override { return u_; }

 private:
  // Repairs come one soon after another, and kernels behind one are queued for nothing.
  static constexpr int kBatchAfterRepair = 3;
  static constexpr bool kIsF32 = sizeof(T) == sizeof(float);
  static constexpr T kAnyDeterminant = -std::numeric_limits<T>::infinity();

  static T* elements(const Tensor& tensor) { return tensor.template elements<T>(); }

  // Number 1 is the warp before a batch.
  static int number_of(int in_batch) { return in_batch + 2; }

  // Returns the number of iterations of a batch that moved the field for good.
  static int taken_of(const State& state, int told, int count) {
    int taken = told;
    while (taken < count && (state.limit == 0 || number_of(taken) <= state.limit) &&
           state.records[taken].bad == 0) {
      ++taken;
    }
    return taken;
  }

  void clear(std::size_t first, std::size_t bytes) {
    gpu::clear(kName, exec_.queue.handle, static_cast<std::byte*>(state_.get()) + first, bytes);
  }
  void begin_batch() {
    clear(offsetof(State, limit), sizeof(State::limit));
    clear(offsetof(State, records), sizeof(State::records));
  }

  // After so many iterations the new field lies where slopes and scratch were.
  void set_fields(const Tensor (&fields)[3], int iterations) {
    u_ = fields[0];
    scratch_ = fields[1];
    g_ = fields[2];
    if (iterations % 2 != 0) std::swap(u_, scratch_);
  }

  // Warps by u_, outside a batch.
  void warp(T min_jacobian) {
    clear(offsetof(State, limit), sizeof(State::limit));
    clear(offsetof(State, records) + kBatch * sizeof(Record), sizeof(Record));
    Level<T> level = level_;
    level.min_jacobian = min_jacobian;
    launch_warp<T>(level, {.number = 1, .record = kBatch}, elements(u_), exec_);
  }
  // The same, and what it found.
  Record checked() {
    warp(static_cast<T>(options_.min_jacobian));
    Record record;
    const auto* const from = static_cast<const State*>(state_.get())->records + kBatch;
    gpu::copy_to_cpu(&record, from, sizeof(record), grid_.device, exec_.queue.handle);
    return record;
  }

  void queue_iteration(int in_batch, int iteration, const LevelRun& run) {
    const Iteration at{.number = number_of(in_batch), .record = in_batch};
    level_.min_jacobian = static_cast<T>(options_.min_jacobian);
    level_.tolerance = run.tolerance(iteration);
    T *const u = elements(u_), *const scratch = elements(scratch_), *const g = elements(g_);
    const smooth_internal::Gate gate{.limit = &level_.state->limit,
        .number = at.number,
        .largest = &level_.state->records[in_batch].largest};
    const smooth_internal::Gate without_largest{.limit = gate.limit, .number = gate.number};
    // Between iterations g is (1 + Q)⁻¹ times the gradient that momentum takes.
    if constexpr (kIsF32) {
      if (!q_.empty()) {
        launch_restoration(GridRows(grid_), elements(q_), g, without_largest, exec_);
      }
    }
    launch_windows(level_, at, window_size_, scratch, exec_);
    launch_slopes<T>(level_, at, window_size_, scratch, u, g, exec_);
    if constexpr (!kIsF32) {
      launch_smoothing(level_, at, fluid_taps_, g, elements(work_), scratch, exec_);
    } else if (q_.empty()) {
      smooth_internal::smooth_field(g_, scratch_, fluid_, gate, exec_);
    } else {
      smooth_internal::smooth_field(g_, scratch_, fluid_, without_largest, exec_);
      launch_precondition(GridRows(grid_), elements(q_), g, gate, exec_);
    }
    launch_compose<T>(level_, at, run.step(iteration), elastic_, g, u, scratch, exec_);
    launch_warp<T>(level_, at, scratch, exec_);
    std::swap(u_, scratch_);
  }

  // The bad voxels of a field.
  Box around(const Record& record) const {
    Box box;
    for (std::size_t a = 0; a < 3; ++a) {
      box.first[a] = grid_.size[a] - record.before[a];
      box.size[a] = record.behind[a] - box.first[a];
    }
    return box;
  }

  // The guard, on the field of an iteration that it did not pass, in u_; the one before is in
  // scratch_. False leaves that one. In the end J is that of u_.
  bool repaired(const State& state, int in_batch, double step, DeformableResult& result) {
    Record record = state.records[in_batch];
    for (int i = 0; i <= kHalvings; ++i) {
      if (i > 0) {
        // u_ ← the field before, moved by half of the step before.
        step /= 2;
        clear(offsetof(State, limit), sizeof(State::limit));
        launch_compose<T>(level_, {.number = 1, .record = in_batch}, step, elastic_, elements(g_),
            elements(scratch_), elements(u_), exec_);
        record = checked();
      }
      result.add_repair(static_cast<std::int64_t>(record.bad), grid_.voxels());
      // Determinants of a field that passes are found once more, with J. Rounding may hold one of
      // them below the bound then.
      for (int k = 0; k < 2 && record.bad > 0; ++k) {
        if (!repair(grid_, around(record), u_, options_.min_jacobian, exec_)) break;
        record = checked();
      }
      if (record.bad > 0) continue;
      least_ = record.least;
      return true;
    }
    std::swap(u_, scratch_);
    return false;
  }

  const Grid& grid_;
  const RegisterOptions& options_;
  const Execution& exec_;
  SmoothOptions fluid_;
  std::vector<double> fluid_taps_;
  Tensor q_;  // of damped Gauss-Newton steps, or empty; in f32
  Tensor u_, scratch_, g_, j_;
  Tensor work_;  // of the smoothing in f64
  std::shared_ptr<void> state_, partials_;
  Level<T> level_ = {};
  Elastic elastic_ = {};
  int window_size_ = 5;
  double least_ = 1;
};

}  // namespace

std::unique_ptr<DeformableLevel> fused_greedy_level(const LevelImages& images, const Tensor& u,
    const RegisterOptions& options, const DeformableSettings& settings, const Execution& exec) {
  if (!is_fusable(images.fixed)) return nullptr;
  return with_type(u, [&]<class T>(T) -> std::unique_ptr<DeformableLevel> {
    Level<T> level = {};
    const bool fits = can_smooth<T>(settings) && set_metrics(options.metrics, level) != 0;
    if (!fits) return nullptr;
    return std::make_unique<FusedGreedyLevel<T>>(images, u, options, settings, exec);
  });
}

}  // namespace similis::registration_internal
