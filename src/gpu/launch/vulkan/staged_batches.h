// SPDX-License-Identifier: Apache-2.0
// Batches of a call on arrays of the CPU: two are under way at a time, so that one is copied over
// while the one before it is computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "src/gpu/vulkan/commands.h"

namespace similis::gpu::vulkan {

class StagedBatches {
 public:
  /// Submits a batch's commands. Its results, at `from` once they are done (Commands::download),
  /// are copied to `to`.
  void add(std::unique_ptr<Commands> commands, const void* from, void* to, std::size_t bytes) {
    commands->submit();
    finish();
    under_way_ = {std::move(commands), from, to, bytes};
  }
  /// Waits for all of them.
  void finish() {
    if (under_way_.commands == nullptr) return;
    under_way_.commands->wait();
    std::memcpy(under_way_.to, under_way_.from, under_way_.bytes);
    under_way_ = {};
  }

 private:
  struct Batch {
    std::unique_ptr<Commands> commands;
    const void* from = nullptr;
    void* to = nullptr;
    std::size_t bytes = 0;
  } under_way_;
};

/// Number of pairs of arrays of the CPU that go together: few enough that copies overlap with
/// kernels, enough that a call of small ones is not one of many submissions.
inline std::int64_t staged_pairs(std::int64_t bytes_of_pair) {
  constexpr std::int64_t kBytes = std::int64_t{4} << 20;
  return std::max<std::int64_t>(1, kBytes / std::max<std::int64_t>(1, bytes_of_pair));
}

}  // namespace similis::gpu::vulkan
