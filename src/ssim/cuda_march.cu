// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU, the fast path: hands planes to the march kernel as it wants them, f32 with
// 16-byte rows. Images that are not so are copied first, as many planes at a time as fit into 256
// MiB; so is a gradient on its way out, which then also gets what the march does not know: the L1
// term, and what coarser levels of MS-SSIM send back.
#include "src/ssim/cuda_march.h"

#include <algorithm>

#include "src/core/memory.h"
#include "src/window/window.h"

#if !defined(__HIPCC__)

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kStagingBytes = std::int64_t{256} << 20;

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, 1 << 20));
}

struct Extent2 {
  std::int64_t width, height, channels, first_plane, planes;
  __device__ std::int64_t count() const { return width * height * planes; }
};

// A pixel's number, among the planes at hand.
struct Pixel {
  std::int64_t x, y, local, image, channel;
  __device__ Pixel(std::int64_t i, const Extent2& e)
      : x(i % e.width),
        y(i / e.width % e.height),
        local(i / (e.width * e.height)),
        image((e.first_plane + local) / e.channels),
        channel((e.first_plane + local) % e.channels) {}
  __device__ std::int64_t in(const gpu::View& view) const {
    return view.plane(image, channel) + view.at(0, y, x);
  }
};

__global__ void stage_kernel(gpu::View from, Extent2 extent, std::int64_t row_stride, float* to) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < extent.count();
       i += step) {
    const Pixel p(i, extent);
    to[(p.local * extent.height + p.y) * row_stride + p.x] =
        static_cast<float>(from.load(p.in(from)));
  }
}

struct Finish {
  gpu::View x, y, gradient, coarse;
  Halving halving_y, halving_x;
  const PlaneSlopes* slopes;
  bool has_l1;
  float sign_of_l1;  // -1 for the gradient by y
  const float* staged;
  std::int64_t row_stride;
};

__global__ void finish_kernel(const Finish f, Extent2 extent) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < extent.count();
       i += step) {
    const Pixel p(i, extent);
    double value = f.staged[(p.local * extent.height + p.y) * f.row_stride + p.x];
    if (f.has_l1) {
      const double d = f.x.load(p.in(f.x)) - f.y.load(p.in(f.y));
      value += f.sign_of_l1 * f.slopes[extent.first_plane + p.local].l1 *
               (d > 0      ? 1
                   : d < 0 ? -1
                           : 0);
    }
    if (f.coarse.data != nullptr) {
      const double share = f.halving_y.share(p.y) * f.halving_x.share(p.x);
      if (share != 0) {
        value +=
            share * f.coarse.load(f.coarse.plane(p.image, p.channel) +
                                  f.coarse.at(0, f.halving_y.coarse(p.y), f.halving_x.coarse(p.x)));
      }
    }
    f.gradient.store(p.in(f.gradient), value);
  }
}

__global__ void __launch_bounds__(kThreads)
    l1_kernel(gpu::View x, gpu::View y, Extent2 extent, int slots, double* partials) {
  const std::int64_t plane = blockIdx.x / static_cast<unsigned>(slots);
  const std::int64_t slot = blockIdx.x % static_cast<unsigned>(slots);
  const std::int64_t pixels = extent.width * extent.height;
  double sum = 0;
  for (std::int64_t i = slot * kThreads + threadIdx.x; i < pixels;
       i += std::int64_t{slots} * kThreads) {
    const Pixel p(plane * pixels + i, extent);
    sum += fabs(x.load(p.in(x)) - y.load(p.in(y)));
  }
  const double total = gpu::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

// The sums of a march's segments, plane by plane: a block's share of a strip is one segment, and
// block b's of strip s has the number b + s.
__global__ void __launch_bounds__(kThreads)
    segments_kernel(std::int64_t planes, std::int64_t first_plane, int strips, int rows, int blocks,
        const double* partials, PlaneSums* sums) {
  const std::int64_t units = planes * strips * rows;
  const auto block_of = [&](std::int64_t unit) { return ((unit + 1) * blocks - 1) / units; };
  for (std::int64_t p = blockIdx.x; p < planes; p += gridDim.x) {
    const std::int64_t first_strip = p * strips, last_strip = first_strip + strips - 1;
    const std::int64_t first = block_of(first_strip * rows) + first_strip;
    const std::int64_t last = block_of((last_strip + 1) * rows - 1) + last_strip;
    double sum = 0;
    for (std::int64_t i = first + threadIdx.x; i <= last; i += kThreads) {
      sum += partials[i];  // 0 where a block ends with a strip: no segment has that number
    }
    const double total = gpu::block_sum<kThreads>(sum);
    if (threadIdx.x == 0) sums[first_plane + p].of[kTerm] = total;
    __syncthreads();
  }
}

bool is_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

// Whether planes stand in memory as the march wants them; then how far apart.
bool fits(const TensorView& view, std::int64_t* plane_stride) {
  const std::int64_t images = view.shape[0], channels = view.shape[1];
  if (view.dtype != DType::f32 || !is_aligned(view.data)) return false;
  if (view.shape[4] > 1 && view.strides[4] != 1) return false;
  const std::int64_t row = view.strides[3];
  if (row < view.shape[4] || row % 4 != 0) return false;
  std::int64_t plane = row * view.shape[3];
  if (channels > 1) {
    plane = view.strides[1];
    if (images > 1 && view.strides[0] != channels * plane) return false;
  } else if (images > 1) {
    plane = view.strides[0];
  }
  *plane_stride = plane;
  return plane > 0 && plane % 4 == 0;
}

bool has_copy_engine(Device device) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index) ==
             cudaSuccess &&
         major >= 9;
}

bool has_shared_memory(Device device, int bytes) {
  int available = 0;
  return cudaDeviceGetAttribute(
             &available, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index) == cudaSuccess &&
         available >= bytes;
}

// The width of strips that loads fewer columns in all.
bool wide_is_better(int columns, const MarchShape& wide, const MarchShape& narrow) {
  const auto loaded = [&](const MarchShape& s) {
    return (columns + s.owned - 1) / s.owned * s.loaded;
  };
  return loaded(wide) <= loaded(narrow);
}

class Marcher {
 public:
  explicit Marcher(CudaPlan& plan) : plan_(plan), pass_(plan.pass) {
    const Geometry& g = plan.geometry;
    width_ = g.extent[2];
    height_ = g.extent[1];
    pitch_ = (width_ + 3) / 4 * 4;
    direct_ = fits(pass_.x, &x_plane_stride_) && fits(pass_.y, &y_plane_stride_) &&
              pass_.x.strides[3] == pass_.y.strides[3] && x_plane_stride_ == y_plane_stride_;
    staged_gradient_ = needs_staged(pass_.x_gradient) || needs_staged(pass_.y_gradient);
    const std::int64_t arrays = (direct_ ? 0 : 2) + (staged_gradient_ ? 1 : 0);
    const std::int64_t plane_bytes = arrays * pitch_ * height_ * 4;
    at_once_ = plane_bytes == 0
                   ? g.planes
                   : std::clamp<std::int64_t>(kStagingBytes / plane_bytes, 1, g.planes);
    const std::int64_t plane = pitch_ * height_ * at_once_;
    if (arrays > 0) {
      staging_ =
          allocate_bytes(static_cast<std::size_t>(arrays * plane * 4), plan.device, plan.exec);
      float* next = static_cast<float*>(staging_.get());
      if (!direct_) {
        staged_x_ = next;
        staged_y_ = next + plane;
        next += 2 * plane;
      }
      staged_out_ = next;
    }
  }

  void run() {
    const std::int64_t planes = plan_.geometry.planes;
    // What the march does not wait for is queued behind it, so that the GPU has work at once.
    if (plan_.has_gradient()) {
      fill_weights(plan_);
      find_slopes(plan_);
    }
    for (std::int64_t first = 0; first < planes; first += at_once_) {
      run_planes(first, std::min(at_once_, planes - first));
    }
    if (pass_.value.empty()) return;
    if (!plan_.has_gradient()) fill_weights(plan_);
    if (pass_.l1_weight != 0) sum_l1();
    write_values(plan_);
  }

 private:
  bool needs_staged(const TensorView& gradient) const {
    std::int64_t stride = 0;
    return !gradient.empty() && (pass_.l1_weight != 0 || !pass_.coarse_x_gradient.empty() ||
                                    !pass_.coarse_y_gradient.empty() || !fits(gradient, &stride));
  }

  Extent2 extent(std::int64_t first, std::int64_t planes) const {
    return {width_, height_, plan_.geometry.channels, first, planes};
  }

  void sum_l1() {
    const Geometry& g = plan_.geometry;
    const int slots =
        static_cast<int>(std::clamp<std::int64_t>(g.pixels() / (4 * kThreads), 1, 256));
    const auto partials = allocate_bytes(
        static_cast<std::size_t>(g.planes * slots) * sizeof(double), plan_.device, plan_.exec);
    gpu::launch("ssim", plan_.exec.stream, static_cast<unsigned>(g.planes * slots), kThreads, 0,
        l1_kernel, gpu::View(pass_.x), gpu::View(pass_.y), extent(0, g.planes), slots,
        static_cast<double*>(partials.get()));
    sum_partials(plan_, static_cast<double*>(partials.get()), slots, kL1);
  }

  const float* planes_of(
      const TensorView& image, float* staged, std::int64_t first, std::int64_t planes) {
    if (direct_) return static_cast<const float*>(image.data) + first * x_plane_stride_;
    gpu::launch("ssim", plan_.exec.stream, blocks_for(width_ * height_ * planes), kThreads, 0,
        stage_kernel, gpu::View(image), extent(first, planes), pitch_, staged);
    return staged;
  }

  March march_over(std::int64_t first, std::int64_t planes) {
    const Geometry& g = plan_.geometry;
    const auto taps = taps_in_f32(pass_.window.x);
    March m = {};
    m.x = planes_of(pass_.x, staged_x_, first, planes);
    m.y = planes_of(pass_.y, staged_y_, first, planes);
    m.row_stride = direct_ ? pass_.x.strides[3] : pitch_;
    m.plane_stride = direct_ ? x_plane_stride_ : pitch_ * height_;
    m.planes = planes;
    m.first_plane = first;
    m.width = static_cast<int>(width_);
    m.height = static_cast<int>(height_);
    m.map_x0 = static_cast<int>(g.first_centre[2]);
    m.map_x1 = m.map_x0 + static_cast<int>(g.map_extent[2]);
    m.map_y0 = static_cast<int>(g.first_centre[1]);
    m.map_y1 = m.map_y0 + static_cast<int>(g.map_extent[1]);
    std::copy_n(taps.begin(), 6, m.taps);
    // Never 0, so that no quotient is 0/0.
    const float least = 1e-37f;
    m.c1 =
        pass_.term == Term::contrast ? INFINITY : std::max(least, static_cast<float>(2 * pass_.c1));
    m.c2 = std::max(least, static_cast<float>(2 * pass_.c2));
    m.slopes = plan_.slopes;
    return m;
  }

  void run_planes(std::int64_t first, std::int64_t planes) {
    March m = march_over(first, planes);
    if (!plan_.has_gradient()) {
      run_value(m);
      return;
    }
    bool summed = false;
    if (!pass_.x_gradient.empty()) {
      run_gradient(m, pass_.x_gradient, pass_.coarse_x_gradient, 1, !summed);
      summed = true;
    }
    if (!pass_.y_gradient.empty()) {
      std::swap(m.x, m.y);  // SSIM is symmetric
      run_gradient(m, pass_.y_gradient, pass_.coarse_y_gradient, -1, !summed);
    }
  }

  void run_value(March m) {
    // Before the first column of the map, at a multiple of 4.
    const int rim = m.map_x0 == 0 ? 3 : 0;
    const bool wide =
        wide_is_better(m.map_x1 - m.map_x0 + rim, value_shape(true), value_shape(false));
    m.strips = strips(m.map_x1 - m.map_x0 + rim, value_shape(wide));
    m.rows = m.map_y1 - m.map_y0;
    m.first_column = m.map_x0 - 5 - rim;
    m.first_row = m.map_y0 - 5;
    const int blocks = value_blocks(m, wide);
    with_partials(m, blocks, true, [&] { launch_value_march(m, wide, blocks, plan_.exec); });
  }

  void run_gradient(
      March m, const TensorView& gradient, const TensorView& coarse, float sign, bool sums) {
    const bool wide = has_shared_memory(plan_.device, 210000) &&
                      wide_is_better(m.width, gradient_shape(true), gradient_shape(false));
    m.strips = strips(m.width, gradient_shape(wide));
    m.rows = m.height;
    m.first_column = -12;
    m.first_row = -10;
    if (staged_gradient_) {
      m.gradient = staged_out_;
      m.gradient_row_stride = pitch_;
      m.gradient_plane_stride = pitch_ * height_;
    } else {
      std::int64_t stride = 0;
      fits(gradient, &stride);
      m.gradient = static_cast<float*>(gradient.data) + m.first_plane * stride;
      m.gradient_row_stride = gradient.strides[3];
      m.gradient_plane_stride = stride;
    }
    const int blocks = gradient_blocks(m, wide);
    with_partials(m, blocks, sums, [&] { launch_gradient_march(m, wide, blocks, plan_.exec); });
    if (!staged_gradient_) return;
    const Finish finish{.x = gpu::View(pass_.x),
        .y = gpu::View(pass_.y),
        .gradient = gpu::View(gradient),
        .coarse = gpu::View(coarse),
        .halving_y = pass_.halving[1],
        .halving_x = pass_.halving[2],
        .slopes = plan_.slopes,
        .has_l1 = pass_.l1_weight != 0,
        .sign_of_l1 = sign,
        .staged = staged_out_,
        .row_stride = pitch_};
    gpu::launch("ssim", plan_.exec.stream, blocks_for(width_ * height_ * m.planes), kThreads, 0,
        finish_kernel, finish, extent(m.first_plane, m.planes));
  }

  static int strips(int columns, const MarchShape& shape) {
    return (columns + shape.owned - 1) / shape.owned;
  }

  template <class Launch>
  void with_partials(March& m, int blocks, bool sums, const Launch& launch) {
    const std::size_t bytes =
        static_cast<std::size_t>(blocks + m.planes * m.strips) * sizeof(double);
    const auto partials = allocate_bytes(bytes, plan_.device, plan_.exec);
    m.partials = static_cast<double*>(partials.get());
    gpu::check(
        cudaMemsetAsync(m.partials, 0, bytes, static_cast<gpu::Stream>(plan_.exec.stream)), "ssim");
    launch();
    if (!sums) return;
    gpu::launch("ssim", plan_.exec.stream, blocks_for(m.planes * kThreads), kThreads, 0,
        segments_kernel, m.planes, m.first_plane, m.strips, m.rows, blocks, m.partials, plan_.sums);
  }

  CudaPlan& plan_;
  const Pass& pass_;
  std::int64_t width_ = 0, height_ = 0, pitch_ = 0, at_once_ = 1;
  std::int64_t x_plane_stride_ = 0, y_plane_stride_ = 0;
  bool direct_ = false, staged_gradient_ = false;
  std::shared_ptr<void> staging_;
  float *staged_x_ = nullptr, *staged_y_ = nullptr, *staged_out_ = nullptr;
};

}  // namespace

bool can_march(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  const bool is_simple = pass.reduction != Reduction::none && pass.mask.empty() &&
                         pass.valid_mask.empty() && pass.x.dtype != DType::f64 &&
                         (pass.value.empty() || pass.value.dtype == DType::f32) &&
                         (pass.padding == Padding::valid || pass.padding == Padding::same);
  const bool is_plane = g.extent[0] == 1 && g.radius[0] == 0 && g.radius[1] == 5 &&
                        g.radius[2] == 5 && pass.window.y == pass.window.x;
  const bool is_countable = g.extent[1] < 1 << 28 && g.extent[2] < 1 << 28 &&
                            g.planes * (g.extent[2] / 160 + 1) < 1 << 30;
  return is_simple && is_plane && is_countable && has_copy_engine(plan.device) &&
         has_shared_memory(plan.device, 120000);
}

void run_march(CudaPlan& plan) { Marcher(plan).run(); }

}  // namespace similis::ssim_internal

#else

namespace similis::ssim_internal {

// The copy engine and the way the march is laid out are CUDA's.
bool can_march(const CudaPlan&) { return false; }
void run_march(CudaPlan&) {}

}  // namespace similis::ssim_internal

#endif
