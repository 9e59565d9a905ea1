// SPDX-License-Identifier: Apache-2.0
// A loop over independent pieces of work on the caller's threads.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

#include "similis/execution.hpp"

namespace similis {

/// The library's own pool, with as many threads as num_threads() says when a loop begins.
ParallelRunner default_runner();

/// The number of threads that pool has or will have. Throws InvalidArgument if SIMILIS_NUM_THREADS
/// is not a number from 1 to 1024.
int default_threads();

/// body(index) for every index in [0, count), on exec's runner. The first exception that a body
/// throws is thrown again here once all have returned.
template <class Body>
void parallel_for(const Execution& exec, std::int64_t count, const Body& body) {
  struct Shared {
    const Body& body;
    std::mutex mutex;
    std::exception_ptr error;
  } shared{body, {}, {}};
  const ParallelRunner runner = exec.runner.run ? exec.runner : default_runner();
  const ParallelRunner::Task task = [](void* context, std::int64_t index) {
    Shared& state = *static_cast<Shared*>(context);
    try {
      state.body(index);
    } catch (...) {
      const std::lock_guard lock(state.mutex);
      if (!state.error) state.error = std::current_exception();
    }
  };
  runner.run(runner.context, task, &shared, count);
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace similis
