// SPDX-License-Identifier: Apache-2.0
// similis_mse(), similis_mae() and similis_psnr() against the C++ functions, bit for bit.
#include <gtest/gtest.h>

#include "similis/c/pixel_error.h"
#include "similis/pixel_error.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

constexpr Extents kShape = {2, 3, 7, 5};

TEST(PixelErrorCApi, DefaultsAreThoseOfCpp) {
  const similis_pixel_error_options c = SIMILIS_PIXEL_ERROR_DEFAULTS;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.data_range != 0, PsnrOptions{}.data_range.has_value());
  EXPECT_EQ(c.reduction, static_cast<int>(PsnrOptions{}.reduction));
}

// The results of one call.
struct Results {
  test::Array value = test::filled({2}, DType::f64, Layout::dense, test::kUntouched);
  test::Array x_gradient = test::filled(kShape, DType::f32, Layout::sliced, test::kUntouched);
  test::Array y_gradient = test::filled(kShape, DType::f32, Layout::reversed, test::kUntouched);
};

template <class IntoCpp, class IntoC> void expect_the_same(IntoCpp into_cpp, IntoC into_c) {
  const test::Array x = test::noise(kShape, DType::f32, Layout::permuted, 1, 1);
  const test::Array y = test::noise(kShape, DType::f32, Layout::offset, 2, 1);
  const test::Array upstream = test::noise({2}, DType::f32, Layout::offset, 3, 1);
  const test::Array mask = test::noise({2, 1, 7, 5}, DType::f64, Layout::permuted, 4, 1);
  const Results expected, results;
  into_cpp(x, y,
      {.upstream = upstream,
          .value = expected.value,
          .x_gradient = expected.x_gradient,
          .y_gradient = expected.y_gradient},
      {.reduction = Reduction::per_image, .mask = mask}, {});
  similis_pixel_error_options options = SIMILIS_PIXEL_ERROR_DEFAULTS;
  options.reduction = SIMILIS_REDUCTION_PER_IMAGE;
  const CTensor c_mask(mask);
  options.mask = c_mask.get();
  ASSERT_EQ(into_c(CTensor(x).get(), CTensor(y).get(), &options, CTensor(upstream).get(),
                CTensor(results.value).get(), CTensor(results.x_gradient).get(),
                CTensor(results.y_gradient).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(results.value), to_doubles(expected.value));
  EXPECT_EQ(to_doubles(results.x_gradient), to_doubles(expected.x_gradient));
  EXPECT_EQ(to_doubles(results.y_gradient), to_doubles(expected.y_gradient));
}

TEST(PixelErrorCApi, EveryArgumentArrives) {
  expect_the_same(mse_into, similis_mse);
  expect_the_same(mae_into, similis_mae);
}

TEST(PixelErrorCApi, PsnrIsThatOfCpp) {
  const test::Array x = test::noise(kShape, DType::u16, Layout::dense, 1, 1000);
  const test::Array y = test::noise(kShape, DType::u16, Layout::dense, 2, 1000);
  float value = 0;
  const CTensor c_value(TensorView(&value, {}, DType::f32));
  const auto run = [&](const similis_pixel_error_options* options) {
    return similis_psnr(CTensor(x).get(), CTensor(y).get(), options, c_value.get(), nullptr);
  };
  ASSERT_EQ(run(nullptr), SIMILIS_OK);
  EXPECT_EQ(value, item(psnr(x, y)));
  similis_pixel_error_options options = SIMILIS_PIXEL_ERROR_DEFAULTS;
  options.data_range = 1023;
  ASSERT_EQ(run(&options), SIMILIS_OK);
  EXPECT_EQ(value, item(psnr(x, y, {.data_range = 1023})));
  options.reserved = 1;
  EXPECT_EQ(run(&options), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "psnr: reserved is 1; it must be 0");
}

}  // namespace
}  // namespace similis
