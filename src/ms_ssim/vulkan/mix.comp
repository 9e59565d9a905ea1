#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// The gradient of a level: that by its own means times its planes' slopes, and each pixel's share
// of what the next coarser level got. A thread a pixel; workgroups: (columns / 64, rows, planes).
// Buffers: 0 slopes: f32, [plane], from `first_slope` on; 1 own: f32; 2 coarse: f32, dense;
//   3 gradient: words, may be `own`. Without a coarser level any buffer may be `coarse`.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/elements.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const int kDtype = kF32;   // of the gradient
layout(constant_id = 1) const int kHasCoarse = 1;
layout(push_constant) uniform Push {
  float one;
  int width, height, channels;
  int coarse_width, coarse_height;
  int shift_x, shift_y, repeats;    // as in halve.comp
  int first_slope;
  int own_offset, own_strides[4];   // the first element; images, channels, rows, columns
  int offset, strides[4];           // of the gradient
};
layout(std430, binding = 0) readonly buffer Slopes { float slopes[]; };
layout(std430, binding = 1) readonly buffer Own { float own[]; };
layout(std430, binding = 2) readonly buffer Coarse { float coarse[]; };
layout(std430, binding = 3) buffer Gradient { uint gradient[]; };

// The share of a fine element in the mean that it goes to, twice: 2 where the rule repeats it.
float twice_share(int position, int shift, int extent, int coarse_extent) {
  int target = (position + shift) / 2;
  if (target >= coarse_extent) return 0.0;
  float count = 0.0;
  for (int k = 0; k < 2; ++k) {
    int index = 2 * target + k - shift;
    if (repeats != 0) index = clamp(index, 0, extent - 1);
    if (index == position) count += 1.0;
  }
  return count;
}

void main() {
  int column = int(gl_GlobalInvocationID.x), row = int(gl_WorkGroupID.y);
  int plane = int(gl_WorkGroupID.z);
  if (column >= width) return;
  int image = plane / channels, channel = plane % channels;
  int from = own_offset + image * own_strides[0] + channel * own_strides[1] +
             row * own_strides[2] + column * own_strides[3];
  // A plane whose product is 0 has gradient 0, also where that by its means is not finite.
  float slope = slopes[first_slope + plane];
  float value = slope == 0.0 ? 0.0 : slope * own[from];
  if (kHasCoarse != 0) {
    float share = 0.25 * twice_share(row, shift_y, height, coarse_height) *
                  twice_share(column, shift_x, width, coarse_width);
    int at = (plane * coarse_height + min((row + shift_y) / 2, coarse_height - 1)) * coarse_width +
             min((column + shift_x) / 2, coarse_width - 1);
    if (share != 0.0) value = fma(share, coarse[at], value);
  }
  int to = offset + image * strides[0] + channel * strides[1] + row * strides[2] +
           column * strides[3];
  STORE_ELEMENT(gradient, kDtype, to, value)
}
