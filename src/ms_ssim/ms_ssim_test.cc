// SPDX-License-Identifier: Apache-2.0
// MS-SSIM on every backend against the reference, its properties, and its refusals.
#include "similis/ms_ssim.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "src/core/joined.h"
#include "src/ms_ssim/reference.h"
#include "src/ssim/test_cases.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using ms_ssim_internal::reference_ms_ssim;
using ssim_internal::Pair;
using ssim_internal::Reference;
using test::Layout;

constexpr Downsample kRules[] = {
    Downsample::vainf, Downsample::ceil, Downsample::floor, Downsample::piq};
constexpr Reduction kReductions[] = {
    Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel};

std::string name(Downsample rule) {
  static const char* const names[] = {"vainf", "ceil", "floor", "piq"};
  return names[static_cast<std::size_t>(rule)];
}

Tensor upstream_for(const Extents& shape, Reduction reduction, double scale = 1) {
  return window_test::upstream_for(
      shape, MsSsimOptions{.reduction = reduction}, DType::f32, Layout::dense, scale);
}

// The results of ms_ssim_into(), with both gradients or, for images of bytes, none.
Reference computed(const TensorView& x, const TensorView& y, const MsSsimRequest& request,
    const MsSsimOptions& options, Layout layout = Layout::dense, const Execution& exec = {}) {
  const bool has_gradients = is_floating_point(x.dtype);
  return window_test::computed_by<Reference>(
      ms_ssim_into, x, y, request, options, {has_gradients, has_gradients, layout}, exec);
}

struct Case {
  Extents shape;
  Downsample rule = Downsample::vainf;
  MsSsimOptions options = {};
  DType dtype = DType::f32;
  Layout layout = Layout::dense;
};

std::string print(const testing::TestParamInfo<Case>& info) {
  const auto& [shape, rule, options, dtype, layout] = info.param;
  return fmt::format("{}_{}_{}_window_{}_{}_{}_{}_levels_{}_{}_{}", info.index, joined(shape, "_"),
      name(rule), options.window_size.z(), options.window_size.y(), options.window_size.x(),
      ssim_internal::name(options.padding), options.weights.size(), name(dtype),
      test::name(layout));
}

class MsSsim : public testing::TestWithParam<Case> {};

TEST_P(MsSsim, MatchesTheReference) {
  const auto& [shape, rule, base, dtype, layout] = GetParam();
  MsSsimOptions options = base;
  options.downsample = rule;
  const double range = dtype == DType::u8 ? 255 : 1;
  const auto [x, y] = ssim_internal::textured(shape, dtype, layout, Layout::dense, range);
  const auto of_gradient_on = [of = dtype](bool on_gpu) {
    return of == DType::f64    ? 1e-11
           : of == DType::f16  ? 0x1p-11
           : of == DType::bf16 ? 0x1p-8
           : on_gpu            ? 2e-5  // levels are f32 there
                               : 1e-5;
  };
  for (const Reduction reduction : kReductions) {
    options.reduction = reduction;
    const Tensor upstream = upstream_for(shape, reduction, dtype == DType::f16 ? 1000 : 1);
    const bool is_loss = reduction == Reduction::sum || reduction == Reduction::per_image;
    const MsSsimRequest request{
        .form = is_loss ? SsimRequest::Form::loss : SsimRequest::Form::similarity,
        .upstream = upstream};
    const Reference expected = reference_ms_ssim(x, y, request, options);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name + " " + ssim_internal::name(reduction));
      const test::ScopedBackend chosen(backend);
      const double of_gradient = of_gradient_on(backend.on_gpu);
      const Layout out = layout == Layout::expanded ? Layout::dense : layout;
      const Reference actual = computed(x, y, request, options, out);
      EXPECT_EQ(actual.shape, expected.shape);
      EXPECT_LE(
          test::relative_l2(actual.value, expected.value), dtype == DType::f64 ? 1e-12 : 1e-5);
      if (actual.x_gradient.empty()) continue;
      EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), of_gradient);
      EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), of_gradient);
      const Reference by_y = window_test::computed_by<Reference>(
          ms_ssim_into, x, y, request, options, {false, true, out}, {});
      EXPECT_LE(test::relative_l2(by_y.y_gradient, expected.y_gradient), of_gradient);
      EXPECT_TRUE(by_y.x_gradient.empty());
    }
  }
}

// Odd and even sides under each rule; one window at the coarsest level.
std::vector<Case> cases() {
  std::vector<Case> result;
  const MsSsimOptions small{.window_size = 3, .sigma = 0.8, .weights = {0.2, 0.3, 0.5}};
  const auto with = [&](auto change) {
    MsSsimOptions options = small;
    change(options);
    return options;
  };
  for (const Downsample rule : kRules) {
    for (const Extents& shape : {Extents{1, 1, 32, 32}, Extents{2, 3, 37, 53},
             Extents{1, 2, 38, 53}, Extents{2, 1, 35, 54}}) {
      result.push_back({shape, rule, small});
    }
    result.push_back({{1, 1, 177, 180}, rule});
    for (const Padding padding : ssim_internal::kPaddings) {
      result.push_back(
          {{1, 2, 45, 31}, rule, with([&](MsSsimOptions& options) { options.padding = padding; })});
    }
    result.push_back({{1, 2, 21, 22, 27}, rule, small});
    for (const Extents& of_whole_vectors : {Extents{1, 2, 22, 24, 40}, Extents{2, 3, 37, 56}})
      result.push_back({of_whole_vectors, rule, small});
    result.push_back({{1, 1, 6, 33, 23}, rule, with([](MsSsimOptions& options) {
                        options.window_size = {1, 3, 5};
                        options.sigma = {1.0, 0.5, 2.0};
                      })});
    result.push_back({{1, 1, 41, 43}, rule, with([](MsSsimOptions& options) {
                        options.weights = {0.3, 0, 0.7};
                      })});
    result.push_back({{1, 1, 41, 43}, rule, with([](MsSsimOptions& options) {
                        options.weights = {1.5, 2, 0};
                      })});
    result.push_back(
        {{1, 1, 41, 43}, rule, with([](MsSsimOptions& options) { options.weights = {0.5}; })});
    if (rule == Downsample::floor) continue;  // leaves nothing of one pixel
    result.push_back({{2, 3, 19, 1}, rule, with([](MsSsimOptions& options) {
                        options.padding = Padding::same;
                        options.weights = {0.1, 0.1, 0.2, 0.1, 0.1, 0.2};
                      })});
  }
  result.push_back({{1, 1, 161, 161}, Downsample::vainf});
  // Sides that stay even, which a GPU halves on the way, under each width of its strips.
  result.push_back({{2, 2, 192, 256}, Downsample::vainf});
  result.push_back({{1, 1, 176, 528}, Downsample::ceil});
  result.push_back({{1, 1, 176, 192}, Downsample::piq, {.padding = Padding::same}});
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16}) {
    result.push_back({{1, 2, 176, 208}, Downsample::vainf, {}, dtype});
  }
  int turn = 0;
  // Sides of which the rim of a GPU's windows leaves a middle.
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      result.push_back(
          {{1, 2, 61, 77}, kRules[turn++ % 4], {.padding = padding, .weights = {0.4, 0.6}}, dtype});
    }
  }
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Layout layout : test::kLayouts) {
      result.push_back({{2, 3, 29, 34}, kRules[turn++ % 4], small, dtype, layout});
    }
  }
  return result;
}
INSTANTIATE_TEST_SUITE_P(Cases, MsSsim, testing::ValuesIn(cases()), print);

TEST(MsSsimApi, FunctionsAreWhatMsSsimIntoComputes) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 40, 50}, DType::f32, Layout::dense, Layout::dense, 1);
  const MsSsimOptions options{
      .window_size = 5, .reduction = Reduction::per_image, .weights = {0.4, 0.6}};
  const Tensor upstream = upstream_for(x.shape, options.reduction);
  const Reference similarity = computed(x, y, {}, options);
  const Reference loss = computed(x, y, {.form = SsimRequest::Form::loss}, options);
  const Reference weighted = computed(x, y, {.upstream = upstream}, options);
  EXPECT_EQ(to_doubles(ms_ssim(x, y, options)), similarity.value);
  EXPECT_EQ(to_doubles(ms_ssim_loss(x, y, options)), loss.value);
  const ValueAndGradient both = ms_ssim_value_and_gradient(x, y, GradientOf::both, options);
  EXPECT_EQ(to_doubles(both.value), similarity.value);
  EXPECT_EQ(to_doubles(both.x_gradient), similarity.x_gradient);
  EXPECT_EQ(to_doubles(both.y_gradient), similarity.y_gradient);
  const ValueAndGradient by_x = ms_ssim_loss_value_and_gradient(x, y, GradientOf::x, options);
  EXPECT_EQ(to_doubles(by_x.value), loss.value);
  EXPECT_LT(test::relative_l2(to_doubles(by_x.x_gradient), loss.x_gradient), 1e-6);
  EXPECT_TRUE(by_x.y_gradient.empty());
  const ValueAndGradient backward = ms_ssim_backward(x, y, upstream, GradientOf::y, options);
  EXPECT_TRUE(backward.value.empty());
  EXPECT_TRUE(backward.x_gradient.empty());
  EXPECT_LT(test::relative_l2(to_doubles(backward.y_gradient), weighted.y_gradient), 1e-6);
}

TEST(MsSsimApi, OfOneLevelIsSsim) {
  const auto [x, y] =
      ssim_internal::textured({1, 3, 40, 50}, DType::f64, Layout::dense, Layout::dense, 1);
  EXPECT_NEAR(item(ms_ssim(x, y, {.weights = {1}})), item(ssim(x, y)), 1e-14);
}

TEST(MsSsimProperty, EqualImagesAreExactlyAlike) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
    for (const Downsample rule : kRules) {
      const auto [x, other] =
          ssim_internal::textured({2, 3, 179, 190}, dtype, Layout::dense, Layout::dense, 1);
      const MsSsimOptions options{.downsample = rule};
      const Reference value = computed(x, x, {}, options);
      EXPECT_EQ(value.value, std::vector<double>{1});
      EXPECT_EQ(test::largest(value.x_gradient), 0);
      EXPECT_EQ(test::largest(value.y_gradient), 0);
      EXPECT_EQ(item(ms_ssim_loss(x, x, options)), 0);
    }
  }
}

TEST(MsSsimProperty, ImagesMayChangePlaces) {
  const auto [x, y] =
      ssim_internal::textured({2, 3, 171, 190}, DType::f32, Layout::dense, Layout::dense, 1);
  EXPECT_EQ(item(ms_ssim(x, y)), item(ms_ssim(y, x)));
}

// Inverted images have negative means at every level: pytorch-msssim without relu makes NaN of
// them.
TEST(MsSsimProperty, InvertedImagesAreZeroAndMakeNoNan) {
  const Extents shape = {1, 2, 179, 180};
  const auto pixel = [](std::int64_t i) { return test::uniform(1, i); };
  const Tensor x = test::make(shape, DType::f32, Layout::dense, pixel);
  const Tensor y =
      test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) { return 1 - pixel(i); });
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Downsample rule : kRules) {
      const Reference value = computed(x, y, {}, {.downsample = rule});
      EXPECT_EQ(value.value, std::vector<double>{0});
      for (const double slope : value.x_gradient) ASSERT_EQ(slope, 0);
      for (const double slope : value.y_gradient) ASSERT_EQ(slope, 0);
      EXPECT_EQ(item(ms_ssim_loss(x, y, {.downsample = rule})), 1);
    }
  }
}

// Only the second channel is inverted: the first keeps its value and gradient.
TEST(MsSsimProperty, OneZeroChannelLeavesTheOthersAlone) {
  const auto pixel = [](std::int64_t i) { return test::uniform(1, i); };
  const Extents shape = {1, 2, 40, 48};
  const auto [x, y] = Pair{test::make(shape, DType::f32, Layout::dense, pixel),
      test::make(shape, DType::f32, Layout::dense,
          [&](std::int64_t i) { return i < 40 * 48 ? 0.8 * pixel(i) + 0.1 : 1 - pixel(i); })};
  const MsSsimOptions options{.window_size = 3, .weights = {0.5, 0.5}};
  const Reference expected = reference_ms_ssim(x, y, {}, options);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Reference actual = computed(x, y, {}, options);
    EXPECT_GT(actual.value[0], 0.1);
    EXPECT_NEAR(actual.value[0], expected.value[0], 1e-6);
    EXPECT_LT(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-5);
    for (std::size_t i = 40 * 48; i < 2 * 40 * 48; ++i) ASSERT_EQ(actual.x_gradient[i], 0);
  }
}

TEST(MsSsimConvergence, TheLossKeepsItsRelativePrecision) {
  const Extents shape = {1, 1, 180, 200};
  for (const double amount : {1e-2, 1e-3, 1e-4}) {
    const Tensor x = test::noise(shape, DType::f32, Layout::dense, 1, 1);
    const Tensor y = test::make(shape, DType::f32, Layout::dense,
        [&](std::int64_t i) { return test::uniform(1, i) + amount * test::uniform(2, i); });
    const Reference expected = reference_ms_ssim(x, y, {.form = SsimRequest::Form::loss});
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name);
      const test::ScopedBackend chosen(backend);
      const Reference actual = computed(x, y, {.form = SsimRequest::Form::loss}, {});
      EXPECT_NEAR(actual.value[0] / expected.value[0], 1, 1e-3) << amount;
      EXPECT_LT(test::relative_l2(actual.x_gradient, expected.x_gradient), 1e-5) << amount;
    }
  }
}

TEST(MsSsimProperty, HasTheSameBitsForAnyNumberOfThreads) {
  const auto [x, y] =
      ssim_internal::textured({2, 2, 190, 310}, DType::f32, Layout::dense, Layout::reversed, 1);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Reference expected = computed(x, y, {}, {}, Layout::dense, {.runner = serial_runner()});
    for (const int threads : {1, 2, 7, 7}) {
      SCOPED_TRACE(fmt::format("{} {} threads", backend.name, threads));
      ThreadPool pool(threads);
      const Reference actual = computed(x, y, {}, {}, Layout::dense, {.runner = pool.runner()});
      EXPECT_EQ(actual.value, expected.value);
      EXPECT_EQ(actual.x_gradient, expected.x_gradient);
      EXPECT_EQ(actual.y_gradient, expected.y_gradient);
    }
  }
}

// The reference's gradients are the slopes of its values.
TEST(MsSsimReference, GradientsAreSlopes) {
  const MsSsimOptions base{.window_size = 3, .sigma = 0.8, .weights = {0.3, 0.7}};
  for (const Downsample rule : kRules) {
    for (const Extents& shape :
        {Extents{1, 2, 7, 6}, Extents{2, 1, 6, 8}, Extents{1, 1, 7, 6, 6}}) {
      MsSsimOptions options = base;
      options.downsample = rule;
      const auto x = test::noise(shape, DType::f64, Layout::dense, 1, 1);
      const auto y = test::make(shape, DType::f64, Layout::dense,
          [](std::int64_t i) { return 0.8 * test::uniform(1, i) + 0.2 * test::uniform(2, i); });
      const Reference analytic = reference_ms_ssim(x, y, {}, options);
      ASSERT_GT(analytic.value[0], 0.1);
      std::vector<double> slopes;
      const double step = 1e-4;
      for (std::int64_t i = 0; i < shape.count(); ++i) {
        double& pixel = x.elements<double>()[i];
        const double value = pixel;
        const auto at = [&](double moved) {
          pixel = value + moved * step;
          return reference_ms_ssim(x, y, {}, options).value[0];
        };
        slopes.push_back((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step));
        pixel = value;
      }
      EXPECT_LT(test::relative_l2(analytic.x_gradient, slopes), 1e-7)
          << name(rule) << fmt::format("{}", shape);
    }
  }
}

// Each rule on a row of five pixels, by hand: the mean of cs is that of one window of 1 × 3 pixels.
TEST(MsSsimReference, RulesTakeThePixelsThatTheySay) {
  const double x[] = {0.9, 0.1, 0.5, 0.7, 0.2};
  const double y[] = {0.3, 0.8, 0.6, 0.2, 0.4};
  const auto halved = [](const double* p, Downsample rule) -> std::vector<double> {
    switch (rule) {
      case Downsample::vainf: return {(0 + p[0]) / 4, (p[1] + p[2]) / 4, (p[3] + p[4]) / 4};
      case Downsample::ceil: return {(p[0] + p[1]) / 2, (p[2] + p[3]) / 2, p[4]};
      case Downsample::floor: return {(p[0] + p[1]) / 2, (p[2] + p[3]) / 2};
      case Downsample::piq: break;
    }
    return {p[0], (p[1] + p[2]) / 2, (p[3] + p[4]) / 2};
  };
  for (const Downsample rule : kRules) {
    // The height of 1 is odd: vainf averages it with a row of zeros, floor would leave nothing.
    const bool has_no_height = rule == Downsample::floor;
    std::vector<double> tall_x, tall_y;
    for (int row = 0; row < (has_no_height ? 2 : 1); ++row) {
      tall_x.insert(tall_x.end(), x, x + 5);
      tall_y.insert(tall_y.end(), y, y + 5);
    }
    const Extents shape = {1, 1, has_no_height ? 2 : 1, 5};
    const MsSsimOptions options{
        .window_size = {1, 3}, .padding = Padding::same, .weights = {0, 1}, .downsample = rule};
    const std::vector<double> coarse_x = halved(x, rule), coarse_y = halved(y, rule);
    const auto length = static_cast<std::int64_t>(coarse_x.size());
    const TensorView expected_x(coarse_x.data(), {1, 1, 1, length}, DType::f64);
    const TensorView expected_y(coarse_y.data(), {1, 1, 1, length}, DType::f64);
    const double expected =
        item(ssim(expected_x, expected_y, {.window_size = {1, 3}, .padding = Padding::same}));
    const TensorView fine_x(tall_x.data(), shape, DType::f64);
    const TensorView fine_y(tall_y.data(), shape, DType::f64);
    EXPECT_NEAR(
        reference_ms_ssim(fine_x, fine_y, {}, options).value[0], std::max(0.0, expected), 1e-14)
        << name(rule);
    EXPECT_NEAR(item(ms_ssim(fine_x, fine_y, options)), std::max(0.0, expected), 1e-14)
        << name(rule);
  }
}

TEST(MsSsimRefuses, ImagesThatAreTooSmall) {
  const auto refuses = [](const Extents& shape, const MsSsimOptions& options,
                           const std::string& sentence) {
    const Tensor image = test::noise(shape, DType::f32, Layout::dense, 1, 1);
    test::expect_refusal([&] { ms_ssim(image, image, options); }, sentence);
  };
  refuses({1, 1, 160, 200}, {},
      "ms_ssim: height is 160; for 5 levels and a window of 11 it must be at least 161");
  refuses({1, 1, 200, 160}, {.downsample = Downsample::ceil},
      "ms_ssim: width is 160; for 5 levels and a window of 11 it must be at least 161");
  refuses({1, 1, 200, 175}, {.downsample = Downsample::floor},
      "ms_ssim: width is 175; for 5 levels and a window of 11 it must be at least 176");
  refuses({1, 1, 200, 13},
      {.window_size = {3, 7}, .weights = {0.5, 0.5}, .downsample = Downsample::floor},
      "ms_ssim: width is 13; for 2 levels and a window of 7 it must be at least 14");
  refuses({1, 1, 4, 9, 9}, {.window_size = 3, .weights = {0.5, 0.5}},
      "ms_ssim: depth is 4; for 2 levels and a window of 3 it must be at least 5");
  refuses({1, 1, 3, 9},
      {.padding = Padding::same, .weights = {0.5, 0.5, 0.5}, .downsample = Downsample::floor},
      "ms_ssim: height is 3; for 3 levels and a window of 11 it must be at least 4");
}

TEST(MsSsimRefuses, EverySizeThatItNamesIsEnough) {
  for (const Downsample rule : kRules) {
    for (const int window : {3, 5, 7}) {
      for (const std::int64_t extent : {5, 8, 11, 20, 21, 27, 40}) {
        const MsSsimOptions options{
            .window_size = window, .weights = {0.2, 0.3, 0.5}, .downsample = rule};
        const auto run = [&](std::int64_t height, std::int64_t width) {
          const Tensor image = test::noise({1, 1, height, width}, DType::f32, Layout::dense, 1, 1);
          return item(ms_ssim(image, image, options));
        };
        std::int64_t smallest = extent;
        try {
          run(extent, 64);
        } catch (const InvalidArgument& error) {
          const std::string sentence = error.what();
          smallest = std::stoll(sentence.substr(sentence.rfind(' ') + 1));
          ASSERT_GT(smallest, extent);
        }
        EXPECT_EQ(run(smallest, 64), 1) << name(rule) << " " << window << " " << extent;
        EXPECT_EQ(run(64, smallest), 1) << name(rule) << " " << window << " " << extent;
        EXPECT_EQ(run(smallest, smallest), 1) << name(rule) << " " << window << " " << extent;
        EXPECT_EQ(run(smallest, 63), 1) << name(rule) << " " << window << " " << extent;
      }
    }
  }
}

TEST(MsSsimRefuses, OptionsWithoutAMeaning) {
  const Tensor x = test::noise({1, 1, 40, 40}, DType::f32, Layout::dense, 1, 1);
  const Tensor bytes = test::noise({1, 1, 40, 40}, DType::u8, Layout::dense, 1, 256);
  const auto refuses = [&](const std::string& sentence, const MsSsimOptions& options) {
    test::expect_refusal([&] { ms_ssim(x, x, options); }, sentence);
  };
  refuses(
      "ms_ssim: weights has 0 numbers; it must have 1 to 16, one for each level", {.weights = {}});
  refuses("ms_ssim: weights has 17 numbers; it must have 1 to 16, one for each level",
      {.weights = std::vector<double>(17, 0.1)});
  refuses("ms_ssim: weights is -0.5; it must be a number of 0 or more", {.weights = {0.5, -0.5}});
  refuses("ms_ssim: weights is nan; it must be a number of 0 or more", {.weights = {std::nan("")}});
  refuses("ms_ssim: reduction is none; it must be mean, sum, per_image or per_channel",
      {.reduction = Reduction::none});
  refuses("ms_ssim: downsample is 7; it must be vainf, ceil, floor or piq",
      {.downsample = static_cast<Downsample>(7)});
  refuses("ms_ssim: padding is 7; it must be valid, same, reflect, replicate or renormalize",
      {.padding = static_cast<Padding>(7)});
  refuses(
      "ms_ssim: window_size is 4; it must be an odd number from 1 to 65535", {.window_size = 4});
  refuses("ms_ssim: data_range is 0; it must be a number above 0", {.data_range = 0});
  const MsSsimOptions fitting{.window_size = 3, .weights = {0.5, 0.5}};
  test::expect_refusal(
      [&] { ms_ssim(x, bytes, fitting); }, "ms_ssim: y is uint8; it must be float32 as x is");
  test::expect_refusal([&] { ms_ssim_value_and_gradient(bytes, bytes, GradientOf::x, fitting); },
      "ms_ssim: a gradient is asked for, and the images are uint8; gradients need float16, "
      "bfloat16, float32 or float64");
  const Tensor two = allocate({2}, DType::f32);
  test::expect_refusal([&] { ms_ssim_into(x, x, {.value = two}, fitting); },
      "ms_ssim: value has shape [2]; it must be that of the result, []");
  test::expect_refusal([&] { ms_ssim_into(x, x, {.upstream = two}, fitting); },
      "ms_ssim: upstream has shape [2]; it must be that of the result, []");
  test::expect_refusal([&] { ms_ssim_into(x, x, {.x_gradient = two}, fitting); },
      "ms_ssim: x_gradient has shape [2]; it must be that of x, [1, 1, 40, 40]");
}

}  // namespace
}  // namespace similis
