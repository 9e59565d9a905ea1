// SPDX-License-Identifier: Apache-2.0
// VMAF's features on the GPU against the loops that define them: all 64 bits. Skipped, with a
// message, where there is no GPU.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "similis/error.hpp"
#include "similis/vmaf.hpp"
#include "src/vmaf/clip.h"
#include "src/vmaf/gpu_meter.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/test_clips.h"
#include "tests/on_gpu.h"

namespace similis::vmaf_internal {
namespace {

using test::Layout;

constexpr Device kGpu = {DeviceKind::cuda, 0};

class VmafOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
};
class VmafCuda : public VmafOnGpu, public testing::WithParamInterface<Scene> {};

// Six gain limits and three settings: more than one pass takes.
std::vector<FeatureRequest> many_requests() {
  std::vector<FeatureRequest> requests;
  const auto add = [&](FeatureKind kind, const char* options) {
    requests.emplace_back(kind).set_all(options);
  };
  add(FeatureKind::motion, "");
  add(FeatureKind::motion, "motion_five_frame_window=true");
  for (const char* limit : {"100", "1", "1.3", "2", "5", "50"}) {
    add(FeatureKind::vif, (std::string("vif_enhn_gain_limit=") + limit).c_str());
  }
  add(FeatureKind::adm, "");
  add(FeatureKind::adm, "adm_enhn_gain_limit=1");
  add(FeatureKind::adm, "adm_ref_display_height=2160:adm_csf_mode=2:adm_enhn_gain_limit=1.2");
  return requests;
}

void expect_reference_sums(const PairSums& sums, const PlanePair& planes, const ClipPlan& plan) {
  EXPECT_TRUE(sums.vif == reference_vif(planes, plan.vif_limits));
  EXPECT_TRUE(sums.adm == reference_adm(planes, plan.adm_settings));
}

TEST_P(VmafCuda, SumsHaveTheBitsOfTheLoops) {
  const ClipPlan plan(many_requests());
  // Around tiles of 240 columns and 8 rows (vif), of 62×14 coefficients (adm) and the least sizes.
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {
      {33, 33}, {34, 35}, {63, 40}, {131, 57}, {241, 66}, {260, 37}, {501, 35}};
  for (const int bit_depth : {8, 10, 12, 16}) {
    for (const auto& [width, height] : sizes) {
      SCOPED_TRACE(testing::Message() << bit_depth << " bits, " << width << "x" << height);
      const TestPair pair(GetParam(), width, height, bit_depth);
      const PlanePair& planes = pair.planes();
      const auto meter = make_gpu_meter(plan, kGpu);
      const FrameSums first = meter->measure(planes.reference, {&planes.distorted, 1}, {});
      EXPECT_EQ(first.motion, (std::array<std::int64_t, 2>{}));
      expect_reference_sums(first.pairs.at(0), planes, plan);
      // The images change places, and the reference is compared with both.
      const std::vector<Plane> distorted = {planes.reference, planes.distorted};
      const FrameSums second = meter->measure(planes.distorted, distorted, {});
      expect_reference_sums(second.pairs.at(0), {planes.distorted, planes.reference}, plan);
      expect_reference_sums(second.pairs.at(1), {planes.distorted, planes.distorted}, plan);
      const std::int64_t sad = reference_motion_sad(planes.reference, planes.distorted);
      EXPECT_EQ(second.motion, (std::array<std::int64_t, 2>{sad, 0}));
      const FrameSums third = meter->measure(planes.reference, {}, {});
      EXPECT_TRUE(third.pairs.empty());
      EXPECT_EQ(third.motion, (std::array<std::int64_t, 2>{
                                  reference_motion_sad(planes.distorted, planes.reference), 0}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, VmafCuda, testing::ValuesIn(kScenes));

TEST_F(VmafOnGpu, VifAndMotionTakeTheLeastSizes) {
  std::vector<FeatureRequest> vif = {FeatureRequest(FeatureKind::vif)};
  const ClipPlan of_vif(vif);
  const ClipPlan of_motion(std::vector{FeatureRequest(FeatureKind::motion)});
  for (const int bit_depth : {8, 10, 16}) {
    for (const auto& [width, height] : {std::pair{16, 16}, {17, 33}, {33, 17}, {19, 64}}) {
      const TestPair pair(Scene::noise, width, height, bit_depth);
      const PlanePair& planes = pair.planes();
      const auto sums =
          make_gpu_meter(of_vif, kGpu)->measure(planes.reference, {&planes.distorted, 1}, {});
      EXPECT_TRUE(sums.pairs.at(0).vif == reference_vif(planes, of_vif.vif_limits));
    }
    for (const auto& [width, height] : {std::pair{3, 3}, {3, 70}, {5, 4}}) {
      const TestPair pair(Scene::noise, width, height, bit_depth);
      const PlanePair& planes = pair.planes();
      const auto meter = make_gpu_meter(of_motion, kGpu);
      meter->measure(planes.reference, {&planes.distorted, 1}, {});
      EXPECT_EQ(meter->measure(planes.distorted, {&planes.distorted, 1}, {}).motion[0],
          reference_motion_sad(planes.reference, planes.distorted));
    }
  }
}

TEST_F(VmafOnGpu, SkippingScaleZeroLeavesTheOthers) {
  const TestPair pair(Scene::textured, 101, 77, 8);
  const PlanePair& planes = pair.planes();
  std::vector<FeatureRequest> requests = {
      FeatureRequest(FeatureKind::vif), FeatureRequest(FeatureKind::adm)};
  requests[0].set("vif_skip_scale0", "true");
  requests[1].set("adm_skip_scale0", "true");
  const ClipPlan plan(requests);
  const FrameSums sums =
      make_gpu_meter(plan, kGpu)->measure(planes.reference, {&planes.distorted, 1}, {});
  VifSums vif = reference_vif(planes, plan.vif_limits);
  AdmSums adm = reference_adm(planes, plan.adm_settings);
  vif[0] = {.information = {0}};
  adm[0] = {.masked = {{}}};
  EXPECT_TRUE(sums.pairs.at(0).vif == vif);
  EXPECT_TRUE(sums.pairs.at(0).adm == adm);
}

test::Array clip(std::uint64_t seed, const Extents& shape, DType dtype = DType::u8,
    Layout layout = Layout::dense, double peak = 255) {
  return test::make(shape, dtype, layout, [&](std::int64_t i) {
    const double wave = 0.5 + 0.4 * std::sin(0.11 * static_cast<double>(i % 83));
    return std::floor(peak * (0.8 * wave + 0.2 * test::uniform(seed, i)));
  });
}

std::vector<double> from_gpu(const Tensor& scores) {
  EXPECT_EQ(scores.device, kGpu);
  std::vector<double> result(static_cast<std::size_t>(scores.shape.count()));
  gpu::copy_to_cpu(
      result.data(), scores.data(), result.size() * sizeof(double), scores.device, nullptr);
  return result;
}

TEST_F(VmafOnGpu, ScoresOfBatchesAreThoseOfTheCpu) {
  for (const Layout layout : {Layout::dense, Layout::permuted, Layout::reversed, Layout::sliced}) {
    const test::Array x = clip(1, {5, 40, 50}, DType::u8, layout);
    const test::Array y = clip(2, {5, 40, 50}, DType::u8, layout);
    const test::OnGpu gpu_x(x), gpu_y(y);
    EXPECT_EQ(from_gpu(vmaf(gpu_x.view(), gpu_y.view())), to_doubles(vmaf(x, y)))
        << test::name(layout);
  }
  const test::Array x = clip(1, {5, 40, 50}, DType::u16, Layout::reversed, 1023);
  const test::Array y = clip(2, {5, 40, 50}, DType::u16, Layout::sliced, 1023);
  const test::OnGpu gpu_x(x), gpu_y(y);
  const VmafOptions options{.models = {"vmaf_v0.6.1neg"}, .bit_depth = 10};
  EXPECT_EQ(from_gpu(vmaf(gpu_x.view(), gpu_y.view(), options)), to_doubles(vmaf(x, y, options)));
}

// All numbers of a clip, of which pushes take so many frames.
std::vector<std::vector<double>> numbers_of(
    const TensorView& x, const TensorView& y, const std::vector<std::int64_t>& pushes) {
  VmafScorer scorer(x.shape[1], x.shape[2],
      {.models = {"vmaf_v0.6.1", "version=vmaf_v0.6.1neg:name=neg"},
          .features = {"motion=motion_five_frame_window=true", "vif=debug=true"}});
  std::vector<std::vector<double>> numbers;
  const auto pop = [&] {
    while (const auto frame = scorer.pop()) numbers.push_back(frame->values);
  };
  std::int64_t first = 0;
  for (const std::int64_t count : pushes) {
    const auto part = [&](const TensorView& planes) {
      TensorView view = planes;
      view.shape[0] = count;
      view.offset += first * planes.strides[0];
      return view;
    };
    scorer.push(part(x), part(y));
    first += count;
    pop();
  }
  scorer.finish();
  pop();
  return numbers;
}

TEST_F(VmafOnGpu, PushesOfOneAndOfSeveralFramesAreAlike) {
  const test::Array x = clip(1, {6, 40, 50}), y = clip(2, {6, 40, 50});
  const auto expected = numbers_of(x, y, {1, 1, 1, 1, 1, 1});
  ASSERT_EQ(expected.size(), 6u);
  EXPECT_EQ(numbers_of(x, y, {6}), expected) << "on the CPU";
  const test::OnGpu gpu_x(x), gpu_y(y);
  for (const std::vector<std::int64_t>& pushes :
      {std::vector<std::int64_t>{6}, {1, 1, 1, 1, 1, 1}, {2, 3, 1}, {1, 4, 1}}) {
    EXPECT_EQ(numbers_of(gpu_x.view(), gpu_y.view(), pushes), expected);
  }
}

TEST_F(VmafOnGpu, PlanesOfTheHostHaveCambiToo) {
  const TestPair pair(Scene::textured, 230, 217, 8);
  const PlanePair& planes = pair.planes();
  std::vector<FeatureRequest> requests = {
      FeatureRequest(FeatureKind::cambi), FeatureRequest(FeatureKind::vif)};
  requests[0].set("full_ref", "true");
  const ClipPlan plan(requests);
  const FrameSums on_cpu = ClipMeter(plan).measure(planes.reference, {&planes.distorted, 1}, {});
  const FrameSums sums =
      make_gpu_meter(plan, kGpu)->measure(planes.reference, {&planes.distorted, 1}, {});
  EXPECT_EQ(sums.cambi, on_cpu.cambi);
  EXPECT_EQ(sums.pairs.at(0).cambi, on_cpu.pairs.at(0).cambi);
  EXPECT_TRUE(sums.pairs.at(0).vif == on_cpu.pairs.at(0).vif);
}

template <class Body> std::string refusal(const Body& body) {
  try {
    body();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing is refused";
}

TEST_F(VmafOnGpu, WhatIsNotThereIsRefused) {
  const test::Array x = clip(1, {3, 40, 50}, DType::u16, Layout::dense, 1023);
  const test::Array y = clip(2, {3, 40, 50}, DType::u16, Layout::dense, 1023);
  y.elements<std::uint16_t>()[2 * 2000 + 7] = 1024;
  const test::OnGpu gpu_x(x), gpu_y(y);
  EXPECT_EQ(refusal([&] { vmaf(gpu_x.view(), gpu_y.view(), {.bit_depth = 10}); }),
      "vmaf: distorted holds a sample of 1024; with bit_depth 10 none may be above 1023");
  EXPECT_EQ(refusal([&] { vmaf(gpu_x.view(), y); }),
      "vmaf: distorted is on cpu; it must be on cuda:0, as reference is");
  const test::OnGpu large(clip(1, {216, 216}));
  EXPECT_EQ(refusal([&] { vmaf(large.view(), large.view(), {.features = {"cambi"}}); }),
      "vmaf: cambi has no kernels for a GPU; give planes on the CPU");
  VmafScorer scorer(40, 50);
  scorer.push(gpu_x.view(), gpu_x.view());
  EXPECT_EQ(refusal([&] { scorer.push(x, x); }),
      "vmaf: reference is on cpu; it must be on cuda:0, as the scorer's earlier frames were");
}

TEST_F(VmafOnGpu, AScorerIsAsItWasAfterARefusal) {
  const test::Array x = clip(1, {4, 40, 50}, DType::u16, Layout::dense, 1023);
  const test::Array y = clip(2, {4, 40, 50}, DType::u16, Layout::dense, 1023);
  const test::Array high = clip(3, {2, 40, 50}, DType::u16, Layout::dense, 4000);
  const test::OnGpu gpu_x(x), gpu_y(y), gpu_high(high);
  const VmafOptions options{.bit_depth = 10};
  VmafScorer scorer(40, 50, options);
  const auto part = [](const TensorView& planes, std::int64_t first) {
    TensorView view = planes;
    view.shape[0] = 2;
    view.offset += first * planes.strides[0];
    return view;
  };
  scorer.push(part(gpu_x.view(), 0), part(gpu_y.view(), 0));
  EXPECT_THROW(scorer.push(gpu_high.view(), gpu_high.view()), InvalidArgument);
  scorer.push(part(gpu_x.view(), 2), part(gpu_y.view(), 2));
  scorer.finish();
  std::vector<double> scores;
  while (const auto frame = scorer.pop()) scores.push_back(frame->values.back());
  EXPECT_EQ(scores, to_doubles(vmaf(x, y, options)));
}

TEST_F(VmafOnGpu, NumbersAreLibvmafs) {
  const Recorded data = recorded();
  if (data.figures.is_null()) {
    GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
  }
  for (const char* name : {"src01", "src01_10", "small"}) {
    SCOPED_TRACE(name);
    const nlohmann::json& recorded_case = data.figures["cases"][name];
    const RecordedClip clip(data, recorded_case);
    std::vector<FeatureRequest> requests = {FeatureRequest(FeatureKind::adm),
        FeatureRequest(FeatureKind::vif), FeatureRequest(FeatureKind::motion),
        FeatureRequest(FeatureKind::adm), FeatureRequest(FeatureKind::vif)};
    requests[3].set("adm_enhn_gain_limit", "1");
    requests[4].set("vif_enhn_gain_limit", "1");
    Clip of_gpu(requests, {}, clip.width(), clip.height());
    const auto meter = make_gpu_meter(of_gpu.plan(), kGpu);
    std::int64_t seen = 0;
    const auto compare = [&] {
      while (const auto frame = of_gpu.pop()) {
        const std::vector<double> values = values_of(*frame);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::string column = of_gpu.columns()[i];
          if (!recorded_case["columns"].contains(column)) continue;
          EXPECT_EQ(values[i], recorded_case["columns"][column][frame->index].get<double>())
              << column << " of frame " << frame->index;
          ++seen;
        }
      }
    };
    // A frame of 576×324 takes a while where a GPU is only played.
    const std::int64_t frames = std::min<std::int64_t>(clip.frames(), 3);
    for (std::int64_t i = 0; i < frames; ++i) {
      const PlanePair planes = clip.frame(i);
      const FrameSums sums = meter->measure(planes.reference, {&planes.distorted, 1}, {});
      of_gpu.push(sums, sums.pairs.data());
      compare();
    }
    EXPECT_GT(seen, 0);
  }
}

}  // namespace
}  // namespace similis::vmaf_internal
