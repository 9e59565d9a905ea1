// SPDX-License-Identifier: Apache-2.0
// sample() and its gradients against the reference: every mode, padding and dtype, odd sizes with
// axes of one voxel, on every SIMD target and, where there is one, the GPU.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "similis/error.hpp"
#include "src/core/joined.h"
#include "src/core/require.h"
#include "src/warp/reference.h"
#include "src/warp/test_calls.h"

namespace similis {
namespace {

using test::Layout;
using test::part_of_grid;
using test::slab;
using warp_internal::Reference;
using warp_internal::reference_sample;

struct Case {
  Extents image, out;  // [N,C,…] and spatial
  Interpolation mode = Interpolation::linear;
  Outside padding = Outside::zeros;
  bool align_corners = true;
  DType dtype = DType::f32, field_dtype = DType::f32;
  std::int64_t images = 1, fields = 1, matrices = 1;  // N of each
  bool is_grid = false, has_grid_affine = false, has_field = true;
  Layout layout = Layout::dense;
};

std::string print(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}_{}_{}", info.index, name(c.dtype), joined(c.image, "_"));
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f64: return 1e-12;
    default: return 1e-5;
  }
}

// The arrays of a case; the transform reaches out of the image on some sides.
struct Arrays {
  explicit Arrays(const Case& c) {
    const int rank = c.image.rank() - 2;
    Extents image_shape = c.image;
    image_shape[0] = c.images;
    image = test::noise(image_shape, c.dtype, c.layout, 1, 1);
    const std::int64_t batch = std::max({c.images, c.fields, c.matrices});
    out_shape = image_shape;
    out_shape[0] = batch;
    for (int a = 0; a < rank; ++a) out_shape[2 + a] = c.out[a];
    Extents field_shape;
    field_shape = rank == 2 ? Extents{c.fields, c.out[0], c.out[1], 2}
                            : Extents{c.fields, c.out[0], c.out[1], c.out[2], 3};
    const double reach = c.is_grid ? 2.6 : 0.7;
    field = test::make(field_shape, c.field_dtype,
        c.layout == Layout::expanded ? Layout::dense : c.layout,
        [&](std::int64_t i) { return reach * (test::uniform(2, i) - 0.5); });
    affine =
        test::make({c.matrices, rank, rank + 1}, DType::f32, Layout::dense, [&](std::int64_t i) {
          const std::int64_t row = i / (rank + 1) % rank, column = i % (rank + 1);
          return (row == column ? 0.9 : 0) + 0.3 * (test::uniform(3, i) - 0.5);
        });
    grid_affine =
        test::make({c.matrices, rank, rank}, DType::f64, Layout::permuted, [&](std::int64_t i) {
          return (i / rank % rank == i % rank ? 1.1 : 0) + 0.2 * (test::uniform(4, i) - 0.5);
        });
    options = {.out_shape = c.out,
        .mode = c.mode,
        .padding_mode = c.padding,
        .align_corners = c.align_corners,
        .prefilter = false};
    if (!c.is_grid) options.affine = affine;
    if (c.has_field) (c.is_grid ? options.grid : options.displacement) = field;
    if (c.has_grid_affine) options.grid_affine = grid_affine;
  }
  test::Array image, field, affine, grid_affine;
  Extents out_shape;
  SampleOptions options;
};

// Leaves out voxels at a kink.
std::vector<double> kept(
    std::vector<double> values, const Reference& reference, const Extents& shape) {
  const std::size_t voxels = reference.is_at_a_kink.size() / static_cast<std::size_t>(shape[0]);
  const auto channels = static_cast<std::size_t>(shape[1]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t image = i / (voxels * channels);
    if (reference.is_at_a_kink[image * voxels + i % voxels]) values[i] = 0;
  }
  return values;
}

class Sample : public testing::TestWithParam<Case> {};

TEST_P(Sample, ValuesMatchTheReference) {
  const Case& c = GetParam();
  const Arrays a(c);
  const Reference expected = reference_sample(a.image, a.options);
  const Layout out_layout = c.layout == Layout::expanded ? Layout::dense : c.layout;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const test::Array output = test::filled(a.out_shape, c.dtype, out_layout, test::kUntouched);
    test::call_sample(a.image, {.output = output}, a.options);
    EXPECT_LT(test::relative_l2(kept(to_doubles(output), expected, a.out_shape),
                  kept(expected.output, expected, a.out_shape)),
        tolerance(c.dtype))
        << backend.name;
    EXPECT_TRUE(test::only_elements_written(output)) << backend.name;
    const std::vector<double> once = to_doubles(output);
    test::call_sample(a.image, {.output = output, .accumulate = true}, a.options);
    std::vector<double> twice = to_doubles(output);
    for (double& value : twice) value /= 2;
    EXPECT_LT(test::relative_l2(twice, once), tolerance(c.dtype)) << backend.name;
  }
}

TEST_P(Sample, GradientsMatchTheReferenceAndStayInTheirElements) {
  const Case& c = GetParam();
  const Arrays a(c);
  const Reference kinks = reference_sample(a.image, a.options);
  std::vector<double> weights(static_cast<std::size_t>(a.out_shape.count()));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = test::uniform(5, static_cast<std::int64_t>(i)) - 0.3;
  }
  weights = kept(weights, kinks, a.out_shape);
  const test::Array upstream = test::make(a.out_shape, DType::f32, Layout::reversed,
      [&](std::int64_t i) { return weights[static_cast<std::size_t>(i)]; });
  const Reference expected = reference_sample(a.image, a.options, upstream);
  const TensorView& field = a.options.grid.empty() ? a.options.displacement : a.options.grid;
  const Layout layout = c.layout == Layout::expanded ? Layout::dense : c.layout;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const auto result = [&](const TensorView& operand) {
      return operand.empty() ? test::Array()
                             : test::filled(operand.shape, operand.dtype, layout, test::kUntouched);
    };
    const auto expect = [&](const char* what, const test::Array& actual,
                            const std::vector<double>& wanted, double bound) {
      if (actual.empty()) return;
      EXPECT_LT(test::relative_l2(to_doubles(actual), wanted), bound)
          << backend.name << " " << what;
      EXPECT_TRUE(test::only_elements_written(actual)) << backend.name << " " << what;
    };
    // Together, and each by itself: whatever is left out changes nothing.
    const test::Array image = result(a.image), by_field = result(field),
                      affine = result(a.options.affine), by_s = result(a.options.grid_affine);
    test::call_sample(a.image,
        {.upstream = upstream,
            .image_gradient = image,
            .affine_gradient = affine,
            .grid_gradient = by_field,
            .grid_affine_gradient = by_s},
        a.options);
    const double of_image = std::max(tolerance(c.dtype), c.dtype == DType::f64 ? 0 : 1e-5);
    const double of_arithmetic = c.dtype == DType::f64 ? 1e-11 : 1e-5;
    expect("image", image, expected.image_gradient, of_image);
    expect("field", by_field, expected.grid_gradient,
        std::max(of_arithmetic, c.field_dtype == DType::f64 ? 0 : tolerance(c.field_dtype)));
    expect("affine", affine, expected.affine_gradient, std::max(of_arithmetic, 1e-5));
    expect("grid_affine", by_s, expected.grid_affine_gradient, of_arithmetic);
    const test::Array scattered = result(a.image), alone = result(field);
    test::call_sample(a.image,
        {.upstream = upstream, .image_gradient = scattered, .deterministic = true}, a.options);
    expect("deterministic image", scattered, expected.image_gradient, of_image);
    if (alone.empty()) continue;
    test::call_sample(a.image, {.upstream = upstream, .grid_gradient = alone}, a.options);
    EXPECT_EQ(to_doubles(alone), to_doubles(by_field)) << backend.name;
  }
}

std::vector<Case> cases() {
  std::vector<Case> result;
  const Extents volume = {1, 2, 9, 11, 37}, out = {7, 10, 33};
  const Extents picture = {1, 3, 21, 35}, out2 = {18, 39};
  for (const Interpolation mode :
      {Interpolation::linear, Interpolation::nearest, Interpolation::cubic}) {
    for (const Outside padding : {Outside::zeros, Outside::border, Outside::reflection}) {
      for (const bool align : {true, false}) {
        result.push_back({volume, out, mode, padding, align});
        result.push_back({picture, out2, mode, padding, align});
      }
    }
  }
  for (const DType dtype : {DType::f16, DType::bf16, DType::f64}) {
    Case c{volume, out};
    c.dtype = dtype;
    result.push_back(c);
    c.field_dtype = DType::f16;
    c.mode = Interpolation::cubic;
    result.push_back(c);
    c.mode = Interpolation::linear;
    c.dtype = DType::f32;
    c.field_dtype = dtype;
    c.image = picture, c.out = out2;
    result.push_back(c);
  }
  for (const Layout layout : test::kLayouts) {
    Case c{volume, out};
    c.layout = layout;
    result.push_back(c);
  }
  // Who is shared by whom.
  for (int shared = 0; shared < 8; ++shared) {
    Case c{{1, 2, 5, 6, 21}, {4, 7, 19}};
    c.images = shared & 1 ? 1 : 3;
    c.fields = shared & 2 ? 1 : 3;
    c.matrices = shared & 4 ? 1 : 3;
    c.has_grid_affine = true;
    result.push_back(c);
  }
  Case grid{volume, out};
  grid.is_grid = true;
  result.push_back(grid);
  grid.has_grid_affine = true;
  result.push_back(grid);
  Case plain{volume, out};
  plain.has_field = false;
  result.push_back(plain);
  // Axes of one voxel, of the image and of the output; and rows of more than one chunk.
  result.push_back({{1, 1, 1, 7, 300}, {1, 9, 263}});
  result.push_back({{1, 2, 6, 1, 9}, {5, 4, 1}, Interpolation::linear, Outside::border, false});
  result.push_back({{1, 1, 1, 33}, {1, 40}, Interpolation::cubic, Outside::reflection});
  result.push_back({{1, 1, 64, 1}, {300, 2}, Interpolation::linear, Outside::reflection, false});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, Sample, testing::ValuesIn(cases()), print);

class EachBackend : public testing::Test {
 protected:
  template <class Body> void for_each(const Body& body) {
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(backend.name);
      body();
    }
  }
};
using SampleClosedForm = EachBackend;
using SampleShards = EachBackend;
using SampleOutside = EachBackend;

TEST_F(SampleClosedForm, TheIdentityGivesTheImage) {
  const Extents shape = {2, 2, 5, 9, 40};
  const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  for_each([&] {
    for (const bool align : {true, false}) {
      for (const Interpolation mode : {Interpolation::linear, Interpolation::cubic}) {
        const Tensor same = test::sampled(image, shape, {.mode = mode, .align_corners = align});
        EXPECT_LT(test::relative_l2(to_doubles(same), to_doubles(image)), 1e-6);
      }
      const Tensor nearest =
          test::sampled(image, shape, {.mode = Interpolation::nearest, .align_corners = align});
      EXPECT_EQ(to_doubles(nearest), to_doubles(image));
    }
  });
}

TEST_F(SampleClosedForm, ATranslationByWholeVoxelsMovesThem) {
  const Extents shape = {1, 1, 6, 9, 41};
  const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const double steps[3] = {3, -2, 1};  // x, y, z
  const Tensor affine = test::make({1, 3, 4}, DType::f64, Layout::dense, [&](std::int64_t i) {
    const double extents[3] = {41, 9, 6};
    return i % 4 == 3 ? 2 * steps[i / 4] / (extents[i / 4] - 1) : i % 4 == i / 4 ? 1 : 0;
  });
  for_each([&] {
    const std::vector<double> moved = to_doubles(test::sampled(image, shape, {.affine = affine}));
    const std::vector<double> values = to_doubles(image);
    std::vector<double> expected(values.size());
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      const std::int64_t x = i % 41 + 3, y = i / 41 % 9 - 2, z = i / (41 * 9) + 1;
      if (x >= 41 || y < 0 || z >= 6) continue;
      expected[static_cast<std::size_t>(i)] =
          values[static_cast<std::size_t>((z * 9 + y) * 41 + x)];
    }
    EXPECT_LT(test::relative_l2(moved, expected), 1e-6);
  });
}

TEST_F(SampleClosedForm, ASplineOfSamplesInterpolatesThem) {
  for (const Extents& shape :
      {Extents{1, 2, 7, 40, 3}, Extents{1, 1, 150, 2}, Extents{1, 1, 1, 137}}) {
    const Tensor image = test::noise(shape, DType::f64, Layout::dense, 1, 1);
    for_each([&] {
      const Tensor same = test::sampled(image, shape, {.mode = Interpolation::cubic});
      EXPECT_LT(test::relative_l2(to_doubles(same), to_doubles(image)), 1e-12);
    });
  }
}

// A cubic polynomial is its own spline far from the mirrored ends.
TEST_F(SampleClosedForm, ASplineIsExactForCubics) {
  const Tensor image = test::make({1, 1, 1, 101}, DType::f64, Layout::dense, [](std::int64_t i) {
    const double t = static_cast<double>(i) / 50 - 1;
    return t * t * t - 2 * t;
  });
  const SampleOptions options{
      .out_shape = {1, 7},
      .mode = Interpolation::cubic,
      .min_coords = Coordinates{.x = -0.137},
      .max_coords = Coordinates{.x = 0.211},
  };
  for_each([&] {
    const std::vector<double> values = to_doubles(test::sampled(image, {1, 1, 1, 7}, options));
    for (int i = 0; i < 7; ++i) {
      const double t = -0.137 + 0.348 * i / 6;
      EXPECT_NEAR(values[static_cast<std::size_t>(i)], t * t * t - 2 * t, 1e-12);
    }
  });
}

// The prefilter is linear: <filter(a), b> must be <a, transposed(b)>.
TEST_F(SampleClosedForm, TheGradientThroughThePrefilterIsItsTranspose) {
  const Extents shape = {1, 1, 6, 5, 90}, out = {1, 1, 4, 7, 21};
  const Tensor image = test::noise(shape, DType::f64, Layout::dense, 1, 1);
  const Tensor upstream = test::noise(out, DType::f64, Layout::dense, 2, 1);
  const Tensor u = test::noise({1, 4, 7, 21, 3}, DType::f32, Layout::dense, 3, 0.4);
  const SampleOptions options{.displacement = u, .mode = Interpolation::cubic};
  for_each([&] {
    const Tensor gradient = test::filled(shape, DType::f64, Layout::dense, 0);
    test::call_sample(image, {.upstream = upstream, .image_gradient = gradient}, options);
    const std::vector<double> g = to_doubles(gradient), x = to_doubles(image),
                              up = to_doubles(upstream),
                              y = to_doubles(test::sampled(image, out, options));
    double left = 0, right = 0;
    for (std::size_t i = 0; i < g.size(); ++i) left += g[i] * x[i];
    for (std::size_t i = 0; i < y.size(); ++i) right += y[i] * up[i];
    EXPECT_NEAR(left / right, 1, 1e-12);
  });
}

TEST_F(SampleShards, OfTheGridHaveTheBitsOfTheWhole) {
  const Tensor image = test::noise({1, 2, 9, 12, 50}, DType::f32, Layout::dense, 1, 1);
  const Extents whole = {8, 11, 45};
  const Tensor u = test::noise({1, 8, 11, 45, 3}, DType::f32, Layout::dense, 2, 0.3);
  const Tensor affine = test::make({1, 3, 4}, DType::f32, Layout::dense, [](std::int64_t i) {
    return (i % 4 == i / 4 ? 0.97 : 0) + 0.1 * (test::uniform(3, i) - 0.5);
  });
  for_each([&] {
    for (const bool align : {true, false}) {
      const SampleOptions options{.affine = affine, .displacement = u, .align_corners = align};
      const Tensor expected = test::sampled(image, {1, 2, 8, 11, 45}, options);
      for (int axis = 0; axis < 3; ++axis) {
        const Tensor parts = test::filled(expected.shape, DType::f32, Layout::dense, 0);
        const std::int64_t extent = whole[2 - axis];
        for (std::int64_t first = 0; first < extent;) {
          const std::int64_t count = first + 5 <= extent ? 3 : extent - first;
          SampleOptions part = part_of_grid(options, whole, axis, first, count);
          part.displacement = slab(u, 3 - axis, first, count);
          test::call_sample(image, {.output = slab(parts, 4 - axis, first, count)}, part);
          first += count;
        }
        EXPECT_EQ(to_doubles(parts), to_doubles(expected)) << axis << align;
      }
    }
  });
}

// A slab of the image is an image whose coordinates are the whole's, rescaled by the affine map.
TEST_F(SampleShards, OfTheImageAddUp) {
  const Extents shape = {1, 1, 12, 9, 31};
  const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const Tensor grid = test::make({1, 10, 8, 30, 3}, DType::f64, Layout::dense,
      [](std::int64_t i) { return 2.2 * (test::uniform(2, i) - 0.5); });
  const std::int64_t n = shape[2];
  for_each([&] {
    const Tensor expected = test::sampled(image, {1, 1, 10, 8, 30}, {.grid = grid});
    const Tensor sum = test::filled(expected.shape, DType::f32, Layout::dense, 0);
    // Slabs share no voxel; a cell between two has a corner in each.
    for (std::int64_t first = 0; first < n;) {
      const std::int64_t count = first + 4 <= n ? 2 : n - first;
      const Tensor moved = test::make(grid.shape, DType::f64, Layout::dense, [&](std::int64_t i) {
        const double c = grid.elements<double>()[i];
        if (i % 3 != 2) return c;
        const double index = (c + 1) / 2 * static_cast<double>(n - 1) - static_cast<double>(first);
        return 2 * index / static_cast<double>(count - 1) - 1;
      });
      test::call_sample(
          slab(image, 2, first, count), {.output = sum, .accumulate = true}, {.grid = moved});
      first += count;
    }
    EXPECT_LT(test::relative_l2(to_doubles(sum), to_doubles(expected)), 1e-6);
  });
}

// A voxel's coordinate is wild in one component in five; the voxels between are as without.
TEST_F(SampleOutside, NansStayAndInfinitiesAreOutsideAndTouchNothingElse) {
  const Extents shape = {1, 1, 5, 6, 40};
  const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const double inf = std::numeric_limits<double>::infinity();
  const double wild[] = {std::nan(""), inf, -inf, 1e30, -1e30, 3e9, -3e9};
  const auto is_wild = [](std::int64_t i) { return i / 3 % 5 == 2 && i % 3 == i / 15 % 3; };
  const auto field = [&](bool with_wild) {
    return test::make({1, 5, 6, 40, 3}, DType::f32, Layout::dense, [&, with_wild](std::int64_t i) {
      if (with_wild && is_wild(i)) return wild[i / 15 % 7];
      return 0.4 * (test::uniform(2, i) - 0.5);
    });
  };
  const Tensor u = field(true), tame = field(false);
  const Tensor ones = test::filled(shape, DType::f32, Layout::dense, 1);
  const Tensor half = test::make(shape, DType::f16, Layout::dense,
      [whole = to_doubles(image)](std::int64_t i) { return whole[std::size_t(i)]; });
  for_each([&] {
    for (const Tensor* of : {&image, &half}) {
      for (const Outside padding : {Outside::zeros, Outside::border, Outside::reflection}) {
        for (const Interpolation mode :
            {Interpolation::linear, Interpolation::nearest, Interpolation::cubic}) {
          const SampleOptions options{
              .displacement = u, .mode = mode, .padding_mode = padding, .prefilter = false};
          SampleOptions without = options;
          without.displacement = tame;
          const std::vector<double> values = to_doubles(test::sampled(*of, shape, options));
          const std::vector<double> others = to_doubles(test::sampled(*of, shape, without));
          const Tensor by_u = test::filled(u.shape, DType::f32, Layout::dense, 0);
          const Tensor by_image = test::filled(shape, of->dtype, Layout::dense, 0);
          test::call_sample(
              *of, {.upstream = ones, .image_gradient = by_image, .grid_gradient = by_u}, options);
          const std::vector<double> gradient = to_doubles(by_u);
          for (std::size_t v = 0; v < values.size(); ++v) {
            const double coordinate = v % 5 == 2 ? wild[v / 5 % 7] : 0;
            const bool is_nan = std::isnan(coordinate);
            EXPECT_EQ(std::isnan(values[v]), is_nan);
            for (std::size_t j = 0; j < 3; ++j) {
              EXPECT_EQ(std::isnan(gradient[3 * v + j]), is_nan);
              EXPECT_TRUE(is_nan || std::isfinite(gradient[3 * v + j]));
            }
            const bool is_far = std::isinf(coordinate) || std::abs(coordinate) > 2;
            const bool is_zero = std::isinf(coordinate) || (is_far && padding == Outside::zeros);
            EXPECT_TRUE(is_nan || is_far || values[v] == others[v]);
            EXPECT_TRUE(!is_zero || values[v] == 0);
          }
          for (const double g : to_doubles(by_image)) EXPECT_TRUE(std::isfinite(g));
        }
      }
    }
  });
}

// The sums that matrices' gradients are made of show the NaN of one voxel, in its image alone.
TEST_F(SampleOutside, ANanOfTheFieldReachesTheMatricesOfItsImage) {
  const Tensor image = test::noise({2, 1, 5, 6, 40}, DType::f32, Layout::dense, 1, 1);
  const Tensor u = test::noise({2, 5, 6, 40, 3}, DType::f32, Layout::dense, 2, 0.1);
  u.elements<float>()[3 * 777 + 1] = std::numeric_limits<float>::quiet_NaN();
  const auto matrix = [](std::int64_t columns) {
    return test::make({2, 3, columns}, DType::f64, Layout::dense,
        [columns](std::int64_t i) { return i % columns == i / columns % 3 ? 0.9 : 0.01; });
  };
  const Tensor affine = matrix(4), s = matrix(3);
  for_each([&] {
    for (const bool with_s : {false, true}) {
      const Tensor by_affine = test::filled({2, 3, 4}, DType::f64, Layout::dense, 0);
      const Tensor by_s = test::filled({2, 3, 3}, DType::f64, Layout::dense, 0);
      SampleOptions options{.affine = affine, .displacement = u};
      SampleRequest request{.upstream = image, .affine_gradient = by_affine};
      if (with_s) {
        options.grid_affine = s;
        request.grid_affine_gradient = by_s;
      }
      test::call_sample(image, request, options);
      const std::vector<double> a = to_doubles(by_affine), b = to_doubles(by_s);
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(std::isnan(a[i]), i < 12) << i;
      for (std::size_t i = 0; with_s && i < b.size(); ++i) EXPECT_EQ(std::isnan(b[i]), i < 9) << i;
    }
  });
}

TEST(SampleBits, AreTheSameWithAnyNumberOfThreads) {
  const Extents shape = {2, 1, 20, 30, 50};
  const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const Tensor u = test::noise({1, 20, 30, 50, 3}, DType::f32, Layout::dense, 2, 0.3);
  const Tensor affine = test::make({2, 3, 4}, DType::f32, Layout::dense,
      [](std::int64_t i) { return (i % 12 % 5 == 0 ? 1 : 0) + 0.1 * test::uniform(3, i); });
  const SampleOptions options{.affine = affine, .displacement = u};
  const SampleGradientOf all{.image = true, .affine = true, .grid = true};
  const SampleGradients expected =
      sample_backward(image, image, all, options, false, {.runner = serial_runner()});
  ThreadPool pool(5);
  const SampleGradients other =
      sample_backward(image, image, all, options, false, {.runner = pool.runner()});
  EXPECT_EQ(to_doubles(other.image), to_doubles(expected.image));
  EXPECT_EQ(to_doubles(other.affine), to_doubles(expected.affine));
  EXPECT_EQ(to_doubles(other.grid), to_doubles(expected.grid));
}

}  // namespace
}  // namespace similis
