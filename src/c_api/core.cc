// SPDX-License-Identifier: Apache-2.0
// The part of the C interface that belongs to no operation.
#include "similis/c/core.h"

#include "similis/c/threads.h"
#include "similis/execution.hpp"
#include "similis/gradient.hpp"
#include "similis/threads.hpp"
#include "similis/version.h"
#include "src/c_api/call.h"
#include "src/core/require.h"

struct similis_thread_pool : similis::ThreadPool {
  using ThreadPool::ThreadPool;
};

namespace {

similis_runner c_runner(similis::ParallelRunner runner) { return {runner.run, runner.context}; }

}  // namespace

const char* similis_version() { return SIMILIS_VERSION; }

similis_status similis_scale(const similis_tensor* tensor, const similis_tensor* factor,
    const similis_execution* execution) {
  using namespace similis;
  return c_api::call([&] {
    const c_api::Arguments arguments("scale");
    const c_api::CallExecution exec(arguments, execution);
    scale(arguments.image("tensor", tensor), arguments.image("factor", factor), exec);
  });
}

similis_runner similis_serial_runner() { return c_runner(similis::serial_runner()); }

similis_status similis_get_num_threads(int32_t* threads) {
  return similis::c_api::call([&] {
    similis::require(
        threads != nullptr, "similis_get_num_threads: threads is NULL; it must point to a number");
    *threads = similis::num_threads();
  });
}

similis_status similis_set_num_threads(int32_t threads) {
  return similis::c_api::call([&] { similis::set_num_threads(threads); });
}

similis_runner similis_limited_runner(int32_t threads) {
  similis_runner runner = similis_serial_runner();
  similis::c_api::call([&] { runner = c_runner(similis::limited_runner(threads)); });
  return runner;
}

similis_status similis_thread_pool_create(int32_t threads, similis_thread_pool** pool) {
  return similis::c_api::call([&] {
    similis::require(
        pool != nullptr, "similis_thread_pool_create: pool is NULL; it must point to a pointer");
    *pool = nullptr;
    *pool = new similis_thread_pool(threads);
  });
}

void similis_thread_pool_destroy(similis_thread_pool* pool) { delete pool; }

similis_runner similis_thread_pool_runner(similis_thread_pool* pool) {
  return c_runner(pool->runner());
}
