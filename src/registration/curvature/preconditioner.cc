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

}  // namespace

Tensor preconditioner(const Image& volume, double fluid, double damping, const Execution& exec) {
  const GridRows rows(volume.grid);
  const Device device = volume.grid.device;
  const std::int64_t voxels = rows.voxels();
  const PerAxis<double> window = {kWindow, kWindow, kWindow}, wide = {fluid, fluid, fluid};
  Grid coarse = volume.grid;
  coarse.size = curvature_size(volume.grid.size);
  Map stride;
  for (int a = 0; a < 3; ++a) stride.linear(a, a) = kCurvatureStride;
  const auto sampled = [&](const TensorView& values, const TensorView& output) {
    sample_at(values, volume.grid, stride, coarse, {}, true, output, exec);
  };
  const std::int64_t count = coarse.voxels();
  const Tensor h = allocate(coarse.image_shape(6), DType::f32, device, exec),
               trace = allocate(coarse.image_shape(1), DType::f32, device, exec),
               tissue = allocate(coarse.image_shape(1), DType::f32, device, exec);
  {
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
    fill(device, h.shape.count(), 0, h.elements<float>(), exec);
    for (std::int64_t c = 0; c < volume.channels(); ++c) {
      const TensorView channel = channel_of(volume.values, c);
      const auto* const f = static_cast<const float*>(channel.data());
      scale(device, voxels, 1, f, square.elements<float>(), exec);
      multiply(device, voxels, f, square.elements<float>(), exec);
      average(channel, mean);
      average(square, square);
      for (int k = 0; k < 6; ++k) {
        edge_products(rows,
            {f, mean.elements<float>(), square.elements<float>(), volume.mask_elements()},
            kAxes[k][0], kAxes[k][1], product.elements<float>(), exec);
        smooth_into(product, {.output = product}, {.sigma = wide}, exec);
        sampled(product, trace);
        add_scaled(
            device, count, 1, trace.elements<float>(), h.elements<float>() + k * count, exec);
      }
    }
  }
  float* const xx = h.elements<float>();
  scale(device, count, 1, xx, trace.elements<float>(), exec);
  add_scaled(device, count, 1, xx + count, trace.elements<float>(), exec);
  add_scaled(device, count, 1, xx + 2 * count, trace.elements<float>(), exec);
  sampled(channel_of(volume.values, 0), tissue);
  threshold(device, count, kTissue, tissue.elements<float>(), exec);
  drop_below(GridRows(coarse), trace.elements<float>(), std::numeric_limits<float>::min(),
      tissue.elements<float>(), exec);
  const Moments found = moments(GridRows(coarse), trace.elements<float>(), trace.elements<float>(),
      tissue.elements<float>(), exec);
  const auto lambda = static_cast<float>(damping * found.f / (3 * found.count));
  if (!(lambda > 0)) return {};
  scale(device, h.shape.count(), 1 / lambda, xx, xx, exec);
  return h;
}

}  // namespace similis::registration_internal
