// SPDX-License-Identifier: Apache-2.0
// The calls that have kernels of their own on the GPU: linear, dense. Smooth ones, whose gradient
// to the image is added up in shared memory, and ones that reach too far for that; rows of whole
// vectors, and odd ones; and every gradient by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/warp/reference.h"
#include "src/warp/test_calls.h"

namespace similis {
namespace {

using test::Layout;
using warp_internal::Reference;
using warp_internal::reference_sample;

struct Case {
  Extents image, out;    // [N,C,Z,Y,X], spatial
  double height, noise;  // the displacement's, in coordinates
  std::int64_t fields = 1, matrices = 1;
  Layout layout = Layout::dense;
};

std::int64_t batch_of(const Case& c) { return std::max({c.image[0], c.fields, c.matrices}); }

struct Arrays {
  explicit Arrays(const Case& c)
      : image(test::noise(c.image, DType::f32, c.layout, 1, 1)),
        field(test::make({c.fields, c.out[0], c.out[1], c.out[2], 3}, DType::f32, Layout::dense,
            [&](std::int64_t i) {
              const double x =
                  static_cast<double>(i / 3 % c.out[2]) / static_cast<double>(c.out[2]);
              return c.height * std::sin(6 * x) + c.noise * (test::uniform(2, i) - 0.5);
            })),
        affine(test::make({c.matrices, 3, 4}, DType::f32, Layout::dense,
            [](std::int64_t i) {
              const std::int64_t row = i / 4 % 3, column = i % 4;
              return (row == column ? 0.95 : 0) + 0.1 * (test::uniform(3, i) - 0.5);
            })),
        options{.affine = affine, .displacement = field},
        shape(c.image) {
    shape[0] = batch_of(c);
    for (int a = 0; a < 3; ++a) shape[2 + a] = c.out[a];
    const Reference kinks = reference_sample(image, options);
    const std::int64_t voxels = c.out[0] * c.out[1] * c.out[2];
    upstream = test::make(shape, DType::f32, c.layout, [&](std::int64_t i) {
      const std::int64_t voxel = i / (voxels * shape[1]) * voxels + i % voxels;
      return kinks.is_at_a_kink[static_cast<std::size_t>(voxel)] ? 0 : test::uniform(5, i) - 0.3;
    });
    expected = reference_sample(image, options, upstream);
  }
  test::Array image, field, affine;
  SampleOptions options;
  Extents shape;
  test::Array upstream;
  Reference expected;
};

class FastPathCall : public testing::TestWithParam<Case> {};

TEST_P(FastPathCall, MatchesTheReference) {
  const Case& c = GetParam();
  const Arrays a(c);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    SCOPED_TRACE(backend.name);
    const auto expect = [](const test::Array& actual, const std::vector<double>& wanted,
                            double tolerance = 3e-6) {
      EXPECT_LT(test::relative_l2(to_doubles(actual), wanted), tolerance);
      EXPECT_TRUE(test::only_elements_written(actual));
    };
    const auto untouched = [&](const TensorView& like, Layout layout) {
      return test::filled(like.shape, DType::f32, layout, test::kUntouched);
    };
    const test::Array output = test::filled(a.shape, DType::f32, c.layout, test::kUntouched);
    test::call_sample(a.image, {.output = output}, a.options);
    expect(output, a.expected.output);
    test::call_sample(a.image, {.output = output, .accumulate = true}, a.options);
    std::vector<double> twice = a.expected.output;
    for (double& value : twice) value *= 2;
    expect(output, twice);
    for (const bool together : {true, false}) {
      const test::Array by_image = untouched(a.image, c.layout),
                        by_field = untouched(a.field, Layout::dense);
      const SampleRequest image{.upstream = a.upstream, .image_gradient = by_image};
      const SampleRequest field{.upstream = a.upstream, .grid_gradient = by_field};
      if (together) {
        test::call_sample(a.image,
            {.upstream = a.upstream, .image_gradient = by_image, .grid_gradient = by_field},
            a.options);
      } else {
        test::call_sample(a.image, image, a.options);
        test::call_sample(a.image, field, a.options);
      }
      expect(by_image, a.expected.image_gradient, 1e-5);  // f32 sums, on a GPU in any order
      expect(by_field, a.expected.grid_gradient);
    }
  }
}

// Points outside have no value and no slope, whatever the image's first voxel holds; and a NaN
// reaches no other voxel, nor the gradient to the image.
TEST_P(FastPathCall, LeavesOutWhatIsOutside) {
  const Case& c = GetParam();
  Arrays a(c);
  a.image.elements<float>()[0] = std::numeric_limits<float>::infinity();
  auto* u = a.field.elements<float>();
  const std::int64_t count = a.field.shape.count();
  for (std::int64_t i = 0; i < count; ++i) {
    u[i] = i / 3 % 2 == 0 ? 100 : std::numeric_limits<float>::quiet_NaN();
  }
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    SCOPED_TRACE(backend.name);
    const test::Array output = test::filled(a.shape, DType::f32, c.layout, test::kUntouched);
    const test::Array by_image = test::filled(a.image.shape, DType::f32, c.layout, 1),
                      by_field = test::filled(a.field.shape, DType::f32, Layout::dense, 1);
    test::call_sample(a.image, {.output = output}, a.options);
    test::call_sample(a.image,
        {.upstream = a.upstream, .image_gradient = by_image, .grid_gradient = by_field}, a.options);
    const std::size_t voxels = static_cast<std::size_t>(count / 3 / a.field.shape[0]);
    const auto is_nan = [&](std::size_t image, std::size_t voxel) {
      return ((a.field.shape[0] == 1 ? 0 : image * voxels) + voxel) % 2 == 1;
    };
    const std::vector<double> values = to_doubles(output), slopes = to_doubles(by_field);
    const std::size_t of_image = voxels * static_cast<std::size_t>(a.shape[1]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::isnan(values[i]), is_nan(i / of_image, i % voxels)) << i;
      ASSERT_TRUE(std::isnan(values[i]) || values[i] == 0) << i;
    }
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      ASSERT_EQ(std::isnan(slopes[i]), i / 3 % 2 == 1) << i;
      ASSERT_TRUE(std::isnan(slopes[i]) || slopes[i] == 0) << i;
    }
    for (const double value : to_doubles(by_image)) ASSERT_EQ(value, 0);
  }
}

// Gradients of ordinary size in the lower half of the planes, `factor` of them in the upper.
struct Halves {
  std::int64_t components;
  double factor;
};

class FastPathOfHalves : public testing::TestWithParam<Halves> {};

// Small numbers stay as exact as large ones beside them, in one block of the GPU.
TEST_P(FastPathOfHalves, EachIsRightByItself) {
  const auto [components, factor] = GetParam();
  for (const int axis : {2, 3, 4}) {
    const Extents shape = {1, components, 16, 24, 64};
    const Layout layout = components == 3 ? Layout::channels_last : Layout::dense;
    const auto along_axis = [&](std::int64_t i) {
      std::int64_t inner = 1;
      for (int a = 4; a > axis; --a) inner *= shape[a];
      return i / inner % shape[axis];
    };
    const test::Array image = test::noise(shape, DType::f32, layout, 1, 1);
    // Between 0.2 and 0.8 of a voxel, so that only one plane of voxels gets from both halves.
    const test::Array field = test::make(
        {1, shape[2], shape[3], shape[4], 3}, DType::f32, Layout::dense, [&](std::int64_t i) {
          const double voxel = 2.0 / static_cast<double>(shape[4 - i % 3] - 1);
          return (0.2 + 0.6 * test::uniform(2, i)) * voxel;
        });
    const SampleOptions options{.displacement = field};
    const std::int64_t middle = shape[axis] / 2 - 4;  // not where blocks meet
    const test::Array upstream =
        test::make(shape, DType::f32, layout, [&, factor = factor](std::int64_t i) {
          return (test::uniform(5, i) - 0.3) * (along_axis(i) < middle ? 1 : factor);
        });
    const std::vector<double> wanted = reference_sample(image, options, upstream).image_gradient;
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(backend.name);
      const test::Array by_image = test::filled(shape, DType::f32, layout, test::kUntouched);
      test::call_sample(image, {.upstream = upstream, .image_gradient = by_image}, options);
      const std::vector<double> actual = to_doubles(by_image);
      for (const bool is_upper : {false, true}) {
        double error = 0, norm = 0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
          const std::int64_t at = along_axis(static_cast<std::int64_t>(i));
          if (at == middle || (at > middle) != is_upper) continue;
          error += (actual[i] - wanted[i]) * (actual[i] - wanted[i]);
          norm += wanted[i] * wanted[i];
        }
        EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(norm))
            << "axis " << axis << (is_upper ? ", upper" : ", lower");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Factors, FastPathOfHalves,
    testing::Values(Halves{1, 1e-6}, Halves{3, 1e-6}, Halves{1, 1e-3}, Halves{1, 0}, Halves{3, 0},
        Halves{1, 1e-33}, Halves{1, 1e30}, Halves{2, 1e-6}, Halves{5, 1e-33}, Halves{5, 0},
        Halves{2, 1e30}));

// An upstream that is no number reaches the voxels of its cell, and no other.
TEST(FastPath, UpstreamsThatAreNoNumbersReachTheirCellAlone) {
  for (const std::int64_t components : {1, 3, 5}) {
    const Extents shape = {1, components, 11, 12, 36};
    const Layout layout = components == 3 ? Layout::channels_last : Layout::dense;
    const test::Array image = test::noise(shape, DType::f32, layout, 1, 1);
    const test::Array field =
        test::noise({1, shape[2], shape[3], shape[4], 3}, DType::f32, Layout::dense, 2, 0.1);
    const SampleOptions options{.displacement = field};
    for (const double value :
        {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      const test::Array upstream = test::make(shape, DType::f32, layout, [&](std::int64_t i) {
        return i == 5 * 12 * 36 + 6 * 36 + 17 ? value : test::uniform(5, i) - 0.3;
      });
      const std::vector<double> wanted = reference_sample(image, options, upstream).image_gradient;
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        const test::ScopedBackend chosen(backend);
        SCOPED_TRACE(backend.name);
        const test::Array by_image = test::filled(shape, DType::f32, layout, test::kUntouched);
        test::call_sample(image, {.upstream = upstream, .image_gradient = by_image}, options);
        const std::vector<double> actual = to_doubles(by_image);
        int reached = 0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
          ASSERT_EQ(std::isfinite(actual[i]), std::isfinite(wanted[i])) << i;
          reached += std::isfinite(wanted[i]) ? 0 : 1;
          if (std::isfinite(wanted[i])) {
            ASSERT_NEAR(actual[i], wanted[i], 1e-5) << i;
          }
        }
        EXPECT_EQ(reached, 8);
      }
    }
  }
}

// The gradient to an image of halves is a sum in f32, rounded once: by vectors where memory allows.
TEST(FastPath, GradientsToHalvesAreRoundedOnce) {
  for (const Extents& shape : {Extents{1, 1, 3, 5, 7}, Extents{1, 1, 8, 16, 32},
           Extents{2, 3, 4, 8, 33}, Extents{2, 3, 9, 31}, Extents{1, 1, 16, 64}}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const Layout layout : {Layout::dense, Layout::offset, Layout::channels_last}) {
        const test::Array image = test::noise(shape, dtype, Layout::dense, 1, 1);
        const test::Array upstream = test::make(shape, dtype, Layout::dense,
            [](std::int64_t i) { return 0.25 * static_cast<double>(i * 7 % 9 - 4); });
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          const test::ScopedBackend chosen(backend);
          SCOPED_TRACE(backend.name);
          const test::Array by_image = test::filled(shape, dtype, layout, test::kUntouched);
          test::call_sample(image, {.upstream = upstream, .image_gradient = by_image}, {});
          EXPECT_EQ(to_doubles(by_image), to_doubles(upstream)) << name(dtype);
        }
      }
    }
  }
}

// An index of exactly 0 has no slope under a padding, and one above it has its cell's.
TEST(FastPath, PaddedBordersHaveNoSlopeThemselves) {
  for (const Extents& shape : {Extents{1, 2, 9, 40}, Extents{1, 2, 5, 9, 40}}) {
    const int rank = shape.rank() - 2;
    Extents of_field = shape;
    for (int a = 0; a < rank; ++a) of_field[1 + a] = shape[2 + a];
    of_field[rank + 1] = rank;
    const test::Array image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
    const test::Array upstream = test::noise(shape, DType::f32, Layout::dense, 2, 1);
    for (const Outside padding : {Outside::border, Outside::reflection}) {
      for (const double u : {0.0, 1e-6}) {
        const test::Array field =
            test::make(of_field, DType::f32, Layout::dense, [u](std::int64_t) { return u; });
        const SampleOptions options{.displacement = field, .padding_mode = padding};
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          const test::ScopedBackend chosen(backend);
          SCOPED_TRACE(backend.name);
          const test::Array by_field =
              test::filled(of_field, DType::f32, Layout::dense, test::kUntouched);
          test::call_sample(image, {.upstream = upstream, .grid_gradient = by_field}, options);
          const std::vector<double> slopes = to_doubles(by_field);
          const auto row = static_cast<std::size_t>(shape[shape.rank() - 1] * rank);
          for (std::size_t i = 0; i < slopes.size(); i += row) {
            EXPECT_EQ(slopes[i] == 0, u == 0) << i;
            EXPECT_NE(slopes[i + static_cast<std::size_t>(rank)], 0) << i;
          }
        }
      }
    }
  }
}

// The same kernels take these besides: 2D, halves, paddings, maps without a field, coordinates, and
// upstream gradients whose elements are one (stride 0), as those of a sum are.
struct Other {
  Extents image, out;  // [N,C,…], spatial
  DType dtype;
  Outside padding;
  bool align_corners;
  enum Kind { displacement, grid, affine } kind;
  bool is_expanded;
};

// The arrays of a call, and its options.
struct OtherArrays {
  explicit OtherArrays(const Other& c)
      : rank(c.image.rank() - 2),
        image(test::noise(c.image, c.dtype, Layout::dense, 1, 1)),
        shape(c.image),
        options{.out_shape = c.out, .padding_mode = c.padding, .align_corners = c.align_corners} {
    Extents of_field = {c.image[0], c.out[0], c.out[1], 2};
    if (rank == 3) of_field = {c.image[0], c.out[0], c.out[1], c.out[2], 3};
    for (int a = 0; a < rank; ++a) shape[2 + a] = c.out[a];
    field = test::make(of_field, DType::f32, Layout::dense, [&](std::int64_t i) {
      return (c.kind == Other::grid ? 2.4 : 0.5) * (test::uniform(2, i) - 0.5);
    });
    matrix = test::make({1, rank, rank + 1}, DType::f64, Layout::dense, [&](std::int64_t i) {
      const std::int64_t row = i / (rank + 1), column = i % (rank + 1);
      return (row == column ? 0.97 : 0) + 0.13 * (test::uniform(3, i) - 0.5);
    });
    if (c.kind == Other::grid) options.grid = field;
    if (c.kind == Other::displacement) options.displacement = field;
    if (c.kind != Other::grid) options.affine = matrix;
  }
  int rank;
  test::Array image, field, matrix;
  Extents shape;
  SampleOptions options;
};

class FastPathOther : public testing::TestWithParam<Other> {};

TEST_P(FastPathOther, MatchesTheReference) {
  const Other& c = GetParam();
  const OtherArrays a(c);
  const auto& [rank, image, field, matrix, shape, options] = a;
  test::Array upstream = test::noise(shape, c.dtype, Layout::dense, 5, 1);
  if (c.is_expanded)
    upstream = test::make(shape, c.dtype, Layout::expanded, [](auto) { return 0.75; });
  const Reference expected = reference_sample(image, options, upstream);
  const double of_image = c.dtype == DType::f16 ? 0x1p-10 : c.dtype == DType::bf16 ? 0x1p-7 : 3e-6;
  const std::int64_t voxels = shape.count() / (shape[0] * shape[1]);
  const auto without_kinks = [&, components = rank](std::vector<double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t voxel = i / static_cast<std::size_t>(components);
      const bool kink = expected.is_at_a_kink[voxel];
      if (kink) values[i] = 0;
    }
    return values;
  };
  EXPECT_EQ(expected.is_at_a_kink.size(), static_cast<std::size_t>(shape[0] * voxels));
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    SCOPED_TRACE(backend.name);
    const auto untouched = [&](const TensorView& like) {
      return like.empty() ? test::Array()
                          : test::filled(like.shape, like.dtype, Layout::dense, test::kUntouched);
    };
    const test::Array output = test::filled(shape, c.dtype, Layout::dense, test::kUntouched);
    test::call_sample(image, {.output = output}, options);
    EXPECT_LT(test::relative_l2(to_doubles(output), expected.output), of_image);
    const test::Array by_image = untouched(image), by_affine = untouched(options.affine);
    const test::Array by_field = c.kind == Other::affine ? test::Array() : untouched(field);
    std::vector<double> first;
    for (int run = 0; run < 20; ++run) {
      test::call_sample(image,
          {.upstream = upstream,
              .image_gradient = run == 0 ? TensorView(by_image) : TensorView(),
              .affine_gradient = by_affine,
              .grid_gradient = by_field},
          options);
      std::vector<double> now = to_doubles(by_affine.empty() ? by_field : by_affine);
      if (run == 0) first = now;
      EXPECT_EQ(now, first);
    }
    EXPECT_LT(
        test::relative_l2(to_doubles(by_image), expected.image_gradient), std::max(of_image, 1e-5));
    if (!by_field.empty()) {
      EXPECT_LT(test::relative_l2(
                    without_kinks(to_doubles(by_field)), without_kinks(expected.grid_gradient)),
          1e-5);
    }
    if (!by_affine.empty()) {
      EXPECT_LT(test::relative_l2(to_doubles(by_affine), expected.affine_gradient), 1e-5);
    }
    // By itself, the gradient to the field has the same bits.
    if (by_field.empty()) continue;
    const test::Array alone = untouched(field);
    test::call_sample(image, {.upstream = upstream, .grid_gradient = alone}, options);
    EXPECT_EQ(to_doubles(alone), to_doubles(by_field));
  }
}

// But where an index lies half-way between two; a NaN in the field gives NaN, and no other voxel.
TEST_P(FastPathOther, CopiesTheNearestVoxels) {
  const Other& c = GetParam();
  OtherArrays a(c);
  a.options.mode = Interpolation::nearest;
  const bool has_field = c.kind != Other::affine;
  if (has_field) {
    a.field.elements<float>()[7 * a.rank] = std::numeric_limits<float>::quiet_NaN();
  }
  const Reference expected = reference_sample(a.image, a.options);
  const auto per_image = static_cast<std::size_t>(a.shape.count() / a.shape[0]);
  const std::size_t voxels = per_image / static_cast<std::size_t>(a.shape[1]);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    SCOPED_TRACE(backend.name);
    const test::Array output = test::filled(a.shape, c.dtype, Layout::dense, test::kUntouched);
    test::call_sample(a.image, {.output = output}, a.options);
    const std::vector<double> actual = to_doubles(output);
    int copied = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const std::size_t voxel = i / per_image * voxels + i % voxels;
      ASSERT_EQ(std::isnan(actual[i]), has_field && voxel == 7) << i;
      if (std::isnan(actual[i]) || expected.is_at_a_kink[voxel]) continue;
      ASSERT_EQ(actual[i], expected.output[i]) << i;
      ++copied;
    }
    EXPECT_GT(copied, static_cast<int>(actual.size() / 2));
  }
}

std::vector<Other> others() {
  std::vector<Other> result;
  const Extents volume = {1, 2, 9, 10, 37}, volume_out = {9, 9, 33};
  const Extents picture = {2, 3, 21, 35}, picture_out = {66, 33};
  for (const Outside padding : {Outside::zeros, Outside::border, Outside::reflection}) {
    for (const Other::Kind kind : {Other::displacement, Other::grid, Other::affine}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const bool align = kind != Other::grid, expanded = dtype != DType::f16;
        result.push_back({volume, volume_out, dtype, padding, align, kind, expanded});
        result.push_back({picture, picture_out, dtype, padding, !align, kind, !expanded});
      }
    }
  }
  // One row, one column, many channels that blocks share, images of two voxels.
  result.push_back(
      {{1, 37, 40, 30}, {1, 65}, DType::f32, Outside::zeros, true, Other::displacement, false});
  result.push_back(
      {{1, 1, 40, 30}, {300, 1}, DType::f32, Outside::border, true, Other::grid, true});
  result.push_back(
      {{1, 19, 2, 2, 2}, {3, 1, 1}, DType::bf16, Outside::reflection, false, Other::grid, false});
  for (const DType dtype : {DType::f32, DType::f16}) {
    result.push_back(
        {{1, 24, 9, 10, 37}, {5, 12, 33}, dtype, Outside::border, true, Other::grid, false});
    result.push_back({{1, 40, 21, 35}, {66, 33}, dtype, Outside::zeros, true, Other::grid, true});
  }
  result.push_back(
      {{1, 2, 64, 80}, {64, 80}, DType::f32, Outside::zeros, true, Other::displacement, false});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, FastPathOther, testing::ValuesIn(others()));

INSTANTIATE_TEST_SUITE_P(Cases, FastPathCall,
    testing::Values(Case{{1, 1, 9, 19, 36}, {10, 17, 40}, 0.05, 0.02},
        Case{{1, 1, 9, 19, 37}, {10, 17, 33}, 0.05, 0.02},
        Case{{2, 2, 12, 9, 40}, {11, 10, 31}, 0.1, 0.1},
        Case{{1, 2, 12, 9, 40}, {19, 6, 65}, 0.1, 0.1, 2, 1},
        Case{{2, 1, 12, 9, 41}, {5, 6, 32}, 0.1, 0.1, 2, 2},
        Case{{1, 1, 40, 40, 64}, {17, 18, 66}, 0.1, 1.5},
        Case{{1, 1, 40, 40, 64}, {9, 8, 33}, 0, 4},
        Case{{1, 3, 11, 10, 36}, {12, 9, 35}, 0.05, 0.02, 1, 1, Layout::channels_last},
        Case{{1, 3, 11, 10, 37}, {12, 9, 64}, 0.05, 0.02, 2, 1, Layout::channels_last},
        Case{{1, 3, 40, 40, 64}, {17, 18, 66}, 0.1, 1.5, 1, 1, Layout::channels_last},
        Case{{1, 3, 11, 10, 36}, {12, 9, 35}, 0.05, 0.02},
        Case{{1, 1, 9, 8, 12}, {40, 33, 66}, 0.05, 0.02},  // 100 of the output in a cell
        Case{{1, 1, 4, 3, 4}, {40, 33, 66}, 0.05, 0.02},   // and 2000
        Case{{1, 3, 9, 8, 12}, {40, 33, 66}, 0.05, 0.02, 1, 1, Layout::channels_last},
        Case{{1, 1, 2, 2, 2}, {3, 5, 7}, 0.3, 1}));

}  // namespace
}  // namespace similis
