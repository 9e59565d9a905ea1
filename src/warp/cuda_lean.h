// SPDX-License-Identifier: Apache-2.0
// The common call as cuda_lean.cu takes it.
#pragma once

#include <cstdint>

#include "src/warp/formula.h"

namespace similis::warp_internal {

/// Strides along x, y, z fit 32 bits, products with them do not have to.
struct LeanStrides {
  std::int64_t image = 0;
  int x = 0, y = 0, z = 0;
};

struct LeanPass {
  int out[3];       // voxels of the output along x, y, z
  int last[3];      // the image's last voxel
  double first[3];  // Axis::first
  unsigned tiles_x, tiles_y, tiles;
  int channels;  // 1 where components are channels
  float factor;
  const Transform* transforms;
  const float *image, *field, *addend, *upstream;
  float *output, *field_gradient, *sums;  // null: left out
  LeanStrides image_strides, field_strides, output_strides, upstream_strides, gradient_strides,
      sums_strides;
  std::int64_t image_channel, output_channel, upstream_channel, sums_channel;
};

using LeanKernel = void (*)(LeanPass);

/// step: the distance of voxels along x, 1, or 3 where the channels lie between them.
LeanKernel lean_values_kernel_for(int step);
LeanKernel lean_gradients_kernel_for(int step);

}  // namespace similis::warp_internal
