// SPDX-License-Identifier: Apache-2.0
// Smoothing against its definition in f64, its adjoint against the definition of one, and refusals.
#include "similis/smooth.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/require.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;

// Smooths dense values along one axis by sums over the definition's taps.
std::vector<double> along(const std::vector<double>& x, const Extents& shape, int axis,
    double sigma, const SmoothOptions& options) {
  const auto radius = static_cast<std::int64_t>(std::round(options.truncate * sigma));
  if (radius == 0) return x;
  double total = 0;
  for (std::int64_t k = -radius; k <= radius; ++k) {
    total += std::exp(-0.5 * static_cast<double>(k * k) / (sigma * sigma));
  }
  const std::int64_t stride = dense_strides(shape)[axis], extent = shape[axis];
  std::vector<double> result(x.size());
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t at = i / stride % extent;
    for (std::int64_t k = -radius; k <= radius; ++k) {
      const std::int64_t from = std::clamp<std::int64_t>(at + k, 0, extent - 1);
      if (options.padding == SmoothPadding::zeros && from != at + k) continue;
      result[static_cast<std::size_t>(i)] +=
          std::exp(-0.5 * static_cast<double>(k * k) / (sigma * sigma)) / total *
          x[static_cast<std::size_t>(i + (from - at) * stride)];
    }
  }
  return result;
}

std::vector<double> expected(const TensorView& x, const SmoothOptions& options) {
  std::vector<double> result = to_doubles(x);
  const int last = x.shape.rank() - (options.field ? 2 : 1), space = x.shape.rank() - 2;
  const double sigmas[3] = {options.sigma.x(), options.sigma.y(), options.sigma.z()};
  for (int axis = 0; axis < space; ++axis) {
    result = along(result, x.shape, last - axis, sigmas[axis], options);
  }
  return result;
}

// smooth() or its backward pass on the backend that the test has chosen.
std::vector<double> smoothed(
    const TensorView& x, const SmoothOptions& options, bool adjoint = false) {
  if (!test::runs_on_gpu()) {
    return to_doubles(adjoint ? smooth_backward(x, options) : smooth(x, options));
  }
  const test::Array result = test::filled(x.shape, x.dtype, Layout::dense, test::kUntouched);
  const test::OnGpu given(x), output(result);
  smooth_into(given.view(), {.output = output.view(), .adjoint = adjoint}, options);
  output.bring_back();
  return to_doubles(result);
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-14;
    case DType::f32: return 3e-7;
    case DType::f16: return 1e-3;
    default: return 1e-2;
  }
}

struct Case {
  Extents shape;
  SmoothOptions options;
};

std::vector<Case> cases() {
  constexpr SmoothPadding kZeros = SmoothPadding::zeros;
  return {{{1, 1, 1, 1}, {}}, {{2, 3, 5, 7}, {}}, {{1, 1, 33, 130}, {.sigma = 2.5}},
      {{2, 2, 9, 40}, {.sigma = {0, 3}, .padding = kZeros}},
      {{1, 2, 6, 17, 29}, {.sigma = {0.5, 3, 1}, .truncate = 2}},
      {{2, 1, 19, 5, 66}, {.sigma = 3, .padding = kZeros}},
      {{1, 1, 6, 250}, {.sigma = 4}},  // rows longer than a block
      {{1, 2, 3, 90, 3}, {.sigma = 2.5, .field = true}},
      {{1, 1, 4, 3, 2}, {.sigma = 6}},  // radii beyond the image
      {{1, 1, 4, 3, 2}, {.sigma = 6, .padding = kZeros}},
      {{1, 5, 1, 31, 3}, {.sigma = {1, 2, 1.5}, .field = true}},
      {{2, 9, 8, 45, 3}, {.sigma = 0.25, .field = true}},
      {{1, 9, 50, 45, 3}, {.sigma = 3, .field = true, .padding = kZeros}},
      {{2, 21, 70, 2}, {.sigma = {3, 1}, .field = true}},
      {{2, 21, 70, 2}, {.sigma = {0, 0}, .field = true}}};
}

TEST(Smooth, MatchesItsDefinition) {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout : test::kLayouts) {
        const test::Array x = test::make(
            c.shape, dtype, layout, [](std::int64_t i) { return test::uniform(3, i) - 0.3; });
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          const test::ScopedBackend chosen(backend);
          SCOPED_TRACE(
              fmt::format("{} {} {} {}", c.shape, name(dtype), test::name(layout), backend.name));
          EXPECT_LT(
              test::relative_l2(smoothed(x, c.options), expected(x, c.options)), tolerance(dtype));
        }
      }
    }
  }
}

// Σ y·smooth(x) = Σ smooth_backward(y)·x for every x and y is what an adjoint is.
TEST(Smooth, HasItsAdjointAsItsGradient) {
  for (const Case& c : cases()) {
    const test::Array x = test::noise(c.shape, DType::f64, Layout::dense, 1, 1),
                      y = test::noise(c.shape, DType::f64, Layout::sliced, 2, 1);
    const std::vector<double> own = to_doubles(x), other = to_doubles(y);
    const std::vector<double> forward = expected(x, c.options);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(fmt::format("{} {}", c.shape, backend.name));
      const std::vector<double> back = smoothed(y, c.options, true);
      double left = 0, right = 0;
      for (std::size_t i = 0; i < own.size(); ++i) {
        left += other[i] * forward[i];
        right += back[i] * own[i];
      }
      EXPECT_NEAR(left, right, 1e-12 * std::abs(left));
      // Zeros make smoothing its own adjoint.
      if (c.options.padding == SmoothPadding::zeros) {
        EXPECT_LT(test::relative_l2(back, smoothed(y, c.options)), 1e-14);
      }
    }
  }
}

// In f32, whose kernels on a GPU are others than those of f64.
TEST(Smooth, HasItsAdjointInF32) {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const test::Array y = test::noise(c.shape, dtype, Layout::permuted, 2, 1),
                        wide = test::noise(c.shape, DType::f64, Layout::dense, 2, 1);
      const std::vector<double> exact = to_doubles(smooth_backward(wide, c.options));
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        const test::ScopedBackend chosen(backend);
        SCOPED_TRACE(fmt::format("{} {}", c.shape, backend.name));
        EXPECT_LT(test::relative_l2(smoothed(y, c.options, true), exact), tolerance(dtype));
      }
    }
  }
}

// One element of the adjoint at a time: the sum above does not see two that are exchanged.
TEST(Smooth, TakesTheWholeMatrixTransposed) {
  const Extents shape = {1, 1, 3, 4, 7};
  const SmoothOptions options{.sigma = {2, 0.7, 1.5}};
  const std::int64_t count = shape.count();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto unit = [&](std::int64_t at) {
      return test::make(
          shape, DType::f64, Layout::dense, [at](std::int64_t j) { return j == at ? 1.0 : 0.0; });
    };
    const std::vector<double> row = to_doubles(smooth_backward(unit(i), options));
    for (std::int64_t j = 0; j < count; j += 5) {
      const double entry = expected(unit(j), options)[static_cast<std::size_t>(i)];
      EXPECT_NEAR(row[static_cast<std::size_t>(j)], entry, 1e-15);
    }
  }
}

// A GPU's kernels slide over long axes by stripes, and wide taps take a path of their own.
TEST(Smooth, LeavesNoSeamOnLongAxesAndTakesWideTaps) {
  const Case long_ones[] = {{{1, 1, 3, 150, 9}, {.sigma = {1, 2.5, 1}}},
      {{1, 140, 4, 35, 3}, {.sigma = {3, 1, 2}, .field = true, .padding = SmoothPadding::zeros}},
      {{1, 1, 90, 210}, {.sigma = {9, 14}}}, {{1, 1, 60, 70}, {.sigma = 11, .truncate = 2.9}}};
  for (const Case& c : long_ones) {
    const test::Array x = test::noise(c.shape, DType::f32, Layout::dense, 8, 1);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(fmt::format("{} {}", c.shape, backend.name));
      EXPECT_LT(test::relative_l2(smoothed(x, c.options), expected(x, c.options)), 3e-7);
    }
  }
}

TEST(Smooth, WritesOverItsInputOnAGpu) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << "there is no GPU";
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const test::Array own = test::noise(c.shape, dtype, Layout::dense, 5, 1);
      const std::vector<double> wanted = expected(own, c.options);
      const test::OnGpu given(own);
      smooth_into(given.view(), {.output = given.view()}, c.options);
      given.bring_back();
      EXPECT_LT(test::relative_l2(to_doubles(own), wanted), tolerance(dtype)) << c.shape.count();
    }
  }
}

TEST(Smooth, WritesOverItsInputAndIntoAnyDtype) {
  for (const Case& c : cases()) {
    const test::Array x = test::noise(c.shape, DType::f32, Layout::dense, 5, 1);
    const std::vector<double> separate = to_doubles(smooth(x, c.options));
    for (const Layout layout : {Layout::dense, Layout::permuted, Layout::reversed}) {
      for (const DType dtype : {DType::f16, DType::f64}) {
        const test::Array other = test::filled(c.shape, dtype, layout, test::kUntouched);
        smooth_into(x, {.output = other}, c.options);
        EXPECT_TRUE(test::only_elements_written(other));
        EXPECT_LT(test::relative_l2(to_doubles(other), separate), tolerance(DType::f16));
      }
      const test::Array own = test::noise(c.shape, DType::f32, layout, 5, 1);
      smooth_into(own, {.output = own}, c.options);
      EXPECT_EQ(to_doubles(own), separate);
    }
  }
}

TEST(Smooth, HasTheSameBitsForAnyNumberOfThreads) {
  const test::Array x = test::noise({1, 21, 30, 37, 3}, DType::f32, Layout::dense, 7, 1);
  const SmoothOptions options{.sigma = 2, .field = true};
  const std::vector<double> alone = to_doubles(smooth(x, options, {.runner = serial_runner()}));
  for (const int threads : {2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(to_doubles(smooth(x, options, {.runner = pool.runner()})), alone);
  }
}

TEST(Smooth, LetsANanReachOnlyTheVoxelsUnderItsTaps) {
  const test::Array x = test::make({1, 1, 11, 40}, DType::f32, Layout::dense,
      [](std::int64_t i) { return i == 5 * 40 + 20 ? std::nan("") : 1.0; });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const std::vector<double> own = smoothed(x, {});
    for (std::int64_t i = 0; i < 11 * 40; ++i) {
      const bool is_near = std::abs(i / 40 - 5) <= 3 && std::abs(i % 40 - 20) <= 3;
      EXPECT_EQ(std::isnan(own[static_cast<std::size_t>(i)]), is_near) << i << backend.name;
    }
  }
}

TEST(Smooth, RefusesWhatItDoesNotTake) {
  const auto image = [](const Extents& shape, DType dtype = DType::f32) {
    return test::filled(shape, dtype, Layout::dense, 0);
  };
  const auto refused = [](const TensorView& x, const SmoothOptions& options, const char* words) {
    test::expect_refusal([&] { smooth(x, options); }, words);
    test::expect_refusal([&] { smooth_backward(x, options); }, words);
  };
  const test::Array x = image({1, 1, 8, 9});
  refused({}, {}, "smooth: x has no data");
  refused(
      image({8, 9}), {}, "smooth: x has shape [8, 9]; it must be [N, C, Y, X] or [N, C, Z, Y, X]");
  refused(image({1, 8, 9, 3}), {.field = true},
      "smooth: x has shape [1, 8, 9, 3]; a field must be [N, Y, X, 2] or [N, Z, Y, X, 3]");
  refused(image({1, 1, 8, 9}, DType::u8), {},
      "smooth: x is uint8; it must be float16, bfloat16, float32 or float64");
  refused(x, {.sigma = {1, -1}}, "smooth: sigma is -1; it must be a number of 0 or more");
  refused(x, {.sigma = std::numeric_limits<double>::quiet_NaN()},
      "smooth: sigma is nan; it must be a number of 0 or more");
  refused(x, {.sigma = {1, 1, 1}},
      "smooth: sigma has 3 numbers; it takes one, or one for each of the 2 axes");
  refused(x, {.truncate = -1}, "smooth: truncate is -1; it must be a number of 0 or more");
  refused(x, {.sigma = 1e5},
      "smooth: sigma is 100000 and truncate 3, a radius of 300000 voxels; it must be at most "
      "65535");
  test::expect_refusal([&] { smooth_into(x, {}); }, "smooth: output has no data");
  test::expect_refusal(
      [&] {
        smooth_into(x, {.output = image({1, 1, 9, 8})});
      },
      "smooth: output has shape [1, 1, 9, 8]; it must be that of x, [1, 1, 8, 9]");
  test::expect_refusal(
      [&] {
        smooth_into(x, {.output = image({1, 1, 8, 9}, DType::u8)});
      },
      "smooth: output is uint8; it must be float16, bfloat16, float32 or float64");
}

}  // namespace
}  // namespace similis
