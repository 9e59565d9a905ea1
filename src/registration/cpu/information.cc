// SPDX-License-Identifier: Apache-2.0
// Mutual information by cubic B-spline windows, in two passes by rows:
//
//   histogram  M ─> J = M(by·x + start) and its slopes, kept; F's weights times J's ─> a histogram
//              for each task, added up in f64
//   gradient   J's slopes of weights, F's weights, the table of ∂/∂p ─> ∂/∂J ─> 12 sums
//
// F's weights are those of all calls. The number of tasks depends on the grid alone, and so do the
// bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/registration/cpu/information.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include "src/registration/information.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/aligned_vector.h"
#include "src/mutual_information/formula.h"
#include "src/registration/cpu/moved_cells-inl.h"

#ifndef SIMILIS_REGISTRATION_INFORMATION
#define SIMILIS_REGISTRATION_INFORMATION
namespace similis::registration_internal {

constexpr int kTaps = 4;
constexpr std::int64_t kMostTasks = 48;

// The arguments of both passes. Arrays of the volume are null where a pass has none.
struct InformationPass {
  FusedVolumes<double> volumes;
  int bins;
  std::int32_t* fixed_bins;
  double* fixed_weights;
  double *j, *slopes[3];
  const double* table;  // ∂value/∂p, [F's bins][J's bins]
};

struct RowRange {
  std::int64_t first, end;
};

// Σ g_a·(x, y, z, 1), g the derivative by the place along axis a.
struct MapSums {
  double of[3][4] = {};
};

}  // namespace similis::registration_internal
#endif

HWY_BEFORE_NAMESPACE();
namespace similis::registration_internal::HWY_NAMESPACE {
namespace mi = mutual_information_internal;

// Weights in the bins of some values, and their slopes by the value.
struct BinWeights {
  alignas(64) std::int32_t first[kMovedAtOnce];
  alignas(64) double from_first[kMovedAtOnce], sum[kMovedAtOnce], slope_sum[kMovedAtOnce];
  alignas(64) double value[kTaps][kMovedAtOnce], slope[kTaps][kMovedAtOnce];
};

void weigh_values(const double* HWY_RESTRICT v, std::int64_t count, int bins, BinWeights& w) {
  const mi::Scale<double> scale = mi::scale_of<double>(0, 1, bins);
  for (std::int64_t i = 0; i < count; ++i) {
    const double t = mi::within(mi::position(v[i], scale), bins);
    const int first = mi::first_bin(t, bins, kTaps);
    w.first[i] = first;
    w.from_first[i] = t - static_cast<double>(first);
    w.sum[i] = w.slope_sum[i] = 0;
  }
  for (int k = 0; k < kTaps; ++k) {
    for (std::int64_t i = 0; i < count; ++i) {
      const mi::Weight<double> weight =
          mi::b_spline_weight(w.from_first[i] - static_cast<double>(k));
      w.value[k][i] = weight.value;
      w.slope[k][i] = weight.slope;
      w.sum[i] += weight.value;
      w.slope_sum[i] += weight.slope;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) w.sum[i] = 1 / w.sum[i];
  for (int k = 0; k < kTaps; ++k) {
    for (std::int64_t i = 0; i < count; ++i) {
      w.value[k][i] *= w.sum[i];
      w.slope[k][i] = (w.slope[k][i] - w.value[k][i] * w.slope_sum[i]) * w.sum[i];
    }
  }
}

// body(voxel, count) for pieces of the rows.
template <class Body>
HWY_INLINE void by_row_pieces(
    const FusedVolumes<double>& v, const RowRange& rows, const Body& body) {
  for (std::int64_t row = rows.first; row < rows.end; ++row) {
    for (std::int64_t x = 0; x < v.size[0]; x += kMovedAtOnce) {
      body(row, x, std::min(kMovedAtOnce, v.size[0] - x));
    }
  }
}

void weigh_fixed(const InformationPass* pass, const RowRange* rows) {
  const FusedVolumes<double>& v = pass->volumes;
  BinWeights weights;
  by_row_pieces(v, *rows, [&](std::int64_t row, std::int64_t x, std::int64_t count) {
    const std::int64_t voxel = row * v.size[0] + x;
    weigh_values(v.fixed + voxel, count, pass->bins, weights);
    for (std::int64_t i = 0; i < count; ++i) {
      pass->fixed_bins[voxel + i] = weights.first[i] * pass->bins;
      for (int k = 0; k < kTaps; ++k) {
        pass->fixed_weights[kTaps * (voxel + i) + k] = weights.value[k][i];
      }
    }
  });
}

// The values of a piece into a histogram. Neighbours that are alike in both images, such as a
// background, are counted and added once.
std::int64_t bin_piece(const InformationPass& pass, std::int64_t voxel, std::int64_t count,
    const MovedCells<double>& cells, const BinWeights& weights, double* HWY_RESTRICT histogram) {
  const double *f = pass.volumes.fixed + voxel, *j = cells.value, *counts = cells.counts;
  std::int64_t counted = 0;
  double times = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (counts[i] == 0) continue;
    ++counted;
    if (i + 1 < count && counts[i + 1] != 0 && f[i + 1] == f[i] && j[i + 1] == j[i]) {
      ++times;
      continue;
    }
    const double* const own = pass.fixed_weights + kTaps * (voxel + i);
    double other[kTaps];
    for (int b = 0; b < kTaps; ++b) other[b] = times * weights.value[b][i];
    times = 1;
    double* row = histogram + pass.fixed_bins[voxel + i] + weights.first[i];
    for (int a = 0; a < kTaps; ++a, row += pass.bins) {
      for (int b = 0; b < kTaps; ++b) row[b] += own[a] * other[b];
    }
  }
  return counted;
}

void add_to_histogram(
    const InformationPass* pass, const RowRange* rows, double* histogram, std::int64_t* counted) {
  const FusedVolumes<double>& v = pass->volumes;
  MovedCells<double> cells;
  BinWeights weights;
  *counted = 0;
  by_row_pieces(v, *rows, [&](std::int64_t row, std::int64_t x, std::int64_t count) {
    const std::int64_t voxel = row * v.size[0] + x;
    const double at[3] = {static_cast<double>(x), static_cast<double>(row % v.size[1]),
        static_cast<double>(row / v.size[1])};
    place_cells<double>(v, nullptr, at, count, cells);
    apply_masks(v, voxel, count, cells);
    load_corners(v, v.moving, count, cells);
    mix_corners<true>(count, cells);
    weigh_values(cells.value, count, pass->bins, weights);
    *counted += bin_piece(*pass, voxel, count, cells, weights, histogram);
    for (std::int64_t i = 0; i < count; ++i) {
      pass->j[voxel + i] =
          cells.counts[i] != 0 ? cells.value[i] : std::numeric_limits<double>::quiet_NaN();
    }
    for (int a = 0; a < 3; ++a) std::copy_n(cells.slope[a], count, pass->slopes[a] + voxel);
  });
}

void sum_gradient(const InformationPass* pass, const RowRange* rows, MapSums* sums) {
  const FusedVolumes<double>& v = pass->volumes;
  const mi::Scale<double> scale = mi::scale_of<double>(0, 1, pass->bins);
  BinWeights weights;
  alignas(64) double by_j[kMovedAtOnce];
  by_row_pieces(v, *rows, [&](std::int64_t row, std::int64_t x, std::int64_t count) {
    const std::int64_t voxel = row * v.size[0] + x;
    const double* const j = pass->j + voxel;
    weigh_values(j, count, pass->bins, weights);
    for (std::int64_t i = 0; i < count; ++i) {
      by_j[i] = 0;
      if (!(mi::is_inside(j[i], scale) != 0)) continue;  // also where it does not count
      const double* const own = pass->fixed_weights + kTaps * (voxel + i);
      const double* entries = pass->table + pass->fixed_bins[voxel + i] + weights.first[i];
      double looked_up[kTaps] = {};
      for (int a = 0; a < kTaps; ++a, entries += pass->bins) {
        for (int b = 0; b < kTaps; ++b) looked_up[b] += own[a] * entries[b];
      }
      double sum = 0;
      for (int b = 0; b < kTaps; ++b) sum += weights.slope[b][i] * looked_up[b];
      by_j[i] = sum * scale.bins_per_unit;
    }
    const auto y = static_cast<double>(row % v.size[1]), z = static_cast<double>(row / v.size[1]);
    for (int a = 0; a < 3; ++a) {
      const double* HWY_RESTRICT slope = pass->slopes[a] + voxel;
      constexpr std::int64_t kLanes = 8;
      double all[kLanes] = {}, by_x[kLanes] = {};
      const auto add = [&](std::int64_t i, std::int64_t lane) HWY_ATTR {
        const double g = by_j[i] == 0 ? 0.0 : by_j[i] * slope[i];
        all[lane] += g;
        by_x[lane] += g * static_cast<double>(static_cast<std::int32_t>(i));
      };
      std::int64_t i = 0;
      for (; i + kLanes <= count; i += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
      }
      for (; i < count; ++i) add(i, 0);
      double sum = 0, along_x = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        sum += all[lane];
        along_x += by_x[lane];
      }
      sums->of[a][0] += along_x + sum * static_cast<double>(x);
      sums->of[a][1] += sum * y;
      sums->of[a][2] += sum * z;
      sums->of[a][3] += sum;
    }
  });
}

}  // namespace similis::registration_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::registration_internal {
HWY_EXPORT(weigh_fixed);
HWY_EXPORT(add_to_histogram);
HWY_EXPORT(sum_gradient);

namespace {

// body(task, rows).
template <class Body>
void by_row_ranges(const FusedVolumes<double>& volumes, const Execution& exec, const Body& body) {
  const std::int64_t rows = volumes.size[1] * volumes.size[2], tasks = std::min(kMostTasks, rows);
  parallel_for(exec, tasks, [&](std::int64_t task) {
    body(static_cast<std::size_t>(task), RowRange{rows * task / tasks, rows * (task + 1) / tasks});
  });
}

// The value of a histogram; `table` becomes its derivative by each entry's share.
double information_of(const std::vector<double>& histogram, int bins, std::vector<double>& table) {
  const auto n = static_cast<std::size_t>(bins);
  double all = 0, value = 0;
  for (const double entry : histogram) all += entry;
  std::vector<double> margin_a(n), margin_b(n);
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    margin_a[i / n] += histogram[i] / all;
    margin_b[i % n] += histogram[i] / all;
  }
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    const auto term = mutual_information_internal::information(
        {histogram[i] / all, margin_a[i / n], margin_b[i % n]}, {},
        FusedInformation::kLeastCount / all);
    value += term.value;
    table[i] = term.by_p;
  }
  return value;
}

class InformationOnCpu : public FusedInformation {
 public:
  InformationOnCpu(const FusedVolumes<double>& volumes, int bins, const Execution& exec)
      : volumes_(volumes), bins_(bins) {
    const auto voxels =
        static_cast<std::size_t>(volumes.size[0] * volumes.size[1] * volumes.size[2]);
    fixed_bins_.resize(voxels);
    fixed_weights_.resize(kTaps * voxels);
    moved_.resize(4 * voxels);
    InformationPass pass{.volumes = volumes_,
        .bins = bins_,
        .fixed_bins = fixed_bins_.data(),
        .fixed_weights = fixed_weights_.data(),
        .j = nullptr,
        .slopes = {},
        .table = nullptr};
    by_row_ranges(volumes_, exec, [&](std::size_t, const RowRange& rows) {
      HWY_DYNAMIC_DISPATCH(weigh_fixed)(&pass, &rows);
    });
  }

  std::vector<Result> evaluate(const std::vector<Map>& voxels, const Execution& exec) override {
    std::vector<Result> results;
    for (const Map& map : voxels) results.push_back(evaluate(map, exec));
    return results;
  }

 private:
  Result evaluate(const Map& voxels, const Execution& exec);

  FusedVolumes<double> volumes_;
  int bins_;
  std::vector<std::int32_t> fixed_bins_;  // the first of 4
  AlignedVector<double> fixed_weights_;   // 4 a voxel
  AlignedVector<double> moved_;           // J, NaN where a voxel does not count, and 3 slopes
};

FusedInformation::Result InformationOnCpu::evaluate(const Map& voxels, const Execution& exec) {
  volumes_.set_map(voxels);
  const std::size_t count = fixed_bins_.size(), entries = static_cast<std::size_t>(bins_ * bins_);
  std::vector<double> table(entries);
  InformationPass pass{.volumes = volumes_,
      .bins = bins_,
      .fixed_bins = fixed_bins_.data(),
      .fixed_weights = fixed_weights_.data(),
      .j = moved_.data(),
      .slopes = {moved_.data() + count, moved_.data() + 2 * count, moved_.data() + 3 * count},
      .table = table.data()};
  std::vector<double> histograms(entries * static_cast<std::size_t>(kMostTasks));
  std::int64_t counts[kMostTasks] = {};
  by_row_ranges(volumes_, exec, [&](std::size_t task, const RowRange& rows) {
    HWY_DYNAMIC_DISPATCH(add_to_histogram)
    (&pass, &rows, histograms.data() + task * entries, &counts[task]);
  });
  Result result;
  for (const std::int64_t of_task : counts) result.count += of_task;
  if (result.count == 0) return result;
  std::vector<double> histogram(entries);
  for (std::size_t i = 0; i < histograms.size(); ++i) {
    histogram[i % entries] += static_cast<double>(histograms[i]);
  }
  result.value = information_of(histogram, bins_, table);
  MapSums sums[kMostTasks];
  by_row_ranges(volumes_, exec, [&](std::size_t task, const RowRange& rows) {
    HWY_DYNAMIC_DISPATCH(sum_gradient)(&pass, &rows, &sums[task]);
  });
  for (const MapSums& part : sums) {
    for (int a = 0; a < 3; ++a) {
      for (int c = 0; c < 4; ++c) {
        result.by_map[a][c] += part.of[a][c] / static_cast<double>(result.count);
      }
    }
  }
  return result;
}

}  // namespace

std::unique_ptr<FusedInformation> fused_information_cpu(
    const Image& fixed, const Image& moving, int bins, std::size_t, const Execution& exec) {
  if (!can_fuse(fixed, moving)) return nullptr;
  return std::make_unique<InformationOnCpu>(FusedVolumes<double>(fixed, moving), bins, exec);
}

}  // namespace similis::registration_internal
#endif
