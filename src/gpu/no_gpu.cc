// SPDX-License-Identifier: Apache-2.0
// GPUs in a build without GPU code: there are none, and nothing of them is ever asked for.
#ifndef SIMILIS_HAS_CUDA

#include "similis/error.hpp"
#include "src/gpu/device.h"

namespace similis::gpu {
namespace {

[[noreturn]] void refuse() { throw DeviceError("gpu: this build of similis has no GPU code"); }

}  // namespace

bool is_compiled() { return false; }
std::string describe() { return "this build has no GPU code"; }
int device_count() { return 0; }
void* allocate(std::size_t, Device, void*) { refuse(); }
void release(void*, Device, void*) {}
void copy_to_cpu(void*, const void*, std::size_t, Device, void*) { refuse(); }
void copy_from_cpu(void*, const void*, std::size_t, Device, void*) { refuse(); }

}  // namespace similis::gpu

#endif
