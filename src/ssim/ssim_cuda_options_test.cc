// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU alone: every window, padding and mask against the reference, at the edges of
// tiles. Skipped, with a message, where there is no GPU.
#include <gtest/gtest.h>

#include <limits>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::kPaddings;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class SsimCudaOptions : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  const test::ScopedBackend chosen_{{.name = "CUDA", .on_gpu = true}};
};

bool has_room(const Extents& shape, const SsimOptions& options) {
  for (int axis = 0; axis < shape.rank() - 2; ++axis) {
    const std::int64_t extent = shape[shape.rank() - 1 - axis];
    const int size = axis == 0   ? options.window_size.x()
                     : axis == 1 ? options.window_size.y()
                                 : options.window_size.z();
    if (options.padding == Padding::valid && extent < size) return false;
    if (options.padding == Padding::reflect && extent <= size / 2) return false;
  }
  return true;
}

// Pictures have flat areas, where f32 averages of squares and squares of averages cancel; an image
// of one pixel is flat.
double of_gradient(DType dtype, const Extents& shape) {
  if (dtype == DType::f16) return 0x1p-11;
  if (dtype == DType::bf16) return 0x1p-8;
  if (dtype == DType::f64) return 1e-11;
  return shape.count() == shape[0] * shape[1] ? 3e-4 : 2e-5;
}

// Value, map and gradients by x, by y and by both, with upstream.
void expect_reference(const Extents& shape, SsimOptions options, DType dtype = DType::f32,
    Layout layout = Layout::dense) {
  const double range = dtype == DType::u8 ? 255 : 1;
  const auto [x, y] = ssim_internal::textured(shape, dtype, layout, layout, range);
  for (const Reduction reduction : {Reduction::mean, Reduction::none}) {
    options.reduction = reduction;
    SCOPED_TRACE(fmt::format("{} {} {} window {}×{} {} {}", shape, name(dtype), test::name(layout),
        options.window_size.y(), options.window_size.x(), ssim_internal::name(options.padding),
        ssim_internal::name(reduction)));
    const test::Array upstream =
        ssim_internal::upstream_for(shape, options, DType::f32, Layout::dense, 1000);
    const SsimRequest request{.form = SsimRequest::Form::loss, .upstream = upstream};
    const Reference expected = reference_ssim(x, y, request, options);
    const double allowed = reduction == Reduction::none ? ssim_internal::kMapOnGpu : 1e-5;
    const Reference alone = computed(x, y, request, options, false, false);
    EXPECT_LE(test::max_difference(alone.value, expected.value), allowed);
    if (dtype == DType::u8) continue;
    const Layout out = layout == Layout::expanded ? Layout::permuted : layout;
    const Reference both = computed(x, y, request, options, true, true, out);
    EXPECT_LE(test::max_difference(both.value, expected.value), allowed);
    EXPECT_LE(test::relative_l2(both.x_gradient, expected.x_gradient), of_gradient(dtype, shape));
    EXPECT_LE(test::relative_l2(both.y_gradient, expected.y_gradient), of_gradient(dtype, shape));
    const Reference by_y = computed(x, y, request, options, false, true, out);
    EXPECT_EQ(by_y.y_gradient, both.y_gradient);
  }
}

const SsimOptions kWindows[] = {{.window_size = 1}, {.window_size = 3}, {.window_size = 7},
    {.window_size = 9, .sigma = 2}, {.window_size = 11}, {.window_size = 13, .sigma = 2},
    {.window_size = 21, .sigma = 3}, {.window_size = 33, .sigma = 5},
    {.window_size = {5, 15}, .sigma = {1, 2.5}}, {.window_size = 11, .sigma = {1.5, 1}}};

TEST_F(SsimCudaOptions, EveryWindowWithEveryPadding) {
  for (SsimOptions options : kWindows) {
    for (const Padding padding : kPaddings) {
      options.padding = padding;
      for (const Extents& shape : {Extents{1, 2, 34, 41}, Extents{1, 1, 37, 139}}) {
        if (has_room(shape, options)) expect_reference(shape, options);
      }
    }
  }
}

// A tile is 32×112 under a window of 11, 32×96 under one of 31 to 33.
TEST_F(SsimCudaOptions, TilesLeaveNoSeam) {
  for (const Extents& shape : {Extents{1, 1, 32, 112}, Extents{1, 1, 33, 113},
           Extents{1, 1, 65, 225}, Extents{1, 1, 6, 6}, Extents{1, 1, 1, 40}, Extents{1, 1, 40, 1},
           Extents{1, 1, 1, 1}, Extents{3, 5, 7, 9}, Extents{1, 40, 12, 13}}) {
    for (const Padding padding : kPaddings) {
      const SsimOptions options{.padding = padding};
      if (has_room(shape, options)) expect_reference(shape, options);
    }
  }
  for (const Extents& shape :
      {Extents{1, 1, 33, 97}, Extents{1, 1, 17, 193}, Extents{1, 1, 18, 20}}) {
    for (const Padding padding : kPaddings) {
      const SsimOptions options{.window_size = 31, .sigma = 4, .padding = padding};
      if (has_room(shape, options)) expect_reference(shape, options);
    }
  }
}

TEST_F(SsimCudaOptions, EveryDtypeAndLayout) {
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Layout layout : test::kLayouts) {
      expect_reference({2, 2, 35, 40}, {.window_size = 21, .sigma = 3, .padding = Padding::reflect},
          dtype, layout);
      expect_reference({1, 2, 20, 117}, {.padding = Padding::renormalize}, dtype, layout);
      expect_reference({1, 2, 20, 117}, {.window_size = 7}, dtype, layout);
    }
  }
}

TEST_F(SsimCudaOptions, VolumesWithEveryPadding) {
  for (SsimOptions options : {SsimOptions{.window_size = 7}, SsimOptions{},
           SsimOptions{.window_size = {3, 7, 13}, .sigma = {1, 1.5, 2}}}) {
    for (const Padding padding : kPaddings) {
      options.padding = padding;
      for (const Extents& shape :
          {Extents{1, 2, 12, 13, 20}, Extents{1, 1, 6, 7, 118}, Extents{1, 1, 1, 9, 9}}) {
        if (has_room(shape, options)) expect_reference(shape, options);
      }
    }
  }
  const SsimOptions options{.window_size = 5, .padding = Padding::reflect};
  expect_reference({1, 2, 9, 12, 13}, options, DType::f64, Layout::permuted);
  expect_reference({1, 2, 9, 12, 13}, options, DType::f16, Layout::channels_last);
  expect_reference({1, 2, 9, 12, 13}, options, DType::u8, Layout::reversed);
}

test::Array weights(const Extents& shape, DType dtype, Layout layout = Layout::dense) {
  return test::make(shape, dtype, layout, [](std::int64_t i) {
    const double amount = test::uniform(7, i);
    return amount < 0.33 || i % 97 < 20 ? 0 : amount;
  });
}

// Values; a map is NaN where valid_mask, [H,W], leaves a pixel out.
void expect_near_where_pixels_are(
    const Reference& actual, Reference expected, const SsimOptions& options) {
  std::vector<double> values = actual.value;
  if (options.reduction == Reduction::none && !options.valid_mask.empty()) {
    const std::vector<double> valid = to_doubles(options.valid_mask);
    const std::int64_t width = options.valid_mask.shape[1];
    const bool is_smaller = options.padding == Padding::valid;
    const std::int64_t rim_y = is_smaller ? options.window_size.y() / 2 : 0;
    const std::int64_t rim_x = is_smaller ? options.window_size.x() / 2 : 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t column = at % actual.shape[3] + rim_x;
      const std::int64_t row = at / actual.shape[3] % actual.shape[2] + rim_y;
      if (valid[static_cast<std::size_t>(row * width + column)] > 0) continue;
      ASSERT_TRUE(std::isnan(values[i])) << i;
      values[i] = expected.value[i] = 0;
    }
  }
  EXPECT_LE(test::relative_l2(values, expected.value), 1e-5);
}

// Every reduction, value and gradients, with a mask on the map, on the pixels, or both.
TEST_F(SsimCudaOptions, MasksWithEveryWindowAndPadding) {
  const Extents shape = {2, 2, 36, 130};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto [x, y] = ssim_internal::textured(shape, dtype, Layout::dense, Layout::sliced, 1);
    const test::Array valid = weights({36, 130}, DType::f32, Layout::permuted);
    const test::Array mask = test::noise({2, 1, 36, 130}, DType::f16, Layout::dense, 5, 1);
    for (SsimOptions options : {SsimOptions{.window_size = 7}, SsimOptions{},
             SsimOptions{.window_size = 21, .sigma = 3}}) {
      for (const Padding padding : kPaddings) {
        for (const Reduction reduction : ssim_internal::kReductions) {
          for (const int masks : {1, 2, 3}) {
            if (masks != 2 && (reduction == Reduction::sum || dtype == DType::f64)) continue;
            options.padding = padding;
            options.reduction = reduction;
            options.mask = masks & 1 ? TensorView(mask) : TensorView();
            options.valid_mask = masks & 2 ? TensorView(valid) : TensorView();
            SCOPED_TRACE(
                fmt::format("{} window {} {} {} masks {}", name(dtype), options.window_size.x(),
                    ssim_internal::name(padding), ssim_internal::name(reduction), masks));
            const test::Array upstream = ssim_internal::upstream_for(shape, options);
            const SsimRequest request{.form = SsimRequest::Form::loss, .upstream = upstream};
            const Reference expected = reference_ssim(x, y, request, options);
            const Reference actual = computed(x, y, request, options);
            expect_near_where_pixels_are(actual, expected, options);
            EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient),
                of_gradient(dtype, shape));
            EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient),
                of_gradient(dtype, shape));
          }
        }
      }
    }
  }
}

// One pixel that is not finite, in the middle, where the shift of sums is taken from.
TEST_F(SsimCudaOptions, ANaNReachesOnlyTheWindowsThatSeeIt) {
  for (const int size : {1, 5, 7, 9, 11, 13, 21}) {
    for (const Padding padding : {Padding::valid, Padding::same, Padding::replicate}) {
      for (const double spoilt : {kNaN, std::numeric_limits<double>::infinity()}) {
        const test::Array y = test::noise({1, 1, 40, 40}, DType::f32, Layout::dense, 2, 1);
        const test::Array x = test::make({1, 1, 40, 40}, DType::f32, Layout::dense,
            [&](std::int64_t i) { return i == 20 * 40 + 20 ? spoilt : test::uniform(1, i); });
        const SsimOptions options{
            .window_size = size, .padding = padding, .reduction = Reduction::none};
        SCOPED_TRACE(fmt::format("window {} {} {}", size, ssim_internal::name(padding), spoilt));
        const Reference map = computed(x, y, {}, options, false, false);
        const std::int64_t width = map.shape[3];
        const std::int64_t at = padding == Padding::valid ? 20 - size / 2 : 20;
        for (std::int64_t i = 0; i < map.shape.count(); ++i) {
          const std::int64_t row = i / width, column = i % width;
          const bool sees = std::abs(row - at) <= size / 2 && std::abs(column - at) <= size / 2;
          ASSERT_EQ(std::isnan(map.value[static_cast<std::size_t>(i)]), sees)
              << row << " " << column;
        }
      }
    }
  }
}

// A window of weight 0 may hold NaN.
TEST_F(SsimCudaOptions, AMaskOfZerosLeavesNaNOut) {
  for (const int size : {7, 11, 21}) {
    const test::Array y = test::noise({1, 1, 60, 60}, DType::f32, Layout::dense, 2, 1);
    const test::Array x = test::make({1, 1, 60, 60}, DType::f32, Layout::dense,
        [&](std::int64_t i) { return i == 30 * 60 + 30 ? kNaN : test::uniform(1, i); });
    const test::Array mask = test::make({60, 60}, DType::f32, Layout::dense, [&](std::int64_t i) {
      return std::abs(i / 60 - 30) <= size / 2 && std::abs(i % 60 - 30) <= size / 2 ? 0 : 1;
    });
    const Reference result = computed(x, y, {}, {.window_size = size, .mask = mask}, true, false);
    EXPECT_TRUE(std::isfinite(result.value[0])) << size;
  }
}

// A negative or NaN weight is never a score, and no weight at all no perfect one.
TEST_F(SsimCudaOptions, WeightsFailClosed) {
  const Extents shape = {2, 1, 40, 50};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto [x, y] = ssim_internal::textured(shape, dtype, Layout::dense, Layout::dense, 1);
    for (const int size : {7, 11, 13}) {
      for (const bool is_valid_mask : {false, true}) {
        for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::per_image}) {
          for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
            SCOPED_TRACE(fmt::format("{} window {} valid_mask {} {} loss {}", name(dtype), size,
                is_valid_mask, ssim_internal::name(reduction), form == SsimRequest::Form::loss));
            SsimOptions options{.window_size = size, .reduction = reduction};
            TensorView& mask = is_valid_mask ? options.valid_mask : options.mask;
            for (const double wrong : {-1.0, kNaN}) {
              const test::Array bad = test::make(shape, DType::f32, Layout::dense,
                  [&](std::int64_t i) { return i == 20 * 50 + 25 ? wrong : 1; });
              mask = bad;
              const Reference result = computed(x, y, {.form = form}, options);
              EXPECT_TRUE(std::isnan(result.value[0]));
              EXPECT_TRUE(std::isnan(result.x_gradient[20 * 50 + 25]));
              EXPECT_TRUE(std::isnan(result.x_gradient[0]));
              EXPECT_TRUE(std::isnan(result.y_gradient[20 * 50 + 25]));
              if (reduction == Reduction::per_image) {
                EXPECT_TRUE(std::isfinite(result.value[1]));
              }
            }
            const test::Array second = test::make(shape, DType::f32, Layout::dense,
                [](std::int64_t i) { return i < 40 * 50 ? 0 : 1; });
            mask = second;
            const Reference result = computed(x, y, {.form = form}, options);
            const bool is_loss = form == SsimRequest::Form::loss;
            if (reduction == Reduction::per_image) {
              EXPECT_TRUE(is_loss ? result.value[0] == 0 : std::isnan(result.value[0]));
            }
            EXPECT_TRUE(std::isfinite(result.value.back()));
            for (std::size_t i = 0; i < 40 * 50; ++i) ASSERT_EQ(result.x_gradient[i], 0) << i;
          }
        }
      }
    }
  }
}

TEST_F(SsimCudaOptions, MasksInVolumes) {
  const Extents shape = {2, 1, 9, 12, 40};
  const test::Array valid = weights({9, 12, 40}, DType::f32);
  const test::Array mask = test::noise(shape, DType::f32, Layout::permuted, 5, 1);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto [x, y] = ssim_internal::textured(shape, dtype, Layout::dense, Layout::dense, 1);
    for (const Padding padding : kPaddings) {
      for (const Reduction reduction : {Reduction::mean, Reduction::per_image}) {
        for (const bool is_both : {false, true}) {
          SsimOptions options{
              .window_size = 5, .padding = padding, .reduction = reduction, .valid_mask = valid};
          if (is_both) options.mask = mask;
          SCOPED_TRACE(fmt::format("{} {} {} {}", name(dtype), ssim_internal::name(padding),
              ssim_internal::name(reduction), is_both));
          const test::Array upstream = ssim_internal::upstream_for(shape, options);
          const SsimRequest request{.l1_weight = 0.4, .upstream = upstream};
          const Reference expected = reference_ssim(x, y, request, options);
          const Reference actual = computed(x, y, request, options);
          EXPECT_LE(test::relative_l2(actual.value, expected.value), 1e-5);
          EXPECT_LE(
              test::relative_l2(actual.x_gradient, expected.x_gradient), of_gradient(dtype, shape));
          EXPECT_LE(
              test::relative_l2(actual.y_gradient, expected.y_gradient), of_gradient(dtype, shape));
        }
      }
    }
  }
}

TEST_F(SsimCudaOptions, BitsAreTheSameEveryTime) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 200, 300}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array valid = weights({200, 300}, DType::f32);
  for (const SsimOptions& options :
      {SsimOptions{.window_size = 7}, SsimOptions{.window_size = 21, .sigma = 3},
          SsimOptions{.padding = Padding::reflect}, SsimOptions{.valid_mask = valid}}) {
    const Reference expected = computed(x, y, {}, options);
    for (int run = 0; run < 20; ++run) {
      const Reference actual = computed(x, y, {}, options);
      EXPECT_EQ(actual.value, expected.value);
      EXPECT_EQ(actual.x_gradient, expected.x_gradient);
      EXPECT_EQ(actual.y_gradient, expected.y_gradient);
    }
  }
}

// Every kernel for any window, on so little that compute-sanitizer ends soon.
TEST_F(SsimCudaOptions, EveryKernelOnOneImage) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Extents shape = {1, 1, 35, 120};
    const auto [x, y] = ssim_internal::textured(shape, dtype, Layout::dense, Layout::dense, 1);
    const test::Array valid = weights({35, 120}, DType::f32);
    for (const Padding padding : {Padding::valid, Padding::reflect, Padding::renormalize}) {
      for (const bool is_masked : {false, true}) {
        SsimOptions options{.window_size = 13, .sigma = 2, .padding = padding};
        if (is_masked) options.valid_mask = valid;
        const Reference expected = reference_ssim(x, y, {}, options);
        const Reference actual = computed(x, y, {}, options);
        EXPECT_NEAR(actual.value[0], expected.value[0], 1e-5);
        EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-5);
      }
    }
    const auto [u, v] =
        ssim_internal::textured({1, 1, 5, 6, 9}, dtype, Layout::dense, Layout::dense, 1);
    const SsimOptions options{.window_size = 3, .padding = Padding::reflect};
    const Reference expected = reference_ssim(u, v, {}, options);
    const Reference actual = computed(u, v, {}, options);
    EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-5);
  }
}

}  // namespace
}  // namespace similis
