// SPDX-License-Identifier: Apache-2.0
// Logarithms and exponentials of f64 in integers, within a few units of their last place. Include
// it after soft_arithmetic.h; numbers are bits, normal or 0.
u64 f64_bits(uint high, uint low) { return (u64(high) << 32) | u64(low); }
u64 f64_ln2() { return f64_bits(0x3fe62e42u, 0xfefa39efu); }
// llvmpipe (Mesa 22.3.6) takes negative 64-bit integers for positive ones: the sign is the int's.
u64 f64_whole(int value) {
  u64 magnitude = soft_f64_of_int(i64(abs(value)));
  return value < 0 ? magnitude ^ (U64(1) << 63) : magnitude;
}
bool f64_is_finite(u64 a) { return f64_exponent(a) != 2047; }
bool f64_is_zero(u64 a) { return f64_exponent(a) == 0; }
bool f64_is_negative(u64 a) { return f64_sign(a) != U64(0) && !f64_is_zero(a); }
u64 f64_nan() { return f64_bits(0x7ff80000u, 0u); }
u64 f64_negative(u64 a) { return a ^ (U64(1) << 63); }
u64 soft_f64_difference(u64 a, u64 b) { return soft_f64_sum(a, f64_negative(b)); }

// log((1 + z) / (1 - z)) = 2·(z + z³/3 + z⁵/5 + …), |z| ≤ 0.18.
u64 soft_f64_log_of_quotient(u64 z) {
  u64 square = soft_f64_product(z, z), sum = U64(0);
  for (int k = 9; k >= 0; --k)
    sum = soft_f64_sum(soft_f64_product(sum, square),
        soft_f64_quotient(f64_whole(1), f64_whole(2 * k + 1)));
  return soft_f64_product(f64_whole(2), soft_f64_product(z, sum));
}

// a is positive.
u64 soft_f64_log(u64 a) {
  int exponent = f64_exponent(a) - 1023;
  u64 fraction = (a & ((U64(1) << 52) - U64(1))) | (U64(1023) << 52);
  if (fraction > f64_bits(0x3ff6a09eu, 0x667f3bcdu)) {  // the square root of 2
    fraction -= U64(1) << 52;
    ++exponent;
  }
  u64 z = soft_f64_quotient(
      soft_f64_difference(fraction, f64_whole(1)), soft_f64_sum(fraction, f64_whole(1)));
  return soft_f64_sum(
      soft_f64_product(f64_whole(exponent), f64_ln2()), soft_f64_log_of_quotient(z));
}

// log(1 - a), a < 1: as precise as a where that is small.
u64 soft_f64_log_of_rest(u64 a) {
  u64 rest = soft_f64_difference(f64_whole(1), a);
  // 0.25
  if ((a ^ f64_sign(a)) > (U64(1021) << 52)) return soft_f64_log(rest);
  return soft_f64_log_of_quotient(
      soft_f64_quotient(f64_negative(a), soft_f64_sum(f64_whole(1), rest)));
}

// exp(a) - 1, a ≤ 0.
u64 soft_f64_exp_minus_1(u64 a) {
  if (f64_sign(a) != U64(0) && f64_exponent(a) >= 1023 + 9) a = f64_whole(-512);
  int power = int(float_of(soft_f32_of_f64(a)) * 1.44269504 - 0.5);
  u64 rest = soft_f64_difference(a, soft_f64_product(f64_whole(power), f64_ln2()));
  u64 sum = f64_whole(1);
  for (int n = 14; n > 1; --n) {
    u64 next = soft_f64_quotient(soft_f64_product(sum, rest), f64_whole(n));
    sum = soft_f64_sum(f64_whole(1), next);
  }
  // 2^power·(exp(rest) - 1) + 2^power - 1
  u64 scale = u64(uint(power + 1023)) << 52;
  u64 scaled = soft_f64_product(scale, soft_f64_product(sum, rest));
  return soft_f64_sum(scaled, soft_f64_difference(scale, f64_whole(1)));
}
