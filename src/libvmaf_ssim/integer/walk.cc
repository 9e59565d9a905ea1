// SPDX-License-Identifier: Apache-2.0
#include "src/libvmaf_ssim/integer/walk.h"

#include <utility>

namespace similis::libvmaf_ssim_internal {

KnownSum IntegerWalk::known() {
  const std::lock_guard lock(mutex_);
  return known_;
}

void IntegerWalk::finish(std::int64_t stripe, std::vector<ChunkMap> maps, AddChunk add_chunk) {
  const std::lock_guard lock(mutex_);
  maps_[static_cast<std::size_t>(stripe)] = std::move(maps);
  while (next_ < plan_.stripes && !maps_[static_cast<std::size_t>(next_)].empty()) {
    walk(std::exchange(maps_[static_cast<std::size_t>(next_)], {}), add_chunk);
    ++next_;
  }
}

void IntegerWalk::walk(const std::vector<ChunkMap>& maps, AddChunk add_chunk) {
  const std::int64_t first_row = plan_.first_row(next_);
  for (std::int64_t i = 0; i < plan_.chunks(next_); ++i) {
    if (advance(maps[static_cast<std::size_t>(i)], known_.sum)) continue;
    const ChunkPlace place{pair_, first_row + i / plan_.tiles, i % plan_.tiles};
    known_.sum = add_chunk(plan_, place, known_.sum);
  }
  known_.pixels += plan_.rows(next_) * plan_.planes.width();
}

}  // namespace similis::libvmaf_ssim_internal
