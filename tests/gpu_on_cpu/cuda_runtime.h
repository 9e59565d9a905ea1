// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's runtime where the .cu files are compiled for the CPU (SIMILIS_CUDA=ON_CPU):
// the functions that similis and its tests call, with device memory on the heap. Work on a stream
// is done at once, and while a stream is captured it is kept for the graph.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/gpu_on_cpu/intrinsics.h"
#include "tests/gpu_on_cpu/launch.h"

using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorInvalidValue = 1;

namespace similis::gpu_on_cpu {
struct Stream;
struct Graph;
}  // namespace similis::gpu_on_cpu
using cudaStream_t = similis::gpu_on_cpu::Stream*;
using cudaGraph_t = similis::gpu_on_cpu::Graph*;
using cudaGraphExec_t = similis::gpu_on_cpu::Graph*;
using cudaMemPool_t = void*;

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold };
enum cudaMemAllocationType { cudaMemAllocationTypePinned };
enum cudaMemLocationType { cudaMemLocationTypeDevice };
constexpr unsigned cudaStreamNonBlocking = 1;

struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  cudaMemLocation location;
};
struct cudaDeviceProp {
  char name[64];
  int major, minor, multiProcessorCount;
  std::size_t totalGlobalMem;
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* answer, cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* all_bytes);
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMallocFromPoolAsync(
    void** memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void* kernel, int threads, std::size_t shared_bytes);

namespace similis::gpu_on_cpu {

/// Does the work, or keeps it where the stream is captured.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// Queues a kernel, as <<<…>>> does.
template <class... Parameters, class... Arguments>
void launch(dim3 blocks, dim3 threads, std::size_t shared_bytes, cudaStream_t stream,
    void (*kernel)(Parameters...), const Arguments&... arguments) {
  enqueue(stream, [=] { run(blocks, threads, shared_bytes, [&] { kernel(arguments...); }); });
}

}  // namespace similis::gpu_on_cpu
