// SPDX-License-Identifier: Apache-2.0
// A(p) = L(θ)·S·(p - c) + S(c) + t, with S the start, c the fixed image's centre of mass and
//   L = R = e^[ω]×                    rigid
//       e^σ·R                         similarity
//       R·e^S', S' symmetric          affine
// θ holds t, then ω, σ and S' times r = 70 mm for a head of 220 mm, so that a step moves all by
// about as much.
#include "src/registration/linear.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "similis/warp.hpp"
#include "src/core/operation.h"
#include "src/core/require.h"
#include "src/core/tensor/doubles.h"
#include "src/registration/information.h"
#include "src/registration/passes.h"
#include "src/registration/similarity.h"

namespace similis::registration_internal {
namespace {

constexpr double kHead = 220, kRadius = 70;  // mm
constexpr double kCoarse = 27, kFine = 55;   // voxels along the largest side
constexpr double kLeastOverlap = 0.25;       // of that of the start: less is no candidate
constexpr double kLeastOfStart = 0.05;       // overlap of one of the starts
constexpr double kSoftness = 0.5;            // σ of the smoothing before a level, in its voxels
constexpr double kElsewhere = 0.1;           // of the extent: maps that far apart are in two optima
constexpr double kClearlyMore = 0.01;        // share of the value that decides between candidates

using Parameters = std::vector<double>;

int rotations(int rank) { return rank == 3 ? 3 : 1; }

std::size_t count_of(RegisterStage stage, int rank) {
  const int symmetric = rank * (rank + 1) / 2;
  int count = rank;
  if (stage != RegisterStage::translation) count += rotations(rank);
  if (stage == RegisterStage::similarity) count += 1;
  if (stage == RegisterStage::affine) count += symmetric;
  return static_cast<std::size_t>(count);
}

// The map of parameters relative to a start.
struct Model {
  int rank;
  double radius;  // mm
  Map start;
  Point centre;

  Map map(RegisterStage stage, const Parameters& theta) const {
    Matrix turn = 0.0 * Matrix();
    std::size_t k = static_cast<std::size_t>(rank);
    Matrix linear;
    if (stage != RegisterStage::translation) {
      if (rank == 2) {
        turn(1, 0) = theta[k++] / radius;
        turn(0, 1) = -turn(1, 0);
      } else {
        const double x = theta[k] / radius, y = theta[k + 1] / radius, z = theta[k + 2] / radius;
        k += 3;
        turn.rows = {{{0, -z, y}, {z, 0, -x}, {-y, x, 0}}};
      }
      linear = exponential(turn);
    }
    if (stage == RegisterStage::similarity) {
      const double scale = std::exp(theta[k] / radius);
      for (int r = 0; r < rank; ++r) {
        for (int c = 0; c < rank; ++c) linear(r, c) *= scale;
      }
    }
    if (stage == RegisterStage::affine) {
      Matrix stretch = 0.0 * Matrix();
      for (int r = 0; r < rank; ++r) {
        for (int c = r; c < rank; ++c) stretch(r, c) = stretch(c, r) = theta[k++] / radius;
      }
      linear = linear * exponential(stretch);
    }
    const Matrix whole = linear * start.linear;
    Point shift = start(centre) - whole * centre;
    for (std::size_t a = 0; a < static_cast<std::size_t>(rank); ++a) shift[a] += theta[a];
    return {whole, shift};
  }

  // The parameters of the same map in a later stage.
  Parameters widened(RegisterStage from, RegisterStage to, const Parameters& theta) const {
    Parameters result = theta;
    const auto before = count_of(RegisterStage::rigid, rank);
    const double scale = from == RegisterStage::similarity ? theta[before] : 0;
    if (from == RegisterStage::similarity) result.resize(before);
    result.resize(count_of(to, rank), 0.0);
    if (from == RegisterStage::similarity && to == RegisterStage::similarity) result.back() = scale;
    if (from == RegisterStage::similarity && to == RegisterStage::affine) {
      std::size_t k = before;
      for (int r = 0; r < rank; ++r) {
        for (int c = r; c < rank; ++c) result[k++] = r == c ? scale : 0;
      }
    }
    return result;
  }
};

// Null in a build without CUDA, where no image is on a GPU.
constinit decltype(&fused_information_cuda) const kOnGpu = SIMILIS_IF_CUDA(fused_information_cuda);

// The metric of a map and its derivative by the numbers of LinearLevel::matrix().
struct Evaluation {
  double value = -std::numeric_limits<double>::infinity();
  double share = 0;  // of the voxels, that count
  std::vector<double> by_matrix;
};

// Both images on one of the coarse grids.
class LinearLevel {
 public:
  // maps: as many are evaluated at once.
  LinearLevel(const Image& fixed, const Image& moving, double millimetres,
      const std::vector<MetricTerm>& terms, std::size_t maps, const Execution& exec)
      : fixed_(
            shrunk(fixed, std::max(millimetres, fixed.grid.smallest_spacing()), kSoftness, exec)),
        moving_(
            shrunk(moving, std::max(millimetres, fixed.grid.smallest_spacing()), kSoftness, exec)),
        terms_(terms),
        exec_(exec),
        j_(fixed_.allocated(fixed_.channels(), exec)),
        slope_(fixed_.allocated(fixed_.channels(), exec)),
        weights_(fixed_.allocated(1, exec)),
        by_affine_(allocate(
            {1, fixed_.grid.rank, fixed_.grid.rank + 1}, DType::f64, fixed_.grid.device, exec)) {
    if (!moving_.mask.empty()) moving_mask_ = fixed_.allocated(1, exec);
    all_ = static_cast<double>(fixed_.count(exec));
    const MetricTerm& term = terms.front();
    if (term.metric == RegisterMetric::mi && term.sampling == 1) {
      const bool is_on_gpu = fixed_.grid.device.kind == DeviceKind::cuda;
      fused_ =
          (is_on_gpu ? kOnGpu : fused_information_cpu)(fixed_, moving_, term.num_bins, maps, exec);
    }
  }

  std::vector<Evaluation> evaluate(const std::vector<Map>& maps) {
    std::vector<Map> voxels;
    for (const Map& map : maps) {
      voxels.push_back(between_cells(fixed_.grid, map, moving_.grid));
    }
    std::vector<Evaluation> results;
    if (fused_ == nullptr) {
      for (const Map& each : voxels) results.push_back(evaluate(each));
      return results;
    }
    const double weight = terms_.front().weight;
    for (const FusedInformation::Result& found : fused_->evaluate(voxels, exec_)) {
      Evaluation& result = results.emplace_back();
      result.share = static_cast<double>(found.count) / all_;
      result.by_matrix.assign(12, 0.0);
      if (found.count == 0) continue;
      for (std::size_t i = 0; i < 12; ++i) {
        result.by_matrix[i] = weight * found.by_map[i / 4][i % 4];
      }
      result.value = weight * found.value;
    }
    return results;
  }

  // The matrix of a map: of voxels where passes are fused, else that of sample().
  std::vector<double> matrix(const Map& map) const {
    const Map voxels = between_voxels(fixed_.grid, map, moving_.grid);
    if (fused_ == nullptr) return coordinate_numbers(voxels, fixed_.grid, moving_.grid);
    std::vector<double> result;
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t c = 0; c < 3; ++c) result.push_back(voxels.linear.rows[a][c]);
      result.push_back(voxels.shift[a]);
    }
    return result;
  }

 private:
  // By the operations, one by one.
  Evaluation evaluate(const Map& voxels) {
    const GridRows rows(fixed_.grid);
    std::int64_t count =
        weigh_inside(rows, voxels, moving_.grid, nullptr, fixed_.mask, weights_, exec_);
    if (!moving_mask_.empty()) {
      sample_at(moving_.mask, moving_.grid, voxels, fixed_.grid, {}, false, moving_mask_, exec_);
      count = drop_below(rows, moving_mask_, kInsideMask, weights_, exec_);
    }
    Evaluation result{.share = static_cast<double>(count) / all_};
    result.by_matrix.assign(static_cast<std::size_t>(by_affine_.shape.count()), 0.0);
    if (count == 0) return result;
    sample_at(moving_.values, moving_.grid, voxels, fixed_.grid, {}, false, j_, exec_);
    const bool all_count = count == fixed_.grid.voxels();
    result.value = similarity(terms_, fixed_.grid, fixed_.values, j_,
        all_count ? TensorView() : TensorView(weights_), count, slope_, exec_);
    const Tensor matrix = coordinate_matrix(voxels, fixed_.grid, moving_.grid, exec_);
    SampleOptions options{.affine = matrix};
    const Extents& shape = fixed_.values.shape;
    options.out_shape = Extents(std::span<const std::int64_t>(
        shape.begin() + 2, static_cast<std::size_t>(fixed_.grid.rank)));
    sample_into(
        moving_.values, {.upstream = slope_, .affine_gradient = by_affine_}, options, exec_);
    result.by_matrix = to_doubles(on_cpu(by_affine_, exec_));
    for (double& number : result.by_matrix) number /= static_cast<double>(count);
    return result;
  }

  Image fixed_, moving_;
  const std::vector<MetricTerm>& terms_;
  const Execution& exec_;
  Tensor j_, slope_, weights_, by_affine_, moving_mask_;
  std::unique_ptr<FusedInformation> fused_;  // null where the operations are called one by one
  double all_ = 1;
};

struct Best {
  double value = -std::numeric_limits<double>::infinity();
  Parameters theta;
};

struct Run {
  RegisterStage stage;
  int iterations;
  double step;  // mm, for a head
};

// Adam from theta, with steps that fall to 0.
class Descent {
 public:
  Descent(const Model& model, const Run& run, double size, const Parameters& from)
      : model_(model),
        run_(run),
        size_(size),
        theta_(from),
        first_(from.size()),
        second_(from.size()),
        best_{.theta = from} {}

  Map map() const { return model_.map(run_.stage, theta_); }

  // A step from what the level found for map().
  void step(const LinearLevel& level, const Evaluation& found) {
    std::vector<double> by_matrix = found.by_matrix;
    if (iteration_ == 0) {
      least_share_ = kLeastOverlap * found.share;
      unit_ = rounding_unit(by_matrix);
    }
    for (double& number : by_matrix) number = std::rint(number / unit_) * unit_;
    if (found.share >= least_share_ && found.value > best_.value) best_ = {found.value, theta_};
    const double rate =
        run_.step * size_ *
        (0.5 + 0.5 * std::cos(M_PI * iteration_ / static_cast<double>(run_.iterations)));
    const Parameters slope = by_parameters(level, by_matrix);
    ++iteration_;
    for (std::size_t k = 0; k < theta_.size(); ++k) {
      first_[k] = kFirst * first_[k] + (1 - kFirst) * slope[k];
      second_[k] = kSecond * second_[k] + (1 - kSecond) * slope[k] * slope[k];
      const double mean = first_[k] / (1 - std::pow(kFirst, iteration_));
      const double square = second_[k] / (1 - std::pow(kSecond, iteration_));
      theta_[k] += rate * mean / (std::sqrt(square) + 1e-12);
    }
  }

  // The parameters that it ends at, by what the level found there, or the best ones met where these
  // are clearly better: a little better are places where the grids lie so that interpolation blurs
  // less, and rounding decides which of them are met.
  void end(const Evaluation& found) {
    const bool overlaps = found.share >= least_share_;
    if (overlaps && found.value > best_.value - kClear * std::abs(best_.value)) {
      best_ = {found.value, theta_};
    }
  }
  const Best& best() const { return best_; }

 private:
  static constexpr double kFirst = 0.9, kSecond = 0.98;
  static constexpr double kClear = 0.001;  // share of the value

  // Derivatives of a run are rounded to its multiples, so that devices that differ in the last
  // digits of their sums take the same steps: 65 steps amplify a difference by 1e6, and where it
  // moves a voxel out of the moving grid by 1e6 more.
  static double rounding_unit(const std::vector<double>& first) {
    constexpr int kBits = 20;
    double largest = std::numeric_limits<double>::min();
    for (const double number : first) largest = std::max(largest, std::abs(number));
    return std::ldexp(1, std::ilogb(largest) - kBits);
  }

  // The chain rule; the matrix' derivatives by differences, which are exact to 1e-9.
  Parameters by_parameters(const LinearLevel& level, const std::vector<double>& by_matrix) const {
    constexpr double kStep = 1e-4;
    Parameters result(theta_.size());
    for (std::size_t k = 0; k < theta_.size(); ++k) {
      Parameters above = theta_, below = theta_;
      above[k] += kStep;
      below[k] -= kStep;
      const std::vector<double> high = level.matrix(model_.map(run_.stage, above)),
                                low = level.matrix(model_.map(run_.stage, below));
      for (std::size_t i = 0; i < high.size(); ++i) {
        result[k] += by_matrix[i] * (high[i] - low[i]) / (2 * kStep);
      }
    }
    return result;
  }

  Model model_;
  Run run_;
  double size_;
  Parameters theta_, first_, second_;
  Best best_;
  int iteration_ = 0;
  double least_share_ = 0, unit_ = 0;
};

struct Start {
  Map map;
  Point turn = {0, 0, 0};  // radians
};

std::vector<Start> starts_of(const Image& fixed, const Image& moving,
    const RegisterOptions& options, bool may_turn, const Execution& exec) {
  const auto moved = [](const Point& from, const Point& to) { return Map{{}, to - from}; };
  switch (options.start) {
    case RegisterStart::identity: return {{Map()}};
    case RegisterStart::given: return {{map_of(options.initial)}};
    case RegisterStart::centers: return {{moved(fixed.grid.centre(), moving.grid.centre())}};
    default: break;
  }
  const Map by_mass = moved(centre_of_mass(fixed, exec), centre_of_mass(moving, exec));
  if (options.start == RegisterStart::moments) return {{by_mass}};
  std::vector<Start> starts = {{Map()}, {by_mass}};
  if (!may_turn) return starts;
  constexpr double kDegree = M_PI / 180;
  if (fixed.grid.rank == 2) {
    // All around, as pictures and slices may lie in any way; their coarse grids are small.
    for (int i = 1; i < 16; ++i) starts.push_back({by_mass, {i * 22.5 * kDegree, 0, 0}});
    return starts;
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (const double angle : {-30.0, 30.0}) {
      Start start{by_mass};
      start.turn[axis] = angle * kDegree;
      starts.push_back(start);
    }
  }
  return starts;
}

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
