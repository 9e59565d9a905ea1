// SPDX-License-Identifier: Apache-2.0
// similis_ncc() against ncc_into(), which it must equal to the last bit.
#include <gtest/gtest.h>

#include "similis/c/ncc.h"
#include "similis/ncc.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

constexpr Extents kShape = {2, 3, 7, 5};

// The results of one call.
struct Results {
  test::Array value = test::filled({2}, DType::f32, Layout::dense, test::kUntouched);
  test::Array x_gradient = test::filled(kShape, DType::f32, Layout::sliced, test::kUntouched);
  test::Array y_gradient = test::filled(kShape, DType::f32, Layout::reversed, test::kUntouched);
};

TEST(NccCApi, DefaultsAreThoseOfCpp) {
  const similis_ncc_options c = SIMILIS_NCC_DEFAULTS;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.weight, NccRequest().weight);
  EXPECT_EQ(c.reduction, static_cast<int>(Reduction::mean));
}

TEST(NccCApi, EveryArgumentArrives) {
  const test::Array x = test::noise(kShape, DType::f32, Layout::permuted, 1, 1);
  const test::Array y = test::noise(kShape, DType::f32, Layout::offset, 2, 1);
  const test::Array upstream = test::noise({2}, DType::f32, Layout::offset, 3, 1);
  const Results expected, results;
  ncc_into(x, y,
      {.weight = -2,
          .upstream = upstream,
          .value = expected.value,
          .x_gradient = expected.x_gradient,
          .y_gradient = expected.y_gradient},
      Reduction::per_image);
  similis_ncc_options options = SIMILIS_NCC_DEFAULTS;
  options.weight = -2;
  options.reduction = SIMILIS_REDUCTION_PER_IMAGE;
  const auto run = [&] {
    return similis_ncc(CTensor(x).get(), CTensor(y).get(), &options, CTensor(upstream).get(),
        CTensor(results.value).get(), CTensor(results.x_gradient).get(),
        CTensor(results.y_gradient).get(), nullptr);
  };
  ASSERT_EQ(run(), SIMILIS_OK) << similis_last_error();
  EXPECT_EQ(to_doubles(results.value), to_doubles(expected.value));
  EXPECT_EQ(to_doubles(results.x_gradient), to_doubles(expected.x_gradient));
  EXPECT_EQ(to_doubles(results.y_gradient), to_doubles(expected.y_gradient));
  options.reserved = 1;
  EXPECT_EQ(run(), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "ncc: reserved is 1; it must be 0");
}

}  // namespace
}  // namespace similis
