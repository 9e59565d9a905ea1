// SPDX-License-Identifier: Apache-2.0
// The two f32 operations that devices round in their own ways. Sums and products are sealed by the
// build (scripts/seal.py); a kernel uses neither the language's division nor its square root.
layout(constant_id = 0) const int kDeviceFma = 0;  // 1 if the probe found the device's fma exact

float fused(float a, float b, float c) {
  return kDeviceFma != 0 ? fma(a, b, c) : soft_fma(a, b, c);
}

// a / b, correctly rounded where |a|, b and |a / b| are within 2^±60: the reciprocal may be off by
// a few units, two steps of Newton's and the residual of the quotient make up for it.
float quotient(float a, float b) {
  float r = 1.0 / b;
  r = fused(fused(-b, r, 1.0), r, r);
  float q = a * r;
  q = fused(fused(-b, q, a), r, q);
  return fused(fused(-b, q, a), r, q);
}
