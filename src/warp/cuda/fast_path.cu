// SPDX-License-Identifier: Apache-2.0
// Decides which calls take the fast path, and launches them.
#include "src/warp/cuda/fast_path.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "src/gpu/cuda/vendor.h"
#include "src/warp/cuda/pass.h"

namespace similis::warp_internal {
namespace {

bool fits_32_bits(std::int64_t stride) {
  return stride > -(std::int64_t{1} << 31) && stride < std::int64_t{1} << 31;
}

// Returns 3 if the components of a voxel lie beside each other, else 1.
int step_of(const Pass& pass) {
  const Extents& s = pass.image.strides;
  return pass.channels == 3 && s[1] == 1 && s[4] == 3 ? 3 : 1;
}

// Returns whether the fast path takes an image [N,C,Z,Y,X] whose voxels along x are `step` apart.
bool is_fast(const TensorView& image, int step) {
  const Extents& s = image.strides;
  return image.dtype == DType::f32 && s[4] == step && (step == 1 || s[1] == 1) &&
         fits_32_bits(s[3]) && fits_32_bits(s[2]);
}

// Returns whether kernels can gather from an image, or scatter to it, by offsets of 32 bits.
bool has_short_places(const TensorView& image) {
  std::int64_t span = 3;
  for (int axis = 2; axis < 5; ++axis) {
    if (image.shape[axis] < 2 || image.shape[axis] > kMostFastVoxels) return false;
    span += (image.shape[axis] - 1) * std::abs(image.strides[axis]);
  }
  return fits_32_bits(span);
}

// Returns whether the fast path takes a field [N,Z,Y,X,3]: components lie beside each other, and so
// do voxels along x.
bool is_fast_field(const TensorView& field) {
  const Extents& s = field.strides;
  return field.dtype == DType::f32 && s[4] == 1 && s[3] == 3 && fits_32_bits(s[2]) &&
         fits_32_bits(s[1]);
}

bool is_fast(const Pass& pass) {
  return pass.form == Form::image && pass.mode == Interpolation::linear &&
         pass.padding == Outside::zeros && pass.rank == 3 && !pass.is_grid &&
         pass.grid_affine.empty() && !pass.field.empty() && is_fast_field(pass.field) &&
         is_fast(pass.image, step_of(pass)) && has_short_places(pass.image);
}

FastStrides strides_of(const TensorView& image) {
  const Extents& s = image.strides;
  return {s[0], static_cast<int>(s[4]), static_cast<int>(s[3]), static_cast<int>(s[2])};
}

FastStrides field_strides_of(const TensorView& field) {
  const Extents& s = field.strides;
  return {s[0], static_cast<int>(s[3]), static_cast<int>(s[2]), static_cast<int>(s[1])};
}

FastPass fast_pass(const Pass& pass, const Transform* transforms) {
  FastPass p{};
  for (int a = 0; a < 3; ++a) {
    p.out[a] = static_cast<int>(pass.axes[a].out_extent);
    p.last[a] = static_cast<int>(pass.axes[a].extent - 1);
    p.first[a] = pass.axes[a].first;
  }
  p.channels = step_of(pass) == 3 ? 1 : static_cast<int>(pass.channels);
  p.block_channels = 1;
  p.factor = static_cast<float>(pass.factor);
  p.transforms = transforms;
  p.image = static_cast<const float*>(pass.image.data());
  p.image_strides = strides_of(pass.image);
  p.image_channel = pass.image.strides[1];
  p.field = static_cast<const float*>(pass.field.data());
  p.field_strides = field_strides_of(pass.field);
  return p;
}

constexpr std::int64_t kMostBlocksAcross = 65535;
constexpr int kLeastDepth = 4;  // of a column

dim3 blocks_of(const Pass& pass, const FastPass& p, int depth) {
  const auto tiles = [](int extent, int tile) {
    return static_cast<unsigned>((extent + tile - 1) / tile);
  };
  return {tiles(p.out[0], kTileX), tiles(p.out[1], kTileY),
      tiles(p.out[2], depth) * static_cast<unsigned>(pass.batch * p.block_channels)};
}

// Returns whether no launch needs more blocks than a launch may have.
bool fits_launches(const Pass& pass) {
  const Axis* axes = pass.axes;
  return axes[0].out_extent < INT32_MAX && axes[1].out_extent <= kMostBlocksAcross &&
         (axes[2].out_extent / kLeastDepth + 1) * pass.batch * pass.channels <= kMostBlocksAcross;
}

void launch(const Pass& pass, FastPass p, const FastKernel& kernel, const Execution& exec) {
  const gpu::Limits& limits = gpu::limits(pass.image.device);
  // Columns have fewer voxels if the GPU would not have enough blocks.
  p.depth = kernel.depth;
  dim3 blocks = blocks_of(pass, p, p.depth);
  const auto enough = 8u * static_cast<unsigned>(limits.multiprocessors);
  while (
      kernel.box_bytes == 0 && p.depth > kLeastDepth && blocks.x * blocks.y * blocks.z < enough) {
    p.depth /= 2;
    blocks = blocks_of(pass, p, p.depth);
  }
  p.tiles_z = (p.out[2] + p.depth - 1) / p.depth;
  std::size_t bytes = 0;
  if (kernel.box_bytes > 0) {
    constexpr std::size_t kStatic = 64;
    bytes =
        std::min(kernel.box_bytes, static_cast<std::size_t>(limits.shared_bytes_a_block) - kStatic);
    p.box_floats = static_cast<int>(bytes / sizeof(float));
    gpu::allow_shared_bytes(kernel.function, bytes);
  }
  gpu::launch(pass.operation, exec.queue.handle, blocks, kThreads, bytes, kernel.function, p);
}

}  // namespace

bool run_fast_values(const Pass& pass, const Transform* transforms, const Execution& exec) {
  const int step = step_of(pass);
  const bool has_addend = !pass.addend.empty();
  if (!is_fast(pass) || !fits_launches(pass) || pass.output.empty() ||
      !is_fast(pass.output, step) ||
      (has_addend &&
          (pass.addend.dtype != DType::f32 || pass.addend.strides != pass.output.strides))) {
    return false;
  }
  FastPass p = fast_pass(pass, transforms);
  p.addend = static_cast<const float*>(pass.addend.data());
  p.output = static_cast<float*>(pass.output.data());
  p.output_strides = strides_of(pass.output);
  p.output_channel = pass.output.strides[1];
  launch(pass, p, fast_values(step), exec);
  return true;
}

bool run_fast_gradients(
    const Pass& pass, const Transform* transforms, const TensorView& sums, const Execution& exec) {
  const int step = step_of(pass);
  const TensorView& by_field = pass.field_gradient;
  const bool is_alone =
      pass.affine_gradient.empty() && pass.grid_affine_gradient.empty() && !pass.deterministic;
  if (!is_fast(pass) || !fits_launches(pass) || !is_alone || !is_fast(pass.upstream, step) ||
      (!by_field.empty() && (!is_fast_field(by_field) || pass.images_of_field() > 1)) ||
      (!sums.empty() && (!is_fast(sums, step) || !has_short_places(sums)))) {
    return false;
  }
  FastPass p = fast_pass(pass, transforms);
  p.upstream = static_cast<const float*>(pass.upstream.data());
  p.upstream_strides = strides_of(pass.upstream);
  p.upstream_channel = pass.upstream.strides[1];
  if (!by_field.empty()) {
    p.field_gradient = static_cast<float*>(by_field.data());
    p.gradient_strides = field_strides_of(by_field);
    launch(pass, p, fast_gradients(step), exec);
  }
  if (!sums.empty()) {
    p.sums = static_cast<float*>(sums.data());
    p.sums_strides = strides_of(sums);
    if (sums.shape[0] < pass.batch) p.sums_strides.image = 0;
    p.sums_channel = sums.strides[1];
    p.block_channels = p.channels;
    launch(pass, p, fast_scatter(step), exec);
  }
  return true;
}

}  // namespace similis::warp_internal
