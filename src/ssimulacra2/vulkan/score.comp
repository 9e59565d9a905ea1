#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Sums of groups ─> norms ─> score; a workgroup takes a pair over all its backgrounds, a thread
// one norm. All in integers: it is few numbers, and Vulkan asks no device for exact roots.
#include "src/gpu/glsl/prelude.glsl"
#include "src/ssimulacra2/vulkan/score_words.glsl"

const int kThreads = 64, kSums = 6;

// A norm with a weight.
struct Norm {
  u64 weight;            // f64
  int sums, groups;      // the first of its sums of groups in an image, kSums apart; their number
  int pixels, is_fourth;  // number of pixels of its scale; 1 for the 4-norm
};

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int norm_count, sums_image, backgrounds, first_score;
};
layout(std430, binding = 0) readonly buffer Norms { Norm norms[]; };
layout(std430, binding = 1) readonly buffer Sums { u64 sums[]; };
layout(std430, binding = 2) readonly buffer Exceeded { uint exceeded[]; };  // [image]
layout(std430, binding = 3) writeonly buffer Scores { u64 scores[]; };

shared u64 weighted[kThreads];

void main() {
  int t = int(gl_LocalInvocationID.x), pair = int(gl_WorkGroupID.x);
  u64 lowest = U64(0);
  bool has_exceeded = false;
  for (int background = 0; background < backgrounds; ++background) {
    int image = pair * backgrounds + background;
    has_exceeded = has_exceeded || exceeded[image] != 0u;
    if (t < norm_count) {
      u64 sum = U64(0);
      int from = image * sums_image + norms[t].sums, groups = norms[t].groups;
      // Four are on their way at a time; a 0 behind the last changes nothing.
      for (int group = 0; group < groups; group += 4) {
        int at = from + group * kSums;
        u64 a = sums[at];
        u64 b = group + 1 < groups ? sums[at + kSums] : U64(0);
        u64 c = group + 2 < groups ? sums[at + 2 * kSums] : U64(0);
        u64 d = group + 3 < groups ? sums[at + 3 * kSums] : U64(0);
        sum = f64_sum(f64_sum(f64_sum(f64_sum(sum, a), b), c), d);
      }
      u64 norm = norm_of_sum(sum, norms[t].is_fourth != 0, f64_of_int(norms[t].pixels));
      weighted[t] = f64_product(norms[t].weight, norm);
    }
    barrier();
    if (t == 0) {
      u64 sum = U64(0);
      for (int i = 0; i < norm_count; ++i) sum = f64_sum(sum, weighted[i]);
      u64 score = score_of_sum(sum);
      if (background == 0 || f64_less(score, lowest)) lowest = score;
    }
    barrier();
  }
  const u64 not_a_number = U64(0x7ff8) << 48;
  if (t == 0) scores[first_score + pair] = has_exceeded ? not_a_number : lowest;
}
