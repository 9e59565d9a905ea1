// SPDX-License-Identifier: Apache-2.0
// The probe's findings, on a device as it is and on one that was made to round wrongly.
#include "src/gpu/vulkan/arithmetic.h"

#include <gtest/gtest.h>

#include <string_view>

#include "similis/error.hpp"
#include "similis/vulkan.hpp"
#include "src/gpu/device.h"
#include "src/gpu/vulkan/commands.h"
#include "src/gpu/vulkan/module.h"
#include "src/gpu/vulkan/test_device.h"

namespace similis::gpu::vulkan {
namespace {

using test::TestDevice;

class Probe : public test::VulkanTest<> {};

TEST_F(Probe, FindsDevicesExact) {
  const TestDevice device;
  EXPECT_EQ(device.arithmetic().problem, "");
  EXPECT_EQ(device.arithmetic().uses_device_doubles, device.gpu().described().has_doubles);
  EXPECT_TRUE(verdict(device.arithmetic()).starts_with("exact, with "));
}

TEST_F(Probe, TakesIntegersWhereTheDeviceRoundsWrongly) {
  const TestDevice fma("wrong_fma");
  EXPECT_EQ(fma.arithmetic().problem, "");
  EXPECT_FALSE(fma.arithmetic().uses_device_fma);
  const TestDevice doubles("wrong_f64");
  EXPECT_EQ(doubles.arithmetic().problem, "");
  EXPECT_FALSE(doubles.arithmetic().uses_device_doubles);
  EXPECT_EQ(verdict(TestDevice("integer_fma,integer_f64").arithmetic()),
      "exact, with an integer fused multiply-add and doubles in integers");
}

TEST_F(Probe, RefusesWhatIntegersCannotMakeUpFor) {
  const auto problem = [](const char* switches) {
    return TestDevice(switches).arithmetic().problem;
  };
  EXPECT_EQ(
      problem("wrong_sum"), "its driver fuses products with sums that are to be rounded apart");
  EXPECT_EQ(problem("wrong_quotient"), "its reciprocals are too far off for exact quotients");
  EXPECT_EQ(problem("wrong_fma,wrong_integers"), "its integers of 64 bits give wrong results");
  EXPECT_EQ(problem("integer_f64,wrong_integers"), "its integers of 64 bits give wrong results");
  const TestDevice wrong("wrong_sum");
  try {
    wrong.gpu().exact_arithmetic("integer_ssim");
    ADD_FAILURE() << "a device that contracts was taken";
  } catch (const DeviceError& error) {
    EXPECT_EQ(std::string(error.what()),
        std::string("integer_ssim: vulkan:0 is ") + wrong.gpu().described().properties.deviceName +
            ", and its driver fuses products with sums that are to be rounded apart");
  }
}

TEST_F(Probe, RefusesOtherWords) { EXPECT_THROW(TestDevice("wrong_mind"), InvalidArgument); }

TEST(Modules, AreSpirv) {
  ASSERT_FALSE(embedded_modules().empty());
  for (const EmbeddedModule& module : embedded_modules()) {
    const std::vector<std::uint32_t> words = module_words(module.name);
    ASSERT_EQ(words.size(), module.words) << module.name;
    EXPECT_EQ(words[0], 0x07230203u) << module.name;
    std::size_t at = 5;  // instructions, each of which begins with its length
    while (at < words.size() && words[at] >> 16 != 0) at += words[at] >> 16;
    EXPECT_EQ(at, words.size()) << module.name;
  }
}

// Devices that lack f16, storage of 16 bits or doubles run every module, or its other variant.
TEST(Modules, NeedNoFeatureThatDevicesLack) {
  constexpr std::uint32_t kOpCapability = 17, kShader = 1, kFloat64 = 10, kInt64 = 11;
  for (const EmbeddedModule& module : embedded_modules()) {
    const std::vector<std::uint32_t> words = module_words(module.name);
    const bool may_have_doubles = std::string_view(module.name).ends_with("_f64");
    for (std::size_t at = 5; (words[at] & 0xffff) == kOpCapability; at += words[at] >> 16) {
      const std::uint32_t needed = words[at + 1];
      EXPECT_TRUE(needed == kShader || needed == kInt64 || (needed == kFloat64 && may_have_doubles))
          << module.name << " needs capability " << needed;
    }
  }
}

TEST_F(Probe, MemoryKeepsWhatIsCopiedToIt) {
  const VulkanDevice device;
  EXPECT_FALSE(device.name().empty());
  EXPECT_EQ(VulkanDevice(device.name()).device(), device.device());
  EXPECT_THROW(VulkanDevice(1000), DeviceError);
  EXPECT_THROW(VulkanDevice("no such device"), DeviceError);
  const Tensor tensor = allocate({3}, DType::f64, device.device());
  const double elements[] = {1, 2, 3};
  copy_from_cpu(tensor, elements, sizeof elements, nullptr);
  TensorView last = tensor;
  last.offset = 2;
  last.shape = {};
  last.strides = {};
  EXPECT_EQ(item(last), 3);
}

// More memory than is kept, so that some is given back to the driver, while work is under way.
TEST_F(Probe, MemoryIsUsedAgain) {
  const TestDevice device;
  for (int round = 0; round < 20; ++round) {
    Commands commands(device.gpu());
    for (int i = 1; i <= 4; ++i) {
      const VkBuffer buffer = commands.workspace(static_cast<std::size_t>(i) * 20'000'000);
      commands.clear(buffer, 1024);
    }
    commands.submit();
  }
  SUCCEED();
}

}  // namespace
}  // namespace similis::gpu::vulkan
