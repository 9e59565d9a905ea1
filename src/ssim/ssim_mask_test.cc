// SPDX-License-Identifier: Apache-2.0
// SSIM under masks: weights on the map, and pixels that do not exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Also false for NaN.
bool are_zeros(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double each) { return each == 0; });
}

void expect_near(const Reference& actual, const Reference& expected) {
  EXPECT_LE(test::relative_l2(actual.value, expected.value), 1e-5);
  // Pictures have flat areas, where averages in f32 cancel.
  const double of_gradient = test::runs_on_gpu() ? 3e-5 : 1e-5;
  EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), of_gradient);
  EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), of_gradient);
}

// On every backend, with every padding and reduction, values and gradients with upstream.
void expect_reference(const Pair& images, SsimOptions options, double l1_weight) {
  const auto& [x, y] = images;
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const Reduction reduction : ssim_internal::kReductions) {
      options.padding = padding;
      options.reduction = reduction;
      const bool has_l1 = reduction != Reduction::none || padding != Padding::valid;
      const Tensor upstream = ssim_internal::upstream_for(x.shape, options);
      for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
        const SsimRequest request{.form = form,
            .l1_weight = has_l1 ? l1_weight : 0,
            .ssim_weight = 0.7,
            .upstream = upstream};
        const Reference expected = reference_ssim(x, y, request, options);
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          SCOPED_TRACE(backend.name + " " + ssim_internal::name(padding) + " " +
                       ssim_internal::name(reduction));
          const test::ScopedBackend chosen(backend);
          expect_near(computed(x, y, request, options), expected);
        }
      }
    }
  }
}

// 0 in a third of the pixels and in a whole block, else a weight.
double weight(std::int64_t i, std::int64_t width) {
  const bool in_block = i % width < 17 && i / width < 18;
  const double amount = test::uniform(7, i);
  return in_block || amount < 0.33 ? 0 : amount;
}

test::Array weights(const Extents& shape, DType dtype = DType::f32, Layout layout = Layout::dense) {
  const std::int64_t width = shape[shape.rank() - 1];
  return test::make(shape, dtype, layout, [=](std::int64_t i) { return weight(i, width); });
}

// Puts `filler` in all pixels where the mask is 0.
void spoil(const Pair& images, const TensorView& mask, float filler) {
  const std::vector<double> values = to_doubles(mask);
  for (const test::Array* image : {&images.x, &images.y}) {
    for (std::int64_t i = 0; i < image->shape.count(); ++i) {
      if (values[static_cast<std::size_t>(i % mask.shape.count())] != 0) continue;
      static_cast<float*>(image->data())[test::offset_of(*image, i)] = filler;
    }
  }
}

Pair images(const Extents& shape) {
  return ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::channels_last, 1);
}

TEST(SsimMask, WeighsTheMapInAnyShapeAndType) {
  const Extents shape = {2, 3, 31, 37};
  const Pair pair = images(shape);
  expect_reference(pair, {.mask = weights({31, 37})}, 0.3);
  for (const Extents& mask_shape : {Extents{3, 31, 37}, Extents{1, 31, 37}, Extents{2, 3, 31, 37},
           Extents{2, 1, 31, 37}, Extents{1, 3, 31, 37}, Extents{1, 1, 31, 37}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
      const test::Array mask = test::make(mask_shape, dtype, Layout::permuted,
          [](std::int64_t i) { return test::uniform(7, i) < 0.4 ? 0.0 : 1.0 + (i % 3); });
      const SsimOptions options{.window_size = 5, .mask = mask};
      SCOPED_TRACE(fmt::format("{} {}", mask_shape, dtype));
      expect_near(
          computed(pair.x, pair.y, {}, options), reference_ssim(pair.x, pair.y, {}, options));
    }
  }
}

TEST(SsimMask, OfOnesChangesNothing) {
  const Pair pair = images({2, 3, 31, 37});
  const test::Array ones =
      test::make({31, 37}, DType::u8, Layout::dense, [](std::int64_t) { return 1; });
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const Reduction reduction : ssim_internal::kReductions) {
      const SsimOptions plain{.padding = padding, .reduction = reduction};
      SsimOptions masked = plain, valid = plain;
      masked.mask = ones;
      valid.valid_mask = ones;
      SCOPED_TRACE(ssim_internal::name(padding) + " " + ssim_internal::name(reduction));
      const Reference expected = reference_ssim(pair.x, pair.y, {}, plain);
      expect_near(computed(pair.x, pair.y, {}, masked), expected);
      expect_near(computed(pair.x, pair.y, {}, valid), expected);
    }
  }
}

// A mask of one pixel gives the map's value there.
TEST(SsimMask, PicksOnePixel) {
  const Pair pair = images({1, 1, 31, 37});
  const std::vector<double> map =
      to_doubles(ssim(pair.x, pair.y, {.padding = Padding::same, .reduction = Reduction::none}));
  for (const std::int64_t pixel : {std::int64_t{0}, std::int64_t{500}, std::int64_t{1146}}) {
    const test::Array one =
        test::make({31, 37}, DType::f32, Layout::dense, [&](std::int64_t i) { return i == pixel; });
    EXPECT_NEAR(item(ssim(pair.x, pair.y, {.padding = Padding::same, .mask = one})),
        map[static_cast<std::size_t>(pixel)], 1e-6);
  }
}

// A similarity of nothing is NaN, a loss 0; neither has a gradient.
void expect_nothing(const Pair& pair, const SsimOptions& options) {
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
      const Reference result = computed(pair.x, pair.y, {.form = form, .l1_weight = 0}, options);
      for (const double value : result.value) {
        if (form == SsimRequest::Form::loss) {
          EXPECT_EQ(value, 0);
        } else {
          EXPECT_TRUE(std::isnan(value)) << value;
        }
      }
      EXPECT_TRUE(are_zeros(result.x_gradient));
      EXPECT_TRUE(are_zeros(result.y_gradient));
    }
  }
}

TEST(SsimMask, AMeanWithoutWeightsIsNaNAndALoss0) {
  const Pair pair = images({2, 3, 31, 37});
  // No weight but in the first image's second channel.
  const test::Array some = test::make({2, 3, 31, 37}, DType::f32, Layout::dense,
      [](std::int64_t i) { return i / (31 * 37) == 1 ? 1 : 0; });
  const test::Array rim = test::make({31, 37}, DType::f32, Layout::dense,
      [](std::int64_t i) { return i % 37 < 5 || i % 37 >= 32 ? 1 : 0; });
  for (const bool is_valid_mask : {false, true}) {
    SsimOptions options{.reduction = Reduction::per_channel};
    (is_valid_mask ? options.valid_mask : options.mask) = some;
    const Reference result = computed(pair.x, pair.y, {}, options);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(result.value[i]), i != 1) << i;
    expect_near(result, reference_ssim(pair.x, pair.y, {}, options));
    // The mean is that of the channel that has weights.
    options.reduction = Reduction::mean;
    EXPECT_NEAR(item(ssim(pair.x, pair.y, options)), result.value[1], 1e-6);
    // With padding valid no window is centred on the rim.
    options = {};
    (is_valid_mask ? options.valid_mask : options.mask) = rim;
    expect_nothing(pair, options);
  }
}

TEST(SsimMask, WithoutAnyWeightASumIs0) {
  const Pair pair = images({1, 1, 31, 37});
  const test::Array none = test::filled({31, 37}, DType::u8, Layout::dense, 0);
  const SsimOptions options{.reduction = Reduction::sum, .mask = none};
  EXPECT_EQ(item(ssim(pair.x, pair.y, options)), 0);
  EXPECT_EQ(item(ssim_loss(pair.x, pair.y, options)), 0);
}

TEST(SsimValidMask, MatchesTheReference) {
  const Pair pair = images({2, 2, 31, 37});
  const test::Array mask = weights({31, 37}, DType::f16, Layout::reversed);
  expect_reference(pair, {.valid_mask = mask}, 0.3);
}

TEST(SsimValidMask, MatchesTheReferenceTogetherWithAMask) {
  const Pair pair = images({2, 2, 31, 37});
  const test::Array mask = test::noise({2, 1, 31, 37}, DType::f32, Layout::sliced, 5, 1);
  expect_reference(pair, {.mask = mask, .valid_mask = weights({31, 37})}, 0.3);
}

TEST(SsimValidMask, MatchesTheReferenceInVolumes) {
  const Pair pair = images({1, 2, 9, 12, 13});
  const test::Array mask = weights({9, 12, 13});
  expect_reference(pair, {.window_size = 5, .valid_mask = mask}, 0);
  expect_reference(pair, {.window_size = {1, 5, 3}, .mask = mask}, 0.5);
}

TEST(SsimValidMask, WhatDoesNotExistHasNoInfluenceAndNoGradient) {
  const test::Array mask = weights({31, 37});
  const std::vector<double> valid = to_doubles(mask);
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const Reduction reduction : ssim_internal::kReductions) {
      const SsimOptions options{.padding = padding, .reduction = reduction, .valid_mask = mask};
      const bool has_l1 = reduction != Reduction::none || padding != Padding::valid;
      const SsimRequest request{.l1_weight = has_l1 ? 0.5 : 0};
      const Pair clean = images({2, 2, 31, 37}), spoilt = images({2, 2, 31, 37});
      spoil(spoilt, mask, kNaN);
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        SCOPED_TRACE(backend.name + " " + ssim_internal::name(padding) + " " +
                     ssim_internal::name(reduction));
        const test::ScopedBackend chosen(backend);
        const Reference expected = computed(clean.x, clean.y, request, options);
        const Reference actual = computed(spoilt.x, spoilt.y, request, options);
        EXPECT_EQ(test::relative_l2(actual.value, expected.value), 0);  // a map holds NaN
        EXPECT_EQ(actual.x_gradient, expected.x_gradient);
        EXPECT_EQ(actual.y_gradient, expected.y_gradient);
        for (std::size_t i = 0; i < actual.x_gradient.size(); ++i) {
          if (valid[i % valid.size()] != 0) continue;
          ASSERT_EQ(actual.x_gradient[i], 0) << i;
          ASSERT_EQ(actual.y_gradient[i], 0) << i;
        }
      }
    }
  }
}

TEST(SsimValidMask, HugeValuesThatDoNotExistAreHarmless) {
  const test::Array mask = weights({31, 37});
  const SsimOptions options{.padding = Padding::reflect, .valid_mask = mask};
  const Pair clean = images({1, 1, 31, 37}), spoilt = images({1, 1, 31, 37});
  spoil(spoilt, mask, 1e30f);
  EXPECT_EQ(computed(spoilt.x, spoilt.y, {}, options).x_gradient,
      computed(clean.x, clean.y, {}, options).x_gradient);
}

TEST(SsimValidMask, InAMapWhatDoesNotExistIsNaN) {
  const Pair pair = images({1, 1, 31, 37});
  const test::Array mask = weights({31, 37});
  spoil(pair, mask, kNaN);
  const std::vector<double> valid = to_doubles(mask);
  for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
    const Reference map = computed(pair.x, pair.y, {.form = form, .l1_weight = 0.2},
        {.padding = Padding::renormalize, .reduction = Reduction::none, .valid_mask = mask});
    for (std::size_t i = 0; i < map.value.size(); ++i) {
      EXPECT_EQ(std::isnan(map.value[i]), valid[i] == 0) << i;
      if (valid[i] == 0) {
        EXPECT_EQ(map.x_gradient[i], 0) << i;
      }
    }
  }
}

TEST(SsimValidMask, NothingExistsAtAll) {
  const Pair pair = images({1, 2, 31, 37});
  const test::Array none = test::filled({31, 37}, DType::f32, Layout::dense, 0);
  spoil(pair, none, kNaN);
  for (const Padding padding : ssim_internal::kPaddings) {
    expect_nothing(pair, {.padding = padding, .valid_mask = none});
    const SsimOptions of_map{.padding = padding, .reduction = Reduction::none, .valid_mask = none};
    for (const double value : computed(pair.x, pair.y, {}, of_map).value) {
      ASSERT_TRUE(std::isnan(value));
    }
  }
}

}  // namespace
}  // namespace similis
