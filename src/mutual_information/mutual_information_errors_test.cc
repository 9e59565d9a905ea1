// SPDX-License-Identifier: Apache-2.0
// The refusals of mutual information, word for word.
#include <gtest/gtest.h>

#include "similis/mutual_information.hpp"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::expect_refusal;
using test::Layout;

const Extents kShape = {1, 2, 3, 4};

Tensor image(const Extents& shape = kShape, DType dtype = DType::f32) {
  return test::noise(shape, dtype, Layout::dense, 1, 1);
}

TEST(MutualInformationRefuses, ImagesThatAreNotAlike) {
  expect_refusal(
      [&] {
        mutual_information(image(), image({1, 2, 3, 5}));
      },
      "mutual_information: y has shape [1, 2, 3, 5]; it must be that of x, [1, 2, 3, 4]");
  expect_refusal([&] { histogram(image(), image(kShape, DType::u8)); },
      "histogram: y is uint8; it must be float32 as x is");
  expect_refusal(
      [&] {
        mutual_information(image({4, 3}), image({4, 3}));
      },
      "mutual_information: x has shape [4, 3]; it must have 3 to 8 axes, [N, C, ...]");
}

TEST(MutualInformationRefuses, OptionsWithoutAMeaning) {
  const Tensor x = image();
  const auto refuses = [&](const MutualInformationOptions& options, const char* sentence) {
    expect_refusal(
        [&] { mutual_information(x, x, options); }, std::string("mutual_information: ") + sentence);
  };
  refuses({.num_bins = 3}, "num_bins is 3; it must be a whole number from 4 to 256");
  refuses({.num_bins = 257}, "num_bins is 257; it must be a whole number from 4 to 256");
  refuses({.sigma_ratio = 0.05}, "sigma_ratio is 0.05; it must be a number of 0.1 or more");
  refuses(
      {.range = ValueRange::fixed, .low = 1, .high = 1}, "range is (1, 1); high must be above low");
  refuses({.smooth_nr = -1}, "smooth_nr is -1; it must be a number of 0 or more");
  refuses({.smooth_dr = -1}, "smooth_dr is -1; it must be a number of 0 or more");
  refuses({.normalized = true, .smooth_nr = 1},
      "smooth_nr is 1 and smooth_dr is 0; with normalized they must be 0");
  refuses({.sampling = 0}, "sampling is 0; it must be a number above 0 and up to 1");
  refuses({.mask = image({3, 3})},
      "mask has shape [3, 3]; it must be the images' [1, 2, 3, 4], with N and C left out or 1 "
      "where it is the same for all");
  const Tensor negative =
      test::make({3, 4}, DType::f32, Layout::dense, [](std::int64_t i) { return 3.0 - i; });
  refuses({.mask = negative}, "mask holds -1; each weight must be a finite number of 0 or more");
  refuses({.kernel = static_cast<ParzenKernel>(3)},
      "kernel is 3; it must be b_spline, gaussian or delta");
  refuses({.range = static_cast<ValueRange>(4)},
      "range is 4; it must be per_image, common, fixed or unit_or_common");
  refuses({.method = static_cast<HistogramMethod>(2)}, "method is 2; it must be exact or binned");
  refuses({.reduction = static_cast<Reduction>(5)},
      "reduction is 5; it must be mean, sum, none, per_image or per_channel");
}

TEST(MutualInformationRefuses, GradientsThatDoNotExist) {
  const Tensor x = image(), bytes = image(kShape, DType::u8);
  expect_refusal(
      [&] {
        mutual_information_backward(x, x, {}, GradientOf::x, {.kernel = ParzenKernel::delta});
      },
      "mutual_information: a gradient is asked for, and the kernel is delta; gradients need "
      "b_spline or gaussian");
  expect_refusal([&] { mutual_information_value_and_gradient(bytes, bytes); },
      "mutual_information: a gradient is asked for, and the images are uint8; gradients need "
      "float16, bfloat16, float32 or float64");
}

TEST(MutualInformationRefuses, ResultsThatDoNotFit) {
  const Tensor x = image(), half = allocate({}, DType::f16), two = allocate({2}, DType::f32);
  const Tensor twice = test::filled({2, 2}, DType::f32, Layout::sliced, 0);
  const Tensor small = allocate({1, 2, 8, 8}, DType::f64);
  const auto refuses = [&](const MutualInformationRequest& request, const char* sentence,
                           Reduction reduction = Reduction::mean) {
    expect_refusal([&] { mutual_information_into(x, x, request, {.reduction = reduction}); },
        std::string("mutual_information: ") + sentence);
  };
  refuses({.value = two}, "value has shape [2]; it must be that of the result, []");
  refuses({.value = half}, "value is float16; it must be float32 or float64");
  refuses({.value = test::filled({1, 2}, DType::f32, Layout::sliced, 0)},
      "value has strides [10, 2]; it must be dense, [2, 1]", Reduction::none);
  refuses({.upstream = two}, "upstream has shape [2]; it must be that of the result, []");
  refuses({.x_gradient = two}, "x_gradient has shape [2]; it must be that of x, [1, 2, 3, 4]");
  refuses({.histogram = small},
      "histogram has shape [1, 2, 8, 8]; it must be that of the result, [1, 2, 32, 32]");
  expect_refusal([&] { mutual_information_from_histogram(x); },
      "mutual_information_from_histogram: histogram has shape [1, 2, 3, 4]; it must be [N, C, "
      "bins, bins] with 4 to 256 bins");
  expect_refusal(
      [&] {
        mutual_information_from_histogram(image({1, 1, 8, 8}));
      },
      "mutual_information_from_histogram: histogram is float32; it must be float64");
}

}  // namespace
}  // namespace similis
