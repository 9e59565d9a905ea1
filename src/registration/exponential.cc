// SPDX-License-Identifier: Apache-2.0
#include "src/registration/exponential.h"

#include <cmath>
#include <limits>
#include <utility>

#include "similis/warp.hpp"
#include "src/core/operation.h"
#include "src/registration/cpu/composed.h"
#include "src/registration/cuda/passes.h"
#include "src/registration/levels.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {
namespace {

// Null in a build without CUDA, where no field is on a GPU.
constinit decltype(&cuda::compose) const kOnGpu = SIMILIS_IF_CUDA(cuda::compose);

}  // namespace

void compose(
    const Grid& grid, const Tensor& d, const Tensor& u, const Tensor& to, const Execution& exec) {
  const std::int64_t count = u.shape.count();
  if (grid.device.kind == DeviceKind::cuda && count < std::numeric_limits<std::int32_t>::max()) {
    return kOnGpu(GridRows(grid), d, u, to, exec);
  }
  if (can_compose_cpu(grid, {})) return compose_cpu(grid, d, u, {}, to, exec);
  scale(grid.device, count, 1, d, to, exec);
  const Tensor by_voxel = displacement_matrix({}, grid, exec);
  sample_into(components_first(u), {.output = components_first(to), .accumulate = true},
      {.displacement = d, .grid_affine = by_voxel, .padding_mode = Outside::border}, exec);
}

void exponential(
    const Grid& grid, const Tensor& v, int sign, const Tensor& u, const Execution& exec) {
  constexpr int kLeast = 6, kMost = 30;
  const std::int64_t count = v.shape.count();
  const double largest = std::sqrt(largest_square(GridRows(grid), v, exec));
  int squarings = kLeast;
  while (squarings < kMost && std::ldexp(largest, -squarings) >= 0.25) ++squarings;
  // The last of the squarings ends in u.
  const Tensor other = allocate(v.shape, v.dtype, grid.device, exec);
  const Tensor* from = squarings % 2 == 0 ? &u : &other;
  const Tensor* to = squarings % 2 == 0 ? &other : &u;
  scale(grid.device, count, std::ldexp(sign, -squarings), v, *from, exec);
  for (int i = 0; i < squarings; ++i) {
    compose(grid, *from, *from, *to, exec);
    std::swap(from, to);
  }
}

}  // namespace similis::registration_internal
