// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/finite_mask.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "src/cli/inputs/rows.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/core/tensor/dispatch.h"

namespace similis::cli {

void mask_not_finite(FramePair& pair, const Execution& exec) {
  Extents shape = pair.reference.shape;
  const std::int64_t channels = shape[1], columns = shape[shape.rank() - 1];
  shape[1] = 1;
  const std::int64_t rows = row_count(shape);
  const Tensor mask = allocate(shape, DType::u8, {}, exec);
  auto* const weights = mask.elements<std::uint8_t>();
  std::fill_n(weights, shape.count(), std::uint8_t{1});
  for (const Tensor* side : {&pair.reference, &pair.distorted}) {
    visit_dtype(side->dtype, [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_floating_point_v<T>) {
        parallel_for(exec, rows, [&](std::int64_t row) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const T* const from = side->elements<T>() + row_offset(*side, c * rows + row);
            for (std::int64_t i = 0; i < columns; ++i) {
              if (!std::isfinite(from[i * row_stride(*side)])) weights[row * columns + i] = 0;
            }
          }
        });
      }
    });
  }
  pair.left_out = std::count(weights, weights + shape.count(), std::uint8_t{0});
  require(pair.left_out < shape.count(), "no {} has finite values on both sides",
      shape.rank() == 5 ? "voxel" : "pixel");
  if (pair.left_out > 0) pair.mask = mask;
}

}  // namespace similis::cli
