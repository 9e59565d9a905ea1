// SPDX-License-Identifier: Apache-2.0
#include "src/cli/gpu_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "similis/error.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "similis/ms_ssim.hpp"
#include "similis/pixel_error.hpp"
#include "similis/ssim.hpp"
#include "similis/ssimulacra2.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"

namespace similis::cli {
namespace {

// The device on which a report's pictures are compared, and their size.
struct Place {
  VulkanDevice device;
  std::int64_t height, width;
};

// Waves with noise; another seed has other noise.
Tensor waves(const Extents& shape, int bit_depth, std::uint32_t seed) {
  const Tensor result = allocate(shape, bit_depth == 8 ? DType::u8 : DType::u16);
  const int peak = (1 << bit_depth) - 1;
  const std::int64_t width = shape[shape.rank() - 1];
  std::uint32_t state = seed;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    const std::int64_t wave = std::abs((i % width) * 7 % 512 - 256) + (i / width) % 256;
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

// The median time of calls in milliseconds. The first call is left out, as it makes the kernels,
// unless it is slow: then it says enough.
template <class Call> double median_ms(const Call& call) {
  constexpr int kCalls = 5;
  constexpr double kSlow = 500;
  std::vector<double> times_ms;
  for (int i = 0; i <= kCalls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (i > 0 || time.count() > kSlow) times_ms.push_back(time.count());
    if (time.count() > kSlow) break;
  }
  std::sort(times_ms.begin(), times_ms.end());
  return times_ms[times_ms.size() / 2];
}

std::string line(
    const Place& place, const std::string& measure, const std::string& verdict, double time_ms) {
  return fmt::format("  {}, {}×{}: {}, {:.2f} ms with the copies\n", measure, place.width,
      place.height, verdict, time_ms);
}

// score(exec) computes one; all its bits are compared.
template <class Score>
std::string bits_line(const std::string& measure, const Place& place, const Score& score) {
  const double expected = score(Execution{});
  const Execution exec{.queue = place.device.queue()};
  bool has_bits = true;
  const double time_ms = median_ms([&] {
    has_bits &= std::bit_cast<std::uint64_t>(score(exec)) == std::bit_cast<std::uint64_t>(expected);
  });
  return line(place, measure, has_bits ? "the CPU's bits" : "OTHER BITS THAN THE CPU'S", time_ms);
}

std::string integer_ssim_line(const Place& place, int bit_depth) {
  const Tensor x = waves({place.height, place.width}, bit_depth, 1);
  const Tensor y = waves({place.height, place.width}, bit_depth, 2);
  return bits_line(
      fmt::format("integer_ssim, {} bits", bit_depth), place, [&](const Execution& exec) {
        return item(integer_ssim(x, y, {.bit_depth = bit_depth}, exec));
      });
}

std::string ssimulacra2_line(const Place& place) {
  const Tensor x = waves({3, place.height, place.width}, 8, 1),
               y = waves({3, place.height, place.width}, 8, 2);
  return bits_line("ssimulacra2, 8 bits", place,
      [&](const Execution& exec) { return item(ssimulacra2(x, y, {}, exec)); });
}

// A measure of x and y with its gradient by x; all three and the value are of one type.
using Loss = void (*)(const Tensor& x, const Tensor& y, const Tensor& value,
    const Tensor& x_gradient, const Execution& exec);

template <class T> Tensor scaled(const Tensor& bytes, DType dtype) {
  const Tensor result = allocate(bytes.shape, dtype);
  for (std::int64_t i = 0; i < bytes.shape.count(); ++i)
    result.elements<T>()[i] = static_cast<T>(bytes.elements<std::uint8_t>()[i]) / 256;
  return result;
}

// The distances of value and gradient from the CPU's in f64.
std::string loss_line(const std::string& measure, const Place& place, Loss loss) {
  const Extents shape = {1, 3, place.height, place.width};
  const Tensor x = waves(shape, 8, 1), y = waves(shape, 8, 2);
  const Tensor expected = allocate({}, DType::f64), expected_gradient = allocate(shape, DType::f64);
  loss(scaled<double>(x, DType::f64), scaled<double>(y, DType::f64), expected, expected_gradient,
      {});
  const Tensor x32 = scaled<float>(x, DType::f32), y32 = scaled<float>(y, DType::f32);
  const Tensor found = allocate({}, DType::f32), gradient = allocate(shape, DType::f32);
  const Execution exec{.queue = place.device.queue()};
  const double time_ms = median_ms([&] { loss(x32, y32, found, gradient, exec); });
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const double wanted = expected_gradient.elements<double>()[i];
    const double difference = gradient.elements<float>()[i] - wanted;
    error += difference * difference;
    norm += wanted * wanted;
  }
  return line(place, measure,
      fmt::format("value off by {:.1e}, gradient by {:.1e} of its norm",
          std::abs(*found.elements<float>() - *expected.elements<double>()),
          std::sqrt(error / norm)),
      time_ms);
}

std::string loss_lines(const Place& place) {
  return loss_line("ssim, f32", place,
             [](const Tensor& x, const Tensor& y, const Tensor& value, const Tensor& x_gradient,
                 const Execution& exec) {
               ssim_into(x, y, {.value = value, .x_gradient = x_gradient}, {}, exec);
             }) +
         loss_line("ms_ssim, f32", place,
             [](const Tensor& x, const Tensor& y, const Tensor& value, const Tensor& x_gradient,
                 const Execution& exec) {
               ms_ssim_into(x, y, {.value = value, .x_gradient = x_gradient}, {}, exec);
             }) +
         loss_line("mse, f32", place,
             [](const Tensor& x, const Tensor& y, const Tensor& value, const Tensor& x_gradient,
                 const Execution& exec) {
               mse_into(x, y, {.value = value, .x_gradient = x_gradient}, {}, exec);
             });
}

std::string exact_lines(const Place& place) {
  std::string text;
  for (const int bit_depth : {8, 10, 12, 16}) text += integer_ssim_line(place, bit_depth);
  return text + ssimulacra2_line(place);
}

std::string lines_of(int index, std::int64_t height, std::int64_t width) {
  const Place place{VulkanDevice(index), height, width};
  std::string text =
      fmt::format("vulkan:{} is {}, {}\n", index, place.device.name(), place.device.arithmetic());
  for (const auto lines : {exact_lines, loss_lines}) {
    try {
      text += lines(place);
    } catch (const DeviceError& error) {
      text += fmt::format("  {}\n", error.what());
    }
  }
  return text;
}

std::string report_of(int index, std::int64_t height, std::int64_t width) {
  try {
    return lines_of(index, height, width);
  } catch (const DeviceError& error) {
    return fmt::format("vulkan:{} cannot be used: {}\n", index, error.what());
  }
}

}  // namespace

std::string gpu_report(std::optional<int> index, std::int64_t height, std::int64_t width) {
  if (index) return report_of(*index, height, width);
  const int count = gpu::device_count(DeviceKind::vulkan);
  if (count == 0) return gpu::describe(DeviceKind::vulkan) + "\n";
  std::string text;
  for (int each = 0; each < count; ++each) text += report_of(each, height, width);
  return text;
}

}  // namespace similis::cli
