#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Maps of chunks and groups of terms: a workgroup a group, four threads a chunk. Terms are read
// once, 8 B a pixel, unless one lies halfway between two units: then its chunk is gone through in
// order.
#include "src/gpu/vulkan/prelude.glsl"
#include "src/gpu/vulkan/soft_arithmetic.h"
#include "src/libvmaf_ssim/vulkan/ordered_sum.glsl"

const int kThreads = 128, kChunkThreads = 4;

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int width, height, rows, tiles, stripes;  // rows of a stripe
};
layout(std430, binding = 0) readonly buffer Terms { u64 terms[]; };
layout(std430, binding = 1) readonly buffer TileSums { float tile_sums[]; };
layout(std430, binding = 2) writeonly buffer Chunks { Map chunks[]; };  // [frame][chunk]
layout(std430, binding = 3) writeonly buffer Groups { Map groups[]; };  // [frame][group]

struct Part {
  i64 sums[kBinades];
  u64 reach;
  uint halfway;  // bit i: a term is halfway between units of binade i
};

shared float partial_sums[kThreads];
shared Part parts[kThreads];
shared Map maps[kGroupChunks];

// A term in units: rounded down, and the rest.
struct Units {
  i64 floor;
  bool is_halfway, is_above_halfway;
};

// The unit of a binade is 2^(exponent - 52).
Units units_of(u64 term, int exponent) {
  if (f64_exponent(term) == 0) return Units(i64(0), false, false);
  int down = exponent - f64_exponent(term);
  u64 mantissa = f64_mantissa(term);
  u64 whole = down <= 0 ? mantissa << uint(min(-down, 3)) : down > 54 ? U64(0) : mantissa >> uint(down);
  // The rest, with 55 bits after the point; far below a unit it is only known not to be 0.
  u64 rest = down <= 0 ? U64(0)
             : down > 54 ? U64(1)
                         : (mantissa & ((U64(1) << uint(down)) - U64(1))) << uint(55 - down);
  const u64 middle = U64(1) << 54;
  if (f64_sign(term) == U64(0)) return Units(i64(whole), rest == middle, rest > middle);
  if (rest == U64(0)) return Units(-i64(whole), false, false);
  return Units(-i64(whole) - i64(1), rest == middle, rest < middle);
}

// At least the magnitude in units of the binade; kNoReach for what is far above it.
u64 reach_of(u64 term, int exponent) {
  if (f64_exponent(term) == 0) return U64(0);
  int down = exponent - f64_exponent(term);
  if (down < -1) return kNoReach;
  if (down < 0) return f64_mantissa(term) << 1;
  return down > 54 ? U64(1) : (f64_mantissa(term) >> uint(down)) + U64(1);
}

// About what the sum is before the frame's term, as if it grew evenly within a stripe. All threads
// of the workgroup call it, and all get the same.
float expected_before(int frame, int term) {
  int t = int(gl_LocalInvocationID.x);
  int stripe_terms = rows * width, stripe = term / stripe_terms;
  int in_stripe = min(stripe_terms, (height - stripe * rows) * width);
  float part = float(term - stripe * stripe_terms) / float(in_stripe);
  float sum = 0.0;
  int first = frame * stripes * tiles, before = stripe * tiles;
  for (int i = t; i < before + tiles; i += kThreads) {
    sum += tile_sums[first + i] * (i < before ? 1.0 : part);
  }
  partial_sums[t] = sum;
  barrier();
  float total = 0.0;
  for (int i = 0; i < kThreads; ++i) total += partial_sums[i];
  return total;
}

// The lowest binade of a group's maps. An f32 stands for sums of normal size only; another sum is
// added to term by term.
int first_exponent_about(float expected) {
  return int(bits_of(expected) >> 23 & 255u) - 127 + 1023 - 1;
}

Part part_of(int first, int count, int exponent) {
  Part part = Part(i64[kBinades](i64(0), i64(0), i64(0)), U64(0), 0u);
  for (int i = int(gl_LocalInvocationID.x) % kChunkThreads; i < count; i += kChunkThreads) {
    u64 term = terms[first + i];
    part.reach += reach_of(term, exponent);
    [[unroll]] for (int b = 0; b < kBinades; ++b) {
      Units units = units_of(term, exponent + b);
      part.sums[b] += units.floor + i64(units.is_above_halfway ? 1 : 0);
      if (units.is_halfway) part.halfway |= 1u << b;
    }
  }
  return part;
}

// Adds a chunk's terms to a sum of this parity as they come: each that is halfway makes it even.
i64 in_order(int first, int count, int exponent, i64 start) {
  i64 sum = start;
  for (int i = 0; i < count; ++i) {
    Units units = units_of(terms[first + i], exponent);
    sum += units.floor;
    if (units.is_above_halfway || (units.is_halfway && (sum & i64(1)) != i64(0))) sum += i64(1);
  }
  return sum - start;
}

// Binade b of a map with halfway terms.
void map_in_order(int b, int first, int count, inout Map map) {
  map.from_even[b] = in_order(first, count, map.first_exponent + b, i64(0));
  map.from_odd[b] = in_order(first, count, map.first_exponent + b, i64(1));
}

Map chunk_map(int chunk, int first, int count, int exponent) {
  Map map;
  map.first_exponent = exponent;
  map.unused = 0;
  map.reach = U64(0);
  uint halfway = 0u;
  [[unroll]] for (int b = 0; b < kBinades; ++b) map.from_even[b] = i64(0);
  [[unroll]] for (int k = 0; k < kChunkThreads; ++k) {
    map.reach += parts[kChunkThreads * chunk + k].reach;
    halfway |= parts[kChunkThreads * chunk + k].halfway;
    [[unroll]] for (int b = 0; b < kBinades; ++b) {
      map.from_even[b] += parts[kChunkThreads * chunk + k].sums[b];
    }
  }
  map.reach = min(map.reach, kNoReach);
  [[unroll]] for (int b = 0; b < kBinades; ++b) map.from_odd[b] = map.from_even[b];
  // No loop: spirv-opt does not unroll one around the loops in here.
  if ((halfway & 1u) != 0u) map_in_order(0, first, count, map);
  if ((halfway & 2u) != 0u) map_in_order(1, first, count, map);
  if ((halfway & 4u) != 0u) map_in_order(2, first, count, map);
  return map;
}

// Map a and then map b.
Map then(Map a, Map b) {
  Map both = a;
  both.reach = min(a.reach + b.reach, kNoReach);
  [[unroll]] for (int i = 0; i < kBinades; ++i) {
    bool even_turns = (a.from_even[i] & i64(1)) != i64(0);
    bool odd_turns = (a.from_odd[i] & i64(1)) != i64(0);
    both.from_even[i] += even_turns ? b.from_odd[i] : b.from_even[i];
    both.from_odd[i] += odd_turns ? b.from_even[i] : b.from_odd[i];
  }
  return both;
}

void main() {
  int t = int(gl_LocalInvocationID.x), frame = int(gl_WorkGroupID.y);
  int group = int(gl_WorkGroupID.x), count = width * height;
  int first_of_frame = frame * count, first_of_group = group * kGroupTerms;
  float expected = expected_before(frame, min(first_of_group + kGroupTerms / 2, count - 1));
  int exponent = first_exponent_about(expected);
  int first = first_of_group + t / kChunkThreads * kChunkTerms;
  parts[t] = part_of(first_of_frame + first, clamp(count - first, 0, kChunkTerms), exponent);
  barrier();
  int in_group = min((count - first_of_group + kChunkTerms - 1) / kChunkTerms, kGroupChunks);
  if (t < in_group) {
    int from = first_of_group + t * kChunkTerms, here = min(count - from, kChunkTerms);
    Map map = chunk_map(t, first_of_frame + from, here, exponent);
    chunks[frame * ((count + kChunkTerms - 1) / kChunkTerms) + group * kGroupChunks + t] = map;
    maps[t] = map;
  }
  barrier();
  if (t != 0) return;
  Map all = maps[0];
  for (int i = 1; i < in_group; ++i) all = then(all, maps[i]);
  groups[frame * ((count + kGroupTerms - 1) / kGroupTerms) + group] = all;
}
