// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/frame_tasks.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "src/core/parallel.h"

namespace similis::vmaf_internal {
namespace {

// Says that a task has ended, also where it throws: others wait for it.
class Ending {
 public:
  explicit Ending(std::atomic<bool>& has_ended) : has_ended_(has_ended) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() {
    has_ended_.store(true);
    has_ended_.notify_all();
  }

 private:
  std::atomic<bool>& has_ended_;
};

}  // namespace

void FrameTasks::add(std::int64_t count, Task run, Needs needs) {
  const std::int64_t first = steps_.empty() ? 0 : steps_.back().first + steps_.back().count;
  steps_.push_back({first, count, std::move(run), std::move(needs)});
}

void FrameTasks::run(const Execution& exec) {
  const std::vector<Step> steps = std::exchange(steps_, {});
  if (steps.empty()) return;
  const std::int64_t count = steps.back().first + steps.back().count;
  std::vector<std::atomic<bool>> has_ended(static_cast<std::size_t>(count));
  std::atomic<std::int64_t> next = 0;
  const auto run_task = [&](std::int64_t task) {
    const Ending ending(has_ended[static_cast<std::size_t>(task)]);
    const auto step = std::find_if(steps.begin(), steps.end(),
        [&](const Step& each) { return task < each.first + each.count; });
    TaskRange needed{0, step->first};
    if (step->needs) {
      needed = step->needs(task - step->first);
      const std::int64_t before = std::prev(step)->first;
      needed = {before + needed.first, before + needed.last};
    }
    for (std::int64_t other = needed.first; other < needed.last; ++other) {
      has_ended[static_cast<std::size_t>(other)].wait(false);
    }
    step->run(task - step->first);
  };
  // Whatever order a runner has, tasks are taken in theirs, so those that one waits for are at
  // work.
  parallel_for(exec, count, [&](std::int64_t) {
    for (std::int64_t task = next++; task < count; task = next++) run_task(task);
  });
}

TaskRange stripes_with_rows(
    std::int64_t first, std::int64_t last, std::int64_t height, std::int64_t stripe_rows) {
  first = std::clamp<std::int64_t>(first, 0, height);
  last = std::clamp<std::int64_t>(last, first, height);
  return {first / stripe_rows, (last + stripe_rows - 1) / stripe_rows};
}

}  // namespace similis::vmaf_internal
