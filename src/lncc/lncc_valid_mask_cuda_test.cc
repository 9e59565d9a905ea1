// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU's sliding window under valid_mask. Skipped, with a message, where there is no
// GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "src/lncc/cuda_test_cases.h"

namespace similis {
namespace {

using lncc_internal::computed;
using lncc_internal::expect_same_bits;
using lncc_internal::LnccCuda;
using lncc_internal::on_cpu;
using lncc_internal::Pair;
using lncc_internal::Reference;
using lncc_internal::reference_lncc;
using test::Layout;

// Weights of 0 in single pixels and in blocks wider than a window, and others up to 1.
double soft(std::int64_t i) {
  return i % 7 == 3 || i / 450 % 3 == 1 ? 0.0 : 0.05 + 0.95 * test::uniform(9, i);
}
double zero_or_one(std::int64_t i) { return i % 5 == 2 || i / 450 % 3 == 1 ? 0.0 : 1.0; }

Extents spatial(const Extents& shape) { return {shape[2], shape[3], shape[4]}; }

test::Array weights(const Extents& shape, DType dtype) {
  return test::make(shape, dtype, Layout::dense, dtype == DType::f32 ? soft : zero_or_one);
}

// Writes NaN where the weights of a [D,H,W] mask are 0.
test::Array with_holes(const test::Array& image, const test::Array& mask) {
  const std::vector<double> pixels = to_doubles(image), weight = to_doubles(mask);
  return test::make(image.shape, DType::f32, Layout::dense, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return weight[at % weight.size()] == 0 ? std::nan("") : pixels[at];
  });
}

void expect_near(const Reference& actual, const Reference& expected) {
  ASSERT_EQ(actual.value.size(), expected.value.size());
  for (std::size_t i = 0; i < actual.value.size(); ++i) {
    EXPECT_NEAR(
        actual.value[i], expected.value[i], 1e-6 * std::max(1.0, std::abs(expected.value[i])));
  }
  EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 2e-6);
  EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 2e-6);
}

// Sizes around a thread's eight rows and around tiles, one row, one plane, one column; rows that
// are copied whole and others; weights of f32 and of u8; pixels that are NaN under a weight of 0.
TEST_F(LnccCuda, TheSlidingWindowUnderAValidMaskMatchesTheReference) {
  const Extents shapes[] = {{1, 1, 9, 17, 161}, {2, 2, 13, 9, 48}, {1, 1, 37, 33, 31},
      {1, 1, 1, 41, 67}, {1, 3, 1, 1, 40}, {1, 1, 40, 1, 1}, {1, 1, 20, 25, 321}};
  for (const Extents& shape : shapes) {
    const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
    for (const DType dtype : {DType::f32, DType::u8}) {
      const test::Array mask = weights(spatial(shape), dtype);
      const Pair holed = {with_holes(pair.x, mask), with_holes(pair.y, mask)};
      for (const int window : {3, 7, 13}) {
        for (const Padding padding : lncc_internal::kPaddings) {
          bool fits = true;
          for (int axis = 2; axis < 5; ++axis) fits &= shape[axis] >= window;
          if (padding == Padding::valid && !fits) continue;
          for (const Reduction reduction : {Reduction::mean, Reduction::per_channel}) {
            SCOPED_TRACE(fmt::format(
                "{} {} {} {}", shape, name(dtype), window, lncc_internal::name(padding)));
            const LnccOptions options{.window_size = window,
                .padding = padding,
                .reduction = reduction,
                .valid_mask = mask};
            const Reference expected = window < 13 ? reference_lncc(pair.x, pair.y, {}, options)
                                                   : on_cpu(pair, {}, options);
            expect_near(computed(holed.x, holed.y, {}, options), expected);
            const Reference of_y = computed(holed.x, holed.y, {}, options, false, true);
            EXPECT_LE(test::relative_l2(of_y.y_gradient, expected.y_gradient), 2e-6);
            const Reference value = computed(holed.x, holed.y, {}, options, false, false);
            EXPECT_EQ(value.value, computed(holed.x, holed.y, {}, options).value);
          }
        }
      }
    }
  }
}

// A mask of its own for each image, one for each channel, and strides that no vector takes.
TEST_F(LnccCuda, ValidMasksOfEveryShapeAndStride) {
  const Extents shape = {2, 3, 12, 20, 52};
  const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const Extents shapes[] = {{2, 1, 12, 20, 52}, {2, 3, 12, 20, 52}, {1, 3, 12, 20, 52}};
  for (const Extents& of_mask : shapes) {
    for (const Layout layout : {Layout::dense, Layout::channels_last}) {
      const test::Array mask = test::make(of_mask, DType::f32, layout, soft);
      const LnccOptions options{.window_size = 5, .valid_mask = mask};
      SCOPED_TRACE(fmt::format("{}", of_mask));
      expect_near(computed(pair.x, pair.y, {}, options), on_cpu(pair, {}, options));
    }
  }
}

// Weights that fall to 1e-20 beside others of 1, as those of a feathered mask: what is left in a
// sum that slides must not count.
TEST_F(LnccCuda, TinyWeightsBesideOthersDoNoHarm) {
  const Extents shape = {1, 1, 60, 24, 64};
  const Pair pair = lncc_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array mask =
      test::make(spatial(shape), DType::f32, Layout::dense, [](std::int64_t i) {
        const double z = static_cast<double>(i / (24 * 64)) / 6 - 1;
        return std::exp(-z * z * 0.6) * (i % 11 == 0 ? 0 : 1);
      });
  const LnccOptions options{.window_size = 5, .valid_mask = mask};
  expect_near(computed(pair.x, pair.y, {}, options), on_cpu(pair, {}, options));
}

// Several tiles and chunks; the same bits in 20 runs and in parts.
TEST_F(LnccCuda, AValidMaskLeavesNoSeamAndKeepsItsBits) {
  const Pair pair =
      lncc_internal::textured({1, 2, 90, 70, 224}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const DType dtype : {DType::f32, DType::u8}) {
    const test::Array mask = weights({90, 70, 224}, dtype);
    LnccOptions options{.window_size = 7, .valid_mask = mask};
    const Reference actual = computed(pair.x, pair.y, {}, options);
    expect_near(actual, on_cpu(pair, {}, options));
    for (int run = 0; run < 20; ++run) {
      expect_same_bits(computed(pair.x, pair.y, {}, options), actual);
    }
    options.workspace = LnccWorkspace::small;
    expect_same_bits(computed(pair.x, pair.y, {}, options), actual);
  }
}

}  // namespace
}  // namespace similis
