// SPDX-License-Identifier: Apache-2.0
// The pieces into which images are cut for the threads of a CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "similis/tensor.hpp"
#include "src/core/parallel.h"
#include "src/window/tile.h"
#include "src/window/window.h"

namespace similis {

/// One tile of one plane (a channel of an image).
struct Piece {
  std::int64_t image, channel;
  Tile tile;
};

/// The pieces of images [N,C,D,H,W].
std::vector<Piece> pieces_of(const Extents& images, const Window& window);

/// Runs all pieces on exec's threads and returns the sums of each.
template <class Sums, class Run>
std::vector<Sums> run_pieces(
    const std::vector<Piece>& pieces, const Execution& exec, const Run& run) {
  std::vector<Sums> sums(pieces.size());
  parallel_for(exec, static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    sums[index] = run(pieces[index]);
  });
  return sums;
}

}  // namespace similis
