// SPDX-License-Identifier: Apache-2.0
// The ordered walk over the chunks of one pair of planes: stripes are finished by any thread in any
// order, and the thread that finishes the next one in raster order adds it and those that wait
// behind it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "src/libvmaf_ssim/integer/ordered_sum.h"
#include "src/libvmaf_ssim/integer/plan.h"

namespace similis::libvmaf_ssim_internal {

/// Adds the terms of a chunk to the sum one by one: for chunks whose map does not hold.
using AddChunk = double (*)(const IntegerPlan& plan, const ChunkPlace& place, double sum);

class IntegerWalk {
 public:
  IntegerWalk(const IntegerPlan& plan, std::int64_t pair)
      : plan_(plan), pair_(pair), maps_(static_cast<std::size_t>(plan.stripes)) {}

  /// The sum from which later stripes may predict theirs.
  KnownSum known();

  /// Takes a stripe's maps, in raster order, and walks as far as stripes are finished.
  void finish(std::int64_t stripe, std::vector<ChunkMap> maps, AddChunk add_chunk);

  /// Once all stripes are finished.
  double sum() const { return known_.sum; }

 private:
  void walk(const std::vector<ChunkMap>& maps, AddChunk add_chunk);

  const IntegerPlan& plan_;
  const std::int64_t pair_;
  std::mutex mutex_;
  std::vector<std::vector<ChunkMap>> maps_;  // maps of stripes that wait; none is empty
  std::int64_t next_ = 0;
  KnownSum known_;
};

}  // namespace similis::libvmaf_ssim_internal
