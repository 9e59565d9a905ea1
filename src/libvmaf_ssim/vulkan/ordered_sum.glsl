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

// Adds to the sum, an f64; false, and the sum is as it was, if the map does not hold.
bool advance(Map map, int terms, inout u64 sum) {
  int binade = f64_exponent(sum) - map.first_exponent;
  if (binade < 0 || binade >= kBinades || f64_exponent(sum) == 0) return false;
  u64 mantissa = f64_mantissa(sum), reach = reach_in(map, binade, u64(terms));
  // The sum stays at least one unit inside its binade.
  if (reach >= kNoReach || mantissa <= (U64(1) << 52) + reach ||
      mantissa + reach >= (U64(1) << 53) - U64(1))
    return false;
  bool is_negative = f64_sign(sum) != U64(0), is_odd = (mantissa & U64(1)) != U64(0);
  i64 even = binade == 0 ? map.from_even[0] : binade == 1 ? map.from_even[1] : map.from_even[2];
  i64 odd = binade == 0 ? map.from_odd[0] : binade == 1 ? map.from_odd[1] : map.from_odd[2];
  i64 step = is_odd ? odd : even;
  u64 result = u64(i64(mantissa) + (is_negative ? -step : step));
  sum = f64_sign(sum) | (u64(f64_exponent(sum)) << 52) | (result & ((U64(1) << 52) - U64(1)));
  return true;
}
