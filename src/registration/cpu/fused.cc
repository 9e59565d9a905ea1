// SPDX-License-Identifier: Apache-2.0
// The metrics of two volumes and their derivative by u, in three passes by rows:
//
//   move     u, M ─> J = M(A(x + u)), NaN where a voxel does not count; ∇M into the gradient;
//            moments of F and J
//   windows  F, J ─> sums along z, y, x of 6 products ─> averages over voxels that count
//            ─> lncc/formula.h ─> 3 slopes a voxel; the value
//   slopes   the 3 slopes likewise ─> ∂/∂J, and NCC's; times ∇M, in place
//
// Images are in [0, 1], which f32 sums of one window hold to 1e-5 of smooth_dr·k. Coarse levels are
// in f64. Sums along z come first, as they read whole rows of the images and keep none; a task then
// marches along y, with the rows of its window in the first-level cache. Each sum is formed anew,
// so bits do not depend on where a task begins. Plain loops become the vectors of each SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/registration/cpu/fused.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include "src/registration/cpu/fused.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/lncc/formula.h"
#include "src/registration/cpu/moved_cells-inl.h"
#include "src/registration/levels.h"
#include "src/registration/moved_metric.h"
#include "src/registration/passes.h"

#ifndef SIMILIS_REGISTRATION_FUSED
#define SIMILIS_REGISTRATION_FUSED
namespace similis::registration_internal {

constexpr int kMostFusedRadius = 3;  // of windows
constexpr std::int64_t kRowsOfTask = 40, kPlanesOfTask = 8;
constexpr int kProducts = 6, kSlopes = 3;

// A pass over the rows of one plane, from first_row on.
struct PlanePart {
  std::int64_t z, first_row, end_row;
};

struct FusedTerms {
  int radius = 0;                          // of LNCC's window
  double lncc_weight = 0, ncc_weight = 0;  // 0: left out
};

// The derivative of NCC by J is by_f·(F - mean_f) + by_j·(J - mean_j).
template <class T> struct SlopePass {
  const T *j, *slopes;
  LinearGradient ncc;
  T* gradient;
};

// The three passes over one row or part.
template <class T> struct FusedPasses {
  Moments (*move)(const FusedVolumes<T>& volumes, const T* u, std::int64_t row, T* j, T* gradient);
  double (*windows)(const FusedVolumes<T>& volumes, const FusedTerms& terms, const PlanePart& part,
      const T* j, T* slopes);
  void (*slopes)(const FusedVolumes<T>& volumes, const FusedTerms& terms, const PlanePart& part,
      const SlopePass<T>& pass);
};
using AllFusedPasses = std::tuple<FusedPasses<float>, FusedPasses<double>>;

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {

// J and ∇M of one row.
template <class T>
Moments move_row(const FusedVolumes<T>& v, const T* u, std::int64_t row, T* j, T* gradient) {
  const std::int64_t width = v.size[0];
  MovedCells<T> cells;
  Moments moments;
  for (std::int64_t x = 0; x < width; x += kMovedAtOnce) {
    const std::int64_t count = std::min(kMovedAtOnce, width - x), voxel = row * width + x;
    const T at[3] = {
        static_cast<T>(x), static_cast<T>(row % v.size[1]), static_cast<T>(row / v.size[1])};
    place_cells(v, u + 3 * voxel, at, count, cells);
    apply_masks(v, voxel, count, cells);
    load_corners(v, v.moving, count, cells);
    mix_corners<true>(count, cells);
    add_moments(v.fixed + voxel, cells, count, moments);
    T* HWY_RESTRICT value = j + voxel;
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] = cells.counts[i] != 0 ? cells.value[i] : std::numeric_limits<T>::quiet_NaN();
    }
    T* HWY_RESTRICT by_u = gradient + 3 * voxel;
    const T *HWY_RESTRICT sx = cells.slope[0], *HWY_RESTRICT sy = cells.slope[1],
                          *HWY_RESTRICT sz = cells.slope[2];
    for (std::int64_t i = 0; i < count; ++i) {
      by_u[3 * i] = sx[i] * v.by[0][0] + sy[i] * v.by[1][0] + sz[i] * v.by[2][0];
      by_u[3 * i + 1] = sx[i] * v.by[0][1] + sy[i] * v.by[1][1] + sz[i] * v.by[2][1];
      by_u[3 * i + 2] = sx[i] * v.by[0][2] + sy[i] * v.by[1][2] + sz[i] * v.by[2][2];
    }
  }
  return moments;
}

// Rows of window sums, on the way from planes to windows.
template <int radius, int maps, class T> class WindowRows {
 public:
  static constexpr int kWindow = 2 * radius + 1;

  explicit WindowRows(std::int64_t width)
      : width_(width),
        pitch_((width + 2 * radius + 15) / 16 * 16),
        rows_(static_cast<std::size_t>((kWindow + 1) * maps * pitch_)),
        blank_(static_cast<std::size_t>(width), std::numeric_limits<T>::quiet_NaN()) {}

  /// The row of sums along z that row y of the plane gets.
  T* of_planes(std::int64_t y, int map) {
    const std::int64_t slot = (y % kWindow + kWindow) % kWindow;
    return rows_.data() + (slot * maps + map) * pitch_;
  }
  /// Adds up the rows of a window along y, with a margin of zeros along x.
  void sum_rows() {
    for (int map = 0; map < maps; ++map) {
      add_rows(of_planes(0, map), maps * pitch_, across(map) + radius,
          std::make_index_sequence<kWindow>());
    }
  }
  /// out[i] = Σ over the window of voxel i.
  void sum_columns(int map, T* out) const {
    add_columns(across(map), out, std::make_index_sequence<kWindow>());
  }
  const T* blank() const { return blank_.data(); }

 private:
  T* across(int map) { return rows_.data() + (kWindow * maps + map) * pitch_; }
  const T* across(int map) const { return rows_.data() + (kWindow * maps + map) * pitch_; }

  template <std::size_t... k>
  void add_rows(const T* HWY_RESTRICT from, std::int64_t step, T* HWY_RESTRICT out,
      std::index_sequence<k...>) const {
    for (std::int64_t i = 0; i < width_; ++i) {
      out[i] = (... + from[static_cast<std::int64_t>(k) * step + i]);
    }
  }
  template <std::size_t... k>
  void add_columns(
      const T* HWY_RESTRICT from, T* HWY_RESTRICT out, std::index_sequence<k...>) const {
    for (std::int64_t i = 0; i < width_; ++i) {
      out[i] = (... + from[i + static_cast<std::int64_t>(k)]);
    }
  }

  std::int64_t width_, pitch_;
  AlignedVector<T> rows_, blank_;
};

// Sums along z of the products of F and J; a voxel whose J is NaN does not count.
template <class T, std::size_t... k>
void add_products(const T* const* f_rows, const T* const* j_rows, std::int64_t width,
    T* HWY_RESTRICT count, T* HWY_RESTRICT f_sum, T* HWY_RESTRICT j_sum, T* HWY_RESTRICT ff,
    T* HWY_RESTRICT jj, T* HWY_RESTRICT fj, std::index_sequence<k...>) {
  const T* const f_of[] = {f_rows[k]...};
  const T* const j_of[] = {j_rows[k]...};
  for (std::int64_t i = 0; i < width; ++i) {
    T n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    const auto add = [&](const T f, const T j) HWY_ATTR {
      const bool counts = j == j;
      const T own = counts ? f : T(0), other = counts ? j : T(0);
      n += counts ? T(1) : T(0);
      a += own;
      b += other;
      aa += own * own;
      bb += other * other;
      ab += own * other;
    };
    (add(f_of[k][i], j_of[k][i]), ...);
    count[i] = n;
    f_sum[i] = a;
    j_sum[i] = b;
    ff[i] = aa;
    jj[i] = bb;
    fj[i] = ab;
  }
}

template <class T, std::size_t... k>
void add_slopes(const T* HWY_RESTRICT from, std::int64_t plane, std::int64_t width,
    T* HWY_RESTRICT out, std::index_sequence<k...>) {
  for (std::int64_t i = 0; i < width; ++i) {
    out[i] = (... + from[static_cast<std::int64_t>(k) * plane + i]);
  }
}

// Slopes of the voxels of a row by the sums of their windows, and the sum of the values.
template <class T>
void correlate(const T* const (&sums)[kProducts], const T* HWY_RESTRICT j, std::int64_t width,
    T weight, T k, T* HWY_RESTRICT by_mean, T* HWY_RESTRICT by_square, T* HWY_RESTRICT by_product,
    T* HWY_RESTRICT value) {
  constexpr auto kSmoothing = static_cast<T>(1e-5);  // LnccOptions' smooth_nr and smooth_dr
  const lncc_internal::Constants<T> constants{kSmoothing * k, kSmoothing * k};
  const T *HWY_RESTRICT n = sums[0], *HWY_RESTRICT f = sums[1], *HWY_RESTRICT g = sums[2],
                        *HWY_RESTRICT ff = sums[3], *HWY_RESTRICT jj = sums[4],
                        *HWY_RESTRICT fj = sums[5];
  for (std::int64_t i = 0; i < width; ++i) {
    const bool counts = j[i] == j[i];
    const T inverse = 1 / (n[i] > 0 ? n[i] : T(1));
    const T mean_f = f[i] * inverse, mean_j = g[i] * inverse;
    const auto c =
        lncc_internal::squared_correlation<T>({.a = k * (fj[i] * inverse - mean_f * mean_j),
                                                  .b = k * (ff[i] * inverse - mean_f * mean_f),
                                                  .c = k * (jj[i] * inverse - mean_j * mean_j)},
            constants);
    const T scale = counts ? weight * k * inverse : T(0);
    value[i] = counts ? c.value : T(0);
    by_mean[i] = -scale * (2 * c.gradient.c * mean_j + c.gradient.a * mean_f);
    by_square[i] = 2 * scale * c.gradient.c;
    by_product[i] = scale * c.gradient.a;
  }
}

template <class T> double sum_of(const T* values, std::int64_t width) {
  T lanes[kPartialLanes] = {};
  std::int64_t i = 0;
  for (; i + kPartialLanes <= width; i += kPartialLanes) {
    for (int lane = 0; lane < kPartialLanes; ++lane) lanes[lane] += values[i + lane];
  }
  for (; i < width; ++i) lanes[0] += values[i];
  double sum = 0;
  for (const T lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

template <int radius, class T>
double windows_of(const FusedVolumes<T>& v, const FusedTerms& terms, const PlanePart& part,
    const T* j, T* slopes) {
  constexpr int kWindow = 2 * radius + 1;
  const std::int64_t width = v.size[0], height = v.size[1], depth = v.size[2],
                     plane = width * height, voxels = plane * depth;
  WindowRows<radius, kProducts, T> rows(width);
  AlignedVector<T> memory(static_cast<std::size_t>((kProducts + 1) * width));
  T* sums[kProducts];
  const T* summed[kProducts];
  for (int q = 0; q < kProducts; ++q) summed[q] = sums[q] = memory.data() + q * width;
  T* const value = memory.data() + kProducts * width;
  double total = 0;
  for (std::int64_t y = part.first_row - radius; y < part.end_row + radius; ++y) {
    if (y < 0 || y >= height) {
      for (int q = 0; q < kProducts; ++q) std::fill_n(rows.of_planes(y, q), width, T(0));
    } else {
      const T *f_rows[kWindow], *j_rows[kWindow];
      for (int k = 0; k < kWindow; ++k) {
        const std::int64_t z = part.z - radius + k;
        const bool exists = z >= 0 && z < depth;
        f_rows[k] = exists ? v.fixed + z * plane + y * width : rows.blank();
        j_rows[k] = exists ? j + z * plane + y * width : rows.blank();
      }
      add_products(f_rows, j_rows, width, rows.of_planes(y, 0), rows.of_planes(y, 1),
          rows.of_planes(y, 2), rows.of_planes(y, 3), rows.of_planes(y, 4), rows.of_planes(y, 5),
          std::make_index_sequence<kWindow>());
    }
    const std::int64_t out = y - radius;
    if (out < part.first_row) continue;
    rows.sum_rows();
    for (int q = 0; q < kProducts; ++q) rows.sum_columns(q, sums[q]);
    T* const to = slopes + part.z * plane + out * width;
    correlate(summed, j + part.z * plane + out * width, width, static_cast<T>(terms.lncc_weight),
        static_cast<T>(kWindow * kWindow * kWindow), to, to + voxels, to + 2 * voxels, value);
    total += sum_of(value, width);
  }
  return total;
}

template <int radius, class T>
void gradient_of(const FusedVolumes<T>& v, const PlanePart& part, const SlopePass<T>& pass) {
  constexpr int kWindow = 2 * radius + 1;
  const std::int64_t width = v.size[0], height = v.size[1], depth = v.size[2],
                     plane = width * height, voxels = plane * depth;
  WindowRows<radius, kSlopes, T> rows(width);
  AlignedVector<T> memory(static_cast<std::size_t>(kSlopes * width));
  T* const by_mean = memory.data();
  T* const by_square = by_mean + width;
  T* const by_product = by_square + width;
  const auto by_f = static_cast<T>(pass.ncc.by_f), mean_f = static_cast<T>(pass.ncc.mean_f),
             ncc_by_j = static_cast<T>(pass.ncc.by_j), mean_j = static_cast<T>(pass.ncc.mean_j);
  const std::int64_t first = std::max<std::int64_t>(part.z - radius, 0),
                     end = std::min(part.z + radius + 1, depth);
  for (std::int64_t y = part.first_row - radius; y < part.end_row + radius; ++y) {
    for (int q = 0; q < kSlopes; ++q) {
      T* HWY_RESTRICT const sum = rows.of_planes(y, q);
      if (y < 0 || y >= height) {
        std::fill_n(sum, width, T(0));
        continue;
      }
      const T* HWY_RESTRICT const from = pass.slopes + q * voxels + y * width;
      if (end - first == kWindow) {
        add_slopes(from + first * plane, plane, width, sum, std::make_index_sequence<kWindow>());
        continue;
      }
      std::copy_n(from + first * plane, width, sum);
      for (std::int64_t z = first + 1; z < end; ++z) {
        for (std::int64_t i = 0; i < width; ++i) sum[i] += from[z * plane + i];
      }
    }
    const std::int64_t out = y - radius;
    if (out < part.first_row) continue;
    rows.sum_rows();
    rows.sum_columns(0, by_mean);
    rows.sum_columns(1, by_square);
    rows.sum_columns(2, by_product);
    const std::int64_t voxel = part.z * plane + out * width;
    const T *HWY_RESTRICT f = v.fixed + voxel, *HWY_RESTRICT j = pass.j + voxel;
    T* HWY_RESTRICT by_j = by_mean;
    for (std::int64_t i = 0; i < width; ++i) {
      const T by_value = by_mean[i] + f[i] * by_product[i] + j[i] * by_square[i] +
                         (by_f * (f[i] - mean_f) + ncc_by_j * (j[i] - mean_j));
      by_j[i] = j[i] == j[i] ? by_value : T(0);
    }
    T* HWY_RESTRICT gradient = pass.gradient + 3 * voxel;
    for (std::int64_t i = 0; i < width; ++i) {
      const T by_value = by_j[i];
      gradient[3 * i] *= by_value;
      gradient[3 * i + 1] *= by_value;
      gradient[3 * i + 2] *= by_value;
    }
  }
}

template <class T>
double windows_part(const FusedVolumes<T>& v, const FusedTerms& terms, const PlanePart& part,
    const T* j, T* slopes) {
  if (terms.radius == 1) return windows_of<1>(v, terms, part, j, slopes);
  return terms.radius == 2 ? windows_of<2>(v, terms, part, j, slopes)
                           : windows_of<3>(v, terms, part, j, slopes);
}

template <class T>
void gradient_part(const FusedVolumes<T>& v, const FusedTerms& terms, const PlanePart& part,
    const SlopePass<T>& pass) {
  if (terms.radius == 1) return gradient_of<1>(v, part, pass);
  terms.radius == 2 ? gradient_of<2>(v, part, pass) : gradient_of<3>(v, part, pass);
}

AllFusedPasses fused_passes() {
  return {{move_row<float>, windows_part<float>, gradient_part<float>},
      {move_row<double>, windows_part<double>, gradient_part<double>}};
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(fused_passes);

namespace {

// Pearson's correlation and its derivative times the number of voxels.
double pearson_of(const Moments& m, double weight, LinearGradient* by) {
  const double n = m.count, mean_f = m.f / n, mean_j = m.j / n;
  const double ff = m.ff - n * mean_f * mean_f, jj = m.jj - n * mean_j * mean_j,
               fj = m.fj - n * mean_f * mean_j;
  if (!(ff > 0) || !(jj > 0)) return 0;
  const double norm = std::sqrt(ff * jj), factor = weight * n, value = fj / norm;
  *by = {.by_f = factor / norm, .mean_f = mean_f, .by_j = -factor * value / jj, .mean_j = mean_j};
  return value;
}

template <class T> class MetricOnCpu : public FusedMetric {
 public:
  MetricOnCpu(const Image& still, const Image& moved, const Map& voxels, const FusedTerms& terms,
      const Execution& exec)
      : volumes_(still, moved), terms_(terms), exec_(exec), j_(still.allocated(1, exec)) {
    volumes_.set_map(voxels);
  }

  // The slopes lie in scratch, which may be u: it is read first.
  double differentiate(const Tensor& u, const Tensor& gradient, const Tensor& scratch) override {
    const std::int64_t rows = volumes_.size[1] * volumes_.size[2];
    T *const j = j_.template elements<T>(), *const by_u = gradient.elements<T>(),
             *const slopes = scratch.elements<T>();
    std::vector<Moments> of_rows(static_cast<std::size_t>(rows));
    parallel_for(exec_, rows, [&](std::int64_t row) {
      of_rows[static_cast<std::size_t>(row)] =
          passes_.move(volumes_, u.elements<T>(), row, j, by_u);
    });
    Moments all;
    for (const Moments& row : of_rows) {
      all.count += row.count;
      all.f += row.f;
      all.j += row.j;
      all.ff += row.ff;
      all.jj += row.jj;
      all.fj += row.fj;
    }
    if (all.count == 0) {
      std::fill_n(by_u, gradient.shape.count(), T(0));
      return -std::numeric_limits<double>::infinity();
    }
    SlopePass<T> pass{.j = j, .slopes = slopes, .ncc = {}, .gradient = by_u};
    const double ncc = terms_.ncc_weight > 0 ? pearson_of(all, terms_.ncc_weight, &pass.ncc) : 0;
    std::vector<double> of_parts(static_cast<std::size_t>(volumes_.size[2] * parts()));
    by_parts([&](std::int64_t task, const PlanePart& part) {
      of_parts[static_cast<std::size_t>(task)] = passes_.windows(volumes_, terms_, part, j, slopes);
    });
    by_parts(
        [&](std::int64_t, const PlanePart& part) { passes_.slopes(volumes_, terms_, part, pass); });
    double lncc = 0;
    for (const double part : of_parts) lncc += part;
    return terms_.lncc_weight * lncc / all.count + terms_.ncc_weight * ncc;
  }

 private:
  std::int64_t parts() const { return (volumes_.size[1] + kRowsOfTask - 1) / kRowsOfTask; }
  // body(number, part) for the parts of all planes. A task takes a part of some planes, one after
  // another: those that their windows share stay in the second-level cache.
  template <class Body> void by_parts(const Body& body) const {
    const std::int64_t depth = volumes_.size[2],
                       groups = (depth + kPlanesOfTask - 1) / kPlanesOfTask;
    parallel_for(exec_, groups * parts(), [&](std::int64_t task) {
      const std::int64_t part = task % parts(), first = part * kRowsOfTask,
                         z = task / parts() * kPlanesOfTask;
      for (std::int64_t i = z; i < std::min(z + kPlanesOfTask, depth); ++i) {
        body(i * parts() + part,
            PlanePart{i, first, std::min(first + kRowsOfTask, volumes_.size[1])});
      }
    });
  }

  FusedVolumes<T> volumes_;
  FusedTerms terms_;
  const Execution& exec_;
  Tensor j_;
  FusedPasses<T> passes_ = std::get<FusedPasses<T>>(HWY_DYNAMIC_DISPATCH(fused_passes)());
};

}  // namespace

bool can_fuse(const Image& still, const Image& moved) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  return still.grid.device.kind == DeviceKind::cpu && still.grid.rank == 3 &&
         still.channels() == 1 && moved.grid.voxels() < kMost;
}

std::unique_ptr<FusedMetric> fused_metric_cpu(const Image& still, const Image& moved,
    const Map& voxels, const std::vector<MetricTerm>& terms, const Execution& exec) {
  if (!can_fuse(still, moved)) return nullptr;
  FusedTerms taken;
  for (const MetricTerm& term : terms) {
    const bool is_lncc = term.metric == RegisterMetric::lncc;
    double& weight = is_lncc ? taken.lncc_weight : taken.ncc_weight;
    if ((!is_lncc && term.metric != RegisterMetric::ncc) || weight > 0) return nullptr;
    weight = term.weight;
    if (is_lncc) taken.radius = term.window_size / 2;
  }
  if (taken.radius < 1 || taken.radius > kMostFusedRadius) return nullptr;
  return with_type(still.values, [&]<class T>(T) -> std::unique_ptr<FusedMetric> {
    return std::make_unique<MetricOnCpu<T>>(still, moved, voxels, taken, exec);
  });
}

}  // namespace similis::registration_internal
#endif
