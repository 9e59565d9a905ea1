// SPDX-License-Identifier: Apache-2.0
// One line of the metric table, on a metric made up for the test.
#include "src/cli/metrics/metric.h"

#include <gtest/gtest.h>

#include "similis/execution.hpp"
#include "src/core/option_value.h"
#include "tests/refusal.h"

namespace similis::cli {
namespace {

struct ToyOptions {
  std::optional<double> data_range;
  int power = 2;
  bool is_signed = false;
  Padding padding = Padding::valid;
  Reduction reduction = Reduction::mean;
};

// Tells what it was called with.
Tensor toy(const TensorView& x, const TensorView&, const ToyOptions& options, const Execution&) {
  const bool is_map = options.reduction == Reduction::none;
  const Tensor result = allocate(is_map ? x.shape : Extents{}, DType::f64);
  for (std::int64_t i = 0; i < result.shape.count(); ++i) {
    result.elements<double>()[i] = *options.data_range + options.power +
                                   (options.is_signed ? 1000 : 0) +
                                   (options.padding == Padding::renormalize ? 5000 : 0);
  }
  return result;
}

// The C struct that would carry the options.
struct ToyStruct {
  std::size_t struct_size;
  double data_range;
  std::int32_t power, is_signed;
};

Metric toy_metric() {
  using similis::option;
  static constexpr similis::Option kRows[] = {
      option<&ToyOptions::data_range, &ToyStruct::data_range>("data_range", kAbove0, "range"),
      option<&ToyOptions::power, &ToyStruct::power>("power", kAnyNumber, "exponent"),
      option<&ToyOptions::is_signed, &ToyStruct::is_signed>("is_signed", "sign")};
  static constexpr OperationTable kTable{.name = "toy", .options = kRows};
  return metric(
      "toy", "a toy", ListedOperation{&kTable, false}, toy, MapRange{.best = 0, .worst = 10});
}

FramePair frames() {
  const Tensor plane = allocate({1, 1, 2, 3}, DType::f32);
  return {plane, plane, 65535};
}

TEST(Metric, DescribesItsOptions) {
  const Metric metric = toy_metric();
  ASSERT_EQ(metric.options.size(), 3u);
  EXPECT_EQ(metric.options[0].default_value, "");
  EXPECT_EQ(metric.options[1].takes, "a number");
  EXPECT_EQ(metric.options[1].default_value, "2");
  EXPECT_EQ(metric.options[2].takes, "true or false");
  EXPECT_EQ(metric.options[2].default_value, "false");
}

TEST(Metric, CallsTheFunctionWithItsSettingsAndThePicturesRange) {
  const Metric metric = toy_metric();
  EXPECT_EQ(metric.configure({}).value(frames(), {}), 65535 + 2);
  const Measure measure =
      metric.configure({{"power", "-3"}, {"is_signed", "true"}, {"data_range", "100"}});
  EXPECT_EQ(measure.value(frames(), {}), 100 - 3 + 1000);
  EXPECT_EQ(measure.settings(65535),
      (Settings{{"data_range", "100"}, {"power", "-3"}, {"is_signed", "true"}}));
  EXPECT_EQ(metric.configure({}).settings(std::nullopt)[0].second, "null");
  test::expect_refusal(
      [&] {
        metric.configure({{"power", "1.5"}});
      },
      "power is \"1.5\"; it must be a number");
}

TEST(Metric, AMapIsAsLargeAsTheImage) {
  const Tensor map = toy_metric().configure({}).map(frames(), {});
  EXPECT_EQ(map.shape, (Extents{1, 1, 2, 3}));
  EXPECT_EQ(*map.elements<double>(), 65535 + 2 + 5000);
}

TEST(Metric, MayHaveNeitherOptionsNorMap) {
  const Metric plain = metric(
      "plain", "plain", operation("mse"),
      +[](const TensorView&, const TensorView&, Reduction reduction, const Execution&) {
        const Tensor result = allocate({}, DType::f32);
        *result.elements<float>() = reduction == Reduction::mean ? 0.5F : 0;
        return result;
      });
  EXPECT_EQ(plain.configure({}).value(frames(), {}), 0.5);
  EXPECT_FALSE(plain.configure({}).map);
  EXPECT_TRUE(plain.configure({}).settings(255).empty());
}

}  // namespace
}  // namespace similis::cli
