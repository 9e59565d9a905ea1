// SPDX-License-Identifier: Apache-2.0
// The refusals of LNCC, word for word.
#include <gtest/gtest.h>

#include "src/lncc/test_cases.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;

class LnccRefuses : public testing::Test {
 protected:
  static test::Array image(const Extents& shape, DType dtype = DType::f32) {
    return test::noise(shape, dtype, Layout::dense, 1, 1);
  }
  void refuses(const std::string& sentence, const LnccOptions& options) const {
    test::expect_refusal([&] { lncc(x_, y_, options); }, sentence);
  }

  test::Array x_ = image({2, 3, 20, 30}), y_ = image({2, 3, 20, 30});
};

TEST_F(LnccRefuses, ImagesThatAreNotAlike) {
  const test::Array wider = image({2, 3, 20, 31}), bytes = image({2, 3, 20, 30}, DType::u8);
  test::expect_refusal([&] { lncc(x_, wider); },
      "lncc: y has shape [2, 3, 20, 31]; it must be that of x, [2, 3, 20, 30]");
  test::expect_refusal([&] { lncc(x_, bytes); }, "lncc: y is uint8; it must be float32 as x is");
  test::expect_refusal([&] { lncc_value_and_gradient(bytes, bytes); },
      "lncc: a gradient is asked for, and the images are uint8; gradients need float16, bfloat16, "
      "float32 or float64");
}

TEST_F(LnccRefuses, WindowsThatCannotBe) {
  refuses("lncc: window_size is 4; it must be an odd number from 1 to 65535", {.window_size = 4});
  refuses(
      "lncc: window_size is 1; it must be above 1 along at least one axis, as one pixel has no "
      "variance",
      {.window_size = 1});
  refuses("lncc: window_size has 3 numbers; it takes one, or one for each of the 2 axes",
      {.window_size = {3, 3, 3}});
  refuses("lncc: sigma is 0; it must be a number above 0",
      {.window = WindowShape::gaussian, .sigma = 0.0});
  refuses("lncc: height is 20; with padding valid it must be at least window_size, 21",
      {.window_size = 21, .padding = Padding::valid});
  refuses("lncc: window is 2; it must be box or gaussian", {.window = static_cast<WindowShape>(2)});
}

TEST_F(LnccRefuses, OptionsThatCannotBe) {
  refuses("lncc: padding is reflect; it must be valid, same or renormalize",
      {.padding = Padding::reflect});
  refuses("lncc: padding is replicate; it must be valid, same or renormalize",
      {.padding = Padding::replicate});
  refuses("lncc: padding is 9; it must be valid, same or renormalize",
      {.padding = static_cast<Padding>(9)});
  refuses("lncc: reduction is 7; it must be mean, sum, none, per_image or per_channel",
      {.reduction = static_cast<Reduction>(7)});
  refuses("lncc: smooth_nr is -1; it must be a number of 0 or more", {.smooth_nr = -1});
  refuses("lncc: smooth_dr is 0; it must be a number above 0", {.smooth_dr = 0});
  refuses(
      "lncc: gradient is 2; it must be exact or ants", {.gradient = static_cast<LnccGradient>(2)});
  refuses("lncc: workspace is 2; it must be auto or small",
      {.workspace = static_cast<LnccWorkspace>(2)});
  refuses("lncc: gradient is ants and the measure is signed; ants takes the squared measure alone",
      {.is_signed = true, .gradient = LnccGradient::ants});
}

TEST_F(LnccRefuses, MasksThatDoNotFit) {
  const test::Array small = image({20, 29});
  LnccOptions options;
  options.mask = small;
  refuses(
      "lncc: mask has shape [20, 29]; it must be the images' [2, 3, 20, 30], with N and C left out "
      "or 1 where it is the same for all",
      options);
}

TEST_F(LnccRefuses, WeightsThatAreNone) {
  for (const double bad : {-1.0, std::nan("")}) {
    const test::Array weights = test::make({20, 30}, DType::f32, test::Layout::dense,
        [=](std::int64_t i) { return i == 17 ? bad : 1.0; });
    const std::string holds =
        fmt::format(" holds {}; each weight must be a finite number of 0 or more", bad);
    LnccOptions options;
    options.mask = weights;
    refuses("lncc: mask" + holds, options);
    options = {};
    options.valid_mask = weights;
    refuses("lncc: valid_mask" + holds, options);
  }
}

TEST_F(LnccRefuses, ResultsThatDoNotFit) {
  const Tensor value = allocate({2}, DType::f32);
  test::expect_refusal([&] { lncc_into(x_, y_, {.value = value}); },
      "lncc: value has shape [2]; it must be that of the result, []");
  const test::Array gradient = image({2, 3, 20, 29});
  test::expect_refusal([&] { lncc_into(x_, y_, {.x_gradient = gradient}); },
      "lncc: x_gradient has shape [2, 3, 20, 29]; it must be that of x, [2, 3, 20, 30]");
}

}  // namespace
}  // namespace similis
