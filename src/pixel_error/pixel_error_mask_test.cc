// SPDX-License-Identifier: Apache-2.0
// MSE, MAE and PSNR under masks: against the reference, and what a mask means by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "similis/pixel_error.hpp"
#include "src/core/joined.h"
#include "src/core/require.h"
#include "src/pixel_error/reference.h"
#include "src/pixel_error/test_into.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using pixel_error_internal::Error;
using pixel_error_internal::into;
using pixel_error_internal::Reference;
using pixel_error_internal::reference_pixel_error;
using test::Layout;

constexpr Reduction kReductions[] = {
    Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Results {
  test::Array value, x_gradient, y_gradient;
};

// On the chosen backend. Gradients of floats alone.
Results computed(Error error, const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options, const TensorView& upstream = {},
    Layout of_x_gradient = Layout::permuted) {
  const Extents shape = options.reduction == Reduction::per_channel
                            ? Extents{x.shape[0], x.shape[1]}
                        : options.reduction == Reduction::per_image ? Extents{x.shape[0]}
                                                                    : Extents{};
  Results r{.value = test::filled(shape, DType::f64, Layout::dense, test::kUntouched),
      .x_gradient = {},
      .y_gradient = {}};
  if (is_floating_point(x.dtype)) {
    r.x_gradient = test::filled(x.shape, x.dtype, of_x_gradient, test::kUntouched);
    r.y_gradient = test::filled(x.shape, x.dtype, Layout::dense, test::kUntouched);
  }
  into(error, x, y,
      {.upstream = upstream,
          .value = r.value,
          .x_gradient = r.x_gradient,
          .y_gradient = r.y_gradient},
      options);
  return r;
}

void expect_reference(const TensorView& x, const TensorView& y, const TensorView& mask,
    Layout of_x_gradient = Layout::permuted) {
  for (const Reduction reduction : kReductions) {
    const PixelErrorOptions options{.reduction = reduction, .mask = mask};
    const Extents shape = reference_pixel_error(Error::squared, x, y, options).shape;
    const double scale = x.dtype == DType::f16 ? 4096 : 4;  // above f16's subnormal numbers
    const Tensor upstream = test::make(shape, DType::f32, Layout::reversed,
        [=](std::int64_t i) { return scale * (test::uniform(3, i) - 0.5); });
    for (const Error error : {Error::squared, Error::absolute}) {
      const Reference expected = reference_pixel_error(error, x, y, options, upstream);
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        const test::ScopedBackend chosen(backend);
        SCOPED_TRACE(fmt::format("{} reduction {}", backend.name, static_cast<int>(reduction)));
        const Results found = computed(error, x, y, options, upstream, of_x_gradient);
        EXPECT_LT(test::relative_l2(to_doubles(found.value), expected.value), 1e-13);
        if (found.x_gradient.empty()) continue;
        const double bound = x.dtype == DType::f16 ? 1e-3 : x.dtype == DType::bf16 ? 8e-3 : 1e-6;
        EXPECT_LT(test::relative_l2(to_doubles(found.x_gradient), expected.x_gradient), bound);
        EXPECT_LT(test::relative_l2(to_doubles(found.y_gradient), expected.y_gradient), bound);
        EXPECT_TRUE(test::only_elements_written(found.x_gradient));
      }
    }
  }
}

// 0 in a third of the pixels.
test::Array weights(const Extents& shape, DType dtype, Layout layout) {
  return test::make(shape, dtype, layout,
      [](std::int64_t i) { return test::uniform(7, i) < 0.33 ? 0 : 1 + (i % 3); });
}

TEST(PixelErrorMask, MatchesTheReferenceInAnyShapeAndType) {
  const Extents shape = {2, 3, 31, 37};
  const Tensor x = test::noise(shape, DType::f32, Layout::channels_last, 1, 1);
  const Tensor y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
  for (const Extents& of_mask : {Extents{31, 37}, Extents{3, 31, 37}, Extents{1, 31, 37},
           Extents{2, 3, 31, 37}, Extents{2, 1, 31, 37}, Extents{1, 3, 31, 37}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
      for (const Layout layout : {Layout::dense, Layout::permuted}) {
        SCOPED_TRACE(fmt::format("{} {}", of_mask, name(dtype)));
        expect_reference(x, y, weights(of_mask, dtype, layout));
      }
    }
  }
}

TEST(PixelErrorMask, MatchesTheReferenceOfImagesOfAnyTypeAndRank) {
  for (const DType dtype : {DType::u8, DType::u16, DType::f16, DType::f64}) {
    const double range = dtype == DType::u8 ? 256 : dtype == DType::u16 ? 65536 : 1;
    for (const Extents& shape : {Extents{1, 1}, Extents{3, 7}, Extents{2, 2, 5, 3, 4},
             Extents{1, 1, 1, 1, 600, 3}, Extents{1, 2, 300, 307}}) {
      SCOPED_TRACE(fmt::format("{} {}", shape, name(dtype)));
      expect_reference(test::noise(shape, dtype, Layout::sliced, 1, range),
          test::noise(shape, dtype, Layout::dense, 2, range),
          test::make(shape, DType::f32, Layout::dense,
              [](std::int64_t i) { return 0.25 + test::uniform(9, i); }));
    }
  }
}

// A GPU takes several at once if all arrays let it.
TEST(PixelErrorMask, MatchesTheReferenceOfPixelsThatLieSideBySide) {
  for (const Extents& shape :
      {Extents{2, 3, 16, 40}, Extents{1, 2, 130, 96}, Extents{2, 2, 9, 11}}) {
    const Extents plane = {shape[2], shape[3]};
    for (const DType dtype : {DType::u8, DType::bf16, DType::f16, DType::f32, DType::f64}) {
      const double range = dtype == DType::u8 ? 256 : 1;
      const Tensor x = test::noise(shape, dtype, Layout::dense, 1, range);
      const Tensor y = test::noise(shape, dtype, Layout::dense, 2, range);
      for (const DType of_mask : {DType::u8, DType::f16, DType::f32, DType::f64}) {
        SCOPED_TRACE(fmt::format("{} {} {}", shape, name(dtype), name(of_mask)));
        expect_reference(x, y, weights(plane, of_mask, Layout::dense), Layout::dense);
      }
      SCOPED_TRACE(fmt::format("{} {}", shape, name(dtype)));
      expect_reference(x, y, weights(plane, DType::f32, Layout::offset), Layout::dense);
      expect_reference(x, y, weights(shape, DType::f32, Layout::dense), Layout::offset);
      const Tensor offset = test::noise(shape, dtype, Layout::offset, 1, range);
      expect_reference(offset, y, weights(plane, DType::f32, Layout::dense), Layout::dense);
    }
  }
}

TEST(PixelErrorMask, LeavesPixelsOfWeight0OutWhateverTheyHold) {
  const Extents shape = {1, 2, 9, 40};
  const test::Array mask = weights({9, 40}, DType::u8, Layout::dense);
  const std::vector<double> weight = to_doubles(mask);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Error error : {Error::squared, Error::absolute}) {
      const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
      const test::Array y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
      const Results clean = computed(error, x, y, {.mask = mask});
      for (std::int64_t i = 0; i < shape.count(); ++i) {
        if (weight[static_cast<std::size_t>(i % 360)] != 0) continue;
        x.elements<float>()[i] = static_cast<float>(kNan);
        y.elements<float>()[i] = std::numeric_limits<float>::infinity();
      }
      const Results spoilt = computed(error, x, y, {.mask = mask});
      EXPECT_EQ(to_doubles(spoilt.value), to_doubles(clean.value)) << backend.name;
      EXPECT_EQ(to_doubles(spoilt.x_gradient), to_doubles(clean.x_gradient)) << backend.name;
      EXPECT_EQ(to_doubles(spoilt.y_gradient), to_doubles(clean.y_gradient)) << backend.name;
    }
  }
}

TEST(PixelErrorMask, OfZerosIsNoMeasureOfThatImageAlone) {
  const Extents shape = {3, 1, 8, 9};
  const Tensor x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const Tensor y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
  const test::Array mask = test::make(
      {3, 1, 8, 9}, DType::f32, Layout::dense, [](std::int64_t i) { return i / 72 == 1 ? 0 : 1; });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Results each =
        computed(Error::squared, x, y, {.reduction = Reduction::per_image, .mask = mask});
    const std::vector<double> values = to_doubles(each.value);
    EXPECT_GT(values[0], 0);
    EXPECT_TRUE(std::isnan(values[1])) << backend.name;
    EXPECT_GT(values[2], 0);
    const std::vector<double> gradient = to_doubles(each.x_gradient);
    for (std::size_t i = 72; i < 144; ++i) EXPECT_EQ(gradient[i], 0) << backend.name;
    const Results all = computed(Error::squared, x, y, {.mask = mask});
    EXPECT_NEAR(item(all.value), (values[0] + values[2]) / 2, 1e-12);
  }
}

// MSE of one pixel of weight 3 is not thrice its error.
TEST(PixelErrorMask, DividesByTheWeightOfASinglePixel) {
  const float x = 3, y = 1, weight = 3;
  const TensorView one(&weight, {1, 1}, DType::f32);
  EXPECT_EQ(item(mse({&x, {1, 1}, DType::f32}, {&y, {1, 1}, DType::f32}, {.mask = one})), 4);
  EXPECT_EQ(item(mae({&x, {1, 1}, DType::f32}, {&y, {1, 1}, DType::f32},
                {.reduction = Reduction::sum, .mask = one})),
      6);
}

TEST(PixelErrorMask, OfPsnrWeighsSquaredErrors) {
  const Extents shape = {2, 3, 12, 17};
  const Tensor x = test::noise(shape, DType::u8, Layout::dense, 1, 256);
  const Tensor y = test::noise(shape, DType::u8, Layout::channels_last, 2, 256);
  const test::Array mask = weights({12, 17}, DType::f32, Layout::dense);
  const PsnrOptions options{.reduction = Reduction::per_channel, .mask = mask};
  const Reference error = reference_pixel_error(
      Error::squared, x, y, {.reduction = Reduction::per_channel, .mask = mask});
  std::vector<double> expected;
  for (const double each : error.value) expected.push_back(10 * std::log10(255 * 255.0 / each));
  EXPECT_LT(test::relative_l2(to_doubles(psnr(x, y, options)), expected), 1e-6);
  const test::Array none = test::filled({12, 17}, DType::u8, Layout::dense, 0);
  EXPECT_TRUE(std::isnan(item(psnr(x, y, {.mask = none}))));
}

TEST(PixelErrorMask, OfPsnrOnAGpuIsTheCpus) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  const Tensor x = test::noise({2, 3, 12, 17}, DType::u8, Layout::dense, 1, 256);
  const Tensor y = test::noise({2, 3, 12, 17}, DType::u8, Layout::channels_last, 2, 256);
  const test::Array mask = weights({12, 17}, DType::u8, Layout::dense);
  const test::OnGpu on_x(x), on_y(y), on_mask(mask);
  const test::Array value = test::filled({2}, DType::f64, Layout::dense, 0);
  const test::OnGpu on_value(value);
  psnr_into(on_x.view(), on_y.view(), on_value.view(),
      {.reduction = Reduction::per_image, .mask = on_mask.view()}, {});
  on_value.bring_back();
  const Tensor expected = psnr(x, y, {.reduction = Reduction::per_image, .mask = mask});
  EXPECT_LT(test::relative_l2(to_doubles(value), to_doubles(expected)), 1e-6);
}

// Nobody looks at weights on a GPU before its kernels do.
TEST(PixelErrorMask, OfABadWeightIsNanOnAGpu) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  const test::ScopedBackend chosen({.name = "CUDA", .on_gpu = true});
  const Tensor x = test::noise({1, 1, 6, 7}, DType::f32, Layout::dense, 1, 1);
  const Tensor y = test::noise({1, 1, 6, 7}, DType::f32, Layout::dense, 2, 1);
  for (const double bad : {-0.5, kNan}) {
    const test::Array mask = test::make(
        {6, 7}, DType::f32, Layout::dense, [&](std::int64_t i) { return i == 17 ? bad : 1; });
    for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
      const Results found = computed(Error::squared, x, y, {.reduction = reduction, .mask = mask});
      EXPECT_TRUE(std::isnan(item(found.value)));
      EXPECT_TRUE(std::isnan(to_doubles(found.x_gradient)[17]));
    }
  }
}

TEST(PixelErrorMask, OfABadWeightIsRefused) {
  const Tensor x = test::noise({1, 1, 6, 7}, DType::f32, Layout::dense, 1, 1);
  for (const double bad : {-0.5, kNan}) {
    const test::Array mask = test::make(
        {6, 7}, DType::f32, Layout::dense, [&](std::int64_t i) { return i == 17 ? bad : 1; });
    const std::string words =
        fmt::format(": mask holds {}; each weight must be a finite number of 0 or more", bad);
    test::expect_refusal([&] { mse(x, x, {.mask = mask}); }, "mse" + words);
    test::expect_refusal([&] { mae(x, x, {.mask = mask}); }, "mae" + words);
    test::expect_refusal([&] { psnr(x, x, {.mask = mask}); }, "psnr" + words);
  }
}

TEST(PixelErrorMask, OfAnotherShapeIsRefused) {
  const Tensor x = test::noise({2, 3, 6, 7}, DType::f32, Layout::dense, 1, 1);
  const test::Array wide = test::filled({6, 8}, DType::f32, Layout::dense, 1);
  test::expect_refusal([&] { mse(x, x, {.mask = wide}); },
      "mse: mask has shape [6, 8]; it must be the images' [2, 3, 6, 7], with N and C left out or 1 "
      "where it is the same for all");
}

TEST(PixelErrorMask, HasTheSameBitsOnAllThreads) {
  const Tensor x = test::noise({1, 3, 401, 509}, DType::f32, Layout::dense, 1, 1);
  const Tensor y = test::noise({1, 3, 401, 509}, DType::f32, Layout::dense, 2, 1);
  const test::Array mask = weights({401, 509}, DType::f32, Layout::dense);
  const auto run = [&](const Execution& exec) {
    const Tensor value = allocate({}, DType::f64);
    mse_into(x, y, {.value = value}, {.mask = mask}, exec);
    return item(value);
  };
  const double once = run({.runner = serial_runner()});
  for (const int threads : {2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(run({.runner = pool.runner()}), once) << threads;
  }
}

}  // namespace
}  // namespace similis
