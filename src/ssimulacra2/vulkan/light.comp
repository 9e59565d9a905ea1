#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// A later scale: the light that the scale before it left to X, Y, B and the light of the next scale.
#include "src/gpu/glsl/prelude.glsl"
#include "src/ssimulacra2/vulkan/words.glsl"

layout(push_constant) uniform Push {
  float one;
  int width, height;
  int xyb_first, xyb_image;                  // in quads: this scale's place in an image; of an image
  int light_first, next_first, light_image;  // in floats; next_first is -1 at the last scale
};
layout(std430, binding = 0) buffer Light { float light_of_scales[]; };
layout(std430, binding = 1) writeonly buffer Planes { float xyb[]; };

#include "src/ssimulacra2/vulkan/convert.glsl"

void main() {
  Pixel p = pixel_of_thread();
  int t = int(gl_LocalInvocationID.x), plane = width * height;
  int at = p.image * light_image + light_first + 3 * p.side * plane + p.row * width + p.column;
  bool is_inside = p.row < height && p.column < width;
  for (int channel = 0; channel < 3; ++channel) {
    light[channel][t] = is_inside ? light_of_scales[at + channel * plane] : 0.0;
  }
  write_xyb(p);
  write_next_light(p);
}
