// SPDX-License-Identifier: Apache-2.0
// similis_ssim() against ssim_into(), which it must equal to the last bit.
#include <gtest/gtest.h>

#include <string>

#include "similis/c/ssim.h"
#include "similis/ssim.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

TEST(SsimCApi, DefaultsAreThoseOfCpp) {
  const similis_ssim_options c = SIMILIS_SSIM_DEFAULTS;
  const SsimOptions cpp;
  const SsimRequest request;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.data_range != 0, cpp.data_range.has_value());
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(c.window_size[axis], cpp.window_size.x());
    EXPECT_EQ(c.sigma[axis], cpp.sigma.x());
  }
  EXPECT_EQ(c.k1, cpp.k1);
  EXPECT_EQ(c.k2, cpp.k2);
  EXPECT_EQ(c.padding, static_cast<int>(cpp.padding));
  EXPECT_EQ(c.window, static_cast<int>(cpp.window));
  EXPECT_EQ(c.sample_covariance != 0, cpp.sample_covariance);
  EXPECT_EQ(c.reduction, static_cast<int>(cpp.reduction));
  EXPECT_EQ(c.form, static_cast<int>(request.form));
  EXPECT_EQ(c.ssim_weight, request.ssim_weight);
  EXPECT_EQ(c.l1_weight, request.l1_weight);
}

TEST(SsimCApi, EnumeratorsAreThoseOfCpp) {
  EXPECT_EQ(+SIMILIS_PADDING_VALID, static_cast<int>(Padding::valid));
  EXPECT_EQ(+SIMILIS_PADDING_SAME, static_cast<int>(Padding::same));
  EXPECT_EQ(+SIMILIS_PADDING_REFLECT, static_cast<int>(Padding::reflect));
  EXPECT_EQ(+SIMILIS_PADDING_REPLICATE, static_cast<int>(Padding::replicate));
  EXPECT_EQ(+SIMILIS_PADDING_RENORMALIZE, static_cast<int>(Padding::renormalize));
  EXPECT_EQ(+SIMILIS_REDUCTION_MEAN, static_cast<int>(Reduction::mean));
  EXPECT_EQ(+SIMILIS_REDUCTION_SUM, static_cast<int>(Reduction::sum));
  EXPECT_EQ(+SIMILIS_REDUCTION_NONE, static_cast<int>(Reduction::none));
  EXPECT_EQ(+SIMILIS_REDUCTION_PER_IMAGE, static_cast<int>(Reduction::per_image));
  EXPECT_EQ(+SIMILIS_REDUCTION_PER_CHANNEL, static_cast<int>(Reduction::per_channel));
  EXPECT_EQ(+SIMILIS_FORM_LOSS, static_cast<int>(SsimRequest::Form::loss));
}

// The results of one pass.
struct Results {
  explicit Results(const Extents& shape)
      : value(test::filled(shape, DType::f32, Layout::dense, test::kUntouched)),
        x_gradient(test::filled(shape, DType::f32, Layout::channels_last, test::kUntouched)),
        y_gradient(test::filled(shape, DType::f32, Layout::reversed, test::kUntouched)) {}
  test::Array value, x_gradient, y_gradient;
};

// Every option differs from its default, and every tensor is given.
TEST(SsimCApi, EveryArgumentArrives) {
  for (const Extents& shape : {Extents{2, 3, 17, 19}, Extents{1, 2, 9, 11, 13}}) {
    const bool is_volume = shape.rank() == 5;
    // A box leaves sigma unread, which the volume therefore has under a Gaussian window.
    const WindowShape window = is_volume ? WindowShape::gaussian : WindowShape::box;
    const test::Array x = test::noise(shape, DType::f32, Layout::offset, 1, 1);
    const test::Array y = test::noise(shape, DType::f32, Layout::permuted, 2, 1);
    const test::Array upstream = test::noise(shape, DType::f32, Layout::offset, 3, 1);
    const test::Array mask = test::noise(shape, DType::f32, Layout::dense, 4, 1);
    const test::Array valid_mask = test::noise(shape, DType::f32, Layout::dense, 5, 1);
    const Results expected(shape);
    ssim_into(x, y,
        {.form = SsimRequest::Form::loss,
            .l1_weight = 0.3,
            .ssim_weight = 0.7,
            .upstream = upstream,
            .value = expected.value,
            .x_gradient = expected.x_gradient,
            .y_gradient = expected.y_gradient},
        {.data_range = 2,
            .window_size = is_volume ? PerAxis<int>(3, 5, 7) : PerAxis<int>(5, 7),
            .window = window,
            .sigma = is_volume ? PerAxis<double>(0.8, 1.1, 1.9) : PerAxis<double>(1.1, 1.9),
            .k1 = 0.02,
            .k2 = 0.05,
            .sample_covariance = true,
            .padding = Padding::replicate,
            .reduction = Reduction::none,
            .mask = mask,
            .valid_mask = valid_mask});

    const Results results(shape);
    const CTensor c_mask(mask), c_valid_mask(valid_mask);
    similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
    options.data_range = 2;
    options.window_size[0] = 3, options.window_size[1] = 5, options.window_size[2] = 7;
    options.sigma[0] = 0.8, options.sigma[1] = 1.1, options.sigma[2] = 1.9;
    options.k1 = 0.02;
    options.k2 = 0.05;
    options.ssim_weight = 0.7;
    options.l1_weight = 0.3;
    options.mask = c_mask.get();
    options.valid_mask = c_valid_mask.get();
    options.padding = SIMILIS_PADDING_REPLICATE;
    options.reduction = SIMILIS_REDUCTION_NONE;
    options.form = SIMILIS_FORM_LOSS;
    options.window = is_volume ? SIMILIS_WINDOW_GAUSSIAN : SIMILIS_WINDOW_BOX;
    options.sample_covariance = 1;
    ASSERT_EQ(similis_ssim(CTensor(x).get(), CTensor(y).get(), &options, CTensor(upstream).get(),
                  CTensor(results.value).get(), CTensor(results.x_gradient).get(),
                  CTensor(results.y_gradient).get(), nullptr),
        SIMILIS_OK)
        << similis_last_error();
    EXPECT_EQ(to_doubles(results.value), to_doubles(expected.value));
    EXPECT_EQ(to_doubles(results.x_gradient), to_doubles(expected.x_gradient));
    EXPECT_EQ(to_doubles(results.y_gradient), to_doubles(expected.y_gradient));
  }
}

class SsimOfTwoImages : public testing::Test {
 protected:
  similis_status run(const similis_ssim_options& options) {
    return similis_ssim(
        x_.get(), y_.get(), &options, nullptr, value_.get(), nullptr, nullptr, nullptr);
  }
  std::string refusal(const similis_ssim_options& options) {
    return run(options) == SIMILIS_INVALID_ARGUMENT ? similis_last_error() : "no refusal";
  }

  test::Array x = test::noise({1, 1, 16, 16}, DType::f32, Layout::dense, 1, 1);
  test::Array y = test::noise({1, 1, 16, 16}, DType::f32, Layout::dense, 2, 1);
  float value = 0;

 private:
  CTensor x_{x}, y_{y}, value_{TensorView(&value, {}, DType::f32)};
};

TEST_F(SsimOfTwoImages, RefusalsComeAsAStatusAndASentence) {
  EXPECT_EQ(similis_ssim(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "ssim: x is NULL; it must be a tensor");

  similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
  options.padding = 5;
  EXPECT_EQ(refusal(options),
      "ssim: padding is 5; it must be valid, same, reflect, replicate or renormalize");
  options = SIMILIS_SSIM_DEFAULTS;
  options.reduction = -1;
  EXPECT_EQ(refusal(options),
      "ssim: reduction is -1; it must be mean, sum, none, per_image or per_channel");
  options = SIMILIS_SSIM_DEFAULTS;
  options.form = 256;
  EXPECT_EQ(refusal(options), "ssim: form is 256; it must be similarity or loss");
  options = SIMILIS_SSIM_DEFAULTS;
  options.window = 2;
  EXPECT_EQ(refusal(options), "ssim: window is 2; it must be box or gaussian");
  options = SIMILIS_SSIM_DEFAULTS;
  options.data_range = -1;
  EXPECT_EQ(refusal(options), "ssim: data_range is -1; it must be a number above 0");
}

TEST_F(SsimOfTwoImages, AnOlderCallersStructHasDefaultsWhereItEnds) {
  similis_ssim_options older = SIMILIS_SSIM_DEFAULTS;
  older.struct_size = offsetof(similis_ssim_options, form);
  older.form = SIMILIS_FORM_LOSS;  // past the end of the struct by its size
  ASSERT_EQ(run(older), SIMILIS_OK);
  EXPECT_EQ(value, item(ssim(x, y)));
}

}  // namespace
}  // namespace similis
