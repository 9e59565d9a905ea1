// SPDX-License-Identifier: Apache-2.0
// Times of losses through Vulkan, of images in the device's memory. Calls follow one another
// without a wait, as in training: a time is that of many calls and one wait, divided by their
// number.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "similis/ms_ssim.hpp"
#include "similis/pixel_error.hpp"
#include "similis/ssim.hpp"
#include "similis/vulkan.hpp"
#include "src/core/joined.h"
#include "src/gpu/device.h"
#include "tests/arrays.h"

namespace similis {
namespace {

constexpr int kCalls = 50;

struct Case {
  Tensor x, y, value, x_gradient, y_gradient;
  Execution exec;

  explicit Case(const Extents& shape) {
    const VulkanDevice device;
    exec.queue = device.queue();
    x = noise(shape, 1, device.device());
    y = noise(shape, 2, device.device());
    value = allocate({}, DType::f32, device.device());
    x_gradient = allocate(shape, DType::f32, device.device());
    y_gradient = allocate(shape, DType::f32, device.device());
  }
  static Tensor noise(const Extents& shape, std::uint32_t seed, Device device) {
    const test::Array on_cpu = test::noise(shape, DType::f32, test::Layout::dense, seed, 1);
    const Tensor copy = allocate(shape, DType::f32, device);
    gpu::copy_from_cpu(
        copy, on_cpu.data(), static_cast<std::size_t>(shape.count()) * sizeof(float), nullptr);
    return copy;
  }
  void wait() const {
    float result = 0;
    gpu::copy_to_cpu(&result, value, sizeof result, nullptr);
  }
};

// The images of the case at hand alone are kept.
const Case& case_of(const Extents& shape) {
  static std::unique_ptr<Case> kept;
  if (kept == nullptr || kept->x.shape != shape) {
    kept.reset();
    kept = std::make_unique<Case>(shape);
  }
  return *kept;
}

using Call = void (*)(const Case&);

void run(benchmark::State& state, Call call, const Extents& shape) {
  if (gpu::device_count(DeviceKind::vulkan) == 0) {
    state.SkipWithError(gpu::describe(DeviceKind::vulkan).c_str());
    return;
  }
  const Case& of_shape = case_of(shape);
  call(of_shape);
  of_shape.wait();
  for (auto _ : state) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kCalls; ++i) call(of_shape);
    of_shape.wait();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count() / kCalls);
  }
}

bool add(const char* name, Call call) {
  for (const Extents& shape :
      {Extents{5, 5, 1080, 1920}, Extents{1, 3, 1080, 1920}, Extents{16, 3, 512, 512}}) {
    benchmark::RegisterBenchmark(fmt::format("vulkan/{}/{}/f32", name, joined(shape, "x")).c_str(),
        [=](benchmark::State& state) { run(state, call, shape); })
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->MinTime(0.01);
  }
  return true;
}

const SsimRequest::Form kLoss = SsimRequest::Form::loss;

[[maybe_unused]] const bool registered[] = {
    add("ssim/value", [](const Case& c) { ssim_into(c.x, c.y, {.value = c.value}, {}, c.exec); }),
    add("ssim/value_and_gradient",
        [](const Case& c) {
          ssim_into(c.x, c.y, {.value = c.value, .x_gradient = c.x_gradient}, {}, c.exec);
        }),
    add("ssim/value_and_both_gradients",
        [](const Case& c) {
          ssim_into(c.x, c.y,
              {.value = c.value, .x_gradient = c.x_gradient, .y_gradient = c.y_gradient}, {},
              c.exec);
        }),
    add("ssim/value_and_gradient/padding=reflect",
        [](const Case& c) {
          ssim_into(c.x, c.y, {.value = c.value, .x_gradient = c.x_gradient},
              {.padding = Padding::reflect}, c.exec);
        }),
    add("l1_ssim/value_and_gradient/padding=same",
        [](const Case& c) {
          ssim_into(c.x, c.y,
              {.form = kLoss,
                  .l1_weight = 0.8,
                  .ssim_weight = 0.2,
                  .value = c.value,
                  .x_gradient = c.x_gradient},
              {.padding = Padding::same}, c.exec);
        }),
    add("ms_ssim/value",
        [](const Case& c) { ms_ssim_into(c.x, c.y, {.value = c.value}, {}, c.exec); }),
    add("ms_ssim/value_and_gradient",
        [](const Case& c) {
          ms_ssim_into(c.x, c.y, {.value = c.value, .x_gradient = c.x_gradient}, {}, c.exec);
        }),
    add("mse/value", [](const Case& c) { mse_into(c.x, c.y, {.value = c.value}, {}, c.exec); }),
    add("mse/value_and_gradient",
        [](const Case& c) {
          mse_into(c.x, c.y, {.value = c.value, .x_gradient = c.x_gradient}, {}, c.exec);
        }),
};

}  // namespace
}  // namespace similis
