// SPDX-License-Identifier: Apache-2.0
// The one place that knows the vendor's API: it gives the runtime's functions and types one name
// each, turns errors into the driver's words, and launches kernels and adds up over a block, for
// CUDA and HIP.
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
#define SIMILIS_GRID_CONSTANT __grid_constant__  // the parameter is read where it is passed
#endif

#if defined(SIMILIS_GPU_ON_CPU)  // the C++ library writes the keyword within __attribute__
#define SIMILIS_NOINLINE __attribute__((noinline))
#else
#define SIMILIS_NOINLINE __noinline__
#endif

/// Declares the block's dynamic shared memory as an array of `type`.
#if defined(SIMILIS_GPU_ON_CPU)
#define SIMILIS_DYNAMIC_SHARED(type, name, alignment) \
  auto* const name = static_cast<type*>(similis::gpu_on_cpu::dynamic_shared())
#else
#define SIMILIS_DYNAMIC_SHARED(type, name, alignment) \
  extern __shared__ __align__(alignment)              \
  type name[]
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

/// Numbers that a launch needs to know of a device; the driver is asked once.
struct Limits {
  int compute_major = 0, multiprocessors = 0, shared_bytes_a_block = 0;
};
const Limits& limits(Device device);

/// Lets a kernel be launched with this much shared memory, which may exceed what kernels have by
/// default.
template <class... Parameters>
void allow_shared_bytes(void (*kernel)(Parameters...), std::size_t bytes) {
  check(SIMILIS_GPU(FuncSetAttribute)(reinterpret_cast<const void*>(kernel),
            SIMILIS_GPU(FuncAttributeMaxDynamicSharedMemorySize), static_cast<int>(bytes)),
      "gpu: a kernel cannot have its shared memory");
}

/// Number of blocks of a kernel that one multiprocessor runs at once.
template <class... Parameters>
int blocks_per_multiprocessor(
    void (*kernel)(Parameters...), int threads, std::size_t shared_bytes) {
  int blocks = 0;
  check(SIMILIS_GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(
            &blocks, reinterpret_cast<const void*>(kernel), threads, shared_bytes),
      "gpu: the blocks of a multiprocessor cannot be counted");
  return blocks;
}

/// Queues the clearing of memory to zero bytes.
inline void clear(const char* operation, void* stream, void* memory, std::size_t bytes) {
  check(SIMILIS_GPU(MemsetAsync)(memory, 0, bytes, static_cast<Stream>(stream)), operation);
}

/// Queues a kernel on the stream. All launches go through here.
template <class... Parameters, class... Arguments>
void launch(const char* operation, void* stream, dim3 blocks, int threads, std::size_t shared_bytes,
    void (*kernel)(Parameters...), const Arguments&... arguments) {
#if defined(SIMILIS_GPU_ON_CPU)
  gpu_on_cpu::launch(blocks, static_cast<unsigned>(threads), shared_bytes,
      static_cast<Stream>(stream), kernel, arguments...);
#else
  // It would part the brackets.
  // clang-format off
  kernel<<<blocks, static_cast<unsigned>(threads), shared_bytes, static_cast<Stream>(stream)>>>(
      arguments...);
  // clang-format on
#endif
  check(SIMILIS_GPU(GetLastError)(), operation);
}

/// Returns the sum of every thread's value, in an order that depends on nothing but `threads`, a
/// power of two; every thread of the block calls it, and thread 0 gets the sum.
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

/// Returns the sum over a subgroup to its first thread, by halves: 0 and 16, 1 and 17, …, then 0
/// and 8, ….
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

/// Size of a subgroup: threads that run together on every device, half a wavefront on some. A block
/// that uses the functions below has no more.
constexpr int kSubgroup = 32;

/// Return the value of another lane of the subgroup: of `lane`, or of the one `distance` below (the
/// own value if there is none).
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

/// Returns the lowest lane of the subgroup in which it is true; kSubgroup if it is true in none.
__device__ inline int first_lane(bool is_true) {
#if defined(__HIPCC__)
  const auto lanes = static_cast<unsigned>(__ballot(is_true));
#else
  const unsigned lanes = __ballot_sync(0xffffffffu, is_true);
#endif
  return lanes == 0 ? kSubgroup : __ffs(static_cast<int>(lanes)) - 1;
}

/// Makes what the threads of a warp wrote to shared memory visible to all of them.
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

/// Does the same as block_sum() by shuffles, for any number of whole warps; `values` holds one
/// number a warp.
template <int threads> __device__ double block_sum_warps(double value, double* values) {
  static_assert(threads % kWarp == 0);
  value = subgroup_sum(value);
  if (threadIdx.x % kWarp == 0) values[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (int warp = 0; warp < threads / kWarp; ++warp) sum += values[warp];
  __syncthreads();
  return sum;
}
#endif

}  // namespace similis::gpu
