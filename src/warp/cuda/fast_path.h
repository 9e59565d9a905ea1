// SPDX-License-Identifier: Apache-2.0
// The fast path on the GPU: linear interpolation of f32 volumes, with zeros outside, at A·x + u(x)
// with u in f32. Decisions that values.cu and gradients.cu make for each voxel are made for the
// launch here, and offsets in an image have 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/warp/formula.h"

namespace similis::warp_internal {

/// Runs the pass if the fast path takes it. `transforms` is in the device's memory, one for each
/// image.
bool run_fast_values(const Pass& pass, const Transform* transforms, const Execution& exec);

/// The image's gradient is added to `sums`, if that is not empty.
bool run_fast_gradients(
    const Pass& pass, const Transform* transforms, const TensorView& sums, const Execution& exec);

/// Strides count elements. Those along x, y, z and the distance between an image's first and last
/// element fit 32 bits.
struct FastStrides {
  std::int64_t image = 0;
  int x = 0, y = 0, z = 0;
};

struct FastPass {
  int out[3];          // number of voxels of the output along x, y, z
  int last[3];         // the image's last voxel, at least 1
  double first[3];     // Axis::first
  int tiles_z, depth;  // number of tiles of an image along z, and of their voxels there
  int block_channels;  // number of channels that have blocks of their own, or 1
  int channels;        // number that a block takes; 1 if components are channels
  int box_floats;      // number of floats of shared memory
  float factor;
  const Transform* transforms;
  const float *image, *field, *addend, *upstream;
  float *output, *field_gradient, *sums;  // addend is null if there is none
  FastStrides image_strides, field_strides, output_strides, upstream_strides, gradient_strides,
      sums_strides;
  std::int64_t image_channel, output_channel, upstream_channel, sums_channel;
};

/// The largest extent along each axis of the image: see split() in fast_path.cuh.
constexpr std::int64_t kMostFastVoxels = std::int64_t{1} << 19;

/// A kernel, and the shape of its launch: blocks take up to `depth` planes.
struct FastKernel {
  void (*function)(FastPass);
  int depth;
  std::size_t box_bytes;  // wanted bytes of shared memory
};

/// `step` is the distance of voxels along x: 1, or 3 if the channels lie between them.
FastKernel fast_values(int step);
FastKernel fast_gradients(int step);  // to the field
FastKernel fast_scatter(int step);    // to the image

}  // namespace similis::warp_internal
