// SPDX-License-Identifier: Apache-2.0
// The one place that knows the vendor's API: its runtime's functions and types under one name each,
// errors with the driver's words, launches, and sums over a block. CUDA and HIP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "similis/error.hpp"
#include "similis/tensor.hpp"

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define SIMILIS_GPU(name) hip##name
#define SIMILIS_GRID_CONSTANT
#else
#include <cuda_runtime.h>
#define SIMILIS_GPU(name) cuda##name
#define SIMILIS_GRID_CONSTANT __grid_constant__  // a parameter that is read where it is passed
#endif

namespace similis::gpu {

using Status = SIMILIS_GPU(Error_t);
using Stream = SIMILIS_GPU(Stream_t);

/// Throws DeviceError with the driver's words unless the call succeeded.
inline void check(Status status, const char* what) {
  if (status == SIMILIS_GPU(Success)) return;
  (void)SIMILIS_GPU(GetLastError)();  // so that a later launch does not report it again
  throw DeviceError(std::string(what) + ": " + SIMILIS_GPU(GetErrorString)(status));
}

/// Makes a device current as long as it lives.
class Current {
 public:
  explicit Current(Device device) {
    check(SIMILIS_GPU(GetDevice)(&previous_), "gpu: the current device cannot be asked");
    if (previous_ != device.index) {
      check(SIMILIS_GPU(SetDevice)(device.index), "gpu: the device cannot be used");
      changed_ = true;
    }
  }
  ~Current() {
    if (changed_) (void)SIMILIS_GPU(SetDevice)(previous_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

/// What a launch asks of a device, asked of the driver once.
struct Limits {
  int compute_major = 0, multiprocessors = 0, shared_bytes_a_block = 0;
};
const Limits& limits(Device device);

/// Lets a kernel be launched with this much shared memory, which may be above what any kernel has.
template <class... Parameters>
void allow_shared_bytes(void (*kernel)(Parameters...), std::size_t bytes) {
  check(SIMILIS_GPU(FuncSetAttribute)(reinterpret_cast<const void*>(kernel),
            SIMILIS_GPU(FuncAttributeMaxDynamicSharedMemorySize), static_cast<int>(bytes)),
      "gpu: a kernel cannot have its shared memory");
}

/// Queues a kernel on the stream. The only place where a launch stands.
template <class... Parameters, class... Arguments>
void launch(const char* operation, void* stream, dim3 blocks, int threads, std::size_t shared_bytes,
    void (*kernel)(Parameters...), const Arguments&... arguments) {
  kernel<<<blocks, static_cast<unsigned>(threads), shared_bytes, static_cast<Stream>(stream)>>>(
      arguments...);
  check(SIMILIS_GPU(GetLastError)(), operation);
}

/// The sum of every thread's value, in an order that depends on nothing but `threads`, a power of
/// two; every thread of the block calls it, and thread 0 gets the sum.
template <int threads> __device__ double block_sum(double value) {
  __shared__ double values[threads];
  const unsigned t = threadIdx.x;
  values[t] = value;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) values[t] += values[t + half];
  }
  __syncthreads();
  return values[0];
}

/// The sum over 32 neighbouring threads by halves (0 and 16, 1 and 17, …, then 0 and 8, …), which
/// the first of them gets.
__device__ inline double subgroup_sum(double value) {
  for (unsigned distance = 16; distance > 0; distance /= 2) {
#if defined(__HIPCC__)
    value += __shfl_down(value, distance, 32);
#else
    value += __shfl_down_sync(0xffffffffu, value, distance);
#endif
  }
  return value;
}

/// Threads that run together on every device, in a block of no more: half a wavefront on some.
constexpr int kSubgroup = 32;

/// The value of a lane of the crew, and of the one `distance` below (one's own if there is none).
__device__ inline double value_of(double value, int lane) {
#if defined(__HIPCC__)
  return __shfl(value, lane, kSubgroup);
#else
  return __shfl_sync(0xffffffffu, value, lane);
#endif
}
__device__ inline double value_below(double value, int distance) {
#if defined(__HIPCC__)
  return __shfl_up(value, static_cast<unsigned>(distance), kSubgroup);
#else
  return __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(distance));
#endif
}

/// The lowest lane of the crew in which it is true; kSubgroup if in none.
__device__ inline int first_lane(bool is_true) {
#if defined(__HIPCC__)
  const auto lanes = static_cast<unsigned>(__ballot(is_true));
#else
  const unsigned lanes = __ballot_sync(0xffffffffu, is_true);
#endif
  return lanes == 0 ? kSubgroup : __ffs(static_cast<int>(lanes)) - 1;
}

/// What the threads of a warp wrote to shared memory is there for all of them.
__device__ inline void sync_warp() {
#if defined(__HIPCC__)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  __syncwarp();
#endif
}

#if !defined(__HIPCC__)
constexpr int kWarp = 32;

/// The sum over a warp, which its first thread gets.
__device__ inline double warp_sum(double value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(distance));
  }
  return value;
}

/// block_sum() by shuffles, for any number of whole warps; `values` holds one a warp.
template <int threads> __device__ double block_sum_warps(double value, double* values) {
  static_assert(threads % kWarp == 0);
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) values[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (int warp = 0; warp < threads / kWarp; ++warp) sum += values[warp];
  __syncthreads();
  return sum;
}
#endif

}  // namespace similis::gpu
