// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/error_map.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "src/cli/device.h"
#include "src/cli/inputs/rows.h"
#include "src/core/parallel.h"
#include "src/core/tensor/dispatch.h"

namespace similis::cli {
namespace {

// mask: u8, dense, of one image and one channel; or empty.
template <class Error>
Tensor error_map(const TensorView& x_given, const TensorView& y_given, const TensorView& mask,
    const Execution& exec, const Error& error) {
  const Tensor x = on_device({x_given, nullptr}, {}, exec);
  const Tensor y = on_device({y_given, nullptr}, {}, exec);
  const Tensor left_in = mask.empty() ? Tensor() : on_device({mask, nullptr}, {}, exec);
  const Tensor map = allocate(x.shape, DType::f32, {}, exec);
  const std::int64_t columns = x.shape[x.shape.rank() - 1];
  const std::int64_t x_stride = row_stride(x), y_stride = row_stride(y);
  const auto* const weights = static_cast<const std::uint8_t*>(left_in.data());
  visit_dtype(x.dtype, [&]<class T>(std::type_identity<T>) {
    parallel_for(exec, row_count(x.shape), [&](std::int64_t row) {
      const T* const from_x = static_cast<const T*>(x.data()) + row_offset(x, row);
      const T* const from_y = static_cast<const T*>(y.data()) + row_offset(y, row);
      float* const to = map.elements<float>() + row * columns;
      for (std::int64_t i = 0; i < columns; ++i) {
        const double x_value = load(from_x[i * x_stride]), y_value = load(from_y[i * y_stride]);
        to[i] = static_cast<float>(error(x_value - y_value));
      }
      if (weights == nullptr) return;
      const std::uint8_t* const weight =
          weights + row * columns % left_in.shape.count();  // the same for each channel
      for (std::int64_t i = 0; i < columns; ++i) {
        if (weight[i] == 0) to[i] = std::numeric_limits<float>::quiet_NaN();
      }
    });
  });
  return map;
}

}  // namespace

Tensor squared_error_map(const TensorView& x, const TensorView& y, const PixelErrorOptions& options,
    const Execution& exec) {
  return error_map(x, y, options.mask, exec, [](double d) { return d * d; });
}

Tensor absolute_error_map(const TensorView& x, const TensorView& y,
    const PixelErrorOptions& options, const Execution& exec) {
  return error_map(x, y, options.mask, exec, [](double d) { return std::abs(d); });
}

}  // namespace similis::cli
