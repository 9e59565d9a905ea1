// SPDX-License-Identifier: Apache-2.0
// vmaf(), VmafScorer and their C entries against each other and against libvmaf's figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "similis/c/vmaf.h"
#include "similis/error.hpp"
#include "similis/vmaf.hpp"
#include "src/vmaf/cambi/cambi.h"
#include "src/vmaf/test_clips.h"
#include "tests/arrays.h"
#include "tests/c_tensor.h"

namespace similis {
namespace {

using test::Layout;

test::Array clip(std::uint64_t seed, const Extents& shape, DType dtype = DType::u8,
    Layout layout = Layout::dense, double peak = 255) {
  return test::make(shape, dtype, layout, [&](std::int64_t i) {
    const double wave = 0.5 + 0.4 * std::sin(0.11 * static_cast<double>(i % 83));
    return std::floor(peak * (0.8 * wave + 0.2 * test::uniform(seed, i)));
  });
}

TEST(VmafApi, ScoresAreThoseOfTheScorer) {
  const test::Array x = clip(1, {5, 40, 50}), y = clip(2, {5, 40, 50});
  const std::vector<double> expected = to_doubles(vmaf(x, y));
  VmafScorer scorer(40, 50, {.features = {"motion=motion_five_frame_window=true"}});
  EXPECT_EQ(scorer.columns().back(), "vmaf");
  EXPECT_EQ(scorer.columns().front(), "integer_adm2");
  std::vector<double> scores;
  const auto pop = [&] {
    while (const auto numbers = scorer.pop()) {
      EXPECT_EQ(numbers->frame, static_cast<std::int64_t>(scores.size()));
      ASSERT_EQ(numbers->values.size(), scorer.columns().size());
      scores.push_back(numbers->values.back());
    }
  };
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto frame = [&](const TensorView& planes) {
      TensorView view = planes.reshaped({40, 50}, {50, 1});
      view.offset += i * 2000;
      return view;
    };
    scorer.push(frame(x), frame(y));
    pop();
    EXPECT_GE(static_cast<std::int64_t>(scores.size()), i - 1) << "two frames later at most";
  }
  scorer.finish();
  pop();
  EXPECT_EQ(scores, expected);
}

TEST(VmafApi, PlanesMayLieAnyhowAndBeWords) {
  const std::vector<double> expected = to_doubles(vmaf(clip(1, {3, 40, 50}), clip(2, {3, 40, 50})));
  for (const Layout layout : {Layout::permuted, Layout::reversed, Layout::sliced, Layout::offset}) {
    const test::Array x = clip(1, {3, 40, 50}, DType::u8, layout);
    const test::Array y = clip(2, {3, 40, 50}, DType::u8, layout);
    EXPECT_EQ(to_doubles(vmaf(x, y)), expected) << test::name(layout);
  }
  const test::Array x = clip(1, {3, 40, 50}, DType::u16, Layout::reversed);
  const test::Array y = clip(2, {3, 40, 50}, DType::u16, Layout::sliced);
  EXPECT_EQ(to_doubles(vmaf(x, y, {.bit_depth = 8})), expected);
}

TEST(VmafApi, AScorerTakesFramesOfOneKind) {
  VmafScorer scorer(40, 50, {.bit_depth = 8});
  const auto frame = [](std::uint64_t seed, DType dtype) { return clip(seed, {40, 50}, dtype); };
  scorer.push(frame(1, DType::u8), frame(2, DType::u8));
  try {
    scorer.push(frame(1, DType::u16), frame(2, DType::u16));
    FAIL() << "nothing is refused";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
        "vmaf: reference is uint16; it must be uint8, as the scorer's earlier frames were");
  }
}

TEST(VmafApi, SeveralFramesInAPushAreFramesOneByOne) {
  const test::Array x = clip(1, {3, 40, 50}), y = clip(2, {3, 40, 50});
  VmafScorer scorer(40, 50);
  scorer.push(x, y);
  scorer.finish();
  std::vector<double> scores;
  while (const auto numbers = scorer.pop()) scores.push_back(numbers->values.back());
  EXPECT_EQ(scores, to_doubles(vmaf(x, y)));
}

TEST(VmafApi, FourTimesTheCodeValuesInTenBitsAreTheSame) {
  const test::Array x = clip(1, {2, 45, 50}), y = clip(2, {2, 45, 50});
  const auto words = [](const test::Array& planes) {
    const std::vector<double> samples = to_doubles(planes);
    return test::make(planes.shape, DType::u16, Layout::dense,
        [&](std::int64_t i) { return 4 * samples[static_cast<std::size_t>(i)]; });
  };
  EXPECT_EQ(to_doubles(vmaf(words(x), words(y), {.bit_depth = 10})), to_doubles(vmaf(x, y)));
}

TEST(VmafApi, OnePlaneHasOneScore) {
  const test::Array x = clip(1, {40, 50}), y = clip(2, {40, 50});
  const Tensor score = vmaf(x, y, {.models = {"version=vmaf_v0.6.1neg:name=n"}});
  EXPECT_EQ(score.shape.rank(), 0);
  EXPECT_GT(item(score), 0);
  EXPECT_NE(item(score), item(vmaf(x, y)));
}

TEST(VmafApi, CambiIsAFeatureOfClips) {
  const test::Array x = clip(1, {40, 220}), y = clip(2, {40, 220});
  VmafScorer scorer(40, 220, {.models = {}, .features = {"cambi=full_ref=true", "vif"}});
  ASSERT_GE(scorer.columns().size(), 3u);
  EXPECT_EQ(scorer.columns()[0], "cambi");
  EXPECT_EQ(scorer.columns()[2], "cambi_full_reference");
  scorer.push(x, y);
  const auto numbers = scorer.pop();
  ASSERT_TRUE(numbers.has_value());
  const auto score = [](const TensorView& view) {
    const vmaf_internal::Plane plane{view.data(), 220, 220, 40};
    return vmaf_internal::CambiMeter({}).measure(plane, {});
  };
  EXPECT_EQ(numbers->values[0], score(y));
  EXPECT_EQ(numbers->values[1], score(x));
  EXPECT_EQ(numbers->values[2], std::max(0.0, score(y) - score(x)));
}

TEST(VmafApi, RefusesInOneSentence) {
  const test::Array x = clip(1, {2, 40, 50});
  const auto refusal = [&](const TensorView& a, const TensorView& b, const VmafOptions& options) {
    try {
      vmaf(a, b, options);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_EQ(refusal(x, clip(1, {2, 40, 51}), {}),
      "vmaf: distorted has shape [2, 40, 51]; it must be that of reference, [2, 40, 50]");
  EXPECT_EQ(refusal(clip(1, {2, 40, 50}, DType::f32), x, {}),
      "vmaf: reference is float32; it must be uint8 or uint16");
  EXPECT_EQ(refusal(clip(1, {2, 32, 50}), clip(1, {2, 32, 50}), {}),
      "vmaf: adm: frames are 50×32; width and height must be at least 33");
  EXPECT_EQ(refusal(x, x, {.bit_depth = 10}), "vmaf: bit_depth is 10; it must be 8 for uint8");
  EXPECT_EQ(refusal(x, x, {.models = {}}), "vmaf: models is empty; name one at least");
  EXPECT_THAT(refusal(x, x, {.models = {"vmaf_v7"}}),
      testing::StartsWith("vmaf: there is no model vmaf_v7; those there are: vmaf_v0.6.1, "));
  EXPECT_EQ(refusal(x, x, {.features = {"ssim"}}),
      "vmaf: there is no feature \"ssim\"; those there are: adm, cambi, motion, vif");
  const test::Array high = clip(1, {2, 40, 50}, DType::u16, Layout::dense, 1024);
  EXPECT_THAT(refusal(high, high, {.bit_depth = 8}),
      testing::HasSubstr("; with bit_depth 8 none may be above 255"));
}

TEST(VmafApi, CIsTheSame) {
  const test::Array x = clip(1, {3, 40, 50}), y = clip(2, {3, 40, 50});
  const std::vector<double> expected = to_doubles(vmaf(x, y));
  std::vector<double> scores(3);
  const test::CTensor reference(x), distorted(y), value(TensorView(scores.data(), {3}, DType::f64));
  ASSERT_EQ(
      similis_vmaf(reference.get(), distorted.get(), nullptr, value.get(), nullptr), SIMILIS_OK)
      << similis_last_error();
  EXPECT_EQ(scores, expected);

  const char* models[] = {"vmaf_v0.6.1", "vmaf_v0.6.1neg"};
  similis_vmaf_options options = SIMILIS_VMAF_DEFAULTS;
  options.models = models;
  options.model_count = 2;
  similis_vmaf_scorer* scorer = nullptr;
  EXPECT_EQ(similis_vmaf_scorer_create(40, 50, &options, &scorer), SIMILIS_INVALID_ARGUMENT);
  EXPECT_STREQ(similis_last_error(), "vmaf: two models are named vmaf; give one a name with name=");
  EXPECT_EQ(scorer, nullptr);
  models[1] = "version=vmaf_v0.6.1neg:name=neg";
  ASSERT_EQ(similis_vmaf_scorer_create(40, 50, &options, &scorer), SIMILIS_OK);
  const std::int64_t columns = similis_vmaf_scorer_column_count(scorer);
  EXPECT_STREQ(similis_vmaf_scorer_column(scorer, columns - 1), "neg");
  EXPECT_EQ(similis_vmaf_scorer_column(scorer, columns), nullptr);
  const test::CTensor one(x.reshaped({40, 50}, {50, 1})), other(y.reshaped({40, 50}, {50, 1}));
  ASSERT_EQ(similis_vmaf_scorer_push(scorer, one.get(), other.get(), nullptr), SIMILIS_OK);
  std::vector<double> values(static_cast<std::size_t>(columns));
  std::int64_t frame = 0;
  ASSERT_EQ(similis_vmaf_scorer_pop(scorer, &frame, values.data()), SIMILIS_OK);
  EXPECT_EQ(frame, -1);
  ASSERT_EQ(similis_vmaf_scorer_finish(scorer), SIMILIS_OK);
  ASSERT_EQ(similis_vmaf_scorer_pop(scorer, &frame, values.data()), SIMILIS_OK);
  EXPECT_EQ(frame, 0);
  EXPECT_EQ(values[values.size() - 2], to_doubles(vmaf(x, y))[0]);
  similis_vmaf_scorer_destroy(scorer);
}

}  // namespace
}  // namespace similis
