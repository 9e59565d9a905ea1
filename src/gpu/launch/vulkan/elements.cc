// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/launch/vulkan/elements.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "similis/error.hpp"
#include "src/core/parallel.h"
#include "src/core/tensor/doubles.h"

namespace similis::gpu::vulkan {
namespace {

// Calls copy(bytes, their number) for runs of elements that are neighbours, in row-major order.
template <class Copy>
void for_each_run(const TensorView& tensor, int axis, std::byte* first, const Copy& copy) {
  const auto bytes = static_cast<std::int64_t>(size_bytes(tensor.dtype));
  if (axis == tensor.shape.rank()) return copy(first, static_cast<std::size_t>(bytes));
  const std::int64_t extent = tensor.shape[axis], stride = tensor.strides[axis];
  if (axis + 1 == tensor.shape.rank() && stride == 1)
    return copy(first, static_cast<std::size_t>(extent * bytes));
  for (std::int64_t i = 0; i < extent; ++i)
    for_each_run(tensor, axis + 1, first + i * stride * bytes, copy);
}

void copy_to_dense(const TensorView& from, std::byte* to) {
  for_each_run(from, 0, static_cast<std::byte*>(from.data()),
      [&](const std::byte* run, std::size_t bytes) { to = std::copy_n(run, bytes, to); });
}

void copy_from_dense(const std::byte* from, const TensorView& to) {
  for_each_run(to, 0, static_cast<std::byte*>(to.data()), [&](std::byte* run, std::size_t bytes) {
    std::copy_n(from, bytes, run);
    from += bytes;
  });
}

std::size_t dense_bytes(const TensorView& tensor) {
  return static_cast<std::size_t>(tensor.shape.count()) * size_bytes(tensor.dtype);
}

// Number of elements from the buffer's start to the last in memory.
std::int64_t end_of(const TensorView& tensor) {
  std::int64_t last = tensor.offset;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis)
    last += std::max<std::int64_t>(0, (tensor.shape[axis] - 1) * tensor.strides[axis]);
  return last + 1;
}

TensorView from_the_start(TensorView view) {
  view.offset = 0;
  return view;
}

TensorView dense(TensorView view) {
  view.strides = dense_strides(view.shape);
  return from_the_start(view);
}

Elements in_buffer(VkBuffer buffer, const TensorView& view) {
  Elements elements{.buffer = buffer, .offset = static_cast<std::int32_t>(view.offset)};
  for (int axis = 0; axis < view.shape.rank(); ++axis)
    elements.strides[axis] = static_cast<std::int32_t>(view.strides[axis]);
  return elements;
}

// True if the memory from the first element to the last has no more elements than the tensor, as
// where axes are in another order: it is copied as it lies.
bool is_compact(const TensorView& tensor) {
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    if (tensor.strides[axis] < 0) return false;
  }
  return end_of(tensor) - tensor.offset <= tensor.shape.count();
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes, const Execution& exec) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  const auto parts = static_cast<std::int64_t>((bytes + kPart - 1) / kPart);
  parallel_for(exec, parts, [&](std::int64_t part) {
    const std::size_t first = static_cast<std::size_t>(part) * kPart;
    std::memcpy(to + first, from + first, std::min(kPart, bytes - first));
  });
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

Elements elements_of(
    const char* operation, Commands& commands, const TensorView& tensor, const Execution& exec) {
  const bool is_staged = tensor.device.kind == DeviceKind::cpu, lies_dense = is_compact(tensor);
  const TensorView view = !is_staged ? tensor : lies_dense ? from_the_start(tensor) : dense(tensor);
  require_addressable(operation, commands.gpu(), end_of(view), size_bytes(view.dtype));
  if (!is_staged) return in_buffer(static_cast<VkBuffer>(tensor.handle), view);
  const auto bytes = static_cast<std::size_t>(end_of(view)) * size_bytes(view.dtype);
  const Commands::Input input = commands.input(bytes);
  auto* const to = static_cast<std::byte*>(input.bytes);
  if (lies_dense) {
    copy_bytes(to, static_cast<const std::byte*>(tensor.data()), bytes, exec);
  } else {
    copy_to_dense(tensor, to);
  }
  return in_buffer(input.buffer, view);
}

Floats floats_of(const char* operation, Commands& commands, const TensorView& tensor) {
  if (tensor.dtype != DType::f64 || tensor.device.kind != DeviceKind::cpu)
    return {elements_of(operation, commands, tensor), tensor.dtype};
  const Tensor floats = allocate(tensor.shape, DType::f32);
  const std::vector<double> doubles = to_doubles(tensor);
  std::transform(doubles.begin(), doubles.end(), floats.elements<float>(),
      [](double value) { return static_cast<float>(value); });
  return {elements_of(operation, commands, floats), DType::f32};
}

Elements Results::elements_of(const TensorView& result) {
  const bool is_on_cpu = result.device.kind == DeviceKind::cpu;
  const TensorView view = is_on_cpu ? dense(result) : result;
  require_addressable(operation_, commands_.gpu(), end_of(view), size_bytes(view.dtype));
  if (!is_on_cpu) return in_buffer(static_cast<VkBuffer>(result.handle), view);
  copies_.push_back({commands_.workspace(dense_bytes(view)), result});
  return in_buffer(copies_.back().buffer, view);
}

void Results::finish() {
  if (copies_.empty()) return commands_.submit();
  std::vector<const void*> found;
  for (const Copy& copy : copies_)
    found.push_back(commands_.download(copy.buffer, 0, dense_bytes(copy.to)));
  commands_.finish();
  for (std::size_t i = 0; i < copies_.size(); ++i)
    copy_from_dense(static_cast<const std::byte*>(found[i]), copies_[i].to);
}

}  // namespace similis::gpu::vulkan
