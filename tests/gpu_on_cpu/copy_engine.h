// SPDX-License-Identifier: Apache-2.0
// Stands in for the copy engine of compute capability 9.0: a copy is done when it is asked for, so
// that flags never wait.
#pragma once

#include <cstring>

#include "tests/gpu_on_cpu/cuda.h"
#include "tests/gpu_on_cpu/launch.h"

namespace similis::gpu {

using Flag = unsigned long long;

inline void init_flag(Flag*) {}
inline void publish_flags() {}
inline void expect_bytes(Flag*, unsigned) {}
inline void wait_for(Flag*, int) {}
inline bool elected() { return gpu_on_cpu::lane() == 0; }

inline void copy_box(
    void* to, const CUtensorMap* map, int x, int y, int channel, int image, Flag*) {
  auto* out = static_cast<unsigned char*>(to);
  const std::size_t bytes = map->element_bytes;
  const auto width = static_cast<int>(map->extents[0]), height = static_cast<int>(map->extents[1]);
  for (int row = y; row < y + static_cast<int>(map->box[1]); ++row) {
    for (int column = x; column < x + static_cast<int>(map->box[0]); ++column, out += bytes) {
      if (row < 0 || row >= height || column < 0 || column >= width) {
        std::memset(out, 0, bytes);
        continue;
      }
      std::memcpy(out,
          map->data + static_cast<std::size_t>(image) * map->strides[2] +
              static_cast<std::size_t>(channel) * map->strides[1] +
              static_cast<std::size_t>(row) * map->strides[0] +
              static_cast<std::size_t>(column) * bytes,
          bytes);
    }
  }
}

inline void copy_word(float* to, const float* from, bool exists) { *to = exists ? *from : 0.f; }
inline void mark_words() {}
inline void await_words() {}

}  // namespace similis::gpu
