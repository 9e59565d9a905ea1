// SPDX-License-Identifier: Apache-2.0
// Mutual information of parts of images by the limits and the histogram of the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/mutual_information/test_calls.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Array;
using test::Layout;

constexpr Extents kShape = {2, 2, 12, 17};
constexpr std::int64_t kCut = 5;  // rows of the first part

Array image(std::uint32_t seed, DType dtype) {
  return test::make(kShape, dtype, Layout::dense, [=](std::int64_t i) {
    return (1.0 + static_cast<double>(i / 204)) * (test::uniform(seed, i) - 0.3);
  });
}

TensorView rows(const TensorView& view, std::int64_t first, std::int64_t end) {
  TensorView part = view;
  part.offset += first * view.strides[2];
  part.shape[2] = end - first;
  return part;
}

// The smallest and largest value of each channel of x, then of y.
Array limits_of(const TensorView& x, const TensorView& y) {
  const std::vector<double> of[] = {to_doubles(x), to_doubles(y)};
  return test::make({2, 2, 4}, DType::f64, Layout::dense, [&](std::int64_t i) {
    const std::vector<double>& numbers = of[i % 4 / 2];
    const auto first = numbers.begin() + i / 4 * 204;
    return i % 2 == 0 ? *std::min_element(first, first + 204)
                      : *std::max_element(first, first + 204);
  });
}

TEST(MutualInformationParts, GiveTheWhole) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Array x = image(1, dtype), y = image(2, dtype);
    const MutualInformationOptions whole{.num_bins = 16};
    MutualInformationOptions of_part = whole;
    const Array limits = limits_of(x, y);
    of_part.limits = limits;
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      SCOPED_TRACE(backend.name);
      const test::ScopedBackend chosen(backend);
      const std::vector<double> expected = test::histogram_of(x, y, whole);
      std::vector<double> sum(expected.size());
      for (const auto& [first, end] : {std::pair{std::int64_t{0}, kCut}, {kCut, kShape[2]}}) {
        const std::vector<double> part =
            test::histogram_of(rows(x, first, end), rows(y, first, end), of_part);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      EXPECT_LE(test::relative_l2(sum, expected), 1e-7);
      const test::ValueAndGradients wanted = test::value_and_gradients(x, y, whole);
      const Array histogram = test::make({2, 2, 16, 16}, DType::f64, Layout::dense,
          [&](std::int64_t i) { return sum[static_cast<std::size_t>(i)]; });
      for (const auto& [first, end] : {std::pair{std::int64_t{0}, kCut}, {kCut, kShape[2]}}) {
        const TensorView part = rows(x, first, end);
        const Tensor by_x = allocate(part.shape, dtype), value = allocate({}, DType::f64);
        test::run_into(part, rows(y, first, end),
            {.histogram = histogram, .value = value, .x_gradient = by_x}, of_part);
        EXPECT_NEAR(item(value), wanted.value, 1e-6);
        const Array all = test::make(kShape, DType::f64, Layout::dense,
            [&](std::int64_t i) { return wanted.x_gradient[static_cast<std::size_t>(i)]; });
        EXPECT_LE(test::relative_l2(to_doubles(by_x), to_doubles(rows(all, first, end))), 1e-5);
      }
    }
  }
}

TEST(MutualInformationParts, LimitsOfAnotherShapeAreRefused) {
  const Array x = image(1, DType::f32);
  const Tensor limits = allocate({2, 4}, DType::f64);
  test::expect_refusal([&] { mutual_information(x, x, {.limits = limits}); },
      "mutual_information: limits has shape [2, 4]; it must be [2, 2, 4]");
}

}  // namespace
}  // namespace similis
