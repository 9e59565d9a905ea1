// SPDX-License-Identifier: Apache-2.0
#include "similis/execution.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "similis/error.hpp"
#include "similis/threads.hpp"
#include "src/core/backend.h"
#include "src/core/most_threads.h"
#include "src/core/parallel.h"
#include "tests/refusal.h"

namespace similis {
namespace {

void expect_each_index_once(const Execution& exec, std::int64_t count) {
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
  parallel_for(exec, count, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
  for (const std::atomic<int>& visit : visits) ASSERT_EQ(visit, 1);
}

TEST(ThreadPool, RunsEachIndexOnce) {
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 1000}) {
      for (int repeat = 0; repeat < 50; ++repeat) {
        expect_each_index_once({.runner = pool.runner()}, count);
      }
    }
  }
  expect_each_index_once({.runner = serial_runner()}, 10);
  expect_each_index_once({}, 1000);
}

TEST(ThreadPool, LoopsInsideLoopsAndCallersAtOnceFinish) {
  ThreadPool pool(3);
  const Execution exec{.runner = pool.runner()};
  std::atomic<int> visits = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      parallel_for(
          exec, 20, [&](std::int64_t) { parallel_for(exec, 20, [&](std::int64_t) { ++visits; }); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(visits, 4 * 20 * 20);
}

TEST(ThreadPool, AnExceptionReachesTheCaller) {
  ThreadPool pool(3);
  const Execution exec{.runner = pool.runner()};
  const auto fail = [](std::int64_t i) {
    if (i == 17) throw std::runtime_error("seventeen");
  };
  EXPECT_THROW(parallel_for(exec, 100, fail), std::runtime_error);
  expect_each_index_once(exec, 100);
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  EXPECT_THROW(ThreadPool(-1), InvalidArgument);
  EXPECT_THROW(ThreadPool(5000), InvalidArgument);
}

TEST(ThreadPool, TheDefaultPoolWorksInAForkedChild) {
  expect_each_index_once({}, 100);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> visits = 0;
    parallel_for({}, 100, [&](std::int64_t) { ++visits; });
    _exit(visits == 100 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The number of threads that took an index of a loop that none can finish alone.
int threads_of(const Execution& exec, int wanted) {
  std::atomic<int> arrived = 0;
  parallel_for(exec, wanted, [&](std::int64_t) {
    ++arrived;
    for (int i = 0; i < 2000 && arrived < wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  return arrived;
}

TEST(NumThreads, IsWhatWasSetAndWhatALoopUses) {
  for (const int threads : {3, 5, 2}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    EXPECT_EQ(threads_of({}, threads), threads);
    expect_each_index_once({}, 1000);
  }
  set_num_threads(0);
  EXPECT_GE(num_threads(), 1);
}

TEST(NumThreads, OfALimitedRunnerAreNoMore) {
  set_num_threads(4);
  for (const int limit : {1, 2, 3, 4, 9, 0}) {
    const Execution exec{.runner = limited_runner(limit)};
    std::atomic<int> at_work = 0, most = 0;
    parallel_for(exec, 64, [&](std::int64_t) {
      const int now = ++at_work;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --at_work;
    });
    EXPECT_LE(most, limit == 0 ? 4 : std::min(limit, 4));
    expect_each_index_once(exec, 1000);
  }
  EXPECT_EQ(threads_of({.runner = limited_runner(2)}, 2), 2);
  set_num_threads(0);
}

TEST(NumThreads, AreOneOnlyWhereThatIsCertain) {
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(most_threads({}), threads);
    EXPECT_EQ(most_threads({.runner = limited_runner(0)}), threads);
    EXPECT_EQ(most_threads({.runner = limited_runner(1)}), 1);
    EXPECT_EQ(most_threads({.runner = limited_runner(3)}), std::min(3, threads));
    EXPECT_EQ(most_threads({.runner = serial_runner()}), 1);
    ThreadPool pool(2);
    EXPECT_GE(most_threads({.runner = pool.runner()}), 2);
  }
  set_num_threads(0);
}

TEST(NumThreads, ThatAreNoneAreRefused) {
  test::expect_refusal([] { set_num_threads(-1); },
      "set_num_threads: threads is -1; it must be from 1 to 1024, or 0 for what the environment "
      "says");
  test::expect_refusal([] { set_num_threads(1025); },
      "set_num_threads: threads is 1025; it must be from 1 to 1024, or 0 for what the environment "
      "says");
  test::expect_refusal(
      [] { limited_runner(-1); }, "limited_runner: threads is -1; it must be 0 or more");
}

TEST(Allocate, UsesTheCallersAllocatorAndGivesBack) {
  struct Counts {
    std::size_t allocated = 0, released = 0;
  } counts;
  const Allocator allocator{.allocate =
                                [](void* context, std::size_t bytes, Device, void*) {
                                  static_cast<Counts*>(context)->allocated += bytes;
                                  return static_cast<void*>(new char[bytes]);
                                },
      .release =
          [](void* context, void* pointer, std::size_t bytes, Device, void*) {
            static_cast<Counts*>(context)->released += bytes;
            delete[] static_cast<char*>(pointer);
          },
      .context = &counts};
  {
    const Tensor tensor = allocate({3, 5}, DType::f64, {}, {.allocator = allocator});
    const Tensor copy = tensor;
    EXPECT_EQ(counts.allocated, 120u);
    EXPECT_EQ(counts.released, 0u);
  }
  EXPECT_EQ(counts.released, 120u);
}

TEST(Queue, ChoosesTheBackendUnlessTheArraysAreOnTheCpu) {
  int stream = 0;
  const Device gpu{DeviceKind::cuda, 1};
  EXPECT_EQ(device_of("op", {}, {}), Device{});
  EXPECT_EQ(device_of("op", gpu, {}), gpu);
  EXPECT_EQ(device_of("op", gpu, {.queue = Queue::cuda(&stream)}), gpu);
  EXPECT_EQ(device_of("op", {}, {.queue = Queue::cuda(&stream)}), Device{});
  const Execution vulkan{.queue = {DeviceKind::vulkan, nullptr}};
  EXPECT_EQ(device_of("op", {}, vulkan), (Device{DeviceKind::vulkan, 0}));
}

TEST(Queue, OfAnotherKindOfGpuIsRefused) {
  const Execution exec{.queue = {.kind = static_cast<DeviceKind>(200)}};
  test::expect_refusal(
      [&] {
        device_of("op", {DeviceKind::cuda, 1}, exec);
      },
      "op: the images are on cuda:1, and execution.queue is a queue of unknown; both must be of "
      "one kind");
}

TEST(Allocate, RefusesWhatCannotBe) {
  EXPECT_THROW(allocate({-1}, DType::f32), InvalidArgument);
  EXPECT_THROW(allocate({INT64_MAX, INT64_MAX}, DType::f32), InvalidArgument);
  EXPECT_THROW(allocate({2}, DType::f32, {DeviceKind::cuda, 999}), Error);  // no machine has it
}

}  // namespace
}  // namespace similis
