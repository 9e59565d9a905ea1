// SPDX-License-Identifier: Apache-2.0
// The built-in pool: threads that sleep until a loop is posted, then take indices from one counter.
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "similis/execution.hpp"
#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis {
namespace {

thread_local bool inside_a_task = false;

void run_serially(void*, ParallelRunner::Task task, void* task_context, std::int64_t count) {
  for (std::int64_t index = 0; index < count; ++index) task(task_context, index);
}

int core_count() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

}  // namespace

ParallelRunner serial_runner() { return {.run = run_serially}; }

struct ThreadPool::State {
  std::mutex one_loop;  // held by the caller whose loop runs

  std::mutex mutex;
  std::condition_variable posted, finished;
  ParallelRunner::Task task = nullptr;
  void* task_context = nullptr;
  std::int64_t count = 0;
  std::atomic<std::int64_t> next{0};
  std::int64_t loop = 0;  // number of loops posted so far
  int working = 0;        // threads that have not finished the current loop
  bool stopping = false;

  std::vector<std::thread> threads;

  void take_indices() {
    inside_a_task = true;
    for (std::int64_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) {
      task(task_context, index);
    }
    inside_a_task = false;
  }

  void work() {
    std::unique_lock lock(mutex);
    for (std::int64_t done = 0;; done = loop) {
      posted.wait(lock, [&] { return stopping || loop != done; });
      if (stopping) return;
      lock.unlock();
      take_indices();
      lock.lock();
      if (--working == 0) finished.notify_one();
    }
  }

  void run(ParallelRunner::Task new_task, void* context, std::int64_t new_count) {
    const std::unique_lock owner(one_loop, std::try_to_lock);
    // A second caller does its own work rather than wait for the first one's.
    if (!owner || inside_a_task || threads.empty() || new_count < 2) {
      return run_serially(nullptr, new_task, context, new_count);
    }
    {
      const std::lock_guard lock(mutex);
      task = new_task;
      task_context = context;
      count = new_count;
      next = 0;
      working = static_cast<int>(threads.size());
      ++loop;
    }
    posted.notify_all();
    take_indices();
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return working == 0; });
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  require(threads >= 0 && threads <= 1024,
      "ThreadPool: threads is {}; it must be from 1 to 1024, or 0 for one per core", threads);
  const int total = threads == 0 ? core_count() : threads;
  for (int i = 1; i < total; ++i) state_->threads.emplace_back([this] { state_->work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->posted.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->threads.size()) + 1; }

ParallelRunner ThreadPool::runner() {
  return {.run =
              [](void* context, ParallelRunner::Task task, void* task_context, std::int64_t count) {
                static_cast<State*>(context)->run(task, task_context, count);
              },
      .context = state_.get()};
}

namespace {

std::mutex default_pool_mutex;
ThreadPool* default_pool = nullptr;  // never destroyed: it may be in use while the process exits

}  // namespace

int default_threads() {
  const char* text = std::getenv("SIMILIS_NUM_THREADS");
  if (text == nullptr) return core_count();
  char* end = nullptr;
  const long threads = std::strtol(text, &end, 10);
  require(*text != '\0' && *end == '\0' && threads >= 1 && threads <= 1024,
      "SIMILIS_NUM_THREADS is \"{}\"; it must be a number from 1 to 1024", text);
  return static_cast<int>(threads);
}

ParallelRunner default_runner() {
  const std::lock_guard lock(default_pool_mutex);
  if (default_pool == nullptr) {
    // A forked child has the pool's memory but none of its threads: it makes a pool of its own.
    static const int registered =
        pthread_atfork([] { default_pool_mutex.lock(); }, [] { default_pool_mutex.unlock(); },
            [] {
              default_pool = nullptr;
              default_pool_mutex.unlock();
            });
    static_cast<void>(registered);
    default_pool = new ThreadPool(default_threads());
  }
  return default_pool->runner();
}

}  // namespace similis
