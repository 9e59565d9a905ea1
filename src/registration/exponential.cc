// SPDX-License-Identifier: Apache-2.0
#include "src/registration/exponential.h"

#include <cmath>

#include "similis/warp.hpp"
#include "src/registration/levels.h"
#include "src/registration/passes.h"

namespace similis::registration_internal {

void exponential(
    const Grid& grid, const Tensor& v, int sign, const Tensor& u, const Execution& exec) {
  constexpr int kLeast = 6, kMost = 30;
  const std::int64_t count = v.shape.count();
  const double largest = std::sqrt(largest_square(GridRows(grid), v.elements<float>(), exec));
  int squarings = kLeast;
  while (squarings < kMost && std::ldexp(largest, -squarings) >= 0.25) ++squarings;
  // The last of the squarings ends in u.
  const Tensor other = allocate(v.shape, DType::f32, grid.device, exec);
  const Tensor* from = squarings % 2 == 0 ? &u : &other;
  const Tensor* to = squarings % 2 == 0 ? &other : &u;
  scale(grid.device, count, static_cast<float>(std::ldexp(sign, -squarings)), v.elements<float>(),
      from->elements<float>(), exec);
  const Tensor by_voxel = displacement_matrix({}, grid, exec);
  for (int i = 0; i < squarings; ++i) {
    scale(grid.device, count, 1, from->elements<float>(), to->elements<float>(), exec);
    sample_into(components_first(*from), {.output = components_first(*to), .accumulate = true},
        {.displacement = *from, .grid_affine = by_voxel, .padding_mode = Outside::border}, exec);
    std::swap(from, to);
  }
}

}  // namespace similis::registration_internal
