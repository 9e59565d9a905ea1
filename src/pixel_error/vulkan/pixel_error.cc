// SPDX-License-Identifier: Apache-2.0
// MSE, MAE and PSNR through Vulkan. Images on the CPU are copied over, and results back, in the
// same commands.
#include <algorithm>

#include "src/core/require.h"
#include "src/gpu/launch/vulkan/elements.h"
#include "src/gpu/launch/vulkan/totals.h"
#include "src/gpu/vulkan/device_functions.h"
#include "src/pixel_error/pixel_error.h"

namespace similis::pixel_error_internal {
namespace {

using gpu::vulkan::Commands;
using gpu::vulkan::Elements;
using gpu::vulkan::Floats;
using gpu::vulkan::Gpu;
using gpu::vulkan::KernelArguments;
using gpu::vulkan::Results;

constexpr std::int64_t kThreads = 128, kPixelsOfWorkgroup = 16 * kThreads, kMostSlots = 1024;

struct ErrorsArguments : KernelArguments {
  std::int32_t axis_count, result_axes, pixels;
  std::int32_t first[4];
  float scale;
  std::int32_t upstream_offset, upstream_strides[2], upstream_channels;
};
struct DecibelsArguments : KernelArguments {
  std::int32_t count;
  double peak;
  std::int32_t offset, is_f64;
};

std::int64_t parts(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

std::int32_t i32(std::int64_t value) { return static_cast<std::int32_t>(value); }

void require_kernels(const PixelPass& pass) {
  const auto refuse = [&](const char* what) {
    throw DeviceError(fmt::format(
        "{}: {}; through Vulkan it takes images of uint8, float16, bfloat16 or float32, without a "
        "mask",
        pass.operation, what));
  };
  const DType dtype = pass.x.dtype;
  if (dtype != DType::u8 && dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32)
    refuse(fmt::format("x is {}", name(dtype)).c_str());
  if (!pass.mask.empty()) refuse("a mask is given");
  if (!pass.upstream.empty() && pass.upstream.dtype == DType::f64 &&
      pass.upstream.device.kind != DeviceKind::cpu) {
    refuse("upstream is float64 on the GPU");
  }
}

// The view with the strides that kernels meet.
TensorView in_buffer(TensorView view, const Elements& elements) {
  for (int axis = 0; axis < view.shape.rank(); ++axis) view.strides[axis] = elements.strides[axis];
  return view;
}

class Queue {
 public:
  Queue(Error error, const PixelPass& pass, Commands& commands, Results& results)
      : error_(error), pass_(pass), commands_(commands), results_(results) {}

  void run() {
    const Elements x = gpu::vulkan::elements_of(pass_.operation, commands_, pass_.x);
    const Elements y = gpu::vulkan::elements_of(pass_.operation, commands_, pass_.y);
    Elements by_x, by_y;
    if (!pass_.x_gradient.empty()) by_x = results_.elements_of(pass_.x_gradient);
    if (!pass_.y_gradient.empty()) by_y = results_.elements_of(pass_.y_gradient);
    Floats upstream{.elements = {}, .dtype = DType::f32};
    if (!pass_.upstream.empty())
      upstream = gpu::vulkan::floats_of(pass_.operation, commands_, pass_.upstream);

    PixelPass there = pass_;
    there.x = in_buffer(pass_.x, x);
    there.y = in_buffer(pass_.y, y);
    there.x_gradient = in_buffer(pass_.x_gradient, by_x);
    there.y_gradient = in_buffer(pass_.y_gradient, by_y);
    const PixelWalk walk(there);
    const std::int64_t pixels = walk.lines() * walk.line().extent;
    const std::int64_t slots =
        std::clamp<std::int64_t>(parts(pixels, kPixelsOfWorkgroup), 1, kMostSlots);

    ErrorsArguments arguments{};
    arguments.one = 1;
    arguments.axis_count = walk.rank();
    arguments.result_axes = walk.kept_axes();
    arguments.pixels = i32(pixels);
    const std::int32_t first[] = {x.offset, y.offset, by_x.offset, by_y.offset};
    std::copy_n(first, 4, arguments.first);
    arguments.scale = static_cast<float>(1 / pass_.divisor);
    arguments.upstream_offset = upstream.elements.offset;
    const int upstream_rank = pass_.upstream.empty() ? 0 : pass_.upstream.shape.rank();
    std::copy_n(upstream.elements.strides, upstream_rank, arguments.upstream_strides);
    arguments.upstream_channels = upstream_rank > 1 ? i32(pass_.upstream.shape[1]) : 1;
    const bool in_vectors = pass_.x.dtype == DType::f32 && is_in_fours(walk, arguments);
    const VkBuffer sums =
        commands_.workspace(static_cast<std::size_t>(walk.results() * slots) * sizeof(float));
    const auto or_sums = [&](const Elements& elements) {
      return elements.buffer == nullptr ? sums : elements.buffer;
    };
    const bool has_upstream = upstream.elements.buffer != nullptr;
    const std::int32_t gradients =
        (pass_.x_gradient.empty() ? 0 : 1) | (pass_.y_gradient.empty() ? 0 : 2);
    commands_.run(
        {.module = "pixel_error/errors",
            .constants = {static_cast<std::int32_t>(pass_.x.dtype),
                error_ == Error::absolute ? 1 : 0, gradients,
                has_upstream ? static_cast<std::int32_t>(upstream.dtype) : -1, in_vectors ? 1 : 0}},
        {x.buffer, y.buffer, axes_of(walk), sums, or_sums(upstream.elements), or_sums(by_x),
            or_sums(by_y), x.buffer, y.buffer, or_sums(by_x), or_sums(by_y)},
        arguments, {.x = slots, .y = walk.results()});
    if (pass_.value.empty()) return;
    gpu::vulkan::queue_totals(commands_, sums,
        {.results = walk.results(), .count = slots, .bias = 0, .factor = 1 / pass_.divisor},
        results_.elements_of(pass_.value), pass_.value.dtype);
  }

 private:
  // True if the pixels of each result are dense in all arrays, from a multiple of four elements on.
  bool is_in_fours(const PixelWalk& walk, const ErrorsArguments& arguments) const {
    for (const std::int32_t first : arguments.first) {
      if (first % 4 != 0) return false;
    }
    if (walk.rank() != walk.kept_axes() + 1 || walk.line().extent % 4 != 0) return false;
    for (int i = 0; i < walk.rank(); ++i) {
      const Offsets& stride = walk.axis(i).stride;
      const auto fits = [&](std::int64_t each) {
        return i < walk.kept_axes() ? each % 4 == 0 : each == 1;
      };
      if (!fits(stride.x) || !fits(stride.y)) return false;
      if (!pass_.x_gradient.empty() && !fits(stride.x_gradient)) return false;
      if (!pass_.y_gradient.empty() && !fits(stride.y_gradient)) return false;
    }
    return true;
  }

  VkBuffer axes_of(const PixelWalk& walk) {
    std::vector<std::int32_t> numbers;
    for (int i = 0; i < walk.rank(); ++i) {
      const auto& [extent, stride] = walk.axis(i);
      for (const std::int64_t number :
          {extent, stride.x, stride.y, stride.x_gradient, stride.y_gradient}) {
        numbers.push_back(i32(number));
      }
    }
    return commands_.workspace_of(numbers.data(), numbers.size() * sizeof(std::int32_t));
  }

  Error error_;
  const PixelPass& pass_;
  Commands& commands_;
  Results& results_;
};

}  // namespace

void pixel_error_vulkan(Error error, const PixelPass& pass, const Execution& exec) {
  require_kernels(pass);
  Commands commands(gpu::vulkan::gpu_of(pass.operation, pass.x.device, exec));
  Results results(pass.operation, commands);
  Queue(error, pass, commands, results).run();
  results.finish();
}

void decibels_vulkan(
    const TensorView& error, double data_range, const TensorView& value, const Execution& exec) {
  Commands commands(gpu::vulkan::gpu_of("psnr", error.device, exec));
  Results results("psnr", commands);
  const Elements to = results.elements_of(value);
  DecibelsArguments arguments{};
  arguments.one = 1;
  arguments.count = i32(error.shape.count());
  arguments.peak = data_range * data_range;
  arguments.offset = to.offset;
  arguments.is_f64 = value.dtype == DType::f64 ? 1 : 0;
  commands.run({.module = "pixel_error/decibels"},
      {gpu::vulkan::elements_of("psnr", commands, error).buffer, to.buffer}, arguments,
      {.x = parts(error.shape.count(), 64)});
  results.finish();
}

}  // namespace similis::pixel_error_internal
