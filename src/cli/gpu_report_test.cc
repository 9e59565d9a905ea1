// SPDX-License-Identifier: Apache-2.0
// `similis info --report`, of small pictures.
#include "src/cli/gpu_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "src/gpu/device.h"

namespace similis::cli {
namespace {

using testing::Each;
using testing::Le;
using testing::SizeIs;
using testing::StartsWith;

// The numbers that follow these words in the text.
std::vector<double> numbers_after(const std::string& text, const std::string& words) {
  std::vector<double> numbers;
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1))
    numbers.push_back(std::strtod(text.c_str() + at + words.size(), nullptr));
  return numbers;
}

TEST(GpuReport, TellsBitsErrorsAndTimes) {
  const auto devices = static_cast<std::size_t>(gpu::device_count(DeviceKind::vulkan));
  const std::string report = gpu_report({}, 165, 171);
  if (devices == 0) {
    EXPECT_EQ(report, gpu::describe(DeviceKind::vulkan) + "\n");
    GTEST_SKIP() << report;
  }
  EXPECT_THAT(report, StartsWith("vulkan:0 is "));
  EXPECT_THAT(numbers_after(report, "171×165: the CPU's bits, "), SizeIs(5 * devices)) << report;
  const std::vector<double> values = numbers_after(report, "171×165: value off by ");
  EXPECT_THAT(values, SizeIs(3 * devices)) << report;
  EXPECT_THAT(values, Each(Le(1e-6))) << report;
  EXPECT_THAT(numbers_after(report, ", gradient by "), Each(Le(1e-5))) << report;
}

}  // namespace
}  // namespace similis::cli
