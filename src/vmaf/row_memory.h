// SPDX-License-Identifier: Apache-2.0
// Memory of the rows that a stripe of a plane is measured in.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace similis::vmaf_internal {

/// Rows that are freed together, of bytes that are 0 at first. Each begins with a line of the
/// cache: vectors of 64 bytes that cross lines cost twice as much.
class RowMemory {
 public:
  static constexpr std::size_t kAlignment = 64;

  std::byte* take(std::size_t bytes) {
    const std::size_t lines = (bytes + kAlignment - 1) / kAlignment;
    if (blocks_.empty() || used_ + lines > blocks_.back().size()) {
      // Twice as many each time, up to 16 KB: of blocks of 64 KB the threads' heaps kept 1 MB more.
      const std::size_t last = blocks_.empty() ? kFewestLines / 2 : blocks_.back().size();
      blocks_.emplace_back(std::max(lines, std::min(2 * last, kMostLines)));
      used_ = 0;
    }
    const std::size_t first = used_;
    used_ += lines;
    return blocks_.back()[first].bytes.data();
  }

 private:
  struct alignas(kAlignment) Line {
    std::array<std::byte, kAlignment> bytes{};
  };
  static constexpr std::size_t kFewestLines = 64, kMostLines = 256;
  std::vector<std::vector<Line>> blocks_;
  std::size_t used_ = 0;  // lines of the last block
};

}  // namespace similis::vmaf_internal
