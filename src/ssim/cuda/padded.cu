// SPDX-License-Identifier: Apache-2.0
// SSIM on the GPU with padding reflect or replicate: the images are copied with the pixels that
// windows see beyond their edges, in f32, the sliding window kernel takes the copies with padding
// valid, and the gradients by pixels that stand for one pixel are added up.
//   pad kernel    x and y ─> copies                16 B a pixel of f32
//   fold kernel   gradient by a copy ─> gradient    8 B
// The sliding window itself cannot do so: the copy engine has zeros outside, and windows that see a
// pixel twice would need weights of their own on the way back. Two kernels at the rate of the
// memory cost less than windows of tiles, which any_window.cu would take.
#include <memory>
#include <vector>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/blocks.h"
#include "src/ssim/cuda/any_window.cuh"
#include "src/ssim/cuda/padded.h"

namespace similis::ssim_internal {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBytes = std::int64_t{512} << 20;

struct Padded {
  int extent[2], radius;  // of the images, along y and x
  Padding padding;
  std::int64_t channels, pitch;

  SIMILIS_HOST_DEVICE int height() const { return extent[0] + 2 * radius; }
  SIMILIS_HOST_DEVICE int width() const { return extent[1] + 2 * radius; }
  SIMILIS_HOST_DEVICE std::int64_t plane() const { return height() * pitch; }
};

// A row of a plane; blocks take one each, in turn.
struct RowPlace {
  std::int64_t plane, image, channel;
  int row;
  __device__ RowPlace(const Padded& p, std::int64_t index, int rows)
      : plane(index / rows),
        image(plane / p.channels),
        channel(plane - image * p.channels),
        row(static_cast<int>(index - plane * rows)) {}
};

__global__ void __launch_bounds__(kThreads)
    pad_kernel(gpu::View x, gpu::View y, Padded p, std::int64_t rows, float* to_x, float* to_y) {
  for (std::int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const RowPlace place(p, index, p.height());
    const int row = any_window::seen_pixel(place.row - p.radius, p.extent[0], p.padding);
    const auto copy = [&](const gpu::View& from, float* to) {
      const std::int64_t first = from.plane(place.image, place.channel) + from.at(0, row, 0);
      float* const to_row = to + place.plane * p.plane() + place.row * p.pitch;
      any_window::visit<float>(from.dtype, [&]<class E>(std::type_identity<E>) {
        const E* const from_row = static_cast<const E*>(from.data) + first;
#pragma unroll 4
        for (int column = static_cast<int>(threadIdx.x); column < p.width(); column += kThreads) {
          const int seen = any_window::seen_pixel(column - p.radius, p.extent[1], p.padding);
          to_row[column] = any_window::element<float>(from_row + seen * from.strides[4]);
        }
      });
    };
    copy(x, to_x);
    copy(y, to_y);
  }
}

__global__ void __launch_bounds__(kThreads)
    fold_kernel(const float* from, Padded p, std::int64_t rows, gpu::View gradient) {
  for (std::int64_t index = blockIdx.x; index < rows; index += gridDim.x) {
    const RowPlace place(p, index, p.extent[0]);
    const float* const plane = from + place.plane * p.plane();
    // Adds the row of a copy at a pixel, and what stands for the pixel in it.
    const auto add = [&](int row, int column, float sum) {
      const float* const values = plane + row * p.pitch;
      sum += values[column + p.radius];
      if (column > p.radius && column < p.extent[1] - 1 - p.radius) return sum;
      for (int beyond = 0; beyond < 2 * p.radius; ++beyond) {
        const int at = beyond < p.radius ? beyond : p.extent[1] + beyond;
        if (any_window::seen_pixel(at - p.radius, p.extent[1], p.padding) == column) {
          sum += values[at];
        }
      }
      return sum;
    };
    const bool in_rim = place.row <= p.radius || place.row >= p.extent[0] - 1 - p.radius;
    const std::int64_t to =
        gradient.plane(place.image, place.channel) + gradient.at(0, place.row, 0);
#pragma unroll 4
    for (int column = static_cast<int>(threadIdx.x); column < p.extent[1]; column += kThreads) {
      float sum = add(place.row + p.radius, column, 0.f);
      for (int beyond = 0; in_rim && beyond < 2 * p.radius; ++beyond) {
        const int at = beyond < p.radius ? beyond : p.extent[0] + beyond;
        if (any_window::seen_pixel(at - p.radius, p.extent[0], p.padding) == place.row) {
          sum = add(at, column, sum);
        }
      }
      const std::int64_t offset = to + column * gradient.strides[4];
      if (gradient.dtype == DType::f32) {
        static_cast<float*>(gradient.data)[offset] = sum;
      } else {
        gradient.store(offset, sum);
      }
    }
  }
}

Padded padded_of(const CudaPlan& plan) {
  const Geometry& g = plan.geometry;
  Padded p{{static_cast<int>(g.extent[1]), static_cast<int>(g.extent[2])}, g.radius[2], g.padding,
      g.channels, 0};
  p.pitch = (p.width() + 3) / 4 * 4;
  return p;
}

// A pass over copies; memory and views of them may be missing where only its kind matters.
Pass pass_over_copies(const Pass& pass, const Padded& p) {
  Pass copies = pass;
  copies.padding = Padding::valid;
  for (TensorView* view : {&copies.x, &copies.y, &copies.x_gradient, &copies.y_gradient}) {
    if (view->empty()) continue;
    *view = TensorView(view->data(), {pass.x.shape[0], pass.x.shape[1], 1, p.height(), p.pitch},
        DType::f32, pass.x.device);
    view->shape[4] = p.width();
  }
  return copies;
}

}  // namespace

bool can_pad(const CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Geometry& g = plan.geometry;
  const bool folds = pass.padding == Padding::reflect || pass.padding == Padding::replicate;
  const bool is_simple = folds && plan.reduces() && !plan.has_masks() && pass.l1_weight == 0 &&
                         !pass.of_sums && pass.halved_sum.empty() && pass.x.dtype != DType::f64;
  if (!is_simple || g.extent[0] != 1 || g.extent[1] >= 1 << 28 || g.extent[2] >= 1 << 28) {
    return false;
  }
  const Padded p = padded_of(plan);
  const std::int64_t copies =
      2 + (pass.x_gradient.empty() ? 0 : 1) + (pass.y_gradient.empty() ? 0 : 1);
  const Pass over_copies = pass_over_copies(pass, p);
  return g.planes * p.plane() * copies * std::int64_t{sizeof(float)} <= kMostBytes &&
         can_slide_window(CudaPlan(over_copies, plan.exec));
}

void run_padded(CudaPlan& plan) {
  const Pass& pass = plan.pass;
  const Padded p = padded_of(plan);
  const std::int64_t planes = plan.geometry.planes;
  Pass copies = pass_over_copies(pass, p);
  std::vector<std::shared_ptr<void>> memory;
  for (TensorView* view : {&copies.x, &copies.y, &copies.x_gradient, &copies.y_gradient}) {
    if (view->empty()) continue;
    memory.push_back(allocate_bytes(
        static_cast<std::size_t>(planes * p.plane()) * sizeof(float), plan.device, plan.exec));
    const Extents shape = view->shape, strides = view->strides;
    *view = TensorView(memory.back().get(), shape, DType::f32, plan.device);
    view->strides = strides;
  }
  gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_of(planes * p.height()), kThreads, 0,
      pad_kernel, gpu::View(pass.x), gpu::View(pass.y), p, planes * p.height(),
      static_cast<float*>(copies.x.data()), static_cast<float*>(copies.y.data()));
  CudaPlan over_copies(copies, plan.exec);
  run_sliding_window(over_copies);
  const auto fold = [&](const TensorView& from, const TensorView& to) {
    if (to.empty()) return;
    gpu::launch("ssim", plan.exec.queue.handle, gpu::blocks_of(planes * p.extent[0]), kThreads, 0,
        fold_kernel, static_cast<const float*>(from.data()), p, planes * p.extent[0],
        gpu::View(to));
  };
  fold(copies.x_gradient, pass.x_gradient);
  fold(copies.y_gradient, pass.y_gradient);
}

}  // namespace similis::ssim_internal
