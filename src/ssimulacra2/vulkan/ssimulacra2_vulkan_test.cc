// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2 through Vulkan against the CPU, which is tested against its reference: all 64 bits,
// by the device's arithmetic and by integers. Skipped, with a message, where there is no device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "similis/error.hpp"
#include "similis/ssimulacra2.hpp"
#include "src/core/tensor/doubles.h"
#include "src/gpu/vulkan/test_device.h"
#include "tests/arrays.h"

namespace similis {
namespace {

using test::Layout;
using test::TestDevice;

constexpr Ssimulacra2Options kLinear = {.transfer = Ssimulacra2Transfer::linear};

// Waves, edges and noise, of which y has more; a corner is flat and equal in both.
test::Array picture(const Extents& shape, DType dtype, Layout layout, double distortion) {
  const double range = dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : 1;
  const std::int64_t width = shape[3], height = shape[2];
  return test::make(shape, dtype, layout, [&](std::int64_t i) {
    const std::int64_t column = i % width, row = i / width % height;
    const double ramp = static_cast<double>((7 * column + 3 * row) % 97) / 97;
    const auto board = static_cast<double>((column / 5 + row / 3) % 2);
    if (column < 20 && row < 9) return range * .25;
    const double noise = distortion * (test::uniform(2, i) - .5);
    return range *
           std::clamp(.1 + .4 * ramp + .2 * board + .2 * test::uniform(1, i) + noise, 0.0, 1.0);
  });
}

class Ssimulacra2Vulkan : public test::VulkanTest<> {
 protected:
  static void expect_the_cpus_bits(
      const TensorView& x, const TensorView& y, const Ssimulacra2Options& options = {}) {
    const std::vector<double> expected = to_doubles(ssimulacra2(x, y, options));
    for (const TestDevice& device : test::devices_of_each_arithmetic()) {
      const Tensor scores = ssimulacra2(x, y, options, {.queue = device.queue()});
      EXPECT_EQ(scores.device, Device{});
      EXPECT_EQ(to_doubles(scores), expected)
          << y.shape[y.shape.rank() - 2] << "×" << y.shape[y.shape.rank() - 1] << ", "
          << gpu::vulkan::verdict(device.arithmetic());
    }
  }
};

// Around a tile of 16 × 8, a quad of columns, a block of the recursion, a stripe of 32 rows, and a
// workgroup's 64 rows or columns.
TEST_F(Ssimulacra2Vulkan, HasTheCpusBits) {
  constexpr std::int64_t kSizes[][2] = {{8, 8}, {9, 8}, {8, 31}, {15, 16}, {16, 17}, {33, 32},
      {37, 53}, {64, 65}, {100, 63}, {131, 129}, {199, 319}};
  for (const auto& [height, width] : kSizes) {
    const Extents shape{1, 3, height, width};
    expect_the_cpus_bits(
        picture(shape, DType::u8, Layout::dense, 0), picture(shape, DType::u8, Layout::dense, .3));
  }
}

TEST_F(Ssimulacra2Vulkan, HasTheCpusBitsOfEachTypeAndLayout) {
  for (const DType dtype : {DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32}) {
    for (const Layout layout : {Layout::dense, Layout::channels_last, Layout::permuted,
             Layout::reversed, Layout::sliced, Layout::expanded}) {
      SCOPED_TRACE(test::name(layout) + " " + name(dtype));
      if (layout != Layout::dense && dtype != DType::u8 && dtype != DType::f32) continue;
      const Extents shape{2, 3, 20, 27};
      expect_the_cpus_bits(picture(shape, dtype, layout, 0), picture(shape, dtype, layout, .2));
    }
  }
}

TEST_F(Ssimulacra2Vulkan, HasTheCpusBitsOfGreyAlphaAndLight) {
  constexpr int kChannels[][2] = {{1, 1}, {1, 3}, {4, 4}, {4, 3}, {3, 4}, {2, 4}, {1, 2}};
  for (const auto& [of_x, of_y] : kChannels) {
    for (const Ssimulacra2Options& options : {Ssimulacra2Options{}, kLinear}) {
      const DType dtype = of_x == of_y ? DType::u8 : DType::f32;
      SCOPED_TRACE(testing::Message() << of_x << " and " << of_y << " channels");
      expect_the_cpus_bits(picture({2, of_x, 24, 30}, dtype, Layout::dense, 0),
          picture({2, of_y, 24, 30}, dtype, Layout::dense, .2), options);
    }
  }
}

// Light and samples beyond white, and below black, as HDR has them.
TEST_F(Ssimulacra2Vulkan, HasTheCpusBitsFarFromWhite) {
  for (const double scale : {-1.0, 40.0, 1e5}) {
    const auto scaled = [&](double distortion) {
      const test::Array unit = picture({1, 3, 41, 43}, DType::f32, Layout::dense, distortion);
      return test::make({1, 3, 41, 43}, DType::f32, Layout::dense,
          [&](std::int64_t i) { return scale * unit.elements<float>()[i]; });
    };
    for (const Ssimulacra2Options& options : {Ssimulacra2Options{}, kLinear}) {
      SCOPED_TRACE(testing::Message() << scale << (options.transfer == kLinear.transfer));
      expect_the_cpus_bits(scaled(0), scaled(.2), options);
    }
  }
}

TEST_F(Ssimulacra2Vulkan, OfEqualPicturesIs100) {
  const test::Array x = picture({1, 3, 40, 70}, DType::u8, Layout::dense, .1);
  for (const TestDevice& device : test::devices_of_each_arithmetic())
    EXPECT_EQ(item(ssimulacra2(x, x, {}, {.queue = device.queue()})), 100);
}

TEST_F(Ssimulacra2Vulkan, OfASampleThatIsNotFiniteIsNotANumber) {
  for (const float sample : {std::nanf(""), std::numeric_limits<float>::infinity(), -3e38f}) {
    const test::Array x = picture({2, 3, 24, 30}, DType::f32, Layout::dense, 0);
    const test::Array y = picture({2, 3, 24, 30}, DType::f32, Layout::dense, .2);
    const double second = to_doubles(ssimulacra2(x, y))[1];
    y.elements<float>()[500] = sample;
    for (const TestDevice& device : test::devices_of_each_arithmetic()) {
      const std::vector<double> scores =
          to_doubles(ssimulacra2(x, y, {}, {.queue = device.queue()}));
      EXPECT_TRUE(std::isnan(scores[0])) << sample;
      EXPECT_EQ(scores[1], second);
    }
  }
}

class Ssimulacra2InBuffers : public test::VulkanTest<> {};

TEST_F(Ssimulacra2InBuffers, HasTheCpusBits) {
  for (const Layout layout : {Layout::dense, Layout::channels_last, Layout::reversed}) {
    for (const DType dtype : {DType::u8, DType::f16}) {
      const test::Array x = picture({3, 4, 37, 53}, dtype, layout, 0);
      const test::Array y = picture({3, 4, 37, 53}, dtype, layout, .2);
      const Tensor of_x = test::in_vulkan_buffer(x), of_y = test::in_vulkan_buffer(y);
      const Tensor all = allocate({5}, DType::f64, of_x.device);
      Tensor value = all;
      value.offset = 2;
      value.shape = {3};
      ssimulacra2_into(of_x, of_y, {.value = value});
      EXPECT_EQ(test::elements_on_vulkan<double>(value), to_doubles(ssimulacra2(x, y)))
          << test::name(layout);
    }
  }
}

TEST_F(Ssimulacra2InBuffers, WhatHasNoKernelsIsRefusedInASentence) {
  const auto sentence = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  const test::Array x = picture({1, 3, 24, 30}, DType::u8, Layout::dense, 0);
  EXPECT_EQ(sentence([&] { ssimulacra2(x, x, {.mode = Ssimulacra2Mode::fast}, exec()); }),
      "ssimulacra2: the mode is fast; through Vulkan there is mode exact of pictures of uint8, "
      "uint16, float16, bfloat16 or float32");
  const test::Array doubles = picture({1, 3, 24, 30}, DType::f64, Layout::dense, 0);
  EXPECT_EQ(sentence([&] { ssimulacra2(doubles, doubles, {}, exec()); }),
      "ssimulacra2: x is float64; through Vulkan there is mode exact of pictures of uint8, uint16, "
      "float16, bfloat16 or float32");
  const Tensor map = allocate({1, 24, 30}, DType::f32);
  EXPECT_THROW(ssimulacra2_into(x, x, {.map = map}, {}, exec()), DeviceError);
}

// A device that rounds in other ways: integers make up for it, or it is refused.
TEST_F(Ssimulacra2InBuffers, AWrongDeviceKeepsTheBitsOrIsRefused) {
  const test::Array x = picture({1, 3, 45, 61}, DType::u8, Layout::dense, 0);
  const test::Array y = picture({1, 3, 45, 61}, DType::u8, Layout::dense, .2);
  const double expected = item(ssimulacra2(x, y));
  const TestDevice rounds("wrong_fma,wrong_f64");
  EXPECT_EQ(item(ssimulacra2(x, y, {}, {.queue = rounds.queue()})), expected);
  const TestDevice contracts("wrong_sum");
  EXPECT_THROW(ssimulacra2(x, y, {}, {.queue = contracts.queue()}), DeviceError);
}

}  // namespace
}  // namespace similis
