#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// The sum of a frame's terms with the bits of a loop, and the score: a workgroup a frame. A thread has
// the map of a group, and all of them together find how far the maps hold: steps compose in any order.
// If a group's map fails they take its chunks; if a chunk's fails, one thread adds its terms.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"
#include "src/libvmaf_ssim/vulkan/ordered_sum.glsl"

const int kThreads = kGroupChunks;

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

shared Step steps[2][kThreads];  // the step before is read while the next is written
shared u64 near_terms[kChunkTerms];
shared u64 sum;
shared int first_failing;

int number_of(int parts) { return (count + parts - 1) / parts; }

// Adds the terms of a chunk one by one.
void add_terms(int first, int number) {
  int t = int(gl_LocalInvocationID.x);
  if (t < kChunkTerms) near_terms[t] = t < number ? terms[first + t] : U64(0);
  barrier();
  if (t == 0) {
    u64 total = sum;
    // Four are loaded while the ones before them are added; zeros behind the last change nothing.
    for (int i = 0; i < number; i += 4) {
      u64 a = near_terms[i], b = near_terms[i + 1], c = near_terms[i + 2], d = near_terms[i + 3];
      total = f64_sum(f64_sum(f64_sum(f64_sum(total, a), b), c), d);
    }
    sum = total;
  }
  barrier();
}

// Adds the maps of threads at, at + 1, … below `here`, as long as they hold, and returns the first that
// does not. Each is of so many terms. All threads call it, and see the sum.
int advance(Map map, int terms_of_map, int at, int here) {
  int t = int(gl_LocalInvocationID.x);
  u64 start = sum;
  int binade = f64_exponent(start) - map.first_exponent;
  bool counts = t >= at && t < here;
  bool fits = counts && binade >= 0 && binade < kBinades && f64_exponent(start) != 0;
  Step all = Step(i64(0), i64(0));
  if (fits) all = step_in(map, binade);
  // The steps of all threads up to this one.
  int side = 0;
  for (int distance = 1; distance < kThreads; distance *= 2) {
    steps[side][t] = all;
    barrier();
    if (t >= distance) all = then(steps[side][t - distance], all);
    side = 1 - side;
  }
  steps[side][t] = all;
  if (t == 0) first_failing = here;
  barrier();
  u64 mantissa = f64_mantissa(start);
  bool is_negative = f64_sign(start) != U64(0);
  i64 units = i64(is_negative ? U64(0) - mantissa : mantissa), before = units;
  if (t > 0) before += step_from(steps[side][t - 1], units);
  u64 size = u64(is_negative ? -before : before);
  if (counts && !(fits && holds(map, binade, terms_of_map, size, is_negative)))
    atomicMin(first_failing, t);
  barrier();
  int end = first_failing;
  if (t == end - 1 && t >= at) {
    i64 after = units + step_from(all, units);
    u64 result = u64(is_negative ? -after : after);
    sum = f64_sign(start) | (u64(f64_exponent(start)) << 52) | (result & ((U64(1) << 52) - U64(1)));
  }
  barrier();
  return end;
}

void add_chunks(int frame, int group) {
  int t = int(gl_LocalInvocationID.x), first = group * kGroupChunks;
  int here = min(number_of(kChunkTerms) - first, kGroupChunks);
  Map map = chunks[frame * number_of(kChunkTerms) + first + min(t, here - 1)];
  for (int at = advance(map, kChunkTerms, 0, here); at < here;
       at = advance(map, kChunkTerms, at + 1, here)) {
    int from = (first + at) * kChunkTerms;
    add_terms(frame * count + from, min(count - from, kChunkTerms));
  }
}

void main() {
  int t = int(gl_LocalInvocationID.x), frame = int(gl_WorkGroupID.x);
  int group_count = number_of(kGroupTerms);
  if (t == 0) sum = U64(0);
  barrier();
  int first_map = frame * group_count, last_map = first_map + group_count - 1;
  Map next = groups[min(first_map + t, last_map)];
  for (int first = 0; first < group_count; first += kThreads) {
    int here = min(group_count - first, kThreads);
    Map map = next;  // the next ones are on their way while these are gone through
    next = groups[min(first_map + first + kThreads + t, last_map)];
    for (int at = advance(map, kGroupTerms, 0, here); at < here;
         at = advance(map, kGroupTerms, at + 1, here)) {
      add_chunks(frame, first + at);
    }
  }
  if (t != 0) return;
  const u64 not_a_number = U64(0x7ff8) << 48;
  scores[first_score + frame] =
      exceeded[frame] != 0u ? not_a_number : f64_quotient(sum, total_weight);
}
