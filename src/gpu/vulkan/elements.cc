// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/vulkan/elements.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "similis/error.hpp"

namespace similis::gpu::vulkan {
namespace {

// Copies the elements in row-major order, axis by axis.
std::byte* copy_dense(const TensorView& tensor, int axis, const std::byte* from, std::byte* to) {
  const auto bytes = static_cast<std::int64_t>(size_bytes(tensor.dtype));
  if (axis == tensor.shape.rank()) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return to + bytes;
  }
  const std::int64_t extent = tensor.shape[axis], stride = tensor.strides[axis];
  if (axis + 1 == tensor.shape.rank() && stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(extent * bytes));
    return to + extent * bytes;
  }
  for (std::int64_t i = 0; i < extent; ++i)
    to = copy_dense(tensor, axis + 1, from + i * stride * bytes, to);
  return to;
}

// Number of elements from the buffer's start to the last in memory.
std::int64_t end_of(const TensorView& tensor) {
  std::int64_t last = tensor.offset;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis)
    last += std::max<std::int64_t>(0, (tensor.shape[axis] - 1) * tensor.strides[axis]);
  return last + 1;
}

}  // namespace

void require_addressable(
    const char* operation, Gpu& gpu, std::int64_t elements, std::size_t bytes_each) {
  const auto most = std::min<std::uint64_t>(gpu.limits().maxStorageBufferRange,
      static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) * bytes_each);
  const auto bytes = static_cast<std::uint64_t>(elements) * bytes_each;
  if (bytes <= most) return;
  throw DeviceError(
      fmt::format("{}: a buffer of {} bytes is needed, and vulkan:{} reads at most {} of one",
          operation, bytes, gpu.index(), most));
}

Elements elements_of(const char* operation, Commands& commands, const TensorView& tensor) {
  TensorView view = tensor;
  VkBuffer buffer = nullptr;
  if (tensor.device.kind == DeviceKind::cpu) {
    view.offset = 0;
    view.strides = dense_strides(view.shape);
  }
  require_addressable(operation, commands.gpu(), end_of(view), size_bytes(view.dtype));
  if (tensor.device.kind == DeviceKind::cpu) {
    const auto bytes = static_cast<std::size_t>(view.shape.count()) * size_bytes(view.dtype);
    buffer = commands.workspace(bytes);
    auto* const to = static_cast<std::byte*>(commands.upload(buffer, 0, bytes));
    copy_dense(tensor, 0, static_cast<const std::byte*>(tensor.data()), to);
  } else {
    buffer = static_cast<VkBuffer>(tensor.handle);
  }
  Elements elements{.buffer = buffer, .offset = static_cast<std::int32_t>(view.offset)};
  for (int axis = 0; axis < view.shape.rank(); ++axis)
    elements.strides[axis] = static_cast<std::int32_t>(view.strides[axis]);
  return elements;
}

}  // namespace similis::gpu::vulkan
