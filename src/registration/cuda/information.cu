// SPDX-License-Identifier: Apache-2.0
// Mutual information by cubic B-spline windows and its derivative by the map, of several maps at
// once, in two launches and one wait:
//
//   histogram_kernel  M ─> J and its slopes, kept; weights of F times J's ─> counts of a block in
//                     shared memory ─> in global ones; the last block: value, table of ∂/∂p
//   gradient_kernel   J, slopes, weights anew, the table ─> ∂/∂J ─> 12 sums; the last block adds
//
// Counts are integers, a voxel being 2⁴⁵, so that their sums do not depend on the order. With 2²⁰,
// the logarithms of small entries parted from the CPU's. Grids have up to 55³ voxels: launches and
// waits took most of the time of the operations one by one.
#include <algorithm>
#include <cmath>
#include <span>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/block_sum_of.h"
#include "src/gpu/cuda/blocks.h"
#include "src/gpu/device.h"
#include "src/mutual_information/formula.h"
#include "src/registration/cuda/cell.cuh"
#include "src/registration/cuda/fused.h"
#include "src/registration/cuda/last_block.cuh"
#include "src/registration/information.h"

namespace similis::registration_internal {
namespace {

using namespace cuda;
namespace mi = mutual_information_internal;

constexpr int kTaps = 4;
constexpr int kMostBins = 64;                  // whose counts take 32 KB of a block
constexpr double kVoxel = 0x1p45;              // counts of a voxel
constexpr std::int64_t kMostVoxels = 1 << 18;  // whose counts 64 bits hold
constexpr int kMapNumbers = 12;
using Count = unsigned long long;

// On the device; begins as zeros.
struct Found {
  double value, count, by_map[kMapNumbers];
  unsigned tickets[2];
};

// J, NaN where a voxel does not count, and its slopes by the place.
struct Moved {
  double value, slope[3];
};

// The maps of a launch: the blocks of each are a row of the grid.
constexpr int kMostMaps = 8;
struct Maps {
  double start[kMostMaps][3], by[kMostMaps][3][3];
};

struct Pass {
  Volumes<double> volumes;
  int bins;
  // Arrays of each map, one behind the other.
  Count* counts;  // [F's bins][J's bins]; zeros before and after a call
  double* table;  // ∂value/∂p, likewise
  Moved* moved;
  double* partials;  // of blocks
  Found* found;

  // Those of the block's map.
  __device__ Pass own(const Maps& maps) const {
    Pass result = *this;
    const auto map = blockIdx.y;
    const std::int64_t entries = std::int64_t{bins} * bins;
    result.counts += map * entries;
    result.table += map * entries;
    result.moved += map * volumes.voxels();
    result.partials += std::int64_t{map} * gridDim.x * (kMapNumbers + 1);
    result.found += map;
    for (int a = 0; a < 3; ++a) {
      result.volumes.start[a] = maps.start[map][a];
      for (int c = 0; c < 3; ++c) result.volumes.by[a][c] = maps.by[map][a][c];
    }
    return result;
  }
};

// The weights of a value in its bins, and their slopes by the position.
struct Weights {
  int first;
  double value[kTaps], slope[kTaps];

  __device__ Weights(double v, const mi::Scale<double>& scale, int bins) {
    const double t = mi::within(mi::position(v, scale), bins);
    first = mi::first_bin(t, bins, kTaps);
    double sum = 0, slope_sum = 0;
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      const mi::Weight<double> weight =
          mi::b_spline_weight(t - static_cast<double>(first) - static_cast<double>(k));
      value[k] = weight.value;
      slope[k] = weight.slope;
      sum += weight.value;
      slope_sum += weight.slope;
    }
    const double inverse = 1 / sum;
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      value[k] *= inverse;
      slope[k] = (slope[k] - value[k] * slope_sum) * inverse;
    }
  }
};

struct Voxel {
  double at[3];

  __device__ Voxel(const Volumes<double>& p, int number) {
    const int row = number / p.size[0];
    at[0] = static_cast<double>(number - row * p.size[0]);
    at[1] = static_cast<double>(row % p.size[1]);
    at[2] = static_cast<double>(row / p.size[1]);
  }
};

// values[(k + by) % 4], without an index that the compiler does not know.
__device__ __forceinline__ void rotate(double (&values)[kTaps], int by) {
  static_assert(kTaps == 4);
  const double once[kTaps] = {(by & 1) != 0 ? values[1] : values[0],
      (by & 1) != 0 ? values[2] : values[1], (by & 1) != 0 ? values[3] : values[2],
      (by & 1) != 0 ? values[0] : values[3]};
#pragma unroll
  for (int k = 0; k < kTaps; ++k) values[k] = (by & 2) != 0 ? once[(k + 2) % kTaps] : once[k];
}

// The value and the table, by one block; counts are 0 again.
__device__ void finish_histogram(const Pass& pass, double voxels) {
  __shared__ double margin_f[kMostBins], margin_j[kMostBins];
  const int t = static_cast<int>(threadIdx.x), bins = pass.bins;
  // Other blocks wrote them: no cache of this multiprocessor may answer.
  volatile Count* const counts = pass.counts;
  if (t < bins) {
    Count sum = 0;
    for (int i = 0; i < bins; ++i) sum += counts[t * bins + i];
    margin_f[t] = static_cast<double>(sum);
  } else if (t >= kTile / 2 && t < kTile / 2 + bins) {
    const int bin = t - kTile / 2;
    Count sum = 0;
    for (int i = 0; i < bins; ++i) sum += counts[i * bins + bin];
    margin_j[bin] = static_cast<double>(sum);
  }
  __syncthreads();
  double all = 0;
  for (int i = 0; i < bins; ++i) all += margin_f[i];
  const double by_all = all > 0 ? 1 / all : 0;
  const double value = gpu::block_sum_of<kTile>(bins * bins, [&](int i) {
    const mi::EntryTerm term =
        mi::information({static_cast<double>(counts[i]) * by_all, margin_f[i / bins] * by_all,
                            margin_j[i % bins] * by_all},
            {}, FusedInformation::kLeastCount * kVoxel * by_all);
    pass.table[i] = term.by_p;
    counts[i] = 0;
    return term.value;
  });
  if (t == 0) {
    pass.found->value = value;
    pass.found->count = voxels;
  }
}

__global__ __launch_bounds__(kTile) void histogram_kernel(
    const SIMILIS_GRID_CONSTANT Pass all_maps, const SIMILIS_GRID_CONSTANT Maps maps) {
  const Pass pass = all_maps.own(maps);
  SIMILIS_DYNAMIC_SHARED(Count, counts, 16);  // [bins][bins]
  const Volumes<double>& p = pass.volumes;
  const int t = static_cast<int>(threadIdx.x), bins = pass.bins, entries = bins * bins;
  for (int i = t; i < entries; i += kTile) counts[i] = 0;
  __syncthreads();
  const mi::Scale<double> scale = mi::scale_of<double>(0, 1, bins);
  // Neighbours with the same values add to the same entries: they begin at different ones.
  const int turn_f = t & (kTaps - 1), turn_j = t / kTaps & (kTaps - 1);
  const int voxels = static_cast<int>(p.voxels()), threads = static_cast<int>(gridDim.x) * kTile;
  int counted = 0;
  for (int voxel = static_cast<int>(blockIdx.x) * kTile + t; voxel < voxels; voxel += threads) {
    const Voxel own(p, voxel);
    const Cell<double> cell(p, own.at);
    Moved moved = {.value = NAN, .slope = {}};
    const bool counts_here =
        cell.is_inside && (p.fixed_mask == nullptr || p.fixed_mask[voxel] != 0) &&
        (p.moving_mask == nullptr || cell.value(p, p.moving_mask) >= kInside<double>);
    if (counts_here) {
      ++counted;
      double corner[8];
      cell.load(p, p.moving, corner);
      cell.place_slope(corner, moved.slope);
      moved.value = cell.value(corner);
      Weights f(p.fixed[voxel], scale, bins), j(moved.value, scale, bins);
      rotate(f.value, turn_f);
      rotate(j.value, turn_j);
#pragma unroll
      for (int a = 0; a < kTaps; ++a) {
        Count* const row = counts + (f.first + ((a + turn_f) & (kTaps - 1))) * bins + j.first;
        const double weight = kVoxel * f.value[a];
#pragma unroll
        for (int b = 0; b < kTaps; ++b) {
          atomicAdd(
              row + ((b + turn_j) & (kTaps - 1)), static_cast<Count>(fma(weight, j.value[b], 0.5)));
        }
      }
    }
    pass.moved[voxel] = moved;
  }
  __syncthreads();
  for (int i = t; i < entries; i += kTile) {
    if (counts[i] != 0) atomicAdd(pass.counts + i, counts[i]);
  }
  double all[2] = {};
  const double own[1] = {static_cast<double>(counted)};
  if (!is_last_block<1>(own, 0, pass.partials, &pass.found->tickets[0], all)) return;
  finish_histogram(pass, all[0]);
}

__global__ __launch_bounds__(kTile) void gradient_kernel(
    const SIMILIS_GRID_CONSTANT Pass all_maps, const SIMILIS_GRID_CONSTANT Maps maps) {
  const Pass pass = all_maps.own(maps);
  SIMILIS_DYNAMIC_SHARED(double, table, 16);  // [bins][bins]
  const Volumes<double>& p = pass.volumes;
  const int t = static_cast<int>(threadIdx.x), bins = pass.bins;
  for (int i = t; i < bins * bins; i += kTile) table[i] = pass.table[i];
  __syncthreads();
  const mi::Scale<double> scale = mi::scale_of<double>(0, 1, bins);
  const int voxels = static_cast<int>(p.voxels()), threads = static_cast<int>(gridDim.x) * kTile;
  double sums[kMapNumbers] = {};
  for (int voxel = static_cast<int>(blockIdx.x) * kTile + t; voxel < voxels; voxel += threads) {
    const Moved moved = pass.moved[voxel];
    if (mi::is_inside(moved.value, scale) == 0) continue;  // also where it does not count
    const Weights f(p.fixed[voxel], scale, bins), j(moved.value, scale, bins);
    double by_j = 0;
#pragma unroll
    for (int b = 0; b < kTaps; ++b) {
      double looked_up = 0;
#pragma unroll
      for (int a = 0; a < kTaps; ++a) {
        looked_up = fma(f.value[a], table[(f.first + a) * bins + j.first + b], looked_up);
      }
      by_j = fma(j.slope[b], looked_up, by_j);
    }
    by_j *= scale.bins_per_unit;
    const Voxel own(p, voxel);
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const double by_place = by_j * moved.slope[a];
#pragma unroll
      for (int c = 0; c < 3; ++c) sums[4 * a + c] += by_place * own.at[c];
      sums[4 * a + 3] += by_place;
    }
  }
  double all[kMapNumbers + 1];
  if (!is_last_block<kMapNumbers>(sums, 0, pass.partials, &pass.found->tickets[1], all)) return;
  if (t != 0) return;
  for (int k = 0; k < kMapNumbers; ++k) pass.found->by_map[k] = all[k];
}

class InformationOnGpu : public FusedInformation {
 public:
  InformationOnGpu(
      const Image& fixed, const Image& moving, int bins, std::size_t maps, const Execution& exec)
      : pass_{}, maps_(std::clamp<std::size_t>(maps, 1, kMostMaps)) {
    set_images(fixed, moving, pass_.volumes);
    pass_.bins = bins;
    const Device device = pass_.volumes.device;
    const std::int64_t voxels = pass_.volumes.voxels();
    const auto entries = static_cast<std::size_t>(bins * bins);
    blocks_ =
        gpu::blocks_for_items(voxels, kTile, 2 * std::int64_t{gpu::limits(device).multiprocessors});
    const auto allocated = [&](std::size_t bytes) {
      memory_.push_back(allocate_bytes(bytes, device, exec));
      return memory_.back().get();
    };
    const std::size_t bytes_of_counts = maps_ * entries * sizeof(Count),
                      bytes_of_found = maps_ * sizeof(Found);
    pass_.counts = static_cast<Count*>(allocated(bytes_of_counts));
    pass_.found = static_cast<Found*>(allocated(bytes_of_found));
    pass_.table = static_cast<double*>(allocated(maps_ * entries * sizeof(double)));
    pass_.moved =
        static_cast<Moved*>(allocated(maps_ * static_cast<std::size_t>(voxels) * sizeof(Moved)));
    pass_.partials =
        static_cast<double*>(allocated(maps_ * blocks_ * (kMapNumbers + 1) * sizeof(double)));
    const gpu::Current current(device);
    gpu::clear("register", exec.queue.handle, pass_.counts, bytes_of_counts);
    gpu::clear("register", exec.queue.handle, pass_.found, bytes_of_found);
  }

  std::vector<Result> evaluate(const std::vector<Map>& voxels, const Execution& exec) override {
    std::vector<Result> results;
    for (std::size_t first = 0; first < voxels.size(); first += maps_) {
      const std::size_t count = std::min(voxels.size() - first, maps_);
      evaluate(std::span(voxels).subspan(first, count), results, exec);
    }
    return results;
  }

 private:
  void evaluate(std::span<const Map> voxels, std::vector<Result>& results, const Execution& exec) {
    const Device device = pass_.volumes.device;
    const gpu::Current current(device);
    Maps maps = {};
    for (std::size_t m = 0; m < voxels.size(); ++m) {
      for (std::size_t a = 0; a < 3; ++a) {
        maps.start[m][a] = voxels[m].shift[a];
        for (std::size_t c = 0; c < 3; ++c) maps.by[m][a][c] = voxels[m].linear.rows[a][c];
      }
    }
    const dim3 blocks(blocks_, static_cast<unsigned>(voxels.size()));
    const std::size_t entries = static_cast<std::size_t>(pass_.bins * pass_.bins);
    gpu::launch("register", exec.queue.handle, blocks, kTile, entries * sizeof(Count),
        histogram_kernel, pass_, maps);
    gpu::launch("register", exec.queue.handle, blocks, kTile, entries * sizeof(double),
        gradient_kernel, pass_, maps);
    Found found[kMostMaps];
    gpu::copy_to_cpu(found, pass_.found, voxels.size() * sizeof(Found), device, exec.queue.handle);
    for (std::size_t m = 0; m < voxels.size(); ++m) {
      const Found& own = found[m];
      Result result{.value = own.value, .count = static_cast<std::int64_t>(own.count)};
      for (std::size_t k = 0; k < kMapNumbers && result.count > 0; ++k) {
        result.by_map[k / 4][k % 4] = own.by_map[k] / own.count;
      }
      results.push_back(result);
    }
  }

  Pass pass_;
  std::size_t maps_;  // that there is memory for
  unsigned blocks_ = 1;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace

std::unique_ptr<FusedInformation> fused_information_cuda(
    const Image& fixed, const Image& moving, int bins, std::size_t maps, const Execution& exec) {
  const bool fits = fixed.grid.rank == 3 && fixed.channels() == 1 && bins <= kMostBins &&
                    fixed.grid.voxels() <= kMostVoxels && moving.grid.voxels() <= kMostVoxels;
  return fits ? std::make_unique<InformationOnGpu>(fixed, moving, bins, maps, exec) : nullptr;
}

}  // namespace similis::registration_internal
