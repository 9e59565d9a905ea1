// SPDX-License-Identifier: Apache-2.0
// The files are spelled out by the format's definition.
#include <bit>
#include <cmath>
#include <limits>

#include "src/media/io/test_cost.h"

namespace similis::media {
namespace {

using testing::ElementsAre;

Buffer pfm(std::string_view header, const std::vector<float>& samples, bool is_little) {
  Buffer bytes(header.begin(), header.end());
  for (const float sample : samples) {
    const auto word = std::bit_cast<std::uint32_t>(sample);
    for (int i = 0; i < 4; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(word >> 8 * (is_little ? i : 3 - i)));
    }
  }
  return bytes;
}

TEST(Pfm, FloatsComeAsTheyAreFromTheTop) {
  const std::vector<float> stored = {1, 2, 3, 0.5f, -1e30f, 4};  // the bottom row first
  for (const bool is_little : {true, false}) {
    const Image read = read_image(
        pfm(is_little ? "Pf\n3 2\n-1.0\n" : "Pf\n3 2\n1.000000\n", stored, is_little), "a");
    EXPECT_EQ(read.width, 3);
    EXPECT_EQ(read.height, 2);
    EXPECT_EQ(read.channels, 1);
    EXPECT_TRUE(read.has_floats());
    EXPECT_EQ(read.source_bit_depth, 32);
    EXPECT_EQ(read.format, "PFM");
    EXPECT_THAT(read.samples_float, ElementsAre(0.5f, -1e30f, 4, 1, 2, 3));
  }
}

TEST(Pfm, ColorsAreInterleaved) {
  const Image read = read_image(pfm("PF 1 2\n-1\n", {1, 2, 3, 4, 5, 6}, true), "a");
  EXPECT_EQ(read.channels, 3);
  EXPECT_THAT(read.samples_float, ElementsAre(4, 5, 6, 1, 2, 3));
}

TEST(Pfm, WhatIsNotFiniteIsKept) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Image read = read_image(pfm("Pf 2 1 -1\n", {infinity, std::nanf("")}, true), "a");
  EXPECT_EQ(read.samples_float[0], infinity);
  EXPECT_TRUE(std::isnan(read.samples_float[1]));
}

TEST(Pfm, WhatCannotBeReadIsSaid) {
  const auto says = [](std::string_view header) { return refusal(pfm(header, {1}, true), "a"); };
  EXPECT_EQ(says("Pf 1 1 -2.5\n"), "cannot read a: its scale is -2.5; only 1 and -1 are supported");
  EXPECT_EQ(says("Pf 1 1 0\n"),
      "cannot read a: it is cut off or damaged (its scale is \"0\", not a number)");
  EXPECT_EQ(says("Pf 2 1 -1\n"),
      "cannot read a: it is cut off or damaged (its 4 bytes of samples do not fit 2 x 1 pixels)");
  EXPECT_EQ(says("Pf 0 1 -1\n"), "cannot read a: it has no pixels (0 x 1)");
}

TEST(Pfm, EveryCutIsRefused) {
  expect_every_cut_refused(pfm("PF\n2 2\n-1.0\n", std::vector<float>(12, 0.25f), true));
}

TEST(Pfm, PromisesThatTheFileCannotKeepAreRefused) {
  EXPECT_EQ(refused_at_once(pfm("PF\n16000 16000\n-1\n", {1}, true), "a"),
      "cannot read a: it is cut off or damaged (its 4 bytes of samples do not fit 16000 x 16000 "
      "pixels)");
}

}  // namespace
}  // namespace similis::media
