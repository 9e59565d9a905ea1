// SPDX-License-Identifier: Apache-2.0
// similis_lncc() against lncc_into(), which it must equal to the last bit.
#include <gtest/gtest.h>

#include <string>

#include "similis/c/lncc.h"
#include "similis/lncc.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

TEST(LnccCApi, DefaultsAreThoseOfCpp) {
  const similis_lncc_options c = SIMILIS_LNCC_DEFAULTS;
  const LnccOptions cpp;
  EXPECT_EQ(c.struct_size, sizeof(c));
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(c.window_size[axis], cpp.window_size.x());
    EXPECT_EQ(c.sigma[axis], cpp.sigma.x());
  }
  EXPECT_EQ(c.smooth_nr, cpp.smooth_nr);
  EXPECT_EQ(c.smooth_dr, cpp.smooth_dr);
  EXPECT_EQ(c.weight, LnccRequest().weight);
  EXPECT_EQ(c.window, static_cast<int>(cpp.window));
  EXPECT_EQ(c.padding, static_cast<int>(cpp.padding));
  EXPECT_EQ(c.reduction, static_cast<int>(cpp.reduction));
  EXPECT_EQ(c.is_signed != 0, cpp.is_signed);
  EXPECT_EQ(c.gradient, static_cast<int>(cpp.gradient));
  EXPECT_EQ(c.workspace, static_cast<int>(cpp.workspace));
}

TEST(LnccCApi, EnumeratorsAreThoseOfCpp) {
  EXPECT_EQ(+SIMILIS_WINDOW_BOX, static_cast<int>(WindowShape::box));
  EXPECT_EQ(+SIMILIS_WINDOW_GAUSSIAN, static_cast<int>(WindowShape::gaussian));
  EXPECT_EQ(+SIMILIS_LNCC_GRADIENT_EXACT, static_cast<int>(LnccGradient::exact));
  EXPECT_EQ(+SIMILIS_LNCC_GRADIENT_ANTS, static_cast<int>(LnccGradient::ants));
  EXPECT_EQ(+SIMILIS_LNCC_WORKSPACE_AUTO, static_cast<int>(LnccWorkspace::automatic));
  EXPECT_EQ(+SIMILIS_LNCC_WORKSPACE_SMALL, static_cast<int>(LnccWorkspace::small));
}

// The results of one pass.
struct Results {
  explicit Results(const Extents& shape)
      : value(test::filled(shape, DType::f32, Layout::dense, test::kUntouched)),
        x_gradient(test::filled(shape, DType::f32, Layout::channels_last, test::kUntouched)),
        y_gradient(test::filled(shape, DType::f32, Layout::reversed, test::kUntouched)) {}
  test::Array value, x_gradient, y_gradient;
};

// Every option differs from its default in one call or the other, and every tensor is given.
void expect_same(const Extents& shape, bool is_signed) {
  const bool is_volume = shape.rank() == 5;
  const test::Array x = test::noise(shape, DType::f32, Layout::offset, 1, 1);
  const test::Array y = test::noise(shape, DType::f32, Layout::permuted, 2, 1);
  const test::Array upstream = test::noise(shape, DType::f32, Layout::offset, 3, 1);
  const test::Array mask = test::noise(shape, DType::f32, Layout::dense, 4, 1);
  const test::Array valid_mask = test::noise(shape, DType::f32, Layout::dense, 5, 1);
  const Results expected(shape);
  lncc_into(x, y,
      {.weight = -2,
          .upstream = upstream,
          .value = expected.value,
          .x_gradient = expected.x_gradient,
          .y_gradient = expected.y_gradient},
      {.window_size = is_volume ? PerAxis<int>(3, 5, 7) : PerAxis<int>(5, 7),
          .window = WindowShape::gaussian,
          .sigma = is_volume ? PerAxis<double>(0.8, 1.1, 1.9) : PerAxis<double>(1.1, 1.9),
          .padding = Padding::renormalize,
          .reduction = Reduction::none,
          .smooth_nr = 0.02,
          .smooth_dr = 0.05,
          .is_signed = is_signed,
          .gradient = is_signed ? LnccGradient::exact : LnccGradient::ants,
          .workspace = LnccWorkspace::small,
          .mask = mask,
          .valid_mask = valid_mask});

  const Results results(shape);
  const CTensor c_mask(mask), c_valid_mask(valid_mask);
  similis_lncc_options options = SIMILIS_LNCC_DEFAULTS;
  options.window_size[0] = 3, options.window_size[1] = 5, options.window_size[2] = 7;
  options.sigma[0] = 0.8, options.sigma[1] = 1.1, options.sigma[2] = 1.9;
  options.smooth_nr = 0.02;
  options.smooth_dr = 0.05;
  options.weight = -2;
  options.mask = c_mask.get();
  options.valid_mask = c_valid_mask.get();
  options.window = SIMILIS_WINDOW_GAUSSIAN;
  options.padding = SIMILIS_PADDING_RENORMALIZE;
  options.reduction = SIMILIS_REDUCTION_NONE;
  options.is_signed = is_signed ? 1 : 0;
  options.gradient = is_signed ? SIMILIS_LNCC_GRADIENT_EXACT : SIMILIS_LNCC_GRADIENT_ANTS;
  options.workspace = SIMILIS_LNCC_WORKSPACE_SMALL;
  ASSERT_EQ(similis_lncc(CTensor(x).get(), CTensor(y).get(), &options, CTensor(upstream).get(),
                CTensor(results.value).get(), CTensor(results.x_gradient).get(),
                CTensor(results.y_gradient).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(to_doubles(results.value), to_doubles(expected.value));
  EXPECT_EQ(to_doubles(results.x_gradient), to_doubles(expected.x_gradient));
  EXPECT_EQ(to_doubles(results.y_gradient), to_doubles(expected.y_gradient));
}

TEST(LnccCApi, EveryArgumentArrives) {
  for (const bool is_signed : {false, true}) {
    expect_same({2, 3, 17, 19}, is_signed);
    expect_same({1, 2, 9, 11, 13}, is_signed);
  }
}

TEST(LnccCApi, RefusalsComeAsAStatusAndASentence) {
  EXPECT_EQ(similis_lncc(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "lncc: x is NULL; it must be a tensor");

  const test::Array x = test::noise({1, 1, 16, 16}, DType::f32, Layout::dense, 1, 1);
  const CTensor image(x);
  const auto refusal = [&](const similis_lncc_options& options) {
    const similis_status status = similis_lncc(
        image.get(), image.get(), &options, nullptr, nullptr, nullptr, nullptr, nullptr);
    return std::string(status == SIMILIS_INVALID_ARGUMENT ? similis_last_error() : "no refusal");
  };
  similis_lncc_options options = SIMILIS_LNCC_DEFAULTS;
  options.window = 2;
  EXPECT_EQ(refusal(options), "lncc: window is 2; it must be box or gaussian");
  options = SIMILIS_LNCC_DEFAULTS;
  options.is_signed = 2;
  EXPECT_EQ(refusal(options), "lncc: signed is 2; it must be true or false");
  options = SIMILIS_LNCC_DEFAULTS;
  options.smooth_dr = -1;
  EXPECT_EQ(refusal(options), "lncc: smooth_dr is -1; it must be a number above 0");
}

}  // namespace
}  // namespace similis
