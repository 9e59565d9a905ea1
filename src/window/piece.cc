// SPDX-License-Identifier: Apache-2.0
#include "src/window/piece.h"

namespace similis {

// Tiles of 64 rows of 1024 pixels: memory delivers long rows fastest, 64 leave work for many
// threads at 31 % of halo for a gradient (256 rows take 5 % less time, for a quarter of the tiles).
// Windows with depth hold rings of planes, of their products and derivatives, which 24 rows of 128
// pixels keep in a second-level cache of 2 MB for most windows; 32 of 64 have more halo and take a
// sixth longer.
std::vector<Piece> pieces_of(const Extents& images, const Window& window) {
  const bool is_3d = window.radius_z() > 0;
  const auto along_z = cut(images[2], is_3d ? 64 : 256);
  const auto along_y = cut(images[3], is_3d ? 24 : 64);
  const auto along_x = cut(images[4], is_3d ? 128 : 1024);
  std::vector<Piece> pieces;
  for (std::int64_t image = 0; image < images[0]; ++image) {
    for (std::int64_t channel = 0; channel < images[1]; ++channel) {
      for (const Interval& z : along_z) {
        for (const Interval& y : along_y) {
          for (const Interval& x : along_x) pieces.push_back({image, channel, {z, y, x}});
        }
      }
    }
  }
  return pieces;
}

}  // namespace similis
