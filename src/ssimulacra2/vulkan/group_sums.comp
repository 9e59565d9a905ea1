#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Adds the sums of a group of columns over its stripes, from the top; a thread takes one sum.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"
#include "src/ssimulacra2/vulkan/jobs.glsl"

const int kThreads = 64;

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int partials_image, sums_image;  // of an image, in f64
};
layout(std430, binding = 1) readonly buffer Partials { u64 partials[]; };
layout(std430, binding = 2) writeonly buffer Sums { u64 sums[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x), index = int(gl_WorkGroupID.y);
  int image = int(gl_WorkGroupID.z);
  int count = (jobs[index].width + kGroup - 1) / kGroup * kSums;
  if (i >= count) return;
  int stripes = (jobs[index].height + kStripe - 1) / kStripe;
  int from = image * partials_image + jobs[index].partials + i;
  u64 sum = U64(0);
  // Four are on their way at a time; a 0 behind the last changes nothing.
  for (int stripe = 0; stripe < stripes; stripe += 4) {
    int at = from + stripe * count;
    u64 a = partials[at];
    u64 b = stripe + 1 < stripes ? partials[at + count] : U64(0);
    u64 c = stripe + 2 < stripes ? partials[at + 2 * count] : U64(0);
    u64 d = stripe + 3 < stripes ? partials[at + 3 * count] : U64(0);
    sum = f64_sum(f64_sum(f64_sum(f64_sum(sum, a), b), c), d);
  }
  sums[image * sums_image + jobs[index].sums + i] = sum;
}
