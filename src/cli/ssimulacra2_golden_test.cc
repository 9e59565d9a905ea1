// SPDX-License-Identifier: Apache-2.0
// What the reference program of SSIMULACRA 2.1 prints about pictures in files, to all its 8
// decimals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "similis/ssimulacra2.hpp"
#include "src/media/decode.h"
#include "tests/backends.h"
#include "tests/on_gpu.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

// Where the test data lies: beside the source tree unless said; empty if it is not there.
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

TEST(Ssimulacra2Golden, EveryDecimalOfTheReferenceProgram) {
  const fs::path data = test_data();
  if (data.empty()) GTEST_SKIP() << "there is no golden.json; SIMILIS_TEST_DATA says where";
  const auto golden = nlohmann::json::parse(std::ifstream(data / "golden.json"));
  ASSERT_FALSE(golden.at("ssimulacra2").empty());
  for (const auto& [files, value] : golden.at("ssimulacra2").items()) {  // "source.png q45.jpg"
    SCOPED_TRACE(files);
    const std::size_t space = files.find(' ');
    const media::Image x = media::read_image((data / "images" / files.substr(0, space)).string());
    const media::Image y = media::read_image((data / "images" / files.substr(space + 1)).string());
    const std::string expected = fmt::format("{:.8f}", value.get<double>());
    for (const test::Backend& backend : test::backends(test::Gpu::included)) {
      const test::Chosen chosen(backend);
      for (const int threads : {1, 2, 7}) {
        ThreadPool pool(threads);
        const double actual = score(view_of(x), view_of(y), {.runner = pool.runner()});
        EXPECT_EQ(fmt::format("{:.8f}", actual), expected) << backend.name;
      }
    }
  }
}

}  // namespace
}  // namespace similis::cli
