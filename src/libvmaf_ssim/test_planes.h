// SPDX-License-Identifier: Apache-2.0
// Planes for the tests of this room, from formulas that need no file, and calls on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "src/libvmaf_ssim/libvmaf_ssim.h"
#include "tests/arrays.h"

namespace similis::libvmaf_ssim_internal {

/// The content of a pair of planes.
enum class Scene : std::uint8_t {
  noise,      ///< both full-range noise: terms of either sign, a sum that wanders about 0
  inverted,   ///< noise and its negative: a sum far below 0
  crossing,   ///< alike above, inverted below: a sum that rises and falls through 0
  textured,   ///< a pattern and the same with some noise, as compression leaves it
  constants,  ///< two flat planes
  black,      ///< both 0
  white,      ///< both the largest sample
  blocks,     ///< flat blocks of few levels: terms with few bits, often halfway between units
};

constexpr Scene kScenes[] = {Scene::noise, Scene::inverted, Scene::crossing, Scene::textured,
    Scene::constants, Scene::black, Scene::white, Scene::blocks};

inline std::string name(Scene scene) {
  constexpr const char* names[] = {
      "noise", "inverted", "crossing", "textured", "constants", "black", "white", "blocks"};
  return names[static_cast<int>(scene)];
}

/// The samples of both planes at a pixel, in [0, peak].
inline std::pair<double, double> samples_of(
    Scene scene, const Extents& shape, std::int64_t i, double peak) {
  const std::int64_t width = shape[shape.rank() - 1], height = shape[shape.rank() - 2];
  const std::int64_t column = i % width, row = i / width % height;
  const double one = std::floor(test::uniform(1, i) * (peak + 1));
  const double other = std::floor(test::uniform(2, i) * (peak + 1));
  switch (scene) {
    case Scene::noise: return {one, other};
    case Scene::inverted: return {one, peak - one};
    case Scene::crossing: return {one, row < height / 2 ? one : peak - one};
    case Scene::textured: {
      const double wave = std::sin(0.21 * static_cast<double>(column) + 0.1 * row) *
                          std::cos(0.17 * static_cast<double>(row));
      const double x = std::floor(peak * (0.5 + 0.4 * wave + 0.05 * (one / peak - 0.5)));
      return {x, std::clamp(x + std::floor(0.06 * (other - peak / 2)), 0.0, peak)};
    }
    case Scene::constants: return {std::floor(peak / 3), std::floor(peak / 2)};
    case Scene::black: return {0, 0};
    case Scene::white: return {peak, peak};
    case Scene::blocks: {
      const std::int64_t block = column / 24 + 7 * (row / 24);
      return {std::floor(peak * static_cast<double>(block % 3) / 2),
          std::floor(peak * static_cast<double>(block % 2))};
    }
  }
  return {};
}

/// A pair of planes, [H,W] or [N,H,W].
struct TestPlanes {
  TestPlanes(
      Scene scene, const Extents& shape, int bit_depth, test::Layout layout = test::Layout::dense)
      : depth(bit_depth) {
    const double peak = std::exp2(bit_depth) - 1;
    const DType dtype = bit_depth == 8 ? DType::u8 : DType::u16;
    x = test::make(shape, dtype, layout,
        [&](std::int64_t i) { return samples_of(scene, shape, i, peak).first; });
    y = test::make(shape, dtype, layout,
        [&](std::int64_t i) { return samples_of(scene, shape, i, peak).second; });
  }

  /// The pairs in the form that the room's internals take.
  PlanePairs pairs() const {
    PlanePairs result{.x = x, .y = y, .bit_depth = depth};
    for (TensorView* view : {&result.x, &result.y}) {
      if (view->shape.rank() == 3) continue;
      view->shape = {1, view->shape[0], view->shape[1]};
      view->strides = {0, view->strides[0], view->strides[1]};
    }
    return result;
  }

  test::Array x, y;
  int depth;
};

}  // namespace similis::libvmaf_ssim_internal
