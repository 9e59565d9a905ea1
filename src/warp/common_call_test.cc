// SPDX-License-Identifier: Apache-2.0
// The calls that have kernels of their own on the GPU: f32, linear, zeros outside, dense, a
// displacement. Smooth ones, whose gradient to the image is added up in shared memory, and ones
// that reach too far for that; rows of whole vectors, and odd ones; and every gradient by itself.
#include <gtest/gtest.h>

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
  double height, noise;  // of the displacement, in coordinates
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

class CommonCall : public testing::TestWithParam<Case> {};

TEST_P(CommonCall, MatchesTheReference) {
  const Case& c = GetParam();
  const Arrays a(c);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::Chosen chosen(backend);
    SCOPED_TRACE(backend.name);
    const auto expect = [](const test::Array& actual, const std::vector<double>& wanted) {
      EXPECT_LT(test::relative_l2(to_doubles(actual), wanted), 3e-6);
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
      expect(by_image, a.expected.image_gradient);
      expect(by_field, a.expected.grid_gradient);
    }
  }
}

// What lies outside has no value and no slope, whatever the image's first voxel holds; and what is
// no number reaches no other voxel.
TEST_P(CommonCall, LeavesOutWhatIsOutside) {
  const Case& c = GetParam();
  Arrays a(c);
  a.image.elements<float>()[0] = std::numeric_limits<float>::infinity();
  auto* u = a.field.elements<float>();
  const std::int64_t count = a.field.shape.count();
  for (std::int64_t i = 0; i < count; ++i) {
    u[i] = i / 3 % 2 == 0 ? 100 : std::numeric_limits<float>::quiet_NaN();
  }
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::Chosen chosen(backend);
    SCOPED_TRACE(backend.name);
    const test::Array output = test::filled(a.shape, DType::f32, c.layout, test::kUntouched);
    const test::Array by_image = test::filled(a.image.shape, DType::f32, c.layout, 1),
                      by_field = test::filled(a.field.shape, DType::f32, Layout::dense, 1);
    test::call_sample(a.image, {.output = output}, a.options);
    test::call_sample(a.image,
        {.upstream = a.upstream, .image_gradient = by_image, .grid_gradient = by_field}, a.options);
    for (const test::Array* each : {&output, &by_image, &by_field}) {
      for (const double value : to_doubles(*each)) ASSERT_EQ(value, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CommonCall,
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
        Case{{1, 1, 2, 2, 2}, {3, 5, 7}, 0.3, 1}));

}  // namespace
}  // namespace similis
