// SPDX-License-Identifier: Apache-2.0
// Which way up a registration's pictures are.
#include "src/cli/registration/register_slices.h"

#include <gtest/gtest.h>

namespace similis::cli {
namespace {

constexpr std::array<std::int64_t, 3> kSize = {4, 5, 6};

// The voxel of the upper left pixel of each middle slice.
std::vector<std::array<std::int64_t, 3>> corners(const media::Affine& to_world) {
  media::Grid grid;
  grid.size = kSize;
  grid.voxel_to_world = to_world;
  std::vector<std::array<std::int64_t, 3>> result;
  for (const MiddleSlice& slice : middle_slices_of(grid)) {
    const std::int64_t at = slice.voxel(0, 0);
    result.push_back({at % kSize[0], at / kSize[0] % kSize[1], at / kSize[0] / kSize[1]});
  }
  return result;
}

TEST(RegisterSlices, TheFrontOrTheTopIsUp) {
  using Corners = std::vector<std::array<std::int64_t, 3>>;
  const Corners as_stored = {{0, 4, 3}, {0, 2, 5}, {2, 0, 5}};
  EXPECT_EQ(corners({{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}}}), as_stored);
  // A scan with ITK's axes, whose y goes to the back, and one tilted by less than 45°.
  const Corners to_the_back = {{0, 0, 3}, {0, 2, 5}, {2, 0, 5}};
  EXPECT_EQ(corners({{{{-1, 0, 0, 0}, {0, -1, 0, 0}, {0, 0, 1, 0}}}}), to_the_back);
  EXPECT_EQ(corners({{{{1, 0, 0, 0}, {0, -0.8, 0.6, 0}, {0, 0.6, 0.8, 0}}}}), to_the_back);
  // A sagittal one: x to the back, y to the feet, z to the left.
  EXPECT_EQ(corners({{{{0, 0, -1, 0}, {-1, 0, 0, 0}, {0, -1, 0, 0}}}}),
      (Corners{{0, 0, 3}, {0, 2, 5}, {2, 0, 5}}));
  EXPECT_EQ(corners({{{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}}}}),
      (Corners{{0, 4, 3}, {0, 2, 0}, {2, 0, 0}}));
}

}  // namespace
}  // namespace similis::cli
