// SPDX-License-Identifier: Apache-2.0
// IEEE arithmetic in integers, for devices that round in other ways or have no doubles: the fused
// multiply-add of f32; sum, product, quotient, fused multiply-add, square root and conversions of
// f64. To nearest even.
//
// Written in what GLSL and C++ both compile, so that a test of it runs on the CPU. The language's
// own words come first, from prelude.glsl or soft_arithmetic_test.cc:
//   u64, i64                          integers of 64 bits; `uint` has 32
//   bits_of(float), float_of(uint)    the bits of an f32
//   high_bit(u64)                     index of the highest bit that is 1
//   product_128(a, b, high, low)      all bits of a product
//   FUNCTION                          before a function
//   OUT(type), INOUT(type)            an argument that it writes; that it reads and writes

#define U64(number) u64(number)

// Shifts right; the lowest bit of the result is 1 if any bit that was lost is.
FUNCTION u64 shifted_with_sticky(u64 value, int shift) {
  if (shift <= 0) return value;
  if (shift > 63) return value != U64(0) ? U64(1) : U64(0);
  u64 lost = value & ((U64(1) << uint(shift)) - U64(1));
  return (value >> uint(shift)) | (lost != U64(0) ? U64(1) : U64(0));
}

// Shifts right by 1 to 63 bits and rounds to nearest even.
FUNCTION u64 shifted_and_rounded(u64 value, int shift) {
  u64 rest = value & ((U64(1) << uint(shift)) - U64(1));
  u64 middle = U64(1) << uint(shift - 1);
  u64 kept = value >> uint(shift);
  bool up = rest > middle || (rest == middle && (kept & U64(1)) != U64(0));
  return up ? kept + U64(1) : kept;
}

// ---- f32 -------------------------------------------------------------------------------------

// a·b + c, rounded once; subnormals included, no infinities or NaN.
FUNCTION float soft_fma(float of_a, float of_b, float of_c) {
  uint a = bits_of(of_a), b = bits_of(of_b), c = bits_of(of_c);
  uint sign_p = (a ^ b) & 0x80000000u, sign_c = c & 0x80000000u;
  int exponent_a = int((a >> 23) & 255u), exponent_b = int((b >> 23) & 255u);
  int exponent_c = int((c >> 23) & 255u);
  uint mantissa_a = a & 0x7fffffu, mantissa_b = b & 0x7fffffu, mantissa_c = c & 0x7fffffu;
  if (exponent_a == 0)
    exponent_a = 1;
  else
    mantissa_a |= 0x800000u;
  if (exponent_b == 0)
    exponent_b = 1;
  else
    mantissa_b |= 0x800000u;
  if (exponent_c == 0)
    exponent_c = 1;
  else
    mantissa_c |= 0x800000u;
  u64 p = u64(mantissa_a) * u64(mantissa_b), q = u64(mantissa_c);
  if (p == U64(0)) return mantissa_c == 0u && sign_p != sign_c ? float_of(0u) : of_c;
  // Both are brought to bit 61: p·2^(exponent_p - 150) and q·2^(exponent_q - 150).
  int exponent_p = exponent_a + exponent_b - 150, exponent_q = exponent_p - 200;
  int up = 61 - high_bit(p);
  p = p << uint(up);
  exponent_p -= up;
  if (mantissa_c != 0u) {
    up = 61 - high_bit(q);
    q = q << uint(up);
    exponent_q = exponent_c - up;
  } else {
    sign_c = sign_p;
  }
  bool c_is_larger = exponent_q > exponent_p || (exponent_q == exponent_p && q > p);
  u64 large = c_is_larger ? q : p, small = c_is_larger ? p : q;
  int exponent = c_is_larger ? exponent_q : exponent_p;
  int distance = c_is_larger ? exponent_q - exponent_p : exponent_p - exponent_q;
  uint sign = c_is_larger ? sign_c : sign_p;
  small = shifted_with_sticky(small, distance);
  u64 sum = sign_p == sign_c ? large + small : large - small;
  if (sum == U64(0)) return float_of(0u);
  int shift = high_bit(sum) - 23;
  if (exponent + shift < 1) shift = 1 - exponent;  // the result is subnormal
  if (shift > 63) {
    sum = U64(0);
  } else if (shift > 0) {
    sum = shifted_and_rounded(sum, shift);
  } else {
    sum = sum << uint(-shift);
  }
  // A carry out of the mantissa goes into the exponent.
  uint bits = uint(sum);
  if (bits >= 0x800000u) bits += uint(exponent + shift - 1) << 23;
  return float_of(sign | bits);
}

// ---- f64: its bits in a u64; 0 and normal numbers ----------------------------------------------

FUNCTION u64 f64_sign(u64 a) { return a & (U64(1) << 63); }
FUNCTION int f64_exponent(u64 a) { return int(uint(a >> 52) & 2047u); }
FUNCTION u64 f64_mantissa(u64 a) { return (a & ((U64(1) << 52) - U64(1))) | (U64(1) << 52); }

// mantissa·2^exponent, rounded; the mantissa's lowest bit may stand for bits that were lost.
FUNCTION u64 f64_of_parts(u64 sign, int exponent, u64 mantissa) {
  if (mantissa == U64(0)) return sign;
  int up = 63 - high_bit(mantissa);
  u64 rounded = shifted_and_rounded(mantissa << uint(up), 11);
  // Its bit 52 adds 1 to the exponent.
  return sign | (rounded + (u64(exponent - up + 11 + 1075 - 1) << 52));
}

FUNCTION u64 soft_f64_of_int(i64 value) {
  // No comparison: llvmpipe (Mesa 22.3.6) finds an int that became an i64 not to be below 0.
  u64 is_negative = u64(value) >> 63;
  return f64_of_parts(is_negative << 63, 0, (u64(value) ^ (U64(0) - is_negative)) + is_negative);
}

FUNCTION u64 soft_f64_of_float(float value) {
  uint bits = bits_of(value);
  u64 sign = u64(bits & 0x80000000u) << 32, magnitude = u64(bits & 0x7fffffffu);
  if (magnitude == U64(0)) return sign;
  return sign | ((magnitude << 29) + (u64(1023 - 127) << 52));
}

FUNCTION u64 soft_f64_product(u64 a, u64 b) {
  u64 sign = f64_sign(a ^ b);
  if (f64_exponent(a) == 0 || f64_exponent(b) == 0) return sign;
  u64 high = U64(0), low = U64(0);
  product_128(f64_mantissa(a) << 11, f64_mantissa(b) << 11, high, low);
  return f64_of_parts(sign, f64_exponent(a) + f64_exponent(b) - 2 * 1086 + 64,
      high | (low != U64(0) ? U64(1) : U64(0)));
}

FUNCTION u64 soft_f64_sum(u64 a, u64 b) {
  bool b_is_larger = (a ^ f64_sign(a)) < (b ^ f64_sign(b));
  u64 large = b_is_larger ? b : a, small = b_is_larger ? a : b;
  if (f64_exponent(small) == 0) return f64_exponent(large) == 0 ? large & small : large;
  int distance = f64_exponent(large) - f64_exponent(small);
  u64 m = f64_mantissa(large) << 10;
  u64 n = shifted_with_sticky(f64_mantissa(small) << 10, distance);
  u64 sum = f64_sign(a ^ b) == U64(0) ? m + n : m - n;
  return f64_of_parts(sum == U64(0) ? U64(0) : f64_sign(large), f64_exponent(large) - 1085, sum);
}

// One digit of 32 bits of a long division: rest·2^32 / b, with b's highest bit set and rest < b.
FUNCTION u64 division_digit(u64 rest, u64 b) {
  u64 high = b >> 32, low = b & U64(0xffffffffu);
  u64 digit = rest / high, left = rest - digit * high;
  // The estimate is at most 2 too large.
  if (digit > U64(0xffffffffu) || digit * low > (left << 32)) {
    digit -= U64(1);
    left += high;
    if (left <= U64(0xffffffffu) && (digit > U64(0xffffffffu) || digit * low > (left << 32))) {
      digit -= U64(1);
    }
  }
  return digit;
}

// b is not 0.
FUNCTION u64 soft_f64_quotient(u64 a, u64 b) {
  u64 sign = f64_sign(a ^ b);
  if (f64_exponent(a) == 0) return sign;
  u64 rest = f64_mantissa(a) << 10, divisor = f64_mantissa(b) << 11;
  u64 first = division_digit(rest, divisor);
  rest = (rest << 32) - first * divisor;  // modulo 2^64
  u64 second = division_digit(rest, divisor);
  rest = (rest << 32) - second * divisor;
  return f64_of_parts(sign, f64_exponent(a) - f64_exponent(b) - 63,
      ((first << 32) + second) | (rest != U64(0) ? U64(1) : U64(0)));
}

FUNCTION bool soft_f64_less(u64 a, u64 b) {
  u64 size_a = a ^ f64_sign(a), size_b = b ^ f64_sign(b);
  if (size_a == U64(0) && size_b == U64(0)) return false;
  if (f64_sign(a) != f64_sign(b)) return f64_sign(a) != U64(0);
  return f64_sign(a) == U64(0) ? size_a < size_b : size_b < size_a;
}

// The whole number at or below a; |a| < 2^31.
FUNCTION int soft_f64_floor_to_int(u64 a) {
  bool is_negative = f64_sign(a) != U64(0);
  if (f64_exponent(a) == 0) return 0;
  if (f64_exponent(a) < 1023) return is_negative ? -1 : 0;
  int shift = 1075 - f64_exponent(a);
  int whole = int(f64_mantissa(a) >> uint(shift));
  if (!is_negative) return whole;
  return (f64_mantissa(a) & ((U64(1) << uint(shift)) - U64(1))) != U64(0) ? -whole - 1 : -whole;
}

// The bits of a rounded to f32; infinity where it is too large, and NaN as it is.
FUNCTION uint soft_f32_of_f64(u64 a) {
  uint sign = uint(a >> 32) & 0x80000000u;
  int exponent = f64_exponent(a) - 1023 + 127;
  if (f64_exponent(a) == 0 || exponent < -30) return sign;
  if (f64_exponent(a) == 2047 && f64_mantissa(a) != U64(1) << 52) return sign | 0x7fc00000u;
  if (exponent > 254) return sign | 0x7f800000u;
  uint rounded = uint(shifted_and_rounded(f64_mantissa(a), exponent < 1 ? 30 - exponent : 29));
  // Bit 23 adds 1 to the exponent.
  return sign | (exponent < 1 ? rounded : rounded + (uint(exponent - 1) << 23));
}

// Shifts 128 bits right, as shifted_with_sticky() does.
FUNCTION void shift_128(INOUT(u64) high, INOUT(u64) low, int shift) {
  if (shift > 63) {
    low = shifted_with_sticky(high, shift - 64) | (low != U64(0) ? U64(1) : U64(0));
    high = U64(0);
  } else if (shift > 0) {
    u64 lost = low << uint(64 - shift);
    low = (low >> uint(shift)) | (high << uint(64 - shift)) | (lost != U64(0) ? U64(1) : U64(0));
    high = high >> uint(shift);
  }
}

// a·b + c, rounded once.
FUNCTION u64 soft_f64_fma(u64 a, u64 b, u64 c) {
  u64 sign = f64_sign(a ^ b);
  if (f64_exponent(a) == 0 || f64_exponent(b) == 0) return soft_f64_sum(sign, c);
  // The product, from bit 124 or 125 down, times 2^exponent; and c, from bit 124 down.
  u64 high = U64(0), low = U64(0);
  product_128(f64_mantissa(a) << 10, f64_mantissa(b) << 10, high, low);
  int exponent = f64_exponent(a) + f64_exponent(b) - 2170;
  u64 high_c = f64_exponent(c) == 0 ? U64(0) : f64_mantissa(c) << 8, low_c = U64(0);
  int above = exponent - (f64_exponent(c) - 1147);
  if (above > 0) {
    shift_128(high_c, low_c, above);
  } else if (high_c != U64(0)) {
    shift_128(high, low, -above);
    exponent -= above;
  }
  if (sign == f64_sign(c)) {
    low += low_c;
    high += high_c + (low < low_c ? U64(1) : U64(0));
  } else {
    if (high < high_c || (high == high_c && low < low_c)) {
      u64 swapped = high;
      high = high_c;
      high_c = swapped;
      swapped = low;
      low = low_c;
      low_c = swapped;
      sign = f64_sign(c);
    }
    high -= high_c + (low < low_c ? U64(1) : U64(0));
    low -= low_c;
  }
  if (high == U64(0)) return f64_of_parts(low == U64(0) ? U64(0) : sign, exponent, low);
  int up = 63 - high_bit(high);
  if (up > 0) {
    high = (high << uint(up)) | (low >> uint(64 - up));
    low = low << uint(up);
  }
  return f64_of_parts(sign, exponent + 64 - up, high | (low != U64(0) ? U64(1) : U64(0)));
}

// The square root of a number that is not negative, by digits of one bit.
FUNCTION u64 soft_f64_root(u64 a) {
  if (f64_exponent(a) == 0) return a;
  int exponent = f64_exponent(a) - 1075;
  u64 m = f64_mantissa(a);
  if ((exponent & 1) != 0) {
    m = m << 1;
    exponent -= 1;
  }
  u64 root = U64(0), rest = U64(0);  // of m·2^56
  for (int i = 54; i >= 0; --i) {
    u64 digits = i >= 28 ? (m >> uint(2 * i - 56)) & U64(3) : U64(0);
    rest = (rest << 2) | digits;
    u64 trial = (root << 2) | U64(1);
    root = root << 1;
    if (rest >= trial) {
      rest -= trial;
      root |= U64(1);
    }
  }
  return f64_of_parts(U64(0), exponent / 2 - 29, (root << 1) | (rest != U64(0) ? U64(1) : U64(0)));
}
