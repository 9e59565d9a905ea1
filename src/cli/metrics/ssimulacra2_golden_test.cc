// SPDX-License-Identifier: Apache-2.0
// Scores that the reference program of SSIMULACRA 2.1 prints for files of pictures, to all its 8
// decimals.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "similis/ssimulacra2.hpp"
#include "src/cli/test_program.h"
#include "src/media/picture/decode.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"
#ifdef SIMILIS_HAS_VULKAN
#include "src/gpu/vulkan/test_device.h"
#endif

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

// The folder of the test data: SIMILIS_TEST_DATA, or beside the source tree; empty if there is
// none.
fs::path test_data() {
  const char* folder = std::getenv("SIMILIS_TEST_DATA");
  const fs::path data = folder ? folder : SIMILIS_SOURCE_DIR "/../shared/data";
  return fs::exists(data / "golden.json") ? data : fs::path();
}

TensorView view_of(const media::Image& image) {
  const bool is_bytes = image.bit_depth == 8;
  const void* samples = is_bytes ? static_cast<const void*>(image.samples8.data())
                                 : static_cast<const void*>(image.samples16.data());
  return {samples, {image.channels, image.height, image.width},
      {1, image.width * image.channels, image.channels}, is_bytes ? DType::u8 : DType::u16};
}

double score(const TensorView& x, const TensorView& y, const Execution& exec) {
  if (!test::runs_on_gpu()) return item(ssimulacra2(x, y, {}, exec));
  const test::OnGpu gpu_x(x), gpu_y(y);
  return item(ssimulacra2(gpu_x.view(), gpu_y.view(), {}, exec));
}

#ifdef SIMILIS_SANITIZED
constexpr std::array kThreadCounts = {7};  // a sanitizer makes each run ten times longer
#else
constexpr std::array kThreadCounts = {1, 2, 7};
#endif

std::string with_8_decimals(double score) { return fmt::format("{:.8f}", score); }

class Ssimulacra2Golden : public ProgramTest {
 protected:
  void SetUp() override {
    if (test_data().empty()) {
      GTEST_SKIP() << "there is no golden.json; SIMILIS_TEST_DATA says where";
    }
    golden_ = Json::parse(std::ifstream(test_data() / "golden.json")).at("ssimulacra2");
    ASSERT_FALSE(golden_.empty());
  }

  // check(reference, distorted, score), of two paths and the score that the program prints.
  template <class Check> void for_each_pair(const Check& check) const {
    const fs::path images = fs::absolute(test_data() / "images");
    for (const auto& [files, score] : golden_.items()) {  // "source.png q45.jpg"
      SCOPED_TRACE(files);
      const std::size_t space = files.find(' ');
      check((images / files.substr(0, space)).string(), (images / files.substr(space + 1)).string(),
          with_8_decimals(static_cast<double>(score)));
    }
  }

  Json golden_;
};

TEST_F(Ssimulacra2Golden, EveryDecimalOfTheReferenceProgram) {
  for_each_pair(
      [](const std::string& reference, const std::string& distorted, const std::string& expected) {
        const media::Image x = media::read_image(reference), y = media::read_image(distorted);
        for (const test::Backend& backend : test::backends(test::Gpu::included)) {
          const test::ScopedBackend chosen(backend);
          for (const int threads : kThreadCounts) {
            ThreadPool pool(threads);
            const double actual = score(view_of(x), view_of(y), {.runner = pool.runner()});
            EXPECT_EQ(with_8_decimals(actual), expected) << backend.name;
          }
        }
      });
}

TEST_F(Ssimulacra2Golden, TheProgramHasThemFromAGpu) {
  if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  for_each_pair(
      [&](const std::string& reference, const std::string& distorted, const std::string& expected) {
        const Json document = json({reference, distorted, "-m", "ssimulacra2", "--device", "cuda"});
        EXPECT_EQ(document["device"], "cuda:0");
        EXPECT_EQ(with_8_decimals(document["frames"][0]["ssimulacra2"].get<double>()), expected);
      });
}

#ifdef SIMILIS_HAS_VULKAN
class Ssimulacra2GoldenThroughVulkan : public Ssimulacra2Golden {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::vulkan) == 0)
      GTEST_SKIP() << gpu::describe(DeviceKind::vulkan);
    Ssimulacra2Golden::SetUp();
  }
};

TEST_F(Ssimulacra2GoldenThroughVulkan, TheProgramHasThem) {
  for_each_pair([&](const std::string& reference, const std::string& distorted,
                    const std::string& expected) {
    const auto scored = [&](const char* device) {
      const Json document = json({reference, distorted, "-m", "ssimulacra2", "--device", device});
      EXPECT_EQ(document["device"], device);
      return document["frames"][0]["ssimulacra2"].get<double>();
    };
    const double score = scored("vulkan:0");
    EXPECT_EQ(with_8_decimals(score), expected);
    EXPECT_EQ(score, scored("cpu"));
  });
}

TEST_F(Ssimulacra2GoldenThroughVulkan, EveryDecimalByIntegers) {
  for_each_pair(
      [](const std::string& reference, const std::string& distorted, const std::string& expected) {
        const media::Image x = media::read_image(reference), y = media::read_image(distorted);
        // The first is the device as it is, which the program uses.
        for (const test::TestDevice& device :
            std::span(test::devices_of_each_arithmetic()).subspan(1)) {
          const Tensor score = ssimulacra2(view_of(x), view_of(y), {}, {.queue = device.queue()});
          EXPECT_EQ(with_8_decimals(item(score)), expected)
              << gpu::vulkan::verdict(device.arithmetic());
        }
      });
}
#endif

}  // namespace
}  // namespace similis::cli
