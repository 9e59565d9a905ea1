// SPDX-License-Identifier: Apache-2.0
// The results of libvmaf 3.2.0 for planes that a formula makes, so that no file is needed: its ssim
// in all bits, float_ssim, float_ms_ssim and psnr_y in all digits that it prints. Made with its C
// library, built with -Denable_float=true and its `ssim` added to its list of features.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "src/libvmaf_ssim/test_planes.h"
#include "tests/backends.h"

namespace similis::libvmaf_ssim_internal {
namespace {

struct Figures {
  Scene scene;
  Extents shape;
  int bit_depth;
  double ssim, float_ssim;
  std::optional<double> float_ms_ssim;  // empty if it is NaN
  double psnr;
};

// Scenes without a sine, whose last digit a C library may round as it likes.
const Figures kFigures[] = {
    {Scene::noise, {176, 200}, 8, 0x1.d8f9dfde08038p-8, 0.009654, 0.104431, 7.731296},
    {Scene::noise, {200, 178}, 10, 0x1.d267a01fc193dp-8, 0.007846, 0.082696, 7.755457},
    {Scene::noise, {38, 50}, 12, 0x1.b028a321e9bc7p-6, 0.015052, {}, 7.934462},
    {Scene::inverted, {176, 200}, 8, -0x1.ee7fa80e19b89p-1, -0.966280, {}, 4.732827},
    {Scene::inverted, {200, 178}, 10, -0x1.ee843ad5eb1b4p-1, -0.966616, {}, 4.757324},
    {Scene::inverted, {38, 50}, 12, -0x1.ed76960b8384dp-1, -0.965773, {}, 4.750794},
    {Scene::crossing, {176, 200}, 8, 0x1.0c5dc17f52637p-6, 0.016021, 0.100056, 7.732977},
    {Scene::crossing, {200, 178}, 10, 0x1.0555ddfdb6127p-6, 0.015550, 0.102432, 7.753132},
    {Scene::crossing, {38, 50}, 12, 0x1.48bc417cfd3d1p-7, 0.001866, {}, 7.582074},
    {Scene::blocks, {176, 200}, 8, 0x1.446efd759afep-2, 0.299220, 0.022668, 3.833350},
    {Scene::blocks, {200, 178}, 10, 0x1.44b249618e3fcp-2, 0.299180, 0.023958, 3.824695},
    {Scene::blocks, {38, 50}, 12, 0x1.b603bdca8cafbp-2, 0.458660, {}, 4.724981},
    {Scene::constants, {176, 200}, 8, 0x1.d9567b3d07dbcp-1, 0.924488, 0.989588, 15.665818},
    {Scene::constants, {200, 178}, 10, 0x1.d8cdca65a63e8p-1, 0.923445, 0.989440, 15.588534},
    {Scene::constants, {38, 50}, 12, 0x1.d8abb0aba993fp-1, 0.923185, {}, 15.569391},
};

// A number as libvmaf prints it.
double printed(const Tensor& value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", item(value));
  return std::strtod(text, nullptr);
}

TEST(LibvmafFigures, AreOurs) {
  for (const Figures& figures : kFigures) {
    const TestPlanes planes(figures.scene, figures.shape, figures.bit_depth);
    const int depth = figures.bit_depth;
    for (const test::Backend& backend : test::backends()) {
      const test::ScopedBackend chosen(backend);
      SCOPED_TRACE(
          testing::Message() << name(figures.scene) << ", " << depth << " bits, " << backend.name);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(
                    item(integer_ssim(planes.x, planes.y, {.bit_depth = depth}))),
          std::bit_cast<std::uint64_t>(figures.ssim));
      EXPECT_EQ(printed(float_ssim(planes.x, planes.y, {.bit_depth = depth})), figures.float_ssim);
      EXPECT_EQ(printed(libvmaf_psnr(planes.x, planes.y, {.bit_depth = depth})), figures.psnr);
      if (!figures.float_ms_ssim) continue;
      EXPECT_EQ(
          printed(float_ms_ssim(planes.x, planes.y, {.bit_depth = depth})), *figures.float_ms_ssim);
    }
  }
}

}  // namespace
}  // namespace similis::libvmaf_ssim_internal
