// SPDX-License-Identifier: Apache-2.0
// Integer SSIM through Vulkan against the loop that defines it: all 64 bits, by the device's
// arithmetic and by integers. Skipped, with a message, where there is no device.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "similis/error.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"
#include "src/gpu/vulkan/test_device.h"
#include "src/libvmaf_ssim/reference.h"
#include "src/libvmaf_ssim/test_planes.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using test::Layout;
using test::TestDevice;

class IntegerSsimVulkan : public test::VulkanTest<> {
 protected:
  static std::vector<double> scores_of(const TestPlanes& planes, const TestDevice& device) {
    const Tensor scores =
        integer_ssim(planes.x, planes.y, {.bit_depth = planes.depth}, {.queue = device.queue()});
    EXPECT_EQ(scores.device, Device{});
    const auto* const first = scores.elements<double>();
    return {first, first + scores.shape.count()};
  }

  static void expect_the_references_bits(const TestPlanes& planes) {
    const std::vector<double> expected = reference_integer_ssim(planes.pairs());
    for (const TestDevice& device : test::devices_of_each_arithmetic()) {
      SCOPED_TRACE(gpu::vulkan::verdict(device.arithmetic()));
      const std::vector<double> scores = scores_of(planes, device);
      ASSERT_EQ(scores.size(), expected.size());
      for (std::size_t i = 0; i < scores.size(); ++i) {
        EXPECT_EQ(
            std::bit_cast<std::uint64_t>(scores[i]), std::bit_cast<std::uint64_t>(expected[i]))
            << scores[i] << " for " << expected[i];
      }
    }
  }
};

TEST_F(IntegerSsimVulkan, HasTheBitsOfTheLoop) {
  for (const Scene scene : kScenes) {
    for (const int depth : {8, 10, 12, 16}) {
      // Around a tile of 120 columns, a stripe of 32 rows, and a group of 8192 terms.
      for (const Extents& shape : {Extents{1, 1}, Extents{1, 40}, Extents{40, 1}, Extents{9, 5},
               Extents{17, 33}, Extents{32, 120}, Extents{33, 121}, Extents{2, 31, 264}}) {
        SCOPED_TRACE(
            testing::Message() << name(scene) << ", " << depth << " bits, " << shape.count());
        expect_the_references_bits(TestPlanes(scene, shape, depth));
      }
    }
  }
}

// Sums that cross many groups; the scenes whose sums wander make maps fail.
TEST_F(IntegerSsimVulkan, OfAFrameHasTheBitsOfTheLoop) {
  for (const Scene scene : kScenes) {
    SCOPED_TRACE(name(scene));
    expect_the_references_bits(TestPlanes(scene, {200, 319}, 8));
    expect_the_references_bits(TestPlanes(scene, {197, 320}, 12));
  }
}

// More than 4 MiB, so that a second batch is copied while the first is computed.
TEST_F(IntegerSsimVulkan, OfManyFramesHasTheBitsOfTheLoop) {
  expect_the_references_bits(TestPlanes(Scene::textured, {75, 180, 170}, 8));
}

TEST_F(IntegerSsimVulkan, PlanesMayLieAnyhow) {
  for (const Layout layout : {Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
    expect_the_references_bits(TestPlanes(Scene::textured, {3, 37, 141}, 8, layout));
    expect_the_references_bits(TestPlanes(Scene::textured, {3, 37, 141}, 10, layout));
  }
}

TEST_F(IntegerSsimVulkan, RefusesASampleAboveTheRangeAsTheCpuDoes) {
  TestPlanes planes(Scene::textured, {2, 40, 300}, 10);
  planes.y.elements<std::uint16_t>()[40 * 300 + 5] = 1024;
  for (const TestDevice& device : test::devices_of_each_arithmetic())
    EXPECT_THROW(scores_of(planes, device), InvalidArgument);
}

// Planes in memory of the device, of any layout and from any first element on.
class IntegerSsimInBuffers : public test::VulkanTest<> {};

TEST_F(IntegerSsimInBuffers, HasTheBitsOfTheLoop) {
  for (const Layout layout : {Layout::dense, Layout::permuted, Layout::reversed, Layout::sliced}) {
    for (const int depth : {8, 10, 16}) {
      const TestPlanes planes(Scene::textured, {3, 41, 133}, depth, layout);
      const Tensor x = test::in_vulkan_buffer(planes.x), y = test::in_vulkan_buffer(planes.y);
      const Tensor all = allocate({5}, DType::f64, x.device);
      Tensor value = all;
      value.offset = 2;
      value.shape = {3};
      integer_ssim_into(x, y, value, {.bit_depth = depth});
      const std::vector<double> expected = reference_integer_ssim(planes.pairs());
      EXPECT_EQ(test::elements_on_vulkan<double>(value), expected) << depth;
    }
  }
}

TEST_F(IntegerSsimInBuffers, OfSamplesAboveTheRangeIsNotANumber) {
  TestPlanes planes(Scene::textured, {2, 40, 300}, 10);
  planes.y.elements<std::uint16_t>()[40 * 300 + 5] = 1024;
  const Tensor scores = integer_ssim(
      test::in_vulkan_buffer(planes.x), test::in_vulkan_buffer(planes.y), {.bit_depth = 10});
  const std::vector<double> found = test::elements_on_vulkan<double>(scores);
  EXPECT_EQ(found[0], reference_integer_ssim(planes.pairs())[0]);
  EXPECT_TRUE(std::isnan(found[1]));
}

TEST_F(IntegerSsimInBuffers, OperationsWithoutKernelsAreRefused) {
  const TestPlanes planes(Scene::textured, {40, 30}, 8);
  EXPECT_THROW(libvmaf_psnr(planes.x, planes.y, {}, exec()), DeviceError);
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
