// SPDX-License-Identifier: Apache-2.0
// The part that the two filter kernels share: sums of several quantities under a window of any
// taps, which a block moves along z. For each plane
//   stage ─> sums down, two rows of a column a thread                                shared
//   ─> sums across, one place a thread ─> added, tap by tap, to the sums of all planes
//   of centres that see this plane                                                   registers
// Every sum is f64 and has one order, wherever blocks begin.
#pragma once

#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/tiles.h"

namespace similis::lncc_internal {

/// kTaps: the most taps along an axis. Taps beyond a narrower window are 0 and see a place of the
/// window, so that a NaN outside it stays outside.
template <int kQuantities, int kTaps> class Filter {
 public:
  static constexpr int kThreads = filter_threads(kTaps), kRows = kThreads / kFilterColumns;
  static constexpr int kLines = kRows + kTaps - 1;  // of the stage
  static constexpr int kAcross = kFilterColumns + kTaps - 1;
  static constexpr int kPlaces = kLines * kAcross;  // of the stage
  static constexpr int kPlacesAThread = (kPlaces + kThreads - 1) / kThreads;
  static constexpr int kBytes = kQuantities * kRows * kAcross * static_cast<int>(sizeof(double));

  __device__ Filter(double* shared, const FilterTaps& taps) : filtered_(shared), taps_(taps) {}

  /// load(place, quantities) gives the quantities at a place of the stage.
  template <class Load> __device__ __forceinline__ void sum_down(const Load& load) const {
    constexpr int kItems = kAcross * kRows / 2;
    const int count = taps_.count[1];
    for (int item = static_cast<int>(threadIdx.x); item < kItems; item += kThreads) {
      const int row = item / kAcross * 2, column = item % kAcross;
      double one[kQuantities] = {}, two[kQuantities] = {};
#pragma unroll
      for (int line = 0; line <= kTaps; ++line) {
        double quantities[kQuantities];
        load((row + (line < count ? line : count)) * kAcross + column, quantities);
        if (line < kTaps && line < count) add(taps_.along[1][line % kTaps], quantities, one);
        if (line > 0) add(taps_.along[1][line > 0 ? line - 1 : 0], quantities, two);
      }
#pragma unroll
      for (int i = 0; i < kQuantities; ++i) {
        filtered_[(i * kRows + row) * kAcross + column] = one[i];
        filtered_[(i * kRows + row + 1) * kAcross + column] = two[i];
      }
    }
  }

  /// Moves on by a plane, once all threads have summed down.
  __device__ __forceinline__ void advance() {
    const int row = static_cast<int>(threadIdx.x) / kFilterColumns;
    const int column = static_cast<int>(threadIdx.x) % kFilterColumns;
    const double* const first = filtered_ + row * kAcross + column;
    const int last = taps_.count[2] - 1;
    double across[kQuantities] = {};
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      const double* const place = first + (k < last ? k : last);
#pragma unroll
      for (int i = 0; i < kQuantities; ++i) {
        across[i] = fma(taps_.along[2][k], place[i * kRows * kAcross], across[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kQuantities; ++i) {
#pragma unroll
      for (int k = 0; k + 1 < kTaps; ++k) {
        sums_[i][k] = fma(taps_.along[0][k], across[i], sums_[i][k + 1]);
      }
      sums_[i][kTaps - 1] = taps_.along[0][kTaps - 1] * across[i];
    }
    if (taps_.count[0] == kTaps) return;
#pragma unroll
    for (int k = 1; k < kTaps; ++k) {
      if (k < taps_.count[0]) continue;
#pragma unroll
      for (int i = 0; i < kQuantities; ++i) sums_[i][k] = 0;
    }
  }
  /// Returns a sum under the window whose last plane was added.
  __device__ __forceinline__ double sum(int quantity) const { return sums_[quantity][0]; }

 private:
  __device__ __forceinline__ static void add(
      double tap, const double (&quantities)[kQuantities], double (&sums)[kQuantities]) {
#pragma unroll
    for (int i = 0; i < kQuantities; ++i) sums[i] = fma(tap, quantities[i], sums[i]);
  }

  double* const filtered_;
  const FilterTaps& taps_;
  double sums_[kQuantities][kTaps] = {};  // of the planes of centres that see the last plane
};

/// Calls visit(T()) with the type of elements in memory, Other for the rarer types: a kernel asks
/// for the type once for all its pixels of a plane.
struct Other {};
template <class Visit> __device__ __forceinline__ void visit_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32: return visit(float());
    case DType::f16: return visit(F16());
    case DType::bf16: return visit(BF16());
    case DType::u8: return visit(std::uint8_t());
    default: return visit(Other());
  }
}

/// An element on its way from memory: its bits, so that nothing waits for it before value(). Those
/// of rarer types stay in memory.
struct RawElement {
  unsigned bits = 0;

  template <class T>
  __device__ __forceinline__ void ask(T, const gpu::View& view, std::int64_t at) {
    if constexpr (sizeof(T) == sizeof(float)) {
      bits = static_cast<const unsigned*>(view.data)[at];
    } else if constexpr (sizeof(T) == sizeof(F16)) {
      bits = static_cast<const std::uint16_t*>(view.data)[at];
    } else if constexpr (!std::is_same_v<T, Other>) {
      bits = static_cast<const std::uint8_t*>(view.data)[at];
    }
  }
  template <class T>
  __device__ __forceinline__ double value(T, const gpu::View& view, std::int64_t at) const {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, BF16>) {
      return __uint_as_float(sizeof(T) == sizeof(float) ? bits : bits << 16);
    } else if constexpr (std::is_same_v<T, F16>) {
      return gpu::to_float(F16{static_cast<std::uint16_t>(bits)});
    } else if constexpr (std::is_same_v<T, Other>) {
      return view.load(at);
    } else {
      return gpu::to_float(static_cast<T>(bits));
    }
  }
};

}  // namespace similis::lncc_internal
