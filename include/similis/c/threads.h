/* SPDX-License-Identifier: Apache-2.0
 * The number of threads of the pool that calls use which bring no runner of their own; see
 * threads.hpp. */
#ifndef SIMILIS_C_THREADS_H
#define SIMILIS_C_THREADS_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Number of threads that a call on the CPU uses at most, the caller's included. */
SIMILIS_API similis_status similis_get_num_threads(int32_t* threads);

/** Sets that number, from 1 to 1024, for calls that begin from now on; 0: what SIMILIS_NUM_THREADS
 * or OMP_NUM_THREADS says, or one per core. */
SIMILIS_API similis_status similis_set_num_threads(int32_t threads);

/** The library's pool with at most so many threads in a loop; 0: with all. Everything on the
 * calling thread if threads is negative or the environment has no meaning. */
SIMILIS_API similis_runner similis_limited_runner(int32_t threads);

#ifdef __cplusplus
}
#endif

#endif
