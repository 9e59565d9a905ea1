// SPDX-License-Identifier: Apache-2.0
// The determinants of a map's derivative at the corners of its cells, and those that are too small.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/registration/cpu/determinants.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/parallel.h"
#include "src/registration/cpu/passes.h"

#ifndef SIMILIS_REGISTRATION_DETERMINANTS
#define SIMILIS_REGISTRATION_DETERMINANTS
namespace similis::registration_internal {

struct BoxRow {
  const float* u;  // of voxel (first of the box, y, z)
  std::int64_t count, x, width;
  std::int64_t up, down, front, back;  // elements to the neighbour, 0 where there is none
  int rank;
  float accepted;
};
struct RowDeterminants {
  float least;
  std::int64_t bad, first, last;
};

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
constexpr std::int64_t kChunk = 256;  // voxels whose differences along x lie on the stack
template <int rank> using AlongX = float[rank][kChunk + 1 + kLanes];

// Component by component, of one voxel a lane.
template <int rank> struct Vectors { V of[rank]; };

template <int rank> HWY_INLINE Vectors<rank> load(const float* from) {
  Vectors<rank> result;
  if constexpr (rank == 3) {
    hn::LoadInterleaved3(D(), from, result.of[0], result.of[1], result.of[2]);
  } else {
    hn::LoadInterleaved2(D(), from, result.of[0], result.of[1]);
  }
  return result;
}

// The derivative along an axis from a voxel to the next: 1 is the identity's.
template <int rank>
HWY_INLINE Vectors<rank> difference(
    const Vectors<rank>& next, const Vectors<rank>& here, int axis) {
  Vectors<rank> result;
  for (int c = 0; c < rank; ++c) {
    result.of[c] = hn::Add(hn::Sub(next.of[c], here.of[c]), hn::Set(D(), axis == c ? 1.0f : 0.0f));
  }
  return result;
}

// Those forwards and backwards along y or z; after, before: elements to the neighbours, 0 where
// there is none, whose difference is that to the other side.
template <int rank> struct BothSides { Vectors<rank> of[2]; };
template <int rank>
HWY_INLINE BothSides<rank> differences(
    const float* u, const Vectors<rank>& here, int axis, std::int64_t after, std::int64_t before) {
  BothSides<rank> d;
  if (after != 0) d.of[0] = difference<rank>(load<rank>(u + after), here, axis);
  if (before != 0) d.of[1] = difference<rank>(here, load<rank>(u + before), axis);
  if (after == 0) d.of[0] = before != 0 ? d.of[1] : difference<rank>(here, here, axis);
  if (before == 0) d.of[1] = d.of[0];
  return d;
}

HWY_INLINE V minor_of(const Vectors<3>& a, const Vectors<3>& b, int i, int j) {
  return hn::Sub(hn::Mul(a.of[i], b.of[j]), hn::Mul(b.of[i], a.of[j]));
}

// A NaN stays: nothing is below it.
HWY_INLINE V lesser_or_nan(V next, V least) {
  return hn::IfThenElse(hn::Or(hn::Lt(next, least), hn::IsNaN(next)), next, least);
}

// take(determinant) of each corner.
template <class Take>
HWY_INLINE void corners(
    const BothSides<2>& x, const BothSides<2>& y, const BothSides<2>&, const Take& take) {
  for (const Vectors<2>& b : y.of) {
    for (const Vectors<2>& a : x.of) {
      take(hn::Sub(hn::Mul(a.of[0], b.of[1]), hn::Mul(a.of[1], b.of[0])));
    }
  }
}
template <class Take>
HWY_INLINE void corners(
    const BothSides<3>& x, const BothSides<3>& y, const BothSides<3>& z, const Take& take) {
  V of_xy[2][2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) of_xy[i][j] = minor_of(x.of[i], y.of[j], 1, 2);
  }
  for (const Vectors<3>& c : z.of) {
    const V of_xz[2] = {minor_of(x.of[0], c, 1, 2), minor_of(x.of[1], c, 1, 2)};
    for (int j = 0; j < 2; ++j) {
      const V of_yz = minor_of(y.of[j], c, 1, 2);
      for (int i = 0; i < 2; ++i) {
        const V without_z =
            hn::Sub(hn::Mul(x.of[i].of[0], of_yz), hn::Mul(y.of[j].of[0], of_xz[i]));
        take(hn::Add(without_z, hn::Mul(c.of[0], of_xy[i][j])));
      }
    }
  }
}

// differences[c][i]: along x from voxel i - 1 of the chunk to voxel i.
template <int rank>
HWY_INLINE void differences_along_x(
    const BoxRow& row, std::int64_t from, std::int64_t count, AlongX<rank>& differences) {
  const float* const u = row.u + from * rank;
  const bool begins = row.x + from == 0, ends = row.x + from + count == row.width;
  const std::int64_t first = begins ? 1 : 0, end = ends ? count : count + 1;
  for (int c = 0; c < rank; ++c) {
    const float one = c == 0 ? 1.0f : 0.0f;
    float* const d = differences[c];
    for (std::int64_t i = first; i < end; ++i) {
      d[i] = u[rank * i + c] - u[rank * (i - 1) + c] + one;
    }
    if (begins) d[0] = row.width > 1 ? d[1] : one;
    if (ends) d[count] = d[count - 1];
    std::fill_n(d + count + 1, kLanes, one);  // of lanes behind the last voxel
  }
}

// The least determinant of each voxel, NaN if one is.
template <int rank>
HWY_INLINE V least_determinants(
    const BoxRow& row, const float* u, const AlongX<rank>& along_x, std::int64_t i) {
  const D d;
  const Vectors<rank> here = load<rank>(u);
  BothSides<rank> x, z;
  for (int c = 0; c < rank; ++c) {
    x.of[0].of[c] = hn::LoadU(d, along_x[c] + i + 1);
    x.of[1].of[c] = hn::LoadU(d, along_x[c] + i);
  }
  const BothSides<rank> y = differences<rank>(u, here, 1, row.up, row.down);
  if constexpr (rank == 3) z = differences<rank>(u, here, 2, row.front, row.back);
  V least = hn::Set(d, std::numeric_limits<float>::infinity());
  corners(x, y, z, [&](V determinant) { least = lesser_or_nan(determinant, least); });
  return least;
}

// The last voxels of a row, fewer than a vector has lanes, and their neighbours, on the stack.
template <int rank> struct Tail {
  Tail(const BoxRow& all, std::int64_t from, std::int64_t count) : row(all) {
    std::int64_t* const neighbours[] = {&row.up, &row.down, &row.front, &row.back};
    const float* const u = all.u + from * rank;
    std::copy_n(u, count * rank, values[0]);
    for (int n = 0; n < 4; ++n) {
      if (*neighbours[n] == 0) continue;
      std::copy_n(u + *neighbours[n], count * rank, values[n + 1]);
      *neighbours[n] = values[n + 1] - values[0];
    }
  }
  float values[5][kLanes * rank] = {};
  BoxRow row;
};

template <int rank> RowDeterminants determinants_in(const BoxRow& row, float* flags) {
  const D d;
  RowDeterminants result{0, 0, 0, 0};
  V lowest = hn::Set(d, std::numeric_limits<float>::infinity());
  const V accepted = hn::Set(d, row.accepted);
  AlongX<rank> along_x;
  float is_bad[kLanes];
  for (std::int64_t from = 0; from < row.count; from += kLanes) {
    const std::int64_t in_chunk = from % kChunk, count = std::min(kLanes, row.count - from);
    if (in_chunk == 0) {
      differences_along_x<rank>(row, from, std::min(kChunk, row.count - from), along_x);
    }
    V least;
    if (count == kLanes) {
      least = least_determinants<rank>(row, row.u + from * rank, along_x, in_chunk);
    } else {
      const Tail<rank> tail(row, from, count);
      least = least_determinants<rank>(tail.row, tail.values[0], along_x, in_chunk);
    }
    const M inside = hn::FirstN(d, static_cast<std::size_t>(count));
    lowest = hn::IfThenElse(inside, lesser_or_nan(least, lowest), lowest);
    const M bad = hn::And(inside, hn::Not(hn::Ge(least, accepted)));
    if (flags == nullptr && hn::AllFalse(d, bad)) continue;
    hn::StoreU(hn::IfThenElseZero(bad, hn::Set(d, 1.0f)), d, is_bad);
    if (flags != nullptr) std::copy_n(is_bad, count, flags + from);
    for (std::int64_t i = 0; i < count; ++i) {
      if (is_bad[i] == 0) continue;
      if (result.bad++ == 0) result.first = from + i;
      result.last = from + i;
    }
  }
  const M is_nan = hn::IsNaN(lowest);
  result.least = hn::AllFalse(d, is_nan) ? hn::GetLane(hn::MinOfLanes(d, lowest))
                                         : std::numeric_limits<float>::quiet_NaN();
  return result;
}
void determinants_of_row(const BoxRow* row, float* flags, RowDeterminants* result) {
  *result = row->rank == 3 ? determinants_in<3>(*row, flags) : determinants_in<2>(*row, flags);
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(determinants_of_row);

namespace cpu {

Determinants corner_determinants(const GridRows& rows, const float* u, const Box& box,
    double accepted, float* flags, const Execution& exec) {
  const auto& size = rows.size;
  const std::int64_t rank = rows.rank, by_y = size[0] * rank, by_z = by_y * size[1];
  const std::int64_t tasks = box.size[1] * box.size[2];
  std::vector<RowDeterminants> found(static_cast<std::size_t>(tasks));
  parallel_for(exec, tasks, [&](std::int64_t task) {
    const std::int64_t y = box.first[1] + task % box.size[1], z = box.first[2] + task / box.size[1];
    const BoxRow row{.u = u + z * by_z + y * by_y + box.first[0] * rank,
        .count = box.size[0],
        .x = box.first[0],
        .width = size[0],
        .up = y + 1 < size[1] ? by_y : 0,
        .down = y > 0 ? -by_y : 0,
        .front = z + 1 < size[2] ? by_z : 0,
        .back = z > 0 ? -by_z : 0,
        .rank = rows.rank,
        .accepted = static_cast<float>(accepted)};
    HWY_DYNAMIC_DISPATCH(determinants_of_row)
    (&row, flags == nullptr ? nullptr : flags + task * box.size[0],
        &found[static_cast<std::size_t>(task)]);
  });
  Determinants result;
  result.least = static_cast<double>(found[0].least);
  std::array<std::int64_t, 3> low = size, high = {-1, -1, -1};
  for (std::int64_t task = 0; task < tasks; ++task) {
    const RowDeterminants& row = found[static_cast<std::size_t>(task)];
    const auto least = static_cast<double>(row.least);
    if (least < result.least || std::isnan(least)) result.least = least;
    if (row.bad == 0) continue;
    result.bad += row.bad;
    const std::array<std::int64_t, 3> first = {box.first[0] + row.first,
        box.first[1] + task % box.size[1], box.first[2] + task / box.size[1]};
    for (std::size_t a = 0; a < 3; ++a) {
      low[a] = std::min(low[a], first[a]);
      high[a] = std::max(high[a], a == 0 ? box.first[0] + row.last : first[a]);
    }
  }
  if (result.bad == 0) return result;
  result.around.first = low;
  for (std::size_t a = 0; a < 3; ++a) result.around.size[a] = high[a] - low[a] + 1;
  return result;
}

}  // namespace cpu
}  // namespace similis::registration_internal
#endif
