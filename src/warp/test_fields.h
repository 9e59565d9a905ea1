// SPDX-License-Identifier: Apache-2.0
// Vector fields in tests of warp and fields: results copied to the CPU, and fields as images.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "src/warp/test_calls.h"

namespace similis::test {

/// Runs the body of a test on each CPU target, and on the GPU where there is one.
class EachBackend : public ::testing::Test {
 protected:
  template <class Body> void for_each(const Body& body) {
    for (const Backend& backend : backends(Gpu::included)) {
      const ScopedBackend chosen(backend);
      SCOPED_TRACE(backend.name);
      body();
    }
  }
};

/// The elements of a result in the memory of the CPU or of a GPU.
inline std::vector<double> values_of(const Tensor& result) {
  if (result.device.kind == DeviceKind::cpu) return to_doubles(result);
  const Tensor copy = allocate(result.shape, result.dtype);
  gpu::copy_to_cpu(copy.data(), result.data(),
      static_cast<std::size_t>(result.shape.count()) * size_bytes(result.dtype), result.device,
      nullptr);
  return to_doubles(copy);
}

/// The field as an image, for the reference, and back.
inline Tensor channels_first(const TensorView& u) {
  const int last = u.shape.rank() - 1;
  Extents shape = u.shape;
  shape[1] = u.shape[last];
  for (int axis = 1; axis < last; ++axis) shape[axis + 1] = u.shape[axis];
  const std::int64_t voxels = u.shape.count() / (u.shape[0] * u.shape[last]), d = u.shape[last];
  const std::vector<double> values = to_doubles(u);
  return make(shape, u.dtype, Layout::dense, [&](std::int64_t i) {
    const std::int64_t n = i / (voxels * d), c = i / voxels % d, v = i % voxels;
    return values[static_cast<std::size_t>((n * voxels + v) * d + c)];
  });
}

inline std::vector<double> channels_last(const std::vector<double>& values, const Extents& shape) {
  const std::int64_t d = shape[shape.rank() - 1];
  const std::int64_t voxels = shape.count() / (shape[0] * d);
  std::vector<double> result(values.size());
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t n = i / (voxels * d), v = i / d % voxels, c = i % d;
    result[static_cast<std::size_t>(i)] =
        values[static_cast<std::size_t>((n * d + c) * voxels + v)];
  }
  return result;
}

}  // namespace similis::test
