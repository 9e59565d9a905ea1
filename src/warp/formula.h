// SPDX-License-Identifier: Apache-2.0
// Voxels and weights of a coordinate, and their derivatives by it, written once for CPU and GPU.
//
//   coordinate ─ Transform ─> index of a voxel ─ place() ─> padding folded ─ taps() ─> voxels and
//   weights along each axis ─ interpolate() ─> value, and its slopes along x, y and z
//
// An index outside any voxel's reach is kFarOutside, and one that is NaN becomes kNotAnIndex, so
// that nothing depends on the number that NaN converts to. The latter has no voxels, and weights
// that are NaN: values and slopes made of them are NaN without a test. Sums run x, then y, then z,
// product by product: a vector of voxels that are all inside computes the same bits without masks.
#pragma once

#include <cmath>
#include <cstdint>

#include "similis/warp.hpp"
#include "src/core/host_device.h"
#include "src/warp/warp.h"

namespace similis::warp_internal {

constexpr double kFarOutside = -8;
constexpr double kNotAnIndex = -16;  // of a coordinate that is NaN
constexpr int kNoVoxel = -1;
// The reach of a cubic spline beyond the image, in voxels: rounding moves a corner by at most this.
constexpr double kSplineMargin = 1e-6;

template <class T> SIMILIS_HOST_DEVICE T multiply_add(T a, T b, T c) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// Voxel index = m·(g, 1) + s·w: g counts output voxels from the whole grid's first, w is the
/// field.
struct Transform {
  double m[3][4];
  double s[3][3];

  /// The part that does not change along a row.
  SIMILIS_HOST_DEVICE double row(int axis, double gy, double gz) const {
    return multiply_add(m[axis][1], gy, multiply_add(m[axis][2], gz, m[axis][3]));
  }
};

/// Element (row, column) of A, of S.
template <class Affine, class GridAffine>
SIMILIS_HOST_DEVICE Transform make_transform(const Axis (&axes)[3], int rank, bool is_grid,
    double field_factor, const Affine& affine, const GridAffine& grid_affine) {
  Transform t{};
  for (int a = 0; a < rank; ++a) {
    double constant = 0;
    if (!is_grid) {
      for (int j = 0; j < rank; ++j) {
        const double element = affine(a, j);
        t.m[a][j] = element * axes[j].step * axes[a].scale;
        constant += element * axes[j].origin;
      }
      constant += affine(a, rank);
    }
    t.m[a][3] = constant * axes[a].scale + axes[a].shift;
    for (int j = 0; j < rank; ++j) t.s[a][j] = grid_affine(a, j) * axes[a].scale * field_factor;
  }
  return t;
}

/// A voxel index with the padding folded in, and the derivative of that.
struct Place {
  double index, slope;
};

// As in torch, the slope is 0 at and beyond the border, and its sign is turned where the image is
// mirrored.
SIMILIS_HOST_DEVICE Place place(double given, double last, Outside padding, bool align_corners) {
  double index = given, slope = 1;
  if (padding == Outside::reflection) {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? last : last + 1;
    const double distance = fabs(given - low);
    const double flips = span > 0 ? floor(distance / span) : 0;
    const double rest = distance - flips * span;
    const bool is_odd = flips - 2 * floor(flips / 2) != 0;
    index = low + (is_odd ? span - rest : rest);
    slope = (given < low) != is_odd ? -1 : 1;
  }
  if (padding != Outside::zeros) {
    slope = index <= 0 || index >= last ? 0 : slope;
    index = index > 0 ? index : 0;
    index = index < last ? index : last;
  }
  const bool is_finite = given - given == 0;
  index = is_finite && index > kFarOutside ? index : kFarOutside;
  slope = is_finite ? slope : 0;
  index = index < last - kFarOutside ? index : last - kFarOutside;
  return {given == given ? index : kNotAnIndex, slope};
}

/// The position of an index above the voxel before it, which is its floor; NaN for kNotAnIndex.
template <class T> SIMILIS_HOST_DEVICE T fraction_above(double floor, double index) {
  const T nan = static_cast<T>(NAN);
  return index == kNotAnIndex ? nan : static_cast<T>(index - floor);
}

/// Voxels along one axis, their weights, and the derivatives of these by the index.
template <class T, int count> struct Taps {
  int voxel[count];  // kNoVoxel: none there, its value is 0
  T weight[count], slope[count];
};

SIMILIS_HOST_DEVICE int voxel_or_none(int voxel, int extent) {
  return voxel >= 0 && voxel < extent ? voxel : kNoVoxel;
}

/// Mirrored at the outermost voxels, without repeating them.
SIMILIS_HOST_DEVICE int mirrored(int voxel, int extent) {
  if (extent == 1) return 0;
  const int period = 2 * (extent - 1);
  int rest = voxel % period;
  rest = rest < 0 ? rest + period : rest;
  return rest < extent ? rest : period - rest;
}

/// The cubic B-spline at the four voxels around a position f above the second, and its slopes.
template <class T> struct SplineWeights { T weight[4], slope[4]; };
template <class T> SIMILIS_HOST_DEVICE SplineWeights<T> spline_weights(T f) {
  const T g = 1 - f;
  return {
      {g * g * g / 6, (4 - 3 * f * f * (2 - f)) / 6, (4 - 3 * g * g * (2 - g)) / 6, f * f * f / 6},
      {-g * g / 2, f * (3 * f - 4) / 2, -g * (3 * g - 4) / 2, f * f / 2}};
}

/// 1 tap: nearest; 2: linear; 4: cubic.
template <class T, int count> SIMILIS_HOST_DEVICE Taps<T, count> taps(double index, int extent) {
  Taps<T, count> t{};
  if constexpr (count == 1) {
    t.voxel[0] = voxel_or_none(static_cast<int>(rint(index)), extent);
    t.slope[0] = 0 * fraction_above<T>(index, index);
    t.weight[0] = 1 + t.slope[0];
  } else {
    const double first = floor(index);
    const int voxel = static_cast<int>(first);
    const T f = fraction_above<T>(first, index);
    if constexpr (count == 2) {
      t.voxel[0] = voxel_or_none(voxel, extent);
      t.voxel[1] = voxel_or_none(voxel + 1, extent);
      t.weight[0] = 1 - f, t.weight[1] = f;
      t.slope[1] = 1 + 0 * f;
      t.slope[0] = -t.slope[1];
    } else {
      const bool is_inside = index >= -kSplineMargin && index <= extent - 1 + kSplineMargin;
      const SplineWeights<T> spline = spline_weights(f);
      for (int k = 0; k < 4; ++k) {
        t.voxel[k] = is_inside ? mirrored(voxel - 1 + k, extent) : kNoVoxel;
        t.weight[k] = spline.weight[k];
        t.slope[k] = spline.slope[k];
      }
    }
  }
  return t;
}

/// Counts taps from the first voxel that the image has of its axis, and leaves out those that it
/// lacks, or all if their cell does not count. index: from place().
template <class T, int count>
SIMILIS_HOST_DEVICE void keep_part(const Axis& axis, double index, Taps<T, count>* taps) {
  const int last = static_cast<int>(axis.whole - 1);
  int cell = static_cast<int>(floor(index));
  cell = cell > -1 ? cell : -1;
  cell = cell < last ? cell : last;
  const bool counts =
      cell >= static_cast<int>(axis.first_cell) && cell < static_cast<int>(axis.end_cell);
  const int start = static_cast<int>(axis.start), extent = static_cast<int>(axis.extent);
  for (int k = 0; k < count; ++k) {
    const int voxel = taps->voxel[k];
    taps->voxel[k] = counts && voxel != kNoVoxel ? voxel_or_none(voxel - start, extent) : kNoVoxel;
  }
}

/// Along z in 2D: the only plane.
template <class T, int count> SIMILIS_HOST_DEVICE Taps<T, count> flat_taps() {
  Taps<T, count> t{};
  t.weight[0] = 1;
  return t;
}

template <class T> struct Sampled {
  T value;
  T slope[3];  // by the index along x, y and z
};

/// load(x, y, z) gives a voxel. `planes` is 1 in 2D, else `count`.
template <class T, int count, class Load>
SIMILIS_HOST_DEVICE Sampled<T> interpolate(
    const Taps<T, count> (&axis)[3], int planes, const Load& load) {
  Sampled<T> result{};
  for (int kz = 0; kz < planes; ++kz) {
    const int z = axis[2].voxel[kz];
    Sampled<T> plane{};
    for (int ky = 0; ky < count; ++ky) {
      const int y = axis[1].voxel[ky];
      Sampled<T> line{};
      for (int kx = 0; kx < count; ++kx) {
        const int x = axis[0].voxel[kx];
        const bool is_there = x != kNoVoxel && y != kNoVoxel && z != kNoVoxel;
        const T voxel = is_there ? load(x, y, z) : T{0};
        line.value = kx == 0 ? axis[0].weight[0] * voxel : line.value + axis[0].weight[kx] * voxel;
        line.slope[0] =
            kx == 0 ? axis[0].slope[0] * voxel : line.slope[0] + axis[0].slope[kx] * voxel;
      }
      const T w = axis[1].weight[ky], s = axis[1].slope[ky];
      plane.value = ky == 0 ? w * line.value : plane.value + w * line.value;
      plane.slope[0] = ky == 0 ? w * line.slope[0] : plane.slope[0] + w * line.slope[0];
      plane.slope[1] = ky == 0 ? s * line.value : plane.slope[1] + s * line.value;
    }
    if (count > 1 && planes == 1) return plane;
    const T w = axis[2].weight[kz], s = axis[2].slope[kz];
    result.value = kz == 0 ? w * plane.value : result.value + w * plane.value;
    result.slope[0] = kz == 0 ? w * plane.slope[0] : result.slope[0] + w * plane.slope[0];
    result.slope[1] = kz == 0 ? w * plane.slope[1] : result.slope[1] + w * plane.slope[1];
    result.slope[2] = kz == 0 ? s * plane.value : result.slope[2] + s * plane.value;
  }
  return result;
}

}  // namespace similis::warp_internal
