// SPDX-License-Identifier: Apache-2.0
// The fixture of LNCC's tests of the GPU alone, which are skipped, with a message, where there is
// no GPU.
#pragma once

#include <gtest/gtest.h>

#include "src/lncc/test_cases.h"

namespace similis::lncc_internal {

class LnccCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count(DeviceKind::cuda) == 0) GTEST_SKIP() << gpu::describe(DeviceKind::cuda);
  }
  const test::ScopedBackend chosen_{{.name = "CUDA", .on_gpu = true}};
};

// The results of the CPU, which other tests compare with the reference.
inline Reference on_cpu(const Pair& pair, const LnccRequest& request, const LnccOptions& options) {
  Reference result;
  {
    const test::ScopedBackend cpu({.name = "CPU"});
    result = computed(pair.x, pair.y, request, options);
  }
  test::runs_on_gpu() = true;  // as before: the end of a ScopedBackend chooses the CPU
  return result;
}

inline void expect_same_bits(const Reference& actual, const Reference& expected) {
  EXPECT_EQ(actual.value, expected.value);
  EXPECT_EQ(actual.x_gradient, expected.x_gradient);
  EXPECT_EQ(actual.y_gradient, expected.y_gradient);
}

}  // namespace similis::lncc_internal
