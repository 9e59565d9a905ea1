// SPDX-License-Identifier: Apache-2.0
// SSIM through Vulkan against the reference in f64. Skipped, with a message, where there is no
// device.
#include <gtest/gtest.h>

#include <cmath>

#include "similis/c/ssim.h"
#include "similis/c/vulkan.h"
#include "similis/vulkan.hpp"
#include "src/gpu/vulkan/test_device.h"
#include "src/ssim/test_cases.h"
#include "tests/c_tensor.h"
#include "tests/refusal.h"

namespace similis::ssim_internal {
namespace {

using test::Layout;

class SsimVulkan : public test::VulkanTest<> {
 protected:
  Reference through_vulkan(const Pair& pair, const SsimRequest& request, const SsimOptions& options,
      bool by_x = false, bool by_y = false, Layout layout = Layout::dense) const {
    return computed(pair.x, pair.y, request, options, by_x, by_y, layout, exec());
  }

  static double tolerance_of(const SsimOptions& options) {
    return options.reduction == Reduction::none ? kMapOnGpu : 1e-6;
  }

  void expect_the_references(
      const Pair& pair, const SsimRequest& request, const SsimOptions& options) const {
    const Reference expected = reference_ssim(pair.x, pair.y, request, options);
    expect_near(through_vulkan(pair, request, options), expected, tolerance_of(options));
  }

  // Values and gradients to both images, and with a dense layout to each image alone.
  void expect_the_references_gradients(const Pair& pair, SsimRequest request,
      const SsimOptions& options, double tolerance = 1e-5, Layout layout = Layout::dense) const {
    const test::Array upstream = upstream_for(pair.x.shape, options);
    request.upstream = upstream;
    const Reference expected = reference_ssim(pair.x, pair.y, request, options);
    const auto expect_by = [&](bool by_x, bool by_y) {
      expect_near(through_vulkan(pair, request, options, by_x, by_y, layout), expected,
          tolerance_of(options), tolerance);
    };
    expect_by(true, true);
    if (layout != Layout::dense) return;
    expect_by(true, false);
    expect_by(false, true);
  }
};

// One window; a strip of 118 columns or 108 with gradients, and more; segments of 32 rows and more.
constexpr std::int64_t kSizes[][2] = {{11, 11}, {12, 43}, {33, 74}, {70, 131}};

TEST_F(SsimVulkan, IsTheReferencesUnderEachPaddingAndReduction) {
  for (const auto& [height, width] : kSizes) {
    const Extents shape{2, height > 40 ? 1 : 2, height, width};
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
    const SsimOptions of_scikit_image{.window_size = 7,
        .window = WindowShape::box,
        .sample_covariance = true,
        .padding = padding};
    expect_the_references(pair, {}, of_scikit_image);
  }
}

TEST_F(SsimVulkan, GradientsAreTheReferencesUnderEachPaddingAndReduction) {
  for (const auto& [height, width] : kSizes) {
    const Extents shape{2, height > 40 ? 1 : 2, height, width};
    const Pair pair = textured(shape, DType::f32, Layout::dense, Layout::permuted, 1);
    for (const Padding padding : kPaddings) {
      for (const Reduction reduction : kReductions) {
        if (height == 70 && reduction == Reduction::per_image) continue;
        SCOPED_TRACE(fmt::format("{} {} {}", shape, name(padding), name(reduction)));
        // An upstream of noise leaves little of the gradient where images are flat.
        expect_the_references_gradients(pair, {}, {.padding = padding, .reduction = reduction},
            reduction == Reduction::none ? 2e-5 : 1e-5);
      }
    }
  }
}

// Rows that begin at multiples of 16 B are read and written in vectors.
TEST_F(SsimVulkan, GradientsOfDenseImagesAreTheReferences) {
  for (const std::int64_t width : {112, 136, 133}) {
    const Pair pair = textured({1, 2, 45, width}, DType::f32, Layout::dense, Layout::dense, 1);
    for (const Padding padding : {Padding::valid, Padding::same}) {
      SCOPED_TRACE(fmt::format("{} {}", width, name(padding)));
      const SsimRequest loss{.form = SsimRequest::Form::loss};
      const Reference expected = reference_ssim(pair.x, pair.y, loss, {.padding = padding});
      const Reference found = through_vulkan(pair, loss, {.padding = padding}, true, true);
      expect_near(found, expected, 1e-6);
      const Reference by_x = through_vulkan(pair, loss, {.padding = padding}, true, false);
      EXPECT_EQ(by_x.value, found.value);
      expect_near(by_x, expected, 1e-6);
    }
  }
}

TEST_F(SsimVulkan, GradientsAreTheReferencesOfEachTypeAndLayout) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    // A gradient is rounded to its type once.
    const double tolerance = dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 3e-4 : 2.5e-3;
    for (const Layout layout :
        {Layout::dense, Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
      SCOPED_TRACE(similis::name(dtype));
      const Pair pair = textured({1, 2, 27, 53}, dtype, layout, Layout::dense, 1);
      expect_the_references_gradients(
          pair, {}, {.padding = Padding::same, .reduction = Reduction::sum}, tolerance, layout);
      expect_the_references_gradients(
          pair, {}, {.padding = Padding::reflect, .reduction = Reduction::sum}, tolerance, layout);
    }
  }
}

TEST_F(SsimVulkan, GradientsAreTheReferencesUnderEachWindow) {
  const Pair pair = textured({1, 1, 31, 45}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const PerAxis<int>& size : {PerAxis<int>(1), PerAxis<int>(7), PerAxis<int>(3, 9)}) {
    for (const Padding padding : kPaddings) {
      SCOPED_TRACE(fmt::format("{} {}×{}", name(padding), size.y(), size.x()));
      const SsimOptions options{.window_size = size, .sigma = 2, .padding = padding};
      const Reference expected = reference_ssim(pair.x, pair.y, {}, options);
      const Reference found = through_vulkan(pair, {}, options, true, true);
      expect_near(found, expected, 1e-6);
    }
  }
}

TEST_F(SsimVulkan, WithL1IsTheReferences) {
  const SsimRequest request{.form = SsimRequest::Form::loss, .l1_weight = 0.8, .ssim_weight = 0.2};
  for (const auto& [height, width] : {std::pair{37, 70}, std::pair{40, 120}}) {
    const Pair pair = textured({2, 2, height, width}, DType::f32, Layout::dense, Layout::dense, 1);
    for (const Padding padding : kPaddings) {
      for (const Reduction reduction : kReductions) {
        if (padding == Padding::valid && reduction == Reduction::none) continue;
        SCOPED_TRACE(fmt::format("{} {} {}", width, name(padding), name(reduction)));
        const SsimOptions options{.padding = padding, .reduction = reduction};
        expect_the_references(pair, request, options);
        if (width == 120) expect_the_references_gradients(pair, request, options, 2e-5);
      }
    }
  }
}

TEST_F(SsimVulkan, OfEqualImagesIsOneInAllBits) {
  const Pair pair = textured({1, 3, 37, 61}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Padding padding : kPaddings) {
    EXPECT_EQ(item(ssim(pair.x, pair.x, {.padding = padding}, exec())), 1);
    EXPECT_EQ(item(ssim_loss(pair.x, pair.x, {.padding = padding}, exec())), 0);
  }
}

// Bright images with little contrast: variances of f32 averages about 0 would be lost, and those of
// x - y too where one image is darker.
TEST_F(SsimVulkan, KeepsSmallContrastOnBrightGrounds) {
  const auto at = [](double base, std::uint32_t seed) {
    return test::make({1, 1, 40, 70}, DType::f32, Layout::dense,
        [=](std::int64_t i) { return base + 1e-3 * test::uniform(seed, i); });
  };
  expect_the_references({at(0.9, 1), at(0.9, 2)}, {}, {.k1 = 0, .k2 = 0.0003});
  for (const Padding padding : {Padding::valid, Padding::renormalize}) {
    const Pair pair{at(0.2, 1), at(0.9, 2)};
    expect_the_references(pair, {}, {.padding = padding});
    expect_the_references_gradients(pair, {}, {.padding = padding});
  }
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
  EXPECT_TRUE(std::isnan(item(ssim(pair.x, pair.y, {}, exec()))));
}

TEST_F(SsimVulkan, OfBuffersOfTheDeviceIsTheReferences) {
  const Pair pair = textured({2, 2, 33, 47}, DType::f32, Layout::dense, Layout::dense, 1);
  const Device device = VulkanDevice().device();
  const Tensor x = test::in_vulkan_buffer(pair.x), y = test::in_vulkan_buffer(pair.y);
  const Tensor gradient = ssim_value_and_gradient(x, y).x_gradient;
  EXPECT_EQ(gradient.device, device);
  const std::vector<float> on_cpu = test::elements_on_vulkan<float>(gradient);
  EXPECT_LT(test::relative_l2(
                {on_cpu.begin(), on_cpu.end()}, reference_ssim(pair.x, pair.y, {}, {}).x_gradient),
      1e-5);
  for (const Reduction reduction : {Reduction::per_channel, Reduction::none}) {
    const SsimOptions options{.reduction = reduction};
    const Tensor value = ssim(x, y, options);
    EXPECT_EQ(value.device, device);
    const std::vector<float> found = test::elements_on_vulkan<float>(value);
    const Reference expected = reference_ssim(pair.x, pair.y, {}, options);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected.value[i], reduction == Reduction::none ? kMapOnGpu : 1e-6);
  }
}

TEST_F(SsimVulkan, OfCIsThatOfCpp) {
  const Pair pair = textured({1, 2, 31, 45}, DType::f32, Layout::dense, Layout::dense, 1);
  const Tensor value = allocate({}, DType::f32), expected = allocate({}, DType::f32);
  const Tensor gradient = allocate(pair.x.shape, DType::f32);
  const Tensor expected_gradient = allocate(pair.x.shape, DType::f32);
  ssim_into(pair.x, pair.y, {.value = expected, .x_gradient = expected_gradient}, {}, exec());
  similis_vulkan_device* device = nullptr;
  ASSERT_EQ(similis_vulkan_device_create(0, &device), SIMILIS_OK);
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.vulkan = device;
  using test::CTensor;
  EXPECT_EQ(similis_ssim(CTensor(pair.x).get(), CTensor(pair.y).get(), nullptr, nullptr,
                CTensor(value).get(), CTensor(gradient).get(), nullptr, &execution),
      SIMILIS_OK)
      << similis_last_error();
  similis_vulkan_device_destroy(device);
  EXPECT_EQ(to_doubles(value), to_doubles(expected));
  EXPECT_EQ(to_doubles(gradient), to_doubles(expected_gradient));
}

TEST_F(SsimVulkan, RefusesWhatItHasNoKernelsFor) {
  const Pair pair = textured({1, 1, 40, 40}, DType::f32, Layout::dense, Layout::dense, 1);
  const auto refuses = [&](const SsimRequest& request, const SsimOptions& options) {
    EXPECT_THROW(ssim_into(pair.x, pair.y, request, options, exec()), DeviceError);
  };
  const Tensor value = allocate({}, DType::f32), mask = allocate({1, 1, 40, 40}, DType::f32);
  std::fill_n(mask.elements<float>(), 1600, 1.0f);
  refuses({.value = value}, {.window_size = 13});
  refuses({.value = value}, {.mask = mask});
  const Pair doubles = textured({1, 1, 40, 40}, DType::f64, Layout::dense, Layout::dense, 1);
  EXPECT_THROW(ssim(doubles.x, doubles.y, {}, exec()), DeviceError);
}

}  // namespace
}  // namespace similis::ssim_internal
