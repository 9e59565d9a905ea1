// SPDX-License-Identifier: Apache-2.0
// Properties of sampling any image by any field: the identity, whole steps, parts that make up the
// whole, the gradient to the image as the transpose, composition with nothing, one call for many
// results; and that long axes keep their coordinates.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "src/warp/reference.h"
#include "src/warp/test_calls.h"

namespace similis {
namespace {

using test::Layout;
using test::part_of_grid;
using test::sampled;
using test::slab;

std::int64_t any_extent(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange(least, most + 1);
}

// Spatial, 2D or 3D; rows of more than one chunk of the CPU's now and then.
Extents any_grid(std::int64_t least = 1) {
  Extents shape;
  if (*rc::gen::arbitrary<bool>()) {
    shape = {any_extent(least, 8), any_extent(least, 9), any_extent(least, 150)};
  } else {
    shape = {any_extent(least, 20), any_extent(least, 150)};
  }
  return shape;
}

Extents with_channels(const Extents& grid, std::int64_t channels) {
  if (grid.rank() == 2) return {1, channels, grid[0], grid[1]};
  return {1, channels, grid[0], grid[1], grid[2]};
}

Extents of_field(const Extents& grid) {
  if (grid.rank() == 2) return {1, grid[0], grid[1], 2};
  return {1, grid[0], grid[1], grid[2], 3};
}

Outside any_padding() {
  return *rc::gen::element(Outside::zeros, Outside::border, Outside::reflection);
}

test::Array any_image(const Extents& shape, DType dtype) {
  return test::noise(shape, dtype, *rc::gen::element(Layout::dense, Layout::permuted),
      *rc::gen::inRange<std::uint32_t>(1, 1000), 1);
}

// Some of it leads out of the image.
test::Array any_field(const Extents& grid, DType dtype = DType::f32) {
  const auto seed = *rc::gen::inRange<std::uint32_t>(1, 1000);
  const double reach = 0.1 * *rc::gen::inRange(1, 15);
  return test::make(of_field(grid), dtype, *rc::gen::element(Layout::dense, Layout::permuted),
      [=](std::int64_t i) { return reach * (test::uniform(seed, i) - 0.5); });
}

double dot(const TensorView& a, const TensorView& b) {
  const std::vector<double> first = to_doubles(a), second = to_doubles(b);
  return std::inner_product(first.begin(), first.end(), second.begin(), 0.0);
}

void check(
    const char* property, const std::function<void()>& body, test::Gpu gpu = test::Gpu::included) {
  EXPECT_TRUE(rc::check(property, [&] {
    const test::ScopedBackend chosen(*rc::gen::elementOf(test::backends(gpu)));
    body();
  }));
}

TEST(WarpProperty, TheIdentityGivesTheImage) {
  check("sample(x) is x", [] {
    const Extents shape = with_channels(any_grid(), 2);
    const test::Array image = any_image(shape, *rc::gen::element(DType::f32, DType::f64));
    const SampleOptions options{
        .mode = *rc::gen::element(Interpolation::linear, Interpolation::nearest),
        .padding_mode = any_padding(),
        .align_corners = *rc::gen::arbitrary<bool>()};
    RC_ASSERT(
        test::relative_l2(to_doubles(sampled(image, shape, options)), to_doubles(image)) < 1e-6);
  });
}

TEST(WarpProperty, WholeStepsMoveVoxels) {
  check("a displacement by s voxels is a shift by s, zeros from outside", [] {
    const Extents grid = any_grid(2), shape = with_channels(grid, 1);
    const int rank = grid.rank();
    const test::Array image = any_image(shape, DType::f32);
    std::int64_t steps[3];  // x, y, z
    for (std::int64_t& step : steps) step = *rc::gen::inRange(-4, 5);
    const test::Array u =
        test::make(of_field(grid), DType::f64, Layout::dense, [&](std::int64_t i) {
          const auto axis = static_cast<int>(i % rank);
          return 2 * static_cast<double>(steps[axis]) /
                 static_cast<double>(grid[rank - 1 - axis] - 1);
        });
    const std::vector<double> values = to_doubles(image);
    std::vector<double> expected(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int64_t voxel = static_cast<std::int64_t>(i), stride = 1, from = 0;
      bool is_inside = true;
      for (int a = 0; a < rank; ++a) {
        const std::int64_t extent = grid[rank - 1 - a], at = voxel % extent + steps[a];
        is_inside = is_inside && at >= 0 && at < extent;
        from += at * stride;
        voxel /= extent;
        stride *= extent;
      }
      expected[i] = is_inside ? values[static_cast<std::size_t>(from)] : 0;
    }
    const std::vector<double> moved = to_doubles(sampled(image, shape, {.displacement = u}));
    for (std::size_t i = 0; i < moved.size(); ++i)
      RC_ASSERT(std::abs(moved[i] - expected[i]) < 1e-6);
  });
}

TEST(WarpProperty, PartsOfTheGridHaveTheBitsOfTheWhole) {
  check("values and field gradients of a slab are the whole's", [] {
    const Extents grid = any_grid(4), shape = with_channels(grid, 2);
    const test::Array image = any_image(with_channels(any_grid(2), 2), DType::f32);
    RC_PRE(image.shape.rank() == shape.rank());
    const test::Array u = any_field(grid), upstream = any_image(shape, DType::f32);
    const SampleOptions options{.displacement = u,
        .padding_mode = any_padding(),
        .align_corners = *rc::gen::arbitrary<bool>()};
    const auto run = [&](const SampleOptions& part, const TensorView& given,
                         const TensorView& value, const TensorView& gradient) {
      test::call_sample(
          image, {.output = value, .upstream = given, .grid_gradient = gradient}, part);
    };
    const test::Array value = test::filled(shape, DType::f32, Layout::dense, 0),
                      parts = test::filled(shape, DType::f32, Layout::dense, 0);
    const test::Array gradient = test::filled(u.shape, DType::f32, Layout::dense, 0),
                      gradient_parts = test::filled(u.shape, DType::f32, Layout::dense, 0);
    run(options, upstream, value, gradient);
    const int axis = *rc::gen::inRange(0, grid.rank());
    const int in_image = shape.rank() - 1 - axis, in_field = u.shape.rank() - 2 - axis;
    const std::int64_t extent = shape[in_image], cut = any_extent(2, extent - 2);
    for (const auto& [first, count] : {std::pair{std::int64_t{0}, cut}, {cut, extent - cut}}) {
      SampleOptions part = part_of_grid(options, grid, axis, first, count);
      part.displacement = slab(u, in_field, first, count);
      run(part, slab(upstream, in_image, first, count), slab(parts, in_image, first, count),
          slab(gradient_parts, in_field, first, count));
    }
    RC_ASSERT(to_doubles(parts) == to_doubles(value));
    RC_ASSERT(to_doubles(gradient_parts) == to_doubles(gradient));
  });
}

TEST(WarpProperty, PartsOfTheImageAddUp) {
  check("what slabs of the image give adds up to the whole", [] {
    const Extents grid = any_grid(4), shape = with_channels(grid, 1);
    const int rank = grid.rank(), axis = *rc::gen::inRange(0, rank);
    const test::Array image = any_image(shape, DType::f32);
    const Extents out = rank == 2 ? Extents{7, 33} : Extents{3, 5, 33};
    const auto seed = *rc::gen::inRange<std::uint32_t>(1, 1000);
    const auto coordinate = [&](std::int64_t i) { return 2.2 * (test::uniform(seed, i) - 0.5); };
    const test::Array points = test::make(of_field(out), DType::f64, Layout::dense, coordinate);
    const Tensor whole = sampled(image, with_channels(out, 1), {.grid = points});
    const test::Array sum = test::filled(whole.shape, DType::f32, Layout::dense, 0);
    const int dimension = shape.rank() - 1 - axis;
    const std::int64_t extent = shape[dimension], cut = any_extent(2, extent - 2);
    for (const auto& [first, count] : {std::pair{std::int64_t{0}, cut}, {cut, extent - cut}}) {
      const auto in_slab = [&, first = first, count = count](std::int64_t i) {
        if (i % rank != axis) return coordinate(i);
        const double index = (coordinate(i) + 1) / 2 * static_cast<double>(extent - 1);
        return 2 * (index - static_cast<double>(first)) / static_cast<double>(count - 1) - 1;
      };
      const test::Array moved = test::make(of_field(out), DType::f64, Layout::dense, in_slab);
      test::call_sample(slab(image, dimension, first, count), {.output = sum, .accumulate = true},
          {.grid = moved});
    }
    RC_ASSERT(test::relative_l2(to_doubles(sum), to_doubles(whole)) < 1e-6);
  });
}

// Sizes from within a cell to more than f32 can count: rows of dense f32 have code of their own on
// the CPU.
TEST(WarpProperty, FieldsOfAnyReachGiveTheReference) {
  check(
      "values and gradients of dense f32 are the reference's, however far voxels move",
      [] {
        const Extents grid = any_grid(), shape = with_channels(any_grid(2), 1);
        RC_PRE(grid.rank() + 2 == shape.rank());
        const test::Array image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
        const double reach = std::pow(10.0, *rc::gen::inRange(-2, 9));
        const auto seed = *rc::gen::inRange<std::uint32_t>(1, 1000);
        const bool has_holes = *rc::gen::arbitrary<bool>();
        const test::Array u =
            test::make(of_field(grid), DType::f32, Layout::dense, [=](std::int64_t i) {
              return has_holes && i % 17 == 5 ? std::nan("")
                                              : reach * (test::uniform(seed, i) - 0.5);
            });
        const SampleOptions options{.displacement = u,
            .padding_mode = any_padding(),
            .align_corners = *rc::gen::arbitrary<bool>()};
        const Extents out = with_channels(grid, 1);
        const std::vector<bool> kinks =
            warp_internal::reference_sample(image, options).is_at_a_kink;
        const test::Array upstream =
            test::make(out, DType::f32, Layout::dense, [&](std::int64_t i) {
              return kinks[static_cast<std::size_t>(i)] ? 0 : test::uniform(seed + 1, i) - 0.3;
            });
        const warp_internal::Reference expected =
            warp_internal::reference_sample(image, options, upstream);
        const test::Array value = test::filled(out, DType::f32, Layout::dense, test::kUntouched);
        const test::Array gradient =
            test::filled(u.shape, DType::f32, Layout::dense, test::kUntouched);
        test::call_sample(
            image, {.output = value, .upstream = upstream, .grid_gradient = gradient}, options);
        const auto require_near = [](const std::vector<double>& given,
                                      const std::vector<double>& wanted) {
          double error = 0, size = 0;
          for (std::size_t i = 0; i < given.size(); ++i) {
            RC_ASSERT(std::isnan(given[i]) == std::isnan(wanted[i]));
            if (std::isnan(wanted[i])) continue;
            error += (given[i] - wanted[i]) * (given[i] - wanted[i]);
            size += wanted[i] * wanted[i];
          }
          RC_ASSERT(error <= 1e-10 * size);
        };
        require_near(to_doubles(value), expected.output);
        require_near(to_doubles(gradient), expected.grid_gradient);
      },
      test::Gpu::left_out);
}

TEST(WarpProperty, TheGradientToTheImageIsTheTranspose) {
  check("<sample(x), u> is <x, gradient to x of u>", [] {
    const Extents grid = any_grid(), shape = with_channels(any_grid(), 2);
    RC_PRE(grid.rank() + 2 == shape.rank());
    const test::Array image = any_image(shape, DType::f64);
    const test::Array upstream = any_image(with_channels(grid, 2), DType::f64);
    const test::Array u = any_field(grid, *rc::gen::element(DType::f32, DType::f64));
    const SampleOptions options{.displacement = u,
        .mode =
            *rc::gen::element(Interpolation::linear, Interpolation::nearest, Interpolation::cubic),
        .padding_mode = any_padding(),
        .align_corners = *rc::gen::arbitrary<bool>()};
    const Tensor value = sampled(image, upstream.shape, options);
    const test::Array gradient = test::filled(shape, DType::f64, Layout::dense, 0);
    test::call_sample(image, {.upstream = upstream, .image_gradient = gradient}, options);
    const double size = std::sqrt(dot(value, value) * dot(upstream, upstream)) + 1e-30;
    RC_ASSERT(std::abs(dot(value, upstream) - dot(image, gradient)) <= 1e-12 * size);
  });
}

TEST(WarpProperty, ComposingWithNothingChangesNothing) {
  check("compose(u, 0) is u, and compose(0, v) is 0", [] {
    const Extents grid = any_grid(2);
    const test::Array u = any_field(grid);
    const test::Array nothing = test::filled(u.shape, DType::f32, Layout::dense, 0);
    const test::Array first = test::filled(u.shape, DType::f32, Layout::dense, 0),
                      second = test::filled(u.shape, DType::f32, Layout::dense, 1);
    test::Arguments arguments;
    const TensorView in_u = arguments.in(u), in_nothing = arguments.in(nothing);
    compose_into(in_u, in_nothing, {.output = arguments.out(first)});
    compose_into(in_nothing, in_u, {.output = arguments.out(second)});
    arguments.bring_back();
    RC_ASSERT(test::relative_l2(to_doubles(first), to_doubles(u)) < 1e-6);
    RC_ASSERT(test::largest(to_doubles(second)) == 0);
  });
}

TEST(WarpProperty, OneCallGivesWhatSeveralGive) {
  check(
      "results asked for together have the bits of each asked for alone",
      [] {
        const Extents grid = any_grid(), shape = with_channels(any_grid(), 2);
        RC_PRE(grid.rank() + 2 == shape.rank());
        const test::Array image = any_image(shape, DType::f32), u = any_field(grid);
        const test::Array upstream = any_image(with_channels(grid, 2), DType::f32);
        const SampleOptions options{.displacement = u, .padding_mode = any_padding()};
        test::Array together[3], alone[3];
        for (test::Array* each : {together, alone}) {
          each[0] = test::filled(upstream.shape, DType::f32, Layout::dense, 0);
          each[1] = test::filled(u.shape, DType::f32, Layout::dense, 0);
          each[2] = test::filled(shape, DType::f32, Layout::dense, 0);
        }
        test::call_sample(image,
            {.output = together[0],
                .upstream = upstream,
                .image_gradient = together[2],
                .grid_gradient = together[1]},
            options);
        test::call_sample(image, {.output = alone[0]}, options);
        test::call_sample(image, {.upstream = upstream, .grid_gradient = alone[1]}, options);
        test::call_sample(image, {.upstream = upstream, .image_gradient = alone[2]}, options);
        for (int i = 0; i < 3; ++i) RC_ASSERT(to_doubles(together[i]) == to_doubles(alone[i]));
      },
      test::Gpu::left_out);
}

// In f32 a coordinate of 2^21 voxels would be off by an eighth of one.
TEST(WarpLongAxes, KeepTheirCoordinates) {
  constexpr std::int64_t kLong = (std::int64_t{1} << 21) + 1;
  for (const Extents& shape : {Extents{1, 1, 2, kLong}, Extents{1, 1, kLong, 2, 2}}) {
    const int axis = shape.rank() == 4 ? 0 : 2;  // the long one
    const std::int64_t stride = axis == 0 ? 1 : 4;
    const test::Array image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
    const int rank = shape.rank() - 2;
    const test::Array affine =
        test::make({1, rank, rank + 1}, DType::f64, Layout::dense, [&](std::int64_t i) {
          const std::int64_t row = i / (rank + 1), column = i % (rank + 1);
          if (column == row) return 1.0;
          return column == rank && row == axis ? 2 * 0.3 / static_cast<double>(kLong - 1) : 0.0;
        });
    const std::vector<double> values = to_doubles(image);
    std::vector<double> expected(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t next = static_cast<std::int64_t>(i) + stride;
      const bool is_last = static_cast<std::int64_t>(i) / stride % kLong == kLong - 1;
      expected[i] = 0.7 * values[i] + (is_last ? 0 : 0.3 * values[static_cast<std::size_t>(next)]);
    }
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::ScopedBackend chosen(backend);
      const Tensor moved = sampled(image, shape, {.affine = affine});
      EXPECT_LT(test::relative_l2(to_doubles(moved), expected), 1e-6) << backend.name;
    }
  }
}

}  // namespace
}  // namespace similis
