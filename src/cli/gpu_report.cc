// SPDX-License-Identifier: Apache-2.0
#include "src/cli/gpu_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <vector>

#include "similis/error.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "similis/ssimulacra2.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"

namespace similis::cli {
namespace {

constexpr std::int64_t kHeight = 1080, kWidth = 1920;

// Waves with noise; another seed has other noise.
Tensor waves(const Extents& shape, int bit_depth, std::uint32_t seed) {
  const Tensor result = allocate(shape, bit_depth == 8 ? DType::u8 : DType::u16);
  const int peak = (1 << bit_depth) - 1;
  std::uint32_t state = seed;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    const std::int64_t wave = std::abs((i % kWidth) * 7 % 512 - 256) + (i / kWidth) % 256;
    const auto noise = static_cast<std::int64_t>(state >> 26);
    const std::int64_t value = std::min<std::int64_t>(peak, (wave + noise) * peak / 640);
    if (bit_depth == 8) {
      result.elements<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
    } else {
      result.elements<std::uint16_t>()[i] = static_cast<std::uint16_t>(value);
    }
  }
  return result;
}

// One line: bits and the median time of calls on arrays of the host. score(exec) computes one.
template <class Score>
std::string line_of(const std::string& measure, const VulkanDevice& device, const Score& score) {
  const double expected = score(Execution{});
  const Execution exec{.queue = device.queue()};
  constexpr int kCalls = 5;
  std::vector<double> times_ms;
  bool has_bits = true;
  for (int call = 0; call <= kCalls; ++call) {
    const auto start = std::chrono::steady_clock::now();
    const double found = score(exec);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    has_bits &= std::bit_cast<std::uint64_t>(found) == std::bit_cast<std::uint64_t>(expected);
    constexpr double kSlow = 500;  // milliseconds: one call says enough
    if (call > 0 || time.count() > kSlow) times_ms.push_back(time.count());
    if (time.count() > kSlow) break;  // else the first call is left out: it makes the kernels
  }
  std::sort(times_ms.begin(), times_ms.end());
  return fmt::format("  {}, {}×{}: {}, {:.2f} ms with the copies\n", measure, kWidth, kHeight,
      has_bits ? "the CPU's bits" : "OTHER BITS THAN THE CPU'S", times_ms[times_ms.size() / 2]);
}

std::string integer_ssim_line(const VulkanDevice& device, int bit_depth) {
  const Tensor x = waves({kHeight, kWidth}, bit_depth, 1);
  const Tensor y = waves({kHeight, kWidth}, bit_depth, 2);
  return line_of(
      fmt::format("integer_ssim, {} bits", bit_depth), device, [&](const Execution& exec) {
        return item(integer_ssim(x, y, {.bit_depth = bit_depth}, exec));
      });
}

std::string ssimulacra2_line(const VulkanDevice& device) {
  const Tensor x = waves({3, kHeight, kWidth}, 8, 1), y = waves({3, kHeight, kWidth}, 8, 2);
  return line_of("ssimulacra2, 8 bits", device,
      [&](const Execution& exec) { return item(ssimulacra2(x, y, {}, exec)); });
}

}  // namespace

std::string gpu_report() {
  const int count = gpu::device_count(DeviceKind::vulkan);
  if (count == 0) return gpu::describe(DeviceKind::vulkan) + "\n";
  std::string text;
  for (int index = 0; index < count; ++index) {
    const VulkanDevice device(index);
    text += fmt::format("vulkan:{} is {}, {}\n", index, device.name(), device.arithmetic());
    try {
      for (const int bit_depth : {8, 10, 12, 16}) text += integer_ssim_line(device, bit_depth);
      text += ssimulacra2_line(device);
    } catch (const DeviceError& error) {
      text += fmt::format("  {}\n", error.what());
    }
  }
  return text;
}

}  // namespace similis::cli
