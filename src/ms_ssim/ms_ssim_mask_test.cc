// SPDX-License-Identifier: Apache-2.0
// MS-SSIM under masks: against the reference, and what a mask means by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "similis/ms_ssim.hpp"
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

constexpr Reduction kReductions[] = {
    Reduction::mean, Reduction::sum, Reduction::per_image, Reduction::per_channel};

Reference computed(const TensorView& x, const TensorView& y, const MsSsimRequest& request,
    const MsSsimOptions& options, const Execution& exec = {}) {
  const bool has_gradients = is_floating_point(x.dtype);
  return window_test::computed_by<Reference>(
      ms_ssim_into, x, y, request, options, {has_gradients, has_gradients, Layout::dense}, exec);
}

MsSsimOptions small() { return {.window_size = 3, .sigma = 0.8, .weights = {0.2, 0.3, 0.5}}; }

// 0 in a third of the pixels and in a whole block, else a weight.
test::Array weights(const Extents& shape, DType dtype = DType::f32, Layout layout = Layout::dense) {
  const std::int64_t width = shape[shape.rank() - 1];
  return test::make(shape, dtype, layout, [=](std::int64_t i) {
    const bool in_block = i % width < 17 && i / width % 38 < 12;
    const double amount = test::uniform(7, i);
    return in_block || amount < 0.33 ? 0 : dtype == DType::u8 ? 1 + i % 3 : amount;
  });
}

void expect_reference(const Pair& pair, const MsSsimOptions& base, double tolerance = 1e-5,
    double upstream_scale = 1) {
  for (const Reduction reduction : kReductions) {
    MsSsimOptions options = base;
    options.reduction = reduction;
    const Tensor upstream = window_test::upstream_for(pair.x.shape,
        MsSsimOptions{.reduction = reduction}, DType::f32, Layout::dense, upstream_scale);
    for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
      const MsSsimRequest request{.form = form, .upstream = upstream};
      const Reference expected = reference_ms_ssim(pair.x, pair.y, request, options);
      for (const test::Backend& backend : test::backends(test::Gpu::included)) {
        SCOPED_TRACE(backend.name + " " + ssim_internal::name(reduction));
        const test::ScopedBackend chosen(backend);
        const Reference actual = computed(pair.x, pair.y, request, options);
        EXPECT_EQ(actual.shape, expected.shape);
        EXPECT_LE(test::relative_l2(actual.value, expected.value), tolerance);
        if (actual.x_gradient.empty()) continue;
        EXPECT_LE(test::relative_l2(actual.x_gradient, expected.x_gradient), tolerance);
        EXPECT_LE(test::relative_l2(actual.y_gradient, expected.y_gradient), tolerance);
      }
    }
  }
}

TEST(MsSsimMask, MatchesTheReferenceUnderEachRuleAndPadding) {
  for (const Extents& shape : {Extents{2, 3, 37, 53}, Extents{1, 2, 38, 54}}) {
    const Pair pair =
        ssim_internal::textured(shape, DType::f32, Layout::channels_last, Layout::dense, 1);
    for (const Downsample rule :
        {Downsample::vainf, Downsample::ceil, Downsample::floor, Downsample::piq}) {
      for (const Padding padding : ssim_internal::kPaddings) {
        MsSsimOptions options = small();
        options.downsample = rule;
        options.padding = padding;
        const test::Array mask = weights({shape[0], 1, shape[2], shape[3]});
        options.mask = mask;
        SCOPED_TRACE(
            fmt::format("{} {} {}", shape, static_cast<int>(rule), ssim_internal::name(padding)));
        expect_reference(pair, options);
      }
    }
  }
}

TEST(MsSsimMask, MatchesTheReferenceInAnyShapeAndType) {
  const Extents shape = {2, 3, 37, 53};
  const Pair pair = ssim_internal::textured(shape, DType::f64, Layout::dense, Layout::dense, 1);
  for (const Extents& of_mask : {Extents{37, 53}, Extents{3, 37, 53}, Extents{1, 37, 53},
           Extents{2, 3, 37, 53}, Extents{1, 3, 37, 53}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f64}) {
      MsSsimOptions options = small();
      const test::Array mask = weights(of_mask, dtype, Layout::permuted);
      options.mask = mask;
      SCOPED_TRACE(fmt::format("{} {}", of_mask, name(dtype)));
      expect_reference(pair, options, 1e-10);
    }
  }
}

TEST(MsSsimMask, MatchesTheReferenceOfVolumesBytesAndTheUsualWindow) {
  MsSsimOptions options = small();
  options.weights = {0.4, 0.6};
  const test::Array of_volume = weights({9, 19, 21});
  options.mask = of_volume;
  expect_reference(
      ssim_internal::textured({2, 1, 9, 19, 21}, DType::f32, Layout::dense, Layout::sliced, 1),
      options);
  const test::Array of_bytes = weights({37, 53});
  options.mask = of_bytes;
  expect_reference(
      ssim_internal::textured({1, 2, 37, 53}, DType::u8, Layout::dense, Layout::dense, 255),
      options);
  MsSsimOptions usual;
  const test::Array of_usual = weights({180, 184});
  usual.mask = of_usual;
  expect_reference(
      ssim_internal::textured({1, 2, 180, 184}, DType::f32, Layout::dense, Layout::dense, 1),
      usual);
}

TEST(MsSsimMask, OfOnesChangesNothingWithoutZerosAround) {
  const Pair pair =
      ssim_internal::textured({2, 2, 36, 52}, DType::f64, Layout::dense, Layout::dense, 1);
  MsSsimOptions options = small();
  const Reference plain = reference_ms_ssim(pair.x, pair.y, {}, options);
  const test::Array ones = test::filled({36, 52}, DType::u8, Layout::dense, 1);
  options.mask = ones;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    const Reference masked = computed(pair.x, pair.y, {}, options);
    EXPECT_LE(test::relative_l2(masked.value, plain.value), 1e-12) << backend.name;
    EXPECT_LE(test::relative_l2(masked.x_gradient, plain.x_gradient), 1e-10) << backend.name;
  }
}

// Image 1 has no weights at all; image 2 has some, but only in the rim of the coarsest level.
TEST(MsSsimMask, OfNothingAtALevelIsNoMeasureOfThatImageAlone) {
  const Extents shape = {3, 1, 36, 52};
  const Pair pair = ssim_internal::textured(shape, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array mask =
      test::make(shape, DType::f32, Layout::dense, [](std::int64_t i) -> double {
        const std::int64_t image = i / (36 * 52), row = i / 52 % 36;
        return image == 0 || (image == 2 && row == 2) ? 1 : 0;
      });
  MsSsimOptions options = small();
  options.mask = mask;
  options.reduction = Reduction::per_image;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    const Reference each = computed(pair.x, pair.y, {}, options);
    EXPECT_GT(each.value[0], 0);
    EXPECT_TRUE(std::isnan(each.value[1]));
    EXPECT_TRUE(std::isnan(each.value[2]));
    for (std::size_t i = 36 * 52; i < each.x_gradient.size(); ++i) EXPECT_EQ(each.x_gradient[i], 0);
    const Reference losses = computed(pair.x, pair.y, {.form = SsimRequest::Form::loss}, options);
    EXPECT_NEAR(losses.value[0], 1 - each.value[0], 1e-6);
    EXPECT_EQ(losses.value[1], 0);
    EXPECT_EQ(losses.value[2], 0);
    options.reduction = Reduction::mean;
    EXPECT_NEAR(computed(pair.x, pair.y, {}, options).value[0], each.value[0], 1e-6);
    options.reduction = Reduction::sum;
    EXPECT_NEAR(computed(pair.x, pair.y, {}, options).value[0], each.value[0], 1e-6);
    options.reduction = Reduction::per_image;
  }
}

TEST(MsSsimMask, OfABadWeightIsRefusedAndNanOnAGpu) {
  const Pair pair =
      ssim_internal::textured({1, 1, 36, 52}, DType::f32, Layout::dense, Layout::dense, 1);
  MsSsimOptions options = small();
  for (const double bad : {-0.5, std::numeric_limits<double>::quiet_NaN()}) {
    const test::Array mask = test::make({36, 52}, DType::f32, Layout::dense,
        [&](std::int64_t i) { return i == 17 * 52 + 20 ? bad : 1; });
    options.mask = mask;
    test::expect_refusal([&] { ms_ssim(pair.x, pair.y, options); },
        fmt::format(
            "ms_ssim: mask holds {}; each weight must be a finite number of 0 or more", bad));
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      if (!backend.on_gpu) continue;  // nobody looks at its weights before its kernels do
      const test::ScopedBackend chosen(backend);
      EXPECT_TRUE(std::isnan(computed(pair.x, pair.y, {}, options).value[0]));
    }
  }
}

TEST(MsSsimMask, OfAnotherShapeIsRefused) {
  const Pair pair =
      ssim_internal::textured({1, 1, 36, 52}, DType::f32, Layout::dense, Layout::dense, 1);
  const test::Array wide = test::filled({36, 53}, DType::f32, Layout::dense, 1);
  MsSsimOptions options = small();
  options.mask = wide;
  test::expect_refusal([&] { ms_ssim(pair.x, pair.y, options); },
      "ms_ssim: mask has shape [36, 53]; it must be the images' [1, 1, 36, 52], with N and C left "
      "out or 1 where it is the same for all");
}

}  // namespace
}  // namespace similis
