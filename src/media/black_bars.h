// SPDX-License-Identifier: Apache-2.0
// Finds the black margins that all frames of a clip share.
#pragma once

#include <cstdint>
#include <optional>

#include "src/media/crop.h"

namespace similis::media {

class BlackBars {
 public:
  /// Narrows the margins to those of this frame. A sample is black up to a sixteenth of the range
  /// above black. A frame that is black all over says nothing.
  void add(const VideoFrame& frame, const VideoFormat& format);
  void add(const Image& image);

  /// The margins that all frames share, rounded down to these multiples; none if all were black.
  Crop margins(std::int64_t x_multiple = 1, std::int64_t y_multiple = 1) const;

 private:
  template <class IsBlack>
  void narrow(std::int64_t width, std::int64_t height, const IsBlack& is_black);

  std::optional<Crop> found_;
};

}  // namespace similis::media
