// SPDX-License-Identifier: Apache-2.0
// similis_ssim() against ssim_into(), which it must equal to the last bit.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "similis/c/ssim.h"
#include "similis/ssim.hpp"

namespace similis {
namespace {

// Arrays of one shape with a C tensor and a C++ view on each.
struct Arrays {
  explicit Arrays(std::vector<std::int64_t> extents) : shape(std::move(extents)) {
    const auto count = static_cast<std::size_t>(Extents(shape).count());
    std::mt19937 random(1);
    std::uniform_real_distribution<float> pixel(0, 1);
    for (auto* array : {&x, &y, &upstream, &mask}) {
      array->resize(count);
      for (float& element : *array) element = pixel(random);
    }
    for (auto* array : {&value, &x_gradient, &y_gradient}) array->resize(count);
  }

  similis_tensor c(std::vector<float>& array) {
    return {array.data(), {SIMILIS_CPU, 0}, static_cast<std::int32_t>(shape.size()),
        SIMILIS_FLOAT32, shape.data(), nullptr, 0};
  }
  TensorView view(const std::vector<float>& array) const {
    return {array.data(), Extents(shape), DType::f32};
  }

  std::vector<std::int64_t> shape;
  std::vector<float> x, y, upstream, mask, value, x_gradient, y_gradient;
};

TEST(SsimCApi, DefaultsAreThoseOfCpp) {
  const similis_ssim_options c = SIMILIS_SSIM_DEFAULTS;
  const SsimOptions cpp;
  const SsimRequest request;
  EXPECT_EQ(c.struct_size, sizeof(c));
  EXPECT_EQ(c.data_range != 0, cpp.data_range.has_value());
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(c.window_size[axis], cpp.window_size.x());
    EXPECT_EQ(c.sigma[axis], cpp.sigma.x());
  }
  EXPECT_EQ(c.k1, cpp.k1);
  EXPECT_EQ(c.k2, cpp.k2);
  EXPECT_EQ(c.padding, static_cast<int>(cpp.padding));
  EXPECT_EQ(c.reduction, static_cast<int>(cpp.reduction));
  EXPECT_EQ(c.form, static_cast<int>(request.form));
  EXPECT_EQ(c.ssim_weight, request.ssim_weight);
  EXPECT_EQ(c.l1_weight, request.l1_weight);
}

TEST(SsimCApi, EnumeratorsAreThoseOfCpp) {
  EXPECT_EQ(+SIMILIS_PADDING_VALID, static_cast<int>(Padding::valid));
  EXPECT_EQ(+SIMILIS_PADDING_SAME, static_cast<int>(Padding::same));
  EXPECT_EQ(+SIMILIS_PADDING_REFLECT, static_cast<int>(Padding::reflect));
  EXPECT_EQ(+SIMILIS_PADDING_REPLICATE, static_cast<int>(Padding::replicate));
  EXPECT_EQ(+SIMILIS_PADDING_RENORMALIZE, static_cast<int>(Padding::renormalize));
  EXPECT_EQ(+SIMILIS_REDUCTION_MEAN, static_cast<int>(Reduction::mean));
  EXPECT_EQ(+SIMILIS_REDUCTION_SUM, static_cast<int>(Reduction::sum));
  EXPECT_EQ(+SIMILIS_REDUCTION_NONE, static_cast<int>(Reduction::none));
  EXPECT_EQ(+SIMILIS_REDUCTION_PER_IMAGE, static_cast<int>(Reduction::per_image));
  EXPECT_EQ(+SIMILIS_REDUCTION_PER_CHANNEL, static_cast<int>(Reduction::per_channel));
  EXPECT_EQ(+SIMILIS_FORM_LOSS, static_cast<int>(SsimRequest::Form::loss));
}

// Every option differs from its default, and every tensor is given.
TEST(SsimCApi, EveryArgumentArrives) {
  for (const std::vector<std::int64_t>& shape :
      {std::vector<std::int64_t>{2, 3, 17, 19}, std::vector<std::int64_t>{1, 2, 9, 11, 13}}) {
    Arrays arrays(shape);
    similis_tensor x = arrays.c(arrays.x), y = arrays.c(arrays.y);
    similis_tensor upstream = arrays.c(arrays.upstream), mask = arrays.c(arrays.mask);
    similis_tensor value = arrays.c(arrays.value);
    similis_tensor x_gradient = arrays.c(arrays.x_gradient);
    similis_tensor y_gradient = arrays.c(arrays.y_gradient);
    similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
    options.data_range = 2;
    options.window_size[0] = 3, options.window_size[1] = 5, options.window_size[2] = 7;
    options.sigma[0] = 0.8, options.sigma[1] = 1.1, options.sigma[2] = 1.9;
    options.k1 = 0.02;
    options.k2 = 0.05;
    options.ssim_weight = 0.7;
    options.l1_weight = 0.3;
    options.mask = &mask;
    options.valid_mask = &upstream;
    options.padding = SIMILIS_PADDING_REPLICATE;
    options.reduction = SIMILIS_REDUCTION_NONE;
    options.form = SIMILIS_FORM_LOSS;
    ASSERT_EQ(similis_ssim(&x, &y, &options, &upstream, &value, &x_gradient, &y_gradient, nullptr),
        SIMILIS_OK)
        << similis_last_error();

    Arrays expected(shape);
    const bool is_volume = shape.size() == 5;
    ssim_into(expected.view(expected.x), expected.view(expected.y),
        {.form = SsimRequest::Form::loss,
            .l1_weight = 0.3,
            .ssim_weight = 0.7,
            .upstream = expected.view(expected.upstream),
            .value = expected.view(expected.value),
            .x_gradient = expected.view(expected.x_gradient),
            .y_gradient = expected.view(expected.y_gradient)},
        {.data_range = 2,
            .window_size = is_volume ? PerAxis<int>(3, 5, 7) : PerAxis<int>(5, 7),
            .sigma = is_volume ? PerAxis<double>(0.8, 1.1, 1.9) : PerAxis<double>(1.1, 1.9),
            .k1 = 0.02,
            .k2 = 0.05,
            .padding = Padding::replicate,
            .reduction = Reduction::none,
            .mask = expected.view(expected.mask),
            .valid_mask = expected.view(expected.upstream)});
    EXPECT_EQ(arrays.value, expected.value);
    EXPECT_EQ(arrays.x_gradient, expected.x_gradient);
    EXPECT_EQ(arrays.y_gradient, expected.y_gradient);
  }
}

TEST(SsimCApi, RefusalsComeAsAStatusAndASentence) {
  Arrays arrays({1, 1, 16, 16});
  similis_tensor x = arrays.c(arrays.x), value = arrays.c(arrays.value);
  value.ndim = 0;
  EXPECT_EQ(similis_ssim(&x, nullptr, nullptr, nullptr, &value, nullptr, nullptr, nullptr),
      SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "ssim: y is NULL; it must be a tensor");

  const auto refusal = [&](const similis_ssim_options& options) {
    const similis_status status =
        similis_ssim(&x, &x, &options, nullptr, &value, nullptr, nullptr, nullptr);
    return status == SIMILIS_INVALID_ARGUMENT ? similis_last_error() : "no refusal";
  };
  similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
  options.padding = 5;
  EXPECT_STREQ(refusal(options), "ssim: options.padding is 5; it must be from 0 to 4");
  options = SIMILIS_SSIM_DEFAULTS;
  options.reduction = -1;
  EXPECT_STREQ(refusal(options), "ssim: options.reduction is -1; it must be from 0 to 4");
  options = SIMILIS_SSIM_DEFAULTS;
  options.data_range = -1;
  EXPECT_STREQ(refusal(options), "ssim: data_range is -1; it must be positive");
  options = SIMILIS_SSIM_DEFAULTS;
  options.struct_size = 0;
  EXPECT_STREQ(refusal(options),
      "ssim: options.struct_size is 0; it must be the size of the struct, at most 112 bytes in "
      "this version of similis");
}

TEST(SsimCApi, AnOlderCallersStructHasDefaultsWhereItEnds) {
  Arrays arrays({1, 1, 16, 16});
  similis_tensor x = arrays.c(arrays.x), y = arrays.c(arrays.y), value = arrays.c(arrays.value);
  value.ndim = 0;
  similis_ssim_options older = SIMILIS_SSIM_DEFAULTS;
  older.struct_size = offsetof(similis_ssim_options, form);
  older.form = SIMILIS_FORM_LOSS;  // past the end of what this caller says it has
  ASSERT_EQ(similis_ssim(&x, &y, &older, nullptr, &value, nullptr, nullptr, nullptr), SIMILIS_OK);
  EXPECT_EQ(arrays.value[0], item(ssim(arrays.view(arrays.x), arrays.view(arrays.y))));
}

}  // namespace
}  // namespace similis
