// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU in f32 for windows of up to 11 along each axis, volumes too, where the march does
// not go: padding valid or same, no masks, reduced to numbers. Taps are 11 along each axis, of
// which a smaller window's outer ones are 0.
//   flat kernel   x and y of a slice, across and down ─> averages of s, d, s², d² in its plane
//   deep kernel   those of 11 slices ─> moments ─ formula.h ─> sums; four fields, 11 slices of them
//   back kernel   fields of a slice, across and down, with x and y ─> gradients
// Averages and fields of as many planes or, of one plane, of as many slices as fit into 128 MiB
// stand in memory at a time, of kSegment slices at least. s is shifted by a constant of the plane,
// so that its variance keeps its digits in f32.
#include <algorithm>
#include <vector>

#include "src/core/memory.h"
#include "src/ssim/cuda_plan.h"
#include "src/window/window.h"

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 256;
constexpr int kRadius = 5, kTaps = 2 * kRadius + 1;
constexpr int kTile = 32, kSeen = kTile + 2 * kRadius;  // a tile's side, and what its windows see
constexpr int kAtOnce = 4;                              // outputs of a thread in a row or column
constexpr int kPitch = kSeen + 1, kHalfPitch = kTile + 1;  // so that no two lanes meet in a bank
constexpr int kFields = 4;
constexpr int kSegment = 32;  // slices that a thread of the deep kernel owns
constexpr std::int64_t kBytes = std::int64_t{128} << 20;
static_assert(kTile * kTile == kThreads * kAtOnce);

struct Work {
  Geometry geometry;
  gpu::View x, y, x_gradient, y_gradient;
  float taps[3][kTaps] = {};  // along z, y, x
  Constants<float> constants = {};
  bool contrast = false;
  PlaneSlope slope;
  std::int64_t first_plane = 0, planes = 0;      // at hand
  std::int64_t slice0 = 0, slice1 = 0;           // whose gradients and windows are at hand
  std::int64_t average0 = 0, average1 = 0;       // whose averages are
  float* averages = nullptr;                     // [4][planes][slices][map]
  float* fields = nullptr;                       // likewise; null if there is no gradient
  double* partials = nullptr;                    // [planes][segments][blocks of columns], of all
  std::int64_t segments = 0, column_blocks = 0;  // of a plane

  explicit Work(const Geometry& g) : geometry(g) {}
  __device__ std::int64_t columns() const {
    return geometry.map_extent[1] * geometry.map_extent[2];
  }
  __device__ std::int64_t average_count() const {
    return planes * (average1 - average0) * columns();
  }
  __device__ std::int64_t field_count() const { return planes * (slice1 - slice0) * columns(); }
};

// Where a plane's arrays begin, and what its sums are shifted by.
struct Plane {
  std::int64_t x, y;
  float half_shift;
  __device__ Plane(const Work& w, std::int64_t plane) {
    const std::int64_t image = plane / w.geometry.channels, channel = plane % w.geometry.channels;
    x = w.x.plane(image, channel);
    y = w.y.plane(image, channel);
    const std::int64_t(&e)[3] = w.geometry.extent;
    half_shift = (w.x.load_f32(x + w.x.at(e[0] / 2, e[1] / 2, e[2] / 2)) +
                     w.y.load_f32(y + w.y.at(e[0] / 2, e[1] / 2, e[2] / 2))) /
                 2;
  }
};

// A tile of a slice.
struct Tile {
  std::int64_t plane, slice;  // of those at hand
  std::int64_t y, x;          // of its first element
  __device__ Tile(
      std::int64_t index, std::int64_t slices, std::int64_t height, std::int64_t width) {
    const std::int64_t across = (width + kTile - 1) / kTile, down = (height + kTile - 1) / kTile;
    x = index % across * kTile;
    index /= across;
    y = index % down * kTile;
    index /= down;
    slice = index % slices;
    plane = index / slices;
  }
};

// Σ taps[k]·in[o + k] for kAtOnce outputs, of elements `step` apart.
__device__ __forceinline__ void average_some(
    const float* in, int step, const float (&taps)[kTaps], float (&out)[kAtOnce]) {
#pragma unroll
  for (int o = 0; o < kAtOnce; ++o) out[o] = 0;
#pragma unroll
  for (int k = 0; k < kAtOnce + 2 * kRadius; ++k) {
    const float value = in[k * step];
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o) {
      if (k - o >= 0 && k - o < kTaps) out[o] = fmaf(taps[k - o], value, out[o]);
    }
  }
}

// Rows of `seen`, averaged across into `half`.
template <bool squared>
__device__ __forceinline__ void average_rows(const float (&seen)[kSeen][kPitch],
    const float (&taps)[kTaps], float (&half)[kSeen][kHalfPitch]) {
  for (int task = static_cast<int>(threadIdx.x); task < kSeen * (kTile / kAtOnce);
       task += kThreads) {
    const int row = task % kSeen, column = task / kSeen * kAtOnce;
    float in[kAtOnce + 2 * kRadius], out[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce + 2 * kRadius; ++k) {
      in[k] = seen[row][column + k];
      if (squared) in[k] *= in[k];
    }
    average_some(in, 1, taps, out);
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o) half[row][column + o] = out[o];
  }
}

__global__ void __launch_bounds__(kThreads) flat_kernel(const Work w, std::int64_t tiles) {
  __shared__ float seen[2][kSeen][kPitch], half[kSeen][kHalfPitch];
  const Geometry& g = w.geometry;
  const int t = static_cast<int>(threadIdx.x);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const Tile tile(index, w.average1 - w.average0, g.map_extent[1], g.map_extent[2]);
    const Plane plane(w, w.first_plane + tile.plane);
    const std::int64_t z = w.average0 + tile.slice;
    const std::int64_t y0 = tile.y + g.first_centre[1] - kRadius,
                       x0 = tile.x + g.first_centre[2] - kRadius;
    __syncthreads();
    for (int i = t; i < kSeen * kSeen; i += kThreads) {
      const int row = i / kSeen, column = i % kSeen;
      const std::int64_t y = y0 + row, x = x0 + column;
      float vx = 0, vy = 0;
      if (y >= 0 && y < g.extent[1] && x >= 0 && x < g.extent[2]) {
        vx = w.x.load_f32(plane.x + w.x.at(z, y, x));
        vy = w.y.load_f32(plane.y + w.y.at(z, y, x));
      }
      seen[0][row][column] = (vx - plane.half_shift) + (vy - plane.half_shift);
      seen[1][row][column] = vx - vy;
    }
    const int column = t % kTile, row = t / kTile * kAtOnce;
    for (int f = 0; f < kFields; ++f) {  // s, d, s², d²
      __syncthreads();
      if (f < 2) {
        average_rows<false>(seen[f & 1], w.taps[2], half);
      } else {
        average_rows<true>(seen[f & 1], w.taps[2], half);
      }
      __syncthreads();
      float out[kAtOnce];
      average_some(&half[row][column], kHalfPitch, w.taps[1], out);
      float* const to = w.averages + f * w.average_count() +
                        (tile.plane * (w.average1 - w.average0) + tile.slice) * w.columns();
#pragma unroll
      for (int o = 0; o < kAtOnce; ++o) {
        const std::int64_t y = tile.y + row + o, x = tile.x + column;
        if (y < g.map_extent[1] && x < g.map_extent[2]) to[y * g.map_extent[2] + x] = out[o];
      }
    }
  }
}

// The completed sum of 11 slices; the state moves on by one.
__device__ __forceinline__ float push(
    float (&state)[kTaps - 1], float value, const float (&taps)[kTaps]) {
  const float complete = fmaf(taps[kTaps - 1], value, state[0]);
#pragma unroll
  for (int k = 0; k < kTaps - 2; ++k) state[k] = fmaf(taps[kTaps - 2 - k], value, state[k + 1]);
  state[kTaps - 2] = taps[0] * value;
  return complete;
}

// What a window has to do with each pixel's s and d: weight·(field[0] + s·field[1]), and for d the
// other two.
__device__ __forceinline__ float fields_of(
    const Work& w, const float (&average)[kFields], float shift, float (&field)[kFields]) {
  const Moments<float> m{average[0] + shift, average[1],
      fmaxf(0.f, fmaf(-average[0], average[0], average[2])),
      fmaxf(0.f, fmaf(-average[1], average[1], average[3]))};
  const Dissimilarity<float> r =
      w.contrast ? contrast_dissimilarity(m, w.constants) : dissimilarity(m, w.constants);
  field[1] = 2 * r.gradient.var_s;
  field[0] = fmaf(-average[0], field[1], r.gradient.mean_s);
  field[3] = 2 * r.gradient.var_d;
  field[2] = fmaf(-average[1], field[3], r.gradient.mean_d);
  return r.value;
}

__global__ void __launch_bounds__(kThreads) deep_kernel(const Work w) {
  const Geometry& g = w.geometry;
  const std::int64_t segments = (w.slice1 - w.slice0 + kSegment - 1) / kSegment;
  const std::int64_t column_block = blockIdx.x % w.column_blocks;
  const std::int64_t segment = blockIdx.x / w.column_blocks % segments;
  const std::int64_t local = blockIdx.x / w.column_blocks / segments;
  const std::int64_t column = column_block * kThreads + threadIdx.x;
  const Plane plane(w, w.first_plane + local);
  const float shift = 2 * plane.half_shift;
  const float outside[kFields] = {-shift, 0, shift * shift, 0};
  double sum = 0;
  if (column < w.columns()) {
    const std::int64_t first = w.slice0 + segment * kSegment;
    const std::int64_t last = first + kSegment < w.slice1 ? first + kSegment : w.slice1;
    const std::int64_t stored = w.average1 - w.average0;
    const float* const from = w.averages + local * stored * w.columns() + column;
    float* const to = w.fields == nullptr
                          ? nullptr
                          : w.fields + local * (w.slice1 - w.slice0) * w.columns() + column;
    float state[kFields][kTaps - 1] = {}, field_state[kFields][kTaps - 1] = {};
    for (std::int64_t slice = first - 2 * kRadius; slice < last + 2 * kRadius; ++slice) {
      float average[kFields], field[kFields] = {};
#pragma unroll
      for (int f = 0; f < kFields; ++f) {
        const bool exists = slice >= 0 && slice < g.extent[0];
        const float value =
            exists ? from[f * w.average_count() + (slice - w.average0) * w.columns()] : outside[f];
        average[f] = push(state[f], value, w.taps[0]);
      }
      if (slice < first) continue;  // the first window that counts is not yet complete
      const std::int64_t centre = slice - kRadius;
      if (centre >= g.first_centre[0] && centre < g.first_centre[0] + g.map_extent[0]) {
        const float value = fields_of(w, average, shift, field);
        if (centre >= first && centre < last) sum += static_cast<double>(value);
      }
      if (to == nullptr) continue;
      const std::int64_t pixel = centre - kRadius;
#pragma unroll
      for (int f = 0; f < kFields; ++f) {
        const float complete = push(field_state[f], field[f], w.taps[0]);
        if (pixel >= first) {
          to[f * w.field_count() + (pixel - w.slice0) * w.columns()] = complete;
        }
      }
    }
  }
  const double total = gpu::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) {
    const std::int64_t row = (w.first_plane + local) * w.segments + w.slice0 / kSegment + segment;
    w.partials[row * w.column_blocks + column_block] = total;
  }
}

__global__ void __launch_bounds__(kThreads) back_kernel(const Work w, std::int64_t tiles) {
  __shared__ float seen[kSeen][kPitch], half[kSeen][kHalfPitch];
  const Geometry& g = w.geometry;
  const int t = static_cast<int>(threadIdx.x);
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const Tile tile(index, w.slice1 - w.slice0, g.extent[1], g.extent[2]);
    const std::int64_t y0 = tile.y - g.first_centre[1] - kRadius,
                       x0 = tile.x - g.first_centre[2] - kRadius;
    const int column = t % kTile, row = t / kTile * kAtOnce;
    float sums[kFields][kAtOnce];
#pragma unroll
    for (int f = 0; f < kFields; ++f) {
      const float* const from = w.fields + f * w.field_count() +
                                (tile.plane * (w.slice1 - w.slice0) + tile.slice) * w.columns();
      __syncthreads();
      for (int i = t; i < kSeen * kSeen; i += kThreads) {
        const std::int64_t y = y0 + i / kSeen, x = x0 + i % kSeen;
        const bool exists = y >= 0 && y < g.map_extent[1] && x >= 0 && x < g.map_extent[2];
        seen[i / kSeen][i % kSeen] = exists ? from[y * g.map_extent[2] + x] : 0.f;
      }
      __syncthreads();
      average_rows<false>(seen, w.taps[2], half);
      __syncthreads();
      average_some(&half[row][column], kHalfPitch, w.taps[1], sums[f]);
    }
    const std::int64_t index_of_plane = w.first_plane + tile.plane;
    const Plane plane(w, index_of_plane);
    const std::int64_t image = index_of_plane / g.channels, channel = index_of_plane % g.channels;
    const auto slope = static_cast<float>(w.slope.of(index_of_plane).term);
    const std::int64_t z = w.slice0 + tile.slice, x = tile.x + column;
#pragma unroll
    for (int o = 0; o < kAtOnce; ++o) {
      const std::int64_t y = tile.y + row + o;
      if (y >= g.extent[1] || x >= g.extent[2]) continue;
      const float vx = w.x.load_f32(plane.x + w.x.at(z, y, x));
      const float vy = w.y.load_f32(plane.y + w.y.at(z, y, x));
      const float s = (vx - plane.half_shift) + (vy - plane.half_shift);
      const float by_s = slope * fmaf(s, sums[1][o], sums[0][o]);
      const float by_d = slope * fmaf(vx - vy, sums[3][o], sums[2][o]);
      if (w.x_gradient.data != nullptr) {
        w.x_gradient.store(
            w.x_gradient.plane(image, channel) + w.x_gradient.at(z, y, x), by_s + by_d);
      }
      if (w.y_gradient.data != nullptr) {
        w.y_gradient.store(
            w.y_gradient.plane(image, channel) + w.y_gradient.at(z, y, x), by_s - by_d);
      }
    }
  }
}

void copy_taps(const std::vector<double>& taps, float (&to)[kTaps]) {
  const std::vector<float> rounded = taps_in_f32(taps);
  std::copy(rounded.begin(), rounded.end(),
      to + kRadius - static_cast<std::ptrdiff_t>(rounded.size() / 2));
}

std::int64_t pieces(std::int64_t length, std::int64_t piece) {
  return (length + piece - 1) / piece;
}

class Separable {
 public:
  explicit Separable(CudaPlan& plan) : plan_(plan), g_(plan.geometry) {
    const std::int64_t columns = g_.map_extent[1] * g_.map_extent[2];
    const std::int64_t arrays = kFields * (plan.has_gradient() ? 2 : 1);
    const std::int64_t slice_bytes = arrays * columns * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t fitting = std::max<std::int64_t>(1, kBytes / slice_bytes);
    planes_ = std::clamp<std::int64_t>(fitting / g_.extent[0], 1, g_.planes);
    slices_ = planes_ > 1 || fitting >= g_.extent[0]
                  ? g_.extent[0]
                  : std::max<std::int64_t>(1, fitting / kSegment) * kSegment;
    work_.segments = pieces(g_.extent[0], kSegment);
    work_.column_blocks = pieces(columns, kThreads);
    const std::int64_t averages = planes_ * std::min(g_.extent[0], slices_ + 4 * kRadius) * columns;
    const std::int64_t fields = plan.has_gradient() ? planes_ * slices_ * columns : 0;
    const std::int64_t partials = g_.planes * work_.segments * work_.column_blocks;
    memory_ =
        allocate_bytes(static_cast<std::size_t>(partials) * sizeof(double) +
                           static_cast<std::size_t>(kFields * (averages + fields)) * sizeof(float),
            plan.device, plan.exec);
    work_.partials = static_cast<double*>(memory_.get());
    work_.averages = reinterpret_cast<float*>(work_.partials + partials);
    work_.fields = fields > 0 ? work_.averages + kFields * averages : nullptr;
    work_.geometry = g_;
    work_.x = gpu::View(plan.pass.x);
    work_.y = gpu::View(plan.pass.y);
    work_.x_gradient = gpu::View(plan.pass.x_gradient);
    work_.y_gradient = gpu::View(plan.pass.y_gradient);
    copy_taps(plan.pass.window.z, work_.taps[0]);
    copy_taps(plan.pass.window.y, work_.taps[1]);
    copy_taps(plan.pass.window.x, work_.taps[2]);
    work_.constants = {static_cast<float>(plan.pass.c1), static_cast<float>(plan.pass.c2)};
    work_.contrast = plan.pass.term == Term::contrast;
    work_.slope = slope_of(plan);
  }

  void run() {
    for (std::int64_t plane = 0; plane < g_.planes; plane += planes_) {
      for (std::int64_t slice = 0; slice < g_.extent[0]; slice += slices_) {
        run_piece(plane, slice);
      }
    }
    if (plan_.pass.value.empty()) return;
    plan_.allocate_sums();
    fill_weights(plan_);
    sum_partials(
        plan_, work_.partials, static_cast<int>(work_.segments * work_.column_blocks), kTerm);
    write_values(plan_);
  }

 private:
  void run_piece(std::int64_t plane, std::int64_t slice) {
    work_.first_plane = plane;
    work_.planes = std::min(planes_, g_.planes - plane);
    work_.slice0 = slice;
    work_.slice1 = std::min(slice + slices_, g_.extent[0]);
    work_.average0 = std::max<std::int64_t>(0, work_.slice0 - 2 * kRadius);
    work_.average1 = std::min(g_.extent[0], work_.slice1 + 2 * kRadius);
    const std::int64_t slices = work_.slice1 - work_.slice0;
    launch_over(flat_kernel, tiles(work_.average1 - work_.average0, g_.map_extent));
    const std::int64_t blocks = work_.column_blocks * pieces(slices, kSegment) * work_.planes;
    gpu::launch(
        "ssim", plan_.exec.stream, static_cast<unsigned>(blocks), kThreads, 0, deep_kernel, work_);
    if (work_.fields != nullptr) launch_over(back_kernel, tiles(slices, g_.extent));
  }

  std::int64_t tiles(std::int64_t slices, const std::int64_t (&extent)[3]) const {
    return work_.planes * slices * pieces(extent[1], kTile) * pieces(extent[2], kTile);
  }
  void launch_over(void (*kernel)(Work, std::int64_t), std::int64_t tiles) {
    gpu::launch("ssim", plan_.exec.stream,
        static_cast<unsigned>(std::min<std::int64_t>(tiles, 1 << 20)), kThreads, 0, kernel, work_,
        tiles);
  }

  CudaPlan& plan_;
  const Geometry& g_;
  std::int64_t planes_ = 1, slices_ = 1;
  Work work_{g_};
  std::shared_ptr<void> memory_;
};

}  // namespace

bool can_separate(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  const bool is_small = g.radius[0] <= kRadius && g.radius[1] <= kRadius && g.radius[2] <= kRadius;
  const bool is_countable = g.planes * pieces(g.map_elements(), kThreads) < 1 << 30;
  return is_small && is_countable && plan.reduces() && !plan.has_masks() && !pass.of_sums &&
         pass.l1_weight == 0 && pass.x.dtype != DType::f64 &&
         (pass.value.empty() || pass.value.dtype == DType::f32) &&
         (pass.padding == Padding::valid || pass.padding == Padding::same);
}

void run_separable(CudaPlan& plan) { Separable(plan).run(); }

}  // namespace similis::ssim_internal
