// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 of one pixel, in the reference program's roundings: samples to linear light,
// linear light to X, Y and B, the blur's steps, and the three terms from a pixel and its windows.
// steps.h has the text, which GLSL compiles too; these are its words in C++ and CUDA.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/core/host_device.h"
#include "src/core/tensor/convert.h"

namespace similis::ssimulacra2_internal {

#define SIMILIS_IN(type) const type&
#define SIMILIS_INOUT(type) type&
#define SIMILIS_CONSTANT constexpr

using uint = std::uint32_t;
using f64 = double;

/// a·b + c, rounded once.
SIMILIS_HOST_DEVICE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
SIMILIS_HOST_DEVICE float divided(float a, float b) { return a / b; }
SIMILIS_HOST_DEVICE float magnitude(float a) { return ::fabsf(a); }
SIMILIS_HOST_DEVICE uint bits_of(float a) { return bits_as<uint>(a); }
SIMILIS_HOST_DEVICE float float_of(uint bits) { return bits_as<float>(bits); }
SIMILIS_HOST_DEVICE f64 f64_sum(f64 a, f64 b) { return a + b; }
SIMILIS_HOST_DEVICE f64 f64_difference(f64 a, f64 b) { return a - b; }
SIMILIS_HOST_DEVICE f64 f64_product(f64 a, f64 b) { return a * b; }
SIMILIS_HOST_DEVICE f64 f64_quotient(f64 a, f64 b) { return a / b; }
SIMILIS_HOST_DEVICE f64 f64_negative(f64 a) { return -a; }
SIMILIS_HOST_DEVICE bool f64_less(f64 a, f64 b) { return a < b; }
SIMILIS_HOST_DEVICE f64 f64_of_float(float a) { return a; }
SIMILIS_HOST_DEVICE f64 f64_of_int(std::int64_t a) { return static_cast<f64>(a); }

#include "src/ssimulacra2/constants.h"
#include "src/ssimulacra2/steps.h"

#undef SIMILIS_IN
#undef SIMILIS_INOUT
#undef SIMILIS_CONSTANT

// The rounded constants, by what they are.
static_assert(kSlopeOfLine == 1 / 12.92f);
static_assert(kThird == 1.0f / 3 && kFourThirds == 4.0f / 3);
static_assert(kNegativeCubeRootOfBias == -0x1.3f64eap-3f);
static_assert(kGreenToLong == 1 - .078f - .30f && kGreenToMiddle == 1 - .078f - .23f);
static_assert(kBlueToShort == 1 - 0.24342268924547819f - 0.20476744424496821f);

/// X, Y and B of linear light. Light that is_positive, 0 included, takes fewer steps to the same
/// bits.
template <bool is_positive = false>
SIMILIS_HOST_DEVICE Xyb positive_xyb(float r, float g, float b) {
  return xyb_of_responses(response(0, is_positive, r, g, b), response(1, is_positive, r, g, b),
      response(2, is_positive, r, g, b));
}

}  // namespace similis::ssimulacra2_internal
