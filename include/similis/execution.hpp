// SPDX-License-Identifier: Apache-2.0
// The execution of a call: its queue, the source of its memory, and its threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "similis/api.h"
#include "similis/tensor.hpp"

namespace similis {

/// The source of memory for results and workspaces. Null functions: the library's own (aligned heap
/// memory on the CPU, the stream's memory pool on a GPU). `stream` is the handle of Execution's
/// queue.
struct Allocator {
  /// Memory on `device`, aligned to 256 bytes, ready for work queued on `stream` from now on; null
  /// when there is none left.
  void* (*allocate)(void* context, std::size_t bytes, Device device, void* stream) = nullptr;
  /// Gives `pointer` back once the work queued on `stream` so far is done.
  void (*release)(
      void* context, void* pointer, std::size_t bytes, Device device, void* stream) = nullptr;
  void* context = nullptr;
};

/// Runs independent pieces of work. Null: the library's pool, one thread per core.
struct ParallelRunner {
  /// Calls task(task_context, index) once for each index in [0, count), on any threads, in any
  /// order, and returns when all have returned. The task never throws.
  using Task = void (*)(void* task_context, std::int64_t index);
  void (*run)(void* runner_context, Task task, void* task_context, std::int64_t count) = nullptr;
  void* context = nullptr;
};

/// Everything on the calling thread.
SIMILIS_API ParallelRunner serial_runner();

/// A fixed set of threads. A call from inside one of its tasks runs on the calling thread.
class SIMILIS_API ThreadPool {
 public:
  /// threads: number of threads, the caller included; 0: one per core.
  /// Throws InvalidArgument if threads is negative or above 1024.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  /// Valid as long as this pool.
  ParallelRunner runner();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A queue of work for a GPU. Default-constructed: the default queue of the arrays'
/// device.
struct Queue {
  DeviceKind kind = DeviceKind::cpu;  ///< whose queue it is; cpu: none is named
  void* handle = nullptr;  ///< for cuda a cudaStream_t, of which null is the default; for vulkan
                           ///< VulkanDevice::queue()'s, of which null is vulkan:0's

  static constexpr Queue cuda(void* stream) { return {DeviceKind::cuda, stream}; }
  friend bool operator==(const Queue&, const Queue&) = default;
};

struct Execution {
  /// Ignored where the arrays are on the CPU, but for a queue of Vulkan: the device then computes
  /// on copies of them, and the call returns when the results are there.
  Queue queue = {};
  Allocator allocator = {};
  ParallelRunner runner = {};
};

/// A dense tensor with undefined elements. Throws Error when the memory cannot be had.
SIMILIS_API Tensor allocate(
    const Extents& shape, DType dtype, Device device = {}, const Execution& exec = {});

}  // namespace similis
