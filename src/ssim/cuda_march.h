// SPDX-License-Identifier: Apache-2.0
// What the march kernel is given, and who queues it.
#pragma once

#include <cstdint>

#include "src/ssim/cuda_plan.h"

namespace similis::ssim_internal {

/// f32 planes with 16-byte rows, and where their map lies. Work is counted in rows of strips of
/// columns: `rows` of each strip, `strips` a plane; blocks take equal shares of them in order.
struct March {
  const float *x, *y;
  std::int64_t row_stride, plane_stride, planes, first_plane;
  int width, height;
  int strips, rows;
  int first_column, first_row;         ///< of what the first strip loads; outside the image too
  int map_x0, map_x1, map_y0, map_y1;  ///< pixels that windows are centred on
  float taps[6];                       ///< the first half and the middle one
  float c1, c2;                        ///< 2·C1, infinite for the contrast term alone, and 2·C2
  const PlaneSlopes* slopes;
  float* gradient;  ///< by x
  std::int64_t gradient_row_stride, gradient_plane_stride;
  double* partials;  ///< [block + strip's number]
};

/// Columns that a strip owns, and how many blocks a launch takes; then the launch.
struct MarchShape {
  int owned, loaded;
};
MarchShape value_shape(bool wide);
MarchShape gradient_shape(bool wide);
int value_blocks(const March& march, bool wide);
int gradient_blocks(const March& march, bool wide);
void launch_value_march(const March& march, bool wide, int blocks, const Execution& exec);
void launch_gradient_march(const March& march, bool wide, int blocks, const Execution& exec);

}  // namespace similis::ssim_internal
