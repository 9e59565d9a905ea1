// SPDX-License-Identifier: Apache-2.0
// VIF, ADM and motion on every SIMD target and with any number of threads against the loops that
// define them, and those against libvmaf's own figures: all 64 bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "src/vmaf/adm/adm.h"
#include "src/vmaf/fused_products.h"
#include "src/vmaf/motion/motion.h"
#include "src/vmaf/test_clips.h"
#include "src/vmaf/test_features.h"
#include "src/vmaf/vif/formula.h"
#include "src/vmaf/vif/plan.h"
#include "src/vmaf/vif/vif.h"
#include "tests/backends.h"

namespace similis::vmaf_internal {
namespace {

const std::vector<double> kLimits = {100, 1, 1.3};
const std::vector<AdmSetting> kSettings = {{}, {.gain_limit = 1},
    {.gain_limit = 1.2, .view_distance = 5}, {.display_height = 2160, .csf_mode = 2}};

// Kept for all tests: starting threads takes longer than small planes do.
std::vector<ParallelRunner> runners() {
  static ThreadPool one(1), two(2), seven(7);
  return {one.runner(), two.runner(), seven.runner()};
}

// body(exec) for every SIMD target and number of threads.
template <class Body> void on_every_backend(const Body& body) {
  for (const test::Backend& backend : test::backends()) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    for (const ParallelRunner& runner : runners()) body(Execution{.runner = runner});
  }
}

VifSums vif_of(const PlanePair& planes, std::span<const double> limits, bool skips_scale0,
    const Execution& exec) {
  Workspace workspace;
  return vif_by_tasks(
      planes.reference, {&planes.distorted, 1}, limits, skips_scale0, workspace, exec)[0];
}
AdmSums adm_of(const PlanePair& planes, std::span<const AdmSetting> settings, bool skips_scale0,
    const Execution& exec) {
  Workspace workspace;
  return adm_by_tasks(
      planes.reference, {&planes.distorted, 1}, settings, skips_scale0, workspace, exec)[0];
}

class VmafFeatures : public testing::TestWithParam<Scene> {
 protected:
  template <class Body>
  static void for_planes(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& sizes, const Body& body) {
    for (const int bit_depth : {8, 10, 12, 16}) {
      for (const auto& [width, height] : sizes) {
        SCOPED_TRACE(testing::Message() << bit_depth << " bits, " << width << "x" << height);
        body(TestPair(GetParam(), width, height, bit_depth).planes());
      }
    }
  }
};

TEST_P(VmafFeatures, VifHasTheBitsOfTheLoops) {
  for_planes({{16, 16}, {17, 33}, {33, 17}, {19, 64}, {251, 67}, {40, 131}, {519, 34}},
      [](const PlanePair& planes) {
        const VifSums expected = reference_vif(planes, kLimits);
        on_every_backend([&](const Execution& exec) {
          EXPECT_TRUE(vif_of(planes, kLimits, false, exec) == expected);
        });
      });
}

TEST_P(VmafFeatures, AdmHasTheBitsOfTheLoops) {
  for_planes({{33, 33}, {34, 35}, {63, 40}, {131, 257}, {300, 67}}, [](const PlanePair& planes) {
    const AdmSums expected = reference_adm(planes, kSettings);
    on_every_backend([&](const Execution& exec) {
      EXPECT_TRUE(adm_of(planes, kSettings, false, exec) == expected);
    });
  });
}

TEST_P(VmafFeatures, MotionHasTheBitsOfTheLoops) {
  for_planes({{3, 3}, {3, 70}, {5, 4}, {64, 33}, {131, 150}}, [](const PlanePair& planes) {
    const std::int64_t expected = reference_motion_sad(planes.reference, planes.distorted);
    EXPECT_GT(expected, 0);
    on_every_backend([&](const Execution& exec) {
      EXPECT_EQ(motion_sad_by_tasks(planes.reference, planes.distorted, exec), expected);
    });
  });
}

TEST_P(VmafFeatures, SeveralDistortedPlanesHaveTheBitsOfEach) {
  for_planes({{33, 33}, {251, 67}}, [](const PlanePair& planes) {
    const TestPair second(Scene::checked, planes.reference.width, planes.reference.height,
        planes.reference.bit_depth);
    const std::vector<Plane> distorted = {
        planes.distorted, second.planes().distorted, planes.reference, planes.distorted};
    std::vector<VifSums> vif;
    std::vector<AdmSums> adm;
    for (const Plane& plane : distorted) {
      vif.push_back(reference_vif({planes.reference, plane}, kLimits));
      adm.push_back(reference_adm({planes.reference, plane}, kSettings));
    }
    on_every_backend([&](const Execution& exec) {
      Workspace workspace;
      EXPECT_TRUE(
          vif_by_tasks(planes.reference, distorted, kLimits, false, workspace, exec) == vif);
      EXPECT_TRUE(
          adm_by_tasks(planes.reference, distorted, kSettings, false, workspace, exec) == adm);
      const std::span one(&distorted[1], 1);  // in memory that more have used
      EXPECT_TRUE(
          vif_by_tasks(planes.reference, one, kLimits, false, workspace, exec)[0] == vif[1]);
      EXPECT_TRUE(
          adm_by_tasks(planes.reference, one, kSettings, false, workspace, exec)[0] == adm[1]);
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Scenes, VmafFeatures, testing::ValuesIn(kScenes));

TEST(VmafFeature, HasTheSameBitsForAnyNumberOfThreads) {
  const TestPair pair(Scene::noise, 251, 67, 10);
  const PlanePair planes = pair.planes();
  const VifSums vif = vif_of(planes, kLimits, false, {});
  const AdmSums adm = adm_of(planes, kSettings, false, {});
  const std::int64_t motion = motion_sad_by_tasks(planes.reference, planes.distorted, {});
  on_every_backend([&](const Execution& exec) {
    EXPECT_TRUE(vif_of(planes, kLimits, false, exec) == vif);
    EXPECT_TRUE(adm_of(planes, kSettings, false, exec) == adm);
    EXPECT_EQ(motion_sad_by_tasks(planes.reference, planes.distorted, exec), motion);
  });
}

// Rows whose smoothed differences have 16 bits are filtered in one part, others in two.
TEST(VmafFeature, MotionOfDifferencesAboutHalfTheRangeHasTheBitsOfTheLoops) {
  constexpr std::int64_t width = 71, height = 9;
  for (const int bit_depth : {8, 12}) {
    const int unit = 1 << (bit_depth - 8);
    for (const int difference : {127, 128, 255, -128, -129, -255}) {
      std::vector<std::uint16_t> earlier, later;
      for (std::int64_t i = 0; i < width * height; ++i) {
        const bool is_still = i / width > 5 && i % width > 30;
        earlier.push_back(static_cast<std::uint16_t>(difference > 0 ? difference * unit : 0));
        later.push_back(static_cast<std::uint16_t>(is_still         ? earlier.back()
                                                   : difference > 0 ? 0
                                                                    : -difference * unit));
      }
      const std::vector<std::uint8_t> earlier8(earlier.begin(), earlier.end());
      const std::vector<std::uint8_t> later8(later.begin(), later.end());
      const auto plane = [&](const auto& words, const auto& bytes) {
        return bit_depth == 8 ? Plane{bytes.data(), width, width, height, false, 8}
                              : Plane{words.data(), width, width, height, true, bit_depth};
      };
      const Plane a = plane(earlier, earlier8), b = plane(later, later8);
      const std::int64_t expected = reference_motion_sad(a, b);
      EXPECT_GT(expected, 0);
      on_every_backend([&](const Execution& exec) {
        EXPECT_EQ(motion_sad_by_tasks(a, b, exec), expected)
            << bit_depth << " bits, " << difference;
      });
    }
  }
}

TEST(VmafFeature, StripesAreEqualAndEvenInNumber) {
  for (std::int64_t rows = 1; rows < 700; ++rows) {
    const std::int64_t stripe = equal_stripe_rows(rows, 64), count = (rows + stripe - 1) / stripe;
    EXPECT_TRUE(stripe % 2 == 0 && stripe >= 2 && stripe <= 64) << rows;
    if (rows > 400) {
      EXPECT_LT(count * stripe - rows, stripe / 2) << rows;
      EXPECT_EQ(count % 2, 0) << rows;
    }
  }
  EXPECT_EQ(equal_stripe_rows(1080, 128), 108);
  EXPECT_EQ(equal_stripe_rows(135, 64), 34);
}

TEST(VmafFeature, HasTheSameBitsWithoutFusedProducts) {
  const TestPair narrow(Scene::noise, 251, 67, 8), wide(Scene::noise, 251, 67, 12);
  bool& fuses = fuses_products();
  const bool is_fused = fuses;
  for (const TestPair* pair : {&narrow, &wide}) {
    const VifSums vif = reference_vif(pair->planes(), kLimits);
    const AdmSums adm = reference_adm(pair->planes(), kSettings);
    for (const bool is_chosen : {false, is_fused}) {
      fuses = is_chosen;
      on_every_backend([&](const Execution& exec) {
        EXPECT_TRUE(vif_of(pair->planes(), kLimits, false, exec) == vif);
        EXPECT_TRUE(adm_of(pair->planes(), kSettings, false, exec) == adm);
      });
    }
  }
}

TEST(VmafFeature, SkippingScaleZeroLeavesTheOthers) {
  const TestPair pair(Scene::textured, 101, 77, 8);
  const Execution exec{.runner = serial_runner()};
  VifSums vif = vif_of(pair.planes(), kLimits, true, exec);
  VifSums all_vif = reference_vif(pair.planes(), kLimits);
  EXPECT_EQ(vif[0].reference_information, 0);
  all_vif[0] = vif[0];
  EXPECT_TRUE(vif == all_vif);
  AdmSums adm = adm_of(pair.planes(), kSettings, true, exec);
  AdmSums all_adm = reference_adm(pair.planes(), kSettings);
  EXPECT_EQ(adm[0].reference[0], 0);
  all_adm[0] = adm[0];
  EXPECT_TRUE(adm == all_adm);
}

TEST(VmafFeature, VifLogarithmIsTheTables) {
  std::int64_t sum = 0;
  for (std::size_t i = 32768; i < 65536; ++i) sum += vif_logarithms()[i];
  EXPECT_EQ(sum, 1044032097);
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 32768; i < 65536; ++i) {
    for (const int shift : {2, 3, 7, 8, 9, 14, 15, 16}) {
      const std::uint32_t first = i << shift, last = first + (1u << shift) - 1;
      numbers.insert(numbers.end(), {first, first + i % (1u << shift), last - 1, last});
    }
  }
  std::vector<std::uint32_t> logs(numbers.size());
  on_every_backend([&](const Execution&) {
    vif_logarithms_cpu(numbers.data(), logs.data(), numbers.size());
    for (std::size_t i = 0; i < logs.size(); ++i) {
      ASSERT_EQ(logs[i], vif_logarithm(numbers[i])) << numbers[i];
    }
  });
}

TEST(VmafFeature, NumbersAreLibvmafs) {
  const Recorded data = recorded();
  if (data.figures.is_null()) {
    GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
  }
  const std::vector<AdmSetting> settings = {{}, {.gain_limit = 1}};
  const std::vector<double> limits = {100, 1};
  Workspace workspace;  // of frames of all sizes
  for (const char* name : {"src01", "src01_10", "small"}) {
    const nlohmann::json& recorded_case = data.figures["cases"][name];
    const nlohmann::json& columns = recorded_case["columns"];
    const RecordedClip clip(data, recorded_case);
    for (std::int64_t frame = 0; frame < clip.frames(); ++frame) {
      SCOPED_TRACE(testing::Message() << name << " frame " << frame);
      const auto at = static_cast<std::size_t>(frame);
      const auto expect = [&](const std::string& column, double value) {
        EXPECT_EQ(value, columns[column][at].get<double>()) << column;
      };
      const PlanePair planes = clip.frame(frame);
      const std::span distorted(&planes.distorted, 1);
      const VifSums vif =
          vif_by_tasks(planes.reference, distorted, limits, false, workspace, {})[0];
      const AdmSums adm =
          adm_by_tasks(planes.reference, distorted, settings, false, workspace, {})[0];
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string suffix = i == 0 ? "" : "_egl_1";
        const VifScores of_vif = vif_scores(vif, i, false);
        const AdmScores of_adm = adm_scores(adm, i, settings[i], {}, clip.width(), clip.height());
        for (int scale = 0; scale < 4; ++scale) {
          const std::string end = std::to_string(scale) + suffix;
          expect("integer_vif_scale" + end, of_vif.score(scale));
          expect("integer_adm_scale" + end, of_adm.score(scale));
        }
        expect("integer_adm2" + suffix, of_adm.adm2);
        expect("integer_aim" + suffix, of_adm.aim);
        expect("integer_adm3" + suffix, of_adm.adm3);
      }
      if (frame == 0) continue;
      const std::int64_t sad =
          motion_sad_by_tasks(clip.frame(frame - 1).reference, planes.reference, {});
      expect("VMAF_integer_feature_motion_sad_score",
          static_cast<double>(sad) / 256 / static_cast<double>(clip.width() * clip.height()));
    }
  }
}

}  // namespace
}  // namespace similis::vmaf_internal
