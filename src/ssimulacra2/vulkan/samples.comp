#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// The first scale: samples of two batches of pictures to X, Y, B and the light of the second scale.
#include "src/gpu/glsl/prelude.glsl"
#include "src/ssimulacra2/vulkan/words.glsl"

const int kU8 = 0, kU16 = 1, kF16 = 2, kBf16 = 3, kF32 = 4;  // DType

layout(constant_id = 1) const int kDtype = kF32;
layout(push_constant) uniform Push {
  float one;
  int width, height;
  int xyb_first, xyb_image;     // in quads: this scale's place in an image; of an image
  int next_first, light_image;  // in floats; next_first is -1 at the last scale
  int offset_x, strides_x[4];   // in elements: to the first; of pictures, channels, rows, columns
  int offset_y, strides_y[4];
  int channels_x, channels_y, is_linear, backgrounds;
  float background[2];
  float unit;  // factor of a sample: 1/255 for bytes
};
layout(std430, binding = 0) readonly buffer X { uint words_x[]; };
layout(std430, binding = 1) readonly buffer Y { uint words_y[]; };
layout(std430, binding = 2) writeonly buffer Planes { float xyb[]; };
layout(std430, binding = 3) writeonly buffer Light { float light_of_scales[]; };
layout(std430, binding = 4) buffer Exceeded { uint exceeded[]; };  // [image]

#include "src/ssimulacra2/vulkan/convert.glsl"

// An f16, by arithmetic that has no subnormal number.
float of_half(uint bits) {
  uint exponent = bits >> 10 & 31u, mantissa = bits & 1023u;
  float small = float(mantissa) * 5.96046448e-8;  // 2^-24
  float value = exponent == 0u    ? small
                : exponent == 31u ? float_of(0x7f800000u | mantissa << 13)
                                  : float_of((exponent + 112u) << 23 | mantissa << 13);
  return (bits & 0x8000u) != 0u ? -value : value;
}
int word_of(int index) {
  return kDtype == kU8 ? index >> 2 : kDtype == kF32 ? index : index >> 1;
}
float element_of(uint word, int index) {
  if (kDtype == kF32) return float_of(word);
  if (kDtype == kU8) return float(word >> (8 * (index & 3)) & 255u);
  uint half_word = word >> (16 * (index & 1)) & 65535u;
  if (kDtype == kU16) return float(half_word);
  return kDtype == kF16 ? of_half(half_word) : float_of(half_word << 16);
}

float sample_at(Pixel p, int channel) {
  int picture = p.image / backgrounds;
  float value;
  if (p.side == 0) {
    int at = offset_x + picture * strides_x[0] + channel * strides_x[1] + p.row * strides_x[2] +
             p.column * strides_x[3];
    value = element_of(words_x[word_of(at)], at);
  } else {
    int at = offset_y + picture * strides_y[0] + channel * strides_y[1] + p.row * strides_y[2] +
             p.column * strides_y[3];
    value = element_of(words_y[word_of(at)], at);
  }
  // Further from 0 than 2^30 squares of squares are not finite.
  if ((bits_of(value) & 0x7fffffffu) > 0x4e800000u) {
    atomicOr(exceeded[p.image], 1u);
    value = 0.0;
  }
  return value * unit;
}

void main() {
  Pixel p = pixel_of_thread();
  int t = int(gl_LocalInvocationID.x), channels = p.side == 0 ? channels_x : channels_y;
  int colors = channels <= 2 ? 1 : 3;
  bool is_inside = p.row < height && p.column < width, has_alpha = channels % 2 == 0;
  float alpha = 1.0;
  if (is_inside && has_alpha) alpha = sample_at(p, colors);
  float behind = p.image % backgrounds == 0 ? background[0] : background[1];
  for (int channel = 0; channel < 3; ++channel) {
    float value = 0.0;
    if (is_inside) {
      value = sample_at(p, min(channel, colors - 1));
      if (has_alpha) value = blended(value, alpha, behind);
      if (is_linear == 0) value = linear_of_srgb(value);
    }
    light[channel][t] = value;
  }
  write_xyb(p);
  write_next_light(p);
}
