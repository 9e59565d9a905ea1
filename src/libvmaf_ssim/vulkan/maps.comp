#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Maps of chunks and groups of terms: a workgroup a group, a thread a chunk, of which it goes through
// the terms in order, for an even and for an odd sum before them: a term halfway between two units
// makes either even. Terms are read once, 8 B a pixel, and 1 B a pixel is written.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_arithmetic.h"
#include "src/libvmaf_ssim/vulkan/ordered_sum.glsl"

const int kThreads = kGroupChunks;

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int width, height, rows, tiles, stripes;  // rows of a stripe
};
layout(std430, binding = 0) readonly buffer Terms { u64 terms[]; };
layout(std430, binding = 1) readonly buffer TileSums { float tile_sums[]; };
layout(std430, binding = 2) writeonly buffer Chunks { Map chunks[]; };  // [frame][chunk]
layout(std430, binding = 3) writeonly buffer Groups { Map groups[]; };  // [frame][group]

shared float partial_sums[kThreads];
shared Map maps[kThreads];

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

// Adds a term to the units that a sum of this parity before the part has got to.
i64 with_term(i64 units, Units term, i64 before) {
  units += term.floor;
  bool is_odd = (u64(units + before) & U64(1)) != U64(0);
  return units + i64(term.is_above_halfway || (term.is_halfway && is_odd) ? 1 : 0);
}

Map chunk_of(int first, int count, int exponent) {
  Map map;
  map.first_exponent = exponent;
  [[unroll]] for (int b = 0; b < kBinades; ++b) {
    map.from_even[b] = i64(0);
    map.from_odd[b] = i64(0);
  }
  u64 above = U64(0), below = U64(0), next = count > 0 ? terms[first] : U64(0);
  for (int i = 0; i < count; ++i) {
    u64 term = next;
    if (i + 1 < count) next = terms[first + i + 1];
    u64 reach = reach_of(term, exponent);
    bool is_negative = f64_sign(term) != U64(0);
    above += is_negative ? U64(0) : reach;
    below += is_negative ? reach : U64(0);
    [[unroll]] for (int b = 0; b < kBinades; ++b) {
      Units units = units_of(term, exponent + b);
      map.from_even[b] = with_term(map.from_even[b], units, i64(0));
      map.from_odd[b] = with_term(map.from_odd[b], units, i64(1));
    }
  }
  map.above = min(above, kNoReach);
  const u64 below_unit = U64(1) << uint(kBelowBits);
  map.below = uint((min(below, kNoReach - below_unit) + below_unit - U64(1)) >> uint(kBelowBits));
  return map;
}

// Map a and then map b.
Map then(Map a, Map b) {
  Map both = a;
  both.above = min(a.above + b.above, kNoReach);
  both.below = a.below + min(b.below, ~a.below);
  [[unroll]] for (int i = 0; i < kBinades; ++i) {
    Step step = then(Step(a.from_even[i], a.from_odd[i]), Step(b.from_even[i], b.from_odd[i]));
    both.from_even[i] = step.from_even;
    both.from_odd[i] = step.from_odd;
  }
  return both;
}

void main() {
  int t = int(gl_LocalInvocationID.x), frame = int(gl_WorkGroupID.y);
  int group = int(gl_WorkGroupID.x), count = width * height;
  int first_of_frame = frame * count, first_of_group = group * kGroupTerms;
  float expected = expected_before(frame, min(first_of_group + kGroupTerms / 2, count - 1));
  int exponent = first_exponent_about(expected);
  int first = first_of_group + t * kChunkTerms;
  int in_group = min((count - first_of_group + kChunkTerms - 1) / kChunkTerms, kGroupChunks);
  if (t < in_group) {
    Map map = chunk_of(first_of_frame + first, min(count - first, kChunkTerms), exponent);
    maps[t] = map;
    chunks[frame * ((count + kChunkTerms - 1) / kChunkTerms) + group * kGroupChunks + t] = map;
  }
  // Chunks are composed in pairs, then pairs of those.
  for (int distance = 1; distance < kGroupChunks; distance *= 2) {
    barrier();
    if (t % (2 * distance) == 0 && t + distance < in_group)
      maps[t] = then(maps[t], maps[t + distance]);
  }
  if (t == 0) groups[frame * ((count + kGroupTerms - 1) / kGroupTerms) + group] = maps[0];
}
