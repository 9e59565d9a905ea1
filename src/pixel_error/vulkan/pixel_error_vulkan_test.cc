// SPDX-License-Identifier: Apache-2.0
// MSE, MAE and PSNR through Vulkan against the reference. Skipped, with a message, where there is
// no device.
#include <gtest/gtest.h>

#include <cmath>

#include "similis/pixel_error.hpp"
#include "similis/vulkan.hpp"
#include "src/core/require.h"
#include "src/core/tensor/doubles.h"
#include "src/core/tensor/reduction.h"
#include "src/gpu/vulkan/test_device.h"
#include "src/pixel_error/reference.h"
#include "tests/arrays.h"

namespace similis::pixel_error_internal {
namespace {

using test::Layout;

constexpr Reduction kReductions[] = {
    Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel};

class PixelErrorVulkan : public test::VulkanTest<> {
 protected:
  void expect_the_references(
      const Extents& shape, DType dtype, Layout layout, Reduction reduction, Error error) const {
    SCOPED_TRACE(fmt::format("{} {} {} {}", shape, name(dtype), test::name(layout),
        error == Error::squared ? "mse" : "mae"));
    const double range = dtype == DType::u8 ? 256 : 1;
    const test::Array x = test::noise(shape, dtype, layout, 1, range);
    const test::Array y = test::noise(shape, dtype, Layout::dense, 2, range);
    const Tensor value = allocate(reduced_shape(shape, reduction), DType::f64);
    const Tensor upstream = test::make(value.shape, DType::f64, Layout::reversed,
        [](std::int64_t i) { return 64 * (test::uniform(3, i) - 0.5); });
    const Reference expected =
        reference_pixel_error(error, x, y, {.reduction = reduction}, upstream);
    PixelErrorRequest request{.upstream = upstream, .value = value};
    test::Array x_gradient, y_gradient;
    const bool has_gradient = dtype != DType::u8;
    if (has_gradient) {
      x_gradient = test::filled(shape, dtype, layout, test::kUntouched);
      y_gradient = test::filled(shape, dtype, Layout::dense, test::kUntouched);
      request.x_gradient = x_gradient;
      request.y_gradient = y_gradient;
    }
    (error == Error::squared ? mse_into : mae_into)(
        x, y, request, {.reduction = reduction}, exec());
    EXPECT_LT(test::relative_l2(to_doubles(value), expected.value), 1e-6);
    if (!has_gradient) return;
    const double rounding = dtype == DType::f32 ? 0x1p-22 : dtype == DType::f16 ? 0x1p-10 : 0x1p-7;
    EXPECT_LT(test::relative_l2(to_doubles(x_gradient), expected.x_gradient), rounding);
    EXPECT_LT(test::relative_l2(to_doubles(y_gradient), expected.y_gradient), rounding);
    EXPECT_TRUE(test::only_elements_written(x_gradient));
    EXPECT_TRUE(test::only_elements_written(y_gradient));
  }
};

TEST_F(PixelErrorVulkan, IsTheReferencesOfEachTypeLayoutAndReduction) {
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (const Layout layout :
        {Layout::dense, Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
      for (const Reduction reduction : kReductions) {
        for (const Error error : {Error::squared, Error::absolute})
          expect_the_references({2, 3, 13, 57}, dtype, layout, reduction, error);
      }
    }
  }
}

TEST_F(PixelErrorVulkan, IsTheReferencesOfEachRank) {
  for (const Extents& shape :
      {Extents{3, 5}, Extents{1, 2, 4099}, Extents{2, 1, 3, 50, 41}, Extents{2, 3, 36, 28}}) {
    for (const Reduction reduction : kReductions)
      expect_the_references(shape, DType::f32, Layout::dense, reduction, Error::squared);
  }
}

TEST_F(PixelErrorVulkan, PsnrIsTheCpusOnTheDeviceAndOffIt) {
  const Extents shape{3, 2, 17, 31};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  for (const double noise : {1.0, 0.3, 1e-3, 1e-6}) {
    const test::Array y = test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) {
      return x.elements<float>()[i] + noise * (test::uniform(7, i) - 0.5);
    });
    const PsnrOptions options{.data_range = 3.7, .reduction = Reduction::per_image};
    const std::vector<double> expected = to_doubles(psnr(x, y, options));
    const std::vector<double> staged = to_doubles(psnr(x, y, options, exec()));
    const std::vector<float> found = test::elements_on_vulkan<float>(
        psnr(test::in_vulkan_buffer(x), test::in_vulkan_buffer(y), options, exec()));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(staged[i], expected[i], 2e-5) << noise;  // a unit of f32
      EXPECT_NEAR(found[i], expected[i], 2e-5) << noise;
    }
  }
  const Tensor same = test::in_vulkan_buffer(x);
  EXPECT_EQ(test::elements_on_vulkan<float>(psnr(same, same, {}, exec()))[0], HUGE_VALF);
}

TEST_F(PixelErrorVulkan, APixelThatIsNotANumberMakesItsResultNaNAlone) {
  test::Array x = test::noise({2, 1, 9, 9}, DType::f32, Layout::dense, 1, 1);
  const test::Array y = test::noise({2, 1, 9, 9}, DType::f32, Layout::dense, 2, 1);
  x.elements<float>()[40] = std::nanf("");
  for (const auto& function : {mse, mae}) {
    const std::vector<double> found =
        to_doubles(function(x, y, {.reduction = Reduction::per_image}, exec()));
    EXPECT_TRUE(std::isnan(found[0]));
    EXPECT_FALSE(std::isnan(found[1]));
  }
}

TEST_F(PixelErrorVulkan, RefusesWhatItHasNoKernelsFor) {
  const test::Array x = test::noise({1, 1, 8, 8}, DType::f32, Layout::dense, 1, 1);
  const test::Array mask = test::noise({1, 1, 8, 8}, DType::f32, Layout::dense, 2, 1);
  EXPECT_THROW(mse(x, x, {.mask = mask}, exec()), DeviceError);
  EXPECT_THROW(psnr(x, x, {.mask = mask}, exec()), DeviceError);
  const test::Array doubles = test::noise({1, 1, 8, 8}, DType::f64, Layout::dense, 1, 1);
  EXPECT_THROW(mae(doubles, doubles, {}, exec()), DeviceError);
}

}  // namespace
}  // namespace similis::pixel_error_internal
