// SPDX-License-Identifier: Apache-2.0
// The common call on the GPU: linear interpolation of f32 volumes, zeros outside, at A·x + u(x)
// with u in f32. What cuda_values.cu and cuda_gradients.cu decide for each voxel is decided for the
// launch, and places in an image are 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/warp/formula.h"

namespace similis::warp_internal {

/// Runs the pass if it is such a call. transforms: of each image, in the device's memory.
bool run_fast_values(const Pass& pass, const Transform* transforms, const Execution& exec);

/// sums: what the image's gradient is added to; empty: left out.
bool run_fast_gradients(
    const Pass& pass, const Transform* transforms, const TensorView& sums, const Execution& exec);

/// Elements. Strides along x, y, z and what lies between an image's first and last element fit 32
/// bits.
struct FastStrides {
  std::int64_t image = 0;
  int x = 0, y = 0, z = 0;
};

struct FastPass {
  int out[3];          // voxels of the output along x, y, z
  int last[3];         // the image's last voxel, at least 1
  double first[3];     // Axis::first
  int tiles_z, depth;  // tiles of an image along z, and their voxels there
  int block_channels;  // channels that have blocks of their own, or 1
  int channels;        // that a block takes; 1 where components are channels
  int box_floats;      // that shared memory has room for
  float factor;
  const Transform* transforms;
  const float *image, *field, *addend, *upstream;
  float *output, *field_gradient, *sums;  // addend null: left out
  FastStrides image_strides, field_strides, output_strides, upstream_strides, gradient_strides,
      sums_strides;
  std::int64_t image_channel, output_channel, upstream_channel, sums_channel;
};

/// Along each axis of the image: see split() in cuda_lean.cuh.
constexpr std::int64_t kMostFastVoxels = std::int64_t{1} << 19;

/// A kernel, and how it wants to be launched: blocks take up to `depth` planes.
struct FastKernel {
  void (*function)(FastPass);
  int depth;
  std::size_t box_bytes;  // of shared memory, if there is that much
};

/// step: the distance of voxels along x, 1, or 3 where the channels lie between them.
FastKernel fast_values(int step);
FastKernel fast_gradients(int step);  // to the field
FastKernel fast_scatter(int step);    // to the image

}  // namespace similis::warp_internal
