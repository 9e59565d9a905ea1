// SPDX-License-Identifier: Apache-2.0
// LNCC on the GPU under boxes: which passes the march takes, and how it deals them out.
#include "src/lncc/cuda_march.h"

#include <algorithm>

namespace similis::lncc_internal {
namespace {

std::int64_t pieces(std::int64_t extent, std::int64_t length) {
  return (extent + length - 1) / length;
}

// As far as it depends on the images and the number of multiprocessors.
March march_of(const CudaPlan& plan) {
  const Geometry& g = plan.measure.geometry;
  const int fields = field_count(plan.pass);
  const int multiprocessors = gpu::limits(plan.device).multiprocessors;
  March march{.measure = plan.measure,
      .window_z = 2 * g.radius[0] + 1,
      .window_y = 2 * g.radius[1] + 1,
      .window_x = 2 * g.radius[2] + 1,
      .tiles_x = static_cast<int>(pieces(g.extent[2], kTileX)),
      .tiles_y = static_cast<int>(pieces(g.extent[1], kTileY)),
      .chunks = 1,
      .chunk_planes = g.extent[0],
      .items = 0,
      .scale = 1 / plan.pass.taps,
      .partials = plan.partials,
      .rings = nullptr};
  // As many chunks along z as take the fewest planes one after the other, those before a chunk's
  // first result included.
  const std::int64_t columns = g.planes * march.tiles_x * march.tiles_y;
  const std::int64_t before = 2 * g.radius[0] * (fields > 0 ? 1 : 0) + g.radius[0];
  std::int64_t least = 0;
  for (std::int64_t chunks = 1; chunks <= std::min<std::int64_t>(g.extent[0], 64); ++chunks) {
    const std::int64_t planes = pieces(g.extent[0], chunks);
    const std::int64_t turns = pieces(columns * pieces(g.extent[0], planes), multiprocessors);
    if (least != 0 && turns * (planes + before) >= least) continue;
    least = turns * (planes + before);
    march.chunk_planes = planes;
  }
  march.chunks = static_cast<int>(pieces(g.extent[0], march.chunk_planes));
  march.items = columns * march.chunks;
  return march;
}

}  // namespace

bool can_march(const CudaPlan& plan) {
  const Geometry& g = plan.measure.geometry;
  if (!plan.pass.is_box || !plan.pass.valid_mask.empty()) return false;
  if (2 * g.radius[1] + 1 > 11 || 2 * g.radius[2] + 1 > 11) return false;
  const int fields = field_count(plan.pass);
  const Layout layout{2 * g.radius[2] + 1, 2 * g.radius[1] + 1, fields};
  // block_sum() has one number a thread.
  const std::size_t bytes =
      sizeof(double) * static_cast<std::size_t>(layout.doubles() + kMarchThreads);
  return bytes <= static_cast<std::size_t>(gpu::limits(plan.device).shared_bytes_a_block);
}

int march_slots(const CudaPlan& plan) {
  return static_cast<int>(march_of(plan).items / plan.measure.geometry.planes);
}

void run_march(const CudaPlan& plan) {
  const March march = march_of(plan);
  switch (field_count(plan.pass)) {
    case 3: return launch_march<3>(plan, march);
    case 5: return launch_march<5>(plan, march);
    default: return launch_march<0>(plan, march);
  }
}

}  // namespace similis::lncc_internal
