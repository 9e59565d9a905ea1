// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "tests/gpu_on_cpu/cuda_runtime.h"

namespace similis::gpu_on_cpu {

struct Graph {
  std::vector<std::function<void()>> work;
};

struct Stream {
  Graph* captured = nullptr;  // null but between the begin and the end of a capture
};

void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (stream != nullptr && stream->captured != nullptr) {
    stream->captured->work.push_back(std::move(work));
  } else {
    work();
  }
}

}  // namespace similis::gpu_on_cpu

namespace {

constexpr int kVersion = 13000, kMultiprocessors = 4;
constexpr int kComputeMajor = 9;
constexpr std::size_t kSharedBytes = 227 * 1024, kMemoryBytes = std::size_t{8} << 30;

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : "invalid argument";
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device != 0) return answer(cudaErrorInvalidValue);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"this CPU in a GPU's place", kComputeMajor, 0, kMultiprocessors, kMemoryBytes};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? kComputeMajor
           : attribute == cudaDevAttrMultiProcessorCount  ? kMultiprocessors
                                                          : static_cast<int>(kSharedBytes);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* all_bytes) {
  *free_bytes = *all_bytes = kMemoryBytes;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  static int the_heap;
  *pool = &the_heap;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }

// Memory that is not written yet is NaN in every type.
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t, cudaStream_t) {
  if (bytes > kMemoryBytes) return answer(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return answer(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xff, bytes);
  return cudaSuccess;
}

// A graph that was captured goes on using what it allocated, so it stays until the process ends.
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  if (stream == nullptr || stream->captured == nullptr) std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  similis::gpu_on_cpu::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  similis::gpu_on_cpu::enqueue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new similis::gpu_on_cpu::Stream;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr || stream->captured != nullptr) return answer(cudaErrorInvalidValue);
  stream->captured = new similis::gpu_on_cpu::Graph;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = std::exchange(stream->captured, nullptr);
  return *graph == nullptr ? answer(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned) {
  *executable = new similis::gpu_on_cpu::Graph(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& each : executable->work) each();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int value) {
  return value <= static_cast<int>(kSharedBytes) ? cudaSuccess : answer(cudaErrorInvalidValue);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void*, int threads, std::size_t shared_bytes) {
  const std::size_t by_shared = shared_bytes == 0 ? 32 : kSharedBytes / shared_bytes;
  *blocks =
      static_cast<int>(std::min(by_shared, std::size_t{2048} / static_cast<unsigned>(threads)));
  return cudaSuccess;
}
