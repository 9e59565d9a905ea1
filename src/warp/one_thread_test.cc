// SPDX-License-Identifier: Apache-2.0
// Gradients on the CPU that are found in another way where one thread runs, or where voxels need
// not be loaded: they have the bits of the usual way.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "similis/threads.hpp"
#include "src/core/require.h"
#include "src/warp/test_calls.h"

namespace similis {
namespace {

using test::Layout;

constexpr Outside kPaddings[] = {Outside::zeros, Outside::border, Outside::reflection};

class OneThread : public testing::Test {
 protected:
  template <class Body> void for_each(const Body& body) {
    for (const test::Backend& backend : test::backends(test::Gpu::left_out)) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(backend.name);
      body();
    }
  }
};

Extents field_shape(const Extents& image, std::int64_t fields) {
  return image.rank() == 4 ? Extents{fields, image[2], image[3], 2}
                           : Extents{fields, image[2], image[3], image[4], 3};
}

// NaN of any bits counts as NaN.
void expect_same(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(actual[i], expected[i]) << i;
  }
}

// Gradients to the image and the field by this runner; the image's alone too.
std::array<std::vector<double>, 3> gradients(const TensorView& image, const TensorView& upstream,
    const SampleOptions& options, Layout layout, const ParallelRunner& runner) {
  const TensorView& field = options.displacement;
  const test::Array by_image = test::filled(image.shape, image.dtype, layout, test::kUntouched);
  const test::Array alone = test::filled(image.shape, image.dtype, layout, test::kUntouched);
  const test::Array by_field =
      test::filled(field.shape, DType::f32, Layout::dense, test::kUntouched);
  const Execution exec{.runner = runner};
  sample_into(image, {.upstream = upstream, .image_gradient = by_image, .grid_gradient = by_field},
      options, exec);
  sample_into(image, {.upstream = upstream, .image_gradient = alone}, options, exec);
  EXPECT_TRUE(test::only_elements_written(by_image));
  return {to_doubles(by_image), to_doubles(by_field), to_doubles(alone)};
}

// Rows of whole chunks of 256 voxels, of one voxel more, of less than a vector more, and shorter
// ones; enough of them for several tasks.
TEST_F(OneThread, AddsToTheImageAsSeveralDo) {
  const Extents shapes[] = {{1, 1, 90, 256}, {1, 2, 80, 257}, {2, 3, 70, 263}, {1, 1, 40, 513},
      {1, 2, 50, 520}, {1, 1, 900, 33}, {1, 1, 16, 40, 41}, {1, 3, 12, 40, 48}, {2, 1, 9, 33, 65}};
  std::uint32_t seed = 1;
  for (const Extents& shape : shapes) {
    for (const Interpolation mode : {Interpolation::linear, Interpolation::nearest}) {
      for (const bool is_half : {false, true}) {
        const std::uint32_t turn = ++seed / 2;  // the same for f32 and the half
        const DType dtype = !is_half ? DType::f32 : seed % 4 < 2 ? DType::f16 : DType::bf16;
        const bool is_vector = shape[1] == 3 && shape.rank() == 5 && dtype == DType::f32;
        const Layout layout = is_vector ? Layout::channels_last : Layout::dense;
        const test::Array image = test::noise(shape, dtype, layout, seed, 1);
        const test::Array upstream =
            seed % 3 == 0 ? test::make(shape, dtype, Layout::expanded, [](auto) { return 0.75; })
                          : test::noise(shape, dtype, layout, seed + 1, 1);
        const bool is_shared = is_half == (mode == Interpolation::linear);
        const std::int64_t fields = is_shared ? 1 : shape[0];
        const test::Array field =
            test::make(field_shape(shape, fields), DType::f32, Layout::dense, [&](std::int64_t i) {
              return i % 1301 == 57 ? std::nan("") : 0.3 * (test::uniform(seed + 2, i) - 0.5);
            });
        const SampleOptions options{.displacement = field,
            .mode = mode,
            .padding_mode = kPaddings[seed % 3],
            .align_corners = turn / 2 % 2 == 0};
        SCOPED_TRACE(fmt::format("{} {} {}", shape, name(dtype), seed));
        for_each([&] {
          ThreadPool pool(3);
          const auto expected = gradients(image, upstream, options, layout, pool.runner());
          const ParallelRunner runner = turn % 3 == 0 ? serial_runner() : limited_runner(1);
          const auto actual = gradients(image, upstream, options, layout, runner);
          for (std::size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i]);
          expect_same(expected[2], expected[0]);
        });
      }
    }
  }
}

// Images that are cleared plane by plane (row by row in 2D): some planes are added to first in the
// middle or at the end, and some never.
TEST_F(OneThread, AddsToLargeImagesAsSeveralDo) {
  std::uint32_t seed = 1;
  for (const Extents& shape : {Extents{1, 1, 520, 530}, {1, 4, 257, 270}, {2, 1, 20, 120, 121},
           {1, 1, 66, 64, 65}, {1, 3, 45, 46, 47}}) {
    const bool is_vector = shape[1] == 3;
    const Layout layout = is_vector ? Layout::channels_last : Layout::dense;
    const std::int64_t components = shape.rank() - 2, rows = shape[2];
    const std::int64_t of_row = field_shape(shape, 1).count() / rows;
    for (const bool is_upside_down : {false, true}) {
      ++seed;
      const test::Array image = test::noise(shape, DType::f32, layout, seed, 1);
      const test::Array upstream = test::noise(shape, DType::f32, layout, seed + 1, 1);
      const test::Array field =
          test::make(field_shape(shape, shape[0]), DType::f32, Layout::dense, [&](std::int64_t i) {
            const double noise = 0.1 * (test::uniform(seed + 2, i) - 0.5);
            if (i % components != components - 1) return noise;  // the other axes
            const double row = static_cast<double>(i / of_row % rows) / static_cast<double>(rows);
            return noise + (is_upside_down ? 1.5 - 3 * row : -0.4);
          });
      const SampleOptions options{.displacement = field,
          .mode = !is_vector && seed % 4 == 0 ? Interpolation::nearest : Interpolation::linear,
          .padding_mode = kPaddings[seed % 3]};
      SCOPED_TRACE(fmt::format("{} {}", shape, seed));
      for_each([&] {
        ThreadPool pool(3);
        const auto expected = gradients(image, upstream, options, layout, pool.runner());
        const auto actual = gradients(image, upstream, options, layout, serial_runner());
        for (std::size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i]);
      });
    }
  }
}

TEST_F(OneThread, AddsTheNearestVoxelsOfF64AsSeveralDo) {
  std::uint32_t seed = 1;
  for (const Extents& shape :
      {Extents{1, 2, 80, 257}, {2, 1, 90, 264}, {1, 1, 900, 9}, {1, 2, 9, 33, 65}}) {
    for (const Outside padding : kPaddings) {
      ++seed;
      const test::Array image = test::noise(shape, DType::f64, Layout::dense, seed, 1);
      const test::Array upstream = test::noise(shape, DType::f64, Layout::dense, seed + 1, 1);
      const test::Array field =
          test::make(field_shape(shape, shape[0]), DType::f32, Layout::dense, [&](std::int64_t i) {
            return i % 1301 == 57 ? std::nan("") : 0.3 * (test::uniform(seed + 2, i) - 0.5);
          });
      const SampleOptions options{.displacement = field,
          .mode = Interpolation::nearest,
          .padding_mode = padding,
          .align_corners = seed % 2 == 0};
      SCOPED_TRACE(fmt::format("{} {}", shape, seed));
      for_each([&] {
        ThreadPool pool(3);
        const auto expected = gradients(image, upstream, options, Layout::dense, pool.runner());
        const auto actual = gradients(image, upstream, options, Layout::dense, serial_runner());
        for (std::size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i]);
      });
    }
  }
}

// Cells that reach over an end of the x axis, whose upstream gradient is infinite: their one voxel
// in the image becomes so, and none beside it.
TEST_F(OneThread, CornersOutsideOfTheImageAddNothing) {
  for (const Extents& shape : {Extents{1, 2, 20, 40}, {1, 1, 18, 300}, {1, 1, 9, 10, 33}}) {
    const std::int64_t width = shape[shape.rank() - 1];
    for (const bool is_at_end : {false, true}) {
      const std::int64_t column = is_at_end ? width - 1 : 0;
      const test::Array image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
      const test::Array upstream =
          test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) {
            return i % width == column ? std::numeric_limits<double>::infinity() : 1.0;
          });
      const std::int64_t components = shape.rank() - 2;
      const test::Array field =
          test::make(field_shape(shape, 1), DType::f32, Layout::dense, [&](std::int64_t i) {
            const std::int64_t extent = shape[shape.rank() - 1 - i % components];
            return (is_at_end ? 1.5 : -1.5) / static_cast<double>(extent - 1);
          });
      SCOPED_TRACE(fmt::format("{} {}", shape, is_at_end));
      for_each([&] {
        ThreadPool pool(3);
        for (const ParallelRunner& runner : {serial_runner(), pool.runner()}) {
          const std::vector<double> by_image =
              gradients(image, upstream, {.displacement = field}, Layout::dense, runner)[0];
          for (std::size_t i = 0; i < by_image.size(); ++i) {
            const bool is_infinite = static_cast<std::int64_t>(i) % width == column;
            ASSERT_EQ(std::isinf(by_image[i]), is_infinite) << i;
            ASSERT_FALSE(std::isnan(by_image[i])) << i;
          }
        }
      });
    }
  }
}

// With a field in f64 each voxel is loaded. Voxels and upstream gradients that are not finite make
// the gradient NaN, as 0·voxel is.
TEST_F(OneThread, NearestVoxelsThatAreFiniteNeedNotBeLoaded) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::uint32_t seed = 1;
  for (const Extents& shape : {Extents{1, 2, 9, 37}, {2, 1, 5, 264}, {1, 1, 4, 5, 21}}) {
    for (const double odd_voxel : {0.5, infinity, std::nan("")}) {
      for (const double odd_upstream : {0.5, -infinity}) {
        ++seed;
        const DType dtype = seed % 3 == 0 ? DType::f16 : seed % 3 == 1 ? DType::f64 : DType::f32;
        const test::Array image = test::make(shape, dtype, Layout::dense, [&](std::int64_t i) {
          return i % 83 == 31 ? odd_voxel : test::uniform(seed, i) - 0.5;
        });
        const test::Array upstream = test::make(shape, dtype, Layout::dense, [&](std::int64_t i) {
          return i % 97 == 40 ? odd_upstream : test::uniform(seed + 1, i) - 0.5;
        });
        const auto vector = [&](std::int64_t i) {
          if (i % 101 == 57) return std::nan("");
          return i % 103 == 58 ? infinity : 0.6 * (test::uniform(seed + 2, i) - 0.5);
        };
        const Extents of_field = field_shape(shape, shape[0]);
        const test::Array field = test::make(of_field, DType::f32, Layout::dense, vector);
        const test::Array precise = test::make(of_field, DType::f64, Layout::dense,
            [&](std::int64_t i) { return static_cast<double>(static_cast<float>(vector(i))); });
        SCOPED_TRACE(fmt::format("{} {}", shape, seed));
        for_each([&] {
          const auto run = [&](const TensorView& displacement) {
            const test::Array by_field =
                test::filled(of_field, displacement.dtype, Layout::dense, test::kUntouched);
            test::call_sample(image, {.upstream = upstream, .grid_gradient = by_field},
                {.displacement = displacement,
                    .mode = Interpolation::nearest,
                    .padding_mode = kPaddings[seed % 3]});
            return to_doubles(by_field);
          };
          const std::vector<double> actual = run(field);
          expect_same(actual, run(precise));
          for (const double value : actual) ASSERT_TRUE(value == 0 || std::isnan(value));
        });
      }
    }
  }
}

}  // namespace
}  // namespace similis
