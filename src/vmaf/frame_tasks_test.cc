// SPDX-License-Identifier: Apache-2.0
#include "src/vmaf/frame_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "similis/threads.hpp"
#include "src/vmaf/clip.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/test_clips.h"
#include "src/vmaf/test_features.h"

namespace similis::vmaf_internal {
namespace {

// Every third task takes its time, so that those behind it overtake it unless they wait.
void work_on(std::int64_t task) {
  if (task % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// Three steps: a table, sums of three neighbours in it, and of all sums the total.
std::int64_t total_by_tasks(const Execution& exec) {
  static constexpr std::int64_t count = 24;
  std::vector<std::int64_t> table(count), sums(count);
  std::int64_t total = 0;
  FrameTasks tasks;
  tasks.add(count, [&](std::int64_t i) {
    work_on(i);
    table[static_cast<std::size_t>(i)] = i + 1;
  });
  const auto around = [](std::int64_t i) {
    return TaskRange{std::max<std::int64_t>(0, i - 1), std::min(count, i + 2)};
  };
  tasks.add(
      count,
      [&](std::int64_t i) {
        work_on(i);
        for (std::int64_t k = around(i).first; k < around(i).last; ++k) {
          sums[static_cast<std::size_t>(i)] += table[static_cast<std::size_t>(k)];
        }
      },
      around);
  tasks.add(1, [&](std::int64_t) {
    for (const std::int64_t sum : sums) total += sum;
  });
  tasks.run(exec);
  return total;
}

TEST(FrameTasks, WaitForWhatTheyNeed) {
  const std::int64_t expected = total_by_tasks({.runner = serial_runner()});
  EXPECT_EQ(expected, 3 * 24 * 25 / 2 - 1 - 24);
  for (const int threads : {2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(total_by_tasks({.runner = pool.runner()}), expected) << threads;
  }
}

TEST(FrameTasks, KeepTheirOrderOnARunnerThatGoesBackwards) {
  const ParallelRunner backwards{
      .run = [](void*, ParallelRunner::Task task, void* context, std::int64_t count) {
        for (std::int64_t index = count; index-- > 0;) task(context, index);
      }};
  EXPECT_EQ(total_by_tasks({.runner = backwards}), 3 * 24 * 25 / 2 - 1 - 24);
}

TEST(FrameTasks, ThrowWhatOneThrowsAndLeaveNobodyWaiting) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    FrameTasks tasks;
    tasks.add(4, [](std::int64_t i) {
      if (i == 2) throw std::runtime_error("task 2");
    });
    tasks.add(4, [](std::int64_t) {});
    EXPECT_THROW(tasks.run({.runner = pool.runner()}), std::runtime_error);
    tasks.run({.runner = pool.runner()});  // nothing is left
  }
}

TEST(FrameTasks, StripesHoldRows) {
  const auto stripes = [](std::int64_t first, std::int64_t last) {
    const TaskRange range = stripes_with_rows(first, last, 100, 16);
    return std::array{range.first, range.last};
  };
  EXPECT_EQ(stripes(-5, 16), (std::array<std::int64_t, 2>{0, 1}));
  EXPECT_EQ(stripes(16, 33), (std::array<std::int64_t, 2>{1, 3}));
  EXPECT_EQ(stripes(90, 120), (std::array<std::int64_t, 2>{5, 7}));
}

// Many short stripes on more threads than a scale has neighbours.
TEST(FrameTasks, TallFramesHaveTheSameBitsOnSevenThreads) {
  ThreadPool pool(7);
  for (const int bit_depth : {8, 10}) {
    const TestPair pair(Scene::textured, 67, 2300, bit_depth);
    const Plane &reference = pair.planes().reference, &distorted = pair.planes().distorted;
    const std::vector<double> limits = {100, 1};
    const std::vector<AdmSetting> settings(1);
    Workspace workspace;
    const auto vif = [&](const Execution& exec) {
      return vif_by_tasks(reference, {&distorted, 1}, limits, false, workspace, exec);
    };
    const auto adm = [&](const Execution& exec) {
      return adm_by_tasks(reference, {&distorted, 1}, settings, false, workspace, exec);
    };
    const Execution alone{.runner = serial_runner()}, together{.runner = pool.runner()};
    const auto vif_alone = vif(alone);
    const auto adm_alone = adm(alone);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(vif(together) == vif_alone);
      EXPECT_TRUE(adm(together) == adm_alone);
    }
  }
}

// While this lives, glibc overwrites memory that is freed.
struct FreedMemoryIsOverwritten {
#ifdef __GLIBC__
  FreedMemoryIsOverwritten() { mallopt(M_PERTURB, 0xa5); }
  ~FreedMemoryIsOverwritten() { mallopt(M_PERTURB, 0); }
#endif
};

// The workspace is the oldest kept frame's memory, which grows with the first frame that is shown.
// If that loses the frame too early, motion reads what is left of it.
TEST(FrameTasks, AFrameIsKeptWhileItsMemoryGrows) {
  const FreedMemoryIsOverwritten overwritten;
  const TestPair first(Scene::textured, 151, 97, 8), second(Scene::checked, 151, 97, 8);
  const Plane &a = first.planes().reference, &b = second.planes().reference;
  const std::vector<FeatureRequest> requests = {FeatureRequest(FeatureKind::motion),
      FeatureRequest(FeatureKind::vif), FeatureRequest(FeatureKind::adm)};
  const std::int64_t there = reference_motion_sad(a, b), back = reference_motion_sad(b, a);
  ThreadPool pool(2);
  for (const ParallelRunner& runner : {serial_runner(), pool.runner()}) {
    ClipMeter meter{ClipPlan(requests)};
    const Execution exec{.runner = runner};
    EXPECT_EQ(meter.measure(a, {}, exec).motion[0], 0);
    const FrameSums sums = meter.measure(b, {&second.planes().distorted, 1}, exec);
    EXPECT_EQ(sums.motion[0], there);
    EXPECT_EQ(meter.measure(a, {&first.planes().distorted, 1}, exec).motion[0], back);
  }
}

}  // namespace
}  // namespace similis::vmaf_internal
