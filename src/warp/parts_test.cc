// SPDX-License-Identifier: Apache-2.0
// Parts of outputs and images that are cut along their first spatial axis: any cut has the whole's
// bits, on every backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "src/warp/test_fields.h"
#include "src/warp/warp.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;
using test::slab;

// The places at which arrays are cut in two or more: where parts begin, and the end.
using Cuts = std::vector<std::int64_t>;

std::vector<Cuts> cuts_of(std::int64_t extent) {
  Cuts each_row;
  for (std::int64_t i = 0; i <= extent; ++i) each_row.push_back(i);
  return {{0, extent / 2, extent}, {0, 3, 4, extent}, each_row};
}

struct Case {
  Extents image, field;  // [N,C,…], [N,…,d]
  Interpolation mode = Interpolation::linear;
  Outside padding = Outside::zeros;
  bool align_corners = true;
  DType dtype = DType::f32;
  double reach = 0.6;  // of the field, in coordinates; 0: every voxel is at a kink
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const double reach : {0.0, 0.6, 2.5}) {
    for (const Outside padding : {Outside::zeros, Outside::border, Outside::reflection}) {
      for (const bool align : {true, false}) {
        result.push_back({{1, 1, 9, 7, 37}, {1, 9, 7, 37, 3}, Interpolation::linear, padding, align,
            DType::f32, reach});
        result.push_back({{2, 2, 11, 38}, {2, 9, 37, 2}, Interpolation::linear, padding, align,
            DType::f32, reach});
      }
    }
    for (const DType dtype : {DType::f16, DType::bf16, DType::f64}) {
      result.push_back({{1, 2, 8, 5, 19}, {1, 7, 6, 21, 3}, Interpolation::linear, Outside::zeros,
          true, dtype, reach});
    }
    for (const Interpolation mode : {Interpolation::nearest, Interpolation::cubic}) {
      for (const Outside padding : {Outside::zeros, Outside::reflection}) {
        result.push_back(
            {{1, 1, 12, 6, 19}, {1, 7, 6, 21, 3}, mode, padding, true, DType::f32, reach});
      }
    }
  }
  return result;
}

struct Arrays {
  explicit Arrays(const Case& c)
      : image(test::noise(c.image, c.dtype, Layout::dense, 1, 1)),
        field(test::make(c.field, c.dtype == DType::f64 ? DType::f64 : DType::f32, Layout::dense,
            [&](std::int64_t i) { return 2 * c.reach * (test::uniform(2, i) - 0.5); })),
        shape(c.image) {
    for (int axis = 2; axis < shape.rank(); ++axis) shape[axis] = c.field[axis - 1];
    upstream = test::noise(shape, c.dtype, Layout::dense, 3, 1);
    options = {.displacement = field,
        .mode = c.mode,
        .padding_mode = c.padding,
        .align_corners = c.align_corners,
        .prefilter = false};
  }
  test::Array image, field, upstream;
  Extents shape;  // of the output
  SampleOptions options;
};

struct Results {
  test::Array output, by_image, by_field;
};

Results computed(const Arrays& a) {
  Results r{test::filled(a.shape, a.image.dtype, Layout::dense, test::kUntouched),
      test::filled(a.image.shape, a.image.dtype, Layout::dense, test::kUntouched),
      test::filled(a.field.shape, a.field.dtype, Layout::dense, test::kUntouched)};
  test::call_sample(a.image,
      {.output = r.output,
          .upstream = a.upstream,
          .image_gradient = r.by_image,
          .grid_gradient = r.by_field},
      a.options);
  return r;
}

double bound(DType dtype) {
  return dtype == DType::f64   ? 1e-12
         : dtype == DType::f32 ? 2e-6
         : dtype == DType::f16 ? 2e-3
                               : 2e-2;
}

using Parts = test::EachBackend;

TEST_F(Parts, RowsOfTheOutputHaveTheWholesBits) {
  for (const Case& c : cases()) {
    const Arrays a(c);
    for_each([&] {
      const Results whole = computed(a);
      for (const Cuts& cuts : cuts_of(a.shape[2])) {
        const Results parts{test::filled(a.shape, a.image.dtype, Layout::dense, test::kUntouched),
            {}, test::filled(a.field.shape, a.field.dtype, Layout::dense, test::kUntouched)};
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
          const std::int64_t first = cuts[i], count = cuts[i + 1] - first;
          SampleOptions options = a.options;
          options.displacement = slab(a.field, 1, first, count);
          options.rows = {first, a.shape[2]};
          test::call_sample(a.image,
              {.output = slab(parts.output, 2, first, count),
                  .upstream = slab(a.upstream, 2, first, count),
                  .grid_gradient = slab(parts.by_field, 1, first, count)},
              options);
        }
        EXPECT_EQ(to_doubles(parts.output), to_doubles(whole.output));
        EXPECT_EQ(to_doubles(parts.by_field), to_doubles(whole.by_field));
      }
    });
  }
}

// The blocks of an image overlap by a row, or by what a spline needs, and are copied, so that a
// kernel that reads another row reads memory that is not the image's.
TEST_F(Parts, BlocksOfTheImageAddUpToTheWhole) {
  for (const Case& c : cases()) {
    const Arrays a(c);
    const std::int64_t extent = a.image.shape[2];
    const std::int64_t before = c.mode == Interpolation::cubic ? 3 : 0, behind = before + 1;
    for_each([&] {
      const Results whole = computed(a);
      for (const Cuts& cuts : {Cuts{0, 4, extent}, Cuts{0, 3, 5, extent}, Cuts{0, extent}}) {
        const test::Array output = test::filled(a.shape, a.image.dtype, Layout::dense, 0);
        std::vector<double> by_field(static_cast<std::size_t>(a.field.shape.count()));
        std::vector<double> by_image(static_cast<std::size_t>(a.image.shape.count()));
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
          const std::int64_t first = std::max<std::int64_t>(cuts[i] - before, 0);
          const std::int64_t end = std::min(cuts[i + 1] + behind, extent);
          Extents shape = a.image.shape;
          shape[2] = end - first;
          const std::vector<double> values = to_doubles(slab(a.image, 2, first, end - first));
          const test::Array block = test::make(shape, a.image.dtype, Layout::dense,
              [&](std::int64_t k) { return values[static_cast<std::size_t>(k)]; });
          SampleOptions options = a.options;
          options.image_rows = {first, extent};
          options.cells = {i == 0 ? -1 : cuts[i], i + 2 == cuts.size() ? extent : cuts[i + 1]};
          const test::Array of_field =
              test::filled(a.field.shape, a.field.dtype, Layout::dense, test::kUntouched);
          const test::Array of_block =
              test::filled(shape, a.image.dtype, Layout::dense, test::kUntouched);
          test::call_sample(block,
              {.output = output,
                  .accumulate = true,
                  .upstream = a.upstream,
                  .image_gradient = of_block,
                  .grid_gradient = of_field},
              options);
          const std::vector<double> parts = to_doubles(of_field), part = to_doubles(of_block);
          for (std::size_t k = 0; k < parts.size(); ++k) by_field[k] += parts[k];
          const std::int64_t plane = a.image.shape.count() / (shape[0] * shape[1] * extent);
          for (std::size_t k = 0; k < part.size(); ++k) {
            const auto at = static_cast<std::int64_t>(k), of_image = (end - first) * plane;
            by_image[static_cast<std::size_t>(
                at / of_image * extent * plane + first * plane + at % of_image)] += part[k];
          }
        }
        EXPECT_EQ(to_doubles(output), to_doubles(whole.output));
        EXPECT_EQ(by_field, to_doubles(whole.by_field));
        EXPECT_LT(test::relative_l2(by_image, to_doubles(whole.by_image)), bound(c.dtype));
      }
    });
  }
}

// On GPUs the gradient to the field is added to what the blocks before have left.
TEST_F(Parts, GradientsOfBlocksAreAddedToTheField) {
  for (const Case& c : cases()) {
    if (c.mode == Interpolation::cubic) continue;
    const Arrays a(c);
    const std::int64_t extent = a.image.shape[2];
    for_each([&] {
      if (!test::runs_on_gpu()) return;
      const Results whole = computed(a);
      const test::Array by_field = test::filled(a.field.shape, a.field.dtype, Layout::dense, 0);
      const Cuts cuts = {0, 3, 5, extent};
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const std::int64_t end = std::min(cuts[i + 1] + 1, extent);
        SampleOptions options = a.options;
        options.image_rows = {cuts[i], extent};
        options.cells = {i == 0 ? -1 : cuts[i], i + 2 == cuts.size() ? extent : cuts[i + 1]};
        test::call_sample(slab(a.image, 2, cuts[i], end - cuts[i]),
            {.accumulate = true, .upstream = a.upstream, .grid_gradient = by_field}, options);
      }
      EXPECT_EQ(to_doubles(by_field), to_doubles(whole.by_field));
    });
  }
}

// The cells of 8 rows of the output, as a GPU notes them.
struct Noted {
  std::vector<double> down, up;
};

Noted noted_by_hand(const Arrays& a, std::int64_t first, std::int64_t end) {
  const std::vector<double> u = to_doubles(a.field);
  const std::int64_t rows = a.shape[2], plane = a.shape[3] * a.shape[4];
  const double half = static_cast<double>(a.image.shape[2] - 1) / 2;
  const auto groups = static_cast<std::size_t>((rows + 7) / 8);
  Noted result{std::vector<double>(groups), std::vector<double>(groups)};
  for (std::int64_t i = 0; i < rows * plane; ++i) {
    const std::int64_t row = i / plane;
    const double place = -1 + 2.0 * static_cast<double>(row) / static_cast<double>(rows - 1);
    const double cell = std::floor(half * (place + u[static_cast<std::size_t>(3 * i + 2)]) + half);
    const bool is_elsewhere = cell < static_cast<double>(first) || cell >= static_cast<double>(end);
    if (cell < -1 || cell >= 2 * half + 1 || !is_elsewhere) continue;
    const auto group = static_cast<std::size_t>(row / 8);
    result.down[group] = std::max(result.down[group], 0x1p20 - cell);
    result.up[group] = std::max(result.up[group], cell + 2);
  }
  return result;
}

// A GPU's notes say where voxels look; later blocks that leave out rows without notes, and a limit
// that nothing passes, change no bit; voxels beyond a limit are NaN.
TEST_F(Parts, AGpuNotesCellsThatLieElsewhere) {
  const Case c{{1, 1, 24, 7, 37}, {1, 24, 7, 37, 3}, Interpolation::linear, Outside::zeros, true,
      DType::f32, 0.4};
  const Arrays a(c);
  for_each([&] {
    if (!test::runs_on_gpu()) return;
    const Results whole = computed(a);
    for (const std::int64_t reached : {std::int64_t{24}, std::int64_t{16}}) {
      const test::Array output = test::filled(a.shape, DType::f32, Layout::dense, 0);
      const test::Array notes = test::filled({25, 2}, DType::f32, Layout::dense, 0);
      test::Arguments arguments;
      const TensorView out = arguments.out(output), on_gpu = arguments.out(notes);
      const TensorView field = arguments.in(a.field);
      for (const std::int64_t first : {8, 15, 0}) {
        const std::int64_t end = first == 8 ? 16 : first == 15 ? 24 : 9;
        warp_internal::NotedRequest request;
        request.output = out;
        request.accumulate = first != 8;
        (first == 8 ? request.elsewhere : request.noted) = on_gpu;
        if (first == 8) request.reached = {-1, reached};
        const Cells cells = {first == 0 ? -1 : first, first == 15 ? 24 : end - 1};
        warp_internal::sample_noting(arguments.in(slab(a.image, 2, first, end - first)), request,
            {.displacement = field, .image_rows = {first, 24}, .cells = cells}, {});
      }
      arguments.bring_back();
      const std::vector<double> noted = to_doubles(notes), values = to_doubles(output);
      const Noted expected = noted_by_hand(a, 8, 15);
      for (std::size_t group = 0; group < expected.up.size(); ++group) {
        EXPECT_EQ(std::max(noted[16 * group], noted[16 * group + 8]), expected.down[group]);
        EXPECT_EQ(std::max(noted[16 * group + 1], noted[16 * group + 9]), expected.up[group]);
      }
      EXPECT_EQ(noted[48], 1);
      EXPECT_EQ(noted[49], reached == 24 ? 1 : 2);
      const std::vector<double> wanted = to_doubles(whole.output);
      std::size_t beyond = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) {
          ++beyond;
        } else {
          EXPECT_EQ(values[i], wanted[i]);
        }
      }
      EXPECT_EQ(beyond > 0, reached == 16);
    }
  });
}

// Without `cells` a cell at the end of a block counts, with the corners that the block has.
TEST_F(Parts, RowsThatABlockLacksWeighNothing) {
  for (const Case& c : cases()) {
    const Arrays a(c);
    const std::int64_t extent = a.image.shape[2], first = 2, count = 4;
    const std::int64_t plane = a.image.shape.count() / (a.image.shape[0] * a.image.shape[1]);
    const std::int64_t row = plane / extent;
    const std::vector<double> values = to_doubles(a.image);
    Arrays blank(c);
    blank.image = test::make(a.image.shape, a.image.dtype, Layout::dense, [&](std::int64_t i) {
      const std::int64_t z = i % plane / row;
      return z >= first && z < first + count ? values[static_cast<std::size_t>(i)] : 0.0;
    });
    Arrays part(c);
    part.image = test::make(slab(a.image, 2, first, count).shape, a.image.dtype, Layout::dense,
        [&, block = to_doubles(slab(a.image, 2, first, count))](
            std::int64_t i) { return block[static_cast<std::size_t>(i)]; });
    part.options.image_rows = {first, extent};
    for_each([&] {
      const Results whole = computed(blank), rows = computed(part);
      EXPECT_LT(
          test::relative_l2(to_doubles(rows.output), to_doubles(whole.output)), bound(c.dtype));
      EXPECT_LT(
          test::relative_l2(to_doubles(rows.by_field), to_doubles(whole.by_field)), bound(c.dtype));
      EXPECT_LT(test::relative_l2(
                    to_doubles(rows.by_image), to_doubles(slab(whole.by_image, 2, first, count))),
          bound(c.dtype));
    });
  }
}

TEST_F(Parts, GradientsToMatricesAreSumsOfParts) {
  const Case c{{1, 2, 9, 8, 17}, {1, 9, 8, 17, 3}};
  const Arrays a(c);
  const test::Array affine = test::make({1, 3, 4}, DType::f32, Layout::dense,
      [](std::int64_t i) { return (i % 5 == 0 ? 0.9 : 0) + 0.2 * (test::uniform(4, i) - 0.5); });
  const test::Array grid_affine = test::make({1, 3, 3}, DType::f32, Layout::dense,
      [](std::int64_t i) { return (i % 4 == 0 ? 1.1 : 0) + 0.2 * (test::uniform(5, i) - 0.5); });
  const auto gradients = [&](std::int64_t first, std::int64_t count) {
    SampleOptions options = a.options;
    options.affine = affine;
    options.grid_affine = grid_affine;
    options.displacement = slab(a.field, 1, first, count);
    options.rows = {first, a.shape[2]};
    const test::Array by_affine = test::filled({1, 3, 4}, DType::f64, Layout::dense, 0);
    const test::Array by_s = test::filled({1, 3, 3}, DType::f64, Layout::dense, 0);
    test::call_sample(a.image,
        {.upstream = slab(a.upstream, 2, first, count),
            .affine_gradient = by_affine,
            .grid_affine_gradient = by_s},
        options);
    std::vector<double> result = to_doubles(by_affine);
    std::ranges::copy(to_doubles(by_s), std::back_inserter(result));
    return result;
  };
  for_each([&] {
    const std::vector<double> whole = gradients(0, a.shape[2]);
    std::vector<double> sum(whole.size());
    for (const std::int64_t first : {0, 1, 4}) {
      const std::int64_t end = first == 0 ? 1 : first == 1 ? 4 : a.shape[2];
      const std::vector<double> part = gradients(first, end - first);
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
    }
    EXPECT_LT(test::relative_l2(sum, whole), 1e-12);
  });
}

TEST_F(Parts, LabelsOfBlocksAreThoseOfTheWhole) {
  const test::Array image = test::make({1, 1, 9, 7, 21}, DType::u8, Layout::dense,
      [](std::int64_t i) { return std::floor(4 * test::uniform(1, i)); });
  const test::Array field = test::make({1, 6, 7, 21, 3}, DType::f32, Layout::dense,
      [](std::int64_t i) { return 1.2 * (test::uniform(2, i) - 0.5); });
  for_each([&] {
    test::Arguments arguments;
    const TensorView u = arguments.in(field);
    const auto run = [&](const TensorView& given, SampleOptions options) {
      options.displacement = u;
      const Labels labels = sample_labels(arguments.in(given), options);
      return std::pair{test::values_of(labels.label), test::values_of(labels.weight)};
    };
    const auto whole = run(image, {});
    const auto low = run(slab(image, 2, 0, 5), {.image_rows = {0, 9}, .cells = {-1, 4}});
    const auto high = run(slab(image, 2, 4, 5), {.image_rows = {4, 9}, .cells = {4, 9}});
    for (std::size_t i = 0; i < whole.first.size(); ++i) {
      const bool is_high = high.second[i] > 0;
      EXPECT_TRUE(low.second[i] == 0 || high.second[i] == 0);
      EXPECT_EQ(is_high ? high.first[i] : low.first[i], whole.first[i]);
      EXPECT_EQ(low.second[i] + high.second[i], whole.second[i]);
    }
  });
}

TEST_F(Parts, ANanIsNanInEveryBlock) {
  const test::Array image = test::noise({1, 1, 9, 7, 21}, DType::f32, Layout::dense, 1, 1);
  const test::Array field = test::filled({1, 6, 7, 21, 3}, DType::f32, Layout::dense, 0);
  field.elements<float>()[3 * 200 + 2] = std::numeric_limits<float>::quiet_NaN();
  field.elements<float>()[3 * 300 + 2] = std::numeric_limits<float>::infinity();
  for_each([&] {
    test::Arguments arguments;
    const std::vector<double> values = test::values_of(sample(arguments.in(slab(image, 2, 4, 5)),
        {.displacement = arguments.in(field), .image_rows = {4, 9}, .cells = {4, 9}}));
    EXPECT_TRUE(std::isnan(values[200]));
    EXPECT_EQ(values[300], 0);
    EXPECT_EQ(values[0], 0);
  });
}

TEST_F(Parts, FieldsComposeInParts) {
  const test::Array u = test::noise({1, 9, 7, 21, 3}, DType::f32, Layout::dense, 1, 0.3);
  const test::Array v = test::noise({1, 8, 5, 19, 3}, DType::f32, Layout::dense, 2, 0.3);
  for_each([&] {
    test::Arguments arguments;
    const TensorView given = arguments.in(u);
    const std::vector<double> whole = test::values_of(compose(given, arguments.in(v)));
    std::vector<double> parts;
    for (std::int64_t row = 0; row < 8; ++row) {
      const TensorView own = arguments.in(slab(v, 1, row, 1));
      const Tensor low = compose(
          slab(given, 1, 0, 6), own, {.rows = {row, 8}, .image_rows = {0, 9}, .cells = {-1, 5}});
      const Tensor high = compose(
          slab(given, 1, 5, 4), own, {.rows = {row, 8}, .image_rows = {5, 9}, .cells = {5, 9}});
      const std::vector<double> a = test::values_of(low), b = test::values_of(high);
      for (std::size_t i = 0; i < a.size(); ++i) parts.push_back(a[i] + b[i]);
    }
    EXPECT_EQ(parts, whole);
  });
}

TEST_F(Parts, AffineGridsHaveTheWholesBits) {
  const test::Array affine = test::noise({1, 3, 4}, DType::f32, Layout::dense, 4, 1);
  for_each([&] {
    test::Arguments arguments;
    const TensorView a = arguments.in(affine);
    const std::vector<double> whole = test::values_of(affine_grid(a, {.out_shape = {7, 5, 6}}));
    std::vector<double> parts;
    for (std::int64_t row = 0; row < 7; ++row) {
      const Tensor one = affine_grid(a, {.out_shape = {1, 5, 6}, .rows = {row, 7}});
      std::ranges::copy(test::values_of(one), std::back_inserter(parts));
    }
    EXPECT_EQ(parts, whole);
  });
}

TEST(PartsRefuse, WhatDoesNotFit) {
  const test::Array image = test::noise({1, 1, 4, 5, 6}, DType::f32, Layout::dense, 1, 1);
  const test::Array u = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal(
      [&] {
        sample(image, {.displacement = u, .rows = {2, 5}});
      },
      "sample: rows begin at 2, and the array has 4; they must lie in an axis of 5");
  test::expect_refusal(
      [&] {
        sample(image, {.displacement = u, .image_rows = {-1, 5}});
      },
      "sample: image_rows begin at -1, and the array has 4; they must lie in an axis of 5");
  test::expect_refusal(
      [&] {
        sample(image, {.displacement = u, .rows = {2, 0}});
      },
      "sample: the extent of rows is 0; it must be from 1 to 1073741824");
  test::expect_refusal(
      [&] {
        sample(image, {.displacement = u, .cells = {2, 1}});
      },
      "sample: cells are from 2 to 1; the end must be above the first");
  test::expect_refusal(
      [&] {
        sample(image, {.image_rows = {0, 5}});
      },
      "sample: image_rows is given without a field; give out_shape too");
}

}  // namespace
}  // namespace similis
