#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Gradients of padded images folded back: each pixel adds what the positions that showed it got.
// Workgroups: (columns / 64, rows, planes).
// Buffers: 0 padded: f32, [plane][height + 2·radius_y][pitch], pitch the first
//   multiple of kPitchOf from width + 2·radius_x on; 1 gradient: words.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/elements.glsl"

const int kReflect = 2;

layout(local_size_x = 64) in;
layout(constant_id = 0) const int kDtype = kF32;  // of the gradient
layout(constant_id = 1) const int kPitchOf = 1;   // rows of `padded` are a multiple of it
layout(push_constant) uniform Push {
  float one;
  int width, height, channels;
  int radius_x, radius_y, padding;  // reflect or replicate
  int offset, strides[4];           // of the gradient: its first element; images, …, columns
};
layout(std430, binding = 0) readonly buffer Padded { float padded[]; };
layout(std430, binding = 1) buffer Gradient { uint gradient[]; };

// The number of positions that may show a pixel, and the k-th of them; outside [-radius, extent +
// radius) if it does not.
int positions(int pixel, int extent, int radius) {
  int near = padding == kReflect ? radius : 0;
  if (pixel > near && pixel < extent - 1 - near) return 1;
  return padding == kReflect ? 3 : 2 * radius + 1;
}
int position_of(int pixel, int extent, int radius, int k) {
  const int kNone = -1000;
  if (k == 0) return pixel;
  if (padding == kReflect) {
    if (k == 1) return pixel > 0 ? -pixel : kNone;
    return pixel < extent - 1 ? 2 * (extent - 1) - pixel : kNone;
  }
  if (k <= radius) return pixel == 0 ? -k : kNone;
  return pixel == extent - 1 ? pixel + k - radius : kNone;
}
bool exists(int position, int extent, int radius) {
  return position >= -radius && position < extent + radius;
}

void main() {
  int column = int(gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x);
  int row = int(gl_WorkGroupID.y), plane = int(gl_WorkGroupID.z);
  if (column >= width) return;
  int pitch = (width + 2 * radius_x + kPitchOf - 1) / kPitchOf * kPitchOf;
  int first = plane * pitch * (height + 2 * radius_y) + radius_y * pitch + radius_x;
  int rows = positions(row, height, radius_y), columns = positions(column, width, radius_x);
  float sum = 0.0;
  for (int i = 0; i < rows; ++i) {
    int y = position_of(row, height, radius_y, i);
    if (!exists(y, height, radius_y)) continue;
    for (int k = 0; k < columns; ++k) {
      int x = position_of(column, width, radius_x, k);
      if (exists(x, width, radius_x)) sum += padded[first + y * pitch + x];
    }
  }
  int to = offset + (plane / channels) * strides[0] + (plane % channels) * strides[1] +
           row * strides[2] + column * strides[3];
  STORE_ELEMENT(gradient, kDtype, to, sum)
}
