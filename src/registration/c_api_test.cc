// SPDX-License-Identifier: Apache-2.0
// similis_register() has the bits of register_images(), and refuses what C alone can get wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "similis/c/register.h"
#include "similis/register.hpp"
#include "src/core/tensor/doubles.h"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

// A soft disc with waves, moved by `shift` voxels.
test::Array picture(double shift) {
  return test::make({1, 1, 40, 44}, DType::f32, test::Layout::dense, [&](std::int64_t i) {
    const double x = static_cast<double>(i % 44) - 21.5 - shift,
                 y = static_cast<double>(i / 44) - 19.5;
    return (1 + 0.5 * std::sin(x / 3) * std::cos(y / 4)) /
           (1 + std::exp(std::hypot(x, y) - 14 + 2 * std::sin(y / 6)));
  });
}

class CRegister : public ::testing::Test {
 protected:
  const test::Array own_ = picture(0), other_ = picture(2.5);
  const test::CTensor fixed_data_{own_}, moving_data_{other_};
  similis_volume fixed_ = {fixed_data_.get(), {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0}},
                 moving_ = {moving_data_.get(), {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0}};
  similis_register_options options_ = SIMILIS_REGISTER_DEFAULTS;
  similis_registration* found_ = nullptr;

  ~CRegister() override { similis_registration_destroy(found_); }
  similis_status run() { return similis_register(&fixed_, &moving_, &options_, &found_, nullptr); }
  void refused(const std::string& words) {
    EXPECT_EQ(run(), SIMILIS_INVALID_ARGUMENT);
    EXPECT_EQ(similis_last_error(), words);
    EXPECT_EQ(found_, nullptr);
  }
};

TEST_F(CRegister, HasTheBitsOfCpp) {
  const std::int32_t iterations[] = {9, 6}, levels[] = {2, 1};
  options_.iterations = iterations;
  options_.levels = levels;
  options_.iteration_count = options_.level_count = 2;
  std::vector<similis_register_progress> seen;
  options_.progress_context = &seen;
  options_.progress = [](void* context, const similis_register_progress* at) {
    static_cast<std::vector<similis_register_progress>*>(context)->push_back(*at);
    return std::int32_t{1};
  };
  ASSERT_EQ(run(), SIMILIS_OK) << similis_last_error();
  const AffineRows to_world = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0};
  const Registration expected = register_images(
      {own_, to_world}, {other_, to_world}, {.iterations = {9, 6}, .levels = {2, 1}});
  AffineRows affine;
  ASSERT_EQ(similis_registration_affine(found_, affine.data()), SIMILIS_OK);
  EXPECT_EQ(affine, expected.affine);
  EXPECT_EQ(similis_registration_has_displacement(found_), 1);
  const auto copied = [&](auto function, const Tensor& wanted) {
    const test::Array output = test::filled(wanted.shape, DType::f32, test::Layout::dense, 0);
    EXPECT_EQ(function(found_, test::CTensor(output).get()), SIMILIS_OK) << similis_last_error();
    EXPECT_EQ(to_doubles(output), to_doubles(wanted));
  };
  copied(similis_registration_displacement, expected.displacement);
  copied(similis_registration_inverse_displacement, expected.inverse_displacement);
  copied(similis_registration_warped, expected.warped);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().stage, SIMILIS_REGISTER_DEFORMABLE);
  EXPECT_EQ(seen.back().shrink, 1);
  EXPECT_GE(seen.back().min_jacobian, 0.1);

  const char* json = nullptr;
  ASSERT_EQ(similis_registration_report(found_, nullptr, nullptr, nullptr, nullptr, &json, nullptr),
      SIMILIS_OK);
  auto report = nlohmann::json::parse(json);
  EXPECT_FALSE(report.contains("similarity"));
  EXPECT_EQ(report["stages"][2]["levels"][0]["loss"], expected.stages[2].levels[0].loss);
  ASSERT_EQ(
      similis_registration_report(found_, &fixed_, &moving_, nullptr, nullptr, &json, nullptr),
      SIMILIS_OK);
  report = nlohmann::json::parse(json);
  EXPECT_GT(report["similarity"]["ncc"]["after"], 0.99);
  EXPECT_LT(report["similarity"]["ncc"]["before"], 0.95);
  EXPECT_GT(report["jacobian"]["min"], 0);
  EXPECT_EQ(report["settings"]["fluid"], 3);
  EXPECT_EQ(report["settings"]["iterations"], (std::vector<int>{9, 6}));
}

TEST_F(CRegister, TakesEveryOption) {
  const std::int32_t stages[] = {SIMILIS_REGISTER_DEFORMABLE};
  similis_metric_term terms[2] = {SIMILIS_METRIC_TERM_DEFAULTS, SIMILIS_METRIC_TERM_DEFAULTS};
  terms[0].metric = SIMILIS_REGISTER_MI;
  terms[0].num_bins = 16;
  terms[0].sampling = 0.5;
  terms[0].seed = 7;
  terms[1].metric = SIMILIS_REGISTER_MSE;
  terms[1].weight = 2;
  options_.stages = stages;
  options_.stage_count = 1;
  options_.metrics = terms;
  options_.metric_count = 2;
  options_.start = SIMILIS_REGISTER_START_GIVEN;
  options_.initial[3] = 4;
  options_.preset = SIMILIS_REGISTER_QUICK;
  options_.fluid = 2;
  options_.elastic = 0;
  ASSERT_EQ(run(), SIMILIS_OK) << similis_last_error();
  const AffineRows to_world = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0};
  AffineRows initial = kIdentityRows;
  initial[3] = 4;
  const Registration expected = register_images({own_, to_world}, {other_, to_world},
      {.stages = {RegisterStage::deformable},
          .start = RegisterStart::given,
          .initial = initial,
          .metrics = {{.metric = RegisterMetric::mi, .num_bins = 16, .sampling = 0.5, .seed = 7},
              {.metric = RegisterMetric::mse, .weight = 2}},
          .preset = RegisterPreset::quick,
          .fluid = 2,
          .elastic = 0});
  const test::Array output =
      test::filled(expected.displacement.shape, DType::f32, test::Layout::dense, 0);
  ASSERT_EQ(similis_registration_displacement(found_, test::CTensor(output).get()), SIMILIS_OK);
  EXPECT_EQ(to_doubles(output), to_doubles(expected.displacement));
}

TEST_F(CRegister, EndsWhereTheCallerSaysSo) {
  options_.progress = [](void*, const similis_register_progress* at) {
    return std::int32_t{at->stage != SIMILIS_REGISTER_DEFORMABLE};
  };
  ASSERT_EQ(run(), SIMILIS_OK);
  const char* json = nullptr;
  ASSERT_EQ(similis_registration_report(found_, nullptr, nullptr, nullptr, nullptr, &json, nullptr),
      SIMILIS_OK);
  const auto levels = nlohmann::json::parse(json)["stages"][2]["levels"];
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels[0]["stopped"], "callback");
}

TEST_F(CRegister, RefusesWhatCAloneCanGetWrong) {
  EXPECT_EQ(
      similis_register(nullptr, &moving_, nullptr, &found_, nullptr), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "register: fixed is NULL; it must be a volume");
  EXPECT_EQ(
      similis_register(&fixed_, &moving_, nullptr, nullptr, nullptr), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "register: registration is NULL; it must point to a pointer");
  options_.stage_count = 2;
  refused("register: stages is NULL but its count is 2; give as many elements");
  options_.stage_count = 0;
  options_.preset = 3;
  refused("register: preset is 3; it must be from 0 to 2");
  options_.preset = 0;
  options_.step = 0;
  refused("register: step is 0; it must be above 0 and up to 1");
  options_.step = 0.5;
  options_.linear_metric.sampling = 0;
  refused("register: sampling is 0; it must be a number above 0 and up to 1");
  options_.linear_metric.sampling = 1;
  const std::int32_t rigid[] = {SIMILIS_REGISTER_RIGID};
  options_.stages = rigid;
  options_.stage_count = 1;
  ASSERT_EQ(run(), SIMILIS_OK);
  EXPECT_EQ(similis_registration_has_displacement(found_), 0);
  EXPECT_EQ(similis_registration_displacement(found_, fixed_data_.get()), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(
      similis_last_error(), "register: there is no displacement without a deformable stage");
  const test::Array small = test::filled({1, 1, 3, 3}, DType::f32, test::Layout::dense, 0);
  EXPECT_EQ(
      similis_registration_warped(found_, test::CTensor(small).get()), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(),
      "register: output has shape [1, 1, 3, 3]; it must be dense, float32, on the CPU or the "
      "images' device, and have that of the warped image, [1, 1, 40, 44]");
}

}  // namespace
}  // namespace similis
