// SPDX-License-Identifier: Apache-2.0
// Brings a few numbers to the device as parameters of a kernel, so that a captured graph holds
// them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "src/gpu/cuda/vendor.h"

namespace similis::gpu {
namespace {  // a kernel has a name in each file that includes it

constexpr int kUploadedAtOnce = 64;

struct UploadPiece {
  double numbers[kUploadedAtOnce];
};

__global__ void upload_kernel(UploadPiece piece, int count, double* to) {
  if (static_cast<int>(threadIdx.x) < count) to[threadIdx.x] = piece.numbers[threadIdx.x];
}

// Queues the copies of the numbers to the device's memory.
void upload(const char* operation, void* stream, const std::vector<double>& numbers, double* to) {
  for (std::size_t first = 0; first < numbers.size(); first += kUploadedAtOnce) {
    UploadPiece piece = {};
    const std::size_t count = std::min<std::size_t>(kUploadedAtOnce, numbers.size() - first);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(first), count, piece.numbers);
    launch(operation, stream, 1, kUploadedAtOnce, 0, upload_kernel, piece, static_cast<int>(count),
        to + first);
  }
}

}  // namespace
}  // namespace similis::gpu
