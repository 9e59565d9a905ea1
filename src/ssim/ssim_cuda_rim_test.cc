// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU alone: calls whose inner windows the sliding window takes, and the rim a kernel
// of its own. Skipped, with a message, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;

class SsimCudaRim : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  const test::ScopedBackend chosen_{{.name = "CUDA", .on_gpu = true}};
};

constexpr Padding kRimPaddings[] = {Padding::reflect, Padding::replicate, Padding::renormalize};

double of_gradient(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 2e-5;
}

// Value and gradients by x, by y and by both; with them the sum of the gradients in the rim alone,
// which is a small part of all.
void expect_reference(const Extents& shape, const SsimOptions& options, DType dtype = DType::f32,
    Layout layout = Layout::dense, double l1_weight = 0) {
  const double range = dtype == DType::u8 ? 255 : 1;
  const auto [x, y] = ssim_internal::textured(shape, dtype, layout, layout, range);
  SCOPED_TRACE(fmt::format("{} {} {} window {} {} {} l1 {}", shape, name(dtype), test::name(layout),
      options.window_size.x(), ssim_internal::name(options.padding),
      ssim_internal::name(options.reduction), l1_weight));
  const test::Array upstream =
      ssim_internal::upstream_for(shape, options, DType::f32, Layout::dense, 1000);
  const SsimRequest request{
      .form = SsimRequest::Form::loss, .l1_weight = l1_weight, .upstream = upstream};
  const Reference expected = reference_ssim(x, y, request, options);
  const double allowed = 1e-5 * std::max(1.0, test::largest(expected.value));
  const Reference alone = computed(x, y, request, options, false, false);
  EXPECT_LE(test::max_difference(alone.value, expected.value), allowed);
  if (dtype == DType::u8) return;
  const Layout out = layout == Layout::expanded ? Layout::permuted : layout;
  const Reference both = computed(x, y, request, options, true, true, out);
  EXPECT_LE(test::max_difference(both.value, expected.value), allowed);
  EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), of_gradient(dtype));
  EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), of_gradient(dtype));
  EXPECT_EQ(computed(x, y, request, options, false, true, out).y_gradient, both.y_gradient);
  const auto rim_of = [&](const std::vector<double>& gradient) {
    std::vector<double> rim;
    const std::int64_t width = shape[3], height = shape[2];
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t column = at % width, row = at / width % height;
      if (std::min({column, row, width - 1 - column, height - 1 - row}) < 5) {
        rim.push_back(gradient[i]);
      }
    }
    return rim;
  };
  EXPECT_LE(test::relative_l2(rim_of(both.x_gradient), rim_of(expected.x_gradient)),
      2 * of_gradient(dtype));
}

// A tile owns 108 pixels along an edge, and the bands of left and right 20 fewer than the height.
TEST_F(SsimCudaRim, EveryPaddingAtTheEdgesOfTiles) {
  for (const Extents& shape : {Extents{1, 1, 21, 21}, Extents{1, 2, 22, 108},
           Extents{2, 1, 128, 109}, Extents{1, 1, 129, 113}, Extents{1, 1, 31, 217}}) {
    for (const Padding padding : kRimPaddings) expect_reference(shape, {.padding = padding});
  }
}

TEST_F(SsimCudaRim, EveryWindowWithEveryPadding) {
  for (SsimOptions options : {SsimOptions{.window_size = 1}, SsimOptions{.window_size = 3},
           SsimOptions{.window_size = 7}, SsimOptions{.window_size = 9, .sigma = 2},
           SsimOptions{.window_size = 7, .window = WindowShape::box}}) {
    for (const Padding padding : kRimPaddings) {
      options.padding = padding;
      expect_reference({1, 2, 33, 60}, options);
    }
  }
}

TEST_F(SsimCudaRim, EveryDtypeAndLayout) {
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (const Layout layout : test::kLayouts) {
      for (const Padding padding : kRimPaddings) {
        expect_reference({2, 2, 24, 48}, {.padding = padding}, dtype, layout);
      }
    }
  }
}

TEST_F(SsimCudaRim, EveryReductionAndL1) {
  for (const Reduction reduction :
      {Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel}) {
    for (const Padding padding : kRimPaddings) {
      const SsimOptions options{.padding = padding, .reduction = reduction};
      expect_reference({3, 4, 30, 34}, options);
      expect_reference({3, 4, 30, 34}, options, DType::f32, Layout::dense, 0.3);
      expect_reference({3, 4, 30, 34}, options, DType::f16, Layout::dense, 0.3);
    }
  }
}

// Planes that just fit a strip: windows that a smaller window has beyond it are the rim's.
TEST_F(SsimCudaRim, WholeStripsWithSmallerWindowsAndPaddingSame) {
  const Extents shape = {1, 9, 512, 512};
  expect_reference(shape, {.window_size = 7});
  expect_reference(shape, {.window_size = 9, .sigma = 2});
  expect_reference(shape, {.padding = Padding::same});
}

// Weights of pixels: each mask is shared by images, by channels, by both or by none.
TEST_F(SsimCudaRim, ValidMasksThroughTheSlidingWindow) {
  for (const Extents& shape : {Extents{2, 3, 24, 36}, Extents{1, 1, 11, 12}, Extents{1, 2, 53, 496},
           Extents{1, 1, 31, 489}, Extents{1, 1, 25, 113}}) {
    const auto [x, y] = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (const Extents& of_mask :
        {Extents{shape[2], shape[3]}, Extents{shape[0], 1, shape[2], shape[3]},
            Extents{1, shape[1], shape[2], shape[3]}, shape}) {
      for (const Padding padding : {Padding::valid, Padding::renormalize}) {
        for (const Reduction reduction :
            {Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel}) {
          const test::Array valid =
              test::make(of_mask, DType::f32, Layout::dense, [](std::int64_t i) {
                const double amount = test::uniform(7, i);
                return amount < 0.33 || i % 97 < 20 ? 0 : amount;
              });
          const SsimOptions options{
              .padding = padding, .reduction = reduction, .valid_mask = valid};
          SCOPED_TRACE(fmt::format("{} mask {} {} {}", shape, of_mask, ssim_internal::name(padding),
              ssim_internal::name(reduction)));
          const test::Array upstream = ssim_internal::upstream_for(shape, options);
          const SsimRequest request{.form = SsimRequest::Form::loss, .upstream = upstream};
          const Reference expected = reference_ssim(x, y, request, options);
          const Reference alone = computed(x, y, request, options, false, false);
          const Reference actual = computed(x, y, request, options);
          EXPECT_LE(test::relative_l2(alone.value, expected.value), 1e-5);
          EXPECT_LE(test::relative_l2(actual.value, expected.value), 1e-5);
          EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 2e-5);
          EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 2e-5);
        }
      }
    }
  }
}

// Values of pixels of weight 0 change nothing, wherever a segment takes its shift from.
TEST_F(SsimCudaRim, PixelsWithoutWeightMayHoldAnything) {
  const Extents shape = {1, 2, 60, 80};
  const auto hidden = [](std::int64_t i) { return i % 3 != 0 || (i / 80 % 60) / 7 % 2 == 0; };
  const test::Array valid = test::make(
      shape, DType::f32, Layout::dense, [&](std::int64_t i) { return hidden(i) ? 0 : 1; });
  const SsimOptions options{.valid_mask = valid};
  const test::Array y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
  std::vector<Reference> results;
  for (const double held : {0.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
    const test::Array x = test::make(shape, DType::f32, Layout::dense,
        [&](std::int64_t i) { return hidden(i) ? held : test::uniform(1, i); });
    results.push_back(computed(x, y, {}, options));
    EXPECT_TRUE(std::isfinite(results.back().value[0])) << held;
    EXPECT_EQ(results.back().value, results.front().value) << held;
    EXPECT_EQ(results.back().x_gradient, results.front().x_gradient) << held;
    EXPECT_EQ(results.back().y_gradient, results.front().y_gradient) << held;
  }
}

// Each kernel on so little that compute-sanitizer ends soon:
//   compute-sanitizer --tool racecheck kit/ssim_test --gtest_filter='SsimCudaRim.EveryKernel*'
TEST_F(SsimCudaRim, EveryKernelOnOneImage) {
  const Extents shape = {1, 1, 23, 24};
  const auto [x, y] = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array valid = test::make(
      shape, DType::f32, Layout::dense, [](std::int64_t i) { return i % 5 == 0 ? 0 : 1; });
  std::vector<SsimOptions> cases = {{.valid_mask = valid}};
  for (const Padding padding : kRimPaddings) cases.push_back({.padding = padding});
  for (const SsimOptions& options : cases) {
    const Reference expected = reference_ssim(x, y, {}, options);
    EXPECT_NEAR(computed(x, y, {}, options, false, false).value[0], expected.value[0], 1e-5);
    EXPECT_LE(
        test::relative_l2(computed(x, y, {}, options, true, false).x_gradient, expected.x_gradient),
        2e-5);
  }
}

TEST_F(SsimCudaRim, BitsAreTheSameEveryTime) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 150, 330}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array valid = test::noise({150, 330}, DType::f32, Layout::dense, 5, 1);
  std::vector<SsimOptions> cases = {{.valid_mask = valid}};
  for (const Padding padding : kRimPaddings) cases.push_back({.padding = padding});
  for (const SsimOptions& options : cases) {
    const Reference expected = computed(x, y, {}, options);
    for (int run = 0; run < 20; ++run) {
      const Reference actual = computed(x, y, {}, options);
      EXPECT_EQ(actual.value, expected.value);
      EXPECT_EQ(actual.x_gradient, expected.x_gradient);
      EXPECT_EQ(actual.y_gradient, expected.y_gradient);
    }
  }
}

}  // namespace
}  // namespace similis
