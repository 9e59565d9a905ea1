// SPDX-License-Identifier: Apache-2.0
// Models: what their files may hold, and what is made of a regression's score.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "similis/error.hpp"
#include "src/vmaf/clip.h"
#include "src/vmaf/model/model.h"
#include "src/vmaf/test_clips.h"

namespace similis::vmaf_internal {
namespace {

using nlohmann::json;

// Two inputs, two support vectors.
json small_model() {
  return {{"model_dict",
      {{"model",
           "svm_type nu_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho -1.5\nSV\n"
           "2 1:0.25 2:0.5 \n-1 2:1 \n"},
          {"feature_names",
              {"VMAF_integer_feature_adm2_score", "VMAF_integer_feature_motion2_score"}},
          {"norm_type", "linear_rescale"}, {"slopes", {0.5, 2.0, 4.0}},
          {"intercepts", {-0.5, 0.125, -1.0}}, {"score_clip", {0.0, 100.0}}}}};
}

Model parsed(const json& file, const std::string& request = "path=x:name=m") {
  return parse_model(file.dump(), parse_model_request(request), "x");
}

void expect_refusal(const json& file, const std::string& part) {
  try {
    parsed(file);
    FAIL() << part;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
    EXPECT_THAT(error.what(), testing::StartsWith("x: "));
  }
}

TEST(VmafModel, PredictsByItsFormula) {
  const Model model = parsed(small_model());
  const double a = 2 * 0.75 + 0.125, b = 4 * 0.5 - 1.0;
  const double expected = (2 * std::exp(-0.5 * ((a - 0.25) * (a - 0.25) + (b - 0.5) * (b - 0.5))) -
                              std::exp(-0.5 * (a * a + (b - 1) * (b - 1))) + 1.5 + 0.5) /
                          0.5;
  EXPECT_DOUBLE_EQ(model.regressions[0].predict(std::vector<double>{0.75, 0.5}), expected);
}

TEST(VmafModel, TransformsThenClips) {
  json file = small_model();
  json& dict = file["model_dict"];
  dict["score_transform"] = {{"p0", 1.0}, {"p1", 2.0}, {"p2", 0.5}, {"out_gte_in", "true"}};
  EXPECT_EQ(parsed(file).regressions[0].transformed(4), 4) << "it is not enabled";
  const Model enabled = parsed(file, "path=x:enable_transform");
  EXPECT_EQ(enabled.regressions[0].transformed(4), 1 + 8 + 8);
  EXPECT_EQ(enabled.regressions[0].transformed(40), 100) << "clipped";
  EXPECT_EQ(enabled.regressions[0].transformed(-2), 0) << "1 - 4 + 2 is above -2, then clipped";
  EXPECT_EQ(
      parsed(file, "path=x:enable_transform=true:disable_clip").regressions[0].transformed(40),
      881);
  dict["score_transform"] = {
      {"enabled", true}, {"knots", {{0, 0}, {10, 20}, {20, 20}, {30, 50}}}, {"out_lte_in", "true"}};
  const Model bounded = parsed(file, "path=x:disable_clip");
  EXPECT_EQ(bounded.regressions[0].transformed(5), 5) << "not above its input";
  dict["score_transform"].erase("out_lte_in");
  const Regression free = parsed(file, "path=x:disable_clip").regressions[0];
  EXPECT_EQ(free.transformed(5), 10);
  EXPECT_EQ(free.transformed(15), 20);
  EXPECT_EQ(free.transformed(25), 35);
  EXPECT_EQ(free.transformed(40), 80) << "the outer pieces go on";
  EXPECT_EQ(free.transformed(-1), -2);
}

TEST(VmafModel, RefusesWhatIsNoModel) {
  expect_refusal(json::array(), "it is not a VMAF model: it has no model_dict");
  json file = small_model();
  file["model_dict"]["feature_names"][1] = "speed_chroma";
  expect_refusal(file, "its feature speed_chroma is not here");
  file = small_model();
  file["model_dict"]["model"] = "svm_type c_svc\nSV\n1 1:1\n";
  expect_refusal(file, "svm_type is c_svc, not nu_svr");
  file["model_dict"]["model"] = "svm_type nu_svr\nSV\n1 3:1\n";
  expect_refusal(file, "\"3:1\" is not the place of a support vector");
  file["model_dict"]["model"] = "svm_type nu_svr\nrho 1\n";
  expect_refusal(file, "it has no support vectors");
  file = small_model();
  file["model_dict"]["slopes"] = {1.0};
  expect_refusal(file, "slopes and intercepts must be one of the score and one of each feature");
  file = small_model();
  file["model_dict"]["norm_type"] = "clip_0to1";
  expect_refusal(file, "norm_type is clip_0to1, not linear_rescale or none");
  file = small_model();
  file["model_dict"].erase("model");
  expect_refusal(file, "it is not a VMAF model: ");
}

TEST(VmafModel, ASetHasItsMembersAndStatistics) {
  const json one = small_model();
  json two = one;
  two["model_dict"]["intercepts"][0] = 0.5;
  const Model model = parsed({{"0", one}, {"1", one}, {"2", two}});
  EXPECT_THAT(model.member_columns(), testing::ElementsAre("m_0001", "m_0002", "m_bagging",
                                          "m_stddev", "m_ci_p95_lo", "m_ci_p95_hi"));
  const std::vector<double> scores = member_scores(model, std::vector<double>{50, 10, 20});
  ASSERT_EQ(scores.size(), 6u);
  EXPECT_EQ(scores[0], 10);
  EXPECT_EQ(scores[2], 15);
  EXPECT_NEAR(scores[3], 5, 1e-9);
  EXPECT_DOUBLE_EQ(scores[4], 10.25);
  EXPECT_DOUBLE_EQ(scores[5], 19.75);
}

TEST(VmafModel, BuiltInModelsAreWhole) {
  for (const BuiltInModel& model : built_in_models()) {
    const Model loaded = load_model(parse_model_request("version=" + std::string(model.version)));
    EXPECT_EQ(loaded.regressions.size(), loaded.source == "vmaf_b_v0.6.3" ? 21u : 1u);
  }
}

// Two models and a feature of their own: one pass, and no frame waits for more than two others.
TEST(VmafClip, GivesScoresTwoFramesLaterAtMost) {
  FeatureRequest five(FeatureKind::motion);
  five.set("motion_five_frame_window", "true");
  Clip clip({five, FeatureRequest(FeatureKind::motion)}, {}, 40, 36);
  const TestPair a(Scene::textured, 40, 36, 8), b(Scene::noise, 40, 36, 8);
  std::vector<std::int64_t> ready;
  for (int i = 0; i < 6; ++i) {
    clip.push(i % 2 == 0 ? a.planes() : b.planes(), true, {});
    int count = 0;
    while (const auto frame = clip.pop()) {
      EXPECT_EQ(frame->index, static_cast<std::int64_t>(ready.size()));
      ready.push_back(frame->index);
      ++count;
    }
    EXPECT_GE(static_cast<int>(ready.size()), i - 1);
  }
  clip.finish();
  while (clip.pop()) ready.push_back(0);
  EXPECT_EQ(ready.size(), 6u);
}

}  // namespace
}  // namespace similis::vmaf_internal
