// SPDX-License-Identifier: Apache-2.0
// The results of libvmaf for real video: its ssim in all bits, its other features in all digits
// that it prints.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "similis/error.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "src/libvmaf_ssim/libvmaf_ssim.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"
#ifdef SIMILIS_HAS_VULKAN
#include "src/gpu/vulkan/test_device.h"
#endif

namespace similis::libvmaf_ssim_internal {
namespace {

using Json = nlohmann::json;

// The folder of the test data: beside the source tree unless the environment names it; empty if it
// does not exist.
std::filesystem::path test_data() {
  const char* folder = std::getenv("SIMILIS_TEST_DATA");
  const std::filesystem::path data = folder ? folder : SIMILIS_SOURCE_DIR "/../shared/data";
  return std::filesystem::exists(data / "golden.json") ? data : std::filesystem::path();
}

std::vector<char> bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A raw clip, planes one after the other, and its reference.
struct Clip {
  Clip(const std::filesystem::path& folder, const Json& golden)
      : name(golden.at("ref")),
        reference(bytes_of(folder / golden.at("ref").get<std::string>())),
        distorted(bytes_of(folder / golden.at("dist").get<std::string>())),
        width(golden.at("width")),
        height(golden.at("height")),
        bit_depth(golden.at("depth")),
        has_chroma(golden.at("chroma") == "420") {}

  std::int64_t sample_bytes() const { return bit_depth > 8 ? 2 : 1; }
  std::int64_t frame_samples() const { return width * height * (has_chroma ? 3 : 2) / 2; }

  /// Plane 0, 1 or 2 of a frame.
  TensorView plane(const std::vector<char>& clip, std::int64_t frame, int index) const {
    const std::int64_t luma = width * height;
    const std::int64_t samples_before = frame * (has_chroma ? frame_samples() : luma) +
                                        (index == 0 ? 0 : luma + (index - 1) * luma / 4);
    const Extents shape = index == 0 ? Extents{height, width} : Extents{height / 2, width / 2};
    EXPECT_LE(
        (samples_before + shape.count()) * sample_bytes(), static_cast<std::int64_t>(clip.size()));
    return {clip.data() + samples_before * sample_bytes(), shape,
        bit_depth > 8 ? DType::u16 : DType::u8};
  }

  std::string name;
  std::vector<char> reference, distorted;
  std::int64_t width, height;
  int bit_depth;
  bool has_chroma;
};

class LibvmafGolden : public testing::Test {
 protected:
  void SetUp() override {
    data_ = test_data();
    if (data_.empty()) GTEST_SKIP() << "no ../shared/data, and SIMILIS_TEST_DATA names no folder";
    golden_ = Json::parse(std::ifstream(data_ / "golden.json")).at("video");
    ASSERT_FALSE(golden_.empty());
  }

  template <class Check> void for_each_clip(const Check& check) {
    for (const Json& golden : golden_) {
      const Clip clip(data_ / "video", golden);
      SCOPED_TRACE(clip.name);
      check(clip, golden);
    }
  }

  std::filesystem::path data_;
  Json golden_;
};

TEST_F(LibvmafGolden, SsimHasTheBits) {
  std::size_t frames = 0;
  for_each_clip([&](const Clip& clip, const Json& golden) {
    const Json& hex = golden.at("ssim_hex");
    for (const test::Backend& backend : test::backends()) {
      const test::ScopedBackend chosen(backend);
      for (const int threads : {1, 2, 7}) {
        ThreadPool pool(threads);
        for (std::size_t frame = 0; frame < hex.size(); ++frame) {
          const auto at = static_cast<std::int64_t>(frame);
          const double expected = std::strtod(hex[frame].get<std::string>().c_str(), nullptr);
          const double score = item(
              integer_ssim(clip.plane(clip.reference, at, 0), clip.plane(clip.distorted, at, 0),
                  {.bit_depth = clip.bit_depth}, {.runner = pool.runner()}));
          ASSERT_EQ(std::bit_cast<std::uint64_t>(score), std::bit_cast<std::uint64_t>(expected))
              << "frame " << frame << ", " << backend.name << ", threads: " << threads;
          ++frames;
        }
      }
    }
  });
  EXPECT_GT(frames, 0u);
}

TEST_F(LibvmafGolden, SsimOnTheGpuHasTheBits) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  for_each_clip([&](const Clip& clip, const Json& golden) {
    const Json& hex = golden.at("ssim_hex");
    for (std::size_t frame = 0; frame < hex.size(); ++frame) {
      const auto at = static_cast<std::int64_t>(frame);
      const test::OnGpu x(clip.plane(clip.reference, at, 0)), y(clip.plane(clip.distorted, at, 0));
      const Tensor score = integer_ssim(x.view(), y.view(), {.bit_depth = clip.bit_depth});
      double found = 0;
      gpu::copy_to_cpu(&found, score.data(), sizeof found, score.device, nullptr);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(found),
          std::bit_cast<std::uint64_t>(std::strtod(hex[frame].get<std::string>().c_str(), nullptr)))
          << "frame " << frame;
    }
  });
}

#ifdef SIMILIS_HAS_VULKAN
TEST_F(LibvmafGolden, SsimThroughVulkanHasTheBits) {
  if (gpu::device_count(DeviceKind::vulkan) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
  for (const test::TestDevice& device : test::devices_of_each_arithmetic()) {
    for_each_clip([&](const Clip& clip, const Json& golden) {
      const Json& hex = golden.at("ssim_hex");
      for (std::size_t frame = 0; frame < hex.size(); ++frame) {
        const auto at = static_cast<std::int64_t>(frame);
        const double score =
            item(integer_ssim(clip.plane(clip.reference, at, 0), clip.plane(clip.distorted, at, 0),
                {.bit_depth = clip.bit_depth}, {.queue = device.queue()}));
        EXPECT_EQ(std::bit_cast<std::uint64_t>(score),
            std::bit_cast<std::uint64_t>(
                std::strtod(hex[frame].get<std::string>().c_str(), nullptr)))
            << "frame " << frame << ' ' << gpu::vulkan::verdict(device.arithmetic());
      }
    });
  }
}
#endif

// A number as libvmaf prints it.
double printed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value);
  return std::strtod(text, nullptr);
}

// value(frame) against the list of a feature's numbers.
template <class Value> void expect_digits(const Json& numbers, const Value& value) {
  ASSERT_FALSE(numbers.empty());
  for (std::size_t frame = 0; frame < numbers.size(); ++frame) {
    EXPECT_EQ(printed(value(static_cast<std::int64_t>(frame))), numbers[frame].get<double>())
        << "frame " << frame;
  }
}

void expect_float_ssim(const Clip& clip, const Json& features, int scale) {
  const auto member = [&](TensorView FloatSsimRequest::*wanted) {
    return [&clip, scale, wanted](std::int64_t frame) {
      const Tensor result = allocate({}, DType::f64);
      FloatSsimRequest request;
      request.*wanted = result;
      float_ssim_into(clip.plane(clip.reference, frame, 0), clip.plane(clip.distorted, frame, 0),
          request, {.bit_depth = clip.bit_depth, .scale = scale});
      return item(result);
    };
  };
  expect_digits(features.at("float_ssim"), member(&FloatSsimRequest::value));
  if (!features.contains("float_ssim_l")) return;
  expect_digits(features.at("float_ssim_l"), member(&FloatSsimRequest::luminance));
  expect_digits(features.at("float_ssim_c"), member(&FloatSsimRequest::contrast));
  expect_digits(features.at("float_ssim_s"), member(&FloatSsimRequest::structure));
}

TEST_F(LibvmafGolden, FloatSsimHasTheDigits) {
  const std::pair<const char*, int> features[] = {
      {"float_ssim", 0}, {"float_ssim=scale=1", 1}, {"float_ssim=scale=2:enable_lcs=true", 2}};
  int clips = 0;
  for_each_clip([&](const Clip& clip, const Json& golden) {
    for (const auto& [feature, scale] : features) {
      if (!golden.contains(feature)) continue;
      SCOPED_TRACE(feature);
      expect_float_ssim(clip, golden.at(feature), scale);
      ++clips;
    }
  });
  EXPECT_GT(clips, 0);
}

TEST_F(LibvmafGolden, FloatMsSsimHasTheDigitsOrIsRefused) {
  int scored = 0, refused = 0;
  for_each_clip([&](const Clip& clip, const Json& golden) {
    if (!golden.contains("float_ms_ssim")) return;
    const auto score = [&](std::int64_t frame) {
      return item(float_ms_ssim(clip.plane(clip.reference, frame, 0),
          clip.plane(clip.distorted, frame, 0), {.bit_depth = clip.bit_depth}));
    };
    const Json& feature = golden.at("float_ms_ssim");
    if (feature.contains("error")) {
      EXPECT_THROW(score(0), InvalidArgument);
      ++refused;
    } else {
      expect_digits(feature.at("float_ms_ssim"), score);
      ++scored;
    }
  });
  EXPECT_GT(scored, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(LibvmafGolden, PsnrOfEachPlaneHasTheDigits) {
  int planes = 0;
  for_each_clip([&](const Clip& clip, const Json& golden) {
    if (!golden.contains("psnr")) return;
    const char* names[] = {"psnr_y", "psnr_cb", "psnr_cr"};
    for (int index = 0; index < 3; ++index) {
      SCOPED_TRACE(names[index]);
      expect_digits(golden.at("psnr").at(names[index]), [&](std::int64_t frame) {
        return item(libvmaf_psnr(clip.plane(clip.reference, frame, index),
            clip.plane(clip.distorted, frame, index), {.bit_depth = clip.bit_depth}));
      });
      ++planes;
    }
  });
  EXPECT_GT(planes, 0);
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
