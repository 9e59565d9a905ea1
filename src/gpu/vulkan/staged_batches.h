// SPDX-License-Identifier: Apache-2.0
// Batches of a call on arrays of the CPU: two are under way at a time, so that one is copied over
// while the one before it is computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
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
    batches_.push_back({std::move(commands), from, to, bytes});
    if (batches_.size() > 1) finish_one();
  }
  /// Waits for all of them.
  void finish() {
    while (!batches_.empty()) finish_one();
  }

 private:
  struct Batch {
    std::unique_ptr<Commands> commands;
    const void* from;
    void* to;
    std::size_t bytes;
  };
  void finish_one() {
    const Batch& oldest = batches_.front();
    oldest.commands->wait();
    std::memcpy(oldest.to, oldest.from, oldest.bytes);
    batches_.pop_front();
  }

  std::deque<Batch> batches_;
};

/// Number of pairs of arrays of the CPU that go together: few enough that copies overlap with
/// kernels, enough that a call of small ones is not one of many submissions.
inline std::int64_t staged_pairs(std::int64_t bytes_of_pair) {
  constexpr std::int64_t kBytes = std::int64_t{4} << 20;
  return std::max<std::int64_t>(1, kBytes / std::max<std::int64_t>(1, bytes_of_pair));
}

}  // namespace similis::gpu::vulkan
