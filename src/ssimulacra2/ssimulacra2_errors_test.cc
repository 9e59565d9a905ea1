// SPDX-License-Identifier: Apache-2.0
// The refusals of SSIMULACRA 2, word for word.
#include <gtest/gtest.h>

#include "similis/ssimulacra2.hpp"
#include "tests/arrays.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::expect_refusal;
using test::Layout;

test::Array zeros(const Extents& shape, DType dtype = DType::u8) {
  return test::filled(shape, dtype, Layout::dense, 0);
}

void expect_refused(const TensorView& x, const TensorView& y, const std::string& sentence) {
  expect_refusal([&] { ssimulacra2(x, y); }, sentence);
}

TEST(Ssimulacra2Errors, OfPictures) {
  const test::Array good = zeros({3, 16, 16});
  expect_refused(zeros({16, 16}), good,
      "ssimulacra2: x has shape [16, 16]; it must be [C, H, W] or [N, C, H, W]");
  expect_refused(good, zeros({5, 16, 16}),
      "ssimulacra2: y has 5 channels; it must have 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB "
      "and alpha)");
  expect_refused(zeros({3, 7, 16}), good,
      "ssimulacra2: x has shape [3, 7, 16]; height and width must be at least 8");
  expect_refused(good, zeros({3, 16, 17}),
      "ssimulacra2: y has shape [3, 16, 17]; but for channels it must be that of x, [3, 16, 16]");
  expect_refused(good, zeros({1, 3, 16, 16}),
      "ssimulacra2: y has shape [1, 3, 16, 16]; but for channels it must be that of x, [3, 16, "
      "16]");
  expect_refused(
      good, zeros({3, 16, 16}, DType::u16), "ssimulacra2: y is uint16; it must be uint8 as x is");
  expect_refused(zeros({0, 3, 16, 16}), zeros({0, 3, 16, 16}),
      "ssimulacra2: x has shape [0, 3, 16, 16]; every extent must be at least 1");
  expect_refused({}, good, "ssimulacra2: x has shape []; it must be [C, H, W] or [N, C, H, W]");
  expect_refused(TensorView(nullptr, {3, 16, 16}, DType::u8), good, "ssimulacra2: x has no data");
}

TEST(Ssimulacra2Errors, OfResults) {
  const test::Array x = zeros({2, 3, 16, 16});
  const auto into = [&](const Ssimulacra2Request& request) {
    return [&, request] { ssimulacra2_into(x, x, request); };
  };
  expect_refusal(into({.value = zeros({3}, DType::f64)}),
      "ssimulacra2: value has shape [3]; it must be that of the result, [2]");
  expect_refusal(
      into({.value = zeros({2}, DType::f32)}), "ssimulacra2: value is float32; it must be float64");
  expect_refusal(into({.map = zeros({2, 16, 15}, DType::f32)}),
      "ssimulacra2: map has shape [2, 16, 15]; it must be that of the result, [2, 16, 16]");
  expect_refusal(into({.map = test::filled({2, 16, 16}, DType::f32, Layout::reversed, 0)}),
      "ssimulacra2: map has strides [-256, -16, -1]; it must be dense, [256, 16, 1]");
}

TEST(Ssimulacra2Errors, OfAKeptReference) {
  expect_refusal(
      [&] {
        Ssimulacra2Reference(zeros({1, 3, 16, 16}));
      },
      "ssimulacra2: x has shape [1, 3, 16, 16]; a reference must be one picture, [C, H, W]");
  const Ssimulacra2Reference reference(zeros({3, 16, 16}));
  expect_refusal(
      [&] {
        reference.score(zeros({3, 16, 18}));
      },
      "ssimulacra2: y has shape [3, 16, 18]; its height and width must be those of the reference, "
      "[16, 16]");
  expect_refusal(
      [&] {
        reference.score(zeros({3, 16, 16}, DType::f32));
      },
      "ssimulacra2: y is float32; it must be uint8 as the reference is");
}

}  // namespace
}  // namespace similis
