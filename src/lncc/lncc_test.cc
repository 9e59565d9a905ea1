// SPDX-License-Identifier: Apache-2.0
// LNCC on every backend against the reference: sizes, dtypes, layouts, paddings, windows, volumes,
// masks and reductions, each with its gradients.
#include "similis/lncc.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/joined.h"
#include "src/lncc/test_cases.h"

namespace similis {
namespace {

using lncc_internal::computed;
using lncc_internal::Pair;
using lncc_internal::Reference;
using lncc_internal::reference_lncc;
using lncc_internal::Tolerance;
using test::Layout;

struct Case {
  Extents shape;
  LnccOptions options = {};
  DType dtype = DType::f32;
  Layout x_layout = Layout::dense, y_layout = Layout::dense;
  double range = 1;

  bool fits() const {
    if (options.padding != Padding::valid) return true;
    const int rank = shape.rank();
    const PerAxis<int>& window = options.window_size;
    return shape[rank - 1] >= window.x() && shape[rank - 2] >= window.y() &&
           (rank == 4 || shape[2] >= window.z());
  }
};

std::string print(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  const PerAxis<int>& window = c.options.window_size;
  return fmt::format("{}_{}_{}_window_{}_{}_{}_{}{}{}_{}_{}_{}_of_{}", info.index,
      joined(c.shape, "_"), lncc_internal::name(c.options.padding), window.z(), window.y(),
      window.x(), c.options.window == WindowShape::box ? "box" : "gaussian",
      c.options.is_signed ? "_signed" : "", c.options.gradient == LnccGradient::ants ? "_ants" : "",
      name(c.dtype), test::name(c.x_layout), test::name(c.y_layout), std::lround(c.range));
}

// Also false for NaN.
bool are_zeros(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double each) { return each == 0; });
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

class Lncc : public testing::TestWithParam<Case> {
 protected:
  Lncc() : options_(GetParam().options) {
    const Case& c = GetParam();
    images_ = lncc_internal::textured(c.shape, c.dtype, c.x_layout, c.y_layout, c.range);
  }
  // An upstream gradient so large that the gradients of a mean are normal in f16.
  test::Array upstream() const {
    const bool is_mean =
        options_.reduction != Reduction::none && options_.reduction != Reduction::sum;
    return lncc_internal::upstream_for(
        GetParam().shape, options_, DType::f32, Layout::reversed, is_mean ? 100 : 1);
  }

  Pair images_;
  LnccOptions options_;
};

TEST_P(Lncc, MatchesTheReference) {
  const auto& [x, y] = images_;
  const Layout layout =
      GetParam().x_layout == Layout::expanded ? Layout::permuted : GetParam().x_layout;
  for (const Reduction reduction : lncc_internal::kReductions) {
    options_.reduction = reduction;
    const bool is_loss = reduction == Reduction::sum || reduction == Reduction::per_image;
    const test::Array upstream_gradient = upstream();
    const LnccRequest request{.weight = is_loss ? -1.0 : 1.0, .upstream = upstream_gradient};
    const Reference expected = reference_lncc(x, y, request, options_);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name + " " + lncc_internal::name(reduction));
      const test::ScopedBackend chosen(backend);
      const Tolerance allowed = lncc_internal::tolerance(GetParam().dtype);
      const auto run = [&, &x = x, &y = y](bool by_x, bool by_y) {
        expect_near(computed(x, y, request, options_, by_x, by_y, layout), expected, allowed);
      };
      run(false, false);
      if (!is_floating_point(GetParam().dtype)) continue;
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

LnccOptions box(PerAxis<int> size, Padding padding) {
  return {.window_size = size, .padding = padding};
}
LnccOptions gaussian(PerAxis<int> size, PerAxis<double> sigma, Padding padding) {
  return {.window_size = size, .window = WindowShape::gaussian, .sigma = sigma, .padding = padding};
}
LnccOptions is_signed(LnccOptions options) {
  options.is_signed = true;
  return options;
}
LnccOptions ants(LnccOptions options) {
  options.gradient = LnccGradient::ants;
  return options;
}

// One window, primes, axes of one pixel, windows larger than the image.
std::vector<Case> pictures() {
  std::vector<Case> cases;
  for (const Padding padding : lncc_internal::kPaddings) {
    cases.push_back({.shape = {1, 1, 3, 3}, .options = box(3, padding)});
    cases.push_back({.shape = {2, 3, 37, 53}, .options = box(7, padding)});
    cases.push_back({.shape = {1, 2, 5, 4}, .options = box(9, padding)});
    cases.push_back({.shape = {1, 2, 1, 40}, .options = box(5, padding)});
    cases.push_back({.shape = {3, 2, 1, 40}, .options = box({1, 5}, padding)});
    cases.push_back({.shape = {1, 2, 40, 1}, .options = box({5, 1}, padding)});
    cases.push_back({.shape = {1, 1, 29, 47}, .options = box(21, padding)});
    cases.push_back({.shape = {1, 2, 29, 31}, .options = is_signed(box({5, 9}, padding))});
    cases.push_back({.shape = {1, 2, 29, 31}, .options = ants(box({3, 7}, padding))});
    cases.push_back({.shape = {1, 1, 29, 31}, .options = gaussian(7, 1.5, padding)});
    cases.push_back({.shape = {1, 1, 29, 31},
        .options = is_signed(gaussian({9, 5}, {2.0, 1.0}, padding)),
        .range = 4095});
    cases.push_back({.shape = {1, 1, 29, 31}, .options = ants(gaussian(5, 1.5, padding))});
  }
  return only_fitting(cases);
}
INSTANTIATE_TEST_SUITE_P(Pictures, Lncc, testing::ValuesIn(pictures()), print);

// Every dtype in every layout, alone and beside a dense y.
std::vector<Case> types_and_layouts() {
  std::vector<Case> cases;
  int turn = 0;
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Layout layout : test::kLayouts) {
      cases.push_back({.shape = {2, 3, 19, 23},
          .options = box(5, lncc_internal::kPaddings[turn % 3]),
          .dtype = dtype,
          .x_layout = layout,
          .y_layout = turn % 2 == 0 ? layout : Layout::dense,
          .range = dtype == DType::u8 ? 255.0 : 1.0});
      ++turn;
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(TypesAndLayouts, Lncc, testing::ValuesIn(types_and_layouts()), print);

// One window, primes, one past a tile of the CPU's (64 planes of 32 rows of 64 columns) and of the
// GPU's, one axis of one pixel.
std::vector<Case> volumes() {
  std::vector<Case> cases;
  for (const Padding padding : lncc_internal::kPaddings) {
    cases.push_back({.shape = {1, 1, 7, 7, 7}, .options = box(7, padding)});
    cases.push_back({.shape = {2, 2, 7, 11, 13},
        .options = box(5, padding),
        .x_layout = Layout::channels_last,
        .y_layout = Layout::permuted});
    cases.push_back({.shape = {1, 1, 65, 9, 33}, .options = box(3, padding), .range = 4095});
    cases.push_back({.shape = {1, 1, 5, 35, 67}, .options = is_signed(box({1, 3, 5}, padding))});
    cases.push_back({.shape = {1, 1, 13, 12, 14}, .options = box(11, padding)});
    cases.push_back({.shape = {1, 2, 9, 10, 11},
        .options = box({7, 1, 3}, padding),
        .dtype = DType::f64,
        .x_layout = Layout::reversed});
    cases.push_back({.shape = {1, 1, 1, 20, 20}, .options = box(7, padding)});
    cases.push_back({.shape = {1, 3, 8, 9, 17}, .options = gaussian(5, 1.5, padding)});
    cases.push_back({.shape = {1, 3, 8, 9, 17}, .options = ants(box({3, 5, 7}, padding))});
  }
  return only_fitting(cases);
}
INSTANTIATE_TEST_SUITE_P(Volumes, Lncc, testing::ValuesIn(volumes()), print);

class LnccMasks : public testing::Test {
 protected:
  // Half the pixels in blocks; the others hold NaN.
  LnccMasks() {
    valid_ = test::make(kShape, DType::u8, Layout::dense,
        [](std::int64_t i) { return (i / 5 + i / 70) % 2 == 0 ? 1.0 : 0.0; });
    const auto hidden = [&](const test::Array& image) {
      const std::vector<double> valid = to_doubles(valid_), pixels = to_doubles(image);
      return test::make(kShape, DType::f32, Layout::dense, [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return valid[at] > 0 ? pixels[at] : std::numeric_limits<double>::quiet_NaN();
      });
    };
    const Pair pair = lncc_internal::textured(kShape, DType::f32, Layout::dense, Layout::dense, 1);
    images_ = {hidden(pair.x), hidden(pair.y)};
    weights_ = test::noise({1, 1, 9, 10, 17}, DType::f32, Layout::sliced, 5, 1);
  }

  static constexpr Extents kShape = {1, 2, 9, 10, 17};
  test::Array valid_, weights_;
  Pair images_;
};

TEST_F(LnccMasks, MatchTheReferenceAndHideNaN) {
  for (const Padding padding : lncc_internal::kPaddings) {
    for (const Reduction reduction : lncc_internal::kReductions) {
      for (const bool has_weights : {false, true}) {
        LnccOptions options{.window_size = {3, 5, 3}, .padding = padding, .reduction = reduction};
        options.valid_mask = valid_;
        if (has_weights) options.mask = weights_;
        options.gradient =
            has_weights && padding == Padding::same ? LnccGradient::ants : options.gradient;
        const test::Array upstream = lncc_internal::upstream_for(kShape, options);
        const LnccRequest request{.upstream = upstream};
        const Reference expected = reference_lncc(images_.x, images_.y, request, options);
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          SCOPED_TRACE(backend.name + " " + lncc_internal::name(padding) + " " +
                       lncc_internal::name(reduction));
          const test::ScopedBackend chosen(backend);
          expect_near(computed(images_.x, images_.y, request, options), expected,
              lncc_internal::tolerance(DType::f32));
        }
      }
    }
  }
}

TEST_F(LnccMasks, WeightsAloneMatchTheReference) {
  const Pair pair = lncc_internal::textured(kShape, DType::f32, Layout::dense, Layout::dense, 1);
  for (const Reduction reduction : lncc_internal::kReductions) {
    LnccOptions options{.window_size = 3, .reduction = reduction};
    options.mask = weights_;
    const Reference expected = reference_lncc(pair.x, pair.y, {}, options);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name + " " + lncc_internal::name(reduction));
      const test::ScopedBackend chosen(backend);
      expect_near(
          computed(pair.x, pair.y, {}, options), expected, lncc_internal::tolerance(DType::f32));
    }
  }
}

TEST_F(LnccMasks, AMeanOverNothingIsNaNAndALoss0) {
  const test::Array nothing = test::filled({9, 10, 17}, DType::u8, Layout::dense, 0);
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    for (const bool is_valid_mask : {false, true}) {
      const Pair pair = is_valid_mask ? images_
                                      : lncc_internal::textured(
                                            kShape, DType::f32, Layout::dense, Layout::dense, 1);
      LnccOptions options;
      (is_valid_mask ? options.valid_mask : options.mask) = nothing;
      const Reference measure = computed(pair.x, pair.y, {}, options);
      const Reference loss = computed(pair.x, pair.y, {.weight = -1}, options);
      EXPECT_TRUE(std::isnan(measure.value[0])) << measure.value[0];
      EXPECT_EQ(loss.value[0], 0);
      for (const Reference* actual : {&measure, &loss}) {
        EXPECT_TRUE(are_zeros(actual->x_gradient));
        EXPECT_TRUE(are_zeros(actual->y_gradient));
      }
      options.reduction = Reduction::sum;
      EXPECT_EQ(computed(pair.x, pair.y, {}, options).value[0], 0);
    }
  }
}

TEST(LnccApi, FunctionsAreWhatLnccIntoComputes) {
  const auto [x, y] =
      lncc_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  const LnccOptions options{.window_size = 5, .reduction = Reduction::per_channel};
  const Tensor upstream = lncc_internal::upstream_for(x.shape, options);
  const Reference measure = computed(x, y, {}, options);
  const Reference loss = computed(x, y, {.weight = -1}, options);
  const Reference weighted = computed(x, y, {.upstream = upstream}, options);
  EXPECT_EQ(to_doubles(lncc(x, y, options)), measure.value);
  EXPECT_EQ(to_doubles(lncc_loss(x, y, options)), loss.value);
  EXPECT_EQ(loss.value[0], -measure.value[0]);
  const ValueAndGradient both = lncc_value_and_gradient(x, y, GradientOf::both, options);
  EXPECT_EQ(to_doubles(both.value), measure.value);
  EXPECT_EQ(to_doubles(both.x_gradient), measure.x_gradient);
  EXPECT_EQ(to_doubles(both.y_gradient), measure.y_gradient);
  const ValueAndGradient by_y = lncc_loss_value_and_gradient(x, y, GradientOf::y, options);
  EXPECT_EQ(to_doubles(by_y.value), loss.value);
  EXPECT_TRUE(by_y.x_gradient.empty());
  EXPECT_LT(test::relative_l2(to_doubles(by_y.y_gradient), loss.y_gradient), 1e-6);
  const ValueAndGradient backward = lncc_backward(x, y, upstream, GradientOf::both, options);
  EXPECT_TRUE(backward.value.empty());
  EXPECT_EQ(to_doubles(backward.x_gradient), weighted.x_gradient);
  EXPECT_EQ(to_doubles(backward.y_gradient), weighted.y_gradient);
}

TEST(LnccApi, NumbersOfFloatsMayBeDoubles) {
  const auto [x, y] =
      lncc_internal::textured({2, 3, 20, 30}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array wide = test::filled({2, 3}, DType::f64, Layout::dense, test::kUntouched);
  const LnccOptions options{.reduction = Reduction::per_channel};
  lncc_into(x, y, {.value = wide}, options);
  const std::vector<double> numbers = to_doubles(wide), rounded = to_doubles(lncc(x, y, options));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(static_cast<double>(static_cast<float>(numbers[i])), rounded[i]);
    EXPECT_NE(numbers[i], rounded[i]);
  }
}

}  // namespace
}  // namespace similis
