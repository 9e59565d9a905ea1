// SPDX-License-Identifier: Apache-2.0
// SSIM through Vulkan: values and maps of images under windows of up to 11. Images on the CPU are
// copied over in the same commands.
#include <algorithm>
#include <cstring>

#include "src/core/require.h"
#include "src/gpu/vulkan/device_functions.h"
#include "src/gpu/vulkan/elements.h"
#include "src/ssim/ssim.h"

namespace similis::ssim_internal {
namespace {

using gpu::vulkan::Commands;
using gpu::vulkan::Elements;
using gpu::vulkan::Gpu;
using gpu::vulkan::KernelArguments;

// As in the kernels.
constexpr int kRadius = 5;
constexpr std::int64_t kColumns = 32, kRows = 8;

struct ValuesArguments : KernelArguments {
  std::int32_t width, height, map_width, map_height;
  std::int32_t radius_x, radius_y, padding, channels;
  std::int32_t offset_x, strides_x[4], offset_y, strides_y[4];
  float c1, c2, bias, weight;
  std::int32_t has_map, map_offset;
};
struct TotalsArguments : KernelArguments {
  std::int32_t count;
  double bias, factor;
  std::int32_t offset, is_f64;
};

[[noreturn]] void refuse_pass(const char* what) {
  throw DeviceError(
      fmt::format("ssim: {}; through Vulkan there are values and maps of images of uint8, float16, "
                  "bfloat16 or float32 under windows of up to 11, without masks",
          what));
}

void require_kernels(const Pass& pass) {
  const Window& window = pass.window;
  if (!pass.x_gradient.empty() || !pass.y_gradient.empty()) refuse_pass("a gradient is wanted");
  if (!pass.mask.empty() || !pass.valid_mask.empty()) refuse_pass("a mask is given");
  if (pass.l1_weight != 0) refuse_pass("l1_weight is not 0");
  if (pass.x.shape[2] != 1 || window.radius_z() != 0) refuse_pass("the images are volumes");
  if (window.radius_x() > kRadius || window.radius_y() > kRadius)
    refuse_pass("window_size is above 11");
  if (pass.x.dtype != DType::u8 && pass.x.dtype != DType::f16 && pass.x.dtype != DType::bf16 &&
      pass.x.dtype != DType::f32) {
    refuse_pass(fmt::format("x is {}", name(pass.x.dtype)).c_str());
  }
  const bool is_staged = pass.x.device.kind == DeviceKind::cpu;
  if (pass.reduction == Reduction::none && pass.value.dtype != DType::f32 && !is_staged)
    refuse_pass("the map is float64");
}

std::int64_t parts(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

// Taps by their distance from the centre, along x and then y, for the kernel of values.
void put_taps(const Window& window, void* to) {
  float taps[2][kRadius + 1] = {};
  const std::vector<float> along[2] = {taps_in_f32(window.x), taps_in_f32(window.y)};
  for (int axis = 0; axis < 2; ++axis) {
    const std::size_t radius = along[axis].size() / 2;
    for (std::size_t i = 0; i <= radius; ++i) taps[axis][i] = along[axis][radius + i];
  }
  std::memcpy(to, taps, sizeof taps);
}

// Images, channels, rows and columns of a 5-D view.
void put(const Elements& elements, std::int32_t& offset, std::int32_t (&strides)[4]) {
  offset = elements.offset;
  std::copy_n(elements.strides, 2, strides);
  std::copy_n(elements.strides + 3, 2, strides + 2);
}

// The number of planes that each result is reduced from; 0: the map is not reduced.
std::int64_t planes_of_a_result(const Pass& pass) {
  switch (pass.reduction) {
    case Reduction::none: return 0;
    case Reduction::per_channel: return 1;
    case Reduction::per_image: return pass.x.shape[1];
    default: return pass.x.shape[0] * pass.x.shape[1];
  }
}

struct Planes {
  VkBuffer sums, map;  // [plane][tile]; the map if it is wanted
  std::int64_t count, tiles, map_pixels;
};

// Queues the kernel of values. A map goes to the buffer, from its element `map_offset` on.
Planes queue_values(Commands& commands, const Pass& pass, VkBuffer map, std::int64_t map_offset) {
  const Extents shape = map_shape(pass);
  const Extents& images = pass.x.shape;
  const std::int64_t tiles_x = parts(shape[4], kColumns), tiles_y = parts(shape[3], kRows);
  Planes planes{.map = map,
      .count = images[0] * images[1],
      .tiles = tiles_x * tiles_y,
      .map_pixels = shape[3] * shape[4]};
  const Elements x = gpu::vulkan::elements_of("ssim", commands, pass.x);
  const Elements y = gpu::vulkan::elements_of("ssim", commands, pass.y);
  constexpr std::size_t kTapBytes = 2 * (kRadius + 1) * sizeof(float);
  const VkBuffer taps = commands.workspace(kTapBytes);
  put_taps(pass.window, commands.upload(taps, 0, kTapBytes));
  planes.sums =
      commands.workspace(static_cast<std::size_t>(planes.count * planes.tiles) * sizeof(float));
  ValuesArguments arguments{};
  arguments.one = 1;
  arguments.width = static_cast<std::int32_t>(images[4]);
  arguments.height = static_cast<std::int32_t>(images[3]);
  arguments.map_width = static_cast<std::int32_t>(shape[4]);
  arguments.map_height = static_cast<std::int32_t>(shape[3]);
  arguments.radius_x = pass.window.radius_x();
  arguments.radius_y = pass.window.radius_y();
  arguments.padding = static_cast<std::int32_t>(pass.padding);
  arguments.channels = static_cast<std::int32_t>(images[1]);
  put(x, arguments.offset_x, arguments.strides_x);
  put(y, arguments.offset_y, arguments.strides_y);
  arguments.c1 = static_cast<float>(pass.c1);
  arguments.c2 = static_cast<float>(pass.c2);
  arguments.bias = static_cast<float>(pass.bias);
  arguments.weight = static_cast<float>(pass.term_weight);
  arguments.has_map = map == nullptr ? 0 : 1;
  arguments.map_offset = static_cast<std::int32_t>(map_offset);
  const VkBuffer written = map == nullptr ? planes.sums : map;  // a kernel's buffers all exist
  commands.run({.module = "ssim/values", .constants = {static_cast<std::int32_t>(pass.x.dtype)}},
      {x.buffer, y.buffer, taps, planes.sums, written}, arguments,
      {.x = tiles_x, .y = tiles_y, .z = planes.count});
  return planes;
}

// Queues the kernel that reduces sums, to f64 or f32 in the buffer from its element `offset` on.
void queue_totals(Commands& commands, const Pass& pass, const Planes& planes, VkBuffer results,
    std::int64_t offset, bool is_f64) {
  const std::int64_t each = planes_of_a_result(pass);
  const auto pixels = static_cast<double>(each * planes.map_pixels);
  const bool is_sum = pass.reduction == Reduction::sum;
  TotalsArguments arguments{};
  arguments.one = 1;
  arguments.count = static_cast<std::int32_t>(each * planes.tiles);
  arguments.bias = is_sum ? pass.bias * pixels : pass.bias;
  arguments.factor = is_sum ? pass.term_weight : pass.term_weight / pixels;
  arguments.offset = static_cast<std::int32_t>(offset);
  arguments.is_f64 = is_f64 ? 1 : 0;
  commands.run(
      {.module = "ssim/totals"}, {planes.sums, results}, arguments, {.x = planes.count / each});
}

// Numbers of the kernels into a result on the CPU, f32 or f64.
template <class From> void put_results(const void* from, const TensorView& to) {
  const auto* const first = static_cast<const From*>(from);
  const std::int64_t count = to.shape.count();
  if (to.dtype == DType::f64) {
    std::copy_n(first, count, static_cast<double*>(to.data()));
  } else {
    std::transform(first, first + count, static_cast<float*>(to.data()),
        [](From value) { return static_cast<float>(value); });
  }
}

void run_staged(Gpu& gpu, const Pass& pass) {
  Commands commands(gpu);
  const auto count = static_cast<std::size_t>(pass.value.shape.count());
  if (pass.reduction == Reduction::none) {
    const VkBuffer map = commands.workspace(count * sizeof(float));
    queue_values(commands, pass, map, 0);
    const void* const found = commands.download(map, 0, count * sizeof(float));
    commands.finish();
    return put_results<float>(found, pass.value);
  }
  const Planes planes = queue_values(commands, pass, nullptr, 0);
  const VkBuffer results = commands.workspace(count * sizeof(double));
  queue_totals(commands, pass, planes, results, 0, true);
  const void* const found = commands.download(results, 0, count * sizeof(double));
  commands.finish();
  put_results<double>(found, pass.value);
}

}  // namespace

void ssim_vulkan(const Pass& pass, const Execution& exec) {
  require_kernels(pass);
  Gpu& gpu = gpu::vulkan::gpu_of("ssim", pass.x.device, exec);
  gpu::vulkan::require_addressable("ssim", gpu, map_shape(pass).count(), sizeof(float));
  if (pass.x.device.kind == DeviceKind::cpu) return run_staged(gpu, pass);
  Commands commands(gpu);
  const auto value = static_cast<VkBuffer>(pass.value.handle);
  if (pass.reduction == Reduction::none) {
    queue_values(commands, pass, value, pass.value.offset);
  } else {
    const Planes planes = queue_values(commands, pass, nullptr, 0);
    queue_totals(commands, pass, planes, value, pass.value.offset, pass.value.dtype == DType::f64);
  }
  commands.submit();
}

}  // namespace similis::ssim_internal
