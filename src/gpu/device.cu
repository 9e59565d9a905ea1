// SPDX-License-Identifier: Apache-2.0
// Devices, memory from the stream's pool, and copies.
#include <sstream>

#include "src/core/gpu.h"
#include "src/gpu/vendor.h"

namespace similis::gpu {

bool is_compiled() { return true; }

int device_count() {
  int count = 0;
  if (SIMILIS_GPU(GetDeviceCount)(&count) != SIMILIS_GPU(Success)) {
    (void)SIMILIS_GPU(GetLastError)();
    return 0;
  }
  return count;
}

std::string describe() {
  int count = 0;
  const Status status = SIMILIS_GPU(GetDeviceCount)(&count);
  if (status != SIMILIS_GPU(Success)) {
    (void)SIMILIS_GPU(GetLastError)();
    return std::string("no GPU can be used: ") + SIMILIS_GPU(GetErrorString)(status);
  }
  if (count == 0) return "the driver names no GPU";
  std::ostringstream text;
  for (int index = 0; index < count; ++index) {
#if defined(__HIPCC__)
    hipDeviceProp_t properties;
#else
    cudaDeviceProp properties;
#endif
    check(SIMILIS_GPU(GetDeviceProperties)(&properties, index), "gpu: a device cannot be asked");
    text << (index == 0 ? "" : ", ") << "cuda:" << index << " is " << properties.name
         << " (compute capability " << properties.major << '.' << properties.minor << ", "
         << properties.multiProcessorCount << " multiprocessors, "
         << (properties.totalGlobalMem >> 20) << " MiB)";
  }
  return text.str();
}

void* allocate(std::size_t bytes, Device device, void* stream) {
  const Current current(device);
  void* pointer = nullptr;
  const Status status =
      SIMILIS_GPU(MallocAsync)(&pointer, bytes == 0 ? 1 : bytes, static_cast<Stream>(stream));
#if defined(__HIPCC__)
  if (status == hipErrorOutOfMemory) return nullptr;
#else
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
#endif
  check(status, "gpu: memory cannot be allocated");
  return pointer;
}

void release(void* pointer, Device device, void* stream) {
  const Current current(device);
  // The last owner may go while the process ends and the driver with it: nothing is left to do.
  (void)SIMILIS_GPU(FreeAsync)(pointer, static_cast<Stream>(stream));
}

void copy_to_cpu(void* to, const void* from, std::size_t bytes, Device device, void* stream) {
  const Current current(device);
  const auto queue = static_cast<Stream>(stream);
  check(SIMILIS_GPU(MemcpyAsync)(to, from, bytes, SIMILIS_GPU(MemcpyDeviceToHost), queue),
      "gpu: results cannot be copied to the CPU");
  check(SIMILIS_GPU(StreamSynchronize)(queue), "gpu: work on the stream failed");
}

void copy_from_cpu(void* to, const void* from, std::size_t bytes, Device device, void* stream) {
  const Current current(device);
  const auto queue = static_cast<Stream>(stream);
  check(SIMILIS_GPU(MemcpyAsync)(to, from, bytes, SIMILIS_GPU(MemcpyHostToDevice), queue),
      "gpu: data cannot be copied from the CPU");
  check(SIMILIS_GPU(StreamSynchronize)(queue), "gpu: work on the stream failed");
}

}  // namespace similis::gpu
