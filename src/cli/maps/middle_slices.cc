// SPDX-License-Identifier: Apache-2.0
#include "src/cli/maps/middle_slices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "similis/execution.hpp"

namespace similis::cli {
namespace {

constexpr std::int64_t kNarrowest = 600;  // pixels
constexpr std::int64_t kGap = 4;          // columns between slices
constexpr std::int64_t kWidest = 16384;

// Axes of [1,C,D,H,W].
struct Slice {
  int across, up, right;
};
constexpr std::array kSlices = {Slice{2, 3, 4}, Slice{3, 2, 4}, Slice{4, 2, 3}};

// Pixels of one axis.
struct Axis {
  std::int64_t voxels = 0, pixels = 0;

  std::int64_t voxel(std::int64_t pixel) const { return pixel * voxels / pixels; }
};
using Axes = std::array<Axis, 5>;  // by the map's axis

std::int64_t picture_width(const Axes& axes) {
  std::int64_t width = -kGap;
  for (const Slice& slice : kSlices) {
    width += axes[static_cast<std::size_t>(slice.right)].pixels + kGap;
  }
  return width;
}

// A voxel's shortest side gets as many pixels as it takes to be wide enough.
Axes axes_of(const Extents& shape, const std::array<double, 3>& voxel_mm) {
  const double shortest = *std::min_element(voxel_mm.begin(), voxel_mm.end());
  Axes axes{};
  for (std::int64_t zoom = 1;; ++zoom) {
    for (int axis = 2; axis < 5; ++axis) {
      const std::int64_t voxels = shape[axis];
      const double mm = voxel_mm[static_cast<std::size_t>(4 - axis)];
      const double pixels = static_cast<double>(voxels * zoom) * mm / shortest;
      axes[static_cast<std::size_t>(axis)] = {
          voxels, std::clamp<std::int64_t>(std::llround(pixels), 1, kWidest)};
    }
    if (picture_width(axes) >= kNarrowest) return axes;
  }
}

template <class T>
void draw(const Tensor& map, const Slice& slice, const Axes& axes, std::int64_t left,
    const Tensor& picture) {
  const Axis &rows = axes[static_cast<std::size_t>(slice.up)],
             &columns = axes[static_cast<std::size_t>(slice.right)];
  const std::int64_t middle = map.shape[slice.across] / 2 * map.strides[slice.across];
  for (std::int64_t c = 0; c < map.shape[1]; ++c) {
    const T* from = map.elements<T>() + c * map.strides[1] + middle;
    T* to = picture.elements<T>() + c * picture.strides[1] + left;
    for (std::int64_t row = 0; row < rows.pixels; ++row) {
      const T* line = from + rows.voxel(rows.pixels - 1 - row) * map.strides[slice.up];
      for (std::int64_t column = 0; column < columns.pixels; ++column) {
        to[row * picture.strides[2] + column] =
            line[columns.voxel(column) * map.strides[slice.right]];
      }
    }
  }
}

template <class T> Tensor drawn(const Tensor& map, const std::array<double, 3>& voxel_mm) {
  const Axes axes = axes_of(map.shape, voxel_mm);
  const std::int64_t height = std::max(axes[3].pixels, axes[2].pixels);
  const Tensor picture = allocate({1, map.shape[1], height, picture_width(axes)}, map.dtype);
  std::fill_n(picture.elements<T>(), picture.shape.count(), std::numeric_limits<T>::quiet_NaN());
  std::int64_t left = 0;
  for (const Slice& slice : kSlices) {
    draw<T>(map, slice, axes, left, picture);
    left += axes[static_cast<std::size_t>(slice.right)].pixels + kGap;
  }
  return picture;
}

// The letter of the side across the body; 0 for 0.
char opposite(char side) {
  constexpr std::string_view kSides = "RLAPSI";
  const std::size_t at = kSides.find(side);
  return at == std::string_view::npos ? '\0' : kSides[at ^ 1];
}

char letter(const std::array<char, 3>& toward, int axis) {
  return toward[static_cast<std::size_t>(4 - axis)];
}

}  // namespace

Tensor middle_slices(const Tensor& map, const std::array<double, 3>& voxel_mm) {
  if (map.shape.rank() != 5) return map;
  return map.dtype == DType::f64 ? drawn<double>(map, voxel_mm) : drawn<float>(map, voxel_mm);
}

std::vector<Label> slice_labels(const Extents& shape, const std::array<double, 3>& voxel_mm,
    const std::array<char, 3>& toward) {
  std::vector<Label> labels;
  if (shape.rank() != 5) return labels;
  const Axes axes = axes_of(shape, voxel_mm);
  std::int64_t left = 0;
  for (const Slice& slice : kSlices) {
    const std::int64_t width = axes[static_cast<std::size_t>(slice.right)].pixels;
    const std::int64_t height = axes[static_cast<std::size_t>(slice.up)].pixels;
    labels.push_back({.x = left,
        .y = 0,
        .text = std::string(1, "zyx"[slice.across - 2]) + " " +
                std::to_string(shape[slice.across] / 2)});
    const auto add = [&](char side, std::int64_t x, std::int64_t y, double share_left,
                         double share_above) {
      if (side != '\0') labels.push_back({x, y, share_left, share_above, std::string(1, side)});
    };
    const char right = letter(toward, slice.right), up = letter(toward, slice.up);
    add(opposite(right), left, height / 2, 0, 0.5);
    add(right, left + width, height / 2, 1, 0.5);
    add(up, left + width / 2, 0, 0.5, 0);
    add(opposite(up), left + width / 2, height, 0.5, 1);
    left += width + kGap;
  }
  return labels;
}

}  // namespace similis::cli
