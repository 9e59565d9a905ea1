// SPDX-License-Identifier: Apache-2.0
// One pass over a pair of images that adds up a number of each pixel, without a window: its
// refusals, the order in which it walks its arrays, and its cut into tasks. A room's cpu.cc
// computes the numbers of a segment of neighbours; src/pixel_error shows the pattern.
//
// For each result the walk takes lines of pixels in the order in which x lies in memory. Channels-
// last and permuted images so become one long line when everything is added up, and any other
// strides are still right.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "similis/execution.hpp"
#include "similis/reduction.hpp"
#include "similis/tensor.hpp"
#include "src/core/images.h"
#include "src/core/operation.h"
#include "src/core/parallel.h"
#include "src/core/tensor/memory.h"

namespace similis {

/// With number(x, y) of a pixel, the pass computes
///   value[r] = Σ number(x, y) / divisor over the pixels of result r
/// and the gradients of Σ upstream·value.
struct PixelPass {
  const char* operation = "";  ///< the public function, for errors of the device
  TensorView x, y;
  Extents result_shape;  ///< [], [N] or [N,C]
  double divisor = 1;
  bool is_sum = false;  ///< the reduction is a sum, whose divisor is 1

  /// Weights of the pixels as a view of x's shape, by strides of 0; empty: each weighs 1. A room
  /// that takes them divides means by the sum of each result's weights, Σ weight·number / Σ weight.
  TensorView mask = {};
  /// On the CPU, what each result is divided by instead of `divisor`; null if that is the same.
  const double* divisors = nullptr;

  TensorView value = {};       ///< dense, f32 or f64; empty if not wanted
  TensorView upstream = {};    ///< shaped as value, a float, any strides; empty is 1
  TensorView x_gradient = {};  ///< shaped as x, any strides; empty if not wanted
  TensorView y_gradient = {};
};

/// The pass without its results. Refuses images that are not [N,C,…] and alike.
PixelPass pixel_pass(
    const char* operation, const TensorView& x, const TensorView& y, Reduction reduction);

/// The same of an operation whose options are ReductionOptions, after their check.
PixelPass pixel_pass(
    const OperationTable& operation, const TensorView& x, const TensorView& y, Reduction reduction);

/// Refuses results of the pass that do not fit it.
void require_results(const char* operation, const PixelPass& pass);

/// Gives the pass the results that a room's request asks for. Refuses those that do not fit it.
template <class Request>
void take_results(const char* operation, PixelPass& pass, const Request& request) {
  pass.value = request.value;
  pass.upstream = request.upstream;
  pass.x_gradient = request.x_gradient;
  pass.y_gradient = request.y_gradient;
  require_results(operation, pass);
  pass.upstream = as_upstream(request.upstream, pass.result_shape);
}

/// Writes result number `result` into an f32 or f64 tensor on the CPU, rounded once.
void store_result(const TensorView& value, std::int64_t result, double number);

/// The divisor of a result.
double divisor_of(const PixelPass& pass, std::int64_t result);

/// The factor of the gradients of one result's pixels: upstream / divisor, and 0 if that is 0.
double gradient_scale(const PixelPass& pass, std::int64_t result);

/// The offset of an element, or the distance of two, in x, y, the gradients and the mask.
struct Offsets {
  std::int64_t x = 0, y = 0, x_gradient = 0, y_gradient = 0, mask = 0;

  friend bool operator==(const Offsets&, const Offsets&) = default;
  Offsets operator*(std::int64_t count) const {
    return {x * count, y * count, x_gradient * count, y_gradient * count, mask * count};
  }
  Offsets operator+(const Offsets& other) const {
    return {x + other.x, y + other.y, x_gradient + other.x_gradient, y_gradient + other.y_gradient,
        mask + other.mask};
  }
};

class PixelWalk {
 public:
  /// One axis of all arrays.
  struct Axis {
    std::int64_t extent = 1;
    Offsets stride;
  };

  explicit PixelWalk(const PixelPass& pass);

  /// The kept axes, then those that are added up, outermost first; the last is the line.
  int rank() const { return rank_; }
  int kept_axes() const { return kept_axes_; }
  const Axis& axis(int index) const { return axes_[static_cast<std::size_t>(index)]; }

  std::int64_t results() const { return results_; }
  std::int64_t lines() const { return lines_; }  ///< lines of each result
  const Axis& line() const { return axis(rank_ - 1); }
  Offsets start_of_line(std::int64_t result, std::int64_t line) const;

 private:
  std::array<Axis, kMaxRank + 1> axes_;
  int rank_ = 0, kept_axes_ = 0;
  std::int64_t results_ = 1, lines_ = 1;
};

constexpr std::int64_t kSegment = 512;         // pixels: a task's buffers fit the first-level cache
constexpr std::int64_t kPixelsOfTask = 65536;  // enough to hide the cost of starting a task

/// Up to kSegment neighbours along a line.
struct PixelSegment {
  Offsets start, stride;
  std::int64_t count = 0;
};

/// A pass as independent tasks: each takes some segments of the lines of one result. The cut
/// depends on the arrays alone, and so do the bits of the result.
struct PixelWork {
  explicit PixelWork(const PixelPass& whole);

  std::int64_t tasks() const { return walk.results() * tasks_of_result; }
  std::int64_t result_of(std::int64_t task) const { return task / tasks_of_result; }

  /// The segments of a task: [first, second).
  std::pair<std::int64_t, std::int64_t> segments_of(std::int64_t task) const;
  PixelSegment segment(std::int64_t task, std::int64_t index) const;

  /// Adds up the tasks' results, in the tasks' order, into the pass's value.
  void write_value(const double* sums) const;

  const PixelPass& pass;
  PixelWalk walk;
  std::int64_t segments_of_line, segments_of_task, tasks_of_result;
};

/// Runs the pass: run_task(work, task) writes the gradients of a task's pixels and returns the sum
/// of their numbers.
template <class RunTask>
void run_pixel_pass(const PixelPass& pass, const Execution& exec, const RunTask& run_task) {
  const PixelWork work(pass);
  const std::shared_ptr<void> memory =
      allocate_bytes(static_cast<std::size_t>(work.tasks()) * sizeof(double), pass.x.device, exec);
  double* sums = static_cast<double*>(memory.get());
  parallel_for(exec, work.tasks(), [&](std::int64_t task) { sums[task] = run_task(work, task); });
  if (!pass.value.empty()) work.write_value(sums);
}

}  // namespace similis
