// SPDX-License-Identifier: Apache-2.0
// The number of threads of the pool that calls use which bring no runner of their own.
#pragma once

#include "similis/api.h"
#include "similis/execution.hpp"

namespace similis {

/// Number of threads that a call on the CPU uses at most, the caller's included:
/// set_num_threads()'s, else that of SIMILIS_NUM_THREADS, else that of OMP_NUM_THREADS, else one
/// per core. Throws InvalidArgument if SIMILIS_NUM_THREADS is not a number from 1 to 1024.
SIMILIS_API int num_threads();

/// Sets that number, from 1 to 1024, for calls that begin from now on; 0: what the environment
/// says. Results have the same bits with any number. Throws InvalidArgument for another.
SIMILIS_API void set_num_threads(int threads);

/// The same pool with at most so many threads in a loop; 0: with all.
/// Throws InvalidArgument if threads is negative, or as num_threads() does.
SIMILIS_API ParallelRunner limited_runner(int threads);

}  // namespace similis
