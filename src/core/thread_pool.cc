// SPDX-License-Identifier: Apache-2.0
// The built-in pool: threads that sleep until a loop is posted, then take indices from one counter.
// A thread starts when a loop first wants as many.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "similis/execution.hpp"
#include "similis/threads.hpp"
#include "src/core/most_threads.h"
#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis {
namespace {

constexpr int kMostThreads = 1024;

thread_local bool inside_a_task = false;

void run_serially(void*, ParallelRunner::Task task, void* task_context, std::int64_t count) {
  for (std::int64_t index = 0; index < count; ++index) task(task_context, index);
}

int core_count() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

struct Pool {
  std::mutex one_loop;  // held by the caller whose loop runs

  std::mutex mutex;
  std::condition_variable posted, finished;
  ParallelRunner::Task task = nullptr;
  void* task_context = nullptr;
  std::int64_t count = 0;
  std::atomic<std::int64_t> next{0};
  int seats = 0;    // number of threads that the current loop still wants
  int working = 0;  // number of threads that it waits for: those wanted or at work
  bool stopping = false;

  int most = 1;  // number of threads that a loop may use, the caller included
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
    for (;;) {
      posted.wait(lock, [&] { return stopping || seats > 0; });
      if (stopping) return;
      --seats;
      lock.unlock();
      take_indices();
      lock.lock();
      if (--working == 0) finished.notify_one();
    }
  }

  // The number of threads beside the caller that there are, of so many that are wanted.
  int start_threads(int wanted) {
    try {
      while (static_cast<int>(threads.size()) < wanted) {
        threads.emplace_back([this] { work(); });
        pthread_setname_np(threads.back().native_handle(), "similis");  // for debuggers and top
      }
    } catch (const std::system_error&) {  // the system has no more: those that it gave do the work
    }
    return std::min(wanted, static_cast<int>(threads.size()));
  }

  // On `limit` threads at most, the caller included.
  void run(ParallelRunner::Task new_task, void* context, std::int64_t new_count, int limit) {
    const std::unique_lock owner(one_loop, std::try_to_lock);
    // A second caller does its own work rather than wait for the first one's.
    if (!owner || inside_a_task || limit < 2 || new_count < 2) {
      return run_serially(nullptr, new_task, context, new_count);
    }
    const int others = start_threads(limit - 1);
    {
      const std::lock_guard lock(mutex);
      task = new_task;
      task_context = context;
      count = new_count;
      next = 0;
      seats = working = others;
    }
    if (others == static_cast<int>(threads.size())) {
      posted.notify_all();
    } else {
      for (int i = 0; i < others; ++i) posted.notify_one();
    }
    take_indices();
    std::unique_lock lock(mutex);
    working -= seats;  // those that still sleep are not waited for
    seats = 0;
    finished.wait(lock, [&] { return working == 0; });
  }
};

}  // namespace

ParallelRunner serial_runner() { return {.run = run_serially}; }

struct ThreadPool::State : Pool {};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  require(threads >= 0 && threads <= kMostThreads,
      "ThreadPool: threads is {}; it must be from 1 to 1024, or 0 for one per core", threads);
  state_->most = threads == 0 ? core_count() : threads;
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->posted.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::threads() const { return state_->most; }

ParallelRunner ThreadPool::runner() {
  return {.run =
              [](void* context, ParallelRunner::Task task, void* task_context, std::int64_t count) {
                auto* const state = static_cast<State*>(context);
                state->run(task, task_context, count, state->most);
              },
      .context = state_.get()};
}

namespace {

std::mutex default_pool_mutex;
Pool* default_pool = nullptr;         // never destroyed: it may be in use while the process exits
std::atomic<int> chosen_threads = 0;  // by set_num_threads(), or found; 0: not known

Pool& the_default_pool() {
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
    default_pool = new Pool;
  }
  return *default_pool;
}

// The number in a text's first place; 0 if it has none. The rest begins at `rest`.
long leading_number(const char* text, const char*& rest) {
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  rest = end;
  return end == text ? 0 : number;
}

int threads_of_environment() {
  const char* rest = nullptr;
  if (const char* const text = std::getenv("SIMILIS_NUM_THREADS")) {
    const long threads = leading_number(text, rest);
    require(*rest == '\0' && threads >= 1 && threads <= kMostThreads,
        "SIMILIS_NUM_THREADS is \"{}\"; it must be a number from 1 to {}", text, kMostThreads);
    return static_cast<int>(threads);
  }
  if (const char* const text = std::getenv("OMP_NUM_THREADS")) {
    // A list, whose first number is that of the outermost loops. Other text is left to OpenMP.
    const long threads = leading_number(text, rest);
    if (threads >= 1) return static_cast<int>(std::min<long>(threads, kMostThreads));
  }
  return core_count();
}

}  // namespace

int default_threads() {
  if (const int threads = chosen_threads; threads != 0) return threads;
  const int threads = threads_of_environment();
  int unknown = 0;
  chosen_threads.compare_exchange_strong(unknown, threads);
  return threads;
}

int num_threads() { return default_threads(); }

void set_num_threads(int threads) {
  require(threads >= 0 && threads <= kMostThreads,
      "set_num_threads: threads is {}; it must be from 1 to {}, or 0 for what the environment says",
      threads, kMostThreads);
  chosen_threads = threads;
}

namespace {

int limit_in(void* context) {
  const auto limit = static_cast<int>(reinterpret_cast<std::intptr_t>(context));
  const int all = default_threads();
  return limit == 0 ? all : std::min(limit, all);
}

void run_limited(void* context, ParallelRunner::Task task, void* task_context, std::int64_t count) {
  the_default_pool().run(task, task_context, count, limit_in(context));
}

}  // namespace

ParallelRunner limited_runner(int threads) {
  require(threads >= 0, "limited_runner: threads is {}; it must be 0 or more", threads);
  default_threads();  // refuses an environment without a meaning here, where it can be thrown
  return {
      .run = run_limited, .context = reinterpret_cast<void*>(static_cast<std::intptr_t>(threads))};
}

int most_threads(const Execution& exec) {
  const ParallelRunner& runner = exec.runner;
  if (runner.run == nullptr) return default_threads();
  if (runner.run == run_limited) return limit_in(runner.context);
  return runner.run == run_serially ? 1 : std::max(2, default_threads());
}

ParallelRunner default_runner() { return limited_runner(0); }

}  // namespace similis
