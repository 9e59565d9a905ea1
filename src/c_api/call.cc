// SPDX-License-Identifier: Apache-2.0
#include "src/c_api/call.h"

#include <exception>
#include <new>
#include <span>
#include <string>

#include "similis/error.hpp"
#include "src/core/require.h"

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

std::optional<DType> dtype_of(similis_dtype dtype) {
  constexpr int kUnsigned = 1, kFloat = 2, kBfloat = 4;
  if (dtype.lanes != 1) return {};
  if (dtype.code == kUnsigned && dtype.bits == 8) return DType::u8;
  if (dtype.code == kUnsigned && dtype.bits == 16) return DType::u16;
  if (dtype.code == kFloat && dtype.bits == 16) return DType::f16;
  if (dtype.code == kBfloat && dtype.bits == 16) return DType::bf16;
  if (dtype.code == kFloat && dtype.bits == 32) return DType::f32;
  if (dtype.code == kFloat && dtype.bits == 64) return DType::f64;
  return {};
}

std::optional<Device> device_of(similis_device device) {
  switch (device.type) {
    case SIMILIS_CPU:
    case SIMILIS_CUDA_HOST: return Device{};
    case SIMILIS_CUDA: return Device{DeviceKind::cuda, device.index};
    default: return {};
  }
}

similis_device c_device(Device device) {
  return {device.kind == DeviceKind::cuda ? SIMILIS_CUDA : SIMILIS_CPU, device.index};
}

// The stride of an axis with one element is never walked, and producers put anything there.
Extents strides_of(const similis_tensor& tensor, const Extents& shape) {
  Extents strides = dense_strides(shape);
  if (tensor.strides == nullptr) return strides;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1) strides[axis] = tensor.strides[axis];
  }
  return strides;
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
  if (tensor == nullptr) return {};
  require(tensor->data != nullptr, "{}: {}.data is NULL; it must point to the elements", operation_,
      argument);
  require(tensor->ndim >= 0 && tensor->ndim <= kMaxRank,
      "{}: {}.ndim is {}; it must be from 0 to {}", operation_, argument, tensor->ndim, kMaxRank);
  require(tensor->ndim == 0 || tensor->shape != nullptr,
      "{}: {}.shape is NULL; it must point to {} extents", operation_, argument, tensor->ndim);
  const std::optional<DType> dtype = dtype_of(tensor->dtype);
  require(dtype.has_value(),
      "{}: {}.dtype has code {}, {} bits and {} lanes; it must be uint8, uint16, float16, "
      "bfloat16, "
      "float32 or float64, with 1 lane",
      operation_, argument, tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  const std::optional<Device> device = device_of(tensor->device);
  require(device.has_value(),
      "{}: {}.device.type is {}; it must be {} (CPU), {} (CUDA) or {} (CUDA's pinned memory)",
      operation_, argument, tensor->device.type, +SIMILIS_CPU, +SIMILIS_CUDA, +SIMILIS_CUDA_HOST);
  const Extents shape(
      std::span<const std::int64_t>(tensor->shape, static_cast<std::size_t>(tensor->ndim)));
  const char* elements = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  return {elements, shape, strides_of(*tensor, shape), *dtype, *device};
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
  execution_.stream = complete.stream;
  execution_.runner = {.run = complete.runner.run, .context = complete.runner.context};
  if (allocator_.allocate == nullptr) return;
  execution_.allocator = {
      .allocate =
          [](void* context, std::size_t bytes, Device device, void* stream) {
            const auto& allocator = *static_cast<const similis_allocator*>(context);
            return allocator.allocate(allocator.context, bytes, c_device(device), stream);
          },
      .release =
          [](void* context, void* pointer, std::size_t bytes, Device device, void* stream) {
            const auto& allocator = *static_cast<const similis_allocator*>(context);
            if (allocator.release == nullptr) return;
            allocator.release(allocator.context, pointer, bytes, c_device(device), stream);
          },
      .context = &allocator_};
}

}  // namespace similis::c_api

const char* similis_last_error() { return similis::c_api::last_error.message; }
