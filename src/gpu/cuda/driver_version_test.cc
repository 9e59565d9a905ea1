// SPDX-License-Identifier: Apache-2.0
#include "src/gpu/cuda/driver_version.h"

#include <gtest/gtest.h>

namespace similis::gpu {
namespace {

TEST(DriverVersion, AnOlderOneIsNamedBesideTheOneThatIsNeeded) {
  EXPECT_EQ(why_driver_is_unfit(12040, 13000),
      "the NVIDIA driver knows CUDA 12.4, and similis needs 13.0: driver 580 or newer");
  EXPECT_EQ(why_driver_is_unfit(13000, 14020),
      "the NVIDIA driver knows CUDA 13.0, and similis needs 14.2");
  EXPECT_EQ(why_driver_is_unfit(0, 13000), "there is no NVIDIA driver");
  EXPECT_EQ(why_driver_is_unfit(13000, 13000), "");
  EXPECT_EQ(why_driver_is_unfit(13010, 13000), "");
}

}  // namespace
}  // namespace similis::gpu
