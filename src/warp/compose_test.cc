// SPDX-License-Identifier: Apache-2.0
// Composition, affine grids and labels: closed forms, and their agreement with sample().
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/warp/reference.h"
#include "src/warp/test_calls.h"
#include "src/warp/test_fields.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::channels_first;
using test::channels_last;
using test::Layout;
using test::values_of;
using warp_internal::reference_sample;

using Compose = test::EachBackend;
using AffineGrid = test::EachBackend;
using SampleLabels = test::EachBackend;

Tensor field_of(const Extents& shape, DType dtype, double size, std::uint32_t seed) {
  return test::make(shape, dtype, Layout::dense,
      [=](std::int64_t i) { return size * (test::uniform(seed, i) - 0.5); });
}

// The last chunk of a row of 260 has fewer voxels than a vector, and so repeats some.
TEST_F(Compose, IsAddedToTheFieldThatItReads) {
  for (const Extents& shape : {Extents{1, 9, 21, 70, 3}, Extents{1, 2, 5, 260, 3}}) {
    const Tensor u = field_of(shape, DType::f32, 0.5, 1), v = field_of(shape, DType::f32, 0.5, 2);
    std::vector<double> expected = to_doubles(v);
    const std::vector<double> moved = to_doubles(compose(u, v));
    for (std::size_t i = 0; i < moved.size(); ++i) expected[i] += moved[i];
    for_each([&] {
      const test::Array sum = test::make(
          shape, DType::f32, Layout::dense, [&](std::int64_t i) { return element(v, i); });
      test::Arguments a;
      const TensorView at = a.out(sum);
      compose_into(a.in(u), at, {.output = at, .accumulate = true});
      a.bring_back();
      EXPECT_LT(test::relative_l2(to_doubles(sum), expected), 1e-6);
    });
  }
}

TEST_F(Compose, SamplesOneFieldAtAnother) {
  for (const Extents& shape : {Extents{2, 6, 7, 41, 3}, Extents{2, 13, 38, 2}}) {
    const int rank = shape.rank() - 2;
    Extents shape_of_u = shape;
    shape_of_u[0] = 1;
    shape_of_u[2] += 3;
    const Tensor u = field_of(shape_of_u, DType::f32, 1, 1),
                 v = field_of(shape, DType::f32, 0.5, 2);
    const Tensor affine =
        test::make({1, rank, rank + 1}, DType::f32, Layout::dense, [&](std::int64_t i) {
          return (i % (rank + 1) == i / (rank + 1) ? 0.9 : 0) + 0.1 * test::uniform(3, i);
        });
    const Tensor upstream = field_of(shape, DType::f32, 1, 4);
    const Tensor upstream_first = channels_first(upstream);
    const auto expected =
        reference_sample(channels_first(u), {.affine = affine, .displacement = v}, upstream_first);
    for_each([&] {
      const test::Array output = test::filled(shape, DType::f32, Layout::dense, test::kUntouched);
      const test::Array by_u = test::filled(shape_of_u, DType::f32, Layout::dense, 0);
      const test::Array by_v = test::filled(shape, DType::f32, Layout::dense, 0);
      const test::Array by_affine = test::filled(affine.shape, DType::f32, Layout::dense, 0);
      test::Arguments a;
      compose_into(a.in(u), a.in(v),
          {.output = a.out(output),
              .upstream = a.in(upstream),
              .u_gradient = a.out(by_u),
              .v_gradient = a.out(by_v),
              .affine_gradient = a.out(by_affine)},
          {.affine = a.in(affine)}, {});
      a.bring_back();
      EXPECT_LT(test::relative_l2(to_doubles(output), channels_last(expected.output, shape)), 1e-6);
      EXPECT_LT(
          test::relative_l2(to_doubles(by_u), channels_last(expected.image_gradient, shape_of_u)),
          1e-6);
      EXPECT_LT(test::relative_l2(to_doubles(by_v), expected.grid_gradient), 1e-5);
      EXPECT_LT(test::relative_l2(to_doubles(by_affine), expected.affine_gradient), 1e-5);
      EXPECT_EQ(values_of(compose(a.in(u), a.in(v), {.affine = a.in(affine)})), to_doubles(output));
    });
  }
}

TEST_F(AffineGrid, IsTheMapOfTheCoordinates) {
  const Extents shape = {2, 3, 5, 7, 3};
  const Tensor affine = field_of({2, 3, 4}, DType::f64, 2, 1);
  const Tensor u = field_of({1, 3, 5, 7, 3}, DType::f32, 1, 2);
  const Tensor upstream = field_of(shape, DType::f32, 1, 3);
  std::vector<double> expected, by_affine(24);
  const std::vector<double> a = to_doubles(affine), add = to_doubles(u), g = to_doubles(upstream);
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t n = i / 315, v = i / 3 % 105, row = i % 3;
    const double x[4] = {-1 + static_cast<double>(v % 7) / 3,
        -1 + static_cast<double>(v / 7 % 5) / 2, -1 + static_cast<double>(v / 35), 1};
    double sum = add[static_cast<std::size_t>(i % 315)];
    for (std::int64_t j = 0; j < 4; ++j) {
      const auto at = static_cast<std::size_t>((n * 3 + row) * 4 + j);
      sum += a[at] * x[j];
      by_affine[at] += g[static_cast<std::size_t>(i)] * x[j];
    }
    expected.push_back(sum);
  }
  for_each([&] {
    test::Arguments arguments;
    const test::Array output = test::filled(shape, DType::f32, Layout::reversed, test::kUntouched);
    const test::Array gradient = test::filled({2, 3, 4}, DType::f64, Layout::permuted, 0);
    affine_grid_into(arguments.in(affine),
        {.output = arguments.out(output),
            .upstream = arguments.in(upstream),
            .affine_gradient = arguments.out(gradient)},
        {.displacement = arguments.in(u)}, {});
    arguments.bring_back();
    EXPECT_LT(test::relative_l2(to_doubles(output), expected), 1e-7);
    EXPECT_TRUE(test::only_elements_written(output));
    EXPECT_LT(test::relative_l2(to_doubles(gradient), by_affine), 1e-12);
    test::Arguments again;
    affine_grid_into(again.in(affine), {.output = again.out(output), .accumulate = true},
        {.displacement = again.in(u)}, {});
    again.bring_back();
    std::vector<double> twice = expected;
    for (double& value : twice) value *= 2;
    EXPECT_LT(test::relative_l2(to_doubles(output), twice), 1e-7);
    const Tensor plain = affine_grid(arguments.in(affine), {.out_shape = {3, 5, 7}});
    EXPECT_EQ(plain.dtype, DType::f64);
    std::vector<double> without = expected;
    for (std::size_t i = 0; i < without.size(); ++i) without[i] -= add[i % 315];
    EXPECT_LT(test::relative_l2(values_of(plain), without), 1e-7);
  });
}

struct Found {
  test::Array label, weight;
};
Found labels_at(const TensorView& image, const SampleOptions& options, const LabelOptions& labels,
    const Extents& shape) {
  Found found{test::filled(shape, image.dtype, Layout::dense, 100),
      test::filled(shape, DType::f32, Layout::dense, test::kUntouched)};
  test::Arguments a;
  sample_labels_into(a.in(image), {.label = a.out(found.label), .weight = a.out(found.weight)},
      a.in(options), labels, {});
  a.bring_back();
  return found;
}

TEST_F(SampleLabels, TakesTheHeaviestLabel) {
  // Corners 3 and 5 on one side, 7 and 7 on the other: 7 wins at a third of the way.
  const float square[] = {3, 7, 5, 7};
  const TensorView image(square, {1, 1, 2, 2}, DType::f32);
  const auto grid_at = [](double x, double y) {
    return test::make(
        {1, 1, 1, 2}, DType::f64, Layout::dense, [=](std::int64_t i) { return i == 0 ? x : y; });
  };
  for_each([&] {
    const auto at = [&](double x, double y, const LabelOptions& options = {}) {
      const Found found = labels_at(image, {.grid = grid_at(x, y)}, options, {1, 1, 1, 1});
      return std::pair(to_doubles(found.label)[0], to_doubles(found.weight)[0]);
    };
    EXPECT_EQ(at(-1, -1), std::pair(3.0, 1.0));
    EXPECT_EQ(at(0, 0).first, 7);
    EXPECT_EQ(at(0, 0).second, 0.5);
    EXPECT_NEAR(at(-0.5, -0.2).second, 0.75 * 0.6, 1e-6);
    EXPECT_EQ(at(-0.5, -0.2).first, 3);
    EXPECT_EQ(at(-1, 0), std::pair(3.0, 0.5));          // first met of equals
    EXPECT_EQ(at(5, 5, {.background = -2}).first, -2);  // nobody votes
    EXPECT_EQ(at(5, 5).second, 0);
    EXPECT_EQ(at(std::nan(""), 0, {.background = 9}).first, 9);
    EXPECT_TRUE(std::isnan(at(std::nan(""), 0).second));
    EXPECT_EQ(at(std::numeric_limits<double>::infinity(), 0).second, 0);
    EXPECT_EQ(at(-2, -1, {.background = 9}).first, 3);  // a quarter of a vote beats none
    EXPECT_EQ(at(-1, -1, {.smallest_label = 4}).second, 0);
    EXPECT_EQ(at(-1, 0, {.smallest_label = 4}), std::pair(5.0, 0.5));
  });
}

TEST_F(SampleLabels, TakesIntegersAndNegativeLabels) {
  const Extents shape = {1, 1, 3, 4, 5}, out = {1, 1, 3, 4, 5};
  for (const DType dtype : {DType::u8, DType::u16, DType::f16, DType::f64}) {
    const bool is_signed = dtype == DType::f16 || dtype == DType::f64;
    const Tensor image = test::make(shape, dtype, Layout::dense,
        [&](std::int64_t i) { return std::floor(6 * test::uniform(1, i)) - (is_signed ? 3 : 0); });
    for_each([&] {
      const Found found = labels_at(image, {}, {.background = 200}, out);
      EXPECT_EQ(to_doubles(found.label), to_doubles(image));
    });
  }
}

TEST_F(SampleLabels, TakesSignedIntegersOnTheCpu) {
  constexpr std::int32_t kBeyondF32 = (1 << 24) + 1;
  for (const auto& [dtype, first] :
      {std::pair(DType::i16, -3), std::pair(DType::i32, -kBeyondF32), {DType::boolean, 0}}) {
    const Tensor image = test::make({1, 1, 3, 4, 5}, dtype, Layout::reversed,
        [&, low = first](std::int64_t i) { return low + std::floor(2 * test::uniform(1, i)); });
    const Labels found = sample_labels(image, {}, {.background = 1});
    EXPECT_EQ(to_doubles(found.label), to_doubles(image));
    EXPECT_EQ(found.weight.dtype, DType::f32);
  }
  TensorView on_gpu = allocate({1, 1, 3, 4, 5}, DType::i32);
  on_gpu.device = {DeviceKind::cuda, 0};
  test::expect_refusal([&] { sample_labels(on_gpu); },
      "sample_labels: image is int32 on cuda:0; such labels must be on the CPU, or be converted");
}

TEST_F(SampleLabels, TheBackgroundIsOneThatTheDtypeHas) {
  const Tensor image =
      test::make({1, 1, 3, 4, 5}, DType::u8, Layout::dense, [](std::int64_t) { return 1; });
  EXPECT_NO_THROW(sample_labels(image, {}, {.background = 255}));
  for (const auto& [background, words] :
      {std::pair(256.0, "256"), std::pair(-1.0, "-1"), std::pair(0.5, "0.5")}) {
    try {
      sample_labels(image, {}, {.background = background});
      ADD_FAILURE() << background;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()),
          std::string("sample_labels: background is ") + words +
              "; it must be a whole number from 0 to 255, as image is uint8");
    }
  }
}

TEST_F(SampleLabels, WeightsHaveGradients) {
  const Extents shape = {1, 2, 5, 6, 9};
  const Tensor image = test::make(shape, DType::f64, Layout::dense,
      [](std::int64_t i) { return std::floor(3 * test::uniform(1, i)); });
  const Tensor upstream = test::noise(shape, DType::f64, Layout::dense, 2, 1);
  const Tensor u = test::make({1, 5, 6, 9, 3}, DType::f64, Layout::dense,
      [](std::int64_t i) { return 0.02 * (test::uniform(3, i) - 0.5) + 0.07; });
  const auto total = [&] {
    const Tensor weight = sample_labels(image, {.displacement = u}).weight;
    const std::vector<double> w = to_doubles(weight), g = to_doubles(upstream);
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * g[i];
    return sum;
  };
  std::vector<double> expected;
  for (std::int64_t i = 0; i < u.shape.count(); ++i) {
    double& c = u.elements<double>()[i];
    const double before = c, step = 1e-6;
    c = before + step;
    const double above = total();
    c = before - step;
    expected.push_back((above - total()) / (2 * step));
    c = before;
  }
  for_each([&] {
    const test::Array gradient = test::filled(u.shape, DType::f64, Layout::dense, 0);
    test::Arguments a;
    sample_labels_into(a.in(image), {.upstream = a.in(upstream), .grid_gradient = a.out(gradient)},
        {.displacement = a.in(u)}, {}, {});
    a.bring_back();
    EXPECT_LT(test::relative_l2(to_doubles(gradient), expected), 1e-6);
  });
}

// Not 1e-7: where all corners vote alike, or both along an axis.
TEST_F(SampleLabels, WeightsOfOneLabelHaveNoGradient) {
  const Extents shape = {1, 1, 5, 6, 9};
  const Tensor image = test::make(
      shape, DType::f32, Layout::dense, [](std::int64_t i) { return i % 9 < 4 ? 1.0 : 2.0; });
  const Tensor upstream = test::filled(shape, DType::f32, Layout::dense, 1);
  const Tensor u = test::make({1, 5, 6, 9, 3}, DType::f32, Layout::dense,
      [](std::int64_t i) { return 0.01 * test::uniform(3, i) + 0.01; });
  for_each([&] {
    const test::Array gradient = test::filled(u.shape, DType::f32, Layout::dense, 0);
    test::Arguments a;
    sample_labels_into(a.in(image), {.upstream = a.in(upstream), .grid_gradient = a.out(gradient)},
        {.displacement = a.in(u)}, {}, {});
    a.bring_back();
    const std::vector<double> g = to_doubles(gradient);
    for (std::int64_t i = 0; i < u.shape.count() / 3; ++i) {
      const std::int64_t x = i % 9, y = i / 9 % 6, z = i / 54;
      if (x == 8 || y == 5 || z == 4) continue;  // corners are missing here
      const auto at = static_cast<std::size_t>(3 * i);
      EXPECT_EQ(g[at] != 0, x == 3) << i;
      EXPECT_EQ(g[at + 1], 0) << i;
      EXPECT_EQ(g[at + 2], 0) << i;
    }
  });
}

TEST(WarpRefuses, WhatDoesNotFit) {
  const Tensor image = test::noise({1, 1, 4, 5, 6}, DType::f32, Layout::dense, 1, 1);
  const Tensor bytes = test::noise({1, 1, 4, 5, 6}, DType::u8, Layout::dense, 1, 255);
  const Tensor flat = test::noise({4, 5, 6}, DType::f32, Layout::dense, 1, 1);
  const Tensor u = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 1, 1);
  const Tensor u2 = test::noise({1, 4, 5, 2}, DType::f32, Layout::dense, 1, 1);
  const Tensor three = test::noise({3, 4, 5, 6, 3}, DType::f32, Layout::dense, 1, 1);
  const Tensor affine2 = test::noise({2, 3, 4}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal([&] { sample(flat); },
      "sample: image has shape [4, 5, 6]; it must be [N, C, Y, X] or [N, C, Z, Y, X]");
  test::expect_refusal([&] { sample(bytes); },
      "sample: image is uint8; it must be float16, bfloat16, float32 or float64");
  test::expect_refusal([&] { sample(image, {.displacement = u2}); },
      "sample: displacement has shape [1, 4, 5, 2]; the image is 3D");
  test::expect_refusal([&] { sample(image, {.displacement = u, .grid = u}); },
      "sample: grid is given with displacement; it holds absolute coordinates and stands alone");
  test::expect_refusal([&] { sample(image, {.affine = affine2, .grid = u}); },
      "sample: grid is given with affine; it holds absolute coordinates and stands alone");
  test::expect_refusal([&] { sample(image, {.affine = affine2, .displacement = three}); },
      "sample: affine has N = 2, and another operand 3; they must be alike, or one of them 1");
  test::expect_refusal([&] { sample(image, {.grid_affine = affine2}); },
      "sample: grid_affine is given without a displacement or a grid to multiply");
  test::expect_refusal(
      [&] {
        sample(image, {.displacement = u, .out_shape = {4, 5, 7}});
      },
      "sample: out_shape is [4, 5, 7]; it must be that of the field, [4, 5, 6]");
  test::expect_refusal(
      [&] {
        sample(image, {.out_shape = {4, 5}});
      },
      "sample: out_shape is [4, 5]; it must have 3 extents");
  test::expect_refusal([&] { sample_into(image, {.grid_gradient = u}, {.displacement = u}); },
      "sample: a gradient is asked for, and upstream is empty");
  test::expect_refusal(
      [&] { sample_into(image, {.upstream = image, .affine_gradient = affine2}, {}); },
      "sample: affine_gradient is asked for, and there is no affine");
  test::expect_refusal([&] { sample_into(image, {.output = u}, {}); },
      "sample: output has shape [1, 4, 5, 6, 3]; it must be [1, 1, 4, 5, 6]");
  test::expect_refusal([&] { sample_into(image, {.output = image}); },
      "sample: output has the memory of what is sampled; it must have its own");
  test::expect_refusal([&] { compose_into(u, u, {.output = u, .accumulate = true}); },
      "compose: output has the memory of what is sampled; it must have its own");
  test::expect_refusal([&] { sample_labels_into(bytes, {.label = bytes}); },
      "sample_labels: label has the memory of what is sampled; it must have its own");
  test::expect_refusal([&] { compose(u, u2); }, "compose: v has shape [1, 4, 5, 2]; u is 3D");
  test::expect_refusal([&] { affine_grid(affine2); },
      "affine_grid: out_shape is []; without a displacement it must have 3 extents");
}

}  // namespace
}  // namespace similis
