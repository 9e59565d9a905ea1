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

/// kTaps: the most taps along an axis.
template <int kQuantities, int kTaps> class Filter {
 public:
  static constexpr int kLines = kFilterRows + kTaps - 1;  // of the stage
  static constexpr int kAcross = kFilterColumns + kTaps - 1;
  static constexpr int kPlaces = kLines * kAcross;  // of the stage
  static constexpr int kPlacesAThread = (kPlaces + kFilterThreads - 1) / kFilterThreads;
  static constexpr int kBytes =
      kQuantities * kFilterRows * kAcross * static_cast<int>(sizeof(double));

  __device__ Filter(double* shared, const FilterTaps& taps) : filtered_(shared), taps_(taps) {}

  /// load(place, quantities) gives the quantities at a place of the stage.
  template <class Load> __device__ __forceinline__ void sum_down(const Load& load) const {
    constexpr int kItems = kAcross * kFilterRows / 2;
    const int count = taps_.count[1];
    for (int item = static_cast<int>(threadIdx.x); item < kItems; item += kFilterThreads) {
      const int row = item / kAcross * 2, column = item % kAcross;
      double one[kQuantities] = {}, two[kQuantities] = {};
#pragma unroll
      for (int line = 0; line <= kTaps; ++line) {
        if (line > count) break;
        double quantities[kQuantities];
        load((row + line) * kAcross + column, quantities);
        if (line < count) add(taps_.along[1][line < kTaps ? line : 0], quantities, one);
        if (line > 0) add(taps_.along[1][line > 0 ? line - 1 : 0], quantities, two);
      }
#pragma unroll
      for (int i = 0; i < kQuantities; ++i) {
        filtered_[(i * kFilterRows + row) * kAcross + column] = one[i];
        filtered_[(i * kFilterRows + row + 1) * kAcross + column] = two[i];
      }
    }
  }

  /// Moves on by a plane, once all threads have summed down.
  __device__ __forceinline__ void advance() {
    const int row = static_cast<int>(threadIdx.x) / kFilterColumns;
    const int column = static_cast<int>(threadIdx.x) % kFilterColumns;
    const double* const first = filtered_ + row * kAcross + column;
    double across[kQuantities] = {};
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      if (k >= taps_.count[2]) break;
#pragma unroll
      for (int i = 0; i < kQuantities; ++i) {
        across[i] = fma(taps_.along[2][k], first[i * kFilterRows * kAcross + k], across[i]);
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
    for (int k = 1; k < kTaps; ++k) {  // a tap of 0 does not keep a NaN out
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

/// A pixel on its way from memory: its bits, so that nothing waits for it. f64 stays in memory.
struct RawPixel {
  unsigned bits = 0;

  __device__ __forceinline__ void ask(const gpu::View& view, std::int64_t offset) {
    switch (view.dtype) {
      case DType::u8: bits = static_cast<const std::uint8_t*>(view.data)[offset]; return;
      case DType::f32: bits = static_cast<const unsigned*>(view.data)[offset]; return;
      case DType::f64: return;
      default: bits = static_cast<const std::uint16_t*>(view.data)[offset];
    }
  }
  __device__ __forceinline__ double value(const gpu::View& view, std::int64_t offset) const {
    switch (view.dtype) {
      case DType::u8:
      case DType::u16: return bits;
      case DType::f16: return gpu::to_float(F16{static_cast<std::uint16_t>(bits)});
      case DType::bf16: return __uint_as_float(bits << 16);
      case DType::f32: return __uint_as_float(bits);
      default: return view.load(offset);
    }
  }
};

}  // namespace similis::lncc_internal
