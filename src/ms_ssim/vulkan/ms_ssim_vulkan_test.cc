// SPDX-License-Identifier: Apache-2.0
// MS-SSIM through Vulkan against the reference in f64. Skipped, with a message, where there is no
// device.
#include <gtest/gtest.h>

#include <cmath>

#include "similis/vulkan.hpp"
#include "src/gpu/vulkan/test_device.h"
#include "src/ms_ssim/reference.h"
#include "src/ssim/test_cases.h"

namespace similis::ms_ssim_internal {
namespace {

using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::textured;
using test::Layout;

constexpr Reduction kReductions[] = {
    Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel};
constexpr Downsample kRules[] = {
    Downsample::vainf, Downsample::ceil, Downsample::floor, Downsample::piq};
const MsSsimOptions kSmall{.window_size = 3, .sigma = 0.8, .weights = {0.2, 0.3, 0.5}};

class MsSsimVulkan : public test::VulkanTest<> {
 protected:
  Reference through_vulkan(const Pair& pair, const MsSsimRequest& request,
      const MsSsimOptions& options, bool by_x, bool by_y, Layout layout = Layout::dense) const {
    return window_test::computed_by<Reference>(
        ms_ssim_into, pair.x, pair.y, request, options, {by_x, by_y, layout}, exec());
  }

  void expect_the_references(const Pair& pair, const MsSsimOptions& options,
      double tolerance = 1e-5, Layout layout = Layout::dense) const {
    const bool has_gradient = pair.x.dtype != DType::u8;
    const Tensor upstream = window_test::upstream_for(
        pair.x.shape, options, DType::f32, Layout::dense, pair.x.dtype == DType::f16 ? 1000 : 1);
    const bool is_loss = options.reduction == Reduction::sum;
    const MsSsimRequest request{
        .form = is_loss ? SsimRequest::Form::loss : SsimRequest::Form::similarity,
        .upstream = upstream};
    const Reference expected = reference_ms_ssim(pair.x, pair.y, request, options);
    const Reference found =
        through_vulkan(pair, request, options, has_gradient, has_gradient, layout);
    ssim_internal::expect_near(found, expected, 1e-6, tolerance);
  }
};

TEST_F(MsSsimVulkan, IsTheReferencesUnderEachRuleAndReduction) {
  for (const Extents& shape :
      {Extents{2, 3, 37, 53}, Extents{1, 2, 38, 53}, Extents{2, 1, 35, 54}}) {
    const Pair pair = textured(shape, DType::f32, Layout::dense, Layout::permuted, 1);
    for (const Downsample rule : kRules) {
      for (const Reduction reduction : kReductions) {
        SCOPED_TRACE(
            fmt::format("{} {} {}", shape, static_cast<int>(rule), ssim_internal::name(reduction)));
        MsSsimOptions options = kSmall;
        options.downsample = rule;
        options.reduction = reduction;
        expect_the_references(pair, options);
      }
    }
  }
}

TEST_F(MsSsimVulkan, IsTheReferencesUnderEachPadding) {
  const Pair pair = textured({1, 2, 45, 31}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Padding padding : ssim_internal::kPaddings) {
    SCOPED_TRACE(ssim_internal::name(padding));
    MsSsimOptions options = kSmall;
    options.padding = padding;
    expect_the_references(pair, options);
  }
}

TEST_F(MsSsimVulkan, IsTheReferencesWithItsDefaults) {
  expect_the_references(
      textured({1, 2, 177, 180}, DType::f32, Layout::dense, Layout::dense, 1), {});
}

TEST_F(MsSsimVulkan, IsTheReferencesOfEachType) {
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16}) {
    SCOPED_TRACE(similis::name(dtype));
    const double tolerance = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
    const Layout layout = dtype == DType::bf16 ? Layout::permuted : Layout::dense;
    expect_the_references(
        textured({1, 2, 41, 54}, dtype, layout, Layout::dense, dtype == DType::u8 ? 255 : 1),
        kSmall, tolerance, layout);
  }
}

TEST_F(MsSsimVulkan, GradientsToOneImageAreThoseToBoth) {
  const Pair pair = textured({1, 2, 40, 56}, DType::f32, Layout::dense, Layout::dense, 1);
  const Reference both = through_vulkan(pair, {}, kSmall, true, true);
  const Reference by_x = through_vulkan(pair, {}, kSmall, true, false);
  const Reference by_y = through_vulkan(pair, {}, kSmall, false, true);
  EXPECT_LT(test::relative_l2(by_x.x_gradient, both.x_gradient), 1e-5);
  EXPECT_LT(test::relative_l2(by_y.y_gradient, both.y_gradient), 1e-5);
}

// A weight of 0 leaves its level out; a level whose mean is not positive makes the product 0.
TEST_F(MsSsimVulkan, LevelsThatDoNotCountAndProductsOfNothing) {
  const Pair pair = textured({1, 1, 41, 43}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const std::vector<double>& weights : {std::vector<double>{0.3, 0, 0.7},
           std::vector<double>{1.5, 2, 0}, std::vector<double>{0.5}}) {
    MsSsimOptions options = kSmall;
    options.weights = weights;
    expect_the_references(pair, options);
  }
  const Pair opposite{test::make({1, 1, 40, 40}, DType::f32, Layout::dense,
                          [](std::int64_t i) { return test::uniform(5, i); }),
      test::make({1, 1, 40, 40}, DType::f32, Layout::dense,
          [](std::int64_t i) { return 1 - test::uniform(5, i); })};
  const Reference found = through_vulkan(opposite, {}, kSmall, true, true);
  EXPECT_EQ(found.value[0], 0);
  for (const double gradient : found.x_gradient) ASSERT_EQ(gradient, 0);
}

TEST_F(MsSsimVulkan, OfEqualImagesIsOneAndOfNearOnesKeepsItsDigits) {
  const Pair pair = textured({1, 1, 60, 47}, DType::f32, Layout::dense, Layout::dense, 1);
  EXPECT_EQ(item(ms_ssim(pair.x, pair.x, kSmall, exec())), 1);
  EXPECT_EQ(item(ms_ssim_loss(pair.x, pair.x, kSmall, exec())), 0);
  const test::Array near = test::make(pair.x.shape, DType::f32, Layout::dense, [&](std::int64_t i) {
    return pair.x.elements<float>()[i] + 1e-4 * (test::uniform(9, i) - 0.5);
  });
  const double expected =
      reference_ms_ssim(pair.x, near, {.form = SsimRequest::Form::loss}, kSmall).value[0];
  EXPECT_NEAR(item(ms_ssim_loss(pair.x, near, kSmall, exec())) / expected, 1, 1e-3);
}

// Coarse levels hold x + y and x - y in f32, which would round away a ten-thousandth of such
// contrast, had they not their plane's ground taken from them.
TEST_F(MsSsimVulkan, KeepsSmallContrastOnBrightGrounds) {
  const auto at = [](double base, std::uint32_t seed) {
    return test::make({1, 2, 60, 47}, DType::f32, Layout::dense,
        [=](std::int64_t i) { return base + 1e-3 * test::uniform(seed, i); });
  };
  for (const auto& [of_x, of_y] : {std::pair{0.2, 0.9}, std::pair{0.9, 0.9}, std::pair{0.7, 0.6}}) {
    const Pair pair{at(of_x, 1), at(of_y, 2)};
    for (const Padding padding : {Padding::valid, Padding::renormalize}) {
      for (const Downsample rule : {Downsample::vainf, Downsample::piq}) {
        SCOPED_TRACE(fmt::format(
            "{} {} {} {}", of_x, of_y, ssim_internal::name(padding), static_cast<int>(rule)));
        MsSsimOptions options = kSmall;
        options.padding = padding;
        options.downsample = rule;
        expect_the_references(pair, options);
      }
    }
  }
  // A gradient by y alone is by x + y and y - x.
  const Pair pair{at(0.2, 1), at(0.9, 2)};
  const Reference expected = reference_ms_ssim(pair.x, pair.y, {}, kSmall);
  ssim_internal::expect_near(through_vulkan(pair, {}, kSmall, false, true), expected, 1e-6);
}

TEST_F(MsSsimVulkan, OfBuffersOfTheDeviceIsTheReferences) {
  const Pair pair = textured({2, 1, 37, 44}, DType::f32, Layout::dense, Layout::dense, 1);
  const ValueAndGradient found = ms_ssim_value_and_gradient(test::in_vulkan_buffer(pair.x),
      test::in_vulkan_buffer(pair.y), GradientOf::x, kSmall, exec());
  const Reference expected = reference_ms_ssim(pair.x, pair.y, {}, kSmall);
  EXPECT_NEAR(test::elements_on_vulkan<float>(found.value)[0], expected.value[0], 1e-6);
  const std::vector<float> gradient = test::elements_on_vulkan<float>(found.x_gradient);
  EXPECT_LT(test::relative_l2({gradient.begin(), gradient.end()}, expected.x_gradient), 1e-5);
}

TEST_F(MsSsimVulkan, RefusesWhatItHasNoKernelsFor) {
  const Pair doubles = textured({1, 1, 40, 40}, DType::f64, Layout::dense, Layout::dense, 1);
  EXPECT_THROW(ms_ssim(doubles.x, doubles.y, kSmall, exec()), DeviceError);
  const Pair volumes = textured({1, 1, 1, 40, 40}, DType::f32, Layout::dense, Layout::dense, 1);
  MsSsimOptions options = kSmall;
  options.padding = Padding::same;
  EXPECT_THROW(ms_ssim(volumes.x, volumes.y, options, exec()), DeviceError);
  const Pair pair = textured({1, 1, 40, 40}, DType::f32, Layout::dense, Layout::dense, 1);
  options = kSmall;
  options.window_size = 13;
  options.weights = {1};
  EXPECT_THROW(ms_ssim(pair.x, pair.y, options, exec()), DeviceError);
  const Tensor mask = allocate({40, 40}, DType::f32);
  std::fill_n(mask.elements<float>(), 1600, 1.0f);
  options = kSmall;
  options.mask = mask;
  EXPECT_THROW(ms_ssim(pair.x, pair.y, options, exec()), DeviceError);
}

}  // namespace
}  // namespace similis::ms_ssim_internal
