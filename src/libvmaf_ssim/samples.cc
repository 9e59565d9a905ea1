// SPDX-License-Identifier: Apache-2.0
#include "src/libvmaf_ssim/samples.h"

#include <algorithm>
#include <atomic>

#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis::libvmaf_ssim_internal {
namespace {

constexpr std::int64_t kRowsOfTask = 64;

// All bits that the samples of a row have set.
std::uint16_t bits_of_row(const std::uint16_t* samples, std::int64_t stride, std::int64_t count) {
  std::uint16_t bits = 0;
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) bits |= samples[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) bits |= samples[i * stride];
  }
  return bits;
}

// The row that comes `index`-th in all planes.
const std::uint16_t* row_of(const TensorView& planes, std::int64_t index) {
  const std::int64_t height = planes.shape[1];
  return static_cast<const std::uint16_t*>(planes.data()) + index / height * planes.strides[0] +
         index % height * planes.strides[1];
}

// True if any sample is above 2^bit_depth - 1.
bool is_exceeded(const TensorView& planes, int bit_depth, const Execution& exec) {
  const std::int64_t rows = planes.shape[0] * planes.shape[1];
  std::atomic<unsigned> bits = 0;
  parallel_for(exec, (rows + kRowsOfTask - 1) / kRowsOfTask, [&](std::int64_t task) {
    unsigned of_task = 0;
    const std::int64_t end = std::min(rows, (task + 1) * kRowsOfTask);
    for (std::int64_t row = task * kRowsOfTask; row < end; ++row) {
      of_task |= bits_of_row(row_of(planes, row), planes.strides[2], planes.shape[2]);
    }
    bits |= of_task;
  });
  return bits >> bit_depth != 0;
}

// Row by row once more: only who is refused waits for this.
std::uint16_t largest(const TensorView& planes) {
  std::uint16_t result = 0;
  for (std::int64_t row = 0; row < planes.shape[0] * planes.shape[1]; ++row) {
    for (std::int64_t i = 0; i < planes.shape[2]; ++i) {
      result = std::max(result, row_of(planes, row)[i * planes.strides[2]]);
    }
  }
  return result;
}

}  // namespace

void require_samples(const char* operation, const PlanePairs& planes, const Execution& exec) {
  if (planes.x.dtype == DType::u8 || planes.bit_depth == 16) return;
  for (const auto& [name, view] : {std::pair{"x", &planes.x}, std::pair{"y", &planes.y}}) {
    if (!is_exceeded(*view, planes.bit_depth, exec)) continue;
    throw InvalidArgument(
        fmt::format("{}: {} holds a sample of {}; with bit_depth {} none may be above {}",
            operation, name, largest(*view), planes.bit_depth, (1 << planes.bit_depth) - 1));
  }
}

}  // namespace similis::libvmaf_ssim_internal
