// SPDX-License-Identifier: Apache-2.0
// The C entries of libvmaf's SSIM family against the C++ functions, bit for bit.
#include <gtest/gtest.h>

#include "similis/c/libvmaf_ssim.h"
#include "similis/c/vulkan.h"
#include "src/gpu/device.h"
#include "src/libvmaf_ssim/test_planes.h"
#include "tests/c_tensor.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using test::CTensor;

TEST(LibvmafSsimCApi, DefaultsAreThoseOfCpp) {
  const similis_integer_ssim_options integer = SIMILIS_INTEGER_SSIM_DEFAULTS;
  const similis_float_ssim_options single = SIMILIS_FLOAT_SSIM_DEFAULTS;
  const similis_float_ms_ssim_options scales = SIMILIS_FLOAT_MS_SSIM_DEFAULTS;
  const similis_libvmaf_psnr_options psnr = SIMILIS_LIBVMAF_PSNR_DEFAULTS;
  EXPECT_EQ(integer.struct_size, sizeof(integer));
  EXPECT_EQ(single.struct_size, sizeof(single));
  EXPECT_EQ(scales.struct_size, sizeof(scales));
  EXPECT_EQ(psnr.struct_size, sizeof(psnr));
  EXPECT_EQ(integer.bit_depth, IntegerSsimOptions{}.bit_depth.value_or(0));
  EXPECT_EQ(single.bit_depth, FloatSsimOptions{}.bit_depth.value_or(0));
  EXPECT_EQ(single.scale, FloatSsimOptions{}.scale);
  EXPECT_EQ(single.enable_db != 0, FloatSsimOptions{}.enable_db);
  EXPECT_EQ(single.clip_db != 0, FloatSsimOptions{}.clip_db);
  EXPECT_EQ(scales.bit_depth, FloatMsSsimOptions{}.bit_depth.value_or(0));
  EXPECT_EQ(scales.enable_db != 0, FloatMsSsimOptions{}.enable_db);
  EXPECT_EQ(scales.clip_db != 0, FloatMsSsimOptions{}.clip_db);
  EXPECT_EQ(psnr.bit_depth, LibvmafPsnrOptions{}.bit_depth.value_or(0));
}

class LibvmafSsimC : public testing::Test {
 protected:
  const TestPlanes planes_{Scene::textured, {2, 177, 180}, 10};
  const CTensor x_{planes_.x}, y_{planes_.y};
  const Tensor value_ = allocate({2}, DType::f64);
  const CTensor c_value_{value_};
};

TEST_F(LibvmafSsimC, IntegerSsimIsThatOfCpp) {
  similis_integer_ssim_options options = SIMILIS_INTEGER_SSIM_DEFAULTS;
  options.bit_depth = 10;
  ASSERT_EQ(similis_integer_ssim(x_.get(), y_.get(), &options, c_value_.get(), nullptr), SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(value_), to_doubles(integer_ssim(planes_.x, planes_.y, {.bit_depth = 10})));
  ASSERT_EQ(similis_integer_ssim(x_.get(), y_.get(), nullptr, c_value_.get(), nullptr), SIMILIS_OK);
  EXPECT_EQ(to_doubles(value_), to_doubles(integer_ssim(planes_.x, planes_.y)));
  options.reserved = 2;
  EXPECT_EQ(similis_integer_ssim(x_.get(), y_.get(), &options, c_value_.get(), nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "integer_ssim: reserved is 2; it must be 0");
}

// With the CPU's bits where there is a device; else C says why there is none.
TEST_F(LibvmafSsimC, IntegerSsimThroughVulkanIsThatOfTheCpu) {
  similis_vulkan_device* device = nullptr;
  const similis_status status = similis_vulkan_device_create(0, &device);
  if (gpu::device_count(DeviceKind::vulkan) == 0) {
    EXPECT_EQ(status, SIMILIS_DEVICE_ERROR);
    EXPECT_NE(std::string(similis_last_error()).find(gpu::describe(DeviceKind::vulkan)),
        std::string::npos)
        << similis_last_error();
    return;
  }
  ASSERT_EQ(status, SIMILIS_OK) << similis_last_error();
  EXPECT_STRNE(similis_vulkan_device_name(device), "");
  EXPECT_EQ(similis_vulkan_device_id(device).type, SIMILIS_VULKAN);
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.vulkan = device;
  similis_integer_ssim_options options = SIMILIS_INTEGER_SSIM_DEFAULTS;
  options.bit_depth = 10;
  ASSERT_EQ(
      similis_integer_ssim(x_.get(), y_.get(), &options, c_value_.get(), &execution), SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(value_), to_doubles(integer_ssim(planes_.x, planes_.y, {.bit_depth = 10})));
  execution.stream = device;
  EXPECT_EQ(similis_integer_ssim(x_.get(), y_.get(), &options, c_value_.get(), &execution),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(
      similis_last_error(), "integer_ssim: execution has both a stream and a Vulkan device");
  similis_vulkan_device_destroy(device);
  EXPECT_EQ(similis_vulkan_device_create(0, nullptr), SIMILIS_INVALID_ARGUMENT);
}

TEST_F(LibvmafSsimC, PsnrIsThatOfCpp) {
  similis_libvmaf_psnr_options options = SIMILIS_LIBVMAF_PSNR_DEFAULTS;
  options.bit_depth = 10;
  ASSERT_EQ(similis_libvmaf_psnr(x_.get(), y_.get(), &options, c_value_.get(), nullptr), SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(value_), to_doubles(libvmaf_psnr(planes_.x, planes_.y, {.bit_depth = 10})));
}

TEST_F(LibvmafSsimC, FloatSsimIsThatOfCpp) {
  const Tensor luminance = allocate({2}, DType::f64), contrast = allocate({2}, DType::f64),
               structure = allocate({2}, DType::f64);
  similis_float_ssim_options options = SIMILIS_FLOAT_SSIM_DEFAULTS;
  options.bit_depth = 10;
  options.scale = 3;
  options.enable_db = 1;
  options.clip_db = 1;
  ASSERT_EQ(
      similis_float_ssim(x_.get(), y_.get(), &options, c_value_.get(), CTensor(luminance).get(),
          CTensor(contrast).get(), CTensor(structure).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  const FloatSsimOptions same = {.bit_depth = 10, .scale = 3, .enable_db = true, .clip_db = true};
  EXPECT_EQ(to_doubles(value_), to_doubles(float_ssim(planes_.x, planes_.y, same)));
  for (const auto& [member, result] : {std::pair{&FloatSsimRequest::luminance, luminance},
           std::pair{&FloatSsimRequest::contrast, contrast},
           std::pair{&FloatSsimRequest::structure, structure}}) {
    const Tensor expected = allocate({2}, DType::f64);
    FloatSsimRequest request;
    request.*member = expected;
    float_ssim_into(planes_.x, planes_.y, request, same);
    EXPECT_EQ(to_doubles(result), to_doubles(expected));
  }
  options.enable_db = 2;
  EXPECT_EQ(similis_float_ssim(
                x_.get(), y_.get(), &options, c_value_.get(), nullptr, nullptr, nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
}

TEST_F(LibvmafSsimC, FloatMsSsimIsThatOfCpp) {
  const Tensor luminance = allocate({2, 5}, DType::f64), contrast = allocate({2, 5}, DType::f64),
               structure = allocate({2, 5}, DType::f64);
  similis_float_ms_ssim_options options = SIMILIS_FLOAT_MS_SSIM_DEFAULTS;
  options.bit_depth = 10;
  options.enable_db = 1;
  ASSERT_EQ(
      similis_float_ms_ssim(x_.get(), y_.get(), &options, c_value_.get(), CTensor(luminance).get(),
          CTensor(contrast).get(), CTensor(structure).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  const FloatMsSsimOptions same = {.bit_depth = 10, .enable_db = true};
  EXPECT_EQ(to_doubles(value_), to_doubles(float_ms_ssim(planes_.x, planes_.y, same)));
  const Tensor l = allocate({2, 5}, DType::f64), c = allocate({2, 5}, DType::f64),
               s = allocate({2, 5}, DType::f64);
  float_ms_ssim_into(planes_.x, planes_.y, {.luminance = l, .contrast = c, .structure = s}, same);
  EXPECT_EQ(to_doubles(luminance), to_doubles(l));
  EXPECT_EQ(to_doubles(contrast), to_doubles(c));
  EXPECT_EQ(to_doubles(structure), to_doubles(s));
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
