// SPDX-License-Identifier: Apache-2.0
// MS-SSIM with the options that make it that of other libraries, against what they say.
#include <gtest/gtest.h>

#include "similis/ms_ssim.hpp"
#include "tests/backends.h"
#include "tests/golden/pictures.h"

namespace similis {
namespace {

using test::Kind;
using Golden = test::Golden<MsSsimOptions>;

#define MS_SSIM_OPTIONS(...) MsSsimOptions{__VA_ARGS__}, #__VA_ARGS__
const Golden kGoldens[] = {
#include "tests/golden/ms_ssim.inc"
};

class MsSsimGolden : public testing::TestWithParam<Golden> {};

TEST_P(MsSsimGolden, IsWhatTheLibrarySays) {
  const Golden& golden = GetParam();
  const test::Pictures pictures = test::pictures(golden.kind, golden.shape);
  MsSsimOptions options = golden.options;
  options.data_range = pictures.data_range;
  double difference = 0;
  std::optional<double> of_slope;
  for (const test::Backend& backend : test::backends()) {
    SCOPED_TRACE(backend.name);
    const test::Chosen chosen(backend);
    const ValueAndGradient result =
        ms_ssim_value_and_gradient(pictures.x, pictures.y, GradientOf::x, options);
    const double of_value = std::abs(item(result.value) - golden.value);
    EXPECT_LT(of_value, 1e-6);
    difference = std::max(difference, of_value);
    if (!golden.slope) continue;
    const double slope = test::slope(result.x_gradient, pictures);
    const double relative = slope == *golden.slope ? 0 : std::abs(slope / *golden.slope - 1);
    EXPECT_LT(relative, 1e-5);
    of_slope = std::max(of_slope.value_or(0), relative);
  }
  test::record(golden, difference, of_slope);
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, MsSsimGolden, testing::ValuesIn(kGoldens), test::print<MsSsimOptions>);

}  // namespace
}  // namespace similis
