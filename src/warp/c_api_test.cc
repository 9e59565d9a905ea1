// SPDX-License-Identifier: Apache-2.0
// The C functions of warp.h against the C++ ones, bit for bit.
#include <gtest/gtest.h>

#include "similis/c/warp.h"
#include "similis/warp.hpp"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::CTensor;
using test::Layout;

TEST(WarpCApi, DefaultsAndEnumeratorsAreThoseOfCpp) {
  const similis_warp_options c = SIMILIS_WARP_DEFAULTS;
  const SampleOptions cpp;
  const LabelOptions labels;
  const SampleRequest request;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.mode, static_cast<int>(cpp.mode));
  EXPECT_EQ(c.padding_mode, static_cast<int>(cpp.padding_mode));
  EXPECT_EQ(c.align_corners != 0, cpp.align_corners);
  EXPECT_EQ(c.prefilter != 0, cpp.prefilter);
  EXPECT_EQ(c.out_rank, cpp.out_shape.rank());
  EXPECT_EQ(c.has_min_coords != 0, cpp.min_coords.has_value());
  EXPECT_EQ(c.has_max_coords != 0, cpp.max_coords.has_value());
  EXPECT_EQ(c.background, labels.background);
  EXPECT_EQ(c.has_smallest_label != 0, labels.smallest_label.has_value());
  EXPECT_EQ(c.accumulate != 0, request.accumulate);
  EXPECT_EQ(c.deterministic != 0, request.deterministic);
  for (const std::int64_t part : {c.rows_start, c.rows_extent, c.image_rows_start,
           c.image_rows_extent, c.first_cell, c.end_cell}) {
    EXPECT_EQ(part, 0);
  }
  EXPECT_EQ(+SIMILIS_INTERPOLATION_NEAREST, static_cast<int>(Interpolation::nearest));
  EXPECT_EQ(+SIMILIS_INTERPOLATION_CUBIC, static_cast<int>(Interpolation::cubic));
  EXPECT_EQ(+SIMILIS_OUTSIDE_BORDER, static_cast<int>(Outside::border));
  EXPECT_EQ(+SIMILIS_OUTSIDE_REFLECTION, static_cast<int>(Outside::reflection));
}

class WarpCApi3D : public testing::Test {
 protected:
  WarpCApi3D() {
    options.affine = c_affine.get();
    options.displacement = c_u.get();
    options.grid_affine = c_s.get();
    options.min_coords[0] = -0.9, options.min_coords[1] = -0.8, options.min_coords[2] = -0.7;
    options.max_coords[0] = 0.6, options.max_coords[1] = 0.5, options.max_coords[2] = 0.4;
    options.has_min_coords = options.has_max_coords = 1;
    options.padding_mode = SIMILIS_OUTSIDE_REFLECTION;
    options.align_corners = 0;
    options.rows_start = 3, options.rows_extent = 9;
    options.image_rows_start = 2, options.image_rows_extent = 8;
    options.first_cell = 3, options.end_cell = 5;
  }
  SampleOptions cpp() const {
    return {.affine = affine,
        .displacement = u,
        .grid_affine = s,
        .padding_mode = Outside::reflection,
        .align_corners = false,
        .min_coords = low,
        .max_coords = high,
        .rows = {3, 9},
        .image_rows = {2, 8},
        .cells = {3, 5}};
  }
  static Tensor empty(const Extents& shape, DType dtype = DType::f32) {
    return test::filled(shape, dtype, Layout::dense, test::kUntouched);
  }
  static void expect_equal(const Tensor& actual, const TensorView& expected) {
    EXPECT_EQ(to_doubles(actual), to_doubles(expected));
  }

  const Extents out = {2, 2, 5, 6, 7};
  const Coordinates low{-0.9, -0.8, -0.7}, high{0.6, 0.5, 0.4};
  test::Array image = test::noise({1, 2, 4, 5, 6}, DType::f32, Layout::sliced, 1, 1);
  test::Array affine = test::noise({2, 3, 4}, DType::f32, Layout::permuted, 2, 1);
  test::Array u = test::noise({1, 5, 6, 7, 3}, DType::f32, Layout::offset, 3, 0.5);
  test::Array s = test::noise({1, 3, 3}, DType::f64, Layout::dense, 4, 1);
  CTensor c_image{image}, c_affine{affine}, c_u{u}, c_s{s};
  similis_warp_options options = SIMILIS_WARP_DEFAULTS;
};

TEST_F(WarpCApi3D, EveryArgumentOfSampleArrives) {
  const test::Array upstream = test::noise(out, DType::f32, Layout::dense, 5, 1);
  SampleOptions cpp_options = cpp();
  cpp_options.mode = Interpolation::cubic;
  cpp_options.prefilter = false;
  options.mode = SIMILIS_INTERPOLATION_CUBIC;
  options.prefilter = 0;
  options.accumulate = 1;
  const Tensor value = test::filled(out, DType::f32, Layout::dense, 1),
               expected = test::filled(out, DType::f32, Layout::dense, 1);
  const Tensor by_image = empty(image.shape), by_affine = empty(affine.shape),
               by_u = empty(u.shape), by_s = empty(s.shape, DType::f64);
  ASSERT_EQ(similis_sample(c_image.get(), &options, CTensor(value).get(), CTensor(upstream).get(),
                CTensor(by_image).get(), CTensor(by_affine).get(), CTensor(by_u).get(),
                CTensor(by_s).get(), nullptr),
      SIMILIS_OK)
      << similis_last_error();
  sample_into(image, {.output = expected, .accumulate = true}, cpp_options);
  const SampleGradients gradients = sample_backward(image, upstream,
      {.image = true, .affine = true, .grid = true, .grid_affine = true}, cpp_options);
  expect_equal(value, expected);
  expect_equal(by_image, gradients.image);
  expect_equal(by_affine, gradients.affine);
  expect_equal(by_u, gradients.grid);
  expect_equal(by_s, gradients.grid_affine);
}

TEST_F(WarpCApi3D, LabelsArrive) {
  const Tensor label = empty(out), weight = empty(out);
  options.background = 5;
  options.smallest_label = 0.25;
  options.has_smallest_label = 1;
  ASSERT_EQ(similis_sample_labels(c_image.get(), &options, CTensor(label).get(),
                CTensor(weight).get(), nullptr, nullptr, nullptr, nullptr, nullptr),
      SIMILIS_OK)
      << similis_last_error();
  const Labels expected = sample_labels(image, cpp(), {.background = 5, .smallest_label = 0.25});
  expect_equal(label, expected.label);
  expect_equal(weight, expected.weight);
}

TEST_F(WarpCApi3D, CompositionsAndGridsArrive) {
  const Extents shape = {2, 5, 6, 7, 3};
  const test::Array w = test::noise({1, 4, 5, 6, 3}, DType::f32, Layout::dense, 6, 0.2);
  const Tensor composed = empty(shape), mapped = empty(shape);
  ASSERT_EQ(similis_compose(CTensor(w).get(), c_u.get(), &options, CTensor(composed).get(), nullptr,
                nullptr, nullptr, nullptr, nullptr),
      SIMILIS_OK);
  expect_equal(composed, compose(w, u,
                             {.affine = affine,
                                 .padding_mode = Outside::reflection,
                                 .align_corners = false,
                                 .min_coords = low,
                                 .max_coords = high,
                                 .rows = {3, 9},
                                 .image_rows = {2, 8},
                                 .cells = {3, 5}}));
  ASSERT_EQ(similis_affine_grid(
                c_affine.get(), &options, CTensor(mapped).get(), nullptr, nullptr, nullptr),
      SIMILIS_OK);
  expect_equal(mapped, affine_grid(affine, {.displacement = u,
                                               .align_corners = false,
                                               .min_coords = low,
                                               .max_coords = high,
                                               .rows = {3, 9}}));
}

TEST_F(WarpCApi3D, RefusalsComeAsAStatusAndASentence) {
  const auto refusal = [&](similis_warp_options changed) {
    return similis_sample(c_image.get(), &changed, nullptr, nullptr, nullptr, nullptr, nullptr,
               nullptr, nullptr) == SIMILIS_INVALID_ARGUMENT
               ? std::string(similis_last_error())
               : std::string("no refusal");
  };
  similis_warp_options wrong = options;
  wrong.mode = 3;
  EXPECT_EQ(refusal(wrong), "sample: mode is 3; it must be linear, nearest or cubic");
  wrong = options;
  wrong.out_rank = 4;
  EXPECT_EQ(refusal(wrong), "sample: out_rank is 4; it must be from 0 to 3");
  wrong = options;
  wrong.align_corners = 2;
  EXPECT_EQ(refusal(wrong), "sample: align_corners is 2; it must be true or false");
  wrong = options;
  wrong.has_max_coords = -1;
  EXPECT_EQ(refusal(wrong), "sample: has_max_coords is -1; it must be 0 or 1");
}

}  // namespace
}  // namespace similis
