// SPDX-License-Identifier: Apache-2.0
// Inverses and Jacobian determinants of parts of a field: any cut has the whole's bits, on every
// backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "similis/fields.hpp"
#include "src/warp/test_fields.h"
#include "tests/refusal.h"

namespace similis {
namespace {

using test::Layout;
using test::slab;
using test::values_of;

using FieldParts = test::EachBackend;

// Smooth enough to have an inverse, with some folds at the largest amplitude.
test::Array waves(const Extents& shape, double amplitude) {
  return test::make(shape, DType::f32, Layout::dense, [=](std::int64_t i) {
    return amplitude * std::sin(0.37 * static_cast<double>(i % 1009)) *
           std::cos(0.11 * static_cast<double>(i / 17));
  });
}

Tensor on_device(const Extents& shape, const TensorView& like, DType dtype = DType::f32) {
  return allocate(shape, dtype, like.device);
}

TEST_F(FieldParts, DeterminantsAndFolds) {
  for (const Extents& shape : {Extents{2, 9, 7, 35, 3}, Extents{1, 11, 37, 2}}) {
    for (const double amplitude : {0.01, 0.5}) {
      const test::Array u = waves(shape, amplitude);
      const std::int64_t extent = shape[1], rank = shape.rank() - 2;
      for_each([&] {
        test::Arguments arguments;
        const TensorView field = arguments.in(u);
        const JacobianDeterminant whole = jacobian_determinant(field, false);
        std::vector<double> folds(static_cast<std::size_t>(shape[0]));
        const std::vector<double> expected = values_of(whole.determinant);
        const auto plane = static_cast<std::size_t>(shape.count() / (shape[0] * extent * rank));
        for (const auto& [first, end] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 2},
                 {2, 6}, {6, extent - 1}, {extent - 1, extent}}) {
          const std::int64_t low = std::max<std::int64_t>(first - 1, 0);
          const std::int64_t high = std::min(end + 1, extent);
          Extents of_part = shape;
          of_part[1] = end - first;
          const Extents voxels(std::span<const std::int64_t>(
              of_part.begin(), static_cast<std::size_t>(shape.rank() - 1)));
          const Tensor det = on_device(voxels, field);
          const Tensor folded = on_device({shape[0]}, field, DType::f64);
          jacobian_determinant_into(slab(field, 1, low, high - low), det, folded, false, {}, {}, {},
              {.rows = {low, extent}, .first = first});
          const std::vector<double> values = values_of(det), counted = values_of(folded);
          const std::size_t of_image = static_cast<std::size_t>(end - first) * plane;
          for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t at = i / of_image * static_cast<std::size_t>(extent) * plane +
                                   static_cast<std::size_t>(first) * plane + i % of_image;
            ASSERT_EQ(values[i], expected[at]) << first << " " << i;
          }
          for (std::size_t n = 0; n < folds.size(); ++n) folds[n] += counted[n];
        }
        EXPECT_EQ(folds, values_of(whole.folds));
      });
    }
  }
}

TEST_F(FieldParts, Inverses) {
  for (const Extents& shape : {Extents{1, 12, 7, 35, 3}, Extents{2, 13, 37, 2}}) {
    const test::Array u = waves(shape, 0.06);
    const std::int64_t extent = shape[1];
    for_each([&] {
      test::Arguments arguments;
      const TensorView field = arguments.in(u);
      const Inverse whole = invert(field, 20);
      const std::vector<double> expected = values_of(whole.displacement);
      const auto plane = static_cast<std::size_t>(shape.count() / (shape[0] * extent));
      int complete = 0;
      for (std::int64_t first = 0; first < extent; ++first) {
        for (const std::int64_t beside : {std::int64_t{0}, std::int64_t{4}, extent}) {
          const std::int64_t low = std::max<std::int64_t>(first - beside, 0);
          const std::int64_t high = std::min(first + 1 + beside, extent);
          Extents of_part = shape;
          of_part[1] = 1;
          const Tensor w = on_device(of_part, field), residual = on_device({shape[0]}, field);
          invert_into(slab(field, 1, low, high - low), w, residual, 20, true, 0.01, {},
              {.rows = {low, extent}, .first = first});
          const std::vector<double> values = values_of(w);
          const std::vector<double> largest = values_of(residual);
          for (std::size_t n = 0; n < largest.size(); ++n) {
            if (std::isinf(largest[n])) continue;
            ++complete;
            EXPECT_LE(largest[n], values_of(whole.residual)[n]);
            for (std::size_t i = 0; i < plane; ++i) {
              const std::size_t at =
                  (n * static_cast<std::size_t>(extent) + static_cast<std::size_t>(first)) * plane +
                  i;
              ASSERT_EQ(values[n * plane + i], expected[at]);
            }
          }
          if (beside == 0) {
            EXPECT_TRUE(std::isinf(largest[0])) << first;
          }
        }
      }
      EXPECT_GE(complete, shape[0] * extent);
    });
  }
}

TEST(FieldPartsRefuse, MissingRows) {
  const test::Array u = waves({1, 4, 5, 6, 3}, 0.1);
  const Tensor det = allocate({1, 2, 5, 6}, DType::f32), folds = allocate({1}, DType::f64);
  test::expect_refusal(
      [&] {
        jacobian_determinant_into(u, det, folds, true, {}, {}, {}, {.rows = {3, 9}, .first = 3});
      },
      "jacobian_determinant: determinant has 2 rows from 3 on, and u 4 from 3 on; it must hold "
      "rows 2 to 6");
  test::expect_refusal(
      [&] { jacobian_determinant_into(u, det, folds, true, {}, {}, {}, {.first = 1}); },
      "jacobian_determinant: determinant has shape [1, 2, 5, 6]; it must be [1, 4, 5, 6]");
}

}  // namespace
}  // namespace similis
