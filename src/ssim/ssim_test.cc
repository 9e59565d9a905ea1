// SPDX-License-Identifier: Apache-2.0
// SSIM on every backend against the reference: sizes, dtypes, layouts, paddings, windows, volumes
// and reductions, each with its gradients.
#include "similis/ssim.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "src/core/joined.h"
#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::computed;
using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;

struct Case {
  Extents shape;
  PerAxis<int> window = 11;
  Padding padding = Padding::valid;
  DType dtype = DType::f32;
  Layout x_layout = Layout::dense, y_layout = Layout::dense;
  PerAxis<double> sigma = 1.5;
  WindowShape shape_of_window = WindowShape::gaussian;
  bool sample_covariance = false;

  bool fits() const {
    const int rank = shape.rank();
    const auto fits_axis = [&](std::int64_t extent, int size) {
      if (padding == Padding::valid) return extent >= size;
      return padding != Padding::reflect || extent > size / 2;
    };
    return fits_axis(shape[rank - 1], window.x()) && fits_axis(shape[rank - 2], window.y()) &&
           (rank == 4 || fits_axis(shape[2], window.z()));
  }
};

std::string print(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}_{}_window_{}_{}_{}_sigma_{}_{}_{}_{}{}{}", joined(c.shape, "_"),
      ssim_internal::name(c.padding), c.window.z(), c.window.y(), c.window.x(),
      std::lround(10 * c.sigma.y()), name(c.dtype), test::name(c.x_layout), test::name(c.y_layout),
      c.shape_of_window == WindowShape::box ? "_box" : "", c.sample_covariance ? "_sample" : "");
}

// The tolerance of a result: values are f32, gradients have the images' dtype.
struct Tolerance {
  double value, gradient;
};
Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return {1e-12, 1e-11};
    case DType::f16: return {1e-5, 0x1p-11};
    case DType::bf16: return {1e-5, 0x1p-8};
    default: return {1e-5, 1e-5};
  }
}

void expect_near(const Reference& actual, const Reference& expected, const Tolerance& allowed) {
  EXPECT_EQ(actual.shape, expected.shape);
  EXPECT_LE(test::max_difference(actual.value, expected.value),
      allowed.value * std::max(1.0, test::largest(expected.value)));
  if (!actual.x_gradient.empty()) {
    EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), allowed.gradient);
  }
  if (!actual.y_gradient.empty()) {
    EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), allowed.gradient);
  }
}

class Ssim : public testing::TestWithParam<Case> {
 protected:
  Ssim() {
    const Case& c = GetParam();
    const double range = c.dtype == DType::u8 ? 255 : 1;
    images_ = ssim_internal::textured(c.shape, c.dtype, c.x_layout, c.y_layout, range);
    options_ = {.window_size = c.window,
        .window = c.shape_of_window,
        .sigma = c.sigma,
        .sample_covariance = c.sample_covariance,
        .padding = c.padding};
  }
  bool has_gradient() const { return is_floating_point(GetParam().dtype); }

  // An upstream gradient so large that the gradients of a mean are normal in f16.
  test::Array upstream() const {
    const bool is_mean =
        options_.reduction != Reduction::none && options_.reduction != Reduction::sum;
    return ssim_internal::upstream_for(
        GetParam().shape, options_, DType::f32, Layout::reversed, is_mean ? 1000 : 1);
  }

  Pair images_;
  SsimOptions options_;
};

TEST_P(Ssim, MatchesTheReference) {
  const auto& [x, y] = images_;
  const Tolerance allowed = tolerance(GetParam().dtype);
  const Layout layout =
      GetParam().x_layout == Layout::expanded ? Layout::permuted : GetParam().x_layout;
  for (const Reduction reduction : ssim_internal::kReductions) {
    options_.reduction = reduction;
    const bool is_loss = reduction == Reduction::sum || reduction == Reduction::per_image;
    const test::Array upstream_gradient = upstream();
    const SsimRequest request{
        .form = is_loss ? SsimRequest::Form::loss : SsimRequest::Form::similarity,
        .upstream = upstream_gradient};
    const Reference expected = reference_ssim(x, y, request, options_);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name + " " + ssim_internal::name(reduction));
      const test::ScopedBackend chosen(backend);
      Tolerance here = allowed;
      if (backend.on_gpu && reduction == Reduction::none && GetParam().dtype != DType::f64) {
        here.value = ssim_internal::kMapOnGpu;
      }
      // Flat: f32 averages of x² and of x cancel, where they are not zeros of the padding.
      const bool is_flat = x.shape.count() == x.shape[0] * x.shape[1];
      if (backend.on_gpu && is_flat && GetParam().dtype == DType::f32) here.gradient = 3e-4;
      const auto run = [&, &x = x, &y = y](bool by_x, bool by_y) {
        expect_near(computed(x, y, request, options_, by_x, by_y, layout), expected, here);
      };
      run(false, false);
      if (!has_gradient()) continue;
      run(true, true);
      run(true, false);
      run(false, true);
    }
  }
}

std::vector<Case> only_fitting(const std::vector<Case>& cases) {
  std::vector<Case> result;
  for (const Case& c : cases) {
    if (c.fits()) result.push_back(c);
  }
  return result;
}

// One window, one past a tile (128 rows of 256 columns), primes, axes of one pixel.
std::vector<Case> sizes() {
  std::vector<Case> cases;
  for (const Padding padding : ssim_internal::kPaddings) {
    cases.push_back({.shape = {1, 1, 11, 11}, .padding = padding});
    cases.push_back({.shape = {2, 3, 37, 53}, .padding = padding});
    cases.push_back({.shape = {1, 1, 129, 257}, .window = 5, .padding = padding});
    cases.push_back({.shape = {1, 2, 6, 6}, .padding = padding});
    cases.push_back({.shape = {1, 2, 1, 40}, .padding = padding});
    cases.push_back({.shape = {1, 2, 40, 1}, .padding = padding});
    cases.push_back({.shape = {1, 1, 1, 1}, .padding = padding});
    cases.push_back({.shape = {3, 2, 1, 40}, .window = {1, 11}, .padding = padding});
    cases.push_back({.shape = {1, 1, 12, 31}, .padding = padding});
  }
  return only_fitting(cases);
}
INSTANTIATE_TEST_SUITE_P(Sizes, Ssim, testing::ValuesIn(sizes()), print);

// Every dtype in every layout, alone and beside a dense y.
std::vector<Case> types_and_layouts() {
  std::vector<Case> cases;
  int turn = 0;
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Layout layout : test::kLayouts) {
      for (const Layout y_layout : {layout, Layout::dense}) {
        if (layout == Layout::dense && !cases.empty() && cases.back().dtype == dtype) continue;
        cases.push_back({.shape = {2, 3, 19, 23},
            .padding = ssim_internal::kPaddings[turn++ % 5],
            .dtype = dtype,
            .x_layout = layout,
            .y_layout = y_layout});
      }
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(TypesAndLayouts, Ssim, testing::ValuesIn(types_and_layouts()), print);

std::vector<Case> windows() {
  std::vector<Case> cases;
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const int size : {1, 3, 7, 21}) {
      cases.push_back({.shape = {1, 2, 29, 47}, .window = size, .padding = padding});
    }
    cases.push_back({.shape = {1, 2, 29, 47}, .window = {5, 9}, .padding = padding});
    cases.push_back(
        {.shape = {1, 2, 29, 47}, .window = {13, 1}, .padding = padding, .sigma = {3.0, 0.7}});
    cases.push_back({.shape = {1, 2, 29, 47}, .padding = padding, .sigma = 0.5});
    cases.push_back({.shape = {1, 2, 29, 47}, .padding = padding, .sigma = 20.0});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Windows, Ssim, testing::ValuesIn(windows()), print);

// Boxes and covariances of samples, as scikit-image has them by default: on a GPU each kind of
// kernel, by the size of the window, the rank and the dtype.
std::vector<Case> boxes() {
  std::vector<Case> cases;
  const auto add = [&](Case c) {
    c.shape_of_window = WindowShape::box;
    cases.push_back(c);
    c.sample_covariance = true;
    cases.push_back(c);
    c.shape_of_window = WindowShape::gaussian;
    cases.push_back(c);
  };
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const int size : {3, 7, 21}) {
      add({.shape = {1, 2, 29, 47}, .window = size, .padding = padding});
    }
    add({.shape = {1, 2, 40, 47}, .window = 37, .padding = padding});
    add({.shape = {1, 2, 29, 47}, .window = {1, 5}, .padding = padding, .dtype = DType::f64});
    add({.shape = {2, 1, 9, 10, 11}, .window = 7, .padding = padding});
    add({.shape = {1, 2, 5, 9, 12}, .window = {1, 3, 5}, .padding = padding, .dtype = DType::f16});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Boxes, Ssim, testing::ValuesIn(boxes()), print);

// One window, primes, one past a tile (64 planes of 32 rows of 64 columns), one axis of one pixel.
std::vector<Case> volumes() {
  std::vector<Case> cases;
  for (const Padding padding : ssim_internal::kPaddings) {
    cases.push_back({.shape = {1, 1, 11, 11, 11}, .padding = padding});
    cases.push_back({.shape = {2, 2, 7, 11, 13},
        .window = 5,
        .padding = padding,
        .x_layout = Layout::channels_last,
        .y_layout = Layout::permuted});
    cases.push_back({.shape = {1, 1, 65, 33, 9}, .window = 3, .padding = padding});
    cases.push_back({.shape = {1, 1, 5, 7, 65},
        .window = {1, 3, 5},
        .padding = padding,
        .sigma = {0.5, 1.0, 2.0}});
    cases.push_back({.shape = {1, 2, 9, 10, 11},
        .window = {7, 1, 3},
        .padding = padding,
        .dtype = DType::f64,
        .x_layout = Layout::reversed});
    cases.push_back({.shape = {1, 1, 1, 20, 20}, .window = 7, .padding = padding});
  }
  return only_fitting(cases);
}
INSTANTIATE_TEST_SUITE_P(Volumes, Ssim, testing::ValuesIn(volumes()), print);

TEST(SsimApi, FunctionsAreWhatSsimIntoComputes) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  const SsimOptions options{.padding = Padding::same, .reduction = Reduction::per_channel};
  const Tensor upstream = ssim_internal::upstream_for(x.shape, options);
  const Reference similarity = computed(x, y, {}, options);
  const Reference loss = computed(x, y, {.form = SsimRequest::Form::loss}, options);
  const Reference weighted = computed(x, y, {.upstream = upstream}, options);
  EXPECT_EQ(to_doubles(ssim(x, y, options)), similarity.value);
  EXPECT_EQ(to_doubles(ssim_loss(x, y, options)), loss.value);
  const ValueAndGradient both = ssim_value_and_gradient(x, y, GradientOf::both, options);
  EXPECT_EQ(to_doubles(both.value), similarity.value);
  EXPECT_EQ(to_doubles(both.x_gradient), similarity.x_gradient);
  EXPECT_EQ(to_doubles(both.y_gradient), similarity.y_gradient);
  const ValueAndGradient by_y = ssim_loss_value_and_gradient(x, y, GradientOf::y, options);
  EXPECT_EQ(to_doubles(by_y.value), loss.value);
  EXPECT_TRUE(by_y.x_gradient.empty());
  EXPECT_LT(test::relative_l2(to_doubles(by_y.y_gradient), loss.y_gradient), 1e-6);
  const ValueAndGradient backward = ssim_backward(x, y, upstream, GradientOf::both, options);
  EXPECT_TRUE(backward.value.empty());
  EXPECT_EQ(to_doubles(backward.x_gradient), weighted.x_gradient);
  EXPECT_EQ(to_doubles(backward.y_gradient), weighted.y_gradient);
}

TEST(SsimApi, NumbersOfFloatsMayBeDoubles) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array wide = test::filled({2, 3}, DType::f64, Layout::dense, test::kUntouched);
  const SsimOptions options{.reduction = Reduction::per_channel};
  ssim_into(x, y, {.value = wide}, options);
  const std::vector<double> numbers = to_doubles(wide), rounded = to_doubles(ssim(x, y, options));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(static_cast<double>(static_cast<float>(numbers[i])), rounded[i]);
    EXPECT_NE(numbers[i], rounded[i]);
  }
}

TEST(SsimApi, BackwardOfAMapNeedsNoMap) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Padding padding : {Padding::valid, Padding::same}) {
    const SsimOptions options{.padding = padding, .reduction = Reduction::none};
    const Tensor upstream = ssim_internal::upstream_for(x.shape, options);
    const Reference weighted = computed(x, y, {.upstream = upstream}, options);
    const ValueAndGradient backward = ssim_backward(x, y, upstream, GradientOf::both, options);
    EXPECT_TRUE(backward.value.empty());
    EXPECT_EQ(to_doubles(backward.x_gradient), weighted.x_gradient);
    EXPECT_EQ(to_doubles(backward.y_gradient), weighted.y_gradient);
  }
}

TEST(SsimApi, ResultsHaveTheirShapesAndTypes) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f16, Layout::dense, Layout::dense, 1);
  const auto [vx, vy] =
      ssim_internal::textured({2, 1, 12, 20, 30}, DType::f64, Layout::dense, Layout::dense, 1);
  EXPECT_EQ(ssim(x, y).shape, Extents{});
  EXPECT_EQ(ssim(x, y).dtype, DType::f32);
  EXPECT_EQ(ssim(vx, vy).dtype, DType::f64);
  EXPECT_EQ(ssim(x, y, {.reduction = Reduction::per_image}).shape, (Extents{2}));
  EXPECT_EQ(ssim(x, y, {.reduction = Reduction::per_channel}).shape, (Extents{2, 3}));
  EXPECT_EQ(ssim(x, y, {.reduction = Reduction::none}).shape, (Extents{2, 3, 10, 20}));
  EXPECT_EQ(ssim(vx, vy, {.reduction = Reduction::none}).shape, (Extents{2, 1, 2, 10, 20}));
  EXPECT_EQ(ssim(x, y, {.padding = Padding::same, .reduction = Reduction::none}).shape, x.shape);
  const ValueAndGradient result = ssim_value_and_gradient(x, y);
  EXPECT_EQ(result.x_gradient.dtype, DType::f16);
  EXPECT_EQ(result.x_gradient.shape, x.shape);
  EXPECT_EQ(result.x_gradient.strides, dense_strides(x.shape));
}

TEST(SsimApi, TheRangeIsThatOfTheType) {
  const auto [x, y] =
      ssim_internal::textured({1, 1, 20, 30}, DType::u8, Layout::dense, Layout::dense, 255);
  EXPECT_EQ(item(ssim(x, y)), item(ssim(x, y, {.data_range = 255})));
  EXPECT_NE(item(ssim(x, y)), item(ssim(x, y, {.data_range = 1})));
  const auto scaled = [](const test::Array& image, DType dtype) {
    const std::vector<double> pixels = to_doubles(image);
    return test::make(image.shape, dtype, Layout::dense,
        [&](std::int64_t i) { return pixels[static_cast<std::size_t>(i)] / 255; });
  };
  EXPECT_NEAR(item(ssim(scaled(x, DType::f32), scaled(y, DType::f32))), item(ssim(x, y)), 1e-6);
}

// One element may come with axes, which are not those of images and channels.
TEST(SsimApi, UpstreamOfAMeanMayHaveAxes) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array upstream =
      test::make({1, 1}, DType::f64, Layout::dense, [](std::int64_t) { return 0.7; });
  const test::Array scalar =
      test::make({}, DType::f64, Layout::dense, [](std::int64_t) { return 0.7; });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    const Reference with_axes = computed(x, y, {.upstream = upstream}, {});
    const Reference without = computed(x, y, {.upstream = scalar}, {});
    EXPECT_EQ(with_axes.x_gradient, without.x_gradient);
    EXPECT_EQ(with_axes.y_gradient, without.y_gradient);
  }
}

TEST(SsimApi, UpstreamMayHaveAnyFloatTypeAndStrides) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Reduction reduction : ssim_internal::kReductions) {
    const SsimOptions options{.padding = Padding::replicate, .reduction = reduction};
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout : test::kLayouts) {
        const Tensor upstream = ssim_internal::upstream_for(x.shape, options, dtype, layout);
        const SsimRequest request{.upstream = upstream};
        expect_near(computed(x, y, request, options), reference_ssim(x, y, request, options),
            tolerance(DType::f32));
      }
    }
  }
}

TEST(SsimApi, WeightsOfTheTermsApplyInEveryForm) {
  const auto [x, y] =
      ssim_internal::textured({2, 2, 17, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Padding padding : {Padding::valid, Padding::same}) {
      for (const Reduction reduction : ssim_internal::kReductions) {
        if (reduction == Reduction::none && padding == Padding::valid) continue;
        const SsimOptions options{.padding = padding, .reduction = reduction};
        const Tensor upstream = ssim_internal::upstream_for(x.shape, options);
        for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
          const SsimRequest request{
              .form = form, .l1_weight = 0.8, .ssim_weight = 0.3, .upstream = upstream};
          SCOPED_TRACE(backend.name + " " + ssim_internal::name(reduction));
          expect_near(computed(x, y, request, options), reference_ssim(x, y, request, options),
              tolerance(DType::f32));
        }
      }
    }
  }
}

TEST(L1Ssim, IsTheWeightedSumOfItsTerms) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  const std::vector<double> xs = to_doubles(x), ys = to_doubles(y);
  double mean = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    mean += std::abs(xs[i] - ys[i]) / static_cast<double>(xs.size());
  }
  const double loss = item(ssim_loss(x, y));
  EXPECT_NEAR(item(l1_ssim(x, y)), 0.8 * mean + 0.2 * loss, 1e-6);
  EXPECT_NEAR(item(l1_ssim(x, y, {.weight = 1})), loss, 1e-6);
  EXPECT_NEAR(item(l1_ssim(x, y, {.weight = 0})), mean, 1e-6);
  const SsimRequest request{.form = SsimRequest::Form::loss, .l1_weight = 0.8, .ssim_weight = 0.2};
  const Reference expected = reference_ssim(x, y, request);
  const ValueAndGradient result = l1_ssim_value_and_gradient(x, y, GradientOf::both);
  EXPECT_NEAR(item(result.value), expected.value[0], 1e-6);
  EXPECT_LT(test::relative_l2(to_doubles(result.x_gradient), expected.x_gradient), 1e-6);
  EXPECT_LT(test::relative_l2(to_doubles(result.y_gradient), expected.y_gradient), 1e-6);
}

TEST(SsimLarge, BatchesBeyond65535) {
  const auto [x, y] =
      ssim_internal::textured({65537, 1, 3, 3}, DType::f32, Layout::dense, Layout::dense, 1);
  const SsimOptions options{.window_size = 3, .reduction = Reduction::per_image};
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    expect_near(
        computed(x, y, {}, options), reference_ssim(x, y, {}, options), tolerance(DType::f32));
  }
}

// Rows so far apart that 32 bits do not reach them: 11 rows in 11 GiB, of which only they exist.
TEST(SsimLarge, StridesBeyond32Bits) {
  constexpr std::int64_t kRowStride = std::int64_t{1} << 28;
  constexpr std::size_t kBytes = 11 * kRowStride * sizeof(float);
  void* const memory = mmap(
      nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Extents shape = {1, 1, 11, 20};
  const auto [x, y] = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const TensorView far(memory, shape, {0, 0, kRowStride, 1}, DType::f32);
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    static_cast<float*>(memory)[test::offset_of(far, i)] = x.elements<float>()[i];
  }
  const Reference expected = computed(x, y, {}, {});
  EXPECT_EQ(computed(far, y, {}, {}).value, expected.value);
  EXPECT_EQ(computed(far, y, {}, {}).x_gradient, expected.x_gradient);
  ssim_into(x, y, {.x_gradient = far});
  EXPECT_EQ(to_doubles(far), computed(x, y, {}, {}, true, false).x_gradient);
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace similis
