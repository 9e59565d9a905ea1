// SPDX-License-Identifier: Apache-2.0
#include "similis/execution.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "similis/error.hpp"
#include "src/core/backend.h"
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
  EXPECT_EQ(backend_of("op", {}, {}), DeviceKind::cpu);
  EXPECT_EQ(backend_of("op", gpu, {}), DeviceKind::cuda);
  EXPECT_EQ(backend_of("op", gpu, {.queue = Queue::cuda(&stream)}), DeviceKind::cuda);
  EXPECT_EQ(backend_of("op", {}, {.queue = Queue::cuda(&stream)}), DeviceKind::cpu);
}

TEST(Queue, OfAnotherKindOfGpuIsRefused) {
  const Execution exec{.queue = {.kind = static_cast<DeviceKind>(200)}};
  test::expect_refusal(
      [&] {
        backend_of("op", {DeviceKind::cuda, 1}, exec);
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
