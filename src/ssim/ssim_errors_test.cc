// SPDX-License-Identifier: Apache-2.0
// The refusals of SSIM, word for word.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/ssim/test_cases.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;

class SsimRefuses : public testing::Test {
 protected:
  static test::Array image(const Extents& shape, DType dtype = DType::f32) {
    return test::noise(shape, dtype, Layout::dense, 1, 1);
  }
  void refuses(const std::string& sentence, const SsimOptions& options) const {
    test::expect_refusal([&] { ssim(x_, y_, options); }, sentence);
  }

  test::Array x_ = image({2, 3, 20, 30}), y_ = image({2, 3, 20, 30});
  test::Array volume_ = image({1, 1, 12, 13, 14});
};

TEST_F(SsimRefuses, ImagesThatAreNotAlike) {
  test::expect_refusal(
      [&] {
        ssim(x_, image({2, 3, 20, 31}));
      },
      "ssim: y has shape [2, 3, 20, 31]; it must be that of x, [2, 3, 20, 30]");
  test::expect_refusal([&] { ssim(x_, volume_); },
      "ssim: y has shape [1, 1, 12, 13, 14]; it must be that of x, [2, 3, 20, 30]");
  test::expect_refusal(
      [&] {
        ssim(x_, image({2, 3, 20, 30}, DType::f64));
      },
      "ssim: y is float64; it must be float32 as x is");
  TensorView elsewhere = y_;
  elsewhere.device = {DeviceKind::cuda, 0};
  test::expect_refusal(
      [&] { ssim(x_, elsewhere); }, "ssim: y is on cuda:0; it must be on cpu as x is");
  TensorView nothing = y_;
  nothing.handle = nullptr;
  test::expect_refusal([&] { ssim(x_, nothing); }, "ssim: y has no data");
  test::expect_refusal([&] { ssim(nothing, y_); }, "ssim: x has no data");
}

TEST_F(SsimRefuses, ImagesThatAreNone) {
  const test::Array flat = image({20, 30}), wide = image({3, 20, 30});
  test::Array words = image({1, 1, 20, 30}, DType::u16);
  words.device = {DeviceKind::cuda, 0};
  const Tensor none = allocate({2, 3, 0, 30}, DType::f32);
  test::expect_refusal(
      [&] { ssim(flat, flat); }, "ssim: x has shape [20, 30]; it must be [N,C,H,W] or [N,C,D,H,W]");
  test::expect_refusal([&] { ssim(wide, wide); },
      "ssim: x has shape [3, 20, 30]; it must be [N,C,H,W] or [N,C,D,H,W]");
  test::expect_refusal([&] { ssim(none, none); },
      "ssim: x has shape [2, 3, 0, 30]; every extent must be at least 1");
  test::expect_refusal([&] { ssim(words, words); },
      "ssim: x is uint16 on cuda:0; there it must be uint8, float16, bfloat16, float32 or float64");
}

TEST_F(SsimRefuses, WindowsThatAreNone) {
  refuses("ssim: window_size is 65537; it must be an odd number from 1 to 65535",
      {.window_size = 65537});
  refuses("ssim: window_size is 10; it must be an odd number from 1 to 65535", {.window_size = 10});
  refuses("ssim: window_size is 0; it must be an odd number from 1 to 65535", {.window_size = 0});
  refuses("ssim: window_size is -3; it must be an odd number from 1 to 65535",
      {.window_size = {11, -3}});
  refuses("ssim: sigma is 0; it must be a number above 0", {.sigma = 0.0});
  refuses("ssim: window is 2; it must be box or gaussian", {.window = static_cast<WindowShape>(2)});
  refuses(
      "ssim: window_size is 1; with sample_covariance it must be above 1 along at least one axis, "
      "as one pixel has no variance",
      {.window_size = 1, .sample_covariance = true});
  refuses("ssim: sigma is -1; it must be a number above 0", {.sigma = {-1.0, 1.0}});
  refuses("ssim: sigma is nan; it must be a number above 0", {.sigma = std::nan("")});
  refuses("ssim: sigma is inf; it must be a number above 0",
      {.sigma = std::numeric_limits<double>::infinity()});
  refuses("ssim: window_size has 3 numbers; it takes one, or one for each of the 2 axes",
      {.window_size = {3, 3, 3}});
  refuses("ssim: sigma has 3 numbers; it takes one, or one for each of the 2 axes",
      {.sigma = {1.0, 1.0, 1.0}});
  test::expect_refusal(
      [&] {
        ssim(volume_, volume_, {.window_size = {3, 3}});
      },
      "ssim: window_size has 2 numbers; it takes one, or one for each of the 3 axes");
}

TEST_F(SsimRefuses, ImagesThatAreTooSmallForTheWindow) {
  refuses("ssim: height is 20; with padding valid it must be at least window_size, 21",
      {.window_size = 21});
  refuses("ssim: width is 30; with padding valid it must be at least window_size, 31",
      {.window_size = {1, 31}});
  refuses("ssim: height is 20; with padding reflect it must be more than half the window, 20",
      {.window_size = 41, .padding = Padding::reflect});
  test::expect_refusal(
      [&] {
        ssim(volume_, volume_, {.window_size = {13, 1, 1}});
      },
      "ssim: depth is 12; with padding valid it must be at least window_size, 13");
  EXPECT_NO_THROW(ssim(x_, y_, {.window_size = {19, 29}}));
  EXPECT_NO_THROW(ssim(x_, y_, {.window_size = 39, .padding = Padding::reflect}));
  EXPECT_NO_THROW(ssim(x_, y_, {.window_size = 61, .padding = Padding::same}));
}

TEST_F(SsimRefuses, ConstantsWithoutAMeaning) {
  refuses("ssim: data_range is 0; it must be a number above 0", {.data_range = 0});
  refuses("ssim: data_range is -1; it must be a number above 0", {.data_range = -1});
  refuses("ssim: data_range is nan; it must be a number above 0", {.data_range = std::nan("")});
  refuses("ssim: k1 is -0.1; it must be a number of 0 or more", {.k1 = -0.1});
  refuses("ssim: k2 is inf; it must be a number of 0 or more",
      {.k2 = std::numeric_limits<double>::infinity()});
  EXPECT_NO_THROW(ssim(x_, y_, {.k1 = 0, .k2 = 0}));
}

TEST_F(SsimRefuses, OptionsThatDoNotExist) {
  refuses("ssim: padding is 9; it must be valid, same, reflect, replicate or renormalize",
      {.padding = static_cast<Padding>(9)});
  refuses("ssim: reduction is 9; it must be mean, sum, none, per_image or per_channel",
      {.reduction = static_cast<Reduction>(9)});
}

TEST_F(SsimRefuses, MasksThatDoNotFit) {
  const auto sentence = [](const char* argument, const char* shape) {
    return fmt::format(
        "ssim: {} has shape {}; it must be the images' [2, 3, 20, 30], with N and C left out or 1 "
        "where it is the same for all",
        argument, shape);
  };
  const test::Array transposed = image({30, 20}), row = image({30}), map = image({10, 20});
  const test::Array three = image({3, 1, 20, 30}), deep = image({1, 2, 3, 20, 30});
  const test::Array thin = image({1, 30});
  refuses(sentence("mask", "[30, 20]"), {.mask = transposed});
  refuses(sentence("mask", "[30]"), {.mask = row});
  refuses(sentence("mask", "[10, 20]"), {.mask = map});
  refuses(sentence("mask", "[1, 30]"), {.mask = thin});
  refuses(sentence("valid_mask", "[3, 1, 20, 30]"), {.valid_mask = three});
  refuses(sentence("valid_mask", "[1, 2, 3, 20, 30]"), {.valid_mask = deep});
  TensorView elsewhere = image({20, 30});
  elsewhere.device = {DeviceKind::cuda, 0};
  refuses("ssim: mask is on cuda:0; it must be on cpu as x is", {.mask = elsewhere});
}

// One bad weight anywhere, in any dtype and layout, also beyond the first task's share.
TEST_F(SsimRefuses, WeightsThatAreNone) {
  const auto sentence = [](const char* argument, const char* value) {
    return fmt::format(
        "ssim: {} holds {}; each weight must be a finite number of 0 or more", argument, value);
  };
  const auto one_bad = [](const Extents& shape, DType dtype, test::Layout layout, double bad,
                           std::int64_t at) {
    return test::make(shape, dtype, layout, [=](std::int64_t i) { return i == at ? bad : 1.0; });
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const auto layout :
        {test::Layout::dense, test::Layout::permuted, test::Layout::reversed}) {
      const test::Array negative = one_bad({20, 30}, dtype, layout, -0.5, 599);
      const test::Array nan = one_bad({3, 20, 30}, dtype, layout, std::nan(""), 0);
      const test::Array infinite = one_bad({2, 1, 20, 30}, dtype, layout, infinity, 700);
      refuses(sentence("mask", "-0.5"), {.mask = negative});
      refuses(sentence("valid_mask", "-0.5"), {.valid_mask = negative});
      refuses(sentence("mask", "nan"), {.mask = nan});
      refuses(sentence("valid_mask", "nan"), {.valid_mask = nan});
      refuses(sentence("mask", "inf"), {.mask = infinite});
    }
  }
  const test::Array large =
      test::filled({1, 1, 400, 500}, DType::u8, test::Layout::dense, 1);  // several tasks
  const test::Array last = one_bad({400, 500}, DType::f32, test::Layout::dense, -1, 199999);
  test::expect_refusal([&] { ssim(large, large, {.mask = last}); }, sentence("mask", "-1"));
  test::expect_refusal(
      [&] { ssim_loss(large, large, {.valid_mask = last}); }, sentence("valid_mask", "-1"));
  test::expect_refusal(
      [&] { l1_ssim(large, large, {.ssim = {.mask = last}}); }, "l1_" + sentence("mask", "-1"));
  const test::Array minus_zero = one_bad({20, 30}, DType::f32, test::Layout::dense, -0.0, 5);
  EXPECT_NO_THROW(ssim(x_, y_, {.mask = minus_zero, .valid_mask = minus_zero}));
}

TEST_F(SsimRefuses, GradientsOfBytes) {
  const test::Array bytes = image({1, 1, 20, 30}, DType::u8);
  const char* const sentence =
      "ssim: a gradient is asked for, and the images are uint8; gradients need float16, bfloat16, "
      "float32 or float64";
  test::expect_refusal([&] { ssim_value_and_gradient(bytes, bytes); }, sentence);
  test::expect_refusal([&] { ssim_loss_value_and_gradient(bytes, bytes); }, sentence);
  test::expect_refusal([&] { ssim_backward(bytes, bytes, {}); }, sentence);
  test::expect_refusal([&] { l1_ssim_value_and_gradient(bytes, bytes); }, sentence);
  test::expect_refusal([&] { ssim_into(bytes, bytes, {.x_gradient = bytes}); },
      "ssim: x_gradient is asked for, and the images are uint8; gradients need float16, bfloat16, "
      "float32 or float64");
}

TEST_F(SsimRefuses, ResultsThatDoNotFit) {
  const auto refuses_request = [&](const std::string& sentence, const SsimRequest& request,
                                   const SsimOptions& options = {}) {
    test::expect_refusal([&] { ssim_into(x_, y_, request, options); }, sentence);
  };
  const Tensor two = allocate({2}, DType::f32), double_map = allocate({2, 3, 10, 20}, DType::f64);
  const Tensor bytes = allocate({}, DType::u8);
  const test::Array gaps = test::filled({2}, DType::f32, Layout::sliced, 0);
  const test::Array shared = test::filled(x_.shape, DType::f32, Layout::expanded, 0);
  refuses_request("ssim: value has shape [2]; it must be that of the result, []", {.value = two});
  refuses_request("ssim: value has strides [2]; it must be dense, [1]", {.value = gaps},
      {.reduction = Reduction::per_image});
  refuses_request("ssim: value is uint8; it must be float32 or float64", {.value = bytes});
  refuses_request("ssim: value is float64; it must be float32", {.value = double_map},
      {.reduction = Reduction::none});
  refuses_request(
      "ssim: upstream has shape [2]; it must be that of the result, []", {.upstream = two});
  refuses_request("ssim: upstream has shape [2]; it must be that of the result, [2, 3, 10, 20]",
      {.upstream = two}, {.reduction = Reduction::none});
  refuses_request("ssim: upstream is uint8; it must be float16, bfloat16, float32 or float64",
      {.upstream = bytes});
  refuses_request("ssim: middle has shape [2]; it must be [N,C], [2, 3]", {.middle = two});
  const test::Array planes = image({2, 3}, DType::f64);
  refuses_request("ssim: middle is float64; it must be float32", {.middle = planes});
  refuses_request(
      "ssim: x_gradient has shape [2]; it must be that of x, [2, 3, 20, 30]", {.x_gradient = two});
  const test::Array wide = image(x_.shape, DType::f64);
  refuses_request("ssim: y_gradient is float64; it must be float32 as x is", {.y_gradient = wide});
  refuses_request(
      "ssim: y_gradient has strides [0, 0, 30, 1] for shape [2, 3, 20, 30]; each "
      "element must have a place of its own",
      {.y_gradient = shared});
  TensorView overlapping = x_;
  overlapping.strides = {1800, 600, 29, 1};
  refuses_request(
      "ssim: x_gradient has strides [1800, 600, 29, 1] for shape [2, 3, 20, 30]; each "
      "element must have a place of its own",
      {.x_gradient = overlapping});
}

TEST_F(SsimRefuses, WeightsOfL1BeyondTheirRange) {
  test::expect_refusal([&] { l1_ssim(x_, y_, {.weight = 1.5}); },
      "l1_ssim: weight is 1.5; it must be a number from 0 to 1");
  test::expect_refusal([&] { l1_ssim(x_, y_, {.weight = std::nan("")}); },
      "l1_ssim: weight is nan; it must be a number from 0 to 1");
  test::expect_refusal([&] { l1_ssim(x_, y_, {.ssim = {.reduction = Reduction::none}}); },
      "l1_ssim: reduction is none and padding is valid; |x - y| has no map of SSIM's size then, "
      "take another padding");
}

}  // namespace
}  // namespace similis
