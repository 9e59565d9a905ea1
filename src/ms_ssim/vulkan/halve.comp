#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// The next coarser level of two images, as x + y and x - y: each element is the mean of 2 × 2 finer
// ones, chosen as src/window/halving.h says. A thread each; workgroups: (columns / 64, rows,
// planes).
// Both are less their plane's ground: 0, or what they are at one pixel where the contrast is small, as
// f32 would round it away. Images give the ground, levels of sums keep it.
// Buffers: 0 x, 1 y: words; 2 sum, 3 difference: f32, dense; 4 ground: f32, [plane][2].
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/elements.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const int kDtype = kF32;
layout(constant_id = 1) const int kOfSums = 0;  // 1: x holds x + y and y holds x - y
layout(push_constant) uniform Push {
  float one;
  int width, height, channels;   // of the finer level
  int coarse_width, coarse_height;
  int shift_x, shift_y;          // of the first pair to the left and up
  int repeats;                   // 1: elements outside are those at the border, else 0
  int offset_x, strides_x[4];    // the first element; images, channels, rows, columns
  int offset_y, strides_y[4];
};
layout(std430, binding = 0) readonly buffer X { uint words_x[]; };
layout(std430, binding = 1) readonly buffer Y { uint words_y[]; };
layout(std430, binding = 2) writeonly buffer Sum { float sum[]; };
layout(std430, binding = 3) writeonly buffer Difference { float difference[]; };
layout(std430, binding = 4) buffer Ground { vec2 ground[]; };

float x_at(int index) { return element_of(kDtype, words_x[word_of(kDtype, index)], index); }
float y_at(int index) { return element_of(kDtype, words_y[word_of(kDtype, index)], index); }

// The finer element of a coarse one; -1 where a zero stands.
int fine(int coarse, int k, int shift, int extent) {
  int index = 2 * coarse + k - shift;
  if (index >= 0 && index < extent) return index;
  return repeats != 0 ? clamp(index, 0, extent - 1) : -1;
}

void main() {
  int column = int(gl_GlobalInvocationID.x), row = int(gl_WorkGroupID.y);
  int plane = int(gl_WorkGroupID.z);
  if (column >= coarse_width) return;
  int image = plane / channels, channel = plane % channels;
  int first_x = offset_x + image * strides_x[0] + channel * strides_x[1];
  int first_y = offset_y + image * strides_y[0] + channel * strides_y[1];
  // x and y at the middle of an image whose contrast is small, else 0; and their sum and difference.
  float middle_x = 0.0, middle_y = 0.0;
  bool are_apart = false;  // and x - y is rounded
  vec2 less = vec2(0.0);
  if (kOfSums != 0) {
    less = ground[plane];
  } else {
    int of_x = first_x + height / 2 * strides_x[2] + width / 2 * strides_x[3];
    int of_y = first_y + height / 2 * strides_y[2] + width / 2 * strides_y[3];
    float x = x_at(of_x), y = y_at(of_y);
    float contrast = abs(x_at(first_x) - x) + abs(y_at(first_y) - y);
    if (16.0 * contrast < abs(x) + abs(y)) {  // false if one is not a number or not finite
      middle_x = x;
      middle_y = y;
      less = vec2(x + y, x - y);
      are_apart = abs(less.y) > min(abs(x), abs(y));
    }
    if (row == 0 && column == 0) ground[plane] = less;
  }
  float of_sum = 0.0, of_difference = 0.0;
  for (int k = 0; k < 4; ++k) {
    int y = fine(row, k >> 1, shift_y, height), x = fine(column, k & 1, shift_x, width);
    if (x < 0 || y < 0) {
      of_sum -= less.x;
      of_difference -= less.y;
      continue;
    }
    int at_x = first_x + y * strides_x[2] + x * strides_x[3];
    int at_y = first_y + y * strides_y[2] + x * strides_y[3];
    float a = x_at(at_x), b = y_at(at_y), near_a = a - middle_x, near_b = b - middle_y;
    of_sum += kOfSums != 0 ? a : near_a + near_b;
    of_difference += kOfSums != 0 ? b : are_apart ? near_a - near_b : (a - b) - less.y;
  }
  int to = (plane * coarse_height + row) * coarse_width + column;
  sum[to] = 0.25 * of_sum;
  difference[to] = 0.25 * of_difference;
}
