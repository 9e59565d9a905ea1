// SPDX-License-Identifier: Apache-2.0
// Tests of LNCC besides its agreement with the reference on textures: the reference's own gradient
// by finite differences, intensities far from 0, backgrounds, flat images, and exact properties.
#include <gtest/gtest.h>

#include <cmath>

#include "src/lncc/test_cases.h"

namespace similis {
namespace {

using lncc_internal::computed;
using lncc_internal::Pair;
using lncc_internal::Reference;
using lncc_internal::reference_lncc;
using test::Layout;

// Calls function(backend's name) on each backend.
template <class Function> void on_each_backend(const Function& function) {
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    function();
  }
}

TEST(LnccReference, GradientIsTheQuotientOfDifferences) {
  const Extents shape = {1, 2, 4, 5, 6};
  for (const bool is_signed : {false, true}) {
    for (const Padding padding : lncc_internal::kPaddings) {
      for (const WindowShape window : {WindowShape::box, WindowShape::gaussian}) {
        const LnccOptions options{
            .window_size = 3, .window = window, .padding = padding, .is_signed = is_signed};
        const test::Array x = test::noise(shape, DType::f64, Layout::dense, 1, 1);
        const test::Array y = test::noise(shape, DType::f64, Layout::dense, 2, 1);
        const Reference exact = reference_lncc(x, y, {}, options);
        for (std::int64_t i = 0; i < shape.count(); i += 7) {
          for (const test::Array* image : {&x, &y}) {
            double& pixel = image->elements<double>()[i];
            const double kept = pixel, step = 1e-5;
            pixel = kept + step;
            const double above = reference_lncc(x, y, {}, options).value[0];
            pixel = kept - step;
            const double below = reference_lncc(x, y, {}, options).value[0];
            pixel = kept;
            const auto& gradient = image == &x ? exact.x_gradient : exact.y_gradient;
            EXPECT_NEAR((above - below) / (2 * step), gradient[static_cast<std::size_t>(i)], 1e-8);
          }
        }
      }
    }
  }
}

struct Intensities {
  const char* name;
  double range, offset;
};

TEST(LnccAccuracy, IntensitiesFarFromZero) {
  for (const Intensities& each : {Intensities{"unit", 1, 0}, Intensities{"12 bits", 4095, 0},
           Intensities{"offset", 1, 1e4}, Intensities{"CT", 3000, -1000}}) {
    SCOPED_TRACE(each.name);
    const Pair pair = lncc_internal::textured(
        {1, 1, 16, 24, 40}, DType::f32, Layout::dense, Layout::dense, each.range, each.offset);
    for (const int window : {3, 7, 9}) {
      const LnccOptions options{.window_size = window, .padding = Padding::renormalize};
      const Reference expected = reference_lncc(pair.x, pair.y, {}, options);
      on_each_backend([&] {
        const Reference actual = computed(pair.x, pair.y, {}, options);
        EXPECT_NEAR(actual.value[0], expected.value[0], 1e-5);
        EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-4);
        EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-4);
      });
    }
  }
}

// Tissue beside a background that is one number exactly: most windows are flat there.
Pair tissue_in(double background) {
  const Extents shape = {1, 1, 20, 28, 36};
  const auto image = [&](std::uint32_t seed) {
    return test::make(shape, DType::f32, Layout::dense, [=](std::int64_t i) {
      const std::int64_t x = i % 36, y = i / 36 % 28, z = i / (36 * 28);
      const bool is_tissue = x > 12 && x < 30 && y > 8 && y < 22 && z > 5;
      return is_tissue ? 1000 * test::uniform(seed, i) + 0.37 : background;
    });
  };
  return {image(1), image(2)};
}

TEST(LnccAccuracy, BackgroundsBesideTissue) {
  for (const double background : {0.0, -1000.0, 0.1}) {
    SCOPED_TRACE(background);
    const Pair pair = tissue_in(background);
    const LnccOptions options{.window_size = 7, .padding = Padding::renormalize};
    const Reference expected = reference_lncc(pair.x, pair.y, {}, options);
    LnccOptions map = options;
    map.reduction = Reduction::none;
    const Reference expected_map = reference_lncc(pair.x, pair.y, {}, map);
    on_each_backend([&] {
      const Reference actual = computed(pair.x, pair.y, {}, options);
      EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-4);
      EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), 1e-4);
      EXPECT_LE(
          test::max_difference(computed(pair.x, pair.y, {}, map).value, expected_map.value), 1e-5);
    });
  }
}

TEST(LnccAccuracy, FlatImagesAreFiniteAndHaveNoGradient) {
  const Extents shape = {1, 1, 9, 10, 40};
  const test::Array texture = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  for (const double level : {0.0, 0.3, 1e4}) {
    SCOPED_TRACE(level);
    const test::Array flat = test::filled(shape, DType::f32, Layout::dense, level);
    for (const bool is_signed : {false, true}) {
      const LnccOptions options{
          .window_size = 5, .padding = Padding::valid, .is_signed = is_signed};
      on_each_backend([&] {
        const Reference both = computed(flat, flat, {}, options);
        EXPECT_LE(std::abs(both.value[0]), 1);
        EXPECT_LE(test::largest(both.x_gradient), 1e-6);
        EXPECT_LE(test::largest(both.y_gradient), 1e-6);
        const Reference one = computed(flat, texture, {}, options);
        EXPECT_TRUE(std::isfinite(one.value[0]));
        const Reference expected = reference_lncc(flat, texture, {}, options);
        EXPECT_NEAR(one.value[0], expected.value[0], 1e-5);
        // The measure with a sign, A / √(B·C), has a slope where x is flat.
        if (!is_signed) {
          EXPECT_LE(test::largest(one.x_gradient), 1e-6);
        }
        EXPECT_LE(test::max_difference(one.x_gradient, expected.x_gradient), 1e-6);
        EXPECT_LE(test::max_difference(one.y_gradient, expected.y_gradient), 1e-6);
      });
    }
  }
}

TEST(LnccAccuracy, TurnedOverImagesAreAlikeButForTheSign) {
  const Extents shape = {1, 1, 9, 12, 20};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const test::Array turned =
      test::make(shape, DType::f32, Layout::dense, [whole = to_doubles(x)](std::int64_t i) {
        return 3 - 2 * whole[static_cast<std::size_t>(i)];
      });
  LnccOptions options{.window_size = 7, .padding = Padding::renormalize};
  on_each_backend([&] {
    options.is_signed = false;
    EXPECT_NEAR(computed(x, turned, {}, options).value[0], 1, 1e-5);
    options.is_signed = true;
    EXPECT_NEAR(computed(x, turned, {}, options).value[0], -1, 1e-6);
    EXPECT_NEAR(computed(x, x, {}, options).value[0], 1, 1e-6);
  });
}

TEST(LnccAccuracy, ExchangedImagesExchangeGradients) {
  const Pair pair =
      lncc_internal::textured({1, 2, 9, 12, 20}, DType::f32, Layout::dense, Layout::dense, 1);
  const LnccOptions options{.window_size = 5};
  on_each_backend([&] {
    const Reference there = computed(pair.x, pair.y, {}, options);
    const Reference back = computed(pair.y, pair.x, {}, options);
    EXPECT_EQ(there.value, back.value);
    EXPECT_EQ(there.x_gradient, back.y_gradient);
    EXPECT_EQ(there.y_gradient, back.x_gradient);
  });
}

// Shards along z overlap by the halo that a gradient needs, and masks say which pixels are theirs.
TEST(LnccAccuracy, ShardsAddUp) {
  const Extents shape = {1, 1, 24, 12, 20};
  const Pair pair = lncc_internal::textured(shape, DType::f64, Layout::dense, Layout::dense, 1);
  LnccOptions options{.window_size = 5, .reduction = Reduction::sum};
  const auto planes = [&](const TensorView& image, std::int64_t first, std::int64_t last) {
    TensorView shard = image;
    shard.shape[2] = last - first;
    shard.offset += first * image.strides[2];
    return shard;
  };
  on_each_backend([&] {
    const Reference whole = computed(pair.x, pair.y, {}, options);
    double sum = 0;
    std::vector<double> gradient(whole.x_gradient.size(), 0);
    for (const std::int64_t middle : {0, 12}) {
      const std::int64_t first = std::max<std::int64_t>(0, middle - 2);
      const std::int64_t last = std::min<std::int64_t>(24, middle + 12 + 2);
      const test::Array own =
          test::make({last - first, 12, 20}, DType::u8, Layout::dense, [&](std::int64_t i) {
            const std::int64_t z = first + i / 240;
            return z >= middle && z < middle + 12 ? 1.0 : 0.0;
          });
      LnccOptions of_shard = options;
      of_shard.mask = own;
      const Reference part =
          computed(planes(pair.x, first, last), planes(pair.y, first, last), {}, of_shard);
      sum += part.value[0];
      for (std::size_t i = 0; i < part.x_gradient.size(); ++i) {
        gradient[static_cast<std::size_t>(first * 240) + i] += part.x_gradient[i];
      }
    }
    EXPECT_NEAR(sum, whole.value[0], 1e-9 * whole.value[0]);
    EXPECT_LE(test::relative_l2(gradient, whole.x_gradient), 1e-11);
  });
}

TEST(LnccAccuracy, BitsDoNotDependOnThreadsOrRuns) {
  const Pair pair =
      lncc_internal::textured({1, 2, 40, 50, 70}, DType::f32, Layout::dense, Layout::dense, 1);
  const LnccOptions options{.window_size = 7};
  const Reference expected =
      computed(pair.x, pair.y, {}, options, true, true, Layout::dense, {.runner = serial_runner()});
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    const Reference actual =
        computed(pair.x, pair.y, {}, options, true, true, Layout::dense, {.runner = pool.runner()});
    EXPECT_EQ(actual.value, expected.value);
    EXPECT_EQ(actual.x_gradient, expected.x_gradient);
    EXPECT_EQ(actual.y_gradient, expected.y_gradient);
  }
}

}  // namespace
}  // namespace similis
