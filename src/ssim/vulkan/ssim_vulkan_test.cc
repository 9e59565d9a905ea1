// SPDX-License-Identifier: Apache-2.0
// SSIM through Vulkan against the reference in f64. Skipped, with a message, where there is no
// device.
#include <gtest/gtest.h>

#include <cmath>

#include "similis/vulkan.hpp"
#include "src/gpu/device.h"
#include "src/ssim/test_cases.h"
#include "tests/refusal.h"

namespace similis::ssim_internal {
namespace {

using test::Layout;

class SsimVulkan : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::vulkan) == 0)
      GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
    exec_.queue = VulkanDevice().queue();
  }

  Reference through_vulkan(
      const Pair& pair, const SsimRequest& request, const SsimOptions& options) const {
    return computed(pair.x, pair.y, request, options, false, false, Layout::dense, exec_);
  }

  // Values to 1e-6, or to that part of a sum.
  void expect_the_references(
      const Pair& pair, const SsimRequest& request, const SsimOptions& options) const {
    const Reference expected = reference_ssim(pair.x, pair.y, request, options);
    const Reference found = through_vulkan(pair, request, options);
    ASSERT_EQ(found.value.size(), expected.value.size());
    const double tolerance = options.reduction == Reduction::none ? kMapOnGpu : 1e-6;
    for (std::size_t i = 0; i < expected.value.size(); ++i) {
      ASSERT_NEAR(
          found.value[i], expected.value[i], tolerance * std::max(1.0, std::abs(expected.value[i])))
          << i;
    }
  }

  Execution exec_;
};

// Around a tile of 32 × 8, and one window.
constexpr std::int64_t kSizes[][2] = {{11, 11}, {12, 43}, {19, 42}, {33, 74}};

TEST_F(SsimVulkan, IsTheReferencesUnderEachPaddingAndReduction) {
  for (const auto& [height, width] : kSizes) {
    const Extents shape{2, 2, height, width};
    const Pair pair = textured(shape, DType::f32, Layout::dense, Layout::permuted, 1);
    for (const Padding padding : kPaddings) {
      for (const Reduction reduction : kReductions) {
        SCOPED_TRACE(fmt::format("{} {} {}", shape, name(padding), name(reduction)));
        expect_the_references(pair, {}, {.padding = padding, .reduction = reduction});
        if (height != 33) continue;
        expect_the_references(pair, {.form = SsimRequest::Form::loss, .ssim_weight = 0.25},
            {.padding = padding, .reduction = reduction});
      }
    }
  }
}

TEST_F(SsimVulkan, IsTheReferencesOfEachTypeAndLayout) {
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    const double range = dtype == DType::u8 ? 255 : 1;
    for (const Layout layout :
        {Layout::dense, Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
      SCOPED_TRACE(similis::name(dtype));
      const Pair pair = textured({1, 2, 27, 53}, dtype, layout, Layout::dense, range);
      for (const Reduction reduction : {Reduction::mean, Reduction::none})
        expect_the_references(pair, {}, {.padding = Padding::same, .reduction = reduction});
    }
  }
}

TEST_F(SsimVulkan, IsTheReferencesUnderEachWindow) {
  const Pair pair = textured({1, 1, 31, 45}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Padding padding : kPaddings) {
    for (const int size : {1, 3, 5, 7, 9, 11}) {
      SCOPED_TRACE(fmt::format("{} {}", name(padding), size));
      expect_the_references(pair, {}, {.window_size = size, .padding = padding});
    }
    const PerAxis<int> oblong{3, 9};
    expect_the_references(
        pair, {}, {.window_size = oblong, .sigma = 2, .k1 = 0.02, .padding = padding});
  }
}

TEST_F(SsimVulkan, OfEqualImagesIsOneInAllBits) {
  const Pair pair = textured({1, 3, 37, 61}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Padding padding : kPaddings) {
    EXPECT_EQ(item(ssim(pair.x, pair.x, {.padding = padding}, exec_)), 1);
    EXPECT_EQ(item(ssim_loss(pair.x, pair.x, {.padding = padding}, exec_)), 0);
  }
}

// Bright images with little contrast: variances of f32 averages about 0 would be lost.
TEST_F(SsimVulkan, KeepsSmallContrastOnABrightGround) {
  const auto at = [](double base, std::uint32_t seed) {
    return test::make({1, 1, 40, 70}, DType::f32, Layout::dense,
        [=](std::int64_t i) { return base + 1e-3 * test::uniform(seed, i); });
  };
  const Pair pair{at(0.9, 1), at(0.9, 2)};
  expect_the_references(pair, {}, {.k1 = 0, .k2 = 0.0003});
}

TEST_F(SsimVulkan, APixelThatIsNotANumberIsSeenByItsWindowsOnly) {
  Pair pair = textured({1, 1, 24, 70}, DType::f32, Layout::dense, Layout::dense, 1);
  pair.x.elements<float>()[12 * 70 + 32] = std::nanf("");
  const SsimOptions options{
      .window_size = 7, .padding = Padding::same, .reduction = Reduction::none};
  const Reference found = through_vulkan(pair, {}, options);
  for (std::int64_t row = 0; row < 24; ++row) {
    for (std::int64_t column = 0; column < 70; ++column) {
      const bool sees = std::abs(row - 12) <= 3 && std::abs(column - 32) <= 3;
      EXPECT_EQ(std::isnan(found.value[static_cast<std::size_t>(row * 70 + column)]), sees)
          << row << ' ' << column;
    }
  }
  EXPECT_TRUE(std::isnan(item(ssim(pair.x, pair.y, {}, exec_))));
}

TEST_F(SsimVulkan, OfBuffersOfTheDeviceIsTheReferences) {
  const Pair pair = textured({2, 2, 33, 47}, DType::f32, Layout::dense, Layout::dense, 1);
  const Device device = VulkanDevice().device();
  const auto on_device = [&](const TensorView& view) {
    Tensor copy = allocate(view.shape, view.dtype, device);
    gpu::copy_from_cpu(copy, view.data(),
        static_cast<std::size_t>(view.shape.count()) * size_bytes(view.dtype), nullptr);
    return copy;
  };
  const Tensor x = on_device(pair.x), y = on_device(pair.y);
  for (const Reduction reduction : {Reduction::per_channel, Reduction::none}) {
    const SsimOptions options{.reduction = reduction};
    const Tensor value = ssim(x, y, options);
    EXPECT_EQ(value.device, device);
    std::vector<float> found(static_cast<std::size_t>(value.shape.count()));
    gpu::copy_to_cpu(found.data(), value, found.size() * sizeof(float), nullptr);
    const Reference expected = reference_ssim(pair.x, pair.y, {}, options);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected.value[i], reduction == Reduction::none ? kMapOnGpu : 1e-6);
  }
}

TEST_F(SsimVulkan, RefusesWhatItHasNoKernelsFor) {
  const Pair pair = textured({1, 1, 40, 40}, DType::f32, Layout::dense, Layout::dense, 1);
  const auto refuses = [&](const SsimRequest& request, const SsimOptions& options) {
    EXPECT_THROW(ssim_into(pair.x, pair.y, request, options, exec_), DeviceError);
  };
  const Tensor value = allocate({}, DType::f32), gradient = allocate({1, 1, 40, 40}, DType::f32);
  const Tensor mask = allocate({1, 1, 40, 40}, DType::f32);
  std::fill_n(mask.elements<float>(), 1600, 1.0f);
  refuses({.value = value, .x_gradient = gradient}, {});
  refuses({.value = value}, {.window_size = 13});
  refuses({.value = value}, {.mask = mask});
  EXPECT_THROW(l1_ssim(pair.x, pair.y, {}, exec_), DeviceError);
  const Pair doubles = textured({1, 1, 40, 40}, DType::f64, Layout::dense, Layout::dense, 1);
  EXPECT_THROW(ssim(doubles.x, doubles.y, {}, exec_), DeviceError);
}

}  // namespace
}  // namespace similis::ssim_internal
