// SPDX-License-Identifier: Apache-2.0
// Number of blocks of a launch. Kernels loop over all that more blocks would have done.
#pragma once

#include <algorithm>
#include <cstdint>

namespace similis::gpu {

/// Enough blocks to fill any GPU many times over.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;

/// As many blocks as asked for: at least 1, at most `most`.
inline unsigned blocks_of(std::int64_t blocks, std::int64_t most = kMostBlocks) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most));
}

/// Enough blocks of `threads` threads to give each item a thread, within the same limits.
inline unsigned blocks_for_items(std::int64_t items, int threads, std::int64_t most = kMostBlocks) {
  return blocks_of((items + threads - 1) / threads, most);
}

}  // namespace similis::gpu
