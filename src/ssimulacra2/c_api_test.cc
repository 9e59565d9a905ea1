// SPDX-License-Identifier: Apache-2.0
// The C functions of SSIMULACRA 2 against the C++ ones, bit for bit.
#include <gtest/gtest.h>

#include "similis/c/ssimulacra2.h"
#include "similis/c/vulkan.h"
#include "similis/ssimulacra2.hpp"
#include "src/core/tensor/doubles.h"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

constexpr Extents kShape = {2, 3, 21, 18}, kOneShape = {3, 21, 18};

TEST(Ssimulacra2CApi, DefaultsAreThoseOfCpp) {
  const similis_ssimulacra2_options c = SIMILIS_SSIMULACRA2_DEFAULTS;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.mode, static_cast<int>(Ssimulacra2Options{}.mode));
  EXPECT_EQ(c.transfer, static_cast<int>(Ssimulacra2Options{}.transfer));
  EXPECT_EQ(SIMILIS_SSIMULACRA2_FAST, static_cast<int>(Ssimulacra2Mode::fast));
  EXPECT_EQ(SIMILIS_TRANSFER_LINEAR, static_cast<int>(Ssimulacra2Transfer::linear));
}

TEST(Ssimulacra2CApi, EveryArgumentArrives) {
  const test::Array x = test::noise(kShape, DType::f32, Layout::offset, 1, 1);
  const test::Array y = test::noise(kShape, DType::f32, Layout::channels_last, 2, 1);
  const test::Array value = test::filled({2}, DType::f64, Layout::dense, test::kUntouched);
  const test::Array map = test::filled({2, 21, 18}, DType::f32, Layout::dense, test::kUntouched);
  const test::Array expected_value = value, expected_map = test::filled({2, 21, 18}, DType::f32,
                                                Layout::dense, test::kUntouched);
  similis_ssimulacra2_options options = SIMILIS_SSIMULACRA2_DEFAULTS;
  options.mode = SIMILIS_SSIMULACRA2_FAST;
  options.transfer = SIMILIS_TRANSFER_LINEAR;
  ASSERT_EQ(similis_ssimulacra2_map(CTensor(x).get(), CTensor(y).get(), &options,
                CTensor(value).get(), CTensor(map).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  const std::vector<double> scores = to_doubles(value);
  ssimulacra2_into(x, y, {.value = expected_value, .map = expected_map},
      {.mode = Ssimulacra2Mode::fast, .transfer = Ssimulacra2Transfer::linear});
  EXPECT_EQ(scores, to_doubles(expected_value));
  EXPECT_EQ(to_doubles(map), to_doubles(expected_map));
}

TEST(Ssimulacra2CApi, ThroughVulkanItHasTheBitsOfTheCpu) {
  similis_vulkan_device* device = nullptr;
  if (similis_vulkan_device_create(0, &device) != SIMILIS_OK) GTEST_SKIP() << similis_last_error();
  const test::Array x = test::noise(kShape, DType::u8, Layout::dense, 1, 256);
  const test::Array y = test::noise(kShape, DType::u8, Layout::dense, 2, 256);
  const test::Array value = test::filled({2}, DType::f64, Layout::dense, test::kUntouched);
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.vulkan = device;
  ASSERT_EQ(similis_ssimulacra2(
                CTensor(x).get(), CTensor(y).get(), nullptr, CTensor(value).get(), &execution),
      SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(value), to_doubles(ssimulacra2(x, y)));
  similis_vulkan_device_destroy(device);
}

TEST(Ssimulacra2CApi, AReferenceIsKept) {
  const test::Array x = test::noise(kOneShape, DType::u8, Layout::dense, 1, 256);
  const test::Array y = test::noise(kShape, DType::u8, Layout::dense, 2, 256);
  const test::Array value = test::filled({2}, DType::f64, Layout::dense, test::kUntouched);
  similis_ssimulacra2_reference* reference = nullptr;
  ASSERT_EQ(similis_ssimulacra2_reference_create(CTensor(x).get(), nullptr, nullptr, &reference),
      SIMILIS_OK)
      << similis_last_error();
  ASSERT_EQ(similis_ssimulacra2_reference_score(
                reference, CTensor(y).get(), CTensor(value).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  similis_ssimulacra2_reference_destroy(reference);
  EXPECT_EQ(to_doubles(value), to_doubles(Ssimulacra2Reference(x).score(y)));
}

TEST(Ssimulacra2CApi, RefusesWhatIsMissing) {
  const test::Array x = test::noise(kOneShape, DType::u8, Layout::dense, 1, 256);
  EXPECT_EQ(similis_ssimulacra2_reference_create(CTensor(x).get(), nullptr, nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(),
      "similis_ssimulacra2_reference_create: reference is NULL; it must point to a pointer");
  EXPECT_EQ(similis_ssimulacra2_reference_score(nullptr, CTensor(x).get(), nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(),
      "similis_ssimulacra2_reference_score: reference is NULL; it must have been created");
  const test::Array value = test::filled({}, DType::f64, Layout::dense, test::kUntouched);
  ASSERT_EQ(similis_ssimulacra2(
                CTensor(x).get(), CTensor(x).get(), nullptr, CTensor(value).get(), nullptr),
      SIMILIS_OK);
  EXPECT_EQ(to_doubles(value)[0], 100);
  similis_ssimulacra2_options options = SIMILIS_SSIMULACRA2_DEFAULTS;
  options.mode = 2;
  EXPECT_EQ(similis_ssimulacra2(
                CTensor(x).get(), CTensor(x).get(), &options, CTensor(value).get(), nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "ssimulacra2: mode is 2; it must be exact or fast");
}

}  // namespace
}  // namespace similis
