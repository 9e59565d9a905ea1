// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/frame_tasks.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <utility>

#include "src/core/parallel.h"

namespace similis::vmaf_internal {
namespace {

// The tasks that have ended. A thread that waits sleeps at once, until the last task that it waits
// for has ended: std::atomic's wait() yields first, which where other programs are at work gives
// them its time.
class EndedTasks {
 public:
  explicit EndedTasks(std::int64_t count) : has_ended_(static_cast<std::size_t>(count)) {}

  void wait_for(TaskRange tasks) {
    std::unique_lock lock(mutex_);
    if (have_ended(tasks)) return;
    Waiter waiter{tasks};
    waiters_.push_back(&waiter);
    waiter.woken.wait(lock, [&] { return waiter.is_done; });
  }

  void end(std::int64_t task) {
    const std::lock_guard lock(mutex_);
    has_ended_[static_cast<std::size_t>(task)] = 1;
    std::erase_if(waiters_, [&](Waiter* waiter) {
      if (!have_ended(waiter->tasks)) return false;
      waiter->is_done = true;
      waiter->woken.notify_one();
      return true;
    });
  }

 private:
  struct Waiter {
    TaskRange tasks;
    std::condition_variable woken;
    bool is_done = false;
  };
  bool have_ended(TaskRange tasks) const {
    return std::all_of(has_ended_.begin() + tasks.first, has_ended_.begin() + tasks.last,
        [](char has_ended) { return has_ended != 0; });
  }

  std::mutex mutex_;
  std::vector<char> has_ended_;
  std::vector<Waiter*> waiters_;
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
  EndedTasks ended(count);
  std::atomic<std::int64_t> next = 0;
  const auto run_task = [&](std::int64_t task) {
    const auto step = std::find_if(steps.begin(), steps.end(),
        [&](const Step& each) { return task < each.first + each.count; });
    TaskRange needed{0, step->first};
    if (step->needs) {
      needed = step->needs(task - step->first);
      const std::int64_t before = std::prev(step)->first;
      needed = {before + needed.first, before + needed.last};
    }
    ended.wait_for(needed);
    try {
      step->run(task - step->first);
    } catch (...) {
      ended.end(task);  // others wait for it
      throw;
    }
    ended.end(task);
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
