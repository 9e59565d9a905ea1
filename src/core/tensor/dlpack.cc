// SPDX-License-Identifier: Apache-2.0
#include "src/core/tensor/dlpack.h"

#include <optional>
#include <span>

#include "similis/dlpack.hpp"
#include "src/core/require.h"

namespace similis {
namespace {

constexpr int kInteger = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;  // DLDataTypeCode

std::optional<DType> dtype_of(similis_dtype dtype) {
  if (dtype.lanes != 1) return {};
  if (dtype.code == kUnsigned && dtype.bits == 8) return DType::u8;
  if (dtype.code == kUnsigned && dtype.bits == 16) return DType::u16;
  if (dtype.code == kFloat && dtype.bits == 16) return DType::f16;
  if (dtype.code == kBfloat && dtype.bits == 16) return DType::bf16;
  if (dtype.code == kFloat && dtype.bits == 32) return DType::f32;
  if (dtype.code == kFloat && dtype.bits == 64) return DType::f64;
  if (dtype.code == kInteger && dtype.bits == 16) return DType::i16;
  if (dtype.code == kInteger && dtype.bits == 32) return DType::i32;
  if (dtype.code == kBool && dtype.bits == 8) return DType::boolean;
  return {};
}

std::optional<Device> device_of(similis_device device) {
  switch (device.type) {
    case SIMILIS_CPU:
    case SIMILIS_CUDA_HOST: return Device{};
    case SIMILIS_CUDA: return Device{DeviceKind::cuda, device.index};
    case SIMILIS_VULKAN: return Device{DeviceKind::vulkan, device.index};
    default: return {};
  }
}

similis_dtype dtype_of(DType dtype) {
  switch (dtype) {
    case DType::u8: return {kUnsigned, 8, 1};
    case DType::u16: return {kUnsigned, 16, 1};
    case DType::f16: return {kFloat, 16, 1};
    case DType::bf16: return {kBfloat, 16, 1};
    case DType::f32: return {kFloat, 32, 1};
    case DType::f64: break;
    case DType::i16: return {kInteger, 16, 1};
    case DType::i32: return {kInteger, 32, 1};
    case DType::boolean: return {kBool, 8, 1};
  }
  return {kFloat, 64, 1};
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

TensorView from_dlpack(const char* operation, const char* argument, const similis_tensor& tensor) {
  require(tensor.data != nullptr, "{}: {}.data is NULL; it must point to the elements", operation,
      argument);
  require(tensor.ndim >= 0 && tensor.ndim <= kMaxRank, "{}: {}.ndim is {}; it must be from 0 to {}",
      operation, argument, tensor.ndim, kMaxRank);
  require(tensor.ndim == 0 || tensor.shape != nullptr,
      "{}: {}.shape is NULL; it must point to {} extents", operation, argument, tensor.ndim);
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  require(dtype.has_value(),
      "{}: {}.dtype has code {}, bits {} and lanes {}; it must be bool, uint8, uint16, "
      "int16, int32, float16, bfloat16, float32 or float64, with 1 lane",
      operation, argument, tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  const std::optional<Device> device = device_of(tensor.device);
  require(device.has_value(),
      "{}: {}.device.type is {}; it must be {} (CPU), {} (CUDA), {} (CUDA's pinned memory) or {} "
      "(Vulkan)",
      operation, argument, tensor.device.type, +SIMILIS_CPU, +SIMILIS_CUDA, +SIMILIS_CUDA_HOST,
      +SIMILIS_VULKAN);
  const Extents shape(
      std::span<const std::int64_t>(tensor.shape, static_cast<std::size_t>(tensor.ndim)));
  TensorView view(tensor.data, shape, strides_of(tensor, shape), *dtype, *device);
  const auto offset_bytes = static_cast<std::int64_t>(tensor.byte_offset);
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(*dtype));
  if (offset_bytes % element_bytes == 0) {
    view.offset = offset_bytes / element_bytes;
  } else {
    require(device->kind != DeviceKind::vulkan,
        "{}: {}.byte_offset is {}; in a Vulkan buffer it must be a multiple of the element's {} "
        "bytes",
        operation, argument, offset_bytes, element_bytes);
    view.handle = static_cast<char*>(tensor.data) + offset_bytes;
  }
  return view;
}

similis_device to_dlpack(Device device) {
  switch (device.kind) {
    case DeviceKind::cpu: break;
    case DeviceKind::cuda: return {SIMILIS_CUDA, device.index};
    case DeviceKind::vulkan: return {SIMILIS_VULKAN, device.index};
  }
  return {SIMILIS_CPU, device.index};
}

TensorView from_dlpack(const similis_tensor& tensor) {
  return from_dlpack("from_dlpack", "tensor", tensor);
}

similis_tensor to_dlpack(TensorView& view) {
  const auto element_bytes = static_cast<std::int64_t>(size_bytes(view.dtype));
  return {.data = view.handle,
      .device = to_dlpack(view.device),
      .ndim = view.shape.rank(),
      .dtype = dtype_of(view.dtype),
      .shape = view.shape.data(),
      .strides = view.strides.data(),
      .byte_offset = static_cast<std::uint64_t>(view.offset * element_bytes)};
}

}  // namespace similis
