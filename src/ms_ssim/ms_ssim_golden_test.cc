// SPDX-License-Identifier: Apache-2.0
// MS-SSIM with the options that make it that of other libraries, against their results.
#include <gtest/gtest.h>

#include "similis/ms_ssim.hpp"
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
  test::expect_golden(GetParam(), ms_ssim_value_and_gradient);
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, MsSsimGolden, testing::ValuesIn(kGoldens), test::print<MsSsimOptions>);

}  // namespace
}  // namespace similis
