// SPDX-License-Identifier: Apache-2.0
// The vocabulary of windowed measures: axes, windows and paddings.
#pragma once

#include <array>
#include <cstdint>

#include "similis/reduction.hpp"

namespace similis {

/// One value for all axes, or one per axis: (y, x) or (z, y, x).
template <class T> class PerAxis {
 public:
  constexpr PerAxis(T all) : values_{all, all, all} {}
  constexpr PerAxis(T y, T x) : count_(2), values_{T{}, y, x} {}
  constexpr PerAxis(T z, T y, T x) : count_(3), values_{z, y, x} {}

  /// The number of values it was given.
  constexpr int count() const { return count_; }
  constexpr T z() const { return values_[0]; }
  constexpr T y() const { return values_[1]; }
  constexpr T x() const { return values_[2]; }
  friend constexpr bool operator==(const PerAxis&, const PerAxis&) = default;

 private:
  int count_ = 1;
  std::array<T, 3> values_;
};

/// The weights of a window's pixels.
enum class WindowShape : std::uint8_t {
  box,       ///< all taps alike
  gaussian,  ///< exp(-d²/2σ²)
};

/// The pixels that a window sees outside the image.
enum class Padding : std::uint8_t {
  valid,        ///< nothing: only windows that lie inside count, and the map is smaller
  same,         ///< zeros
  reflect,      ///< the image mirrored at its outermost pixels: c b | a b c
  replicate,    ///< the outermost pixel: a a | a b c
  renormalize,  ///< nothing: the window is cut at the border and its weights sum to 1 again
};

/// Rows of the first spatial axis, from `first` up to, not including, `end`; all if both are 0.
struct RowRange {
  std::int64_t first = 0, end = 0;
};

}  // namespace similis
