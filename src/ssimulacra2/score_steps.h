// SPDX-License-Identifier: Apache-2.0
// The score from the sums of the terms, in text that C++, CUDA and GLSL compile. To the words of
// steps.h it adds
//   SIMILIS_NUMBER(value, high, low)         a number and the two halves of its bits
//   f64_fused, f64_root, f64_floor_to_int
//   u64, U64(number), f64_bits, f64_of_bits

/// x to the power e in operations that every IEEE machine rounds alike; x > 0 and normal, within
/// 1e-14 of the true power for the scores that there are.
SIMILIS_HOST_DEVICE f64 power(f64 x, f64 e) {
  const f64 one = f64_of_int(1), half_of_one = SIMILIS_NUMBER(.5, 0x3fe00000u, 0u);
  const u64 bits = f64_bits(x), mantissa = bits & ((U64(1) << 52) - U64(1));
  int exponent = int(uint(bits >> 52)) - 1023;
  f64 m = f64_of_bits(mantissa | U64(1023) << 52);
  const bool is_upper = f64_less(SIMILIS_NUMBER(1.4142135623730951, 0x3ff6a09eu, 0x667f3bcdu), m);
  m = is_upper ? f64_product(m, half_of_one) : m;
  exponent += is_upper ? 1 : 0;
  // log m = 2·atanh(s), |s| < 0.172
  const f64 s = f64_quotient(f64_difference(m, one), f64_sum(m, one)), ss = f64_product(s, s);
  f64 series = f64_of_int(0);
  for (int k = 23; k >= 1; k -= 2) {
    series = f64_fused(series, ss, f64_quotient(one, f64_of_int(k)));
  }
  // The logarithm of 2 in two parts.
  const f64 high = SIMILIS_NUMBER(0.6931471803691238, 0x3fe62e42u, 0xfee00000u);
  const f64 low = SIMILIS_NUMBER(1.9082149292705877e-10, 0x3dea39efu, 0x35793c76u);
  const f64 log_m = f64_product(f64_product(f64_of_int(2), s), series);
  const f64 whole = f64_of_int(exponent);
  const f64 log_x = f64_sum(f64_product(whole, high), f64_sum(f64_product(whole, low), log_m));
  const f64 t = f64_product(e, log_x);
  const f64 log2_of_e = SIMILIS_NUMBER(1.4426950408889634, 0x3ff71547u, 0x652b82feu);
  const int n = f64_floor_to_int(f64_sum(f64_product(t, log2_of_e), half_of_one));
  const f64 of_n = f64_of_int(n);
  const f64 r = f64_difference(f64_difference(t, f64_product(of_n, high)), f64_product(of_n, low));
  f64 exponential = one;
  for (int k = 14; k >= 1; --k) {
    exponential = f64_fused(f64_product(exponential, r), f64_quotient(one, f64_of_int(k)), one);
  }
  return f64_product(exponential, f64_of_bits(u64(uint(n + 1023)) << 52));
}

/// The norm of a term over that many pixels: its mean, or the fourth root of its mean fourth power.
SIMILIS_HOST_DEVICE f64 norm_of_sum(f64 sum, bool is_fourth, f64 pixels) {
  const f64 mean = f64_product(f64_quotient(f64_of_int(1), pixels), sum);
  return is_fourth ? f64_root(f64_root(mean)) : mean;
}

/// The score that a weighted sum of norms makes.
SIMILIS_HOST_DEVICE f64 score_of_sum(f64 weighted) {
  const f64 s = f64_product(weighted, SIMILIS_NUMBER(.9562382616834844, 0x3fee9980u, 0xfba3a99eu));
  const f64 first = f64_product(SIMILIS_NUMBER(2.326765642916932, 0x40029d37u, 0x4e2e46f0u), s);
  const f64 second =
      f64_product(f64_product(SIMILIS_NUMBER(.020884521182843837, 0x3f9562c0u, 0x7de448afu), s), s);
  const f64 third = f64_product(
      f64_product(
          f64_product(SIMILIS_NUMBER(6.248496625763138e-05, 0x3f10614bu, 0x8bd8881cu), s), s),
      s);
  const f64 polynomial = f64_sum(f64_difference(first, second), third);
  const f64 hundred = f64_of_int(100);
  if (f64_less(f64_of_int(0), polynomial)) {
    const f64 exponent = SIMILIS_NUMBER(.6276336467831387, 0x3fe41593u, 0x2859b082u);
    return f64_difference(hundred, f64_product(f64_of_int(10), power(polynomial, exponent)));
  }
  return f64_less(polynomial, f64_of_int(1)) ? hundred : polynomial;  // NaN stays
}
