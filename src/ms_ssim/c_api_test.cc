// SPDX-License-Identifier: Apache-2.0
// similis_ms_ssim() against ms_ssim_into(), which it must equal to the last bit.
#include <gtest/gtest.h>

#include "similis/c/ms_ssim.h"
#include "similis/ms_ssim.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

TEST(MsSsimCApi, DefaultsAreThoseOfCpp) {
  const similis_ms_ssim_options c = SIMILIS_MS_SSIM_DEFAULTS;
  const MsSsimOptions cpp;
  const MsSsimRequest request;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.data_range != 0, cpp.data_range.has_value());
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(c.window_size[axis], cpp.window_size.x());
    EXPECT_EQ(c.sigma[axis], cpp.sigma.x());
  }
  EXPECT_EQ(c.k1, cpp.k1);
  EXPECT_EQ(c.k2, cpp.k2);
  EXPECT_EQ(c.padding, static_cast<int>(cpp.padding));
  EXPECT_EQ(c.reduction, static_cast<int>(cpp.reduction));
  EXPECT_EQ(c.downsample, static_cast<int>(cpp.downsample));
  EXPECT_EQ(c.form, static_cast<int>(request.form));
}

TEST(MsSsimCApi, EnumeratorsAreThoseOfCpp) {
  EXPECT_EQ(+SIMILIS_DOWNSAMPLE_VAINF, static_cast<int>(Downsample::vainf));
  EXPECT_EQ(+SIMILIS_DOWNSAMPLE_CEIL, static_cast<int>(Downsample::ceil));
  EXPECT_EQ(+SIMILIS_DOWNSAMPLE_FLOOR, static_cast<int>(Downsample::floor));
  EXPECT_EQ(+SIMILIS_DOWNSAMPLE_PIQ, static_cast<int>(Downsample::piq));
}

// The results of one call.
struct Results {
  explicit Results(const Extents& shape)
      : value(test::filled({shape[0], shape[1]}, DType::f32, Layout::dense, test::kUntouched)),
        x_gradient(test::filled(shape, DType::f32, Layout::channels_last, test::kUntouched)),
        y_gradient(test::filled(shape, DType::f32, Layout::reversed, test::kUntouched)) {}
  test::Array value, x_gradient, y_gradient;
};

// Every option with another value to take differs from its default, and every tensor is given.
TEST(MsSsimCApi, EveryArgumentArrives) {
  for (const Extents& shape : {Extents{2, 3, 37, 41}, Extents{1, 2, 17, 21, 23}}) {
    const bool is_volume = shape.rank() == 5;
    const test::Array x = test::noise(shape, DType::f32, Layout::offset, 1, 1);
    const test::Array y = test::noise(shape, DType::f32, Layout::permuted, 2, 1);
    const test::Array upstream =
        test::noise({shape[0], shape[1]}, DType::f32, Layout::offset, 3, 1);
    Extents of_mask = shape;
    of_mask[1] = 1;
    const test::Array mask = test::noise(of_mask, DType::f64, Layout::permuted, 4, 1);
    const Results expected(shape);
    ms_ssim_into(x, y,
        {.form = SsimRequest::Form::loss,
            .upstream = upstream,
            .value = expected.value,
            .x_gradient = expected.x_gradient,
            .y_gradient = expected.y_gradient},
        {.data_range = 2,
            .window_size = is_volume ? PerAxis<int>(3, 5, 7) : PerAxis<int>(5, 7),
            .sigma = is_volume ? PerAxis<double>(0.8, 1.1, 1.9) : PerAxis<double>(1.1, 1.9),
            .k1 = 0.02,
            .k2 = 0.05,
            .padding = Padding::reflect,
            .reduction = Reduction::per_channel,
            .weights = {0.3, 0.7},
            .downsample = Downsample::ceil,
            .mask = mask});

    const Results results(shape);
    const double weights[] = {0.3, 0.7};
    similis_ms_ssim_options options = SIMILIS_MS_SSIM_DEFAULTS;
    options.data_range = 2;
    options.window_size[0] = 3, options.window_size[1] = 5, options.window_size[2] = 7;
    options.sigma[0] = 0.8, options.sigma[1] = 1.1, options.sigma[2] = 1.9;
    options.k1 = 0.02;
    options.k2 = 0.05;
    options.weights = weights;
    options.weight_count = 2;
    options.padding = SIMILIS_PADDING_REFLECT;
    options.reduction = SIMILIS_REDUCTION_PER_CHANNEL;
    options.downsample = SIMILIS_DOWNSAMPLE_CEIL;
    options.form = SIMILIS_FORM_LOSS;
    const CTensor c_mask(mask);
    options.mask = c_mask.get();
    ASSERT_EQ(similis_ms_ssim(CTensor(x).get(), CTensor(y).get(), &options, CTensor(upstream).get(),
                  CTensor(results.value).get(), CTensor(results.x_gradient).get(),
                  CTensor(results.y_gradient).get(), nullptr),
        SIMILIS_OK)
        << similis_last_error();
    EXPECT_EQ(to_doubles(results.value), to_doubles(expected.value));
    EXPECT_EQ(to_doubles(results.x_gradient), to_doubles(expected.x_gradient));
    EXPECT_EQ(to_doubles(results.y_gradient), to_doubles(expected.y_gradient));
  }
}

TEST(MsSsimCApi, NoWeightsAreTheFiveOfThePaper) {
  const test::Array x = test::noise({1, 1, 176, 176}, DType::f32, Layout::dense, 1, 1);
  const test::Array y = test::noise({1, 1, 176, 176}, DType::f32, Layout::dense, 2, 1);
  float value = 0;
  const CTensor c_value(TensorView(&value, {}, DType::f32));
  ASSERT_EQ(similis_ms_ssim(CTensor(x).get(), CTensor(y).get(), nullptr, nullptr, c_value.get(),
                nullptr, nullptr, nullptr),
      SIMILIS_OK);
  EXPECT_EQ(value, item(ms_ssim(x, y)));

  similis_ms_ssim_options options = SIMILIS_MS_SSIM_DEFAULTS;
  options.weight_count = 5;
  EXPECT_EQ(similis_ms_ssim(CTensor(x).get(), CTensor(y).get(), &options, nullptr, c_value.get(),
                nullptr, nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(),
      "ms_ssim: weights is NULL with a count of 5; it must point to as many numbers");
}

}  // namespace
}  // namespace similis
