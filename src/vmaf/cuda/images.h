// SPDX-License-Identifier: Apache-2.0
// Pairs of images on a GPU as the kernels of VMAF's features take them, and memory that one
// allocation is cut into.
#pragma once

#include <cstddef>
#include <cstdint>

namespace similis::vmaf_internal {

/// Integer sums of kernels, modulo 2^64: a negative sum is its two's complement.
using GpuSum = unsigned long long;

/// Images of bytes or words with any strides, which count samples.
struct GpuImages {
  const void* samples = nullptr;
  std::int64_t image_stride = 0, row_stride = 0, column_stride = 1;
};

/// A batch of pairs. Each reference image meets `distorted_of_each` distorted ones in turn.
struct GpuPairs {
  GpuImages reference, distorted;
  std::int64_t count = 0;  ///< of pairs
  std::int64_t distorted_of_each = 1;
  int width = 0, height = 0;
  bool is_words = false;
  int bit_depth = 8;

  std::int64_t references() const { return count / distorted_of_each; }
};

/// Cuts one allocation into aligned parts; without memory it measures them.
class GpuCut {
 public:
  explicit GpuCut(char* memory) : memory_(memory) {}
  template <class T> T* take(std::int64_t count) {
    T* part = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  std::size_t bytes_ = 0;
};

}  // namespace similis::vmaf_internal
