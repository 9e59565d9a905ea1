// SPDX-License-Identifier: Apache-2.0
// A repair looks at the box about the bad voxels alone, with a margin that no change can cross: the
// blend reaches 2 voxels of dilation and 3 of smoothing, and reads 3 further. On the CPU each spot
// of bad voxels has such a box, which no other spot's reaches: the same field in less time.
#include "src/registration/guard.h"

#include <algorithm>

#include "similis/smooth.hpp"
#include "src/registration/cpu/field_check.h"
#include "src/registration/exponential.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

constexpr std::int64_t kDilation = 2, kChange = 5, kMargin = 8;

Box widened(const Box& box, const Grid& grid, std::int64_t by) {
  Box result;
  for (std::size_t a = 0; a < 3; ++a) {
    result.first[a] = std::max<std::int64_t>(box.first[a] - by, 0);
    result.size[a] = std::min(box.first[a] + box.size[a] + by, grid.size[a]) - result.first[a];
  }
  return result;
}

Grid grid_of(const Box& box, const Grid& grid) {
  Grid result = grid;
  result.size = box.size;
  return result;
}

}  // namespace

TensorView part_of(const Tensor& field, const Box& box, int rank) {
  TensorView view = field;
  for (int a = 0; a < rank; ++a) {
    const auto axis = static_cast<std::size_t>(a);
    view.shape[rank - a] = box.size[axis];
    view.offset += box.first[axis] * field.strides[rank - a];
  }
  return view;
}

void smooth_about(const Grid& grid, const Box& bad, const Tensor& u, double bound,
    const Tensor& field, const Execution& exec) {
  const Box box = widened(bad, grid, kMargin);
  const Grid part = grid_of(box, grid);
  const Tensor flags = allocate(part.image_shape(1), u.dtype, grid.device, exec);
  mark_folds(GridRows(grid), u, box, bound, kDilation, flags, exec);
  const Tensor blended = smooth(flags, {.sigma = 1}, exec);
  const TensorView own = part_of(field, box, grid.rank);
  const Tensor soft = smooth(own, {.sigma = 1.5, .field = true, .truncate = 2}, exec);
  blend(GridRows(grid), box, blended, soft, field, exec);
}

std::vector<Box> bad_spots(
    const Grid& grid, const Tensor& u, const Box& box, double bound, const Execution& exec) {
  constexpr std::int64_t kReach = 2;
  const Grid part = grid_of(box, grid);
  const Tensor flags = allocate(part.image_shape(1), DType::f32, grid.device, exec);
  corner_determinants(
      GridRows(grid), u.elements<float>(), box, bound, flags.elements<float>(), exec);
  const Tensor there = on_cpu(flags, exec);
  float* const left = there.elements<float>();  // 1: in no group yet
  const auto place_of = [&](std::int64_t voxel) {
    return std::array<std::int64_t, 3>{
        voxel % box.size[0], voxel / box.size[0] % box.size[1], voxel / box.size[0] / box.size[1]};
  };
  std::vector<Box> spots;
  std::vector<std::int64_t> group;
  for (std::int64_t begin = 0; begin < part.voxels(); ++begin) {
    if (left[begin] == 0) continue;
    std::array<std::int64_t, 3> least = place_of(begin), most = least;
    left[begin] = 0;
    group.assign(1, begin);
    while (!group.empty()) {
      const std::array<std::int64_t, 3> at = place_of(group.back());
      group.pop_back();
      std::array<std::int64_t, 3> low{}, high{};
      for (std::size_t a = 0; a < 3; ++a) {
        least[a] = std::min(least[a], at[a]);
        most[a] = std::max(most[a], at[a]);
        low[a] = std::max<std::int64_t>(at[a] - kReach, 0);
        high[a] = std::min(at[a] + kReach, box.size[a] - 1);
      }
      for (std::int64_t z = low[2]; z <= high[2]; ++z) {
        for (std::int64_t y = low[1]; y <= high[1]; ++y) {
          for (std::int64_t x = low[0]; x <= high[0]; ++x) {
            const std::int64_t voxel = (z * box.size[1] + y) * box.size[0] + x;
            if (left[voxel] == 0) continue;
            left[voxel] = 0;
            group.push_back(voxel);
          }
        }
      }
    }
    Box spot;
    for (std::size_t a = 0; a < 3; ++a) {
      spot.first[a] = box.first[a] + least[a];
      spot.size[a] = most[a] - least[a] + 1;
    }
    spots.push_back(spot);
  }
  return spots;
}

void smooth_within(const Grid& grid, const Box& inner, const Tensor& field, const Execution& exec) {
  // The share of an average that lies in the box of so many voxels more falls from 1 in the inner
  // box to 0.9 some 4 voxels inside the larger one. Nothing changes from there on.
  constexpr double kSigma = 3;
  constexpr float kLeast = 0.9f;
  const Box box = widened(inner, grid, 9);
  const Grid part = grid_of(box, grid);
  const Tensor share = allocate(part.image_shape(1), DType::f32, grid.device, exec);
  fill(grid.device, part.voxels(), 1, share.elements<float>(), exec);
  smooth_into(share, {.output = share}, {.sigma = kSigma, .padding = SmoothPadding::zeros}, exec);
  rescale(GridRows(part), kLeast, 1 / (1 - kLeast), nullptr, share.elements<float>(), exec);
  const TensorView own = part_of(field, box, grid.rank);
  const Tensor soft = smooth(own, {.sigma = 1.5, .field = true, .truncate = 2}, exec);
  blend(GridRows(grid), box, share.elements<float>(), soft.elements<float>(),
      field.elements<float>(), exec);
}

namespace {

Guarded guard_cpu(const Grid& grid, const Tensor& u, double bound, const Execution& exec) {
  constexpr std::int64_t kNeighbour = 1;  // that a determinant sees
  FieldCheck check(GridRows(grid), u, bound);
  check.look({.size = grid.size}, exec);
  Guarded result{.repaired = check.bad()};
  for (int i = 0; i < kRepairs && check.bad() > 0; ++i) {
    const std::vector<Box> spots = check.spots(kMargin + kNeighbour + kChange);
    for (const Box& spot : spots) smooth_about(grid, spot, u, bound, u, exec);
    for (const Box& spot : spots) check.look(widened(spot, grid, kChange + kNeighbour), exec);
  }
  result.passed = check.bad() == 0;
  result.least = check.least();
  return result;
}

}  // namespace

bool repair(
    const Grid& grid, const Box& bad, const Tensor& u, double bound, const Execution& exec) {
  Determinants found{.bad = 1, .around = bad};
  for (int i = 0; i < kRepairs && found.bad > 0; ++i) {
    smooth_about(grid, found.around, u, bound, u, exec);
    // The others are as they were, and accepted.
    const Box changed = widened(found.around, grid, kMargin);
    found = corner_determinants(GridRows(grid), u, changed, bound, nullptr, exec);
  }
  return found.bad == 0;
}

Guarded guard(const Grid& grid, const Tensor& u, double bound, const Execution& exec) {
  if (grid.device.kind == DeviceKind::cpu) return guard_cpu(grid, u, bound, exec);
  const GridRows rows(grid);
  const Box whole = {.size = grid.size};
  const Determinants found = corner_determinants(rows, u, whole, bound, nullptr, exec);
  Guarded result{.passed = found.bad == 0, .least = found.least, .repaired = found.bad};
  if (!result.passed) result.passed = repair(grid, found.around, u, bound, exec);
  if (result.passed && result.repaired > 0) {
    result.least = corner_determinants(rows, u, whole, bound, nullptr, exec).least;
  }
  return result;
}

Guarded guard_or_shorten(const Grid& grid, const Tensor& u, double bound, const Execution& exec) {
  Guarded result = guard(grid, u, bound, exec);
  while (!result.passed) {
    scale(grid.device, u.shape.count(), 0.9, u, u, exec);
    const Guarded again = guard(grid, u, bound, exec);
    result.passed = again.passed;
    result.least = again.least;
  }
  return result;
}

Guarded guard_exponentials(const Grid& grid, const Tensor& v, double bound, const Execution& exec) {
  const GridRows rows(grid);
  const Tensor u = allocate(v.shape, v.dtype, grid.device, exec);
  Guarded result;
  for (int i = 0; !result.passed; ++i) {
    std::int64_t bad = 0;
    result.least = 1;
    for (const int sign : {1, -1}) {
      exponential(grid, v, sign, u, exec);
      const Determinants found =
          corner_determinants(rows, u, {.size = grid.size}, bound, nullptr, exec);
      result.least = std::min(result.least, found.least);
      bad += found.bad;
      if (found.bad > 0 && i < kRepairs) smooth_about(grid, found.around, u, bound, v, exec);
    }
    if (i == 0) result.repaired = bad;
    result.passed = bad == 0;
    // The identity passes, so this ends.
    if (bad > 0 && i >= kRepairs) {
      scale(grid.device, v.shape.count(), 0.9, v, v, exec);
    }
  }
  return result;
}

}  // namespace similis::registration_internal
