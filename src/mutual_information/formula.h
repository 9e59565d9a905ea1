// SPDX-License-Identifier: Apache-2.0
// Mutual information, once for CPU and GPU: the place of a value among the bins, its weights in
// them, and the term of a histogram's entry in the value and in its derivatives.
//
// A value v has the position t = (v - low)·bins/(high - low) - ½, so that bin i has its centre at
// i. With k the kernel, its weights in bins 0 … bins-1 are k(t - i) / Σ_i k(t - i). Only `taps`
// neighbours are looked at, moved to where all of them exist: no bin beyond the ends is ever named,
// and the weights cut there are left out of the sum.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"

namespace similis::mutual_information_internal {

/// a·b + c: on GPUs in one instruction.
template <class T> SIMILIS_HOST_DEVICE T fused(T a, T b, T c) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  if constexpr (sizeof(T) == sizeof(float)) return fmaf(a, b, c);
#endif
  return a * b + c;
}

/// The limits of an image's values and how many bins one unit is; 0 if all values are equal.
template <class T> struct Scale { T low, high, bins_per_unit; };

template <class T> SIMILIS_HOST_DEVICE Scale<T> scale_of(double low, double high, int bins) {
  const double span = high - low;
  return {static_cast<T>(low), static_cast<T>(high), static_cast<T>(span > 0 ? bins / span : 0)};
}

/// In bins; NaN for NaN, and for an infinite value between infinite limits.
template <class T> SIMILIS_HOST_DEVICE T position(T v, const Scale<T>& s) {
  return fused(v - s.low, s.bins_per_unit, static_cast<T>(-0.5));
}

/// A position with values outside the limits clamped to them: from -½ to bins - ½, also for NaN.
template <class T> SIMILIS_HOST_DEVICE T within(T t, int bins) {
  const T least = static_cast<T>(-0.5), most = static_cast<T>(bins) + least;
  const T above = t > least ? t : least;
  return above < most ? above : most;
}

/// 1, or 0 where a value was clamped and has no slope.
template <class T> SIMILIS_HOST_DEVICE T is_inside(T v, const Scale<T>& s) {
  return static_cast<T>((v >= s.low) & (v <= s.high));
}

/// The first of the neighbours that are looked at.
template <class T> SIMILIS_HOST_DEVICE int first_bin(T t, int bins, int taps) {
  const int first = static_cast<int>(t + 1) - taps / 2;  // t + 1 > 0: rounds down
  const int inside = first > 0 ? first : 0;
  return inside < bins - taps ? inside : bins - taps;
}

/// The bin that holds a value, by a division, as a product with a rounded factor would move values
/// that lie exactly between two bins.
template <class T> SIMILIS_HOST_DEVICE int holding_bin(T v, const Scale<T>& s, int bins) {
  const T quotient = (v - s.low) / (s.high - s.low);
  const T share = s.bins_per_unit > 0 && quotient > 0 ? quotient : 0;
  const int bin = static_cast<int>((share < 1 ? share : 1) * static_cast<T>(bins));
  return bin < bins - 1 ? bin : bins - 1;
}

/// To within [0, 1].
template <class T> SIMILIS_HOST_DEVICE T unit(T v) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == sizeof(float)) return __saturatef(v);
#endif
  const T above = v > 0 ? v : 0;
  return above < 1 ? above : 1;
}

/// eˣ for x ≤ 0, to 1e-15, without a branch. Below -708 it is 0.
SIMILIS_HOST_DEVICE double exponential(double x) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return exp(x);
#else
  constexpr double kLog2E = 1.4426950408889634, kRound = 0x1.8p52;
  constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  const double bounded = x > -708 ? x : -708;
  const double shifted = bounded * kLog2E + kRound;  // the last bits hold the nearest integer
  const double n = shifted - kRound;
  const double r = bounded - n * kLn2High - n * kLn2Low;
  double sum = 1.0 / 6227020800;  // Taylor: r is at most ln 2 / 2
  constexpr double kInverse[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
      1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1};
  for (const double inverse : kInverse) sum = sum * r + inverse;
  const std::uint64_t exponent = (bits_as<std::uint64_t>(shifted) + 1023) << 52;
  return x > -708 ? sum * bits_as<double>(exponent) : 0;
#endif
}

SIMILIS_HOST_DEVICE float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return __expf(x);  // to 2e-7 relative for each unit of |x|, where weights are e^-|x|
#else
  return static_cast<float>(exponential(static_cast<double>(x)));
#endif
}

/// k(d) and k'(d), up to a factor that leaves with the sum of the weights.
template <class T> struct Weight { T value, slope; };

/// The cubic B-spline times 3/2: with a = |d|, 2·(1 - a/2)³₊ - (1 - a)³₊.
template <class T> SIMILIS_HOST_DEVICE Weight<T> b_spline_weight(T d) {
  const T a = d < 0 ? -d : d;
  const T outer = unit(fused(a, static_cast<T>(-0.5), static_cast<T>(1))), inner = unit(1 - a);
  const T outer2 = outer * outer, inner2 = inner * inner;
  const T steep = 3 * (inner2 - outer2);
  return {fused(2 * outer2, outer, -(inner2 * inner)), d < 0 ? -steep : steep};
}

/// decay: 1 / (2σ²), in bins.
template <class T> SIMILIS_HOST_DEVICE Weight<T> gaussian_weight(T d, T decay) {
  const T value = exponential(-d * d * decay);
  return {value, -2 * decay * d * value};
}

/// The logarithm's argument and its smoothing.
struct Smoothing {
  double nr = 0, dr = 0;
  SIMILIS_HOST_DEVICE bool is_on() const { return nr > 0 || dr > 0; }
};

/// One p_ab with its margins.
struct Entry {
  double p, p_a, p_b;
};

/// The term of an entry in the mutual information, and its derivatives by p, p_a and p_b. Constants
/// in the derivatives are left out where a voxel's weights, which have a fixed sum, cancel them;
/// without smoothing the derivatives by the margins sum to constants too, if the margins are the
/// sums of p. An entry below `resolution` (which the histogram cannot tell from 0) has the
/// logarithm of `resolution` in its derivative: it is looked up with weights that vanish there.
struct EntryTerm {
  double value, by_p, by_p_a, by_p_b;
};
SIMILIS_HOST_DEVICE EntryTerm information(const Entry& e, const Smoothing& s, double resolution) {
  const double product = e.p_a * e.p_b;
  if (s.is_on()) {
    const double denominator = product + s.dr;
    if (denominator <= 0) return {0, 0, 0, 0};
    const double quotient = (e.p + s.nr) / denominator, argument = quotient + s.dr;
    if (argument <= 0) return {0, 0, 0, 0};
    const double slope = e.p / argument / denominator;  // derivative of the term by the numerator
    const double by_product = -slope * quotient;
    const double logarithm = log(argument);
    return {e.p * logarithm, logarithm + slope, by_product * e.p_b, by_product * e.p_a};
  }
  if (product == 0) return {0, 0, 0, 0};
  const double seen = e.p > resolution || e.p != e.p ? e.p : resolution;
  if (seen == 0) return {0, 0, 0, 0};
  const double logarithm = log(seen / product);
  return {e.p == 0 ? 0 : e.p * logarithm, logarithm, -e.p / e.p_a, -e.p / e.p_b};
}

/// -p log p.
SIMILIS_HOST_DEVICE double entropy_term(double p) { return p == 0 ? 0 : -p * log(p); }

/// Normalised mutual information from three entropies; 1, that of independent images, if both are
/// of one value.
SIMILIS_HOST_DEVICE double normalized_information(double h_a, double h_b, double h_ab) {
  return h_ab == 0 ? 1 : (h_a + h_b) / h_ab;
}

/// Its derivative by p_ab, without the constants that a voxel's weights do not see.
SIMILIS_HOST_DEVICE double normalized_slope(
    const Entry& e, double nmi, double h_ab, double resolution) {
  const double seen = e.p > resolution || e.p != e.p ? e.p : resolution;
  if (h_ab == 0 || seen == 0 || e.p_a == 0 || e.p_b == 0) return 0;
  return (nmi * log(seen) - log(e.p_a) - log(e.p_b)) / h_ab;
}

/// True if a voxel of this row-major index is among the share that the seed chooses: its index
/// scattered by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) is below share·2³².
SIMILIS_HOST_DEVICE bool is_sampled(
    std::uint64_t index, std::uint64_t seed, std::uint64_t threshold) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return ((z ^ z >> 31) >> 32) < threshold;
}

}  // namespace similis::mutual_information_internal
