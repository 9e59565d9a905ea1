// SPDX-License-Identifier: Apache-2.0
// The part that the two filter kernels share: sums of several quantities under a window of any
// taps, which a block moves along z. For each plane
//   stage ─> sums down, two rows of a column a thread                                shared
//   ─> sums across, one place a thread ─> added, tap by tap, to the sums of all planes
//   of centres that see this plane                                                   registers
// Stage and sums down have two places each, so that between two barriers a plane goes to the stage,
// the one before it is summed down and the one before that across: threads that wait in one of the
// three leave the others to work. Every sum is f64 and has one order, wherever blocks begin.
#pragma once

#include "src/lncc/cuda/fast_path.h"
#include "src/lncc/cuda/raw_element.cuh"
#include "src/lncc/cuda/tiles.h"

namespace similis::lncc_internal {

/// kTaps: the most taps along an axis. Taps beyond a narrower window are 0 and see a place of the
/// window, so that a NaN outside it stays outside.
template <int kQuantities, int kTaps, int kBlockThreads> class Filter {
 public:
  static constexpr int kThreads = kBlockThreads, kRows = kThreads / kFilterColumns;
  static constexpr int kLines = kRows + kTaps - 1;  // of the stage
  static constexpr int kAcross = kFilterColumns + kTaps - 1;
  static constexpr int kPlaces = kLines * kAcross;  // of the stage
  static constexpr int kPlacesAThread = (kPlaces + kThreads - 1) / kThreads;
  static constexpr int kSums = kQuantities * kRows * kAcross;  // of one place
  static constexpr int kBytes = 2 * kSums * static_cast<int>(sizeof(double));

  __device__ Filter(double* shared, const FilterTaps& taps) : filtered_(shared), taps_(taps) {}

  /// load(place, quantities) gives the quantities at a place of the stage. The sums go to one of
  /// two places, 0 or 1.
  template <class Load> __device__ __forceinline__ void sum_down(int to, const Load& load) const {
    if (taps_.count[1] == kTaps) return sum_down<true>(to, load);
    sum_down<false>(to, load);
  }

  /// Moves on by a plane, once all threads have summed it down.
  __device__ __forceinline__ void advance(int from) {
    double across[kQuantities] = {};
    if (taps_.count[2] == kTaps) {
      sum_across<true>(from, across);
    } else {
      sum_across<false>(from, across);
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
  // kIsWide: the window has kTaps taps, so that no tap needs a look; jumps between taps would make
  // loads wait for each other.
  template <bool kIsWide, class Load>
  __device__ __forceinline__ void sum_down(int to, const Load& load) const {
    double* const filtered = filtered_ + to * kSums;
    constexpr int kItems = kAcross * kRows / 2;
    const int count = kIsWide ? kTaps : taps_.count[1];
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
        filtered[(i * kRows + row) * kAcross + column] = one[i];
        filtered[(i * kRows + row + 1) * kAcross + column] = two[i];
      }
    }
  }
  template <bool kIsWide>
  __device__ __forceinline__ void sum_across(int from, double (&across)[kQuantities]) const {
    const int row = static_cast<int>(threadIdx.x) / kFilterColumns;
    const int column = static_cast<int>(threadIdx.x) % kFilterColumns;
    const double* const first = filtered_ + from * kSums + row * kAcross + column;
    const int last = (kIsWide ? kTaps : taps_.count[2]) - 1;
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      const double* const place = first + (k < last ? k : last);
#pragma unroll
      for (int i = 0; i < kQuantities; ++i) {
        across[i] = fma(taps_.along[2][k], place[i * kRows * kAcross], across[i]);
      }
    }
  }
  __device__ __forceinline__ static void add(
      double tap, const double (&quantities)[kQuantities], double (&sums)[kQuantities]) {
#pragma unroll
    for (int i = 0; i < kQuantities; ++i) sums[i] = fma(tap, quantities[i], sums[i]);
  }

  double* const filtered_;
  const FilterTaps& taps_;
  double sums_[kQuantities][kTaps] = {};  // of the planes of centres that see the last plane
};

}  // namespace similis::lncc_internal
