// SPDX-License-Identifier: Apache-2.0
// PSNR-HVS, CIEDE2000 and CAMBI on every SIMD target and with any number of threads against the
// loops that define them. libvmaf's figures of all three are in the test of the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "similis/error.hpp"
#include "src/vmaf/cambi/cambi.h"
#include "src/vmaf/ciede/ciede.h"
#include "src/vmaf/psnr_hvs/psnr_hvs.h"
#include "src/vmaf/test_clips.h"
#include "tests/backends.h"

namespace similis::vmaf_internal {
namespace {

template <class Body> void on_every_backend(const Body& body) {
  static ThreadPool one(1), two(2), seven(7);
  for (const test::Backend& backend : test::backends()) {
    SCOPED_TRACE(backend.name);
    const test::ScopedBackend chosen(backend);
    for (ThreadPool* pool : {&one, &two, &seven}) {
      body(Execution{.runner = pool->runner()});
    }
  }
}

class FrameFeatures : public testing::TestWithParam<Scene> {};

TEST_P(FrameFeatures, PsnrHvsHasTheBitsOfTheLoops) {
  for (const int bit_depth : {8, 10, 12}) {
    for (const auto& [width, height] : {std::pair{8, 8}, {15, 8}, {64, 23}, {131, 150}}) {
      const TestPair pair(GetParam(), width, height, bit_depth);
      for (int component = 0; component < 3; ++component) {
        const float expected = reference_psnr_hvs(pair.planes(), component);
        EXPECT_GT(expected, 0);
        const std::string size = std::to_string(width) + "x" + std::to_string(height);
        on_every_backend([&](const Execution& exec) {
          EXPECT_EQ(psnr_hvs_cpu(pair.planes(), component, exec), expected)
              << bit_depth << " bits, " << size;
        });
      }
    }
  }
}

// Luma of the scene; chroma of noise, and of grey.
struct ColorPair {
  ColorPair(
      Scene scene, std::int64_t width, std::int64_t height, int bit_depth, int shift_x, int shift_y)
      : luma(scene, width, height, bit_depth),
        blue(Scene::noise, shifted(width, shift_x), shifted(height, shift_y), bit_depth),
        red(Scene::textured, shifted(width, shift_x), shifted(height, shift_y), bit_depth) {
    const auto planes = [&](bool is_reference) {
      const auto of = [&](const TestPair& pair) {
        return is_reference ? pair.planes().reference : pair.planes().distorted;
      };
      return ColorPlanes{{of(luma), of(blue), of(red)}, shift_x, shift_y};
    };
    reference = planes(true);
    distorted = planes(false);
  }
  static std::int64_t shifted(std::int64_t extent, int shift) {  // rounded up
    return (extent + (1 << shift) - 1) >> shift;
  }
  TestPair luma, blue, red;
  ColorPlanes reference, distorted;
};

TEST_P(FrameFeatures, CiedeIsThatOfTheLoopsAndTheSameEverywhere) {
  for (const int bit_depth : {8, 10, 12, 16}) {
    for (const auto& [x, y] : {std::pair{1, 1}, {1, 0}, {0, 0}, {2, 2}}) {
      const ColorPair pair(GetParam(), 293, 5, bit_depth, x, y);  // more than a block wide
      const double expected = reference_ciede(pair.reference, pair.distorted);
      EXPECT_GT(expected, 0.1);
      const double first = ciede_cpu(pair.reference, pair.distorted, {});
      EXPECT_NEAR(ciede_score(first), ciede_score(expected), 1e-7) << bit_depth;
      on_every_backend([&](const Execution& exec) {
        EXPECT_EQ(ciede_cpu(pair.reference, pair.distorted, exec), first);
      });
    }
  }
}

// A frame of one colour has one rounding in all its pixels, which others cannot make up for.
TEST(FrameFeature, CiedeOfOneColourIsThatOfTheLoops) {
  int far = 0;
  constexpr int count = 2000;
  for (int i = 0; i < count; ++i) {
    std::array<std::uint8_t, 6> codes;
    for (std::size_t k = 0; k < codes.size(); ++k) {
      codes[k] = static_cast<std::uint8_t>(256 * test::uniform(k, i));
      if (k >= 3 && i % 2 == 0) {
        codes[k] = static_cast<std::uint8_t>(std::min(255, codes[k - 3] + codes[k] % 5));
      }
    }
    ColorPlanes x, y;
    for (std::size_t k = 0; k < 3; ++k) {
      x.planes[k] = {&codes[k], 1, 1, 1, false, 8};
      y.planes[k] = {&codes[k + 3], 1, 1, 1, false, 8};
    }
    const double expected = reference_ciede(x, y), value = ciede_cpu(x, y, {});
    EXPECT_NEAR(value, expected, 1e-4 * expected + 1e-12);
    far += std::abs(value - expected) > 1e-7 * expected ? 1 : 0;
  }
  EXPECT_LE(far, 2) << "of " << count << ": where a root is next to a halfway case of floats";
}

TEST_P(FrameFeatures, CambiIsThatOfTheLoops) {
  for (const auto& setting : {CambiSetting{}, CambiSetting{.window_size = 120,
                                              .top_share = 0.2,
                                              .least_luminance = 1,
                                              .max_log_contrast = 4,
                                              .encoded_bits = 10,
                                              .eotf = Eotf::pq}}) {
    for (const int bit_depth : {8, 10, 16}) {
      const TestPair pair(GetParam(), 219, 131, bit_depth);
      const double expected = reference_cambi(pair.planes().distorted, setting);
      on_every_backend([&](const Execution& exec) {
        EXPECT_NEAR(
            CambiMeter(setting).measure(pair.planes().distorted, exec), expected, 1e-12 * expected);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, FrameFeatures, testing::ValuesIn(kScenes));

TEST(FrameFeature, IsTheSameForAnyNumberOfThreads) {
  const ColorPair frames(Scene::noise, 219, 131, 10, 1, 1);
  const PlanePair luma = frames.luma.planes();
  const float psnr_hvs = psnr_hvs_cpu(luma, 0, {});
  const double ciede = ciede_cpu(frames.reference, frames.distorted, {});
  const double cambi = CambiMeter({}).measure(luma.distorted, {});
  on_every_backend([&](const Execution& exec) {
    EXPECT_EQ(psnr_hvs_cpu(luma, 0, exec), psnr_hvs);
    EXPECT_EQ(ciede_cpu(frames.reference, frames.distorted, exec), ciede);
    EXPECT_EQ(CambiMeter({}).measure(luma.distorted, exec), cambi);
  });
}

// Areas of one value each, a step apart: banding, which none of the scenes has.
std::vector<std::uint16_t> banded(std::int64_t width, std::int64_t height, std::int64_t band) {
  std::vector<std::uint16_t> samples;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      samples.push_back(static_cast<std::uint16_t>(80 + (x + y / 3) / band % 40 + (y / 50) * 90));
    }
  }
  return samples;
}

TEST(FrameFeature, CambiSeesBands) {
  constexpr std::int64_t width = 301, height = 217;
  for (const std::int64_t band : {11, 97}) {  // within a window; wider than one
    const std::vector<std::uint16_t> samples = banded(width, height, band);
    const Plane plane{samples.data(), width, width, height, true, 10};
    for (const auto& setting : {CambiSetting{}, CambiSetting{.window_size = 127},
             CambiSetting{.top_share = 1, .threshold = 0.005, .max_log_contrast = 0}}) {
      const double expected = reference_cambi(plane, setting);
      EXPECT_GT(expected, 0);
      CambiMeter meter(setting);  // which keeps what it counted of the last frame
      on_every_backend([&](const Execution& exec) {
        EXPECT_NEAR(meter.measure(plane, exec), expected, 1e-12 * expected);
      });
    }
  }
}

// With a low threshold every step is seen, up to the greatest value, and noise has all of them.
TEST(FrameFeature, CambiSeesStepsOfTheBrightest) {
  constexpr std::int64_t width = 230, height = 61;
  std::vector<std::uint16_t> samples(width * height);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<std::uint16_t>(1023 - i / 7 * 2654435761u / 65536 % 6);
  }
  const Plane plane{samples.data(), width, width, height, true, 10};
  const CambiSetting setting{.threshold = 0.0001, .max_log_contrast = 5};
  const double expected = reference_cambi(plane, setting);
  EXPECT_GT(expected, 0);
  on_every_backend([&](const Execution& exec) {
    EXPECT_NEAR(CambiMeter(setting).measure(plane, exec), expected, 1e-12 * expected);
  });
}

// A meter measures what it would have measured first.
TEST(FrameFeature, CambiForgetsTheFrameBefore) {
  CambiMeter meter({});
  for (const std::int64_t width : {230, 301, 301, 217}) {
    for (const std::int64_t band : {5, 11, 97}) {
      const std::vector<std::uint16_t> samples = banded(width, 290, band);
      const Plane plane{samples.data(), width, width, 290, true, 10};
      const double score = meter.measure(plane, {});
      EXPECT_GT(score, 0);
      EXPECT_EQ(score, CambiMeter({}).measure(plane, {}));
    }
  }
}

TEST(FrameFeature, CambiKnowsWhereAStepIsSeen) {
  const CambiLimits limits = cambi_limits({});
  ASSERT_EQ(limits.largest.size(), 4u);
  EXPECT_EQ(limits.least, 0);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GT(limits.largest[i], limits.largest[i - 1]);
  EXPECT_EQ(cambi_limits({.threshold = 1}).largest[0], 0) << "no step doubles the light";
  EXPECT_EQ(cambi_limits({.threshold = 0.0001}).largest[0], 1023) << "any";
  EXPECT_EQ(cambi_window({}, 3840, 2160).radius, 32);
  EXPECT_EQ(cambi_window({}, 1920, 1080).radius, 16);
  EXPECT_EQ(cambi_window({.halves_height = 1080}, 1920, 1080).radius, 8);
  EXPECT_EQ(cambi_least_flat(1920, 1080), 21);
}

TEST(FrameFeature, EqualFramesHaveNoError) {
  const TestPair pair(Scene::textured, 40, 30, 8);
  const PlanePair equal{pair.planes().reference, pair.planes().reference};
  EXPECT_EQ(psnr_hvs_cpu(equal, 0, {}), 0);
  EXPECT_EQ(psnr_hvs_decibels(0), std::numeric_limits<double>::infinity());
  const ColorPair colors(Scene::textured, 40, 30, 8, 0, 0);
  EXPECT_EQ(ciede_cpu(colors.reference, colors.reference, {}), 0);
  EXPECT_EQ(ciede_score(0), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace similis::vmaf_internal
