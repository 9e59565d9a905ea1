// SPDX-License-Identifier: Apache-2.0
// The reference itself: its gradients are the slopes of its values, whatever the options, and so
// are the kernels'.
#include <gtest/gtest.h>

#include <cmath>

#include "src/ssim/test_cases.h"

namespace similis {
namespace {

using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using ssim_internal::Term;
using test::Layout;

// Σ upstream·value, without the NaN of a map where there is no pixel.
double weighed(const Reference& result, const TensorView& upstream) {
  const std::vector<double> weights = to_doubles(upstream);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isnan(result.value[i])) sum += weights[i] * result.value[i];
  }
  return sum;
}

// Compares the gradient by x and y at each pixel with the difference that a small step makes.
template <class Compute>
void expect_slopes(const Pair& images, const TensorView& upstream, const Compute& compute) {
  const Reference analytic = compute();
  std::vector<double> x_slopes, y_slopes;
  const double step = 1e-4;
  for (const test::Array* image : {&images.x, &images.y}) {
    for (std::int64_t i = 0; i < image->shape.count(); ++i) {
      double& pixel = image->elements<double>()[i];
      const double value = pixel;
      // Five points: the error is of fourth order in the step.
      const auto at = [&](double moved) {
        pixel = value + moved * step;
        return weighed(compute(), upstream);
      };
      const double slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
      pixel = value;
      (image == &images.x ? x_slopes : y_slopes).push_back(slope);
    }
  }
  EXPECT_LT(test::relative_l2(analytic.x_gradient, x_slopes), 1e-7);
  EXPECT_LT(test::relative_l2(analytic.y_gradient, y_slopes), 1e-7);
}

// No two pixels are equal, so that |x - y| has a slope everywhere.
Pair rough(const Extents& shape) {
  return {test::noise(shape, DType::f64, Layout::dense, 1, 1),
      test::make(shape, DType::f64, Layout::dense,
          [](std::int64_t i) { return 0.5 * test::uniform(1, i) + 0.5 * test::uniform(2, i); })};
}

struct Case {
  Padding padding;
  Reduction reduction;
  Term term;
  SsimRequest::Form form;
};

class ReferenceSlopes : public testing::TestWithParam<Case> {};

void expect_slopes_of_reference(const Case& c, const Extents& shape, SsimOptions options) {
  options.padding = c.padding;
  options.reduction = c.reduction;
  const Pair images = rough(shape);
  const Tensor upstream = ssim_internal::upstream_for(shape, options, DType::f64);
  const bool has_l1 = c.reduction != Reduction::none || c.padding != Padding::valid;
  const SsimRequest request{
      .form = c.form, .l1_weight = has_l1 ? 0.1 : 0, .ssim_weight = 0.9, .upstream = upstream};
  expect_slopes(images, upstream,
      [&] { return reference_ssim(images.x, images.y, request, options, c.term); });
}

TEST_P(ReferenceSlopes, OfImages) {
  expect_slopes_of_reference(GetParam(), {2, 2, 5, 6}, {.window_size = {3, 5}});
}

TEST_P(ReferenceSlopes, UnderMasks) {
  const Extents shape = {1, 1, 6, 7};
  const auto weight = [](std::uint32_t seed) {
    return test::make({6, 7}, DType::f64, Layout::dense,
        [=](std::int64_t i) { return test::uniform(seed, i) < 0.3 ? 0 : test::uniform(seed, i); });
  };
  const test::Array mask = weight(5), valid_mask = weight(6);
  expect_slopes_of_reference(GetParam(), shape, {.window_size = 3, .mask = mask});
  expect_slopes_of_reference(GetParam(), shape, {.window_size = 3, .valid_mask = valid_mask});
  expect_slopes_of_reference(
      GetParam(), shape, {.window_size = 5, .mask = mask, .valid_mask = valid_mask});
}

TEST_P(ReferenceSlopes, OfVolumes) {
  expect_slopes_of_reference(GetParam(), {1, 1, 3, 4, 4}, {.window_size = 3, .sigma = 0.8});
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Padding padding : ssim_internal::kPaddings) {
    for (const Reduction reduction : ssim_internal::kReductions) {
      result.push_back({padding, reduction, Term::ssim, SsimRequest::Form::similarity});
    }
    result.push_back({padding, Reduction::mean, Term::ssim, SsimRequest::Form::loss});
    result.push_back(
        {padding, Reduction::per_channel, Term::contrast, SsimRequest::Form::similarity});
  }
  return result;
}

std::string print(const testing::TestParamInfo<Case>& info) {
  const std::string term = info.param.term == Term::contrast ? "_contrast" : "";
  const std::string form = info.param.form == SsimRequest::Form::loss ? "_loss" : "";
  return ssim_internal::name(info.param.padding) + "_" + ssim_internal::name(info.param.reduction) +
         term + form;
}
INSTANTIATE_TEST_SUITE_P(Cases, ReferenceSlopes, testing::ValuesIn(cases()), print);

TEST(KernelSlopes, AreThoseOfItsValues) {
  const Pair images = rough({1, 1, 9, 10});
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const Padding padding : ssim_internal::kPaddings) {
      const SsimOptions options{.window_size = 7, .padding = padding};
      const Tensor upstream = ssim_internal::upstream_for(images.x.shape, options, DType::f64);
      expect_slopes(images, upstream, [&] {
        return ssim_internal::computed(images.x, images.y, {.upstream = upstream}, options);
      });
    }
  }
}

// A 3 × 3 window over a 3 × 3 image, by hand.
TEST(SsimReference, IsThePapersFormula) {
  const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[] = {2, 1, 4, 3, 6, 5, 8, 7, 9};
  const double side = std::exp(-0.5 / (1.5 * 1.5)), sum = 1 + 2 * side;
  const double tap[] = {side / sum, 1 / sum, side / sum};
  double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const double weight = tap[i / 3] * tap[i % 3];
    mean_a += weight * a[i];
    mean_b += weight * b[i];
    aa += weight * a[i] * a[i];
    bb += weight * b[i] * b[i];
    ab += weight * a[i] * b[i];
  }
  const double c1 = 0.01 * 0.01 * 100, c2 = 0.03 * 0.03 * 100;
  const double expected = (2 * mean_a * mean_b + c1) * (2 * (ab - mean_a * mean_b) + c2) /
                          ((mean_a * mean_a + mean_b * mean_b + c1) *
                              (aa - mean_a * mean_a + bb - mean_b * mean_b + c2));
  const TensorView x(a, {1, 1, 3, 3}, DType::f64), y(b, {1, 1, 3, 3}, DType::f64);
  EXPECT_NEAR(
      reference_ssim(x, y, {}, {.data_range = 10, .window_size = 3}).value[0], expected, 1e-14);
}

}  // namespace
}  // namespace similis
