// SPDX-License-Identifier: Apache-2.0
// The terms of windows from their averages, and the weights of windows and pixels, for the kernels
// for any window.
#pragma once

#include "src/ssim/cuda/any_window/any_window.cuh"

namespace similis::ssim_internal::any_window {

// 1 - SSIM of a window, and its derivative by each pixel's x: 4·weight·(f0 - s·f1 + d·f2).
template <class T> struct WindowTerm { T value, derivative[kDerivatives]; };
__device__ __forceinline__ WindowTerm<float> term_of(
    const Work<float>& w, const Slice<float>& slice, float s, float d, float ss, float dd) {
  WindowTerm<float> r;
  const Point p =
      point(s, w.sign * d, ss, dd, 2 * slice.half_shift, w.constants.c1, w.constants.c2);
  r.value = 2 * p.value;
  derivatives_of(p, s, &r.derivative[0], &r.derivative[1], &r.derivative[2]);
  return r;
}
__device__ __forceinline__ WindowTerm<double> term_of(
    const Work<double>& w, const Slice<double>&, double s, double d, double ss, double dd) {
  d *= w.sign;
  const Moments<double> m{s, d, fmax(0.0, fma(-s, s, ss)), fmax(0.0, fma(-d, d, dd))};
  const Dissimilarity<double> result =
      w.contrast ? contrast_dissimilarity(m, w.constants) : dissimilarity(m, w.constants);
  const Moments<double>& g = result.gradient;
  return {result.value,
      {(g.mean_s - 2 * s * g.var_s + g.mean_d - 2 * d * g.var_d) / 4, -g.var_s / 2, g.var_d / 2}};
}

// The sum of the taps that see a pixel.
template <class T>
__device__ T seen_weight(const T (&taps)[kMostTaps], int centre, int radius, int extent) {
  T sum = 0;
  for (int k = 0; k <= 2 * radius; ++k) {
    const int pixel = centre - radius + k;
    if (pixel >= 0 && pixel < extent) sum += taps[k];
  }
  return sum;
}

// The weights of neighbours in a row in the reduction, or in a map, and bits of those that exist.
template <class T, int count> struct RunWeights {
  T weight[count];
  unsigned exists = ~0u;

  __device__ RunWeights(
      const Work<T>& w, const Slice<T>& slice, int row, int column, int existing) {
#pragma unroll
    for (T& each : weight) each = 1;
    if (w.mask.data != nullptr) {
      load_run(w.mask, slice.of(w.mask) + w.mask.at(0, row, column), existing, weight);
#pragma unroll
      for (T& each : weight) each = checked_weight(each);
    }
    if (w.valid_mask.data == nullptr) return;
    T valid[count];
    load_run(
        w.valid_mask, slice.of(w.valid_mask) + w.valid_mask.at(0, row, column), existing, valid);
#pragma unroll
    for (int o = 0; o < count; ++o) {
      const T v = checked_weight(valid[o]);
      if (!(v > 0)) exists &= ~(1u << o);
      if (v != v) {
        weight[o] = v;
      } else if (w.reduces) {
        weight[o] = v == 0 ? T(0) : w.mask.data == nullptr ? v : weight[o];
      }
    }
  }
};

// Weighs the terms of a run of windows and their derivatives by masks and by the upstream of a map,
// and writes the map.
template <class T, int count>
__device__ __forceinline__ void weigh_run(const Work<T>& w, const Slice<T>& slice, int map_row,
    int map_column, int existing, T (&value)[count], T (&derivative)[kDerivatives][count]) {
  const int row = map_row + w.first_centre[kDown], column = map_column + w.first_centre[kAcross];
  const RunWeights<T, count> weights(w, slice, row, column, existing);
  T upstream[count];
#pragma unroll
  for (T& each : upstream) each = 1;
  if (w.upstream.data != nullptr) {
    load_run(w.upstream, slice.in_map(w.upstream) + w.upstream.at(0, map_row, map_column), existing,
        upstream);
  }
  T element[count];
#pragma unroll
  for (int o = 0; o < count; ++o) {
    const T weight = weights.weight[o];
    const bool counts = (weights.exists >> o & 1) != 0 && weight != 0;
    const T term = counts ? value[o] : T(0);
    value[o] = counts || weight != weight ? weight * term : T(0);
    element[o] = weight * fma(w.term_weight, term, w.bias);
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) {
      derivative[f][o] = counts ? weight * upstream[o] * derivative[f][o] : T(0);
    }
    if (w.map.data != nullptr && w.l1_weight != 0 && counts && o < existing) {
      const T vx = w.x.load(slice.of(w.x) + w.x.at(0, row, column + o));
      const T vy = w.y.load(slice.of(w.y) + w.y.at(0, row, column + o));
      element[o] += weight * w.l1_weight * fabs(slice.difference(w, vx, vy));
    }
    if ((weights.exists >> o & 1) == 0) element[o] = NAN;
  }
  if (w.map.data == nullptr) return;
  store_run(w.map, slice.in_map(w.map) + w.map.at(0, map_row, map_column), existing, element);
}

// The inverses of the weights of a run of windows; returns false if all are 1.
template <class T, int count>
__device__ __forceinline__ bool inverse_weights(
    const Work<T>& w, int row, int column, T (&inverse)[count]) {
  if (w.padding != Padding::renormalize) return false;
  const bool is_inside = row >= w.radius[kDown] && row + w.radius[kDown] < w.extent[kDown] &&
                         column >= w.radius[kAcross] &&
                         column + count - 1 + w.radius[kAcross] < w.extent[kAcross];
  if (is_inside) return false;
  const T down = seen_weight(w.taps[kDown], row, w.radius[kDown], w.extent[kDown]);
#pragma unroll
  for (int o = 0; o < count; ++o) {
    const int centre = min(column + o, w.extent[kAcross] - 1);
    inverse[o] =
        1 / (down * seen_weight(w.taps[kAcross], centre, w.radius[kAcross], w.extent[kAcross]));
  }
  return true;
}

}  // namespace similis::ssim_internal::any_window
