// SPDX-License-Identifier: Apache-2.0
// Integer SSIM on the GPU against the loop that defines it: all 64 bits. Skipped, with a message,
// where there is no GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "src/libvmaf_ssim/reference.h"
#include "src/libvmaf_ssim/test_planes.h"
#include "tests/on_gpu.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using test::Layout;

class IntegerSsimOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
};

class IntegerSsimCuda : public IntegerSsimOnGpu, public testing::WithParamInterface<Scene> {};

std::vector<double> scores_of(const TestPlanes& planes) {
  const test::OnGpu x(planes.x), y(planes.y);
  const Tensor scores = integer_ssim(x.view(), y.view(), {.bit_depth = planes.depth});
  EXPECT_EQ(scores.device, (Device{DeviceKind::cuda, 0}));
  std::vector<double> result(static_cast<std::size_t>(scores.shape.count()));
  gpu::copy_to_cpu(
      result.data(), scores.data(), result.size() * sizeof(double), scores.device, nullptr);
  return result;
}

void expect_the_references_bits(const TestPlanes& planes) {
  const std::vector<double> scores = scores_of(planes);
  const std::vector<double> expected = reference_integer_ssim(planes.pairs());
  ASSERT_EQ(scores.size(), expected.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(scores[i]), std::bit_cast<std::uint64_t>(expected[i]))
        << scores[i] << " for " << expected[i];
  }
}

TEST_P(IntegerSsimCuda, HasTheBitsOfTheLoop) {
  for (const int depth : {8, 10, 12, 16}) {
    // Around a tile of 248 columns and a stripe of 32 rows, and around groups of the walk.
    for (const Extents& shape :
        {Extents{1, 1}, Extents{1, 40}, Extents{40, 1}, Extents{9, 5}, Extents{17, 33},
            Extents{32, 248}, Extents{33, 249}, Extents{65, 500}, Extents{2, 31, 264}}) {
      SCOPED_TRACE(testing::Message() << depth << " bits, " << shape.count());
      expect_the_references_bits(TestPlanes(GetParam(), shape, depth));
    }
  }
}

TEST_P(IntegerSsimCuda, OfAFrameHasTheBitsOfTheLoop) {
  expect_the_references_bits(TestPlanes(GetParam(), {540, 960}, 8));
}

INSTANTIATE_TEST_SUITE_P(Scenes, IntegerSsimCuda, testing::ValuesIn(kScenes),
    [](const testing::TestParamInfo<Scene>& scene) { return name(scene.param); });

TEST_F(IntegerSsimOnGpu, PlanesMayLieAnyhow) {
  for (const Layout layout : {Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
    expect_the_references_bits(TestPlanes(Scene::textured, {3, 37, 261}, 10, layout));
  }
}

TEST_F(IntegerSsimOnGpu, OfSamplesAboveTheRangeIsNotANumber) {
  TestPlanes planes(Scene::textured, {2, 40, 300}, 10);
  planes.y.elements<std::uint16_t>()[40 * 300 + 5] = 1024;
  const std::vector<double> scores = scores_of(planes);
  EXPECT_EQ(scores[0], reference_integer_ssim(planes.pairs())[0]);
  EXPECT_TRUE(std::isnan(scores[1]));
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
