// SPDX-License-Identifier: Apache-2.0
// Memory that the features of a frame use one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace similis::vmaf_internal {

class Workspace {
 public:
  /// At least `bytes` bytes from a multiple of 64 on. If memory has to grow, its content is lost.
  std::byte* at_least(std::size_t bytes) {
    if (memory_ == nullptr || bytes > size_) {
      memory_.reset();
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + kAlignment);
      size_ = bytes;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    return memory_.get() + (kAlignment - address % kAlignment);
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kAlignment = 64;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace similis::vmaf_internal
