// SPDX-License-Identifier: Apache-2.0
// SSIM with the options that make it the SSIM of other libraries, against their results.
#include <gtest/gtest.h>

#include "similis/ssim.hpp"
#include "tests/golden/pictures.h"

namespace similis {
namespace {

using test::Kind;
using Golden = test::Golden<SsimOptions>;

#define SSIM_OPTIONS(...) SsimOptions{__VA_ARGS__}, #__VA_ARGS__
const Golden kGoldens[] = {
#include "tests/golden/ssim.inc"
};

class SsimGolden : public testing::TestWithParam<Golden> {};

TEST_P(SsimGolden, IsWhatTheLibrarySays) {
  test::expect_golden(GetParam(), ssim_value_and_gradient);
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, SsimGolden, testing::ValuesIn(kGoldens), test::print<SsimOptions>);

}  // namespace
}  // namespace similis
