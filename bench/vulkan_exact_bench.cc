// SPDX-License-Identifier: Apache-2.0
// Times of the measures that promise bits, through Vulkan and by CUDA where there is such a device.
// device: pictures in the device's memory; many calls follow one another and one wait, divided by
// their number. host: pictures of the CPU's, copied by each call, which waits for its score; calls
// come from one thread or several, and a time is divided by the number of calls of all. Each score
// must have the CPU's bits.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "similis/libvmaf_ssim.hpp"
#include "similis/ssimulacra2.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"
#include "tests/arrays.h"

namespace similis {
namespace {

using Clock = std::chrono::steady_clock;
using Call = void (*)(
    const TensorView& x, const TensorView& y, const TensorView& score, const Execution& exec);

constexpr int kCalls = 20;

struct Case {
  const char* name;
  Call call;
  Extents shape;
  DType dtype;
  double peak = 255;
  bool is_noise = false;

  // Smooth with grain, as video is; or noise.
  test::Array picture(bool is_distorted) const {
    const std::int64_t width = shape[shape.rank() - 1], height = shape[shape.rank() - 2];
    const auto wave = [](std::int64_t count, double length) {
      std::vector<double> values(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(length * static_cast<double>(i) / static_cast<double>(count));
      return values;
    };
    const std::vector<double> across = wave(width, 60), down = wave(height, 40);
    return test::make(shape, dtype, test::Layout::dense, [&](std::int64_t i) {
      const double grain = test::uniform(1, i), other = test::uniform(2, i);
      if (is_noise) return std::floor((peak + 0.99) * (is_distorted ? other : grain));
      double value = 0.5 + 0.03 * grain +
                     0.4 * down[static_cast<std::size_t>(i / width % height)] *
                         across[static_cast<std::size_t>(i % width)];
      if (is_distorted) value += 0.05 * other - 0.02;
      return std::floor(peak * std::clamp(value, 0.0, 1.0));
    });
  }
};

// The pictures of the case at hand alone are kept, and their score by the CPU.
struct Pictures {
  explicit Pictures(const Case& made_of)
      : of(&made_of), x(made_of.picture(false)), y(made_of.picture(true)) {
    const Tensor score = allocate({}, DType::f64);
    of->call(x, y, score, {});
    expected = *score.elements<double>();
  }
  const Case* of;
  test::Array x, y;
  double expected;
};
const Pictures& pictures_of(const Case& of) {
  static std::unique_ptr<Pictures> kept;
  if (kept == nullptr || kept->of != &of) kept = std::make_unique<Pictures>(of);
  return *kept;
}

Tensor on_device(const TensorView& picture, Device device) {
  Tensor copy = allocate(picture.shape, picture.dtype, device);
  gpu::copy_from_cpu(copy, picture.data(),
      static_cast<std::size_t>(picture.shape.count()) * size_bytes(picture.dtype), nullptr);
  return copy;
}

Execution execution_on(DeviceKind kind) {
  Execution exec;
  if (kind == DeviceKind::vulkan) exec.queue = VulkanDevice().queue();
  return exec;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void require_bits(benchmark::State& state, bool are_equal) {
  if (!are_equal) state.SkipWithError("scores differ from the CPU's");
}

void time_on_device(benchmark::State& state, const Case& of, DeviceKind kind) {
  const Device device =
      kind == DeviceKind::vulkan ? VulkanDevice().device() : Device{DeviceKind::cuda, 0};
  const Execution exec = execution_on(kind);
  const Pictures& pictures = pictures_of(of);
  const Tensor x = on_device(pictures.x, device), y = on_device(pictures.y, device);
  const Tensor score = allocate({}, DType::f64, device);
  const auto wait = [&] {
    double result = 0;
    gpu::copy_to_cpu(&result, score, sizeof result, nullptr);
    return result;
  };
  of.call(x, y, score, exec);
  require_bits(state, wait() == pictures.expected);
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kCalls; ++i) of.call(x, y, score, exec);
    wait();
    state.SetIterationTime(seconds_since(start) / kCalls);
  }
}

void time_from_host(benchmark::State& state, const Case& of, int threads) {
  const Execution exec = execution_on(DeviceKind::vulkan);
  const Pictures& pictures = pictures_of(of);
  std::atomic<int> differing = 0;
  const auto call_often = [&](int calls) {
    const Tensor score = allocate({}, DType::f64);
    for (int i = 0; i < calls; ++i) {
      of.call(pictures.x, pictures.y, score, exec);
      differing += *score.elements<double>() != pictures.expected;
    }
  };
  call_often(1);
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> callers;
    for (int i = 0; i < threads; ++i) callers.emplace_back(call_often, kCalls);
    for (std::thread& caller : callers) caller.join();
    state.SetIterationTime(seconds_since(start) / (kCalls * threads));
  }
  require_bits(state, differing == 0);
}

template <class Run> void add_one(const std::string& name, DeviceKind kind, Run run) {
  benchmark::RegisterBenchmark(name.c_str(),
      [=](benchmark::State& state) {
        if (gpu::device_count(kind) == 0) {
          state.SkipWithError(gpu::describe(kind).c_str());
          return;
        }
        run(state);
      })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime()
      ->MinTime(0.01);
}

bool add(const Case& made) {
  static std::deque<Case> cases;  // benchmarks and pictures_of() refer to them
  const Case& of = cases.emplace_back(made);
  const std::int64_t width = of.shape[of.shape.rank() - 1], height = of.shape[of.shape.rank() - 2];
  const std::string size =
      fmt::format("{}x{}/{}{}", width, height, name(of.dtype), of.is_noise ? "/noise" : "");
  for (const DeviceKind kind : {DeviceKind::vulkan, DeviceKind::cuda}) {
    add_one(fmt::format(
                "{}/{}/device/{}", kind == DeviceKind::vulkan ? "vulkan" : "cuda", of.name, size),
        kind, [&of, kind](benchmark::State& state) { time_on_device(state, of, kind); });
  }
  if (of.is_noise) return true;
  for (const int threads : {1, 3}) {
    add_one(fmt::format("vulkan/{}/host/{}/threads:{}", of.name, size, threads), DeviceKind::vulkan,
        [&of, threads](benchmark::State& state) { time_from_host(state, of, threads); });
  }
  return true;
}

template <int bit_depth>
void integer(
    const TensorView& x, const TensorView& y, const TensorView& score, const Execution& exec) {
  integer_ssim_into(x, y, score, {.bit_depth = bit_depth}, exec);
}
void exact(
    const TensorView& x, const TensorView& y, const TensorView& score, const Execution& exec) {
  ssimulacra2_into(x, y, {.value = score}, {}, exec);
}

constexpr Extents k4k = {2160, 3840}, kHd = {1080, 1920};
constexpr Extents kColour4k = {3, 2160, 3840}, kColourHd = {3, 1080, 1920};

[[maybe_unused]] const bool registered[] = {
    add({"integer_ssim", integer<8>, k4k, DType::u8}),
    add({"integer_ssim", integer<8>, k4k, DType::u8, 255, true}),
    add({"integer_ssim", integer<8>, kHd, DType::u8}),
    add({"integer_ssim_10bit", integer<10>, k4k, DType::u16, 1023}),
    add({"integer_ssim_16bit", integer<16>, k4k, DType::u16, 65535}),
    add({"ssimulacra2/exact", exact, kColour4k, DType::u8}),
    add({"ssimulacra2/exact", exact, kColourHd, DType::u8}),
};

}  // namespace
}  // namespace similis
