// SPDX-License-Identifier: Apache-2.0
#include "similis/tensor.hpp"

#include <cstring>

#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"
#include "src/gpu/device.h"

namespace similis {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::u8: return "uint8";
    case DType::u16: return "uint16";
    case DType::f16: return "float16";
    case DType::bf16: return "bfloat16";
    case DType::f32: return "float32";
    case DType::f64: return "float64";
    case DType::i16: return "int16";
    case DType::i32: return "int32";
    case DType::boolean: return "bool";
  }
  return "unknown";
}

const char* name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::vulkan: return "vulkan";
  }
  return "unknown";
}

void Extents::too_long(std::size_t rank) {
  throw InvalidArgument(
      fmt::format("tensor: it has {} axes; similis takes at most {}", rank, kMaxRank));
}

Extents dense_strides(const Extents& shape) {
  Extents strides = shape;
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

double item(const TensorView& tensor) {
  require(tensor.shape.count() == 1 && !tensor.empty(),
      "item: the tensor has shape {}; it must have one element", tensor.shape);
  require(tensor.dtype == DType::f32 || tensor.dtype == DType::f64,
      "item: the tensor is {}; it must be float32 or float64", tensor.dtype);
  const gpu::DeviceFunctions* const gpu = gpu::device_functions(tensor.device.kind);
  require(tensor.device.kind == DeviceKind::cpu || gpu != nullptr,
      "item: the tensor is on {}; this build of similis reads only the CPU's", tensor.device);
  std::byte element[sizeof(double)];
  const void* data = element;
  if (gpu != nullptr) {
    // The default stream waits for all others but those that were made not to be waited for.
    gpu::copy_to_cpu(element, tensor, size_bytes(tensor.dtype), nullptr);
  } else {
    data = tensor.data();
  }
  double as_double = 0;
  float as_float = 0;
  if (tensor.dtype == DType::f64) {
    std::memcpy(&as_double, data, sizeof as_double);
    return as_double;
  }
  std::memcpy(&as_float, data, sizeof as_float);
  return as_float;
}

}  // namespace similis
