// SPDX-License-Identifier: Apache-2.0
#include "src/c_api/call.h"

#include <exception>
#include <new>
#include <string>

#include "similis/error.hpp"
#include "src/core/require.h"
#include "src/core/tensor/dlpack.h"

namespace similis::c_api {
namespace {

// The message stays readable when there is no memory left to copy it into.
struct LastError {
  std::string text;
  const char* message = "";
};
thread_local LastError last_error;

similis_status failed(similis_status status, const char* message) noexcept {
  try {
    last_error.text = message;
    last_error.message = last_error.text.c_str();
  } catch (...) {
    last_error.message = "out of memory";
  }
  return status;
}

}  // namespace

similis_status call(void (*body)(const void* context), const void* context) noexcept {
  try {
    body(context);
    return SIMILIS_OK;
  } catch (const InvalidArgument& error) {
    return failed(SIMILIS_INVALID_ARGUMENT, error.what());
  } catch (const DeviceError& error) {
    return failed(SIMILIS_DEVICE_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return failed(SIMILIS_FAILURE, "out of memory");
  } catch (const std::exception& error) {
    return failed(SIMILIS_FAILURE, error.what());
  } catch (...) {
    return failed(SIMILIS_FAILURE, "a callback threw something that is no std::exception");
  }
}

TensorView Arguments::image(const char* argument, const similis_tensor* tensor) const {
  require(tensor != nullptr, "{}: {} is NULL; it must be a tensor", operation_, argument);
  return optional(argument, tensor);
}

TensorView Arguments::optional(const char* argument, const similis_tensor* tensor) const {
  return tensor == nullptr ? TensorView() : from_dlpack(operation_, argument, *tensor);
}

similis_execution Arguments::execution(const similis_execution* given) const {
  const similis_execution result = completed("execution", given, SIMILIS_EXECUTION_DEFAULTS);
  require(result.allocator.allocate != nullptr || result.allocator.release == nullptr,
      "{}: execution.allocator has a release function but no allocate", operation_);
  return result;
}

void Arguments::require_struct_size(
    const char* argument, std::size_t given, std::size_t known) const {
  require(given >= sizeof(std::size_t) && given <= known,
      "{}: {}.struct_size is {}; it must be the size of the struct, at most {} bytes in this "
      "version of similis",
      operation_, argument, given, known);
}

void Arguments::require_range(const char* argument, std::int32_t value, std::int32_t last) const {
  require(value >= 0 && value <= last, "{}: {} is {}; it must be from 0 to {}", operation_,
      argument, value, last);
}

CallExecution::CallExecution(const Arguments& arguments, const similis_execution* given) {
  const similis_execution complete = arguments.execution(given);
  allocator_ = complete.allocator;
  if (complete.stream != nullptr) execution_.queue = Queue::cuda(complete.stream);
  if (complete.vulkan != nullptr) {
    require(complete.stream == nullptr, "{}: execution has both a stream and a Vulkan device",
        arguments.operation());
    execution_.queue = vulkan_queue(*complete.vulkan);
  }
  execution_.runner = {.run = complete.runner.run, .context = complete.runner.context};
  if (allocator_.allocate == nullptr) return;
  execution_.allocator = {
      .allocate =
          [](void* context, std::size_t bytes, Device device, void* stream) {
            const auto& allocator = *static_cast<const similis_allocator*>(context);
            return allocator.allocate(allocator.context, bytes, to_dlpack(device), stream);
          },
      .release =
          [](void* context, void* pointer, std::size_t bytes, Device device, void* stream) {
            const auto& allocator = *static_cast<const similis_allocator*>(context);
            if (allocator.release == nullptr) return;
            allocator.release(allocator.context, pointer, bytes, to_dlpack(device), stream);
          },
      .context = &allocator_};
}

}  // namespace similis::c_api

const char* similis_last_error() { return similis::c_api::last_error.message; }
