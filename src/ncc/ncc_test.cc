// SPDX-License-Identifier: Apache-2.0
// NCC against its definition in two passes, on every backend, and its refusals.
#include "similis/ncc.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "src/core/require.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;

std::vector<double> computed(const TensorView& x, const TensorView& y, Reduction reduction) {
  if (!test::runs_on_gpu()) return to_doubles(ncc(x, y, reduction));
  const test::OnGpu gpu_x(x), gpu_y(y);
  const Tensor value = ncc(gpu_x.view(), gpu_y.view(), reduction);
  std::vector<double> result(static_cast<std::size_t>(value.shape.count()));
  gpu::copy_to_cpu(
      result.data(), value.data(), result.size() * sizeof(double), value.device, nullptr);
  return result;
}

// NCC of `count` pixels from `first` on.
double expected(const std::vector<double>& x, const std::vector<double>& y, std::size_t first,
    std::size_t count) {
  long double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    mean_x += x[i] / static_cast<double>(count);
    mean_y += y[i] / static_cast<double>(count);
  }
  for (std::size_t i = first; i < first + count; ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return static_cast<double>(xy / std::sqrt(xx * yy));
}

TEST(Ncc, IsPearsonsCorrelationOfEachChannel) {
  for (const Extents& shape : {Extents{2, 3, 37, 29}, Extents{2, 3, 5, 60, 11}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout :
          {Layout::dense, Layout::channels_last, Layout::reversed, Layout::offset}) {
        const double range = dtype == DType::u8 ? 255 : 1, offset = dtype == DType::f32 ? 1e4 : 0;
        const test::Array x = test::make(shape, dtype, layout,
            [&](std::int64_t i) { return offset + range * test::uniform(1, i); });
        const test::Array y = test::make(shape, dtype, Layout::dense, [&](std::int64_t i) {
          return offset + range * (0.6 * test::uniform(1, i) + 0.4 * test::uniform(2, i));
        });
        const std::vector<double> all_x = to_doubles(x), all_y = to_doubles(y);
        const std::size_t each = all_x.size() / 6;
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          SCOPED_TRACE(fmt::format("{} {} {}", backend.name, name(dtype), test::name(layout)));
          const test::ScopedBackend chosen(backend);
          const std::vector<double> channels = computed(x, y, Reduction::per_channel);
          double sum = 0;
          for (std::size_t i = 0; i < 6; ++i) {
            EXPECT_NEAR(channels.at(i), expected(all_x, all_y, i * each, each), 1e-9);
            sum += channels[i];
          }
          EXPECT_NEAR(computed(x, y, Reduction::sum).at(0), sum, 1e-12);
          EXPECT_NEAR(computed(x, y, Reduction::mean).at(0), sum / 6, 1e-12);
          EXPECT_NEAR(computed(x, y, Reduction::per_image).at(1),
              (channels[3] + channels[4] + channels[5]) / 3, 1e-12);
        }
      }
    }
  }
}

TEST(Ncc, EqualTurnedOverAndFlat) {
  const Extents shape = {1, 1, 9, 20, 30};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const std::vector<double> pixels = to_doubles(x);
  const test::Array turned = test::make(shape, DType::f32, Layout::dense,
      [&](std::int64_t i) { return 7 - 2 * pixels[static_cast<std::size_t>(i)]; });
  const test::Array flat = test::filled(shape, DType::f32, Layout::dense, 0.3);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    EXPECT_DOUBLE_EQ(computed(x, x, Reduction::mean)[0], 1);
    EXPECT_NEAR(computed(x, turned, Reduction::mean)[0], -1, 1e-9);
    EXPECT_EQ(computed(x, flat, Reduction::mean)[0], 0);
    EXPECT_EQ(computed(flat, flat, Reduction::mean)[0], 0);
  }
}

TEST(Ncc, OfWhatIsNotFiniteItIsNaN) {
  const Extents shape = {1, 2, 9, 20, 30};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const test::Array flat = test::filled(shape, DType::f32, Layout::dense, 0.3);
  const std::vector<double> pixels = to_doubles(x);
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const test::Array broken = test::make(shape, DType::f32, Layout::dense,
        [&](std::int64_t i) { return i == 77 ? bad : pixels[static_cast<std::size_t>(i)]; });
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name);
      const test::ScopedBackend chosen(backend);
      const std::vector<double> channels = computed(x, broken, Reduction::per_channel);
      EXPECT_TRUE(std::isnan(channels[0]));
      EXPECT_DOUBLE_EQ(channels[1], 1);
      EXPECT_TRUE(std::isnan(computed(broken, flat, Reduction::per_channel)[0]));
    }
  }
}

// The results of one call; x_gradient and y_gradient have other strides than the images.
struct Results {
  Results(const Extents& shape, const Extents& value_shape, DType dtype)
      : value(test::filled(value_shape, DType::f64, Layout::dense, test::kUntouched)),
        x_gradient(test::filled(shape, dtype, Layout::channels_last, test::kUntouched)),
        y_gradient(test::filled(shape, dtype, Layout::reversed, test::kUntouched)) {}
  test::Array value, x_gradient, y_gradient;
};

void run(const TensorView& x, const TensorView& y, const TensorView& upstream, double weight,
    Reduction reduction, const Results& results) {
  if (!test::runs_on_gpu()) {
    return ncc_into(x, y,
        {.weight = weight,
            .upstream = upstream,
            .value = results.value,
            .x_gradient = results.x_gradient,
            .y_gradient = results.y_gradient},
        reduction);
  }
  const test::OnGpu gpu_x(x), gpu_y(y), gpu_upstream(upstream), value(results.value),
      by_x(results.x_gradient), by_y(results.y_gradient);
  ncc_into(gpu_x.view(), gpu_y.view(),
      {.weight = weight,
          .upstream = gpu_upstream.view(),
          .value = value.view(),
          .x_gradient = by_x.view(),
          .y_gradient = by_y.view()},
      reduction);
  for (const test::OnGpu* each : {&value, &by_x, &by_y}) each->bring_back();
}

// ∂/∂x of the definition: (y - mean of y) / norm - NCC·(x - mean of x) / Σ (x - mean of x)².
std::vector<double> expected_gradient(const std::vector<double>& x, const std::vector<double>& y,
    std::size_t plane, const std::vector<double>& scales, std::size_t planes_each) {
  std::vector<double> result(x.size());
  for (std::size_t first = 0; first < x.size(); first += plane) {
    long double mean_x = 0, mean_y = 0, xx = 0, yy = 0;
    for (std::size_t i = first; i < first + plane; ++i) {
      mean_x += x[i] / static_cast<long double>(plane);
      mean_y += y[i] / static_cast<long double>(plane);
    }
    for (std::size_t i = first; i < first + plane; ++i) {
      xx += (x[i] - mean_x) * (x[i] - mean_x);
      yy += (y[i] - mean_y) * (y[i] - mean_y);
    }
    const double value = expected(x, y, first, plane);
    for (std::size_t i = first; i < first + plane; ++i) {
      const long double slope = (y[i] - mean_y) / std::sqrt(xx * yy) - value * (x[i] - mean_x) / xx;
      result[i] = static_cast<double>(slope) * scales.at(first / plane / planes_each);
    }
  }
  return result;
}

double relative_l2(const std::vector<double>& actual, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

TEST(Ncc, GradientsAreThoseOfTheDefinition) {
  for (const Extents& shape : {Extents{2, 3, 37, 29}, Extents{2, 3, 5, 60, 11}}) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      const double offset = dtype == DType::f64 ? 1e4 : 0;
      const double allowed = dtype == DType::bf16 ? 5e-3 : dtype == DType::f16 ? 6e-4 : 1e-6;
      const test::Array x = test::make(shape, dtype, Layout::permuted,
          [&](std::int64_t i) { return offset + 40 * test::uniform(1, i); });
      const test::Array y = test::make(shape, dtype, Layout::sliced,
          [&](std::int64_t i) { return 24 * test::uniform(1, i) + 16 * test::uniform(2, i); });
      const std::vector<double> all_x = to_doubles(x), all_y = to_doubles(y);
      const std::size_t plane = all_x.size() / 6;
      const test::Array upstream = test::make({2}, DType::f32, Layout::dense,
          [](std::int64_t i) { return static_cast<double>(i == 0 ? 96 : -320); });
      const std::vector<double> scales = {-2.0 * 96 / 3, -2.0 * -320 / 3};
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        SCOPED_TRACE(fmt::format("{} {}", backend.name, name(dtype)));
        const test::ScopedBackend chosen(backend);
        const Results results(shape, {2}, dtype);
        run(x, y, upstream, -2, Reduction::per_image, results);
        EXPECT_NEAR(to_doubles(results.value).at(1),
            -2 * computed(x, y, Reduction::per_image).at(1), 1e-15);
        EXPECT_LT(relative_l2(to_doubles(results.x_gradient),
                      expected_gradient(all_x, all_y, plane, scales, 3)),
            allowed);
        EXPECT_LT(relative_l2(to_doubles(results.y_gradient),
                      expected_gradient(all_y, all_x, plane, scales, 3)),
            allowed);
      }
    }
  }
}

TEST(Ncc, AFlatImageHasNoGradient) {
  const Extents shape = {1, 1, 9, 20};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const test::Array flat = test::filled(shape, DType::f32, Layout::dense, 0.3);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Results results(shape, {}, DType::f32);
    run(x, flat, {}, 1, Reduction::mean, results);
    EXPECT_EQ(to_doubles(results.x_gradient), std::vector<double>(180, 0.0)) << backend.name;
    EXPECT_EQ(to_doubles(results.y_gradient), std::vector<double>(180, 0.0)) << backend.name;
  }
}

TEST(Ncc, ValueAndGradientIsThatPass) {
  const Extents shape = {2, 2, 9, 20};
  const test::Array x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
  const test::Array y = test::noise(shape, DType::f32, Layout::dense, 2, 1);
  const Results results(shape, {2, 2}, DType::f32);
  ncc_into(x, y,
      {.value = results.value, .x_gradient = results.x_gradient, .y_gradient = results.y_gradient},
      Reduction::per_channel);
  const ValueAndGradient both =
      ncc_value_and_gradient(x, y, GradientOf::both, Reduction::per_channel);
  EXPECT_EQ(to_doubles(both.value), to_doubles(results.value));
  EXPECT_EQ(to_doubles(both.x_gradient), to_doubles(results.x_gradient));
  EXPECT_EQ(to_doubles(both.y_gradient), to_doubles(results.y_gradient));
  EXPECT_TRUE(ncc_value_and_gradient(x, y, GradientOf::y).x_gradient.empty());
}

TEST(Ncc, RefusesWhatItCannotTake) {
  const test::Array x = test::noise({1, 1, 9, 20}, DType::f32, Layout::dense, 1, 1);
  const test::Array wider = test::noise({1, 1, 9, 21}, DType::f32, Layout::dense, 1, 1);
  test::expect_refusal([&] { ncc(x, wider); },
      "ncc: y has shape [1, 1, 9, 21]; it must be that of x, [1, 1, 9, 20]");
  test::expect_refusal([&] { ncc(x, x, Reduction::none); },
      "ncc: reduction is none; it must be mean, sum, per_image or per_channel");
  test::expect_refusal([&] { ncc_into(x, x, {.x_gradient = wider}); },
      "ncc: x_gradient has shape [1, 1, 9, 21]; it must be that of x, [1, 1, 9, 20]");
}

}  // namespace
}  // namespace similis
