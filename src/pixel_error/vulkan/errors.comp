#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Sums of (x - y)² or |x - y| over pixels, and gradients, in one kernel.
// Workgroups: (slots, results): each takes every slots-th run of 128 pixels of its result.
// Buffers: 0 x, 1 y: words; 2 axes: 5 integers each, outermost first: extent and strides in x, y,
//   x_gradient and y_gradient, the axes of results first; 3 sums: f32, [result][slot];
//   4 upstream: words; 5 x_gradient, 6 y_gradient: words; 7 to 10 x, y and the gradients again, in
//   vectors of four. One that is not needed may be any other.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/elements.glsl"

const int kThreads = 128;

layout(local_size_x = kThreads) in;
layout(constant_id = 0) const int kDtype = kF32;  // of all but upstream
layout(constant_id = 1) const int kIsAbsolute = 0;
layout(constant_id = 2) const int kGradients = 0;  // bit 0: by x; bit 1: by y
layout(constant_id = 3) const int kUpstreamDtype = -1;  // -1: there is none, each is 1
// 1: the pixels of a result are dense f32 in all arrays, from multiples of 16 B on, and their number
// is a multiple of four.
layout(constant_id = 4) const int kInVectors = 0;
layout(push_constant) uniform Push {
  float one;
  int axis_count, result_axes;
  int pixels;                // of a result
  int first[4];              // elements of x, y, x_gradient, y_gradient, all indices 0
  float scale;               // of each pixel's number in its result
  int upstream_offset, upstream_strides[2], upstream_channels;
};
layout(std430, binding = 0) readonly buffer X { uint words_x[]; };
layout(std430, binding = 1) readonly buffer Y { uint words_y[]; };
layout(std430, binding = 2) readonly buffer Axes { int axes[]; };
layout(std430, binding = 3) writeonly buffer Sums { float sums[]; };
layout(std430, binding = 4) readonly buffer Upstream { uint words_upstream[]; };
layout(std430, binding = 5) buffer XGradient { uint x_gradient[]; };
layout(std430, binding = 6) buffer YGradient { uint y_gradient[]; };
layout(std430, binding = 7) readonly buffer XVectors { vec4 vectors_x[]; };
layout(std430, binding = 8) readonly buffer YVectors { vec4 vectors_y[]; };
layout(std430, binding = 9) writeonly buffer XGradientVectors { vec4 x_gradient_vectors[]; };
layout(std430, binding = 10) writeonly buffer YGradientVectors { vec4 y_gradient_vectors[]; };

shared float partial_sums[kThreads];

// Elements of x, y and the gradients, `index` places on along the axes from `from` to `last`.
ivec4 moved(ivec4 at, int from, int last, int index) {
  for (int i = last; i >= from; --i) {
    int axis = 5 * i;
    int outer = i > from ? index / axes[axis] : 0, inner = index - outer * axes[axis];
    at += inner * ivec4(axes[axis + 1], axes[axis + 2], axes[axis + 3], axes[axis + 4]);
    index = outer;
  }
  return at;
}

float error_of(float d) { return kIsAbsolute != 0 ? abs(d) : d * d; }
float slope_of(float d, float factor) {
  if (kIsAbsolute == 0) return 2.0 * d * factor;
  return d > 0.0 ? factor : d < 0.0 ? -factor : 0.0;
}

void main() {
  int t = int(gl_LocalInvocationID.x), slot = int(gl_WorkGroupID.x);
  int slots = int(gl_NumWorkGroups.x), result = int(gl_WorkGroupID.y);
  ivec4 start = moved(ivec4(first[0], first[1], first[2], first[3]), 0, result_axes - 1, result);
  float factor = scale;
  if (kUpstreamDtype >= 0) {
    int at = upstream_offset + result / upstream_channels * upstream_strides[0] +
             result % upstream_channels * upstream_strides[1];
    factor *= element_of(kUpstreamDtype, words_upstream[word_of(kUpstreamDtype, at)], at);
  }
  float sum = 0.0, lost = 0.0;  // Kahan's sum
  if (kInVectors != 0) {
    ivec4 from = start / 4;
    for (int i = slot * kThreads + t; i < pixels / 4; i += slots * kThreads) {
      vec4 v = vectors_x[from.x + i], w = vectors_y[from.y + i], slopes;
      float errors[4];
      [[unroll]] for (int k = 0; k < 4; ++k) {
        float d = v[k] - w[k];
        errors[k] = error_of(d);
        slopes[k] = slope_of(d, factor);
      }
      float term = ((errors[0] + errors[1]) + (errors[2] + errors[3])) - lost;
      float longer = sum + term;
      lost = (longer - sum) - term;
      sum = longer;
      if ((kGradients & 1) != 0) x_gradient_vectors[from.z + i] = slopes;
      if ((kGradients & 2) != 0) y_gradient_vectors[from.w + i] = -slopes;
    }
  } else {
    for (int i = slot * kThreads + t; i < pixels; i += slots * kThreads) {
      ivec4 at = moved(start, result_axes, axis_count - 1, i);
      float d = element_of(kDtype, words_x[word_of(kDtype, at.x)], at.x) -
                element_of(kDtype, words_y[word_of(kDtype, at.y)], at.y);
      float term = error_of(d) - lost;
      float longer = sum + term;
      lost = (longer - sum) - term;
      sum = longer;
      float slope = slope_of(d, factor);
      if ((kGradients & 1) != 0) STORE_ELEMENT(x_gradient, kDtype, at.z, slope)
      if ((kGradients & 2) != 0) STORE_ELEMENT(y_gradient, kDtype, at.w, -slope)
    }
  }
  partial_sums[t] = sum;
  barrier();
  for (int half_count = kThreads / 2; half_count > 0; half_count /= 2) {
    if (t < half_count) {
      sum += partial_sums[t + half_count];
      partial_sums[t] = sum;
    }
    barrier();
  }
  if (t == 0) sums[result * slots + slot] = sum;
}
