// SPDX-License-Identifier: Apache-2.0
// Devices, memory from the stream's pool, and copies.
#include <map>
#include <mutex>
#include <sstream>

#include "src/gpu/cuda/device_functions.h"
#include "src/gpu/cuda/driver_version.h"
#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {
namespace {

int count_devices() {
  int count = 0;
  if (SIMILIS_GPU(GetDeviceCount)(&count) != SIMILIS_GPU(Success)) {
    (void)SIMILIS_GPU(GetLastError)();
    return 0;
  }
  return count;
}

// Why the driver does not serve; empty if it does, or is not NVIDIA's.
std::string driver_reason() {
#if defined(__HIPCC__)
  return {};
#else
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    return {};
  return why_driver_is_unfit(driver, runtime);
#endif
}

std::string describe_device(int index) {
#if defined(__HIPCC__)
  hipDeviceProp_t properties;
#else
  cudaDeviceProp properties;
#endif
  check(SIMILIS_GPU(GetDeviceProperties)(&properties, index), "gpu: a device cannot be asked");
  std::ostringstream text;
  text << "cuda:" << index << " is " << properties.name << " (compute capability "
       << properties.major << '.' << properties.minor << ", " << properties.multiProcessorCount
       << " multiprocessors, " << (properties.totalGlobalMem >> 20) << " MiB)";
  return text.str();
}

std::string describe_devices() {
  int count = 0;
  const Status status = SIMILIS_GPU(GetDeviceCount)(&count);
  if (status != SIMILIS_GPU(Success)) {
    (void)SIMILIS_GPU(GetLastError)();
    const std::string reason = driver_reason();
    return "no GPU can be used: " + (reason.empty() ? SIMILIS_GPU(GetErrorString)(status) : reason);
  }
  if (count == 0) return "the driver names no GPU";
  std::string text = describe_device(0);
  for (int index = 1; index < count; ++index) text += ", " + describe_device(index);
  return text;
}

#if defined(__HIPCC__)
Status allocate_async(void** pointer, std::size_t bytes, Device, Stream stream) {
  return hipMallocAsync(pointer, bytes, stream);
}
#else
// Memory that the library keeps for its next call, of each device: the device's own pool gives all
// back whenever the host waits for the GPU, and asks the driver for it again.
cudaMemPool_t pool_of(Device device) {
  constexpr int kDevices = 64;
  constexpr std::uint64_t kKeptBytes = std::uint64_t{64} << 20;
  static std::mutex mutex;
  static cudaMemPool_t pools[kDevices] = {};
  const std::lock_guard lock(mutex);
  if (device.index >= kDevices) throw DeviceError("gpu: devices above cuda:63 are not used");
  cudaMemPool_t& pool = pools[device.index];
  if (pool == nullptr) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, device.index};
    check(cudaMemPoolCreate(&pool, &properties), "gpu: a memory pool cannot be made");
    std::uint64_t kept = kKeptBytes;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept),
        "gpu: a memory pool cannot be set up");
  }
  return pool;
}

Status allocate_async(void** pointer, std::size_t bytes, Device device, Stream stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool_of(device), stream);
}
#endif

}  // namespace

const Limits& limits(Device device) {
#if defined(__HIPCC__)
  constexpr auto kMajor = hipDeviceAttributeComputeCapabilityMajor;
  constexpr auto kMultiprocessors = hipDeviceAttributeMultiprocessorCount;
  constexpr auto kSharedBytes = hipDeviceAttributeMaxSharedMemoryPerBlock;
#else
  constexpr auto kMajor = cudaDevAttrComputeCapabilityMajor;
  constexpr auto kMultiprocessors = cudaDevAttrMultiProcessorCount;
  constexpr auto kSharedBytes = cudaDevAttrMaxSharedMemoryPerBlockOptin;
#endif
  static std::mutex mutex;
  static std::map<int, Limits> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(device.index); found != known.end()) return found->second;
  const auto ask = [&](auto attribute) {
    int answer = 0;
    check(SIMILIS_GPU(DeviceGetAttribute)(&answer, attribute, device.index),
        "gpu: a device cannot be asked");
    return answer;
  };
  const Limits asked{ask(kMajor), ask(kMultiprocessors), ask(kSharedBytes)};
  return known.emplace(device.index, asked).first->second;
}

namespace {

void* allocate(std::size_t bytes, Device device, void* stream) {
  const Current current(device);
  void* pointer = nullptr;
  const Status status =
      allocate_async(&pointer, bytes == 0 ? 1 : bytes, device, static_cast<Stream>(stream));
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

void copy_device_to_cpu(
    void* to, const void* from, std::size_t bytes, Device device, void* stream) {
  const Current current(device);
  const auto queue = static_cast<Stream>(stream);
  check(SIMILIS_GPU(MemcpyAsync)(to, from, bytes, SIMILIS_GPU(MemcpyDeviceToHost), queue),
      "gpu: results cannot be copied to the CPU");
  check(SIMILIS_GPU(StreamSynchronize)(queue), "gpu: work on the stream failed");
}

void copy_device_from_cpu(
    void* to, const void* from, std::size_t bytes, Device device, void* stream) {
  const Current current(device);
  const auto queue = static_cast<Stream>(stream);
  check(SIMILIS_GPU(MemcpyAsync)(to, from, bytes, SIMILIS_GPU(MemcpyHostToDevice), queue),
      "gpu: data cannot be copied from the CPU");
  check(SIMILIS_GPU(StreamSynchronize)(queue), "gpu: work on the stream failed");
}

}  // namespace

// Inside a function: clang compiles a table at namespace scope for the GPU too, where there is no
// such function.
const DeviceFunctions& cuda_functions() {
  static const DeviceFunctions functions = {.count = count_devices,
      .describe = describe_devices,
      .allocate = allocate,
      .release = release,
      .copy_to_cpu = copy_device_to_cpu,
      .copy_from_cpu = copy_device_from_cpu,
      .examine = describe_device};
  return functions;
}

}  // namespace similis::gpu
