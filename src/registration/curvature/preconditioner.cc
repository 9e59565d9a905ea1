// SPDX-License-Identifier: Apache-2.0
#include "src/registration/curvature/preconditioner.h"

#include <limits>

#include "similis/smooth.hpp"

namespace similis::registration_internal {
namespace {

constexpr double kWindow = 1.5;       // σ in voxels of the Gaussian that averages about a voxel
constexpr float kLeastShare = 1e-3f;  // of an average that a mask leaves
constexpr float kTissue = 0.1f;       // of the intensities' range
constexpr int kAxes[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};

// A channel of a tensor.
TensorView channel_of(const Tensor& tensor, std::int64_t channel) {
  TensorView view = tensor;
  view.shape[1] = 1;
  view.offset += channel * tensor.strides[1];
  return view;
}

// A volume, and the grid of every kCurvatureStride-th of its voxels.
struct Strided {
  const Image& volume;
  Grid coarse;
  Map stride;
  const Execution& exec;

  Strided(const Image& of, const Execution& by) : volume(of), coarse(of.grid), exec(by) {
    coarse.size = curvature_size(of.grid.size);
    for (int a = 0; a < 3; ++a) stride.linear(a, a) = kCurvatureStride;
  }
  Tensor allocated(std::int64_t channels) const {
    return allocate(coarse.image_shape(channels), DType::f32, coarse.device, exec);
  }
  void sample(const TensorView& values, const Tensor& output) const {
    sample_at(values, volume.grid, stride, coarse, {}, true, output, exec);
  }
};

// H: products of edges, smoothed by `fluid` and added over channels.
Tensor curvature(const Strided& grids, double fluid) {
  const Image& volume = grids.volume;
  const Execution& exec = grids.exec;
  const GridRows rows(volume.grid);
  const std::int64_t count = grids.coarse.voxels();
  const PerAxis<double> window = {kWindow, kWindow, kWindow}, wide = {fluid, fluid, fluid};
  const Tensor h = grids.allocated(6), sampled = grids.allocated(1);
  const Tensor mean = volume.allocated(1, exec), square = volume.allocated(1, exec),
               product = volume.allocated(1, exec);
  // Averages are those of the voxels that count.
  const Tensor share = volume.mask.empty() ? Tensor() : volume.allocated(1, exec);
  if (!share.empty()) smooth_into(volume.mask, {.output = share}, {.sigma = window}, exec);
  const auto average = [&](const TensorView& of, const Tensor& output) {
    smooth_into(of, {.output = output}, {.sigma = window}, exec);
    if (share.empty()) return;
    divide(rows, share.elements<float>(), kLeastShare, output.elements<float>(), exec);
  };
  fill(rows.device, h.shape.count(), 0, h.elements<float>(), exec);
  for (std::int64_t c = 0; c < volume.channels(); ++c) {
    const TensorView channel = channel_of(volume.values, c);
    const auto* const f = static_cast<const float*>(channel.data());
    scale(rows.device, rows.voxels(), 1, f, square.elements<float>(), exec);
    multiply(rows.device, rows.voxels(), f, square.elements<float>(), exec);
    average(channel, mean);
    average(square, square);
    const Averages averages{
        f, mean.elements<float>(), square.elements<float>(), volume.mask_elements()};
    for (int k = 0; k < 6; ++k) {
      edge_products(rows, averages, kAxes[k][0], kAxes[k][1], product.elements<float>(), exec);
      smooth_into(product, {.output = product}, {.sigma = wide}, exec);
      grids.sample(product, sampled);
      add_scaled(
          rows.device, count, 1, sampled.elements<float>(), h.elements<float>() + k * count, exec);
    }
  }
  return h;
}

// The mean of H's trace where the first channel shows tissue and H is not 0; NaN if it is nowhere.
double mean_trace(const Strided& grids, const Tensor& h) {
  const Execution& exec = grids.exec;
  const GridRows rows(grids.coarse);
  const std::int64_t count = rows.voxels();
  const Tensor trace = grids.allocated(1), tissue = grids.allocated(1);
  const float* const xx = h.elements<float>();
  scale(rows.device, count, 1, xx, trace.elements<float>(), exec);
  add_scaled(rows.device, count, 1, xx + count, trace.elements<float>(), exec);
  add_scaled(rows.device, count, 1, xx + 2 * count, trace.elements<float>(), exec);
  grids.sample(channel_of(grids.volume.values, 0), tissue);
  threshold(rows.device, count, kTissue, tissue.elements<float>(), exec);
  drop_below(rows, trace.elements<float>(), std::numeric_limits<float>::min(),
      tissue.elements<float>(), exec);
  const Moments found = moments(
      rows, trace.elements<float>(), trace.elements<float>(), tissue.elements<float>(), exec);
  return found.f / found.count;
}

}  // namespace

Tensor preconditioner(const Image& volume, double fluid, double damping, const Execution& exec) {
  const Strided grids(volume, exec);
  const Tensor h = curvature(grids, fluid);
  const auto lambda = static_cast<float>(damping * mean_trace(grids, h) / 3);
  if (!(lambda > 0)) return {};
  float* const elements = h.elements<float>();
  scale(h.device, h.shape.count(), 1 / lambda, elements, elements, exec);
  return h;
}

}  // namespace similis::registration_internal
