// SPDX-License-Identifier: Apache-2.0
// Constants of steps.h that are rounded to float before they are used, in text that C++, CUDA and
// GLSL compile (SIMILIS_CONSTANT is constexpr or const). formula.h asserts what each one is.
SIMILIS_CONSTANT float kSlopeOfLine = 0.0773993805f;
SIMILIS_CONSTANT float kThird = 0.333333343f, kFourThirds = 1.33333337f;
SIMILIS_CONSTANT float kOpsinBias = 0.0037930732552754493f, kNegativeCubeRootOfBias = -0.155954197f;
// Entries of the matrix from linear RGB to cone responses: 1 minus the others of a row.
SIMILIS_CONSTANT float kGreenToLong = 0.621999979f, kGreenToMiddle = 0.691999972f;
SIMILIS_CONSTANT float kBlueToShort = 0.551809847f;
