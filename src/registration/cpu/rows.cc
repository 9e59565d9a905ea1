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
#include <vector>

#include "src/core/parallel.h"
#include "src/registration/cpu/passes.h"

#ifndef SIMILIS_REGISTRATION_ROWS
#define SIMILIS_REGISTRATION_ROWS
namespace similis::registration_internal {

constexpr std::int64_t kPiece = std::int64_t{1} << 14;  // elements that a task takes: 64 KiB
constexpr int kLanes = 8;                               // of sums, on every target

// A voxel of a row at its place in `to`, as numbers that a vector holds.
struct InsideRow {
  std::int64_t width;
  float start[3], by_x[3], by_u[3][3], last[3];
  int rank;
  const float *u, *mask;
  float* weights;
};

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {

template <int rank> std::int64_t weigh_row_of(const InsideRow& row) {
  float* HWY_RESTRICT weights = row.weights;
  const float* HWY_RESTRICT u = row.u;
  const InsideRow r = row;
  float count[kLanes] = {};
  for (std::int64_t i = 0; i < r.width; ++i) {
    const auto x = static_cast<float>(i);
    bool inside = true;
    for (int a = 0; a < rank; ++a) {
      float at = r.start[a] + x * r.by_x[a];
      if (u != nullptr) {
        for (int c = 0; c < rank; ++c) at += r.by_u[a][c] * u[rank * i + c];
      }
      // Rounding must not take the outermost voxels away.
      inside &= at >= -1e-3f && at <= r.last[a] + 1e-3f;
    }
    weights[i] = inside ? 1.0f : 0.0f;
  }
  if (r.mask != nullptr) {
    for (std::int64_t i = 0; i < r.width; ++i) weights[i] = r.mask[i] != 0 ? weights[i] : 0.0f;
  }
  for (std::int64_t i = 0; i < r.width; ++i) count[0] += weights[i];
  return static_cast<std::int64_t>(count[0]);
}
std::int64_t weigh_row(const InsideRow* row) {
  return row->rank == 3 ? weigh_row_of<3>(*row) : weigh_row_of<2>(*row);
}

Moments moments_of(const float* f, const float* j, const float* weights, std::int64_t count) {
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

void add_gradient_of(const float* HWY_RESTRICT f, const float* HWY_RESTRICT j, const float* weights,
    const LinearGradient* by, float* HWY_RESTRICT gradient, std::int64_t count) {
  const LinearGradient b = *by;
  if (weights == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      gradient[i] += b.by_f * (f[i] - b.mean_f) + b.by_j * (j[i] - b.mean_j);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float term = b.by_f * (f[i] - b.mean_f) + b.by_j * (j[i] - b.mean_j);
    gradient[i] += weights[i] != 0 ? term : 0.0f;
  }
}

void add_scaled_of(
    float factor, const float* HWY_RESTRICT b, float* HWY_RESTRICT a, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) a[i] += factor * b[i];
}

void scale_of(float factor, const float* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = factor * in[i];
}

void blend_of(const float* HWY_RESTRICT m, const float* HWY_RESTRICT b, float* HWY_RESTRICT a,
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
template <int rank> float largest_square_in(const float* field, std::int64_t voxels) {
  float most[kLanes] = {}, sum[kLanes] = {};
  std::int64_t i = 0;
  const auto look = [&](std::int64_t at, int k) {
    float square = 0;
    for (int c = 0; c < rank; ++c) square += field[at * rank + c] * field[at * rank + c];
    most[k] = square > most[k] ? square : most[k];
    sum[k] += square;
  };
  for (; i + kLanes <= voxels; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) look(i + k, k);
  }
  for (; i < voxels; ++i) look(i, 0);
  float result = 0;
  for (int k = 0; k < kLanes; ++k) {
    if (std::isnan(sum[k])) return sum[k];
    result = std::max(result, most[k]);
  }
  return result;
}
float largest_square_of(const float* field, std::int64_t voxels, int rank) {
  return rank == 3 ? largest_square_in<3>(field, voxels) : largest_square_in<2>(field, voxels);
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(weigh_row);
HWY_EXPORT(moments_of);
HWY_EXPORT(add_gradient_of);
HWY_EXPORT(add_scaled_of);
HWY_EXPORT(scale_of);
HWY_EXPORT(blend_of);
HWY_EXPORT(largest_square_of);

namespace {

// body(first element, number of elements) for pieces of equal size.
template <class Body>
void by_pieces(std::int64_t count, std::int64_t piece, const Execution& exec, const Body& body) {
  parallel_for(exec, (count + piece - 1) / piece,
      [&](std::int64_t task) { body(task * piece, std::min(piece, count - task * piece)); });
}

}  // namespace

namespace cpu {

std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, const float* u,
    const float* mask, float* weights, const Execution& exec) {
  const std::int64_t width = rows.size[0];
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows.count()));
  parallel_for(exec, rows.count(), [&](std::int64_t task) {
    const Point at = voxels(
        {0, static_cast<double>(task % rows.size[1]), static_cast<double>(task / rows.size[1])});
    InsideRow row{.width = width,
        .start = {},
        .by_x = {},
        .by_u = {},
        .last = {},
        .rank = rows.rank,
        .u = u == nullptr ? nullptr : u + task * width * rows.rank,
        .mask = mask == nullptr ? nullptr : mask + task * width,
        .weights = weights + task * width};
    for (std::size_t a = 0; a < 3; ++a) {
      row.start[a] = static_cast<float>(at[a]);
      row.by_x[a] = static_cast<float>(voxels.linear.rows[a][0]);
      row.last[a] = static_cast<float>(to.size[a] - 1);
      for (std::size_t c = 0; c < 3; ++c) {
        row.by_u[a][c] = static_cast<float>(voxels.linear.rows[a][c]);
      }
    }
    counts[static_cast<std::size_t>(task)] = HWY_DYNAMIC_DISPATCH(weigh_row)(&row);
  });
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

std::int64_t drop_below(
    const GridRows& rows, const float* value, float least, float* weights, const Execution& exec) {
  const std::int64_t width = rows.size[0];
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows.count()));
  parallel_for(exec, rows.count(), [&](std::int64_t task) {
    std::int64_t left = 0;
    for (std::int64_t i = task * width; i < (task + 1) * width; ++i) {
      if (!(value[i] >= least)) weights[i] = 0;
      left += weights[i] != 0 ? 1 : 0;
    }
    counts[static_cast<std::size_t>(task)] = left;
  });
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

Moments moments(const GridRows& rows, const float* f, const float* j, const float* weights,
    const Execution& exec) {
  const std::int64_t count = rows.voxels();
  std::vector<Moments> parts(static_cast<std::size_t>((count + kPiece - 1) / kPiece));
  by_pieces(count, kPiece, exec, [&](std::int64_t first, std::int64_t size) {
    parts[static_cast<std::size_t>(first / kPiece)] = HWY_DYNAMIC_DISPATCH(moments_of)(
        f + first, j + first, weights == nullptr ? nullptr : weights + first, size);
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

void add_gradient(const GridRows& rows, const float* f, const float* j, const float* weights,
    const LinearGradient& by, float* gradient, const Execution& exec) {
  by_pieces(rows.voxels(), kPiece, exec, [&](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(add_gradient_of)
    (f + first, j + first, weights == nullptr ? nullptr : weights + first, &by, gradient + first,
        size);
  });
}

void add_scaled(
    Device, std::int64_t count, float factor, const float* b, float* a, const Execution& exec) {
  by_pieces(count, kPiece, exec, [&](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(add_scaled_of)(factor, b + first, a + first, size);
  });
}

void scale(
    Device, std::int64_t count, float factor, const float* in, float* out, const Execution& exec) {
  by_pieces(count, kPiece, exec, [&](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(scale_of)(factor, in + first, out + first, size);
  });
}

void blend(const GridRows& rows, const Box& box, const float* m, const float* b, float* u,
    const Execution& exec) {
  const std::int64_t width = box.size[0], rank = rows.rank;
  parallel_for(exec, box.size[1] * box.size[2], [&](std::int64_t row) {
    const std::int64_t y = box.first[1] + row % box.size[1], z = box.first[2] + row / box.size[1];
    float* const to = u + ((z * rows.size[1] + y) * rows.size[0] + box.first[0]) * rank;
    HWY_DYNAMIC_DISPATCH(blend_of)
    (m + row * width, b + row * width * rank, to, width, rows.rank);
  });
}

double largest_square(const GridRows& rows, const float* field, const Execution& exec) {
  const std::int64_t count = rows.voxels();
  std::vector<float> parts(static_cast<std::size_t>((count + kPiece - 1) / kPiece));
  by_pieces(count, kPiece, exec, [&](std::int64_t first, std::int64_t size) {
    parts[static_cast<std::size_t>(first / kPiece)] =
        HWY_DYNAMIC_DISPATCH(largest_square_of)(field + first * rows.rank, size, rows.rank);
  });
  float most = 0;
  for (const float part : parts) {
    if (!(part <= most)) most = part;
    if (std::isnan(part)) return static_cast<double>(part);
  }
  return static_cast<double>(most);
}

}  // namespace cpu
}  // namespace similis::registration_internal
#endif
