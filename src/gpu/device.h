// SPDX-License-Identifier: Apache-2.0
// What the library asks of GPUs outside kernels. Implemented in src/gpu/device.cu, and in
// src/gpu/no_gpu.cc for a build without GPU code.
#pragma once

#include <cstddef>
#include <string>

#include "similis/tensor.hpp"

namespace similis::gpu {

/// Whether this build holds GPU code.
bool is_compiled();

/// The GPUs that can be used, in words, or why there are none.
std::string describe();

/// How many GPUs can be used: 0 without a driver.
int device_count();

/// Memory that is ready for work queued on the stream from now on; null when there is none left.
void* allocate(std::size_t bytes, Device device, void* stream);
/// Gives it back once the work queued on the stream so far is done.
void release(void* pointer, Device device, void* stream);

/// Copies between the CPU and a GPU, after all work that was queued on the stream, and waits.
void copy_to_cpu(void* to, const void* from, std::size_t bytes, Device device, void* stream);
void copy_from_cpu(void* to, const void* from, std::size_t bytes, Device device, void* stream);

}  // namespace similis::gpu
