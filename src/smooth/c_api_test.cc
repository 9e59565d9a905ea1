// SPDX-License-Identifier: Apache-2.0
// similis_smooth() against smooth(), bit for bit.
#include <gtest/gtest.h>

#include "similis/c/smooth.h"
#include "similis/smooth.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

TEST(SmoothCApi, ArgumentsArrive) {
  const test::Array u = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 6, 1);
  const test::Array own = test::filled(u.shape, DType::f32, Layout::dense, test::kUntouched);
  similis_smooth_options options = SIMILIS_SMOOTH_DEFAULTS;
  options.sigma[0] = 0.5, options.sigma[1] = 1.5, options.sigma[2] = 2.5;
  options.truncate = 2;
  options.padding = SIMILIS_SMOOTH_PADDING_ZEROS;
  options.field = 1;
  const SmoothOptions same{
      .sigma = {0.5, 1.5, 2.5}, .field = true, .truncate = 2, .padding = SmoothPadding::zeros};
  ASSERT_EQ(similis_smooth(CTensor(u).get(), &options, CTensor(own).get(), nullptr), SIMILIS_OK);
  EXPECT_EQ(to_doubles(own), to_doubles(smooth(u, same)));
  options.padding = SIMILIS_SMOOTH_PADDING_REPLICATE;
  options.adjoint = 1;
  SmoothOptions replicated = same;
  replicated.padding = SmoothPadding::replicate;
  ASSERT_EQ(similis_smooth(CTensor(u).get(), &options, CTensor(own).get(), nullptr), SIMILIS_OK);
  EXPECT_EQ(to_doubles(own), to_doubles(smooth_backward(u, replicated)));
}

// An image of two axes leaves the number for z unread.
TEST(SmoothCApi, NullTakesTheDefaults) {
  const test::Array x = test::noise({1, 1, 5, 6}, DType::f64, Layout::dense, 6, 1);
  const test::Array own = test::filled(x.shape, DType::f64, Layout::dense, test::kUntouched);
  ASSERT_EQ(similis_smooth(CTensor(x).get(), nullptr, CTensor(own).get(), nullptr), SIMILIS_OK);
  EXPECT_EQ(to_doubles(own), to_doubles(smooth(x)));
}

TEST(SmoothCApi, RefusalsComeAsAStatusAndASentence) {
  const test::Array x = test::noise({1, 1, 5, 6}, DType::f32, Layout::dense, 1, 1);
  similis_smooth_options options = SIMILIS_SMOOTH_DEFAULTS;
  options.padding = 2;
  EXPECT_EQ(similis_smooth(CTensor(x).get(), &options, CTensor(x).get(), nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "smooth: padding is 2; it must be replicate or zeros");
  EXPECT_EQ(similis_smooth(CTensor(x).get(), nullptr, nullptr, nullptr), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "smooth: output is NULL; it must be a tensor");
}

}  // namespace
}  // namespace similis
