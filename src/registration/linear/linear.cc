// SPDX-License-Identifier: Apache-2.0
#include "src/registration/linear/linear.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "src/core/require.h"
#include "src/registration/linear/descent.h"
#include "src/registration/linear/linear_level.h"
#include "src/registration/linear/model.h"
#include "src/registration/linear/starts.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

constexpr double kHead = 220, kRadius = 70;  // mm
constexpr double kCoarse = 27, kFine = 55;   // voxels along the largest side
constexpr double kLeastOfStart = 0.05;       // overlap of one of the starts
constexpr double kElsewhere = 0.1;           // of the extent: maps that far apart are in two optima
constexpr double kClearlyMore = 0.01;        // share of the value that decides between candidates

// The mean distance in mm between where two maps take the grid's corners.
double distance(const Grid& grid, const Map& one, const Map& other) {
  double sum = 0;
  for (std::size_t corner = 0; corner < 8; ++corner) {
    Point voxel{};
    for (std::size_t a = 0; a < 3; ++a) {
      voxel[a] = (corner >> a & 1) != 0 ? static_cast<double>(grid.size[a] - 1) : 0;
    }
    const Point p = grid.to_world(voxel), d = one(p) - other(p);
    sum += std::hypot(d[0], d[1], d[2]);
  }
  return sum / 8;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double overlap(const Image& fixed, const Image& moving, const Map& map, const Execution& exec) {
  const Map voxels = between_voxels(fixed.grid, map, moving.grid);
  const GridRows rows(fixed.grid);
  const Tensor weights = fixed.allocated(1, exec);
  const std::int64_t count = weigh_inside(
      rows, voxels, moving.grid, nullptr, fixed.mask_elements(), weights.elements<float>(), exec);
  return static_cast<double>(count) / static_cast<double>(fixed.count(exec));
}

LinearResult run_linear(const Image& fixed, const Image& moving,
    const std::vector<RegisterStage>& stages, const RegisterOptions& options, const Watch& watch,
    const Execution& exec) {
  const bool may_turn = !stages.empty() && stages.front() != RegisterStage::translation;
  std::vector<Start> starts = starts_of(fixed, moving, options, may_turn, exec);
  double most = 0;
  for (std::size_t i = 0; i < starts.size() && most < kLeastOfStart; ++i) {
    most = std::max(most, overlap(fixed, moving, starts[i].map, exec));
  }
  require(most >= kLeastOfStart,
      "register: the start lays {:.1f} % of the fixed voxels over the moving grid; it must be 5 % "
      "or more: choose another start",
      100 * most);
  LinearResult result;
  if (stages.empty()) {
    // Nothing compares the starts, so automatic is the first of them: the identity.
    result.map = starts.front().map;
    return result;
  }
  const auto begin = std::chrono::steady_clock::now();
  const double size = fixed.grid.extent() / kHead;
  const std::vector<MetricTerm> terms = {options.linear_metric};
  LinearLevel coarse(fixed, moving, fixed.grid.extent() / kCoarse, terms, starts.size(), exec);
  LinearLevel fine(fixed, moving, fixed.grid.extent() / kFine, terms, 1, exec);
  const RegisterStage first = may_turn ? RegisterStage::rigid : RegisterStage::translation;
  const Point centre = centre_of_mass(fixed, exec);

  struct Candidate {
    Model model;
    Best best;
    Map map(RegisterStage stage) const { return model.map(stage, best.theta); }
  };
  std::vector<Candidate> candidates;
  bool was_stopped = false;
  // All descend side by side, so that a GPU evaluates them in one launch.
  const auto run = [&](std::span<Candidate> of, LinearLevel& level, const Run& by,
                       std::vector<double>* losses) {
    std::vector<Descent> descents;
    for (const Candidate& each : of) {
      descents.emplace_back(each.model, by, size, each.best.theta);
    }
    const auto evaluate = [&] {
      std::vector<Map> maps;
      for (const Descent& each : descents) maps.push_back(each.map());
      return level.evaluate(maps);
    };
    for (int i = 0; i < by.iterations && !was_stopped; ++i) {
      const std::vector<Evaluation> found = evaluate();
      for (std::size_t k = 0; k < descents.size() && !was_stopped; ++k) {
        descents[k].step(level, found[k]);
        if (losses != nullptr) losses->push_back(-found[k].value);
        was_stopped = watch && !watch({by.stage, 0, i, by.iterations, -found[k].value});
      }
    }
    if (!was_stopped) {
      const std::vector<Evaluation> found = evaluate();
      for (std::size_t k = 0; k < descents.size(); ++k) descents[k].end(found[k]);
    }
    for (std::size_t k = 0; k < descents.size(); ++k) of[k].best = descents[k].best();
  };
  const auto sort = [&] {
    std::stable_sort(candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.best.value > b.best.value; });
  };
  for (const Start& start : starts) {
    Candidate candidate{{fixed.grid.rank, kRadius * size, start.map, centre}, {}};
    candidate.best.theta.assign(count_of(first, fixed.grid.rank), 0.0);
    for (std::size_t a = 0; a < 3; ++a) {
      const std::size_t k = static_cast<std::size_t>(fixed.grid.rank) + a;
      if (may_turn && k < candidate.best.theta.size()) {
        candidate.best.theta[k] = start.turn[a] * candidate.model.radius;
      }
    }
    candidates.push_back(candidate);
  }
  if (starts.size() > 1) run(candidates, coarse, {first, 25, 4}, nullptr);
  sort();
  // The best two often lie in one optimum, so the best one elsewhere goes on too.
  const auto is_elsewhere = [&](const Candidate& candidate) {
    return distance(fixed.grid, candidate.map(first), candidates.front().map(first)) >
           kElsewhere * fixed.grid.extent();
  };
  const auto few = candidates.begin() + std::min<std::ptrdiff_t>(2, std::ssize(candidates));
  const auto other = std::find_if(few, candidates.end(), is_elsewhere);
  if (other != candidates.end()) std::iter_swap(few, other);
  candidates.erase(few + (other != candidates.end() ? 1 : 0), candidates.end());
  if (!was_stopped) run(candidates, coarse, {first, 40, 1.5}, nullptr);
  sort();
  // A turn of something round is seen on the finer grid alone.
  const Candidate* chosen = &candidates.front();
  const auto on_fine_grid = [&](const Candidate& candidate) {
    return fine.evaluate(std::vector<Map>{candidate.map(first)}).front().value;
  };
  double most_alike = candidates.size() > 1 && !was_stopped ? on_fine_grid(*chosen) : 0;
  for (std::size_t i = 1; i < candidates.size() && !was_stopped; ++i) {
    const double alike = on_fine_grid(candidates[i]);
    if (alike - most_alike <= kClearlyMore * std::abs(most_alike)) continue;
    chosen = &candidates[i];
    most_alike = alike;
  }
  Candidate winner = *chosen;
  RegisterStage at = first;
  for (const RegisterStage stage : stages) {
    RegisterStageReport report{.stage = stage};
    const auto stage_begin = stage == stages.front() ? begin : std::chrono::steady_clock::now();
    winner.best.theta = winner.model.widened(at, stage, winner.best.theta);
    at = stage;
    const bool is_rigid = stage == RegisterStage::rigid || stage == RegisterStage::translation;
    for (const bool is_fine : {false, true}) {
      if (was_stopped || (is_rigid && !is_fine)) continue;
      RegisterLevel level;
      run({&winner, 1}, is_fine ? fine : coarse, {stage, is_fine ? 60 : 80, is_fine ? 0.6 : 2.0},
          &level.loss);
      if (was_stopped) level.stopped = "callback";
      report.levels.push_back(level);
    }
    report.seconds = seconds_since(stage_begin);
    result.stages.push_back(report);
    if (was_stopped) break;
  }
  result.map = winner.model.map(at, winner.best.theta);
  result.was_stopped = was_stopped;
  return result;
}

}  // namespace similis::registration_internal
