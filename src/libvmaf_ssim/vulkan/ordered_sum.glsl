// SPDX-License-Identifier: Apache-2.0
// Maps of a running sum (integer/ordered_sum.h) by a chunk of terms, in integers: while the sum
// stays in one binade, it and what the chunk adds are whole numbers of units. Maps of a group's
// chunks are for the same three binades, so that they always compose.
const int kBinades = 3;
const int kChunkTerms = 64, kGroupChunks = 128, kGroupTerms = kChunkTerms * kGroupChunks;

struct Map {
  i64 from_even[kBinades], from_odd[kBinades];  // units that are added to an even or an odd sum
  u64 above;           // in units of the lowest binade: no partial sum gets further above its start
  int first_exponent;  // as in the bits of an f64, 1023 for 1
  uint below;          // the same below the start, in 2^24 units; 0 where no term is negative
};
const int kBelowBits = 24;

// More units than any sum has: a map that holds nowhere.
const u64 kNoReach = U64(1) << 56;

// The units that parts of a sum add to one that is even or odd, in one binade.
struct Step {
  i64 from_even, from_odd;
};
i64 step_from(Step s, i64 units) { return (u64(units) & U64(1)) != U64(0) ? s.from_odd : s.from_even; }

// Step a and then step b.
Step then(Step a, Step b) {
  return Step(a.from_even + step_from(b, a.from_even), a.from_odd + step_from(b, a.from_odd + i64(1)));
}

Step step_in(Map map, int binade) {
  return Step(binade == 0   ? map.from_even[0]
              : binade == 1 ? map.from_even[1]
                            : map.from_even[2],
      binade == 0   ? map.from_odd[0]
      : binade == 1 ? map.from_odd[1]
                    : map.from_odd[2]);
}

// True if a sum of this mantissa and sign keeps its binade. Rounding can move each partial sum by a
// unit, but none towards 0 unless a term of the other sign is there.
bool holds(Map map, int binade, int terms, u64 mantissa, bool is_negative) {
  u64 above = map.above >> uint(binade), below = (u64(map.below) << uint(kBelowBits)) >> uint(binade);
  u64 outwards = (is_negative ? below : above) + u64(terms);
  u64 inwards = is_negative ? above : below;
  return outwards < kNoReach && mantissa + outwards < (U64(1) << 53) - U64(1) &&
         (inwards == U64(0) || mantissa > (U64(1) << 52) + inwards + u64(terms));
}
