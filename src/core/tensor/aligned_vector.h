// SPDX-License-Identifier: Apache-2.0
// A vector whose elements begin at a line of the cache, so that no load or store of a whole SIMD
// vector in it takes two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace similis {

template <class T> struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  AlignedAllocator() = default;
  template <class Other> AlignedAllocator(const AlignedAllocator<Other>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* elements, std::size_t) { ::operator delete(elements, kAlignment); }
  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

template <class T> using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace similis
