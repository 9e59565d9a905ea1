// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU, the general path: every thread walks through the whole window of its pixel in
// f64, for any rank, window, padding, masks, dtypes and strides.
//   windows kernel   a map element a thread: moments ─ formula.h ─> map or sums, and four
//   derivatives
//                    divided by the window's weight, which gradients average
//   gradient kernel  a pixel a thread: the derivatives of all windows that see it
// Derivatives of as many planes as fit into 64 MiB, and at least of one plane, are in memory at a
// time.
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/gpu/cuda/upload.cuh"
#include "src/ssim/cuda/plan.h"
#include "src/window/axis.h"

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 256;
constexpr std::size_t kDerivativeBytes = std::size_t{64} << 20;
constexpr int kDerivatives = 4;

// Writes how much of each pixel along an axis the windows around it take, as [pixel][2·radius + 1]:
// element k is for the window centred on pixel - radius + k.
__global__ void transpose_kernel(const double* taps, std::int64_t extent, int radius,
    std::int64_t first_centre, std::int64_t centres, Padding padding, double* transposed) {
  const std::int64_t size = 2 * radius + 1;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < extent * size;
       i += step) {
    const std::int64_t pixel = i / size, centre = pixel - radius + i % size;
    double weight = 0;
    if (centre >= first_centre && centre < first_centre + centres) {
      for (std::int64_t k = 0; k < size; ++k) {
        const std::int64_t seen = Axis::source(centre - radius + k, extent, padding);
        if (seen == pixel) weight += taps[k];
      }
    }
    transposed[i] = weight;
  }
}

struct Work {
  Geometry geometry;
  gpu::View x, y, mask, valid_mask, map, upstream, x_gradient, y_gradient;
  const double* taps[3];  // along z, y and x
  const double* transposed[3];
  PlaneSlope slope;
  Constants<double> constants;
  double bias, term_weight, l1_weight;
  bool contrast, reduces, wants_derivatives;
  bool of_sums;         // x holds x + y, and y holds x - y
  double* derivatives;  // [planes at a time][4][map]
  double* partials[4];  // term, l1, weight, l1_weight: [planes][slots]
  int slots;

  __device__ double sum(double vx, double vy) const { return of_sums ? vx : vx + vy; }
  __device__ double difference(double vx, double vy) const { return of_sums ? vy : vx - vy; }
};

// The place of an element of a given number.
struct Place {
  std::int64_t z, y, x;
  __device__ Place(std::int64_t i, const std::int64_t (&extent)[3])
      : z(i / (extent[1] * extent[2])), y(i / extent[2] % extent[1]), x(i % extent[2]) {}
};

// A plane, and its first element in each array.
struct Plane {
  std::int64_t image, channel;
  __device__ Plane(const Work& w, std::int64_t plane)
      : image(plane / w.geometry.channels), channel(plane % w.geometry.channels) {}
  __device__ std::int64_t of(const gpu::View& view) const { return view.plane(image, channel); }
};

// Returns the weight of a pixel in a reduction; in a map only the mask counts. NaN if the mask or
// valid_mask is negative there.
__device__ double weight_of(
    const Work& w, const Plane& plane, std::int64_t z, std::int64_t y, std::int64_t x) {
  const double mask = w.mask.data == nullptr
                          ? 1
                          : checked_weight(w.mask.load(plane.of(w.mask) + w.mask.at(z, y, x)));
  if (w.valid_mask.data == nullptr) return mask;
  const double valid =
      checked_weight(w.valid_mask.load(plane.of(w.valid_mask) + w.valid_mask.at(z, y, x)));
  if (valid != valid) return valid;
  if (!w.reduces) return mask;
  if (valid == 0) return 0;
  return w.mask.data == nullptr ? valid : mask;
}

__device__ bool exists(
    const Work& w, const Plane& plane, std::int64_t z, std::int64_t y, std::int64_t x) {
  return w.valid_mask.data == nullptr ||
         w.valid_mask.load(plane.of(w.valid_mask) + w.valid_mask.at(z, y, x)) > 0;
}

struct Averages {
  double weight, s, d, ss, dd;
};

// Returns the weight and the weighted sums of the pixels that the window centred on a pixel sees.
__device__ Averages look(
    const Work& w, const Plane& plane, std::int64_t cz, std::int64_t cy, std::int64_t cx) {
  const Geometry& g = w.geometry;
  const std::int64_t x0 = plane.of(w.x), y0 = plane.of(w.y), m0 = plane.of(w.valid_mask);
  Averages a = {};
  double seen_weight = 0;
  for (int kz = 0; kz <= 2 * g.radius[0]; ++kz) {
    const std::int64_t pz = Axis::source(cz - g.radius[0] + kz, g.extent[0], g.padding);
    if (pz < 0) continue;
    for (int ky = 0; ky <= 2 * g.radius[1]; ++ky) {
      const std::int64_t py = Axis::source(cy - g.radius[1] + ky, g.extent[1], g.padding);
      if (py < 0) continue;
      const double row_weight = w.taps[0][kz] * w.taps[1][ky];
      for (int kx = 0; kx <= 2 * g.radius[2]; ++kx) {
        const std::int64_t px = Axis::source(cx - g.radius[2] + kx, g.extent[2], g.padding);
        if (px < 0) continue;
        double weight = row_weight * w.taps[2][kx];
        seen_weight += weight;
        if (w.valid_mask.data != nullptr) {
          const double valid = checked_weight(w.valid_mask.load(m0 + w.valid_mask.at(pz, py, px)));
          if (valid == 0) continue;
          weight *= valid;
        }
        const double vx = w.x.load(x0 + w.x.at(pz, py, px));
        const double vy = w.y.load(y0 + w.y.at(pz, py, px));
        const double s = w.sum(vx, vy), d = w.difference(vx, vy);
        a.weight += weight;
        a.s = fma(weight, s, a.s);
        a.d = fma(weight, d, a.d);
        a.ss = fma(weight * s, s, a.ss);
        a.dd = fma(weight * d, d, a.dd);
      }
    }
  }
  // With padding same, and only then, zeros outside count.
  if (g.padding == Padding::same) a.weight += 1 - seen_weight;
  return a;
}

__device__ double sign(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

__device__ double difference(
    const Work& w, const Plane& plane, std::int64_t z, std::int64_t y, std::int64_t x) {
  return w.x.load(plane.of(w.x) + w.x.at(z, y, x)) - w.y.load(plane.of(w.y) + w.y.at(z, y, x));
}

// Computes one map element: adds to `sum`, writes the map, and leaves derivatives for the gradient.
__device__ void run_window(
    const Work& w, std::int64_t plane_index, std::int64_t i, double* derivatives, double* sum) {
  const Geometry& g = w.geometry;
  const Plane plane(w, plane_index);
  const Place place(i, g.map_extent);
  const std::int64_t cz = place.z + g.first_centre[0], cy = place.y + g.first_centre[1],
                     cx = place.x + g.first_centre[2];
  const double weight = weight_of(w, plane, cz, cy, cx);
  const bool is_pixel = exists(w, plane, cz, cy, cx), counts = is_pixel && weight != 0;
  double derivative[kDerivatives] = {};
  double value = 0;
  if (counts) {
    const Averages a = look(w, plane, cz, cy, cx);
    const double mean_s = a.s / a.weight, mean_d = a.d / a.weight;
    const Moments<double> m{mean_s, mean_d, fmax(0.0, fma(-mean_s, mean_s, a.ss / a.weight)),
        fmax(0.0, fma(-mean_d, mean_d, a.dd / a.weight))};
    const Dissimilarity<double> result =
        w.contrast ? contrast_dissimilarity(m, w.constants) : dissimilarity(m, w.constants);
    value = result.value;
    if (w.wants_derivatives) {
      const double slope =
          w.reduces ? w.slope.of(plane_index).term
          : w.upstream.data != nullptr
              ? w.term_weight *
                    w.upstream.load(plane.of(w.upstream) + w.upstream.at(place.z, place.y, place.x))
              : w.term_weight;
      const double factor = slope * weight / a.weight;
      const Moments<double>& r = result.gradient;
      derivative[0] = factor * (r.mean_s - 2 * mean_s * r.var_s);
      derivative[1] = factor * 2 * r.var_s;
      derivative[2] = factor * (r.mean_d - 2 * mean_d * r.var_d);
      derivative[3] = factor * 2 * r.var_d;
    }
  }
  *sum += weight * value;
  if (w.wants_derivatives) {
    for (int f = 0; f < kDerivatives; ++f) derivatives[f * g.map_elements() + i] = derivative[f];
  }
  if (w.map.data == nullptr) return;
  double element = weight * (w.bias + w.term_weight * value);
  if (w.l1_weight != 0 && counts) {
    element += weight * w.l1_weight * fabs(difference(w, plane, cz, cy, cx));
  }
  if (!is_pixel) element = NAN;
  w.map.store(plane.of(w.map) + w.map.at(place.z, place.y, place.x), element);
}

// The blocks of one plane, `slots` of them, take its elements in turn.
__global__ void __launch_bounds__(kThreads) windows_kernel(const Work w, std::int64_t first_plane) {
  const std::int64_t local = blockIdx.x / static_cast<unsigned>(w.slots);
  const std::int64_t slot = blockIdx.x % static_cast<unsigned>(w.slots);
  const std::int64_t plane = first_plane + local;
  double* const derivatives = w.derivatives + local * kDerivatives * w.geometry.map_elements();
  double sum = 0;
  for (std::int64_t i = slot * kThreads + threadIdx.x; i < w.geometry.map_elements();
       i += std::int64_t{w.slots} * kThreads) {
    run_window(w, plane, i, derivatives, &sum);
  }
  if (!w.reduces) return;
  const double total = gpu::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) w.partials[0][plane * w.slots + slot] = total;
}

// Adds Σ weight over the map, and over the pixels Σ weight and Σ weight·|x - y|.
__global__ void __launch_bounds__(kThreads) weights_kernel(const Work w) {
  const Geometry& g = w.geometry;
  const std::int64_t plane_index = blockIdx.x / static_cast<unsigned>(w.slots);
  const std::int64_t slot = blockIdx.x % static_cast<unsigned>(w.slots);
  const Plane plane(w, plane_index);
  double map_weight = 0, l1 = 0, l1_weight = 0;
  // Rows in turn: nothing is divided for a pixel.
  for (std::int64_t row = slot; row < g.extent[0] * g.extent[1]; row += w.slots) {
    const std::int64_t z = row / g.extent[1], y = row - z * g.extent[1];
    const std::int64_t map_z = z - g.first_centre[0], map_y = y - g.first_centre[1];
    const bool in_map =
        map_z >= 0 && map_z < g.map_extent[0] && map_y >= 0 && map_y < g.map_extent[1];
    for (std::int64_t x = threadIdx.x; x < g.extent[2]; x += kThreads) {
      const double weight = weight_of(w, plane, z, y, x);
      l1_weight += weight;
      if (w.l1_weight != 0 && weight != 0 && exists(w, plane, z, y, x)) {
        l1 += weight * fabs(difference(w, plane, z, y, x));
      }
      const std::int64_t map_x = x - g.first_centre[2];
      if (in_map && map_x >= 0 && map_x < g.map_extent[2]) map_weight += weight;
    }
  }
  const double sums[3] = {l1, map_weight, l1_weight};
  for (int i = 0; i < 3; ++i) {
    const double total = gpu::block_sum<kThreads>(sums[i]);
    if (threadIdx.x == 0) w.partials[1 + i][plane_index * w.slots + slot] = total;
    __syncthreads();
  }
}

// Adds the derivatives of all windows that see a pixel.
__device__ void gather(
    const Work& w, const double* derivatives, const Place& p, double (&sums)[kDerivatives]) {
  const Geometry& g = w.geometry;
  const std::int64_t size[3] = {2 * g.radius[0] + 1, 2 * g.radius[1] + 1, 2 * g.radius[2] + 1};
  for (std::int64_t kz = 0; kz < size[0]; ++kz) {
    const double wz = w.transposed[0][p.z * size[0] + kz];
    if (wz == 0) continue;
    const std::int64_t z = p.z - g.radius[0] + kz - g.first_centre[0];
    for (std::int64_t ky = 0; ky < size[1]; ++ky) {
      const double wy = wz * w.transposed[1][p.y * size[1] + ky];
      if (wy == 0) continue;
      const std::int64_t y = p.y - g.radius[1] + ky - g.first_centre[1];
      const double* const row = derivatives + (z * g.map_extent[1] + y) * g.map_extent[2];
      for (std::int64_t kx = 0; kx < size[2]; ++kx) {
        const double weight = wy * w.transposed[2][p.x * size[2] + kx];
        if (weight == 0) continue;
        const std::int64_t x = p.x - g.radius[2] + kx - g.first_centre[2];
        for (int f = 0; f < kDerivatives; ++f) {
          sums[f] = fma(weight, row[f * g.map_elements() + x], sums[f]);
        }
      }
    }
  }
}

__device__ void run_pixel(
    const Work& w, std::int64_t plane_index, std::int64_t i, const double* derivatives) {
  const Plane plane(w, plane_index);
  const Place p(i, w.geometry.extent);
  double by_x = 0, by_y = 0;
  if (exists(w, plane, p.z, p.y, p.x)) {
    double sums[kDerivatives] = {};
    gather(w, derivatives, p, sums);
    const double vx = w.x.load(plane.of(w.x) + w.x.at(p.z, p.y, p.x));
    const double vy = w.y.load(plane.of(w.y) + w.y.at(p.z, p.y, p.x));
    const double valid =
        w.valid_mask.data == nullptr
            ? 1
            : w.valid_mask.load(plane.of(w.valid_mask) + w.valid_mask.at(p.z, p.y, p.x));
    const double by_s = valid * fma(w.sum(vx, vy), sums[1], sums[0]);
    const double by_d = valid * fma(w.difference(vx, vy), sums[3], sums[2]);
    double l1 = 0;
    if (w.l1_weight != 0) {
      const double slope =
          w.reduces ? w.slope.of(plane_index).l1
          : w.upstream.data != nullptr
              ? w.l1_weight * w.upstream.load(plane.of(w.upstream) + w.upstream.at(p.z, p.y, p.x))
              : w.l1_weight;
      l1 = slope * weight_of(w, plane, p.z, p.y, p.x) * sign(vx - vy);
    }
    by_x = by_s + by_d + l1;
    by_y = by_s - by_d - l1;
  }
  if (w.reduces) {
    const double slope = w.slope.of(plane_index).term;
    if (slope != slope) by_x = by_y = slope;  // a weight is negative or NaN
  }
  if (w.x_gradient.data != nullptr) {
    w.x_gradient.store(plane.of(w.x_gradient) + w.x_gradient.at(p.z, p.y, p.x), by_x);
  }
  if (w.y_gradient.data != nullptr) {
    w.y_gradient.store(plane.of(w.y_gradient) + w.y_gradient.at(p.z, p.y, p.x), by_y);
  }
}

__global__ void __launch_bounds__(kThreads)
    gradient_kernel(const Work w, std::int64_t first_plane, std::int64_t planes) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < planes * w.geometry.pixels(); i += step) {
    const std::int64_t local = i / w.geometry.pixels();
    run_pixel(w, first_plane + local, i % w.geometry.pixels(),
        w.derivatives + local * kDerivatives * w.geometry.map_elements());
  }
}

// Taps and their transposes in device memory, which lives as long as this object.
class Weights {
 public:
  Weights(const CudaPlan& plan, Work& work) {
    const std::vector<double>* const taps[3] = {
        &plan.pass.window.z, &plan.pass.window.y, &plan.pass.window.x};
    std::int64_t count = 0;
    for (int axis = 0; axis < 3; ++axis) {
      count += static_cast<std::int64_t>(taps[axis]->size()) * (1 + work.geometry.extent[axis]);
    }
    memory_ =
        allocate_bytes(static_cast<std::size_t>(count) * sizeof(double), plan.device, plan.exec);
    double* next = static_cast<double*>(memory_.get());
    for (int axis = 0; axis < 3; ++axis) {
      const Geometry& g = work.geometry;
      const auto size = static_cast<std::int64_t>(taps[axis]->size());
      work.taps[axis] = next;
      gpu::upload("ssim", plan.exec.queue.handle, *taps[axis], next);
      next += size;
      work.transposed[axis] = next;
      if (plan.has_gradient()) {
        gpu::launch("ssim", plan.exec.queue.handle,
            gpu::blocks_for_items(g.extent[axis] * size, kThreads), kThreads, 0, transpose_kernel,
            work.taps[axis], g.extent[axis], g.radius[axis], g.first_centre[axis],
            g.map_extent[axis], g.padding, next);
      }
      next += g.extent[axis] * size;
    }
  }

 private:
  std::shared_ptr<void> memory_;
};

Work work_of(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const bool reduces = pass.reduction != Reduction::none;
  Work work{.geometry = plan.geometry,
      .x = gpu::View(pass.x),
      .y = gpu::View(pass.y),
      .mask = gpu::View(pass.mask),
      .valid_mask = gpu::View(pass.valid_mask),
      .map = reduces ? gpu::View() : gpu::View(pass.value),
      .upstream = reduces ? gpu::View() : gpu::View(pass.upstream),
      .x_gradient = gpu::View(pass.x_gradient),
      .y_gradient = gpu::View(pass.y_gradient),
      .taps = {},
      .transposed = {},
      .slope = {},
      .constants = {pass.c1, pass.c2},
      .bias = pass.bias,
      .term_weight = pass.term_weight,
      .l1_weight = pass.l1_weight,
      .contrast = pass.term == Term::contrast,
      .reduces = reduces,
      .wants_derivatives = plan.has_gradient(),
      .of_sums = pass.of_sums,
      .derivatives = nullptr,
      .partials = {},
      .slots = static_cast<int>(
          std::clamp<std::int64_t>(plan.geometry.pixels() / (4 * kThreads), 1, 512))};
  return work;
}

}  // namespace

void sum_weights(const CudaPlan& plan) {
  Work work = work_of(plan);
  const std::int64_t slots = plan.geometry.planes * work.slots;
  const auto memory =
      allocate_bytes(static_cast<std::size_t>(3 * slots) * sizeof(double), plan.device, plan.exec);
  auto* const partials = static_cast<double*>(memory.get());
  for (int i = 0; i < 3; ++i) work.partials[1 + i] = partials + i * slots;
  gpu::launch("ssim", plan.exec.queue.handle, static_cast<unsigned>(slots), kThreads, 0,
      weights_kernel, work);
  static_assert(kWeight == kL1 + 1 && kL1Weight == kL1 + 2);
  sum_partials(plan, partials, work.slots, kL1, 3);
}

void run_direct(CudaPlan& plan) {
  const Geometry& g = plan.geometry;
  Work work = work_of(plan);
  const Weights weights(plan, work);
  // Take as many planes at a time as their derivatives fit and as blocks can be numbered.
  const auto plane_bytes =
      static_cast<std::int64_t>(kDerivatives * sizeof(double)) * g.map_elements();
  const std::int64_t at_once = std::clamp<std::int64_t>(
      work.wants_derivatives ? static_cast<std::int64_t>(kDerivativeBytes) / plane_bytes : g.planes,
      1, std::min<std::int64_t>(g.planes, (std::int64_t{1} << 30) / work.slots));
  std::shared_ptr<void> derivatives, partials;
  if (work.wants_derivatives) {
    derivatives =
        allocate_bytes(static_cast<std::size_t>(plane_bytes * at_once), plan.device, plan.exec);
    work.derivatives = static_cast<double*>(derivatives.get());
  }
  const std::int64_t slots = g.planes * work.slots;
  if (work.reduces) {
    plan.allocate_sums();
    if (plan.pass.l1_weight != 0 || plan.has_masks()) {
      sum_weights(plan);
    } else {
      fill_weights(plan);
    }
    work.slope = slope_of(plan);
    partials =
        allocate_bytes(static_cast<std::size_t>(slots) * sizeof(double), plan.device, plan.exec);
    work.partials[0] = static_cast<double*>(partials.get());
  }
  for (std::int64_t first = 0; first < g.planes; first += at_once) {
    const std::int64_t planes = std::min(at_once, g.planes - first);
    gpu::launch("ssim", plan.exec.queue.handle, static_cast<unsigned>(planes * work.slots),
        kThreads, 0, windows_kernel, work, first);
    if (!work.wants_derivatives) continue;
    gpu::launch("ssim", plan.exec.queue.handle,
        gpu::blocks_for_items(planes * g.pixels(), kThreads), kThreads, 0, gradient_kernel, work,
        first, planes);
  }
  if (!work.reduces) return;
  sum_partials(plan, work.partials[0], work.slots, kTerm);
  write_values(plan);
}

}  // namespace similis::ssim_internal
