// SPDX-License-Identifier: Apache-2.0
// The library's requests to GPUs outside kernels: a table of functions for each kind that is
// compiled in, and calls that find the table by the device's kind.
#pragma once

#include <cstddef>
#include <string>

#include "similis/tensor.hpp"

namespace similis::gpu {

/// Every kind of device but the CPU.
inline constexpr DeviceKind kKinds[] = {DeviceKind::cuda, DeviceKind::vulkan};

/// One backend's functions. `queue` is the handle of a Queue of that backend; null is the device's
/// default.
struct DeviceFunctions {
  /// Number of GPUs that can be used: 0 without a driver.
  int (*count)();
  /// The GPUs that can be used, in words, or why there are none.
  std::string (*describe)();
  /// Memory that is ready for work queued from now on; null when there is none left.
  void* (*allocate)(std::size_t bytes, Device device, void* queue);
  /// Gives it back once the work queued so far is done.
  void (*release)(void* memory, Device device, void* queue);
  /// Copies between the CPU and a GPU, after all work that was queued, and waits. Null where the
  /// handles of memory are no addresses.
  void (*copy_to_cpu)(
      void* to, const void* from, std::size_t bytes, Device device, void* queue) = nullptr;
  void (*copy_from_cpu)(
      void* to, const void* from, std::size_t bytes, Device device, void* queue) = nullptr;
  /// The same from or to so many bytes into memory whose handle is no address; null where it is.
  void (*copy_part_to_cpu)(void* to, const void* from, std::size_t from_offset, std::size_t bytes,
      Device device) = nullptr;
  void (*copy_part_from_cpu)(void* to, std::size_t to_offset, const void* from, std::size_t bytes,
      Device device) = nullptr;
  /// Says what describe() says of one GPU, and what was found out by running it, if anything was.
  std::string (*examine)(int index);
  /// True if there is a device of this number. Null: those below count().
  bool (*exists)(int index) = nullptr;
  /// Number of the device whose queue it is. Null where queues do not choose the device.
  int (*index_of)(void* queue) = nullptr;
};

/// Null for the CPU, and for a kind of which this build holds no code.
const DeviceFunctions* device_functions(DeviceKind kind);

/// DeviceFunctions::count of a kind; 0 where it is not compiled in.
int device_count(DeviceKind kind);

/// DeviceFunctions::exists, which is false where the kind is not compiled in.
bool exists(Device device);

/// DeviceFunctions::describe of a kind, or that it is not compiled in.
std::string describe(DeviceKind kind);

/// DeviceFunctions::examine of each GPU of a kind, or its describe.
std::string examine(DeviceKind kind);
/// The same of one GPU, which exists.
std::string examine(Device device);

/// The copies of the device's kind. They throw DeviceError where it is not compiled in.
void copy_to_cpu(void* to, const TensorView& from, std::size_t bytes, void* queue);
void copy_from_cpu(const TensorView& to, const void* from, std::size_t bytes, void* queue);
/// The same for memory that is known by its address or handle.
void copy_to_cpu(void* to, const void* from, std::size_t bytes, Device device, void* queue);
void copy_from_cpu(void* to, const void* from, std::size_t bytes, Device device, void* queue);

}  // namespace similis::gpu
