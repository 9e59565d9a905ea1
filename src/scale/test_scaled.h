// SPDX-License-Identifier: Apache-2.0
// Tensors of every type and layout, scaled on the CPU or on a GPU and compared with a product.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "similis/gradient.hpp"
#include "tests/arrays.h"
#include "tests/on_gpu.h"

namespace similis::scale_test {

using test::Array;
using test::Layout;
using test::OnGpu;

inline constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr Layout kOwnPlaces[] = {Layout::dense, Layout::channels_last, Layout::permuted,
    Layout::reversed, Layout::sliced, Layout::offset};
inline const Extents kShapes[] = {{}, {1}, {2, 3, 37, 129}, {2, 1, 3, 5, 7}, {3, 2, 211, 307}};

inline Array textured(const Extents& shape, DType dtype, Layout layout) {
  return test::make(shape, dtype, layout, [](std::int64_t i) { return test::uniform(7, i) - 0.5; });
}

inline Tensor one_element(DType dtype, double value) {
  return test::make({}, dtype, Layout::dense, [=](std::int64_t) { return value; });
}

// Each element times the factor, rounded as the header says; memory between elements stays NaN.
inline void expect_scaled(const Array& scaled, const Array& before, double factor) {
  const std::vector<double> all = to_doubles(scaled), unscaled = to_doubles(before);
  const Array expected = test::make(scaled.shape, scaled.dtype, Layout::dense, [&](std::int64_t i) {
    const double value = unscaled[static_cast<std::size_t>(i)];
    if (scaled.dtype == DType::f64) return value * factor;
    return static_cast<double>(static_cast<float>(value) * static_cast<float>(factor));
  });
  EXPECT_EQ(all, to_doubles(expected));
  double largest = 0;
  for (const double value : to_doubles(scaled.memory)) {
    if (!std::isnan(value)) largest = std::max(largest, std::abs(value));
  }
  EXPECT_LT(largest, 0.6 * std::max(1.0, std::abs(factor)));
}

inline void expect_every_layout_scaled(bool on_gpu) {
  for (const Extents& shape : kShapes) {
    for (const DType dtype : kFloats) {
      for (const Layout layout : kOwnPlaces) {
        const Array before = textured(shape, dtype, layout);
        for (const double factor : {1., 0.2, -3., 65536.}) {
          if (dtype == DType::f16 && factor == 65536) continue;  // overflows
          const Array tensor = textured(shape, dtype, layout);
          const Tensor by = one_element(dtype == DType::f64 ? DType::f64 : DType::f32, factor);
          if (on_gpu) {
            const OnGpu there(tensor), by_there(by);
            scale(there.view(), by_there.view());
            there.bring_back();
          } else {
            scale(tensor, by);
          }
          SCOPED_TRACE(std::string(name(dtype)) + " " + test::name(layout));
          expect_scaled(tensor, before, factor);
        }
      }
    }
  }
}

}  // namespace similis::scale_test
