// SPDX-License-Identifier: Apache-2.0
#include "src/ssimulacra2/loss_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/parallel.h"

namespace similis::ssimulacra2_internal {
namespace {

// The weights of the scale's pixels in one of the picture's, along one axis: those of linear
// interpolation between two pixels, each of which is averaged with its neighbours. Beyond the
// border the outermost pixel is repeated, in both steps, which keeps the sum.
struct AxisWeights {
  std::array<std::int64_t, 6> at;
  std::array<float, 6> of;
};

AxisWeights weights_at(std::int64_t position, int scale, std::int64_t extent) {
  const double size = std::ldexp(1.0, scale);
  const double place = (static_cast<double>(position) + 0.5) / size - 0.5;
  const double below = std::floor(place), share = place - below;
  const auto inside = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, extent - 1); };
  constexpr std::array kAverage = {0.25, 0.5, 0.25};
  AxisWeights result{};
  std::size_t next = 0;
  for (const double weight : {1 - share, share}) {
    const std::int64_t pixel = inside(static_cast<std::int64_t>(below) + (next > 0 ? 1 : 0));
    for (std::size_t i = 0; i < kAverage.size(); ++i, ++next) {
      result.at[next] = inside(pixel + static_cast<std::int64_t>(i) - 1);
      result.of[next] = static_cast<float>(weight * kAverage[i]);
    }
  }
  return result;
}

}  // namespace

void add_to_map(const Rows& losses, const Extent& extent, int scale, const Rows& map,
    const Extent& map_extent, const Execution& exec) {
  std::vector<AxisWeights> columns;
  for (std::int64_t x = 0; x < map_extent.width; ++x) {
    columns.push_back(weights_at(x, scale, extent.width));
  }
  parallel_for(exec, map_extent.height, [&](std::int64_t y) {
    const AxisWeights rows = weights_at(y, scale, extent.height);
    std::vector<float> line(static_cast<std::size_t>(extent.width));
    for (std::size_t i = 0; i < rows.at.size(); ++i) {
      const float* const from = losses.row(rows.at[i]);
      for (std::size_t x = 0; x < line.size(); ++x) line[x] += rows.of[i] * from[x];
    }
    float* const to = map.row(y);
    for (std::int64_t x = 0; x < map_extent.width; ++x) {
      const AxisWeights& across = columns[static_cast<std::size_t>(x)];
      float sum = 0;
      for (std::size_t i = 0; i < across.at.size(); ++i) {
        sum += across.of[i] * line[static_cast<std::size_t>(across.at[i])];
      }
      to[x] += sum;
    }
  });
}

}  // namespace similis::ssimulacra2_internal
