// SPDX-License-Identifier: Apache-2.0
// Measures of u16, i16, i32 and boolean images are those of the same images in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "similis/similis.hpp"
#include "src/core/tensor/doubles.h"
#include "tests/arrays.h"
#include "tests/backends.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;

// Samples of a dtype: noise from `low` on. Those of i32 are beyond what f32 holds, and not so far
// beyond that sums of squares in f64 lose the variance.
struct Samples {
  DType dtype;
  double low, range;
};
constexpr Samples kSamples[] = {{DType::boolean, 0, 2}, {DType::u16, 0, 65536},
    {DType::i16, -32768, 65536}, {DType::i32, 1 << 25, 60000}};
const Extents kShape = {2, 2, 21, 26};

test::Array image(const Samples& of, DType dtype, Layout layout, std::uint32_t seed) {
  return test::make(kShape, dtype, layout,
      [&](std::int64_t i) { return of.low + std::floor(of.range * test::uniform(seed, i)); });
}

struct Measure {
  const char* name;
  std::function<Tensor(const TensorView& x, const TensorView& y, double range)> of;
};

std::vector<Measure> measures() {
  const auto ssim_options = [](double range) { return SsimOptions{.data_range = range}; };
  return {
      {"ssim", [=](auto& x, auto& y, double range) { return ssim(x, y, ssim_options(range)); }},
      {"ssim's map",
          [](auto& x, auto& y, double range) {
            return ssim(x, y, {.data_range = range, .reduction = Reduction::none});
          }},
      {"l1_ssim", [=](auto& x, auto& y,
                      double range) { return l1_ssim(x, y, {.ssim = ssim_options(range)}); }},
      {"ms_ssim",
          [](auto& x, auto& y, double range) {
            return ms_ssim(x, y, {.data_range = range, .window_size = 5, .weights = {0.5, 0.5}});
          }},
      {"lncc", [](auto& x, auto& y, double) { return lncc(x, y, {.window_size = 5}); }},
      {"ncc", [](auto& x, auto& y, double) { return ncc(x, y, Reduction::per_channel); }},
      {"mse", [](auto& x, auto& y, double) { return mse(x, y); }},
      {"mae", [](auto& x, auto& y, double) { return mae(x, y); }},
      {"psnr", [](auto& x, auto& y, double range) { return psnr(x, y, {.data_range = range}); }},
      {"mutual_information",
          [](auto& x, auto& y, double) { return mutual_information(x, y, {.num_bins = 8}); }},
      {"histogram", [](auto& x, auto& y, double) { return histogram(x, y, {.num_bins = 8}); }},
  };
}

TEST(IntegerImages, HaveTheMeasuresOfTheSameImagesInF64) {
  for (const Samples& of : kSamples) {
    const test::Array x = image(of, DType::f64, Layout::dense, 1),
                      y = image(of, DType::f64, Layout::dense, 2);
    for (const Measure& measure : measures()) {
      const Tensor expected = measure.of(x, y, of.range);
      for (const test::Backend& backend : test::backends()) {
        const test::ScopedBackend chosen(backend);
        for (const Layout layout : {Layout::dense, Layout::reversed, Layout::channels_last}) {
          const Tensor actual = measure.of(
              image(of, of.dtype, layout, 1), image(of, of.dtype, Layout::sliced, 2), of.range);
          EXPECT_LE(test::relative_l2(to_doubles(actual), to_doubles(expected)), 2e-7)
              << measure.name << " of " << name(of.dtype) << ", " << backend.name;
          if (of.dtype == DType::i32) {
            EXPECT_EQ(actual.dtype, DType::f64) << measure.name;
          }
        }
      }
    }
  }
}

TEST(IntegerImages, AreMasksAndHaveMasks) {
  const Samples of{DType::i16, -1000, 2000};
  const test::Array x = image(of, DType::i16, Layout::dense, 1),
                    y = image(of, DType::i16, Layout::dense, 2);
  const auto weight = [](std::int64_t i) { return i % 3 == 0 ? 0.0 : 1.0; };
  const test::Array plain = test::make({21, 26}, DType::f64, Layout::dense, weight);
  const auto expected = to_doubles(ssim(x, y, {.data_range = 2000, .mask = plain}));
  const auto expected_error = to_doubles(mse(x, y, {.mask = plain}));
  for (const DType dtype : {DType::boolean, DType::i16, DType::i32}) {
    const test::Array mask = test::make({21, 26}, dtype, Layout::dense, weight);
    EXPECT_EQ(to_doubles(ssim(x, y, {.data_range = 2000, .mask = mask})), expected);
    EXPECT_EQ(to_doubles(mse(x, y, {.mask = mask})), expected_error);
  }
  const test::Array negative = test::make(
      {21, 26}, DType::i16, Layout::dense, [](std::int64_t i) { return i == 30 ? -2 : 1; });
  test::expect_refusal([&] { mse(x, y, {.mask = negative}); },
      "mse: mask holds -2; each weight must be a finite number of 0 or more");
}

TEST(IntegerImages, HaveTheirUsualRangeOrNone) {
  const auto of_dtype = [](DType dtype) {
    return std::pair(image({dtype, 0, 2}, dtype, Layout::dense, 1),
        image({dtype, 0, 2}, dtype, Layout::dense, 2));
  };
  for (const auto& [dtype, range] : {std::pair(DType::boolean, 1.0), {DType::u16, 65535.0}}) {
    const auto [x, y] = of_dtype(dtype);
    EXPECT_EQ(to_doubles(ssim(x, y)), to_doubles(ssim(x, y, {.data_range = range})));
    EXPECT_EQ(to_doubles(psnr(x, y)), to_doubles(psnr(x, y, {.data_range = range})));
  }
  for (const DType dtype : {DType::i16, DType::i32}) {
    const auto [x, y] = of_dtype(dtype);
    const std::string sentence = std::string(": x is ") + name(dtype) +
                                 ", which has no usual range; give data_range, the largest minus "
                                 "the smallest value that a pixel can take";
    test::expect_refusal([&, &x = x, &y = y] { ssim(x, y); }, "ssim" + sentence);
    test::expect_refusal([&, &x = x, &y = y] { psnr(x, y); }, "psnr" + sentence);
    test::expect_refusal([&, &x = x, &y = y] { ms_ssim(x, y); }, "ms_ssim" + sentence);
  }
}

TEST(IntegerImages, HaveNoGradientAndNoGpu) {
  test::Array x = image(kSamples[2], DType::i16, Layout::dense, 1);
  test::expect_refusal([&] { ssim_value_and_gradient(x, x, GradientOf::x, {.data_range = 1}); },
      "ssim: a gradient is asked for, and the images are int16; gradients need float16, bfloat16, "
      "float32 or float64");
  x.device = {DeviceKind::cuda, 0};
  const std::string sentence =
      ": x is int16 on cuda:0; such images must be on the CPU, or be converted, as to float32";
  test::expect_refusal([&] { ssim(x, x, {.data_range = 1}); }, "ssim" + sentence);
  test::expect_refusal([&] { mse(x, x); }, "mse" + sentence);
  test::expect_refusal([&] { mutual_information(x, x); }, "mutual_information" + sentence);
  x.dtype = DType::u16;
  test::expect_refusal([&] { lncc(x, x); },
      "lncc: x is uint16 on cuda:0; there it must be uint8, float16, bfloat16, float32 or float64");
}

TEST(IntegerImages, AreRefusedAsPicturesOfSsimulacra2) {
  const test::Array x =
      test::make({3, 24, 26}, DType::boolean, Layout::dense, [](std::int64_t i) { return i % 2; });
  test::expect_refusal([&] { ssimulacra2(x, x); },
      "ssimulacra2: x is bool; it must be uint8, uint16, float16, bfloat16, float32 or float64");
}

}  // namespace
}  // namespace similis
