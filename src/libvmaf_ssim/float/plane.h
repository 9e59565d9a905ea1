// SPDX-License-Identifier: Apache-2.0
// A plane on the CPU as float_ssim reads it: f32 from 0 to 255, whatever the type of its samples.
#pragma once

#include <cstdint>

#include "src/core/tensor/dispatch.h"
#include "src/libvmaf_ssim/float/formula.h"

namespace similis::libvmaf_ssim_internal {

struct FloatPlane {
  const void* data;
  DType dtype;  ///< u8, u16 or f32
  std::int64_t row_stride, column_stride, height, width;
  float divisor = 1;  ///< divisor of the samples; a power of two

  /// Copies columns of a row from `first` on, mirrored where they lie outside: at most one width.
  void load(std::int64_t row, std::int64_t first, std::int64_t count, float* out) const {
    visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
      const T* samples = static_cast<const T*>(data) + row * row_stride;
      const auto convert = [&](std::int64_t i, std::int64_t column) {
        out[i] = similis::load(samples[column * column_stride]) / divisor;
      };
      std::int64_t i = 0;
      for (; i < count && first + i < 0; ++i) convert(i, mirrored(first + i, width));
      const std::int64_t inside = count < width - first ? count : width - first;
      if (column_stride == 1) {
        const T* from = samples + first;
        for (; i < inside; ++i) out[i] = similis::load(from[i]) / divisor;
      }
      for (; i < count; ++i) convert(i, mirrored(first + i, width));
    });
  }
};

}  // namespace similis::libvmaf_ssim_internal
