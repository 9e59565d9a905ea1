// SPDX-License-Identifier: Apache-2.0
// SSIM of parts of images: rows that count, and sums, which add up to those of the reference.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/ssim/test_cases.h"
#include "src/window/parts_test_cases.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using ssim_internal::Pair;
using ssim_internal::Reference;
using ssim_internal::reference_ssim;
using test::Layout;
using window_test::Sums;
using window_test::weights_of;

// The sums that the reference's means make.
Sums expected_sums(const Pair& images, const SsimRequest& request, SsimOptions options) {
  options.reduction = Reduction::per_channel;
  options.sums = false;
  const std::int64_t planes = images.x.shape[0] * images.x.shape[1];
  const std::vector<double> upstream = to_doubles(request.upstream);
  Sums result;
  for (test::Array* gradient : {&result.x_gradient, &result.y_gradient}) {
    *gradient = test::filled(images.x.shape, DType::f64, Layout::dense, 0);
  }
  for (const bool is_l1 : {false, true}) {
    if (is_l1 && request.l1_weight == 0) break;
    const double weight = weights_of(images, options, is_l1);
    const std::int64_t first = is_l1 ? 2 * planes : 0;
    const test::Array of_term =
        test::make({images.x.shape[0], images.x.shape[1]}, DType::f64, Layout::dense,
            [&](std::int64_t i) { return upstream[static_cast<std::size_t>(first + i)] * weight; });
    const SsimRequest term{.form = is_l1 ? SsimRequest::Form::loss : request.form,
        .l1_weight = is_l1 ? request.l1_weight : 0,
        .ssim_weight = is_l1 ? 0 : request.ssim_weight,
        .upstream = of_term};
    const Reference found = reference_ssim(images.x, images.y, term, options);
    for (const double mean : found.value) result.value.push_back(mean * weight);
    for (std::int64_t i = 0; i < planes; ++i) result.value.push_back(weight);
    for (std::int64_t i = 0; i < images.x.shape.count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      result.x_gradient.elements<double>()[i] += found.x_gradient[at];
      result.y_gradient.elements<double>()[i] += found.y_gradient[at];
    }
  }
  return result;
}

void expect_parts(const Pair& images, const std::vector<std::vector<std::int64_t>>& splits,
    SsimOptions options, double l1_weight, const std::string& about) {
  options.sums = true;
  const bool has_gradient = is_floating_point(images.x.dtype);
  const test::Array upstream = test::make(sums_shape(images.x.shape, l1_weight == 0 ? 1 : 2),
      DType::f64, Layout::permuted, [](std::int64_t i) { return 0.1 + test::uniform(5, i); });
  for (const auto form : {SsimRequest::Form::similarity, SsimRequest::Form::loss}) {
    const SsimRequest request{
        .form = form, .l1_weight = l1_weight, .ssim_weight = 0.7, .upstream = upstream};
    const Sums expected = expected_sums(images, request, options);
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::ScopedBackend chosen(backend);
      for (const std::vector<std::int64_t>& begins : splits) {
        SCOPED_TRACE(about + " " + backend.name + " " + ssim_internal::name(options.padding) +
                     fmt::format(" {} parts", begins.size()));
        const Sums found = window_test::sums_of_parts(ssim_into, images, begins, request, options);
        EXPECT_LE(test::relative_l2(found.value, expected.value), 1e-6);
        if (!has_gradient) continue;
        const double allowed = images.x.dtype == DType::f16 ? 2e-3 : 3e-5;
        EXPECT_LE(test::relative_l2(to_doubles(found.x_gradient), to_doubles(expected.x_gradient)),
            allowed);
        EXPECT_LE(test::relative_l2(to_doubles(found.y_gradient), to_doubles(expected.y_gradient)),
            allowed);
      }
    }
  }
}

Pair pair_of(const Extents& shape, DType dtype) {
  const double range = dtype == DType::u8 ? 255 : 1;
  return ssim_internal::textured(shape, dtype, Layout::dense, Layout::channels_last, range);
}

TEST(SsimParts, AddUpToTheImage) {
  for (const Padding padding : ssim_internal::kPaddings) {
    const std::vector<std::vector<std::int64_t>> splits = {{0}, {0, 1, 9, 17}};
    const Pair images = pair_of({2, 2, 31, 37}, DType::f32);
    expect_parts(images, splits, {.window_size = 7, .padding = padding}, 0, "pictures");
    expect_parts(images, {{0}, {0, 9, 17}}, {.padding = padding}, 0.3, "pictures with L1");
    const Pair volumes = pair_of({1, 2, 14, 12, 13}, DType::f32);
    expect_parts(volumes, {{0, 1, 6}},
        {.window_size = {5, 7, 3}, .window = WindowShape::box, .padding = padding}, 0, "volumes");
    expect_parts(volumes, {{0, 5}}, {.window_size = 5, .padding = padding}, 0.3, "volumes with L1");
  }
}

TEST(SsimParts, TakeAllTypesAndMasks) {
  const std::vector<std::vector<std::int64_t>> splits = {{0, 9}};
  for (const DType dtype : {DType::u8, DType::f16, DType::f64}) {
    expect_parts(pair_of({1, 2, 24, 21}, dtype), splits, {}, 0, "types");
  }
  const Pair images = pair_of({2, 2, 25, 27}, DType::f32);
  const test::Array mask = test::make({25, 27}, DType::f32, Layout::dense,
      [](std::int64_t i) { return test::uniform(7, i) < 0.4 ? 0.0 : test::uniform(8, i); });
  for (const Padding padding : {Padding::valid, Padding::same}) {
    expect_parts(images, splits, {.window_size = 5, .padding = padding, .mask = mask}, 0, "mask");
  }
}

// A GPU sums moments of f32 about a constant. Parts that share the whole's have its rounding
// errors.
TEST(SsimPartsCuda, OfVolumesAreRoundedAsTheWhole) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  const test::ScopedBackend chosen({.name = "CUDA", .on_gpu = true});
  const Extents shape = {1, 2, 23, 13, 14};
  const std::int64_t voxels = shape[2] * shape[3] * shape[4];
  const auto noise = [&](std::uint32_t seed, std::int64_t i) {  // brighter in later slices
    const double slice = static_cast<double>(i % voxels / (shape[3] * shape[4]));
    return 0.1 * slice + test::uniform(seed, i) - 0.5;
  };
  const Pair images = {
      test::make(shape, DType::f32, Layout::dense, [&](std::int64_t i) { return noise(1, i); }),
      test::make(shape, DType::f32, Layout::dense,
          [&](std::int64_t i) { return 0.7 * noise(1, i) + 0.3 * noise(2, i); })};
  const test::Array upstream =
      test::make({2, 1, 2}, DType::f64, Layout::dense, [](std::int64_t) { return 1.0; });
  const test::Array middle = test::make({1, 2}, DType::f32, Layout::dense, [&](std::int64_t i) {
    const std::int64_t at = i * voxels + (11 * shape[3] + 6) * shape[4] + 7;
    return 0.85 * noise(1, at) + 0.15 * noise(2, at);
  });
  for (const Padding padding : {Padding::valid, Padding::same, Padding::reflect}) {
    // The third part is one slice: under windows of one slice it could be taken for a picture.
    const std::vector<std::vector<std::int64_t>> splits = {{0, 4, 17}, {0, 4, 5, 17}};
    for (const PerAxis<int>& window :
        std::vector<PerAxis<int>>{5, 11, {1, 3, 5}, {1, 5, 5}, {1, 11, 11}}) {
      SCOPED_TRACE(fmt::format("{} {}×…×{}", ssim_internal::name(padding), window.z(), window.x()));
      const bool is_flat = window.z() == 1;
      const SsimOptions options{.window_size = window, .padding = padding, .sums = true};
      const SsimRequest request{.upstream = upstream, .middle = middle};
      const Sums whole = window_test::sums_of_parts(ssim_into, images, {0}, request, options);
      const Sums parts =
          window_test::sums_of_parts(ssim_into, images, splits[is_flat ? 1 : 0], request, options);
      EXPECT_LE(test::relative_l2(parts.value, whole.value), 1e-7);
      EXPECT_LE(
          test::relative_l2(to_doubles(parts.x_gradient), to_doubles(whole.x_gradient)), 3e-7);
      EXPECT_LE(
          test::relative_l2(to_doubles(parts.y_gradient), to_doubles(whole.y_gradient)), 3e-7);
      // Without a middle all of the volume is shifted by this voxel.
      const SsimRequest without{.upstream = upstream};
      const Sums plain = window_test::sums_of_parts(ssim_into, images, {0}, without, options);
      EXPECT_LE(
          test::relative_l2(to_doubles(plain.x_gradient), to_doubles(whole.x_gradient)), 3e-7);
    }
  }
}

TEST(SsimParts, OfAMapAreItsRows) {
  const Pair images = pair_of({1, 2, 31, 37}, DType::f32);
  const SsimOptions options{.padding = Padding::same, .reduction = Reduction::none};
  const std::vector<double> whole = to_doubles(ssim(images.x, images.y, options));
  SsimOptions of_part = options;
  of_part.rows = {5, 12};
  const Tensor part =
      ssim(window_test::rows_of(images.x, 4, 21), window_test::rows_of(images.y, 4, 21), of_part);
  ASSERT_EQ(part.shape, (Extents{1, 2, 7, 37}));
  const std::vector<double> found = to_doubles(part);
  for (std::int64_t i = 0; i < part.shape.count(); ++i) {
    const std::int64_t channel = i / (7 * 37), rest = i % (7 * 37);
    const auto at = static_cast<std::size_t>(channel * 31 * 37 + 9 * 37 + rest);
    ASSERT_NEAR(found[static_cast<std::size_t>(i)], whole[at], 1e-6) << i;
  }
}

TEST(SsimParts, AreRefusedByTheirRows) {
  const Pair images = pair_of({1, 1, 20, 20}, DType::f32);
  const auto expect_refusal = [&](const SsimOptions& options, const std::string& sentence) {
    test::expect_refusal([&] { ssim(images.x, images.y, options); }, sentence);
  };
  expect_refusal({.rows = {3, 21}},
      "ssim: rows is (3, 21) and the images have 20 rows; give the first of them and the one "
      "behind "
      "the last");
  expect_refusal(
      {.rows = {0, 5}}, "ssim: rows is (0, 5); no window is centred there with padding valid");
  expect_refusal({.window_size = 3, .rows = {4, 6}},
      "ssim: rows is (4, 6) of 20; windows there see rows 3 to 6 alone: give these");
}

}  // namespace
}  // namespace similis
