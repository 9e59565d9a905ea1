// SPDX-License-Identifier: Apache-2.0
// LNCC of parts of images: rows that count, and sums, which add up to those of the reference.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/lncc/test_cases.h"
#include "src/window/parts_test_cases.h"

namespace similis {
namespace {

using lncc_internal::Pair;
using lncc_internal::Reference;
using lncc_internal::reference_lncc;
using test::Layout;
using window_test::Sums;
using window_test::weights_of;

void expect_parts(const Pair& images, const std::vector<std::vector<std::int64_t>>& splits,
    LnccOptions options, const std::string& about) {
  const Extents& shape = images.x.shape;
  const test::Array upstream = test::make(sums_shape(shape, 1), DType::f64, Layout::permuted,
      [](std::int64_t i) { return 0.1 + test::uniform(5, i); });
  const double weight = weights_of(images, options);
  const std::vector<double> of_sums = to_doubles(upstream);
  const test::Array of_means = test::make({shape[0], shape[1]}, DType::f64, Layout::dense,
      [&](std::int64_t i) { return of_sums[static_cast<std::size_t>(i)] * weight; });
  options.reduction = Reduction::per_channel;
  const Reference means =
      reference_lncc(images.x, images.y, {.weight = -1, .upstream = of_means}, options);
  std::vector<double> expected;
  for (const double mean : means.value) expected.push_back(mean * weight);
  expected.resize(2 * expected.size(), weight);
  options.sums = true;
  options.reduction = Reduction::mean;
  for (const test::Backend& backend : test::backends(test::Gpu::included)) {
    const test::ScopedBackend chosen(backend);
    for (const std::vector<std::int64_t>& begins : splits) {
      SCOPED_TRACE(about + " " + backend.name + " " + lncc_internal::name(options.padding) +
                   fmt::format(" {} parts", begins.size()));
      const LnccRequest request{.weight = -1, .upstream = upstream};
      const Sums found = window_test::sums_of_parts(lncc_into, images, begins, request, options);
      const lncc_internal::Tolerance allowed = lncc_internal::tolerance(images.x.dtype);
      EXPECT_LE(test::relative_l2(found.value, expected), 1e-6);
      if (!is_floating_point(images.x.dtype)) continue;
      EXPECT_LE(
          test::relative_l2(to_doubles(found.x_gradient), means.x_gradient), 2 * allowed.gradient);
      EXPECT_LE(
          test::relative_l2(to_doubles(found.y_gradient), means.y_gradient), 2 * allowed.gradient);
    }
  }
}

Pair pair_of(const Extents& shape, DType dtype) {
  const double range = dtype == DType::u8 ? 255 : 1;
  return lncc_internal::textured(shape, dtype, Layout::dense, Layout::channels_last, range);
}

TEST(LnccParts, AddUpToTheImage) {
  for (const Padding padding : lncc_internal::kPaddings) {
    const Pair images = pair_of({2, 2, 31, 37}, DType::f32);
    const std::vector<std::vector<std::int64_t>> splits = {{0}, {0, 1, 9, 17}};
    expect_parts(images, splits, {.window_size = 7, .padding = padding}, "pictures");
    expect_parts(images, splits,
        {.window_size = 5, .window = WindowShape::gaussian, .padding = padding}, "gaussian");
    const Pair volumes = pair_of({1, 2, 14, 12, 13}, DType::f32);
    expect_parts(volumes, {{0, 1, 6}}, {.window_size = 5, .padding = padding}, "volumes");
    expect_parts(volumes, {{0, 6}},
        {.window_size = {3, 5, 7}, .padding = padding, .is_signed = true}, "signed");
    expect_parts(volumes, {{0, 6}},
        {.window_size = 3, .padding = padding, .gradient = LnccGradient::ants}, "ants");
  }
}

TEST(LnccParts, TakeAllTypesAndMasks) {
  const std::vector<std::vector<std::int64_t>> splits = {{0, 9}};
  for (const DType dtype : {DType::u8, DType::f16, DType::f64}) {
    expect_parts(pair_of({1, 2, 24, 21}, dtype), splits, {}, "types");
  }
  const Pair images = pair_of({2, 2, 25, 27}, DType::f32);
  const test::Array mask = test::make({25, 27}, DType::f32, Layout::dense,
      [](std::int64_t i) { return test::uniform(7, i) < 0.4 ? 0.0 : test::uniform(8, i); });
  expect_parts(images, splits, {.window_size = 5, .mask = mask}, "mask");
}

}  // namespace
}  // namespace similis
