// SPDX-License-Identifier: Apache-2.0
// The passes by rows and by pieces of memory: plain loops, which become the vectors of each SIMD
// target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/registration/cpu/rows.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "src/core/parallel.h"
#include "src/registration/cpu/passes.h"

#ifndef SIMILIS_REGISTRATION_ROWS
#define SIMILIS_REGISTRATION_ROWS
namespace similis::registration_internal {

constexpr std::int64_t kPiece = std::int64_t{1} << 14;  // elements that a task takes
constexpr int kLanes = 8;                               // of sums, on every target

// A voxel of a row at its place in `to`, as numbers that a vector holds.
template <class T> struct InsideRow {
  std::int64_t width;
  T start[3], by_x[3], by_u[3][3], last[3];
  int rank;
  const T *u, *mask;
  T* weights;
};

// The passes over one row or piece.
template <class T> struct RowPasses {
  std::int64_t (*weigh_row)(const InsideRow<T>&);
  Moments (*moments)(const T* f, const T* j, const T* weights, std::int64_t count);
  void (*add_gradient)(const T* f, const T* j, const T* weights, const LinearGradient& by,
      T* gradient, std::int64_t count);
  void (*add_scaled)(T factor, const T* b, T* a, std::int64_t count);
  void (*scale)(T factor, const T* in, T* out, std::int64_t count);
  void (*blend)(const T* m, const T* b, T* a, std::int64_t voxels, int components);
  double (*largest_square)(const T* field, std::int64_t voxels, int rank);
  void (*turn)(const Matrix& m, const T* in, T* out, std::int64_t voxels, int rank);
  void (*round_to)(double unit, T* elements, std::int64_t count);
};
using AllRowPasses = std::tuple<RowPasses<float>, RowPasses<double>>;

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int rank, class T> std::int64_t weigh_row_of(const InsideRow<T>& row) {
  T* HWY_RESTRICT weights = row.weights;
  const T* HWY_RESTRICT u = row.u;
  const InsideRow<T> r = row;
  const auto slack = static_cast<T>(kSlack);
  T count = 0;
  for (std::int64_t i = 0; i < r.width; ++i) {
    const auto x = static_cast<T>(i);
    bool inside = true;
    for (int a = 0; a < rank; ++a) {
      T at = r.start[a] + x * r.by_x[a];
      if (u != nullptr) {
        for (int c = 0; c < rank; ++c) at += r.by_u[a][c] * u[rank * i + c];
      }
      inside &= at >= -slack && at <= r.last[a] + slack;
    }
    weights[i] = inside ? T(1) : T(0);
  }
  if (r.mask != nullptr) {
    for (std::int64_t i = 0; i < r.width; ++i) weights[i] = r.mask[i] != 0 ? weights[i] : T(0);
  }
  for (std::int64_t i = 0; i < r.width; ++i) count += weights[i];
  return static_cast<std::int64_t>(count);
}
template <class T> std::int64_t weigh_row(const InsideRow<T>& row) {
  return row.rank == 3 ? weigh_row_of<3>(row) : weigh_row_of<2>(row);
}

template <class T>
Moments moments_of(const T* f, const T* j, const T* weights, std::int64_t count) {
  double sums[6][kLanes] = {};
  const auto add = [&](std::int64_t i, int k, double w) {
    const double a = w == 0 ? 0 : static_cast<double>(f[i]),
                 b = w == 0 ? 0 : static_cast<double>(j[i]);
    sums[0][k] += w;
    sums[1][k] += a;
    sums[2][k] += b;
    sums[3][k] += a * a;
    sums[4][k] += b * b;
    sums[5][k] += a * b;
  };
  std::int64_t i = 0;
  if (weights == nullptr) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) add(i + k, k, 1);
    }
    for (; i < count; ++i) add(i, 0, 1);
  } else {
    for (; i + kLanes <= count; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) add(i + k, k, static_cast<double>(weights[i + k]));
    }
    for (; i < count; ++i) add(i, 0, static_cast<double>(weights[i]));
  }
  double totals[6] = {};
  for (int s = 0; s < 6; ++s) {
    for (const double lane : sums[s]) totals[s] += lane;
  }
  return {totals[0], totals[1], totals[2], totals[3], totals[4], totals[5]};
}

template <class T>
void add_gradient_of(const T* HWY_RESTRICT f, const T* HWY_RESTRICT j, const T* weights,
    const LinearGradient& by, T* HWY_RESTRICT gradient, std::int64_t count) {
  const auto by_f = static_cast<T>(by.by_f), mean_f = static_cast<T>(by.mean_f),
             by_j = static_cast<T>(by.by_j), mean_j = static_cast<T>(by.mean_j);
  if (weights == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      gradient[i] += by_f * (f[i] - mean_f) + by_j * (j[i] - mean_j);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const T term = by_f * (f[i] - mean_f) + by_j * (j[i] - mean_j);
    gradient[i] += weights[i] != 0 ? term : T(0);
  }
}

template <class T>
void add_scaled_of(T factor, const T* HWY_RESTRICT b, T* HWY_RESTRICT a, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) a[i] += factor * b[i];
}

template <class T> void scale_of(T factor, const T* in, T* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = factor * in[i];
}

template <class T>
void blend_of(const T* HWY_RESTRICT m, const T* HWY_RESTRICT b, T* HWY_RESTRICT a,
    std::int64_t voxels, int components) {
  for (std::int64_t i = 0; i < voxels; ++i) {
    if (m[i] == 0) continue;
    for (int c = 0; c < components; ++c) {
      const std::int64_t at = i * components + c;
      a[at] += m[i] * (b[at] - a[at]);
    }
  }
}

// NaN if one is.
template <int rank, class T> double largest_square_in(const T* field, std::int64_t voxels) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V most = hn::Zero(d);
  auto is_nan = hn::IsNaN(most);
  std::int64_t i = 0;
  for (; i + lanes <= voxels; i += lanes) {
    V of[3];
    if constexpr (rank == 3) {
      hn::LoadInterleaved3(d, field + i * rank, of[0], of[1], of[2]);
    } else {
      hn::LoadInterleaved2(d, field + i * rank, of[0], of[1]);
    }
    V square = hn::Add(hn::Mul(of[0], of[0]), hn::Mul(of[1], of[1]));
    if constexpr (rank == 3) square = hn::Add(square, hn::Mul(of[2], of[2]));
    most = hn::Max(most, square);
    is_nan = hn::Or(is_nan, hn::IsNaN(square));
  }
  T result = hn::GetLane(hn::MaxOfLanes(d, most));
  bool has_nan = !hn::AllFalse(d, is_nan);
  for (; i < voxels; ++i) {
    T square = 0;
    for (int c = 0; c < rank; ++c) square += field[i * rank + c] * field[i * rank + c];
    result = square > result ? square : result;
    has_nan |= std::isnan(square);
  }
  return has_nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(result);
}
template <class T> double largest_square_of(const T* field, std::int64_t voxels, int rank) {
  return rank == 3 ? largest_square_in<3>(field, voxels) : largest_square_in<2>(field, voxels);
}

template <int rank, class T>
void turn_in(const Matrix& matrix, const T* in, T* out, std::int64_t voxels) {
  double m[rank][rank];
  for (int r = 0; r < rank; ++r) {
    for (int c = 0; c < rank; ++c) m[r][c] = matrix(r, c);
  }
  for (std::int64_t i = 0; i < voxels; ++i) {
    double moved[rank] = {};
    for (int r = 0; r < rank; ++r) {
      for (int c = 0; c < rank; ++c) moved[r] += m[r][c] * static_cast<double>(in[i * rank + c]);
    }
    for (int r = 0; r < rank; ++r) out[i * rank + r] = static_cast<T>(moved[r]);
  }
}
// Through the stack, as in may be out and loops over one array become no vectors.
template <class T>
void turn_of(const Matrix& m, const T* in, T* out, std::int64_t voxels, int rank) {
  constexpr std::int64_t kVoxels = 256;
  T part[3 * kVoxels], turned[3 * kVoxels];
  for (std::int64_t i = 0; i < voxels; i += kVoxels) {
    const std::int64_t count = std::min(kVoxels, voxels - i);
    std::copy_n(in + i * rank, count * rank, part);
    rank == 3 ? turn_in<3>(m, part, turned, count) : turn_in<2>(m, part, turned, count);
    std::copy_n(turned, count * rank, out + i * rank);
  }
}

template <class T> void round_to_of(double unit, T* elements, std::int64_t count) {
  constexpr double kWhole = 0x1.8p52;  // a sum with it has no fraction
  for (std::int64_t i = 0; i < count; ++i) {
    elements[i] =
        static_cast<T>(((static_cast<double>(elements[i]) / unit + kWhole) - kWhole) * unit);
  }
}

template <class T> RowPasses<T> row_passes_of() {
  return {weigh_row<T>, moments_of<T>, add_gradient_of<T>, add_scaled_of<T>, scale_of<T>,
      blend_of<T>, largest_square_of<T>, turn_of<T>, round_to_of<T>};
}
AllRowPasses row_passes() { return {row_passes_of<float>(), row_passes_of<double>()}; }

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(row_passes);

namespace {

template <class T> RowPasses<T> passes_of_rows() {
  return std::get<RowPasses<T>>(HWY_DYNAMIC_DISPATCH(row_passes)());
}

// body(first element, number of elements) for pieces of equal size.
template <class Body> void by_pieces(std::int64_t count, const Execution& exec, const Body& body) {
  parallel_for(exec, (count + kPiece - 1) / kPiece,
      [&](std::int64_t task) { body(task * kPiece, std::min(kPiece, count - task * kPiece)); });
}

template <class T> T* from(T* elements, std::int64_t first) {
  return elements == nullptr ? nullptr : elements + first;
}

template <class T>
InsideRow<T> inside_row(const GridRows& rows, const Map& voxels, const Grid& to, std::int64_t row) {
  const Point at =
      voxels({0, static_cast<double>(row % rows.size[1]), static_cast<double>(row / rows.size[1])});
  InsideRow<T> result{.width = rows.size[0], .rank = rows.rank};
  for (std::size_t a = 0; a < 3; ++a) {
    result.start[a] = static_cast<T>(at[a]);
    result.by_x[a] = static_cast<T>(voxels.linear.rows[a][0]);
    result.last[a] = static_cast<T>(to.size[a] - 1);
    for (std::size_t c = 0; c < 3; ++c) {
      result.by_u[a][c] = static_cast<T>(voxels.linear.rows[a][c]);
    }
  }
  return result;
}

}  // namespace

namespace cpu {

std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, Reals u,
    Reals mask, Reals weights, const Execution& exec) {
  const std::int64_t width = rows.size[0];
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows.count()));
  with_type(weights, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    parallel_for(exec, rows.count(), [&](std::int64_t task) {
      auto row = inside_row<T>(rows, voxels, to, task);
      row.u = from(u.as<T>(), task * width * rows.rank);
      row.mask = from(mask.as<T>(), task * width);
      row.weights = weights.as<T>() + task * width;
      counts[static_cast<std::size_t>(task)] = passes.weigh_row(row);
    });
  });
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

Moments moments(const GridRows& rows, Reals f, Reals j, Reals weights, const Execution& exec) {
  const std::int64_t count = rows.voxels();
  std::vector<Moments> parts(static_cast<std::size_t>((count + kPiece - 1) / kPiece));
  with_type(f, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(count, exec, [&](std::int64_t first, std::int64_t size) {
      parts[static_cast<std::size_t>(first / kPiece)] =
          passes.moments(f.as<T>() + first, j.as<T>() + first, from(weights.as<T>(), first), size);
    });
  });
  Moments total;
  for (const Moments& part : parts) {
    total.count += part.count;
    total.f += part.f;
    total.j += part.j;
    total.ff += part.ff;
    total.jj += part.jj;
    total.fj += part.fj;
  }
  return total;
}

void add_gradient(const GridRows& rows, Reals f, Reals j, Reals weights, const LinearGradient& by,
    Reals gradient, const Execution& exec) {
  with_type(gradient, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(rows.voxels(), exec, [&](std::int64_t first, std::int64_t size) {
      passes.add_gradient(f.as<T>() + first, j.as<T>() + first, from(weights.as<T>(), first), by,
          gradient.as<T>() + first, size);
    });
  });
}

void add_scaled(
    Device, std::int64_t count, double factor, Reals b, Reals a, const Execution& exec) {
  with_type(a, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(count, exec, [&](std::int64_t first, std::int64_t size) {
      passes.add_scaled(static_cast<T>(factor), b.as<T>() + first, a.as<T>() + first, size);
    });
  });
}

void scale(Device, std::int64_t count, double factor, Reals in, Reals out, const Execution& exec) {
  if (in.is_f64() != out.is_f64()) {
    return by_pieces(count, exec, [&](std::int64_t first, std::int64_t size) {
      for (std::int64_t i = first; i < first + size; ++i) out.set(i, factor * in[i]);
    });
  }
  with_type(out, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(count, exec, [&](std::int64_t first, std::int64_t size) {
      passes.scale(static_cast<T>(factor), in.as<T>() + first, out.as<T>() + first, size);
    });
  });
}

void blend(const GridRows& rows, const Box& box, Reals m, Reals b, Reals u, const Execution& exec) {
  const std::int64_t width = box.size[0], rank = rows.rank;
  with_type(u, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    parallel_for(exec, box.size[1] * box.size[2], [&](std::int64_t row) {
      const std::int64_t y = box.first[1] + row % box.size[1], z = box.first[2] + row / box.size[1];
      T* const to = u.as<T>() + ((z * rows.size[1] + y) * rows.size[0] + box.first[0]) * rank;
      passes.blend(m.as<T>() + row * width, b.as<T>() + row * width * rank, to, width, rows.rank);
    });
  });
}

void turn(const GridRows& rows, const Matrix& m, Reals in, Reals out, const Execution& exec) {
  with_type(out, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(rows.voxels(), exec, [&](std::int64_t first, std::int64_t size) {
      passes.turn(
          m, in.as<T>() + first * rows.rank, out.as<T>() + first * rows.rank, size, rows.rank);
    });
  });
}

void round_to(Device, std::int64_t count, double unit, Reals elements, const Execution& exec) {
  with_type(elements, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(count, exec, [&](std::int64_t first, std::int64_t size) {
      passes.round_to(unit, elements.as<T>() + first, size);
    });
  });
}

double largest_square(const GridRows& rows, Reals field, const Execution& exec) {
  const std::int64_t count = rows.voxels();
  std::vector<double> parts(static_cast<std::size_t>((count + kPiece - 1) / kPiece));
  with_type(field, [&]<class T>(T) {
    const auto passes = passes_of_rows<T>();
    by_pieces(count, exec, [&](std::int64_t first, std::int64_t size) {
      parts[static_cast<std::size_t>(first / kPiece)] =
          passes.largest_square(field.as<T>() + first * rows.rank, size, rows.rank);
    });
  });
  double most = 0;
  for (const double part : parts) {
    if (!(part <= most)) most = part;
    if (std::isnan(part)) return part;
  }
  return most;
}

}  // namespace cpu
}  // namespace similis::registration_internal
#endif
