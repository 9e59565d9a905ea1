// SPDX-License-Identifier: Apache-2.0
// Memory of the rows that a stripe of a plane is measured in.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace similis::vmaf_internal {

/// Rows that are freed together. Each begins with a line of the cache: vectors of 64 bytes that
/// cross lines cost twice as much.
class RowMemory {
 public:
  static constexpr std::size_t kAlignment = 64;

  std::byte* take(std::size_t bytes) {
    const std::size_t lines = (bytes + kAlignment - 1) / kAlignment;
    if (used_ + lines > size_) {
      // Twice as many each time, up to 16 KB: of blocks of 64 KB the threads' heaps kept 1 MB more.
      size_ = std::max(lines, std::min(2 * size_, kMostLines));
      blocks_.push_back(std::make_unique_for_overwrite<Line[]>(size_));
      used_ = 0;
    }
    const std::size_t first = used_;
    used_ += lines;
    return blocks_.back()[first].bytes.data();
  }

 private:
  struct alignas(kAlignment) Line {
    std::array<std::byte, kAlignment> bytes;
  };
  static constexpr std::size_t kFewestLines = 64, kMostLines = 256;
  std::vector<std::unique_ptr<Line[]>> blocks_;
  std::size_t size_ =
      kFewestLines / 2;  // lines of the last block, half of the first one's before it
  std::size_t used_ = size_;
};

}  // namespace similis::vmaf_internal
