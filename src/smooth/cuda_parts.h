// SPDX-License-Identifier: Apache-2.0
// The parts that the GPU's kernels of smoothing share.
#pragma once

#include <cstdint>
#include <vector>

#include "src/gpu/cuda/vendor.h"
#include "src/smooth/cuda.h"
#include "src/smooth/smooth.h"

namespace similis::smooth_internal {

// The axes of x or output.
struct Elements {
  void* data;
  DType dtype;
  std::int64_t strides[6];

  explicit Elements(const TensorView& view) : data(view.data()), dtype(view.dtype) {
    for (int axis = 0; axis < 6; ++axis) strides[axis] = view.strides[axis];
  }
  __device__ std::int64_t image(std::int64_t n, std::int64_t c) const {
    return n * strides[kImage] + c * strides[kChannel];
  }
};

/// The planes or rows that a block reads one after another; the first may lie outside. Pointers
/// move with them by step(): a product for each place cost more than the sums of a line.
struct Coming {
  std::int64_t stride;
  int at, extent;

  __device__ Coming(int first, int of, std::int64_t by) : stride(by), at(first), extent(of) {}
  __device__ __forceinline__ bool exists() const { return at >= 0 && at < extent; }
  /// So many from here on, and one behind them: each step leads on by the stride.
  __device__ __forceinline__ bool are_inside(int count) const {
    return at >= 0 && at + count < extent;
  }
  __device__ __forceinline__ std::int64_t offset() const {
    return min(max(at, 0), extent - 1) * stride;
  }
  __device__ __forceinline__ std::int64_t step() {
    const bool moves = at >= 0 && at < extent - 1;
    ++at;
    return moves ? stride : 0;
  }
};

/// The values outside the image; folded: of an adjoint of replicated values.
enum class Outside : std::uint8_t { replicated, zero, folded };

inline Outside outside_of(const SmoothPass& pass) {
  if (pass.is_zero_padded) return Outside::zero;
  return pass.is_adjoint ? Outside::folded : Outside::replicated;
}

/// The sums of a tap and all beyond it.
inline std::vector<double> tails_of(const std::vector<double>& taps) {
  std::vector<double> tails = taps;
  for (std::size_t k = tails.size() - 1; k-- > 0;) tails[k] += tails[k + 1];
  return tails;
}

inline int radius_of(const std::vector<double>& taps) { return static_cast<int>(taps.size()) - 1; }

/// Smooths a field along z, from dense f32 memory to pass.output, with zeros outside. radius: 9 or
/// 12, at least that of the taps.
void smooth_field_depth(const SmoothPass& pass, int radius, const TensorView& from,
    const Gate& gate, const Execution& exec);

/// Smooths one axis after another, from memory to memory: f64, and under wide taps.
void smooth_directly(const SmoothPass& pass, const Execution& exec);

}  // namespace similis::smooth_internal
