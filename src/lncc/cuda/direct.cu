// SPDX-License-Identifier: Apache-2.0
// LNCC on the GPU, the general path: every thread walks through the whole window of its pixel in
// f64, for any rank, window, padding, masks, dtypes and strides.
//   windows kernel   a centre a thread: moments ─ formula.h ─> map or sums, and the derivatives
//   gradient kernel  a pixel a thread: the derivatives of all windows that see it
// Derivatives are in memory for a slab of pixels and the windows around it: as many planes of z, or
// rows of a picture, as fit into 64 MiB. Windows between two slabs are computed twice.
#include <algorithm>
#include <array>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/upload.cuh"
#include "src/lncc/cuda/plan.h"

namespace similis::lncc_internal {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kDerivativeBytes = std::int64_t{64} << 20;

// A box of pixels or centres, [first, last) along z, y, x.
struct Box {
  std::int64_t first[3], last[3];

  SIMILIS_HOST_DEVICE std::int64_t extent(int axis) const { return last[axis] - first[axis]; }
  SIMILIS_HOST_DEVICE std::int64_t count() const { return extent(0) * extent(1) * extent(2); }
  __device__ bool holds(std::int64_t z, std::int64_t y, std::int64_t x) const {
    return z >= first[0] && z < last[0] && y >= first[1] && y < last[1] && x >= first[2] &&
           x < last[2];
  }
  // Returns the i-th place of the box, x fastest.
  __device__ Place place(const Geometry& g, std::int64_t plane, std::int64_t i) const {
    const std::int64_t row = i / extent(2);
    return {plane / g.channels, plane % g.channels, first[0] + row / extent(1),
        first[1] + row % extent(1), first[2] + i % extent(2)};
  }
};

struct Work {
  Problem problem;
  const double* taps[3];  // along z, y and x
  double* derivatives;    // [planes at a time][derivatives][centres]
  double* partials;       // [planes][slots]
  int slots;
};

// Calls visit(place, weight) for all pixels under the window centred on a pixel, but for those
// outside the image.
template <class Visit>
__device__ __forceinline__ void for_window(const Work& w, const Place& centre, const Visit& visit) {
  const Geometry& g = w.problem.geometry;
  Place at = centre;
  for (int kz = 0; kz <= 2 * g.radius[0]; ++kz) {
    at.z = centre.z - g.radius[0] + kz;
    if (!g.is_pixel(0, at.z)) continue;
    for (int ky = 0; ky <= 2 * g.radius[1]; ++ky) {
      at.y = centre.y - g.radius[1] + ky;
      if (!g.is_pixel(1, at.y)) continue;
      const double row_weight = w.taps[0][kz] * w.taps[1][ky];
      for (int kx = 0; kx <= 2 * g.radius[2]; ++kx) {
        at.x = centre.x - g.radius[2] + kx;
        if (g.is_pixel(2, at.x)) visit(at, row_weight * w.taps[2][kx]);
      }
    }
  }
}

__device__ double sum_of_taps(const double* taps, int radius) {
  double sum = 0;
  for (int k = 0; k <= 2 * radius; ++k) sum += taps[k];
  return sum;
}

struct Window {
  Moments<double> moments;
  double mean_x, mean_y;
  double share;  // share of a pixel of weight 1 in the averages, times the number of taps
};

// Sums the window. Pixels count from the centre's own values, so that those far from 0 keep their
// digits.
__device__ Window look(const Work& w, const Place& centre) {
  const Problem& m = w.problem;
  const Geometry& g = m.geometry;
  const bool is_shifted = m.exists(centre);
  const double shift_x = is_shifted ? Problem::load(m.x, centre) : 0;
  const double shift_y = is_shifted ? Problem::load(m.y, centre) : 0;
  double weight = 0, inside = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  const auto add = [&](double tap, double x, double y) {
    sx = fma(tap, x, sx);
    sy = fma(tap, y, sy);
    sxx = fma(tap * x, x, sxx);
    syy = fma(tap * y, y, syy);
    sxy = fma(tap * x, y, sxy);
    weight += tap;
  };
  for_window(w, centre, [&](const Place& at, double tap) {
    inside += tap;
    const double valid = m.valid_mask.data == nullptr ? 1 : Problem::load(m.valid_mask, at);
    if (!(valid > 0)) return;
    add(tap * valid, Problem::load(m.x, at) - shift_x, Problem::load(m.y, at) - shift_y);
  });
  if (g.padding == Padding::same) {
    double all = 1;
    for (int axis = 0; axis < 3; ++axis) all *= sum_of_taps(w.taps[axis], g.radius[axis]);
    if (all > inside) add(all - inside, -shift_x, -shift_y);
  }
  const double scale = weight > 0 ? 1 / weight : 0;
  const double mean_x = sx * scale, mean_y = sy * scale, factor = m.taps * scale;
  return {.moments = {factor * fma(-sx, mean_y, sxy), factor * fma(-sx, mean_x, sxx),
              factor * fma(-sy, mean_y, syy)},
      .mean_x = mean_x + shift_x,
      .mean_y = mean_y + shift_y,
      .share = factor};
}

// Computes one centre: its weighted value, its derivatives, and ANTs' gradient.
template <int kDerivatives>
__device__ double run_centre(
    const Work& w, const Place& at, bool is_owned, double* derivatives, std::int64_t stride) {
  const Problem& m = w.problem;
  const double own_weight = m.pixel_weight(at);
  const Window window = look(w, at);
  const Correlation<double> v = m.correlation(window.moments);
  if constexpr (kDerivatives > 0) {
    store_derivatives<kDerivatives>(v, m.slope(at, own_weight) * window.share, window.mean_x,
        window.mean_y, m.x_gradient.data != nullptr, derivatives, stride);
  } else if (m.x_gradient.data != nullptr || m.y_gradient.data != nullptr) {
    m.store_centre_gradients(at, window.moments, m.slope(at, own_weight),
        Problem::load(m.x, at) - window.mean_x, Problem::load(m.y, at) - window.mean_y);
  }
  if (!is_owned) return 0;
  if (m.map.data != nullptr) m.store_map(at, own_weight, v.value);
  return own_weight == 0 ? 0 : own_weight * v.value;
}

// Computes all centres of a box; those in `owned` add to sums and maps.
template <int kDerivatives>
__global__ __launch_bounds__(kThreads) void windows_kernel(
    const Work w, Box centres, Box owned, std::int64_t first_plane, std::int64_t planes) {
  const Geometry& g = w.problem.geometry;
  for (std::int64_t block = blockIdx.x; block < planes * w.slots; block += gridDim.x) {
    const std::int64_t local = block / w.slots, plane = first_plane + local;
    double* const derivatives = w.derivatives + local * kDerivatives * centres.count();
    double sum = 0;
    for (std::int64_t i = block % w.slots * kThreads + threadIdx.x; i < centres.count();
         i += std::int64_t{w.slots} * kThreads) {
      const Place at = centres.place(g, plane, i);
      sum += run_centre<kDerivatives>(
          w, at, owned.holds(at.z, at.y, at.x), derivatives + i, centres.count());
    }
    const double total = gpu::block_sum<kThreads>(sum);
    if (w.partials != nullptr && threadIdx.x == 0) {
      w.partials[plane * w.slots + block % w.slots] += total;
    }
    __syncthreads();
  }
}

__global__ void clear_kernel(double* numbers, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    numbers[i] = 0;
  }
}

template <int kDerivatives>
__device__ void run_pixel(
    const Work& w, const Place& pixel, const Box& centres, const double* derivatives) {
  const Problem& m = w.problem;
  const double valid = m.valid_mask.data == nullptr ? 1 : Problem::load(m.valid_mask, pixel);
  double sums[kDerivatives] = {};
  double x = 0, y = 0;
  if (valid > 0) {
    for_window(w, pixel, [&](const Place& at, double tap) {
      if (!centres.holds(at.z, at.y, at.x)) return;
      const std::int64_t i =
          ((at.z - centres.first[0]) * centres.extent(1) + at.y - centres.first[1]) *
              centres.extent(2) +
          at.x - centres.first[2];
      for (int j = 0; j < kDerivatives; ++j) {
        sums[j] = fma(tap, derivatives[i + j * centres.count()], sums[j]);
      }
    });
    x = Problem::load(m.x, pixel);
    y = Problem::load(m.y, pixel);
  }
  store_gradients<kDerivatives>(m, pixel, sums, x, y, valid > 0 ? valid : 0);
}

template <int kDerivatives>
__global__ __launch_bounds__(kThreads) void gradient_kernel(
    const Work w, Box pixels, Box centres, std::int64_t first_plane, std::int64_t planes) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < planes * pixels.count(); i += step) {
    const std::int64_t local = i / pixels.count();
    const Place at = pixels.place(w.problem.geometry, first_plane + local, i % pixels.count());
    run_pixel<kDerivatives>(w, at, centres, w.derivatives + local * kDerivatives * centres.count());
  }
}

// Clears ANTs' gradient of pixels on which no window is centred.
__global__ __launch_bounds__(kThreads) void rim_kernel(const Problem m, Box pixels) {
  const Geometry& g = m.geometry;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < g.planes * pixels.count(); i += step) {
    const Place at = pixels.place(g, i / pixels.count(), i % pixels.count());
    if (g.is_centre(0, at.z) && g.is_centre(1, at.y) && g.is_centre(2, at.x)) continue;
    if (m.x_gradient.data != nullptr) m.x_gradient.store(Problem::offset(m.x_gradient, at), 0);
    if (m.y_gradient.data != nullptr) m.y_gradient.store(Problem::offset(m.y_gradient, at), 0);
  }
}

// Taps in device memory, which lives as long as this object.
class Taps {
 public:
  Taps(const CudaPlan& plan, Work& work) {
    const std::vector<double>* const taps[3] = {
        &plan.pass.window.z, &plan.pass.window.y, &plan.pass.window.x};
    std::size_t count = 0;
    for (const auto* along : taps) count += along->size();
    memory_ = allocate_bytes(count * sizeof(double), plan.device, plan.exec);
    double* next = static_cast<double*>(memory_.get());
    for (int axis = 0; axis < 3; ++axis) {
      work.taps[axis] = next;
      gpu::upload("lncc", plan.exec.queue.handle, *taps[axis], next);
      next += taps[axis]->size();
    }
  }

 private:
  std::shared_ptr<void> memory_;
};

Box all_pixels(const Geometry& g) { return {{0, 0, 0}, {g.extent[0], g.extent[1], g.extent[2]}}; }
Box all_centres(const Geometry& g) {
  return {{g.first_centre[0], g.first_centre[1], g.first_centre[2]},
      {g.last_centre[0], g.last_centre[1], g.last_centre[2]}};
}

// Returns the centres whose windows reach a box of pixels.
Box centres_around(const Geometry& g, const Box& pixels) {
  Box centres = all_centres(g);
  for (int axis = 0; axis < 3; ++axis) {
    centres.first[axis] = std::max(centres.first[axis], pixels.first[axis] - g.radius[axis]);
    centres.last[axis] = std::max(
        centres.first[axis], std::min(centres.last[axis], pixels.last[axis] + g.radius[axis]));
  }
  return centres;
}

template <int kDerivatives> void run_derivatives(const CudaPlan& plan, Work& work) {
  const Geometry& g = plan.problem.geometry;
  void* const stream = plan.exec.queue.handle;
  const int axis = g.extent[0] > 1 ? 0 : 1;  // slabs are cut along this axis
  const std::int64_t layer_bytes = kDerivatives * static_cast<std::int64_t>(sizeof(double)) *
                                   g.map_elements() / std::max<std::int64_t>(1, g.centres(axis));
  const std::int64_t layers = std::clamp<std::int64_t>(
      kDerivativeBytes / layer_bytes - 2 * g.radius[axis], 1, g.extent[axis]);
  const bool fits = layers == g.extent[axis];
  const std::int64_t at_once =
      fits ? std::clamp<std::int64_t>(
                 kDerivativeBytes / std::max<std::int64_t>(1, layer_bytes * g.extent[axis]), 1,
                 g.planes)
           : 1;
  const std::int64_t most_layers = std::min(g.extent[axis], layers + 2 * g.radius[axis]);
  const auto memory = allocate_bytes(
      static_cast<std::size_t>(at_once * most_layers * layer_bytes), plan.device, plan.exec);
  work.derivatives = static_cast<double*>(memory.get());
  for (std::int64_t plane = 0; plane < g.planes; plane += at_once) {
    const std::int64_t planes = std::min(at_once, g.planes - plane);
    for (std::int64_t first = 0; first < g.extent[axis]; first += layers) {
      Box pixels = all_pixels(g);
      pixels.first[axis] = first;
      pixels.last[axis] = std::min(g.extent[axis], first + layers);
      const Box centres = centres_around(g, pixels);
      gpu::launch("lncc", stream, gpu::blocks_of(planes * work.slots), kThreads, 0,
          windows_kernel<kDerivatives>, work, centres, pixels, plane, planes);
      gpu::launch("lncc", stream, gpu::blocks_for_items(planes * pixels.count(), kThreads),
          kThreads, 0, gradient_kernel<kDerivatives>, work, pixels, centres, plane, planes);
    }
  }
}

}  // namespace

int direct_slots(const CudaPlan& plan) {
  return static_cast<int>(
      std::clamp<std::int64_t>(plan.problem.geometry.map_elements() / (4 * kThreads), 1, 4096));
}

void run_direct(const CudaPlan& plan) {
  const Geometry& g = plan.problem.geometry;
  void* const stream = plan.exec.queue.handle;
  Work work{.problem = plan.problem,
      .taps = {},
      .derivatives = nullptr,
      .partials = plan.partials,
      .slots = plan.partials != nullptr ? plan.slots : direct_slots(plan)};
  const Taps taps(plan, work);
  if (plan.partials != nullptr) {
    const std::int64_t count = g.planes * work.slots;
    gpu::launch("lncc", stream, gpu::blocks_for_items(count, kThreads), kThreads, 0, clear_kernel,
        plan.partials, count);
  }
  switch (derivative_count(plan.pass)) {
    case 3: return run_derivatives<3>(plan, work);
    case 5: return run_derivatives<5>(plan, work);
    default: break;
  }
  gpu::launch("lncc", stream, gpu::blocks_of(g.planes * work.slots), kThreads, 0, windows_kernel<0>,
      work, all_centres(g), all_centres(g), std::int64_t{0}, g.planes);
  clear_rim(plan);
}

void clear_rim(const CudaPlan& plan) {
  const Geometry& g = plan.problem.geometry;
  const bool is_rim_empty = g.padding == Padding::valid || !plan.pass.counted.are_all();
  if (!plan.pass.has_gradient() || !is_rim_empty) return;
  gpu::launch("lncc", plan.exec.queue.handle,
      gpu::blocks_for_items(g.planes * all_pixels(g).count(), kThreads), kThreads, 0, rim_kernel,
      plan.problem, all_pixels(g));
}

}  // namespace similis::lncc_internal
