// SPDX-License-Identifier: Apache-2.0
// Benchmarks of operations on a pair of images: how they are named, what they run on, and what they
// count besides time.
#pragma once

#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis::bench {

/// One call of the operation; its results are dropped.
using Operation = void (*)(const TensorView& x, const TensorView& y, const Execution& exec);

/// Registers `name`/`shape`/`dtype`/threads:1 and the same with two threads, on noise. Reported are
/// wall time and, in bytes per pixel of one channel,
///   resident_B/elem:  what the process took from the system at its peak, inputs apart
///   allocated_B/elem: how much of that came from the Execution's allocator
/// Returns true, so that a namespace-scope variable can hold the registration.
bool add(const char* name, Operation operation, const Extents& shape, DType dtype);

}  // namespace similis::bench
