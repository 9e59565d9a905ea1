// SPDX-License-Identifier: Apache-2.0
// The roundings of SSIMULACRA 2.1, once for every backend: this text is compiled as C++, CUDA and
// GLSL. Its words come first, from formula.h or vulkan/words.glsl:
//   SIMILIS_HOST_DEVICE              before a function
//   SIMILIS_IN, SIMILIS_INOUT(type)  an argument that is read; that is read and written
//   fused(a, b, c)                   a·b + c, rounded once
//   divided(a, b)                    a / b, rounded as IEEE has it
//   uint, bits_of(float), float_of(uint)
//   magnitude(float)
//   f64, and f64_sum, f64_difference, f64_product, f64_quotient, f64_negative, f64_less,
//   f64_of_float and f64_of_int for what C++ writes as operators and casts
//   kSlopeOfLine, kThird, …          constants that are rounded to float: constants.h
// Sums and products of floats are rounded one by one. No loop and no branch depends on a pixel, so
// that a loop over any of these functions becomes vector code.

// ---- samples to X, Y and B ---------------------------------------------------------------------

/// An sRGB sample in light: below the knee a line, above it a quotient of polynomials.
SIMILIS_HOST_DEVICE float linear_of_srgb(float v) {
  float p = fused(8.210152774e-01f, v, 7.961564959e-01f);
  p = fused(p, v, 1.624820318e-01f);
  p = fused(p, v, 1.043637593e-02f);
  p = fused(p, v, 2.200248328e-04f);
  float q = fused(6.521209011e-03f, v, -5.512498495e-02f);
  q = fused(q, v, 4.987528350e-01f);
  q = fused(q, v, 1.076976492e+00f);
  q = fused(q, v, 2.631846970e-01f);
  const float curve = divided(p, q), line = v * kSlopeOfLine;
  return v <= 0.04045f ? line : curve;
}

/// A sample over a background that shows where it is transparent; no fused multiply-add.
SIMILIS_HOST_DEVICE float blended(float opaque, float alpha, float background) {
  return opaque * alpha + (1 - alpha) * background;
}

/// The cube root of x ≥ 0 (x > 0 if so said) less that of the bias: a guess by the exponent, three
/// steps of Newton's for 1/∛x, a fourth in another form, and x/(∛x)².
SIMILIS_HOST_DEVICE float biased_cube_root(bool is_positive, float x) {
  const uint bits = bits_of(x);
  const uint guess = 0x54800000u - (bits >> 23) * 0x002aaaaau;
  float r = float_of(is_positive || bits != 0u ? guess : 0u);
  const float third = kThird * x;
  float squared = r * r;
  r = fused(-third, squared * squared, kFourThirds * r);
  squared = r * r;
  r = fused(-third, squared * squared, kFourThirds * r);
  squared = r * r;
  r = fused(-third, squared * squared, kFourThirds * r);
  squared = r * r;
  r = fused(kThird, fused(-x, squared * squared, r), r);
  squared = r * r;
  return fused(squared, x, kNegativeCubeRootOfBias);
}

/// The response of one kind of cone to linear RGB: 0 long, 1 middle, 2 short.
SIMILIS_HOST_DEVICE float response(int cone, bool is_positive, float r, float g, float b) {
  const float m0 = cone == 0 ? .30f : cone == 1 ? .23f : 0.24342268924547819f;
  const float m1 = cone == 0 ? kGreenToLong : cone == 1 ? kGreenToMiddle : 0.20476744424496821f;
  const float m2 = cone == 2 ? kBlueToShort : .078f;
  const float mixed = fused(m0, r, fused(m1, g, fused(m2, b, kOpsinBias)));
  return biased_cube_root(is_positive, is_positive || !(mixed < 0) ? mixed : 0.0f);
}

/// X, Y and B of the three responses, shifted so that all are positive for colours of sRGB.
struct Xyb {
  float x, y, b;
};
SIMILIS_HOST_DEVICE Xyb xyb_of_responses(float l, float m, float s) {
  const float x = .5f * (l - m), y = .5f * (l + m);
  Xyb shifted;
  shifted.x = x * 14 + .42f;
  shifted.y = y + .01f;
  shifted.b = (s - y) + .55f;
  return shifted;
}

/// A pixel of the next scale: ((top left + top right) + bottom left) + bottom right, over four.
SIMILIS_HOST_DEVICE float quarter(float tl, float tr, float bl, float br) {
  return (tl + tr + bl + br) * .25f;
}

// ---- the recursive blur (blur.h) ---------------------------------------------------------------

/// y_k, and the coefficients of four of its steps at once, which is how rows are filtered.
struct Section {
  float n2, d1;
  float previous[4], before[4], fresh[4];  // factors of y[n - 1], of y[n - 2], of sums of samples
};

/// One step across: y[n], of sum = x[n - 6] + x[n + 4].
SIMILIS_HOST_DEVICE float step_across(
    SIMILIS_IN(Section) k, float sum, SIMILIS_INOUT(float) y1, SIMILIS_INOUT(float) y2) {
  const float y = fused(-k.d1, y1, sum * k.n2 - y2);
  y2 = y1;
  y1 = y;
  return y;
}

/// Four steps across: sums at n to n + 3 become y there.
SIMILIS_HOST_DEVICE void block_across(SIMILIS_IN(Section) k, SIMILIS_INOUT(float) v0,
    SIMILIS_INOUT(float) v1, SIMILIS_INOUT(float) v2, SIMILIS_INOUT(float) v3,
    SIMILIS_INOUT(float) y1, SIMILIS_INOUT(float) y2) {
  float o0 = k.fresh[0] * v0;
  float o1 = fused(k.fresh[0], v1, k.fresh[1] * v0);
  float o2 = fused(k.fresh[0], v2, fused(k.fresh[1], v1, k.fresh[2] * v0));
  float o3 = fused(k.fresh[0], v3, fused(k.fresh[1], v2, fused(k.fresh[2], v1, k.fresh[3] * v0)));
  o0 = fused(k.previous[0], y1, fused(k.before[0], y2, o0));
  o1 = fused(k.previous[1], y1, fused(k.before[1], y2, o1));
  o2 = fused(k.previous[2], y1, fused(k.before[2], y2, o2));
  o3 = fused(k.previous[3], y1, fused(k.before[3], y2, o3));
  v0 = o0;
  v1 = o1;
  y2 = o2;
  v2 = o2;
  y1 = o3;
  v3 = o3;
}

/// One step down.
SIMILIS_HOST_DEVICE float step_down(
    float n2, float d1, float sum, SIMILIS_INOUT(float) y1, SIMILIS_INOUT(float) y2) {
  const float y = fused(n2, sum, -fused(d1, y1, y2));
  y2 = y1;
  y1 = y;
  return y;
}

SIMILIS_HOST_DEVICE float sum_of_sections(float y_1, float y_3, float y_5) {
  return y_1 + (y_3 + y_5);
}

// ---- terms -------------------------------------------------------------------------------------

/// SSIM without the quotient of means, from the windows' averages, before it is divided.
struct Similarity {
  float numerator, denominator;
};
SIMILIS_HOST_DEVICE Similarity similarity(
    float mean_x, float mean_y, float square_x, float square_y, float product) {
  const float difference = mean_x - mean_y;
  const float means = 1 - difference * difference;
  const float covariance = 2 * (product - mean_x * mean_y) + .0009f;
  Similarity s;
  s.numerator = means * covariance;
  s.denominator = (square_x - mean_x * mean_x) + (square_y - mean_y * mean_y) + .0009f;
  return s;
}
SIMILIS_HOST_DEVICE f64 dissimilarity_of_quotient(float similarity) {
  const f64 d = f64_difference(f64_of_int(1), f64_of_float(similarity));
  return f64_less(d, f64_of_int(0)) ? f64_of_int(0) : d;
}
/// 1 - SSIM, at least 0.
SIMILIS_HOST_DEVICE f64 dissimilarity(
    float mean_x, float mean_y, float square_x, float square_y, float product) {
  const Similarity s = similarity(mean_x, mean_y, square_x, square_y, product);
  return dissimilarity_of_quotient(divided(s.numerator, s.denominator));
}

/// One and how far a pixel is from its window's mean.
SIMILIS_HOST_DEVICE f64 edge_of(float v, float mean) {
  return f64_sum(f64_of_int(1), f64_of_float(magnitude(v - mean)));
}
/// The change of a pixel's distance from its window's mean: above 0 the distorted picture has an
/// edge that the reference has not, below 0 it has lost one.
SIMILIS_HOST_DEVICE f64 edge_change(float x, float mean_x, float y, float mean_y) {
  return f64_difference(f64_quotient(edge_of(y, mean_y), edge_of(x, mean_x)), f64_of_int(1));
}

SIMILIS_HOST_DEVICE f64 ringing(f64 change) {
  return f64_less(change, f64_of_int(0)) ? f64_of_int(0) : change;
}
SIMILIS_HOST_DEVICE f64 blurring(f64 change) {
  return f64_less(f64_of_int(0), change) ? f64_of_int(0) : f64_negative(change);
}

SIMILIS_HOST_DEVICE f64 fourth_power(f64 t) {
  return f64_product(f64_product(t, t), f64_product(t, t));
}
