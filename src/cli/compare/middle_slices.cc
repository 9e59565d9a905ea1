// SPDX-License-Identifier: Apache-2.0
#include "src/cli/compare/middle_slices.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "similis/execution.hpp"

namespace similis::cli {
namespace {

constexpr std::int64_t kGap = 2;  // columns between slices

// Axes of [1,C,D,H,W].
struct Slice {
  int across, up, right;
};
constexpr std::array kSlices = {Slice{2, 3, 4}, Slice{3, 2, 4}, Slice{4, 2, 3}};

template <class T>
void draw(const Tensor& map, const Slice& slice, std::int64_t left, const Tensor& picture) {
  const std::int64_t rows = map.shape[slice.up], columns = map.shape[slice.right];
  const std::int64_t middle = map.shape[slice.across] / 2 * map.strides[slice.across];
  for (std::int64_t c = 0; c < map.shape[1]; ++c) {
    const T* from = map.elements<T>() + c * map.strides[1] + middle;
    T* to = picture.elements<T>() + c * picture.strides[1] + left;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        to[row * picture.strides[2] + column] =
            from[(rows - 1 - row) * map.strides[slice.up] + column * map.strides[slice.right]];
      }
    }
  }
}

template <class T> Tensor drawn(const Tensor& map, double background) {
  std::int64_t height = 0, width = -kGap;
  for (const Slice& slice : kSlices) {
    height = std::max(height, map.shape[slice.up]);
    width += map.shape[slice.right] + kGap;
  }
  const Tensor picture = allocate({1, map.shape[1], height, width}, map.dtype);
  std::fill_n(picture.elements<T>(), picture.shape.count(), static_cast<T>(background));
  std::int64_t left = 0;
  for (const Slice& slice : kSlices) {
    draw<T>(map, slice, left, picture);
    left += map.shape[slice.right] + kGap;
  }
  return picture;
}

}  // namespace

Tensor middle_slices(const Tensor& map, double background) {
  if (map.shape.rank() != 5) return map;
  return map.dtype == DType::f64 ? drawn<double>(map, background) : drawn<float>(map, background);
}

}  // namespace similis::cli
