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
#include "src/registration/cpu/field_check.h"
#include "src/registration/cpu/passes.h"

#ifndef SIMILIS_REGISTRATION_DETERMINANTS
#define SIMILIS_REGISTRATION_DETERMINANTS
namespace similis::registration_internal {

template <class T> struct BoxRow {
  const T* u;  // of voxel (first of the box, y, z)
  std::int64_t count, x, width;
  std::int64_t up, down, front, back;  // elements to the neighbour, 0 where there is none
  int rank;
  T accepted;
};
struct RowDeterminants {
  double least;
  std::int64_t bad, first, last;
};

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
constexpr std::int64_t kChunk = 256;  // voxels whose differences along x lie on the stack

template <class T, int rank> class CornersOfRow {
 public:
  static RowDeterminants run(const BoxRow<T>& row, T* flags) {
    const D d;
    RowDeterminants result{0, 0, 0, 0};
    V lowest = hn::Set(d, std::numeric_limits<T>::infinity());
    const V accepted = hn::Set(d, row.accepted);
    AlongX along_x;
    T is_bad[kLanes];
    for (std::int64_t from = 0; from < row.count; from += kLanes) {
      const std::int64_t in_chunk = from % kChunk, count = std::min(kLanes, row.count - from);
      if (in_chunk == 0) {
        differences_along_x(row, from, std::min(kChunk, row.count - from), along_x);
      }
      V least;
      if (count == kLanes) {
        least = least_determinants(row, row.u + from * rank, along_x, in_chunk);
      } else {
        const Tail tail(row, from, count);
        least = least_determinants(tail.row, tail.values[0], along_x, in_chunk);
      }
      const M inside = hn::FirstN(d, static_cast<std::size_t>(count));
      lowest = hn::IfThenElse(inside, lesser_or_nan(least, lowest), lowest);
      const M bad = hn::And(inside, hn::Not(hn::Ge(least, accepted)));
      if (flags == nullptr && hn::AllFalse(d, bad)) continue;
      hn::StoreU(hn::IfThenElseZero(bad, hn::Set(d, T(1))), d, is_bad);
      if (flags != nullptr) std::copy_n(is_bad, count, flags + from);
      for (std::int64_t i = 0; i < count; ++i) {
        if (is_bad[i] == 0) continue;
        if (result.bad++ == 0) result.first = from + i;
        result.last = from + i;
      }
    }
    const bool has_nan = !hn::AllFalse(d, hn::IsNaN(lowest));
    result.least = has_nan ? std::numeric_limits<double>::quiet_NaN()
                           : static_cast<double>(hn::GetLane(hn::MinOfLanes(d, lowest)));
    return result;
  }

 private:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  static constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  using AlongX = T[rank][kChunk + 1 + kLanes];
  // Component by component, of one voxel a lane.
  struct Vectors {
    V of[rank];
  };
  struct BothSides {
    Vectors of[2];
  };

  static HWY_INLINE Vectors load(const T* from) {
    Vectors result;
    if constexpr (rank == 3) {
      hn::LoadInterleaved3(D(), from, result.of[0], result.of[1], result.of[2]);
    } else {
      hn::LoadInterleaved2(D(), from, result.of[0], result.of[1]);
    }
    return result;
  }

  // The derivative along an axis from a voxel to the next: 1 is the identity's.
  static HWY_INLINE Vectors difference(const Vectors& next, const Vectors& here, int axis) {
    Vectors result;
    for (int c = 0; c < rank; ++c) {
      result.of[c] =
          hn::Add(hn::Sub(next.of[c], here.of[c]), hn::Set(D(), axis == c ? T(1) : T(0)));
    }
    return result;
  }

  // Those forwards and backwards along y or z; after, before: elements to the neighbours, 0 where
  // there is none, whose difference is that to the other side.
  static HWY_INLINE BothSides differences(
      const T* u, const Vectors& here, int axis, std::int64_t after, std::int64_t before) {
    BothSides d;
    if (after != 0) d.of[0] = difference(load(u + after), here, axis);
    if (before != 0) d.of[1] = difference(here, load(u + before), axis);
    if (after == 0) d.of[0] = before != 0 ? d.of[1] : difference(here, here, axis);
    if (before == 0) d.of[1] = d.of[0];
    return d;
  }

  // The least of the determinants of all corners; NaN if one is.
  static HWY_INLINE V least_of(const BothSides& x, const BothSides& y, const BothSides& z) {
    V least = hn::Set(D(), std::numeric_limits<T>::infinity()), sum = hn::Zero(D());
    const auto take = [&](V determinant) HWY_ATTR {
      least = hn::Min(determinant, least);
      sum = hn::Add(sum, determinant);
    };
    if constexpr (rank == 2) {
      for (const Vectors& a : x.of) {
        for (const Vectors& b : y.of) {
          take(hn::NegMulAdd(a.of[1], b.of[0], hn::Mul(a.of[0], b.of[1])));
        }
      }
    } else {
      for (const Vectors& b : y.of) {
        for (const Vectors& c : z.of) {
          V cross[3];
          for (int i = 0; i < 3; ++i) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            cross[i] = hn::NegMulAdd(b.of[k], c.of[j], hn::Mul(b.of[j], c.of[k]));
          }
          for (const Vectors& a : x.of) {
            take(hn::MulAdd(
                a.of[0], cross[0], hn::MulAdd(a.of[1], cross[1], hn::Mul(a.of[2], cross[2]))));
          }
        }
      }
    }
    return hn::IfThenElse(hn::IsNaN(sum), sum, least);
  }

  // A NaN stays: nothing is below it.
  static HWY_INLINE V lesser_or_nan(V next, V least) {
    return hn::IfThenElse(hn::Or(hn::Lt(next, least), hn::IsNaN(next)), next, least);
  }

  // differences[c][i]: along x from voxel i - 1 of the chunk to voxel i.
  static HWY_INLINE void differences_along_x(
      const BoxRow<T>& row, std::int64_t from, std::int64_t count, AlongX& differences) {
    const T* const u = row.u + from * rank;
    const bool begins = row.x + from == 0, ends = row.x + from + count == row.width;
    const std::int64_t first = begins ? 1 : 0, end = ends ? count : count + 1;
    for (int c = 0; c < rank; ++c) {
      const T one = c == 0 ? T(1) : T(0);
      T* const d = differences[c];
      for (std::int64_t i = first; i < end; ++i) {
        d[i] = u[rank * i + c] - u[rank * (i - 1) + c] + one;
      }
      if (begins) d[0] = row.width > 1 ? d[1] : one;
      if (ends) d[count] = d[count - 1];
      std::fill_n(d + count + 1, kLanes, one);  // of lanes behind the last voxel
    }
  }

  // The least determinant of each voxel, NaN if one is.
  static HWY_INLINE V least_determinants(
      const BoxRow<T>& row, const T* u, const AlongX& along_x, std::int64_t i) {
    const Vectors here = load(u);
    BothSides x, z;
    for (int c = 0; c < rank; ++c) {
      x.of[0].of[c] = hn::LoadU(D(), along_x[c] + i + 1);
      x.of[1].of[c] = hn::LoadU(D(), along_x[c] + i);
    }
    const BothSides y = differences(u, here, 1, row.up, row.down);
    if constexpr (rank == 3) z = differences(u, here, 2, row.front, row.back);
    return least_of(x, y, z);
  }

  // The last voxels of a row, fewer than a vector has lanes, and their neighbours, on the stack.
  struct Tail {
    Tail(const BoxRow<T>& all, std::int64_t from, std::int64_t count) : row(all) {
      std::int64_t* const neighbours[] = {&row.up, &row.down, &row.front, &row.back};
      const T* const u = all.u + from * rank;
      std::copy_n(u, count * rank, values[0]);
      for (int n = 0; n < 4; ++n) {
        if (*neighbours[n] == 0) continue;
        std::copy_n(u + *neighbours[n], count * rank, values[n + 1]);
        *neighbours[n] = values[n + 1] - values[0];
      }
    }
    T values[5][kLanes * rank] = {};
    BoxRow<T> row;
  };
};

template <class T> RowDeterminants determinants_of(const BoxRow<T>& row, T* flags) {
  return row.rank == 3 ? CornersOfRow<T, 3>::run(row, flags) : CornersOfRow<T, 2>::run(row, flags);
}
RowDeterminants determinants_of_floats(const BoxRow<float>& row, float* flags) {
  return determinants_of(row, flags);
}
RowDeterminants determinants_of_doubles(const BoxRow<double>& row, double* flags) {
  return determinants_of(row, flags);
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(determinants_of_floats);
HWY_EXPORT(determinants_of_doubles);
namespace {

RowDeterminants determinants_of_row(const BoxRow<float>& row, float* flags) {
  return HWY_DYNAMIC_DISPATCH(determinants_of_floats)(row, flags);
}
RowDeterminants determinants_of_row(const BoxRow<double>& row, double* flags) {
  return HWY_DYNAMIC_DISPATCH(determinants_of_doubles)(row, flags);
}

// Those of `count` voxels of a row from `first` on; flags: of these voxels, or null.
template <class T>
RowDeterminants determinants_at(const GridRows& rows, const T* u,
    const std::array<std::int64_t, 3>& first, std::int64_t count, double accepted, T* flags) {
  const auto& size = rows.size;
  const std::int64_t rank = rows.rank, by_y = size[0] * rank, by_z = by_y * size[1];
  const auto [x, y, z] = first;
  const BoxRow<T> row{.u = u + z * by_z + y * by_y + x * rank,
      .count = count,
      .x = x,
      .width = size[0],
      .up = y + 1 < size[1] ? by_y : 0,
      .down = y > 0 ? -by_y : 0,
      .front = z + 1 < size[2] ? by_z : 0,
      .back = z > 0 ? -by_z : 0,
      .rank = rows.rank,
      .accepted = static_cast<T>(accepted)};
  return determinants_of_row(row, flags);
}

// Those of the rows of a box, one after another.
template <class T>
std::vector<RowDeterminants> determinants_of_rows(const GridRows& rows, const T* u, const Box& box,
    double accepted, T* flags, const Execution& exec) {
  std::vector<RowDeterminants> found(static_cast<std::size_t>(box.size[1] * box.size[2]));
  parallel_for(exec, box.size[1] * box.size[2], [&](std::int64_t task) {
    found[static_cast<std::size_t>(task)] = determinants_at(rows, u,
        {box.first[0], box.first[1] + task % box.size[1], box.first[2] + task / box.size[1]},
        box.size[0], accepted, flags == nullptr ? nullptr : flags + task * box.size[0]);
  });
  return found;
}

// Makes `box` hold another, if they lie at most `apart` voxels from each other along each axis.
bool join(const Box& other, std::int64_t apart, Box& box) {
  for (std::size_t a = 0; a < 3; ++a) {
    if (other.first[a] - (box.first[a] + box.size[a] - 1) > apart) return false;
    if (box.first[a] - (other.first[a] + other.size[a] - 1) > apart) return false;
  }
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t end = std::max(box.first[a] + box.size[a], other.first[a] + other.size[a]);
    box.first[a] = std::min(box.first[a], other.first[a]);
    box.size[a] = end - box.first[a];
  }
  return true;
}

}  // namespace

namespace cpu {

Determinants corner_determinants(const GridRows& rows, Reals u, const Box& box, double accepted,
    Reals flags, const Execution& exec) {
  const std::vector<RowDeterminants> found = with_type(u, [&]<class T>(T) {
    return determinants_of_rows(rows, u.as<T>(), box, accepted, flags.as<T>(), exec);
  });
  Determinants result;
  result.least = found[0].least;
  std::array<std::int64_t, 3> low = rows.size, high = {-1, -1, -1};
  for (std::int64_t task = 0; task < box.size[1] * box.size[2]; ++task) {
    const RowDeterminants& row = found[static_cast<std::size_t>(task)];
    if (row.least < result.least || std::isnan(row.least)) result.least = row.least;
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

struct FieldCheck::Piece {
  double least = 0;
  std::int64_t bad = 0, first = 0, last = 0;  // in the row
};

FieldCheck::FieldCheck(const GridRows& rows, Reals u, double accepted)
    : rows_(rows),
      u_(u),
      accepted_(accepted),
      pieces_of_row_((rows.size[0] + kPiece - 1) / kPiece),
      pieces_(static_cast<std::size_t>(rows.count() * pieces_of_row_)) {}
FieldCheck::~FieldCheck() = default;

// A task takes some rows of some planes, so that neighbours of a row stay in the second-level
// cache.
void FieldCheck::look(const Box& box, const Execution& exec) {
  constexpr std::int64_t kRows = 32, kPlanes = 8;
  const std::int64_t first = box.first[0] / kPiece,
                     end = (box.first[0] + box.size[0] + kPiece - 1) / kPiece;
  const std::int64_t across = (box.size[1] + kRows - 1) / kRows,
                     deep = (box.size[2] + kPlanes - 1) / kPlanes;
  const auto look_at_row = [&](std::int64_t y, std::int64_t z) {
    Piece* const pieces = pieces_.data() + (z * rows_.size[1] + y) * pieces_of_row_;
    for (std::int64_t p = first; p < end; ++p) {
      const std::int64_t x = p * kPiece, count = std::min(kPiece, rows_.size[0] - x);
      const RowDeterminants found = with_type(u_, [&]<class T>(T) {
        return determinants_at<T>(rows_, u_.as<T>(), {x, y, z}, count, accepted_, nullptr);
      });
      pieces[p] = {found.least, found.bad, x + found.first, x + found.last};
    }
  };
  parallel_for(exec, across * deep, [&](std::int64_t task) {
    const std::int64_t y = task % across * kRows, z = task / across * kPlanes;
    for (std::int64_t k = z; k < std::min(z + kPlanes, box.size[2]); ++k) {
      for (std::int64_t j = y; j < std::min(y + kRows, box.size[1]); ++j) {
        look_at_row(box.first[1] + j, box.first[2] + k);
      }
    }
  });
}

double FieldCheck::least() const {
  double least = pieces_[0].least;
  for (const Piece& piece : pieces_) {
    if (piece.least < least || std::isnan(piece.least)) least = piece.least;
    if (std::isnan(least)) break;
  }
  return least;
}

std::int64_t FieldCheck::bad() const {
  std::int64_t bad = 0;
  for (const Piece& piece : pieces_) bad += piece.bad;
  return bad;
}

std::vector<Box> FieldCheck::spots(std::int64_t apart) const {
  std::vector<Box> spots;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.bad == 0) continue;
    const std::int64_t row = static_cast<std::int64_t>(i) / pieces_of_row_;
    const Box own = {.first = {piece.first, row % rows_.size[1], row / rows_.size[1]},
        .size = {piece.last - piece.first + 1, 1, 1}};
    const bool is_joined =
        std::any_of(spots.begin(), spots.end(), [&](Box& spot) { return join(own, apart, spot); });
    if (!is_joined) spots.push_back(own);
  }
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < spots.size(); ++i) {
      for (std::size_t k = i + 1; k < spots.size(); ++k) {
        if (!join(spots[k], apart, spots[i])) continue;
        spots.erase(spots.begin() + static_cast<std::ptrdiff_t>(k--));
        again = true;
      }
    }
  }
  return spots;
}

}  // namespace similis::registration_internal
#endif
