// SPDX-License-Identifier: Apache-2.0
// Indices of part of a row in f64, with the padding folded in; cells.cc alone makes code of them.
// Included once per SIMD target, hence the guard that flips.
#if defined(SIMILIS_WARP_CPU_CHUNK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SIMILIS_WARP_CPU_CHUNK_INL_H
#undef SIMILIS_WARP_CPU_CHUNK_INL_H
#else
#define SIMILIS_WARP_CPU_CHUNK_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "src/warp/cpu/chunk.h"
#include "src/warp/cpu/vectors-inl.h"
#include "src/warp/formula.h"

HWY_BEFORE_NAMESPACE();
namespace similis::warp_internal::HWY_NAMESPACE {

template <class Visit> HWY_INLINE void visit_padding(Outside padding, const Visit& visit) {
  switch (padding) {
    case Outside::zeros: return visit.template operator()<Outside::zeros>();
    case Outside::border: return visit.template operator()<Outside::border>();
    case Outside::reflection: return visit.template operator()<Outside::reflection>();
  }
}

// Zeros where there is none.
template <class T> void load_field(const Pass& pass, const Chunk& chunk, T (&field)[3][kChunk]) {
  T* const components[3] = {field[0], field[1], field[2]};
  const std::int64_t given = pass.field.empty() ? 0 : chunk.count;
  constexpr std::int64_t kLanes = HWY_MAX_BYTES / sizeof(T);
  const std::int64_t read = (chunk.count + kLanes - 1) / kLanes * kLanes;
  for (int j = 0; j < 3; ++j) {
    std::fill(field[j] + (j < pass.rank ? given : 0), field[j] + read, T{0});
  }
  if (given == 0) return;
  const Extents& s = pass.field.strides;
  load_vectors(pass.field, chunk.image * s[0] + chunk.z * s[1] + chunk.y * s[2] + chunk.x * s[3],
      pass.rank, chunk.count, components);
}

// The part of voxel i's index that the field does not change.
HWY_INLINE double index_without_field(
    const Pass& pass, const Transform& t, const Chunk& chunk, int axis, std::int64_t i) {
  const double gx = pass.axes[0].first + static_cast<double>(chunk.x);
  return multiply_add(t.m[axis][0], gx + static_cast<double>(i),
      t.row(axis, chunk.position(pass, 1), chunk.position(pass, 2)));
}

// Along one axis: sink(i, place of voxel i).
template <Outside padding, bool mixes, class Sink>
HWY_INLINE void place_axis(
    const Pass& pass, const Transform& t, const Chunk& chunk, int axis, const Sink& sink) {
  const Axis* axes = pass.axes;
  const double gx = axes[0].first + static_cast<double>(chunk.x), step = t.m[axis][0];
  const double row = t.row(axis, chunk.position(pass, 1), chunk.position(pass, 2));
  const double last = static_cast<double>(axes[axis].whole - 1);
  const double fx = t.s[axis][0], fy = t.s[axis][1], fz = t.s[axis][2],
               own_factor = t.s[axis][axis];
  const double *x = chunk.field[0], *y = chunk.field[1], *z = chunk.field[2];
  const double* own = chunk.field[axis];
  const bool align_corners = pass.align_corners;
  const auto count = static_cast<std::int32_t>(chunk.count);
  for (std::int32_t i = 0; i < count; ++i) {
    double at = multiply_add(step, gx + static_cast<double>(i), row);
    if constexpr (mixes) {
      at = multiply_add(fx, x[i], at);
      at = multiply_add(fy, y[i], at);
      at = multiply_add(fz, z[i], at);
    } else {
      at = multiply_add(own_factor, own[i], at);
    }
    sink(i, place(at, last, padding, align_corners));
  }
}

}  // namespace similis::warp_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
