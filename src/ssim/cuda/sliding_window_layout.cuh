// SPDX-License-Identifier: Apache-2.0
// The layout of the sliding window kernel's shared memory, by the form of the images.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"
#include "src/ssim/cuda/sliding_window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {

/// The form of a pixel pair in memory, x and y or x + y and x - y; kGathers says that threads load
/// it instead of the copy engine.
template <class T> struct Pictures {
  using Element = T;
  static constexpr bool kSums = false, kGathers = false;
};
struct Sums {
  using Element = float;
  static constexpr bool kSums = true, kGathers = false;
};
struct AnyPictures {
  using Element = float;
  static constexpr bool kSums = false, kGathers = true;
};

/// The layout of one instance.
template <class PixelPairs, int threads, int rows, int blocks_an_sm, bool with_gradient,
    Scope the_scope, int the_radius = 5>
struct SlidingWindowPolicy {
  using Pairs = PixelPairs;
  using Element = typename Pairs::Element;
  static constexpr int kThreads = threads;
  static constexpr int kRows = rows;  // of a batch; more cost shared memory, fewer cost barriers
  static constexpr int kBlocks = blocks_an_sm;  // bounds the number of registers
  static constexpr bool kGradient = with_gradient;
  static constexpr bool kTrains = the_scope == Scope::training || the_scope == Scope::all;
  static constexpr bool kIsMasked = the_scope == Scope::masked;
  static constexpr bool kDoesAll = the_scope == Scope::all;
  static constexpr int kRadius = the_radius;  // 5 or 10
  // A thread has as many running sums with 10 as with 5: in one column, not in two.
  static constexpr int kColumnsEach = 10 / kRadius;
  static constexpr int kColumns =
      kColumnsEach * threads;                  // loaded; a rim of them only feeds neighbours
  static constexpr int kBehind = 2 * kRadius;  // rows and columns that a window sees, but its first
  static constexpr int kHalo = with_gradient ? 2 * kBehind : kBehind;
  // Copies begin at multiples of 16 bytes, and a gradient's rows at multiples of 8 columns.
  static constexpr int kAlign = 16 / static_cast<int>(sizeof(Element));
  static constexpr int kDelta = with_gradient ? (kAlign - kBehind % kAlign) % kAlign : 0;
  static constexpr int kOwned = with_gradient ? (kColumns - 2 * kBehind - kDelta) / 8 * 8
                                              : (kColumns - kBehind) / kAlign * kAlign;
  // Rows of A, B, D are chunks of 4 columns, first the even chunks and then the odd ones: threads
  // that are neighbours in a warp and read 8 columns or more each then use different banks.
  static constexpr int kHalf = kColumns / 2 + 16;
  static constexpr int kPitch = 2 * kHalf;
  static_assert(kHalf % 32 == 16);
  static constexpr int kArray = rows * kPitch;
  static constexpr int kArrays = with_gradient ? 10 : 4;
  static constexpr int kBoxes = (kColumns + 255) / 256;  // the copy engine takes 256 columns
  static constexpr int kBox = kColumns / kBoxes;
  static constexpr int kImage = rows * kBox * kBoxes;
  static_assert(kBox * sizeof(Element) % 16 == 0 && rows * kBox * sizeof(Element) % 128 == 0);
  static constexpr int kRing = with_gradient ? 7 : 2;  // batches of raw rows; H2 looks 4 back
  static constexpr int kTasks = kColumns / 8;          // each of 8 outputs; a row has so many
  static constexpr int kTaskRows = threads / kTasks;   // rows at once
  static_assert(!with_gradient || rows == kTaskRows);
  static constexpr int kRawBytes = kRing * 2 * kImage * static_cast<int>(sizeof(Element));
  // Returns the place of a column in a batch of an image.
  SIMILIS_HOST_DEVICE static int word_of(int column) {
    return column / kBox * (kRows * kBox) + column % kBox;
  }
  // Maps, and gradients whose rows begin anywhere, go through shared memory; a warp stores a row.
  static constexpr bool kStages = kDoesAll || (Pairs::kGathers && with_gradient);
  static constexpr int kStagedWords = kStages ? 8 * threads : 0;
  static_assert(!kStages || kTasks % 32 == 0);
  static constexpr int kSharedBytes = kRawBytes + (kArrays * kArray + kStagedWords) * 4 + 16;
};

namespace sliding_window {

// Returns the place in a row of A, B or D of the first of `each` columns, which begin at
// place·each.
template <int each> __device__ __forceinline__ int word_of_columns(int place, int half) {
  constexpr int kInChunk = 4 / each;
  const int chunk = place / kInChunk;
  return (chunk & 1) * half + (chunk >> 1) * 4 + place % kInChunk * each;
}

}  // namespace sliding_window

}  // namespace similis::ssim_internal

#endif
