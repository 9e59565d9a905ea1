// SPDX-License-Identifier: Apache-2.0
// The weights of pixels and windows under a valid_mask. Planes that share a mask share them, so
// that the sliding window averages four fields of each plane and not five: a mask's own average is
// found here, once. A block moves down its rows, a column a thread, and averages across from shared
// memory.
#include "src/ssim/cuda/valid_weights.h"

#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/sliding_window_window.cuh"
#include "src/window/window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 128;
constexpr int kRadius = 5, kOwned = 112, kRowsAtOnce = 4, kRows = 24;
static_assert(kOwned + 2 * kRadius <= kThreads && (kRows + 2 * kRadius) % 2 == 0);

struct Work {
  gpu::View mask;
  ValidWeights to;
  std::int64_t planes, channels;  // of the images
  std::int64_t mask_channels;     // distinct ones
  int height, width, first;       // the map's first pixel from each edge
  int across, down;               // tiles
  float taps[kRadius + 1];
  double* partials;  // [plane][tiles]
};

__global__ void __launch_bounds__(kThreads) valid_weights_kernel(const Work w) {
  __shared__ float averages[2][kRowsAtOnce][kThreads];
  __shared__ double words[kThreads / gpu::kWarp];
  const int t = static_cast<int>(threadIdx.x);
  const int tiles = w.across * w.down;
  const auto index = static_cast<unsigned>(blockIdx.x);
  const std::int64_t plane = index / static_cast<unsigned>(tiles);
  const int tile = static_cast<int>(index - static_cast<unsigned>(plane) * tiles);
  const int down = tile / w.across, first_row = down * kRows;
  const int last_row = min(first_row + kRows, w.height);
  const int place = (tile - down * w.across) * kOwned;  // of the first window in its row
  const int column = place - ValidWeights::kBefore - kRadius + t, centre = column + kRadius;
  const std::int64_t image = plane / w.mask_channels, channel = plane - image * w.mask_channels;
  const bool has_column = column >= 0 && column < w.width;
  const std::int64_t from = w.mask.plane(image, channel) + column * w.mask.strides[4];
  // Rows of pixels are filled up with zeros.
  const bool owns_pixel = t >= kRadius && t < kRadius + kOwned && column >= 0 &&
                          column < static_cast<int>(w.to.pixel_row);
  float* const pixels = const_cast<float*>(w.to.pixels) + plane * w.to.pixel_plane + column;
  float* const windows =
      const_cast<float*>(w.to.windows) + plane * w.to.window_plane + 2 * (place + t);
  const bool owns_window = t < kOwned && 2 * (place + t) < static_cast<int>(w.to.window_row);
  const bool in_map = centre >= w.first && centre < w.width - w.first;
  float taps[kRadius + 1];
#pragma unroll
  for (int k = 0; k <= kRadius; ++k) taps[k] = w.taps[k];
  float state[2 * kRadius] = {};
  double total = 0;
#pragma unroll 1
  for (int row = first_row - kRadius, turn = 0; row - kRadius < last_row;
       row += kRowsAtOnce, turn ^= 1) {
    float weight[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const bool exists = has_column && row + i >= 0 && row + i < w.height;
      weight[i] =
          exists ? checked_weight(w.mask.load_f32(from + (row + i) * w.mask.strides[3])) : 0.f;
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      averages[turn][i][t] = sliding_window::push(state, weight[i], taps);
      if (owns_pixel && row + i >= first_row && row + i < last_row) {
        pixels[(row + i) * w.to.pixel_row] = weight[i];
      }
    }
    __syncthreads();  // the other half is read while this one is written
    if (!owns_window) continue;
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int centre_row = row + i - kRadius;
      if (centre_row < max(first_row, w.first) || centre_row >= min(last_row, w.height - w.first)) {
        continue;
      }
      float seen = 0, own = 0;
      if (in_map) {
#pragma unroll
        for (int k = 0; k <= 2 * kRadius; ++k) {
          seen = fmaf(taps[k <= kRadius ? k : 2 * kRadius - k], averages[turn][i][t + k], seen);
        }
        own = checked_weight(
            w.mask.load_f32(from + kRadius * w.mask.strides[4] + centre_row * w.mask.strides[3]));
      }
      const float inverse = own == 0 ? 0.f : 1 / seen;
      *reinterpret_cast<float2*>(windows + centre_row * w.to.window_row) =
          make_float2(inverse, own);
      total += static_cast<double>(own);
    }
  }
  total = gpu::block_sum_warps<kThreads>(total, words);
  // All planes that share the mask have the sum.
  for (std::int64_t p = t; p < w.planes; p += kThreads) {
    const std::int64_t of_image = p / w.channels, of_channel = p - of_image * w.channels;
    if (of_image * w.to.image_planes + of_channel * w.to.channel_planes == plane) {
      w.partials[p * tiles + tile] = total;
    }
  }
}

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

}  // namespace

ValidWeights find_valid_weights(CudaPlan& plan, std::shared_ptr<void>& memory) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  const std::int64_t images = pass.x.shape[0];
  const bool shares_images = pass.valid_mask.strides[0] == 0 || images == 1;
  const bool shares_channels = pass.valid_mask.strides[1] == 0 || g.channels == 1;
  Work w = {};
  w.mask = gpu::View(pass.valid_mask);
  w.planes = g.planes;
  w.channels = g.channels;
  w.mask_channels = shares_channels ? 1 : g.channels;
  w.height = static_cast<int>(g.extent[1]);
  w.width = static_cast<int>(g.extent[2]);
  w.first = static_cast<int>(g.first_centre[1]);
  const std::vector<float> taps = taps_in_f32(pass.window.x);
  std::copy_n(taps.begin(), kRadius + 1, w.taps);
  // Threads read 8 windows or pixels at once.
  const std::int64_t window_row = 2 * round_up(g.extent[2] + ValidWeights::kBefore + 8, 2);
  w.to.pixel_row = round_up(g.extent[2], 8);
  w.to.window_row = window_row;
  w.to.pixel_plane = w.to.pixel_row * g.extent[1];
  w.to.window_plane = window_row * g.extent[1];
  w.to.image_planes = shares_images ? 0 : w.mask_channels;
  w.to.channel_planes = shares_channels ? 0 : 1;
  w.across = static_cast<int>((window_row / 2 + kOwned - 1) / kOwned);
  w.down = static_cast<int>((g.extent[1] + kRows - 1) / kRows);
  const std::int64_t tiles = std::int64_t{w.across} * w.down;
  const std::int64_t planes = (shares_images ? 1 : images) * w.mask_channels;
  const auto windows_bytes = static_cast<std::size_t>(planes * w.to.window_plane) * sizeof(float);
  const auto pixels_bytes = static_cast<std::size_t>(planes * w.to.pixel_plane) * sizeof(float);
  const std::size_t partials_at = (windows_bytes + pixels_bytes + 15) / 16 * 16;
  memory = allocate_bytes(partials_at + static_cast<std::size_t>(g.planes * tiles) * sizeof(double),
      plan.device, plan.exec);
  auto* const bytes = static_cast<char*>(memory.get());
  w.to.windows = reinterpret_cast<float*>(bytes);
  w.to.pixels = reinterpret_cast<float*>(bytes + windows_bytes);
  w.partials = reinterpret_cast<double*>(bytes + partials_at);
  gpu::launch("ssim", plan.exec.queue.handle, static_cast<unsigned>(planes * tiles), kThreads, 0,
      valid_weights_kernel, w);
  plan.allocate_sums();
  sum_partials(plan, w.partials, static_cast<int>(tiles), kWeight);
  return w.to;
}

}  // namespace similis::ssim_internal

#endif
