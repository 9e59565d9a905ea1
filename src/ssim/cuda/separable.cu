// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU in f32 for windows of up to 11 along each axis, volumes too, where the sliding
// window kernel does not apply: padding valid or same, no masks, reduced to numbers. There are 11
// taps along each axis, or 7; the outer ones of a smaller window are 0.
//   flat kernel   x and y of a slice, across and down ─> averages of s, d, s², d² in its plane
//   deep kernel   those of 11 slices ─> moments ─ formula ─> sums; 3 derivatives, 11 slices of them
//   back kernel   derivatives of a slice, across and down, with x and y ─> gradient; some blocks
//                 turn the sums into values, which another kernel does where there is no gradient
// Averages and derivatives of as many planes or, of one plane, of as many slices as fit into 256
// MiB are in memory at a time, of kLeastSlices at least. Those of 128³ voxels stay in the L2
// cache: 115 MB come and go. s is shifted by a constant of the plane, so that its variance keeps
// its digits in f32. The gradient by y is the gradient by x with the sign of d changed.
#include <algorithm>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/separable.cuh"
#include "src/window/window.h"

namespace similis::ssim_internal {
namespace {

using namespace separable;

template <class L>
__global__ void __launch_bounds__(kThreads, L::kFlatBlocks)
    flat_kernel(const Work w, unsigned tiles) {
  alignas(16) __shared__ typename L::Seen seen[2];
  alignas(16) __shared__ typename L::Half half[2];
  const Geometry& g = w.geometry;
  const int t = static_cast<int>(threadIdx.x);
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const SliceTile tile(index, w.average1 - w.average0, g.map_extent[1], g.map_extent[2]);
    const Plane plane(w, w.first_plane + tile.plane);
    const std::int64_t y0 = tile.y + g.first_centre[1] - L::kRadius,
                       x0 = tile.x + g.first_centre[2] - L::kRadius;
    const std::int64_t z = w.average0 + tile.slice;
    const std::int64_t first_x = plane.x + w.x.at(z, y0, x0), first_y = plane.y + w.y.at(z, y0, x0);
    __syncthreads();
    const SeenRange rows(y0, g.extent[1], L::kSeenHigh), columns(x0, g.extent[2], L::kSeenWide);
    const auto fill = [&](std::int64_t x_step, std::int64_t y_step, auto load_one) {
      constexpr int kHalf = (L::kSeenRows + 1) / 2;
#pragma unroll
      for (int first = 0; first < L::kSeenRows; first += kHalf) {
        float vx[kHalf][L::kTimes], vy[kHalf][L::kTimes];
        load_rows<L>(
            first, rows, columns, w.x.strides[3], x_step,
            [&](std::int64_t at) { return load_one(w.x, first_x + at); }, vx);
        load_rows<L>(
            first, rows, columns, w.y.strides[3], y_step,
            [&](std::int64_t at) { return load_one(w.y, first_y + at); }, vy);
#pragma unroll
        for (int i = 0; i < kHalf; ++i) {
#pragma unroll
          for (int k = 0; k < L::kTimes; ++k) {
            const float x = vx[i][k], y = vy[i][k];
            vx[i][k] = plane.sum(w, x, y);
            vy[i][k] = plane.difference(w, x, y);
          }
        }
        store_rows<L>(first, vx, seen[0]);
        store_rows<L>(first, vy, seen[1]);
      }
    };
    if (w.x.dtype == DType::f32 && w.x.strides[4] == 1 && w.y.strides[4] == 1) {
      fill(1, 1, [](const gpu::View& view, std::int64_t offset) {
        return static_cast<const float*>(view.data)[offset];
      });
    } else {
      fill(w.x.strides[4], w.y.strides[4],
          [](const gpu::View& view, std::int64_t offset) { return view.load_f32(offset); });
    }
    const std::int64_t x = tile.x + t % kWide, y = tile.y + t / kWide * kDown;
    float* const to = w.averages +
                      (tile.plane * (w.average1 - w.average0) + tile.slice) * w.columns() +
                      y * g.map_extent[2] + x;
#pragma unroll 1
    for (int f = 0; f < 2; ++f) {  // s and s², d and d²
      __syncthreads();
      average_rows<L, true>(seen[f], w.taps[2], half);
      __syncthreads();
#pragma unroll
      for (int power = 0; power < 2; ++power) {
        float out[kDown];
        average_column<L>(half[power], w.taps[1], out);
        float* const average = to + (f + 2 * power) * w.average_count();
#pragma unroll
        for (int o = 0; o < kDown; ++o) {
          if (y + o < g.map_extent[1] && x < g.map_extent[2]) {
            average[o * g.map_extent[2]] = out[o];
          }
        }
      }
    }
  }
}

// Returns the completed sum of a window's slices; the state moves on by one slice.
template <class L>
__device__ __forceinline__ float push(
    float (&state)[L::kTaps - 1], float value, const float (&taps)[kMostTaps]) {
  constexpr int kTaps = L::kTaps;
  const float complete = fmaf(taps[kTaps - 1], value, state[0]);
#pragma unroll
  for (int k = 0; k < kTaps - 2; ++k) state[k] = fmaf(taps[kTaps - 2 - k], value, state[k + 1]);
  state[kTaps - 2] = taps[0] * value;
  return complete;
}

template <class L> __global__ void __launch_bounds__(kDeepThreads) deep_kernel(const Work w) {
  constexpr int kRadius = L::kRadius, kTaps = L::kTaps;
  const Geometry& g = w.geometry;
  // Slices and blocks are counted in 32 bits: see can_separate().
  const auto slice0 = static_cast<int>(w.slice0), slice1 = static_cast<int>(w.slice1);
  const auto column_blocks = static_cast<unsigned>(w.column_blocks);
  const unsigned segments =
      static_cast<unsigned>(slice1 - slice0 + w.segment - 1) / static_cast<unsigned>(w.segment);
  const unsigned at_segment = blockIdx.x / column_blocks, local = at_segment / segments;
  const unsigned segment = at_segment - local * segments;
  const unsigned column_block = blockIdx.x - at_segment * column_blocks;
  const std::int64_t column = std::int64_t{column_block} * kDeepThreads + threadIdx.x;
  const Plane plane(w, w.first_plane + local);
  const float shift = 2 * plane.half_shift;
  double sum = 0;
  if (column < w.columns()) {
    const int first = slice0 + static_cast<int>(segment) * w.segment;
    const int last = min(first + w.segment, slice1), before = first - 2 * kRadius;
    const auto extent = static_cast<int>(g.extent[0]);
    const auto first_centre = static_cast<int>(g.first_centre[0]);
    const int last_centre = first_centre + static_cast<int>(g.map_extent[0]);
    const std::int64_t stored = w.average1 - w.average0, columns = w.columns();
    const std::int64_t average_count = w.average_count(), derivative_count = w.derivative_count();
    const float* from = w.averages + (local * stored + before - w.average0) * columns + column;
    float* to = w.derivatives +
                (local * (w.slice1 - w.slice0) + before - 2 * kRadius - w.slice0) * columns +
                column;
    // Loads the averages of the next slice.
    const auto fetch = [&](int slice, float(&average)[kAverages]) {
      const float outside[kAverages] = {-shift, 0, shift * shift, 0};
      const bool exists = slice >= 0 && slice < extent;
#pragma unroll
      for (int f = 0; f < kAverages; ++f) {
        average[f] = exists ? from[f * average_count] : outside[f];
      }
      from += columns;
    };
    float state[kAverages][kTaps - 1] = {}, derivative_state[kDerivatives][kTaps - 1] = {};
    float next[kAverages], ahead[kAverages];  // two slices ahead: no slice waits for its own loads
    fetch(before, next);
    fetch(before + 1, ahead);
    for (int slice = before; slice < last + 2 * kRadius; ++slice, to += columns) {
      float average[kAverages], derivative[kDerivatives] = {};
#pragma unroll
      for (int f = 0; f < kAverages; ++f) {
        average[f] = push<L>(state[f], next[f], w.taps[0]);
        next[f] = ahead[f];
      }
      if (slice + 2 < last + 2 * kRadius) fetch(slice + 2, ahead);
      if (slice < first) continue;  // the first window that counts is not yet complete
      const int centre = slice - kRadius;
      if (centre >= first_centre && centre < last_centre) {
        const Point r = point(average[0], w.sign * average[1], average[2], average[3], shift,
            w.constants.c1, w.constants.c2);
        derivatives_of(r, average[0], &derivative[0], &derivative[1], &derivative[2]);
        if (centre >= first && centre < last) sum += static_cast<double>(2 * r.value);
      }
      if (w.derivatives == nullptr) continue;
      const int pixel = centre - kRadius;
#pragma unroll
      for (int f = 0; f < kDerivatives; ++f) {
        const float complete = push<L>(derivative_state[f], derivative[f], w.taps[0]);
        if (pixel >= first) to[f * derivative_count] = complete;
      }
    }
  }
  if (w.partials == nullptr) return;
  const double total = gpu::block_sum<kDeepThreads>(sum);
  if (threadIdx.x == 0) {
    const std::int64_t row = (w.first_plane + local) * w.segments + w.slice0 / w.segment + segment;
    w.partials[row * w.column_blocks + column_block] = total;
  }
}

// The first `finishing` blocks write values.
template <class L>
__global__ void __launch_bounds__(kThreads, 3)
    back_kernel(const Work w, unsigned tiles, unsigned finishing) {
  alignas(16) __shared__ typename L::Seen seen;
  alignas(16) __shared__ typename L::Half half;
  if (blockIdx.x < finishing) return finish<kThreads>(w.finish, blockIdx.x, finishing);
  const Geometry& g = w.geometry;
  const int t = static_cast<int>(threadIdx.x);
  for (unsigned index = blockIdx.x - finishing; index < tiles; index += gridDim.x - finishing) {
    const SliceTile tile(index, w.slice1 - w.slice0, g.extent[1], g.extent[2]);
    const std::int64_t y0 = tile.y - g.first_centre[1] - L::kRadius,
                       x0 = tile.x - g.first_centre[2] - L::kRadius;
    const float* const from = w.derivatives +
                              (tile.plane * (w.slice1 - w.slice0) + tile.slice) * w.columns() +
                              y0 * g.map_extent[2] + x0;
    const SeenRange rows(y0, g.map_extent[1], L::kSeenHigh),
        columns(x0, g.map_extent[2], L::kSeenWide);
    const std::int64_t index_of_plane = w.first_plane + tile.plane;
    const Plane plane(w, index_of_plane);
    const std::int64_t z = w.slice0 + tile.slice, x = tile.x + t % kWide,
                       y = tile.y + t / kWide * kDown;
    float sums[kDerivatives][kDown], ahead[L::kSeenRows][L::kTimes];
    float vx[kDown], vy[kDown];
    const auto fetch = [&](int f) {
      const float* const derivative = from + f * w.derivative_count();
      load_rows<L>(
          0, rows, columns, g.map_extent[2], 1, [&](std::int64_t at) { return derivative[at]; },
          ahead);
    };
    const auto fetch_images = [&] {
      const std::int64_t first_x = plane.x + w.x.at(z, y, x), first_y = plane.y + w.y.at(z, y, x);
#pragma unroll
      for (int o = 0; o < kDown; ++o) {
        const bool exists = y + o < g.extent[1] && x < g.extent[2];
        vx[o] = exists ? load(w.x, first_x + o * w.x.strides[3]) : 0;
        vy[o] = exists ? load(w.y, first_y + o * w.y.strides[3]) : 0;
      }
    };
    fetch(0);
#pragma unroll
    for (int f = 0; f < kDerivatives; ++f) {
      __syncthreads();
      store_rows<L>(0, ahead, seen);
      if (f + 1 < kDerivatives) {
        fetch(f + 1);
      } else {
        fetch_images();
      }
      __syncthreads();
      average_rows<L, false>(seen, w.taps[2], &half);
      __syncthreads();
      average_column<L>(half, w.taps[1], sums[f]);
    }
    const auto image = static_cast<unsigned>(index_of_plane) / static_cast<unsigned>(g.channels);
    const std::int64_t channel = index_of_plane - image * g.channels;
    const auto slope = static_cast<float>(4 * w.slope.of(index_of_plane).term);
    const std::int64_t first_to = w.gradient.plane(image, channel) + w.gradient.at(z, y, x);
#pragma unroll
    for (int o = 0; o < kDown; ++o) {
      if (y + o >= g.extent[1] || x >= g.extent[2]) continue;
      const float s = plane.sum(w, vx[o], vy[o]), d = w.sign * plane.difference(w, vx[o], vy[o]);
      const float value = slope * fmaf(d, sums[2][o], fmaf(-s, sums[1][o], sums[0][o]));
      const std::int64_t to = first_to + o * w.gradient.strides[3];
      if (w.gradient.dtype == DType::f32) {
        static_cast<float*>(w.gradient.data)[to] = value;
      } else {
        w.gradient.store(to, value);
      }
    }
  }
}

constexpr std::int64_t kBytes = std::int64_t{256} << 20;
constexpr std::int64_t kLeastSlices = 32;
constexpr std::int64_t kLeastOwnSlices = 8;  // of a thread of the deep kernel

std::int64_t pieces(std::int64_t length, std::int64_t piece) {
  return (length + piece - 1) / piece;
}

template <class L> class Separable {
 public:
  explicit Separable(CudaPlan& plan) : plan_(plan), g_(plan.geometry) {
    const std::int64_t columns = g_.map_extent[1] * g_.map_extent[2];
    const std::int64_t arrays = kAverages + (plan.has_gradient() ? kDerivatives : 0);
    const std::int64_t slice_bytes = arrays * columns * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t fitting = std::max<std::int64_t>(1, kBytes / slice_bytes);
    planes_ = std::clamp<std::int64_t>(fitting / g_.extent[0], 1, g_.planes);
    slices_ = planes_ > 1 || fitting >= g_.extent[0]
                  ? g_.extent[0]
                  : std::max<std::int64_t>(1, fitting / kLeastSlices) * kLeastSlices;
    work_.column_blocks = pieces(columns, kDeepThreads);
    work_.segment = static_cast<int>(segment());
    work_.segments = pieces(g_.extent[0], work_.segment);
    const std::int64_t averages =
        planes_ * std::min(g_.extent[0], slices_ + 4 * L::kRadius) * columns;
    const std::int64_t derivatives = plan.has_gradient() ? planes_ * slices_ * columns : 0;
    const std::int64_t partials = g_.planes * work_.segments * work_.column_blocks;
    memory_ = allocate_bytes(
        static_cast<std::size_t>(partials) * sizeof(double) +
            static_cast<std::size_t>(kAverages * averages + kDerivatives * derivatives) *
                sizeof(float),
        plan.device, plan.exec);
    partials_ = static_cast<double*>(memory_.get());
    work_.averages = reinterpret_cast<float*>(partials_ + partials);
    work_.derivatives = derivatives > 0 ? work_.averages + kAverages * averages : nullptr;
    work_.geometry = g_;
    work_.x = gpu::View(plan.pass.x);
    work_.y = gpu::View(plan.pass.y);
    work_.middle = static_cast<const float*>(plan.pass.middle.data());
    work_.of_sums = plan.pass.of_sums;
    copy_taps(plan.pass.window.z, work_.taps[0]);
    copy_taps(plan.pass.window.y, work_.taps[1]);
    copy_taps(plan.pass.window.x, work_.taps[2]);
    work_.constants = doubled_constants(plan.pass);
    work_.slope = slope_of(plan);
  }

  void run() {
    for (std::int64_t plane = 0; plane < g_.planes; plane += planes_) {
      for (std::int64_t slice = 0; slice < g_.extent[0]; slice += slices_) {
        run_piece(plane, slice);
      }
    }
    if (!plan_.pass.value.empty() && !plan_.has_gradient()) {
      write_values(plan_, partials_, slots());
    }
  }

 private:
  static void copy_taps(const std::vector<double>& taps, float (&to)[kMostTaps]) {
    const std::vector<float> rounded = taps_in_f32(taps);
    std::copy(rounded.begin(), rounded.end(),
        to + L::kRadius - static_cast<std::ptrdiff_t>(rounded.size() / 2));
  }

  // Returns the number of slices that a thread of the deep kernel owns. It reads 4 radii more, so
  // that long segments read less, and short ones fill the GPU: the length whose rounds of blocks
  // read the fewest slices one after the other.
  std::int64_t segment() const {
    static const std::int64_t a_multiprocessor =
        gpu::blocks_per_multiprocessor(deep_kernel<L>, kDeepThreads, 0);
    const std::int64_t resident = a_multiprocessor * gpu::limits(plan_.device).multiprocessors;
    std::int64_t best = 0, least = 0;
    for (std::int64_t parts = 1; parts <= pieces(slices_, kLeastOwnSlices); ++parts) {
      const std::int64_t length = pieces(pieces(slices_, parts), kLeastOwnSlices) * kLeastOwnSlices;
      if (slices_ < g_.extent[0] && slices_ % length != 0) continue;  // pieces have whole segments
      const std::int64_t blocks = work_.column_blocks * pieces(slices_, length) * planes_;
      const std::int64_t read = pieces(blocks, resident) * (length + 4 * L::kRadius);
      if (best > 0 && read >= least) continue;
      best = length;
      least = read;
    }
    return best;
  }

  void run_piece(std::int64_t plane, std::int64_t slice) {
    work_.first_plane = plane;
    work_.planes = std::min(planes_, g_.planes - plane);
    work_.slice0 = slice;
    work_.slice1 = std::min(slice + slices_, g_.extent[0]);
    work_.average0 = std::max<std::int64_t>(0, work_.slice0 - 2 * L::kRadius);
    work_.average1 = std::min(g_.extent[0], work_.slice1 + 2 * L::kRadius);
    const std::int64_t count = tiles(work_.average1 - work_.average0, g_.map_extent);
    gpu::launch("ssim", plan_.exec.queue.handle, gpu::blocks_of(count), kThreads, 0, flat_kernel<L>,
        work_, static_cast<unsigned>(count));
    work_.partials = partials_;
    work_.sign = 1;
    const Pass& pass = plan_.pass;
    const bool is_last = plane + planes_ >= g_.planes && slice + slices_ >= g_.extent[0];
    if (!plan_.has_gradient()) launch_deep();
    if (!pass.x_gradient.empty()) run_gradient(pass.x_gradient, is_last);
    work_.sign = -1;
    if (!pass.y_gradient.empty()) run_gradient(pass.y_gradient, is_last);
  }

  // The sums come with the first gradient, and after those of the last piece the values.
  void run_gradient(const TensorView& gradient, bool is_last_piece) {
    work_.gradient = gpu::View(gradient);
    launch_deep();
    unsigned finishing = 0;
    if (is_last_piece && work_.partials != nullptr && !plan_.pass.value.empty()) {
      constexpr std::int64_t kMostFinishing = 1024;
      work_.finish = finish_of(plan_, partials_, slots());
      finishing = gpu::blocks_of(work_.finish.groups, kMostFinishing);
    }
    const std::int64_t count = tiles(work_.slice1 - work_.slice0, g_.extent);
    gpu::launch("ssim", plan_.exec.queue.handle, gpu::blocks_of(count) + finishing, kThreads, 0,
        back_kernel<L>, work_, static_cast<unsigned>(count), finishing);
    work_.partials = nullptr;
  }

  void launch_deep() {
    const std::int64_t blocks =
        work_.column_blocks * pieces(work_.slice1 - work_.slice0, work_.segment) * work_.planes;
    gpu::launch("ssim", plan_.exec.queue.handle, static_cast<unsigned>(blocks), kDeepThreads, 0,
        deep_kernel<L>, work_);
  }

  std::int64_t tiles(std::int64_t slices, const std::int64_t (&extent)[3]) const {
    return work_.planes * slices * pieces(extent[1], kHigh) * pieces(extent[2], kWide);
  }
  std::int64_t slots() const { return work_.segments * work_.column_blocks; }  // of each plane

  CudaPlan& plan_;
  const Geometry& g_;
  std::int64_t planes_ = 1, slices_ = 1;
  Work work_{g_};
  std::shared_ptr<void> memory_;
  double* partials_ = nullptr;
};

}  // namespace

bool can_separate(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  const bool is_small = std::max({g.radius[0], g.radius[1], g.radius[2]}) <= kMostRadius;
  const bool is_countable =
      g.planes * pieces(g.map_elements(), kDeepThreads) < 1 << 30 && g.extent[0] < 1 << 30;
  return is_small && is_countable && plan.reduces() && !plan.has_masks() && pass.l1_weight == 0 &&
         pass.x.dtype != DType::f64 &&
         (pass.padding == Padding::valid || pass.padding == Padding::same);
}

void run_separable(CudaPlan& plan) {
  const int(&radius)[3] = plan.geometry.radius;
  if (std::max({radius[0], radius[1], radius[2]}) <= 3) return Separable<Taps<3>>(plan).run();
  Separable<Taps<5>>(plan).run();
}

}  // namespace similis::ssim_internal
