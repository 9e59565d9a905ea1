#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// The sum of a frame's terms with the bits of a loop, and the score: a workgroup a frame. One thread
// walks over the maps, and all of them fetch: groups, the chunks of a group that does not hold, and
// the terms of a chunk that does not hold.
#include "src/gpu/vulkan/prelude.glsl"
#include "src/gpu/vulkan/soft_double.glsl"
#include "src/libvmaf_ssim/vulkan/ordered_sum.glsl"

const int kThreads = 32;

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int count, first_score;  // terms of a frame; place of the first frame's score
  u64 total_weight;        // f64
};
layout(std430, binding = 0) readonly buffer Terms { u64 terms[]; };
layout(std430, binding = 1) readonly buffer Chunks { Map chunks[]; };
layout(std430, binding = 2) readonly buffer Groups { Map groups[]; };
layout(std430, binding = 3) readonly buffer Exceeded { uint exceeded[]; };
layout(std430, binding = 4) writeonly buffer Scores { u64 scores[]; };

shared Map near_groups[kThreads];
shared Map near_chunks[kGroupChunks];
shared u64 near_terms[kChunkTerms];
shared u64 sum;
shared int next_group, next_chunk;  // the first of those fetched that is not added yet

int number_of(int parts) { return (count + parts - 1) / parts; }

void add_terms(int first, int number) {
  int t = int(gl_LocalInvocationID.x);
  for (int i = t; i < number; i += kThreads) near_terms[i] = terms[first + i];
  barrier();
  if (t == 0) {
    u64 total = sum;
    for (int i = 0; i < number; ++i) total = f64_sum(total, near_terms[i]);
    sum = total;
  }
  barrier();
}

void add_chunks(int frame, int group) {
  int t = int(gl_LocalInvocationID.x), first = group * kGroupChunks;
  int here = min(number_of(kChunkTerms) - first, kGroupChunks);
  if (t < here) near_chunks[t] = chunks[frame * number_of(kChunkTerms) + first + t];
  if (t == 0) next_chunk = 0;
  barrier();
  while (true) {
    if (t == 0) {
      u64 total = sum;
      int at = next_chunk;
      while (at < here && advance(near_chunks[at], kChunkTerms, total)) ++at;
      next_chunk = at;
      sum = total;
    }
    barrier();
    int at = next_chunk;
    barrier();
    if (at >= here) break;
    int from = (first + at) * kChunkTerms;
    add_terms(frame * count + from, min(count - from, kChunkTerms));
    if (t == 0) next_chunk = at + 1;
  }
}

void main() {
  int t = int(gl_LocalInvocationID.x), frame = int(gl_WorkGroupID.x);
  int group_count = number_of(kGroupTerms);
  if (t == 0) sum = U64(0);
  for (int first = 0; first < group_count; first += kThreads) {
    int here = min(group_count - first, kThreads);
    if (t < here) near_groups[t] = groups[frame * group_count + first + t];
    if (t == 0) next_group = 0;
    barrier();
    while (true) {
      if (t == 0) {
        u64 total = sum;
        int at = next_group;
        while (at < here && advance(near_groups[at], kGroupTerms, total)) ++at;
        next_group = at;
        sum = total;
      }
      barrier();
      int at = next_group;
      barrier();
      if (at >= here) break;
      add_chunks(frame, first + at);
      if (t == 0) next_group = at + 1;
    }
    barrier();
  }
  if (t != 0) return;
  const u64 not_a_number = U64(0x7ff8) << 48;
  scores[first_score + frame] =
      exceeded[frame] != 0u ? not_a_number : f64_quotient(sum, total_weight);
}
