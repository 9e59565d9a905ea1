// SPDX-License-Identifier: Apache-2.0
// MSE, MAE and PSNR against the reference: every dtype, layout and reduction on every SIMD target
// and, where there is one, the GPU.
#include "similis/pixel_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "similis/error.hpp"
#include "src/core/joined.h"
#include "src/core/pixel_pass.h"
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

Extents value_shape(const Extents& shape, Reduction reduction) {
  if (reduction == Reduction::per_channel) return {shape[0], shape[1]};
  return reduction == Reduction::per_image ? Extents{shape[0]} : Extents{};
}

// One unit in the last place of a type, relative to the number.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f64: return 0x1p-52;
    default: return 0x1p-23;
  }
}

struct Case {
  Extents shape;
  DType dtype;
  Layout layout;
};

std::string print(const testing::TestParamInfo<Case>& info) {
  const auto& [shape, dtype, layout] = info.param;
  return fmt::format("{}_{}_{}", name(dtype), joined(shape, "_"), test::name(layout));
}

class PixelError : public testing::TestWithParam<Case> {
 protected:
  double range() const {
    if (GetParam().dtype == DType::u8) return 256;
    return GetParam().dtype == DType::u16 ? 65536 : 1;
  }
  Tensor image(std::uint32_t seed, Layout layout) const {
    return test::noise(GetParam().shape, GetParam().dtype, layout, seed, range());
  }
};

TEST_P(PixelError, MatchesTheReference) {
  const auto& [shape, dtype, layout] = GetParam();
  const Tensor x = image(1, layout), y = image(2, Layout::dense);
  for (const Reduction reduction : kReductions) {
    for (const Error error : {Error::squared, Error::absolute}) {
      const Reference expected = reference_pixel_error(error, x, y, {.reduction = reduction});
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        const test::ScopedBackend chosen(backend);
        const Tensor value = allocate(value_shape(shape, reduction), DType::f64);
        into(error, x, y, {.value = value}, {.reduction = reduction});
        EXPECT_EQ(value.shape, expected.shape);
        EXPECT_LT(test::relative_l2(to_doubles(value), expected.value), 1e-14) << backend.name;
      }
    }
  }
}

TEST_P(PixelError, GradientsMatchTheReferenceAndStayInTheirElements) {
  const auto& [shape, dtype, layout] = GetParam();
  if (!is_floating_point(dtype)) return;
  const Tensor x = image(1, Layout::dense), y = image(2, layout);
  const Layout out = layout == Layout::expanded ? Layout::dense : layout;
  for (const Reduction reduction : kReductions) {
    const Tensor upstream = test::make(value_shape(shape, reduction), DType::f32, Layout::reversed,
        [](std::int64_t i) { return 64 * (test::uniform(3, i) - 0.5); });
    for (const Error error : {Error::squared, Error::absolute}) {
      const Reference expected =
          reference_pixel_error(error, x, y, {.reduction = reduction}, upstream);
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        const test::ScopedBackend chosen(backend);
        const test::Array x_gradient = test::filled(shape, dtype, out, test::kUntouched);
        const Tensor y_gradient = test::filled(shape, dtype, Layout::dense, test::kUntouched);
        into(error, x, y,
            {.upstream = upstream, .x_gradient = x_gradient, .y_gradient = y_gradient},
            {.reduction = reduction});
        EXPECT_LT(test::relative_l2(to_doubles(x_gradient), expected.x_gradient), epsilon(dtype))
            << backend.name;
        EXPECT_LT(test::relative_l2(to_doubles(y_gradient), expected.y_gradient), epsilon(dtype))
            << backend.name;
        EXPECT_TRUE(test::only_elements_written(x_gradient)) << backend.name;
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const DType dtype :
      {DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Layout layout : test::kLayouts) result.push_back({{2, 3, 37, 53}, dtype, layout});
    result.push_back({{1, 1}, dtype, Layout::dense});
    result.push_back({{3, 7}, dtype, Layout::permuted});
    result.push_back({{1, 2, 5, 1, 3, 1, 2, 1}, dtype, Layout::channels_last});
    result.push_back({{2, 1, 513, 131}, dtype, Layout::dense});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, PixelError, testing::ValuesIn(cases()), print);

// One pixel seen many times.
template <class T> TensorView repeated(const T& pixel, std::int64_t count, DType dtype) {
  return {&pixel, {1, 1, 1, count}, {0, 0, 0, 0}, dtype};
}

TEST(PixelErrorSums, OfIntegersAreExact) {
  // Every pixel differs by the most it can.
  constexpr std::int64_t kCount = (1 << 22) + 1;
  const std::uint8_t bytes[] = {0, 255};
  const std::uint16_t words[] = {0, 65535};
  const auto sum = [&](Error error, const auto(&levels)[2], DType dtype) {
    const Tensor value = allocate({}, DType::f64);
    into(error, repeated(levels[0], kCount, dtype), repeated(levels[1], kCount, dtype),
        {.value = value}, {.reduction = Reduction::sum});
    return item(value);
  };
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    EXPECT_EQ(sum(Error::squared, bytes, DType::u8), 65025.0 * kCount);
    EXPECT_EQ(sum(Error::absolute, bytes, DType::u8), 255.0 * kCount);
    EXPECT_EQ(sum(Error::absolute, words, DType::u16), 65535.0 * kCount);
    EXPECT_DOUBLE_EQ(sum(Error::squared, words, DType::u16), 4294836225.0 * kCount);
  }
}

TEST(PixelErrorSums, HaveTheSameBitsOnAllThreadsAndTargets) {
  const Extents shape = {1, 3, 401, 1009};
  const Tensor x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const Tensor y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
  const double expected = item(mse(x, y, {}, {.runner = serial_runner()}));
  for (const test::Backend& backend : test::backends()) {
    const test::ScopedBackend chosen(backend);
    for (const int threads : {1, 2, 7}) {
      ThreadPool pool(threads);
      const Tensor value = allocate({}, DType::f64);
      const Tensor once = allocate({}, DType::f64);
      mse_into(x, y, {.value = value}, {}, {.runner = pool.runner()});
      mse_into(x, y, {.value = once}, {}, {.runner = serial_runner()});
      EXPECT_EQ(item(value), item(once)) << backend.name << " " << threads;
      EXPECT_EQ(item(mse(x, y, {}, {.runner = pool.runner()})), expected);
    }
  }
}

TEST(PixelErrorSums, OfMillionsOfFloatsKeepTheirPrecision) {
  // In f32 the sum would stop growing at 2²⁴·0.01.
  constexpr std::int64_t kCount = 25'000'000;
  const float level = 0.1f, zero = 0;
  const double d = static_cast<double>(level);
  const TensorView x = repeated(level, kCount, DType::f32), y = repeated(zero, kCount, DType::f32);
  EXPECT_EQ(item(mse(x, y)), static_cast<double>(static_cast<float>(d * d)));
  EXPECT_NEAR(item(mae(x, y, {.reduction = Reduction::sum})) / (d * kCount), 1, 1e-7);
}

TEST(PixelErrorGradients, AreTheSlopesOfTheReference) {
  const Extents shape = {2, 2, 3};
  const test::Array x = test::noise(shape, DType::f64, Layout::dense, 1, 1);
  const test::Array y = test::noise(shape, DType::f64, Layout::dense, 2, 1);
  const double step = 1e-4;
  for (const Error error : {Error::squared, Error::absolute}) {
    const Reference analytic = reference_pixel_error(error, x, y);
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      double& pixel = x.elements<double>()[i];
      const double value = pixel;
      pixel = value + step;
      const double above = reference_pixel_error(error, x, y).value[0];
      pixel = value - step;
      const double below = reference_pixel_error(error, x, y).value[0];
      pixel = value;
      EXPECT_NEAR(
          analytic.x_gradient[static_cast<std::size_t>(i)], (above - below) / (2 * step), 1e-9);
    }
  }
}

TEST(PixelErrorGradients, ComeWithTheValue) {
  const Tensor x = test::noise({2, 3, 5, 7}, DType::f32, Layout::dense, 1, 1);
  const Tensor y = test::noise({2, 3, 5, 7}, DType::f32, Layout::dense, 2, 1);
  const ValueAndGradient both = mse_value_and_gradient(x, y, GradientOf::both);
  const ValueAndGradient only_y =
      mae_value_and_gradient(x, y, GradientOf::y, {.reduction = Reduction::per_image});
  EXPECT_EQ(item(both.value), item(mse(x, y)));
  EXPECT_EQ(both.x_gradient.shape, x.shape);
  EXPECT_EQ(both.y_gradient.shape, x.shape);
  EXPECT_TRUE(only_y.x_gradient.empty());
  EXPECT_EQ(only_y.value.shape, Extents{2});
  EXPECT_LT(test::relative_l2(to_doubles(only_y.y_gradient),
                reference_pixel_error(Error::absolute, x, y, {.reduction = Reduction::per_image})
                    .y_gradient),
      1e-6);
}

TEST(PixelErrorGradients, OfMaeAreZeroWherePixelsAreEqual) {
  const Tensor x = test::noise({1, 1, 4, 4}, DType::f32, Layout::dense, 1, 1);
  for (const double slope : to_doubles(mae_value_and_gradient(x, x).x_gradient)) {
    EXPECT_EQ(slope, 0);
  }
}

// Rounded as other numbers are, a NaN with these last bits would become 0 or -0.
TEST(PixelErrorGradients, OfHalvesAreNanWhateverTheBitsOfANanUpstream) {
  const Extents shape = {1, 1, 5, 37};  // whole vectors, and a rest
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const test::Array x = test::make(shape, dtype, Layout::dense, [](auto) { return 0.75; });
    const test::Array y = test::make(shape, dtype, Layout::dense, [](auto) { return 0.25; });
    for (const std::uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7fff8000u, 0x7fc00000u}) {
      const test::Array upstream = test::filled({}, DType::f32, Layout::dense, 0);
      *upstream.elements<float>() = bits_as<float>(bits);
      for (const test::Backend& backend : test::backends()) {
        const test::ScopedBackend chosen(backend);
        SCOPED_TRACE(fmt::format("{} {} {:x}", backend.name, name(dtype), bits));
        for (const Error error : {Error::squared, Error::absolute}) {
          const test::Array by_x = test::filled(shape, dtype, Layout::dense, test::kUntouched);
          const test::Array by_y = test::filled(shape, dtype, Layout::dense, test::kUntouched);
          into(error, x, y, {.upstream = upstream, .x_gradient = by_x, .y_gradient = by_y}, {});
          EXPECT_THAT(to_doubles(by_x), testing::Each(testing::IsNan()));
          EXPECT_THAT(to_doubles(by_y), testing::Each(testing::IsNan()));
        }
      }
    }
  }
}

TEST(Psnr, IsTheDefinition) {
  const Extents shape = {2, 1, 10, 10};
  const Tensor black = test::make(shape, DType::u8, Layout::dense, [](std::int64_t) { return 0; });
  const Tensor ones_then_twos =
      test::make(shape, DType::u8, Layout::dense, [](std::int64_t i) { return i < 100 ? 1 : 2; });
  const std::vector<double> each =
      to_doubles(psnr(black, ones_then_twos, {.reduction = Reduction::per_image}));
  EXPECT_NEAR(each.at(0), 20 * std::log10(255.0), 1e-5);
  EXPECT_NEAR(each.at(1), 20 * std::log10(255.0 / 2), 1e-5);
  EXPECT_NEAR(item(psnr(black, ones_then_twos)), 10 * std::log10(255.0 * 255 / 2.5), 1e-5);
  EXPECT_NEAR(item(psnr(black, ones_then_twos, {.data_range = 1})), -10 * std::log10(2.5), 1e-6);
}

TEST(Psnr, TakesTheRangeOfTheType) {
  const Extents shape = {1, 1, 3, 3};
  for (const auto& [dtype, range] : {std::pair{DType::u8, 255.0}, std::pair{DType::u16, 65535.0},
           std::pair{DType::f16, 1.0}, std::pair{DType::f32, 1.0}, std::pair{DType::f64, 1.0}}) {
    const Tensor x = test::make(shape, dtype, Layout::dense, [](std::int64_t) { return 0; });
    const Tensor y = test::make(shape, dtype, Layout::dense, [](std::int64_t) { return 1; });
    EXPECT_NEAR(item(psnr(x, y)), 20 * std::log10(range), 1e-5) << name(dtype);
    EXPECT_EQ(psnr(x, y).dtype, dtype == DType::f64 ? DType::f64 : DType::f32);
  }
}

TEST(Psnr, IsInfiniteForEqualImages) {
  const Tensor x = test::noise({1, 3, 8, 8}, DType::f32, Layout::dense, 1, 1);
  EXPECT_EQ(item(psnr(x, x)), std::numeric_limits<double>::infinity());
}

TEST(Psnr, OnTheGpuIsThatOfTheCpu) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  const Tensor x = test::noise({2, 3, 61, 47}, DType::u8, Layout::channels_last, 1, 256);
  const Tensor y = test::noise({2, 3, 61, 47}, DType::u8, Layout::dense, 2, 256);
  const PsnrOptions each{.reduction = Reduction::per_channel};
  const test::OnGpu gpu_x(x), gpu_y(y);
  const Tensor values = psnr(gpu_x.view(), gpu_y.view(), each);
  const Tensor equal = psnr(gpu_x.view(), gpu_x.view());
  std::vector<float> found(6);
  float infinite = 0;
  gpu::copy_to_cpu(found.data(), values.data(), sizeof(float) * 6, values.device, nullptr);
  gpu::copy_to_cpu(&infinite, equal.data(), sizeof infinite, equal.device, nullptr);
  EXPECT_THAT(found, testing::Pointwise(testing::FloatEq(), to_doubles(psnr(x, y, each))));
  EXPECT_EQ(infinite, std::numeric_limits<float>::infinity());
}

TEST(PixelErrorRefuses, ImagesThatAreNotAlike) {
  const Tensor x = test::noise({1, 2, 3, 4}, DType::f32, Layout::dense, 1, 1);
  const Tensor wider = test::noise({1, 2, 3, 5}, DType::f32, Layout::dense, 1, 1);
  const Tensor bytes = test::noise({1, 2, 3, 4}, DType::u8, Layout::dense, 1, 256);
  const Tensor flat = test::noise({4}, DType::f32, Layout::dense, 1, 1);
  const Tensor none = allocate({1, 0, 4}, DType::f32);
  test::expect_refusal(
      [&] { mse(x, wider); }, "mse: y has shape [1, 2, 3, 5]; it must be that of x, [1, 2, 3, 4]");
  test::expect_refusal([&] { mae(x, bytes); }, "mae: y is uint8; it must be float32 as x is");
  test::expect_refusal(
      [&] { psnr(flat, flat); }, "psnr: x has shape [4]; it must have 2 to 8 axes, [N, C, ...]");
  test::expect_refusal(
      [&] { mse(none, none); }, "mse: x has shape [1, 0, 4]; every extent must be at least 1");
  TensorView elsewhere = x;
  elsewhere.device = {DeviceKind::cuda, 1};
  test::expect_refusal(
      [&] { mse(x, elsewhere); }, "mse: y is on cuda:1; it must be on cpu as x is");
  elsewhere = x;
  elsewhere.handle = nullptr;
  test::expect_refusal([&] { mse(x, elsewhere); }, "mse: y has no data");
}

TEST(PixelErrorRefuses, OptionsWithoutAMeaning) {
  const Tensor x = test::noise({1, 2, 3, 4}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal([&] { mse(x, x, {.reduction = Reduction::none}); },
      "mse: reduction is none; it must be mean, sum, per_image or per_channel");
  test::expect_refusal([&] { psnr(x, x, {.reduction = Reduction::sum}); },
      "psnr: reduction is sum; it must be mean, per_image or per_channel");
  test::expect_refusal([&] { psnr(x, x, {.reduction = Reduction::none}); },
      "psnr: reduction is none; it must be mean, per_image or per_channel");
  test::expect_refusal(
      [&] { psnr(x, x, {.data_range = 0}); }, "psnr: data_range is 0; it must be a number above 0");
  test::expect_refusal([&] { psnr(x, x, {.data_range = std::nan("")}); },
      "psnr: data_range is nan; it must be a number above 0");
}

TEST(PixelErrorRefuses, ResultsThatDoNotFit) {
  const Tensor x = test::noise({2, 1, 3, 4}, DType::f32, Layout::dense, 1, 1);
  const Tensor bytes = test::noise({2, 1, 3, 4}, DType::u8, Layout::dense, 1, 256);
  const Tensor half = allocate({}, DType::f16), two = allocate({2}, DType::f32);
  const Tensor twice = test::filled({2}, DType::f32, Layout::sliced, 0);
  const Tensor shared = test::filled(x.shape, DType::f32, Layout::expanded, 0);
  const Tensor wide = allocate(x.shape, DType::f64);
  test::expect_refusal([&] { mse_into(x, x, {.value = two}); },
      "mse: value has shape [2]; it must be that of the result, []");
  test::expect_refusal([&] { mse_into(x, x, {.value = half}); },
      "mse: value is float16; it must be float32 or float64");
  test::expect_refusal(
      [&] { mse_into(x, x, {.value = twice}, {.reduction = Reduction::per_image}); },
      "mse: value has strides [2]; it must be dense, [1]");
  test::expect_refusal([&] { mae_into(x, x, {.upstream = two}, {.reduction = Reduction::sum}); },
      "mae: upstream has shape [2]; it must be that of the result, []");
  test::expect_refusal([&] { mse_into(x, x, {.x_gradient = two}); },
      "mse: x_gradient has shape [2]; it must be that of x, [2, 1, 3, 4]");
  test::expect_refusal([&] { mse_into(x, x, {.y_gradient = wide}); },
      "mse: y_gradient is float64; it must be float32 as x is");
  test::expect_refusal([&] { mse_into(x, x, {.y_gradient = shared}); },
      "mse: y_gradient has strides [0, 0, 4, 1] for shape [2, 1, 3, 4]; each element must have a "
      "place of its own");
  test::expect_refusal([&] { mse_value_and_gradient(bytes, bytes); },
      "mse: a gradient is asked for, and the images are uint8; gradients need float16, bfloat16, "
      "float32 or float64");
  test::expect_refusal(
      [&] { psnr_into(x, x, {}); }, "psnr: value is empty; it must have the result's shape, []");
}

TEST(PixelPass, NamesTheFunctionThatErrorsOfTheDeviceSpeakOf) {
  const Tensor x = allocate({1, 1, 2, 2}, DType::f32, {});
  for (const char* operation : {"mse", "mae", "psnr"}) {
    EXPECT_STREQ(pixel_pass(operation, x, x, Reduction::mean).operation, operation);
  }
}

}  // namespace
}  // namespace similis
