// SPDX-License-Identifier: Apache-2.0
#include "src/ms_ssim/cuda/mix.h"

#include <cstdint>

#include "src/gpu/cuda/blocks.h"
#include "src/ms_ssim/cuda/rows.cuh"

namespace similis::ms_ssim_internal {
namespace {

struct MixWork {
  const double* slopes;  // [planes]
  gpu::View own;         // gradients by the level's means
  gpu::View coarse;      // the finished gradient of the coarser level; without data at the coarsest
  Halvings halving;
  gpu::View gradient;  // may be `own`
};

__global__ void __launch_bounds__(kThreads)
    mix_kernel(const MixWork w, Rows rows, std::int64_t count) {
  for (std::int64_t index = blockIdx.x; index < count; index += gridDim.x) {
    const Row row(rows, index);
    const double factor = w.slopes[row.plane];
    const std::int64_t from = row.in(w.own), to = row.in(w.gradient);
    const double share =
        w.coarse.data == nullptr ? 0 : w.halving.z.share(row.z) * w.halving.y.share(row.y);
    const std::int64_t coarse =
        w.coarse.plane(row.image, row.channel) +
        w.coarse.at(w.halving.z.coarse(row.z), w.halving.y.coarse(row.y), 0);
    for (std::int64_t column = threadIdx.x; column < rows.width; column += kThreads) {
      double value = factor * w.own.load(from + column * w.own.strides[4]);
      const double share_x = share == 0 ? 0 : share * w.halving.x.share(column);
      if (share_x != 0) {
        value += share_x * w.coarse.load(coarse + w.halving.x.coarse(column) * w.coarse.strides[4]);
      }
      w.gradient.store(to + column * w.gradient.strides[4], value);
    }
  }
}

// Mixes all levels at once. They are f32, each width but the coarsest is even, and rows begin at
// multiples of 16 bytes.
struct MixAllWork {
  const double* slopes;  // [levels][planes]
  struct {
    gpu::View own;
    Halving z = Halving::none(), y = Halving::none();  // to the next coarser level
  } level[kMaxLevels];
  int levels;
  gpu::View gradient;
  int across;  // threads_across() a row, whose threads take four columns each
  int rows;    // number of rows of a block
};

// The most rows that a block takes, so that one look at the slopes serves several: where its
// threads share them. Rows that need all threads are half as many.
constexpr int kMixedRows = 16;
static_assert(kMaxLevels * kMixedRows <= kThreads);

// Each thread takes four columns: they share an element of each level but the finest two. Threads
// that have none of a narrow row take other rows.
__global__ void __launch_bounds__(kThreads)
    mix_all_kernel(const MixAllWork w, Rows rows, std::int64_t count) {
  constexpr int kUsual = 5;     // number of levels whose loads are under way at once
  constexpr int kTogether = 4;  // number of a thread's rows whose loads are
  __shared__ const float* from[kMaxLevels][kMixedRows];  // the level's row above this one
  __shared__ float factor[kMaxLevels][kMixedRows];       // 0 where nothing of the level is taken
  __shared__ std::int64_t to[kMixedRows];
  const auto width = static_cast<int>(rows.width), t = static_cast<int>(threadIdx.x);
  const std::int64_t first_row = std::int64_t{blockIdx.x} * w.rows;
  const auto here = static_cast<int>(count - first_row < w.rows ? count - first_row : w.rows);
  const int l = t / kMixedRows;
  if (l < kMaxLevels && t % kMixedRows < here) {
    const Row row(rows, first_row + t % kMixedRows);
    std::int64_t z = row.z, y = row.y;
    double share = l < w.levels ? 1 : 0;
    for (int finer = 0; finer < l && share != 0; ++finer) {
      share *= 0.5 * w.level[finer].z.share(z) * w.level[finer].y.share(y);
      z = w.level[finer].z.coarse(z);
      y = w.level[finer].y.coarse(y);
    }
    const gpu::View& own = w.level[share != 0 ? l : 0].own;
    factor[l][t % kMixedRows] =
        share != 0 ? static_cast<float>(share * w.slopes[l * rows.planes + row.plane]) : 0.f;
    from[l][t % kMixedRows] =
        static_cast<const float*>(own.data) + own.plane(row.image, row.channel) + own.at(z, y, 0);
    if (l == 0) to[t % kMixedRows] = row.in(w.gradient);
  }
  __syncthreads();
  const auto add = [&](int level, int r, int column, float value) {
    const float share = factor[level][r];
    return share != 0 ? fmaf(share, __ldg(from[level][r] + column), value) : value;
  };
  const auto coarser = [&](int r, int column) {
    float common = 0;
#pragma unroll
    for (int i = 2; i < kUsual; ++i) common = add(i, r, column >> i, common);
    for (int i = kUsual; i < w.levels; ++i) common = add(i, r, column >> i, common);
    return common;
  };
  const int first = t / w.across, apart = kThreads / w.across;  // of the thread's rows
  for (int column = t % w.across * 4; column < width; column += w.across * 4) {
    if (column + 2 == width) {
      for (int r = first; r < here; r += apart) {
        float* const row = static_cast<float*>(w.gradient.data) + to[r] + column;
        const float common = add(1, r, column / 2, coarser(r, column));
        row[0] = fmaf(factor[0][r], from[0][r][column], common);
        row[1] = fmaf(factor[0][r], from[0][r][column + 1], common);
      }
      continue;
    }
    for (int next = first; next < here; next += kTogether * apart) {
      float4 own[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int r = next + k * apart;
        if (r < here) own[k] = *reinterpret_cast<const float4*>(from[0][r] + column);
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int r = next + k * apart;
        if (r >= here) break;
        const float common = coarser(r, column), scale = factor[0][r];
        const float left = add(1, r, column / 2, common);
        const float right = add(1, r, column / 2 + 1, common);
        const float4 v = own[k];
        float* const row = static_cast<float*>(w.gradient.data) + to[r];
        *reinterpret_cast<float4*>(row + column) = make_float4(fmaf(scale, v.x, left),
            fmaf(scale, v.y, left), fmaf(scale, v.z, right), fmaf(scale, v.w, right));
      }
    }
  }
}

// Returns whether rows are f32, have unit stride and begin at multiples of 16 bytes.
bool is_aligned(const TensorView& view) {
  return view.dtype == DType::f32 && reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0 &&
         view.strides[4] == 1 && view.strides[3] % 4 == 0 && view.strides[1] % 4 == 0 &&
         view.strides[0] % 4 == 0;
}

bool can_mix_at_once(const std::vector<MixedLevel>& levels, const TensorView& gradient) {
  constexpr std::int64_t most_blocks = std::int64_t{1} << 30;
  if (!is_aligned(gradient) || levels.size() > kMaxLevels) return false;
  if (Rows(gradient.shape).count() / (kMixedRows / 2) > most_blocks) return false;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const bool halves_pairs =
        levels[l].own.shape[4] % 2 == 0 && levels[l].halving[2].coarse(1) == 0;
    if (!is_aligned(levels[l].own) || (l + 1 < levels.size() && !halves_pairs)) return false;
  }
  return true;
}

void mix_at_once(const std::vector<MixedLevel>& levels, const double* slopes,
    const TensorView& gradient, const Execution& exec) {
  const int across = threads_across((gradient.shape[4] + 3) / 4);
  MixAllWork work{.slopes = slopes,
      .level = {},
      .levels = static_cast<int>(levels.size()),
      .gradient = gpu::View(gradient),
      .across = across,
      .rows = across < kThreads ? kMixedRows : kMixedRows / 2};
  for (std::size_t l = 0; l < levels.size(); ++l) {
    work.level[l] = {gpu::View(levels[l].own), levels[l].halving[0], levels[l].halving[1]};
  }
  const Rows rows(gradient.shape);
  gpu::launch("ms_ssim", exec.queue.handle,
      static_cast<unsigned>((rows.count() + work.rows - 1) / work.rows), kThreads, 0,
      mix_all_kernel, work, rows, rows.count());
}

}  // namespace

void mix_levels(const std::vector<MixedLevel>& levels, const double* slopes, bool are_f32,
    const TensorView& gradient, const Execution& exec) {
  if (are_f32 && can_mix_at_once(levels, gradient)) {
    return mix_at_once(levels, slopes, gradient, exec);
  }
  for (std::size_t l = levels.size(); l-- > 0;) {
    const TensorView& own = levels[l].own;
    const TensorView coarse = l + 1 == levels.size() ? TensorView() : levels[l + 1].own;
    const Rows rows(own.shape);
    const MixWork work{.slopes = slopes + static_cast<std::int64_t>(l) * rows.planes,
        .own = gpu::View(own),
        .coarse = gpu::View(coarse),
        .halving = halvings_of(levels[l].halving),
        .gradient = gpu::View(l == 0 ? gradient : own)};
    gpu::launch("ms_ssim", exec.queue.handle, gpu::blocks_of(rows.count()), kThreads, 0, mix_kernel,
        work, rows, rows.count());
  }
}

}  // namespace similis::ms_ssim_internal
