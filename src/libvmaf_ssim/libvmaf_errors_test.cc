// SPDX-License-Identifier: Apache-2.0
// The refusals of libvmaf's SSIM family, word for word.
#include <gtest/gtest.h>

#include "src/libvmaf_ssim/test_planes.h"
#include "tests/refusal.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using test::Layout;

test::Array plane(const Extents& shape, DType dtype, double sample = 0) {
  return test::make(shape, dtype, Layout::dense, [&](std::int64_t) { return sample; });
}

TEST(LibvmafSsimRefuses, PlanesThatAreNone) {
  const test::Array bytes = plane({20, 30}, DType::u8), line = plane({30}, DType::u8);
  const test::Array wider = plane({20, 31}, DType::u8), words = plane({20, 30}, DType::u16);
  const test::Array floats = plane({20, 30}, DType::f32), images = plane({1, 1, 20, 30}, DType::u8);
  test::expect_refusal([&] { integer_ssim(line, line); },
      "integer_ssim: x has shape [30]; it must be [H, W] or [N, H, W]");
  test::expect_refusal([&] { float_ssim(images, images); },
      "float_ssim: x has shape [1, 1, 20, 30]; it must be [H, W] or [N, H, W]");
  test::expect_refusal([&] { integer_ssim(bytes, wider); },
      "integer_ssim: y has shape [20, 31]; it must be that of x, [20, 30]");
  test::expect_refusal(
      [&] { libvmaf_psnr(bytes, words); }, "libvmaf_psnr: y is uint16; it must be uint8 as x is");
  test::expect_refusal([&] { float_ms_ssim(floats, floats); },
      "float_ms_ssim: x is float32; it must be uint8 or uint16");
}

TEST(LibvmafSsimRefuses, DepthsThatDoNotFit) {
  const test::Array bytes = plane({20, 30}, DType::u8), words = plane({20, 30}, DType::u16, 1023);
  const test::Array above = plane({20, 30}, DType::u16, 1024);
  test::expect_refusal([&] { integer_ssim(bytes, bytes, {.bit_depth = 10}); },
      "integer_ssim: bit_depth is 10; it must be 8 for uint8");
  test::expect_refusal([&] { float_ssim(words, words, {.bit_depth = 9}); },
      "float_ssim: bit_depth is 9; it must be 8, 10, 12 or 16");
  EXPECT_EQ(item(integer_ssim(words, words, {.bit_depth = 10})), 1);
  test::expect_refusal([&] { integer_ssim(above, words, {.bit_depth = 10}); },
      "integer_ssim: x holds a sample of 1024; with bit_depth 10 none may be above 1023");
  test::expect_refusal([&] { libvmaf_psnr(words, above, {.bit_depth = 10}); },
      "libvmaf_psnr: y holds a sample of 1024; with bit_depth 10 none may be above 1023");
}

// One sample among many, where rows are not dense.
TEST(LibvmafSsimRefuses, OneSampleAboveTheRange) {
  const auto sample = [](std::int64_t i) { return i == 3 * 130 * 70 - 1 ? 4096.0 : 4095.0; };
  for (const Layout layout : {Layout::dense, Layout::sliced, Layout::permuted}) {
    const test::Array planes = test::make({3, 130, 70}, DType::u16, layout, sample);
    test::expect_refusal([&] { float_ssim(planes, planes, {.bit_depth = 12, .scale = 1}); },
        "float_ssim: x holds a sample of 4096; with bit_depth 12 none may be above 4095");
  }
}

TEST(LibvmafSsimRefuses, PlanesTooSmall) {
  const test::Array narrow = plane({40, 10}, DType::u8), small = plane({175, 175}, DType::u8);
  test::expect_refusal([&] { float_ssim(narrow, narrow); },
      "float_ssim: x has shape [40, 10]; at scale 1 that leaves [40, 10], and both must be at "
      "least 11");
  const test::Array two = plane({2, 100, 175}, DType::u8);
  test::expect_refusal([&] { float_ssim(two, two, {.scale = 10}); },
      "float_ssim: x has shape [2, 100, 175]; at scale 10 that leaves [10, 18], and both must be "
      "at "
      "least 11");
  test::expect_refusal([&] { float_ssim(small, small, {.scale = 11}); },
      "float_ssim: scale is 11; it must be a whole number from 0 to 10");
  test::expect_refusal([&] { float_ms_ssim(small, small); },
      "float_ms_ssim: x has shape [175, 175]; height and width must be at least 176");
}

TEST(LibvmafSsimRefuses, PlanesTooLarge) {
  const std::uint8_t sample = 0;
  const TensorView planes(&sample, {1 << 19, (1 << 17) + 1}, {0, 0}, DType::u8);
  test::expect_refusal([&] { integer_ssim(planes, planes); },
      "integer_ssim: x has shape [524288, 131073]; a plane must have at most 2^36 samples");
}

TEST(LibvmafSsimRefuses, ResultsThatDoNotFit) {
  const test::Array one = plane({200, 300}, DType::u8), two = plane({2, 200, 300}, DType::u8);
  const Tensor scalar = allocate({}, DType::f64), five = allocate({5}, DType::f64);
  const Tensor half = allocate({}, DType::f32);
  const Tensor sliced = test::filled({2}, DType::f64, Layout::sliced, 0);
  test::expect_refusal([&] { integer_ssim_into(one, one, {}); },
      "integer_ssim: value is empty; it must have the result's shape, []");
  test::expect_refusal([&] { integer_ssim_into(two, two, scalar); },
      "integer_ssim: value has shape []; it must be that of the result, [2]");
  test::expect_refusal([&] { libvmaf_psnr_into(one, one, half); },
      "libvmaf_psnr: value is float32; it must be float64");
  test::expect_refusal([&] { integer_ssim_into(two, two, sliced); },
      "integer_ssim: value has strides [2]; it must be dense, [1]");
  test::expect_refusal([&] { float_ssim_into(one, one, {.structure = five}); },
      "float_ssim: structure has shape [5]; it must be that of the result, []");
  test::expect_refusal([&] { float_ms_ssim_into(two, two, {.contrast = five}); },
      "float_ms_ssim: contrast has shape [5]; it must be that of the result, [2, 5]");
}

TEST(LibvmafSsimRefuses, PlanesOnAGpuButForIntegerSsim) {
  TensorView planes = plane({200, 300}, DType::u8);
  planes.device = {DeviceKind::cuda, 0};
  EXPECT_THROW(float_ssim(planes, planes), DeviceError);
  EXPECT_THROW(float_ms_ssim(planes, planes), DeviceError);
  EXPECT_THROW(libvmaf_psnr(planes, planes), DeviceError);
  planes.device.index = 1000;
  EXPECT_THROW(integer_ssim(planes, planes), DeviceError);
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
