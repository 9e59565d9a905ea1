// SPDX-License-Identifier: Apache-2.0
// Paths of the CPU that must agree with one another to the last bit: images of halves with images
// of the same numbers in f32, the nearest voxels by cells in f32 with those by indices in f64, and
// cubic interpolation of dense rows with that of others.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "src/core/require.h"
#include "src/warp/spline.h"
#include "src/warp/test_calls.h"
#include "src/warp/warp.h"

namespace similis {
namespace {

using test::Layout;

constexpr Outside kPaddings[] = {Outside::zeros, Outside::border, Outside::reflection};
// [N,C,…]: rows of one voxel, of two, of whole vectors and of one more.
const Extents kShapes[] = {{1, 1, 5, 6, 40}, {2, 3, 3, 4, 17}, {1, 1, 1, 3, 2}, {1, 2, 4, 1, 1},
    {1, 1, 9, 33}, {2, 3, 7, 300}, {1, 1, 6, 1}, {1, 2, 1, 2}};

class CpuPaths : public testing::Test {
 protected:
  template <class Body> void for_each(const Body& body) {
    for (const test::Backend& backend : test::backends(test::Gpu::left_out)) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(backend.name);
      body();
    }
  }
};

Extents field_shape(const Extents& image) {
  const int rank = image.rank() - 2;
  return rank == 2 ? Extents{image[0], image[2], image[3], 2}
                   : Extents{image[0], image[2], image[3], image[4], 3};
}

test::Array converted(const TensorView& from, DType dtype, Layout layout) {
  const std::vector<double> values = to_doubles(from);
  return test::make(from.shape, dtype, layout,
      [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
}

// NaN of any bits counts as NaN.
void expect_same(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(actual[i], expected[i]) << i;
  }
}

TEST_F(CpuPaths, HalvesGiveWhatTheirNumbersGiveInF32) {
  std::uint32_t seed = 1;
  for (const Extents& shape : kShapes) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const Layout layout : {Layout::dense, Layout::permuted, Layout::reversed}) {
        ++seed;
        // Among them the smallest f16 above 0, infinity and NaN.
        const test::Array half = test::make(shape, dtype, layout, [&](std::int64_t i) {
          if (i % 97 == 31) return 0x1p-24;
          if (i % 211 == 96) return std::numeric_limits<double>::infinity();
          if (i % 223 == 100) return std::nan("");
          return 4 * test::uniform(seed, i) - 2;
        });
        const test::Array whole = converted(half, DType::f32, Layout::dense);
        const test::Array field = test::make(field_shape(shape), DType::f32, Layout::dense,
            [&](std::int64_t i) { return 0.8 * (test::uniform(seed + 100, i) - 0.5); });
        const test::Array upstream = test::make(shape, DType::f32, Layout::dense,
            [&](std::int64_t i) { return test::uniform(seed + 200, i) - 0.3; });
        const SampleOptions options{.displacement = field,
            .padding_mode = kPaddings[seed % 3],
            .align_corners = seed % 2 == 0};
        SCOPED_TRACE(fmt::format("{} {} {}", shape, name(dtype), seed));
        for_each([&] {
          const auto run = [&](const TensorView& image, std::vector<double>* gradient) {
            const test::Array output =
                test::filled(shape, image.dtype, Layout::dense, test::kUntouched);
            const test::Array by_field =
                test::filled(field.shape, DType::f32, Layout::dense, test::kUntouched);
            test::call_sample(image,
                {.output = output, .upstream = upstream, .grid_gradient = by_field}, options);
            *gradient = to_doubles(by_field);
            return converted(output, dtype, Layout::dense);
          };
          std::vector<double> of_half, of_whole;
          const test::Array actual = run(half, &of_half), expected = run(whole, &of_whole);
          expect_same(to_doubles(actual), to_doubles(expected));
          expect_same(of_half, of_whole);
        });
      }
    }
  }
}

// Images whose channels are as many as axes, side by side in memory as a field's components are.
TEST_F(CpuPaths, VectorsGiveWhatTheirComponentsGive) {
  std::uint32_t seed = 1;
  for (Extents shape : kShapes) {
    shape[1] = shape.rank() - 2;
    for (const Outside padding : kPaddings) {
      for (const bool adds : {false, true}) {
        ++seed;
        const test::Array planes =
            test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) {
              if (i % 211 == 96) return std::numeric_limits<double>::infinity();
              if (i % 223 == 100) return std::nan("");
              return 4 * test::uniform(seed, i) - 2;
            });
        const test::Array vectors = converted(planes, DType::f32, Layout::channels_last);
        const test::Array field =
            test::make(field_shape(shape), DType::f32, Layout::dense, [&](std::int64_t i) {
              return i % 301 == 57 ? std::nan("") : 0.8 * (test::uniform(seed + 100, i) - 0.5);
            });
        const test::Array upstream = test::make(shape, DType::f32, Layout::dense,
            [&](std::int64_t i) { return test::uniform(seed + 200, i) - 0.3; });
        const SampleOptions options{
            .displacement = field, .padding_mode = padding, .align_corners = seed % 2 == 0};
        SCOPED_TRACE(fmt::format("{} {}", shape, seed));
        for_each([&] {
          const auto run = [&](const TensorView& image, Layout layout) {
            const test::Array output = test::make(shape, DType::f32, layout,
                [](std::int64_t i) { return static_cast<double>(i % 5); });
            const test::Array given = converted(upstream, DType::f32, layout);
            const test::Array by_field =
                test::filled(field.shape, DType::f32, Layout::dense, test::kUntouched);
            test::call_sample(image,
                {.output = output,
                    .accumulate = adds,
                    .upstream = given,
                    .grid_gradient = by_field},
                options);
            const test::Array alone = test::filled(shape, DType::f32, layout, test::kUntouched);
            test::call_sample(image, {.output = alone}, options);
            return std::array{to_doubles(output), to_doubles(by_field), to_doubles(alone)};
          };
          const auto actual = run(vectors, Layout::channels_last);
          const auto expected = run(planes, Layout::dense);
          for (std::size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i]);
        });
      }
    }
  }
}

// Displacements of whole halves of a voxel put indices into the middle between two, others next to
// it; some are far away, infinite or NaN.
TEST_F(CpuPaths, NearestVoxelsAreThoseOfIndicesInF64) {
  std::uint32_t seed = 1;
  for (const Extents& shape : kShapes) {
    const int rank = shape.rank() - 2;
    for (const Outside padding : kPaddings) {
      for (int which = 0; which < 6; ++which) {
        ++seed;
        const DType dtype = which == 1   ? DType::f16
                            : which == 2 ? DType::bf16
                            : which >= 4 ? DType::f64
                                         : DType::f32;
        const test::Array image =
            test::noise(shape, dtype, which == 3 ? Layout::reversed : Layout::dense, seed, 1);
        const bool align_corners = seed % 2 == 0;
        const test::Array field =
            test::make(field_shape(shape), DType::f32, Layout::dense, [&](std::int64_t i) {
              const std::int64_t extent = shape[shape.rank() - 1 - static_cast<int>(i % rank)];
              const double voxel = 2 / static_cast<double>(std::max<std::int64_t>(
                                           1, extent - (align_corners ? 1 : 0)));
              if (i % 401 == 57) return std::nan("");
              if (i % 409 == 58) return -std::numeric_limits<double>::infinity();
              if (i % 419 == 59) return 1e30;
              if (i % 421 == 60) return 3e6 * voxel;
              const double near = (test::uniform(seed, i) - 0.5) * (i % 3 == 0 ? 1e-6 : 1e-4);
              const double halves = std::floor(7 * test::uniform(seed + 1, i)) - 3;
              return which % 2 == 0 ? voxel * (0.5 * halves + (i % 2 == 0 ? near : 0))
                                    : voxel * 3 * (test::uniform(seed + 2, i) - 0.5);
            });
        const test::Array precise = converted(field, DType::f64, Layout::dense);
        const test::Array upstream =
            test::noise(shape, which >= 4 ? dtype : DType::f32, Layout::dense, seed + 3, 1);
        SCOPED_TRACE(fmt::format("{} {}", shape, seed));
        for_each([&] {
          const auto run = [&](const TensorView& displacement) {
            const test::Array output = test::filled(shape, dtype, Layout::dense, test::kUntouched);
            const test::Array by_image = test::filled(shape, dtype, Layout::dense, 0);
            const test::Array by_field =
                test::filled(field.shape, displacement.dtype, Layout::dense, test::kUntouched);
            const SampleOptions options{.displacement = displacement,
                .mode = Interpolation::nearest,
                .padding_mode = padding,
                .align_corners = align_corners};
            test::call_sample(image, {.output = output}, options);
            test::call_sample(image,
                {.upstream = upstream, .image_gradient = by_image, .grid_gradient = by_field},
                options);
            return std::array{to_doubles(output), to_doubles(by_image), to_doubles(by_field)};
          };
          const auto actual = run(field), expected = run(precise);
          for (std::size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i]);
        });
      }
    }
  }
}

TEST_F(CpuPaths, CubicVectorsGiveWhatSingleVoxelsGive) {
  std::uint32_t seed = 1;
  const Extents shapes[] = {{1, 2, 12, 70}, {2, 1, 4, 300}, {1, 1, 6, 7, 21}, {1, 1, 4, 5, 40},
      {1, 1, 3, 33}, {1, 2, 1, 9}, {1, 1, 40, 2}, {1, 1, 33, 31}, {1, 1, 2, 263}, {1, 1, 9, 3, 17},
      {1, 2, 1, 2, 12}};
  for (const Extents& shape : shapes) {
    for (const Outside padding : kPaddings) {
      ++seed;
      const test::Array dense = test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) {
        return i % 223 == 100 ? std::nan("") : 4 * test::uniform(seed, i) - 2;
      });
      const test::Array reversed = converted(dense, DType::f32, Layout::reversed);
      const test::Array field =
          test::make(field_shape(shape), DType::f32, Layout::dense, [&](std::int64_t i) {
            if (i % 307 == 59) return 1e30;
            return i % 301 == 57 ? std::nan("") : 0.8 * (test::uniform(seed + 100, i) - 0.5);
          });
      const test::Array upstream = test::noise(shape, DType::f32, Layout::dense, seed + 3, 1);
      const SampleOptions options{.displacement = field,
          .mode = Interpolation::cubic,
          .padding_mode = padding,
          .align_corners = seed % 2 == 0,
          .prefilter = false};
      SCOPED_TRACE(fmt::format("{} {}", shape, seed));
      for_each([&] {
        const auto run = [&](const TensorView& image) {
          const test::Array output =
              test::filled(shape, DType::f32, Layout::dense, test::kUntouched);
          const test::Array by_field =
              test::filled(field.shape, DType::f32, Layout::dense, test::kUntouched);
          const test::Array by_image =
              test::filled(shape, DType::f32, Layout::dense, test::kUntouched);
          test::call_sample(image,
              {.output = output,
                  .upstream = upstream,
                  .image_gradient = by_image,
                  .grid_gradient = by_field},
              options);
          return std::array{to_doubles(output), to_doubles(by_field), to_doubles(by_image)};
        };
        const auto actual = run(dense), expected = run(reversed);
        for (std::size_t i = 0; i < 2; ++i) expect_same(actual[i], expected[i]);
        EXPECT_LT(test::relative_l2(actual[2], expected[2]), 1e-6);  // added in another order
      });
    }
  }
}

// Coefficients of lines side by side have the bits of those of each line alone.
TEST_F(CpuPaths, SplineCoefficientsOfAnImageAreThoseOfItsLines) {
  const Extents shape{1, 1, 45, 67};
  const test::Array image = test::noise(shape, DType::f32, Layout::dense, 5, 1);
  for (const int filter : {0, 1}) {
    const test::Array expected = converted(image, DType::f32, Layout::dense);
    const bool is_transposed = filter == 1;
    auto* const data = static_cast<float*>(expected.data());
    for (int x = 0; x < 67; ++x) {
      warp_internal::filter_line(data + x, 45, 67, is_transposed);
    }
    for (int y = 0; y < 45; ++y) {
      warp_internal::filter_line(data + 67 * y, 67, 1, is_transposed);
    }
    for_each([&] {
      const test::Array computed = converted(image, DType::f32, Layout::dense);
      TensorView volume = computed;
      volume.shape = {1, 1, 1, 45, 67};
      volume.strides = {45 * 67, 45 * 67, 45 * 67, 67, 1};
      warp_internal::spline_filter_cpu(volume, 2,
          is_transposed ? warp_internal::Filter::transposed : warp_internal::Filter::forward, {});
      expect_same(to_doubles(computed), to_doubles(expected));
    });
  }
}

// Each value is a voxel's, bit by bit, where a map doubles every voxel.
TEST_F(CpuPaths, DoublingRepeatsVoxels) {
  const test::Array image = test::noise({1, 1, 6, 40}, DType::f32, Layout::dense, 1, 1);
  const std::vector<double> voxels = to_doubles(image);
  for_each([&] {
    const std::vector<double> doubled = to_doubles(test::sampled(image, {1, 1, 12, 80},
        {.out_shape = {12, 80}, .mode = Interpolation::nearest, .align_corners = false}));
    for (std::size_t i = 0; i < doubled.size(); ++i) {
      ASSERT_EQ(doubled[i], voxels[i / 160 * 40 + i % 80 / 2]) << i;
    }
  });
}

}  // namespace
}  // namespace similis
