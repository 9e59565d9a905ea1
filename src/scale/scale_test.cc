// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "similis/c/core.h"
#include "src/scale/test_scaled.h"
#include "tests/c_tensor.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using namespace scale_test;

TEST(Scale, EveryDTypeAndLayout) { expect_every_layout_scaled(false); }

TEST(Scale, OneLeavesTheMemoryAlone) {
  Array tensor = test::filled({3, 5}, DType::f32, Layout::dense, 0);
  const std::uint32_t signalling = 0x7f800001u;  // any product would quieten it
  std::memcpy(tensor.data(), &signalling, sizeof signalling);
  scale(tensor, one_element(DType::f32, 1));
  EXPECT_EQ(std::memcmp(tensor.data(), &signalling, sizeof signalling), 0);
}

TEST(Scale, RefusesWhatItCannotReplace) {
  const Array tensor = textured({2, 3}, DType::f32, Layout::dense);
  const Tensor one = one_element(DType::f32, 1);
  test::expect_refusal([&] { scale(tensor, textured({2}, DType::f32, Layout::dense)); },
      "scale: factor has shape [2]; it must have one element");
  test::expect_refusal([&] { scale(tensor, one_element(DType::u8, 1)); },
      "scale: factor is uint8; it must be float16, bfloat16, float32 or float64");
  test::expect_refusal([&] { scale(test::filled({2}, DType::u16, Layout::dense, 0), one); },
      "scale: tensor is uint16; it must be float16, bfloat16, float32 or float64");
  test::expect_refusal(
      [&] {
        scale(textured({2, 3}, DType::f32, Layout::expanded), one);
      },
      "scale: tensor has strides [0, 0] for shape [2, 3]; each element must have a place of its "
      "own");
  test::expect_refusal([&] { scale(TensorView(), one); }, "scale: tensor has no data");
}

TEST(Scale, InC) {
  const Array before = textured({2, 3}, DType::f32, Layout::dense),
              tensor = textured({2, 3}, DType::f32, Layout::dense);
  const Tensor half = one_element(DType::f32, 0.5);
  const test::CTensor c_tensor(tensor), c_half(half);
  EXPECT_EQ(similis_scale(c_tensor.get(), c_half.get(), nullptr), SIMILIS_OK);
  expect_scaled(tensor, before, 0.5);
  EXPECT_EQ(similis_scale(c_tensor.get(), nullptr, nullptr), SIMILIS_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(similis_last_error()), "scale: factor is NULL; it must be a tensor");
}

}  // namespace
}  // namespace similis
