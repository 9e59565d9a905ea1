// SPDX-License-Identifier: Apache-2.0
// What a chunk of terms does to a running sum (integer/ordered_sum.h), in integers: while the sum
// stays in one binade it is a whole number of units, and so is what a chunk adds. Maps of a group's
// chunks are for the same three binades, so that they always compose.
const int kBinades = 3;
const int kChunkTerms = 256, kGroupChunks = 32, kGroupTerms = kChunkTerms * kGroupChunks;

struct Map {
  i64 from_even[kBinades], from_odd[kBinades];  // units that are added to an even or an odd sum
  u64 reach;  // in units of the lowest binade: no partial sum gets further from its start
  int first_exponent;
  int unused;
};

// More units than any sum has: a map that holds nowhere.
const u64 kNoReach = U64(1) << 56;

// Exponents as in the bits of an f64, 1023 for 1.
int units_exponent(Map map, int binade) { return map.first_exponent + binade; }

u64 reach_in(Map map, int binade, u64 terms) { return (map.reach >> uint(binade)) + terms; }

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

// True if a sum of this mantissa stays at least one unit inside its binade.
bool holds(Map map, int binade, int terms, u64 mantissa) {
  u64 reach = reach_in(map, binade, u64(terms));
  return reach < kNoReach && mantissa > (U64(1) << 52) + reach &&
         mantissa + reach < (U64(1) << 53) - U64(1);
}
