// SPDX-License-Identifier: Apache-2.0
// The tasks of a frame on several threads, without a barrier behind each step.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "similis/execution.hpp"

namespace similis::vmaf_internal {

/// Tasks from first to last, without the last.
struct TaskRange {
  std::int64_t first, last;
};

/// Steps of tasks. Threads take tasks in the order in which they were added, and a task waits for
/// those before it whose results it reads: mostly they have ended long ago.
class FrameTasks {
 public:
  using Task = std::function<void(std::int64_t index)>;
  /// The tasks of the step before that a task waits for.
  using Needs = std::function<TaskRange(std::int64_t index)>;

  /// Adds a step whose tasks wait for all tasks of the steps before.
  void add(std::int64_t count, Task run) { add(count, std::move(run), nullptr); }
  /// Adds a step whose tasks wait for what they need of the step before, and for what that needed.
  void add(std::int64_t count, Task run, Needs needs);

  /// Runs all tasks and forgets them. Throws what a task throws, once the others have ended.
  void run(const Execution& exec);

 private:
  struct Step {
    std::int64_t first, count;  // the first task, counted from that of the first step
    Task run;
    Needs needs;  // none: all tasks before
  };
  std::vector<Step> steps_;
};

/// The stripes, of stripe_rows each, that hold rows from `first` to `last` of `height`; rows
/// outside are left out.
TaskRange stripes_with_rows(
    std::int64_t first, std::int64_t last, std::int64_t height, std::int64_t stripe_rows);

}  // namespace similis::vmaf_internal
