// SPDX-License-Identifier: Apache-2.0
// Integer SSIM on every SIMD target and with any number of threads against the loop that defines
// it: all 64 bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "src/libvmaf_ssim/reference.h"
#include "src/libvmaf_ssim/test_planes.h"
#include "tests/backends.h"

namespace similis::libvmaf_ssim_internal {
namespace {

using test::Layout;

constexpr int kDepths[] = {8, 10, 12, 16};

std::vector<double> scores_of(const TestPlanes& planes, const Execution& exec = {}) {
  return to_doubles(integer_ssim(planes.x, planes.y, {.bit_depth = planes.depth}, exec));
}

// Kept for all tests: starting threads takes longer than small planes do.
std::vector<ParallelRunner> runners() {
  static ThreadPool one(1), two(2), seven(7);
  return {one.runner(), two.runner(), seven.runner()};
}

void expect_the_references_bits(const TestPlanes& planes) {
  const std::vector<double> expected = reference_integer_ssim(planes.pairs());
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend chosen(backend);
    for (const ParallelRunner& runner : runners()) {
      const std::vector<double> scores = scores_of(planes, {.runner = runner});
      ASSERT_EQ(scores.size(), expected.size());
      for (std::size_t i = 0; i < scores.size(); ++i) {
        ASSERT_EQ(
            std::bit_cast<std::uint64_t>(scores[i]), std::bit_cast<std::uint64_t>(expected[i]))
            << backend.name << ": " << scores[i] << " for " << expected[i];
      }
    }
  }
}

class IntegerSsim : public testing::TestWithParam<Scene> {};

TEST_P(IntegerSsim, OfSmallPlanesHasTheBitsOfTheLoop) {
  for (const int depth : kDepths) {
    for (const Extents& shape :
        {Extents{1, 1}, Extents{1, 40}, Extents{40, 1}, Extents{2, 2}, Extents{3, 5}, Extents{4, 9},
            Extents{9, 5}, Extents{8, 16}, Extents{17, 33}, Extents{31, 27}, Extents{40, 40}}) {
      SCOPED_TRACE(testing::Message() << depth << " bits, " << shape[0] << "x" << shape[1]);
      expect_the_references_bits(TestPlanes(GetParam(), shape, depth));
    }
  }
}

// Several stripes and tiles, the last of each cut.
TEST_P(IntegerSsim, OfLargePlanesHasTheBitsOfTheLoop) {
  for (const int depth : kDepths) {
    SCOPED_TRACE(testing::Message() << depth << " bits");
    expect_the_references_bits(TestPlanes(GetParam(), {131, 301}, depth));
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, IntegerSsim, testing::ValuesIn(kScenes),
    [](const testing::TestParamInfo<Scene>& scene) { return name(scene.param); });

TEST(IntegerSsimPlanes, MayLieAnyhow) {
  for (const int depth : {8, 10, 16}) {
    const TestPlanes dense(Scene::textured, {3, 37, 141}, depth);
    const std::vector<double> expected = reference_integer_ssim(dense.pairs());
    for (const Layout layout :
        {Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
      const TestPlanes planes(Scene::textured, {3, 37, 141}, depth, layout);
      EXPECT_EQ(scores_of(planes), expected) << test::name(layout);
    }
  }
}

TEST(IntegerSsimPlanes, OfABatchAreComparedOneByOne) {
  const TestPlanes planes(Scene::crossing, {3, 45, 50}, 8);
  const std::vector<double> scores = scores_of(planes);
  ASSERT_EQ(scores.size(), 3u);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto one = [&](const TensorView& batch) {
      TensorView view = batch.reshaped({45, 50}, dense_strides({45, 50}));
      view.offset += i * batch.strides[0];
      return view;
    };
    EXPECT_EQ(
        scores[static_cast<std::size_t>(i)], item(integer_ssim(one(planes.x), one(planes.y))));
  }
}

TEST(IntegerSsimPlanes, OfEightBitsMayBeWords) {
  const TestPlanes bytes(Scene::textured, {50, 60}, 8);
  const auto as_words = [](const test::Array& plane) {
    const std::vector<double> samples = to_doubles(plane);
    return test::make(plane.shape, DType::u16, Layout::dense,
        [&](std::int64_t i) { return samples[static_cast<std::size_t>(i)]; });
  };
  EXPECT_EQ(item(integer_ssim(as_words(bytes.x), as_words(bytes.y), {.bit_depth = 8})),
      item(integer_ssim(bytes.x, bytes.y)));
}

TEST(IntegerSsimPlanes, ThatAreEqualScoreOne) {
  const TestPlanes planes(Scene::textured, {70, 200}, 8);
  EXPECT_EQ(item(integer_ssim(planes.x, planes.x)), 1);
}

// Threads finish stripes in any order: many small ones, again and again.
TEST(IntegerSsimPlanes, AreAddedInOrderWhicheverThreadIsFirst) {
  const TestPlanes planes(Scene::noise, {640, 20}, 8);
  const std::vector<double> expected = reference_integer_ssim(planes.pairs());
  ThreadPool pool(7);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(scores_of(planes, {.runner = pool.runner()}), expected) << i;
  }
}

// A runner that takes tasks last to first.
TEST(IntegerSsimPlanes, AreAddedInOrderEvenBackwards) {
  const TestPlanes planes(Scene::textured, {300, 150}, 8);
  const ParallelRunner backwards = {
      .run = [](void*, ParallelRunner::Task task, void* context, std::int64_t count) {
        for (std::int64_t i = count - 1; i >= 0; --i) task(context, i);
      }};
  EXPECT_EQ(scores_of(planes, {.runner = backwards}), reference_integer_ssim(planes.pairs()));
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
