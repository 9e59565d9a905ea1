// SPDX-License-Identifier: Apache-2.0
// Images with gaps, of very small voxels, or whose grids hardly meet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/registration/test_images.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using namespace registration_internal;

Point stay(const Point& p) { return p; }

TEST(UnusualImages, SimilarityLeavesGapsOut) {
  const Grid grid = grid_of(2, {40, 36, 1}, {3, 3, 1});
  Tensor own, other;
  const Volume f = image_of(grid, blobs(2, 5), stay, own), m = image_of(
                                                               grid, blobs(2, 5),
                                                               [](const Point&p) {
                                                                 return Point{p[0] + 2, p[1], 0};
                                                               },
                                                               other);
  const RegisterSimilarity whole = register_similarity(f.data, m.data);
  own.elements<float>()[700] = std::nanf("");
  other.elements<float>()[810] = std::numeric_limits<float>::infinity();
  const RegisterSimilarity found = register_similarity(f.data, m.data);
  EXPECT_NEAR(found.ncc, whole.ncc, 1e-3);
  EXPECT_NEAR(found.mi, whole.mi, 0.02);
  EXPECT_NEAR(found.lncc, whole.lncc, 0.02);
  // Values in a gap do not matter.
  own.elements<float>()[810] = 1e6f;
  other.elements<float>()[700] = -1e6f;
  const RegisterSimilarity again = register_similarity(f.data, m.data);
  EXPECT_NEAR(again.ncc, found.ncc, 1e-9);
  EXPECT_NEAR(again.lncc, found.lncc, 1e-9);
  std::fill_n(own.elements<float>(), grid.voxels(), std::nanf(""));
  EXPECT_TRUE(std::isnan(register_similarity(f.data, m.data).ncc));
}

// Electron micrographs have voxels of nanometres; the unit of a world is a millimetre.
TEST(UnusualImages, VoxelsMayBeOfAnySize) {
  for (const double unit : {1e-6, 1e6}) {
    const auto scaled = [&](const Volume& volume) {
      Volume result = volume;
      for (double& number : result.to_world) number *= unit;
      return result;
    };
    const Grid grid = grid_of(2, {48, 40, 1}, {3, 3, 1});
    Tensor own, other;
    const Volume f = image_of(grid, blobs(2, 3), stay, own), m = image_of(
                                                                 grid, blobs(2, 3),
                                                                 [](const Point&p) {
                                                                   return Point{p[0] + 6, p[1], 0};
                                                                 },
                                                                 other);
    RegisterOptions options{.stages = {RegisterStage::translation}};
    const double expected = register_images(f, m, options).affine[3];
    EXPECT_NEAR(expected, -6, 0.5);
    EXPECT_NEAR(register_images(scaled(f), scaled(m), options).affine[3] / unit, expected, 1e-3);
  }
}

// Pictures have no place in the world that says which way up they are.
TEST(UnusualImages, PicturesMayLieInAnyWay) {
  const Grid grid = grid_of(2, {64, 56, 1}, {2.5, 2.5, 1});
  const std::vector<Blob> all = blobs(2, 4);
  for (const double degrees : {90.0, 180.0, -120.0, 66.0}) {
    const Map map = turned(2, degrees, {4, -3, 0});
    Tensor own, other;
    const Volume f = image_of(grid, all, map, own), m = image_of(grid, all, stay, other);
    const Registration found = register_images(f, m, {.stages = {RegisterStage::rigid}});
    EXPECT_LT(error_of(found, grid, map), 0.5) << degrees;
  }
}

// A round cell whose marks are a pixel wide: the coarse grid hardly tells its turns apart.
TEST(UnusualImages, FineMarksDecideOnTheTurnOfSomethingRound) {
  const Grid grid = grid_of(2, {64, 52, 1}, {2, 2, 1});
  std::vector<Blob> all = blobs(2, 2);
  for (Blob& blob : all) {
    blob.at[1] *= 1.2;
    blob.radius = 1.3;
    blob.value /= 16;
  }
  const auto shape = [&](const Point& p) { return Point{p[0] * 65 / 50, p[1] * 55 / 50, 0}; };
  const Map map = turned(2, 13, {14, -9, 0});
  Tensor own, other;
  const Volume f = image_of(
                   grid, all, [&](const Point&p) { return shape(map(p)); }, own),
               m = image_of(grid, all, shape, other);
  const Registration found = register_images(f, m, {.stages = {RegisterStage::rigid}});
  EXPECT_LT(error_of(found, grid, map), 0.5);
}

TEST(UnusualImages, WordsSayWhichChannelIsConstant) {
  const test::Array own = test::noise({1, 2, 6, 5}, DType::f32, test::Layout::dense, 1, 1),
                    other = test::noise({1, 2, 6, 5}, DType::f32, test::Layout::dense, 1, 2);
  std::fill_n(own.elements<float>() + 30, 30, 4.0f);
  AffineRows world = {};
  world[0] = world[5] = world[10] = 1;
  test::expect_refusal(
      [&] {
        register_images({own, world}, {other, world});
      },
      "register: channel 1 of fixed is 4 everywhere; it must have more than one value");
  const test::Array mask = test::filled({6, 5}, DType::u8, test::Layout::dense, 0);
  mask.elements<std::uint8_t>()[3] = 1;
  own.elements<float>()[3] = 0.5f;
  test::expect_refusal(
      [&] {
        register_images({own, world}, {other, world}, {.fixed_mask = mask});
      },
      "register: channel 0 of fixed is 0.5 everywhere in its mask; it must have more than one "
      "value");
}

}  // namespace
}  // namespace similis
