// SPDX-License-Identifier: Apache-2.0
// The blur of SSIMULACRA 2: a recursive Gaussian of σ = 1.5 and radius 5 (Charalampidis, "Recursive
// implementation of the Gaussian filter using truncated cosine functions", IEEE TSP 64(14), 2016).
//   y_k[n] = n2_k·(x[n - 6] + x[n + 4]) - d1_k·y_k[n - 1] - y_k[n - 2],  k = 1, 3, 5
//   blurred[n] = y_1[n] + (y_3[n] + y_5[n]),  n from -4; samples outside are 0
// These sections are marginally stable: their roundings never fade, and the score's last digits are
// made of them. So steps.h rounds as the reference program does, down as across, and is the only
// place that spells the steps for CPU and GPU.
#pragma once

#include <cstdint>

#include "src/core/host_device.h"
#include "src/ssimulacra2/formula.h"

namespace similis::ssimulacra2_internal {

constexpr int kSections = 3;
constexpr int kBehind = 6;  ///< the older sample that a step reads is n - 6
constexpr int kAhead = 4;   ///< the newer one n + 4; so the first step that reads any is n = -4

/// Layout of the kernels' constants (vulkan/recursion.glsl).
static_assert(sizeof(Section) == 14 * sizeof(float));
struct Recursion {
  Section sections[kSections];
};

/// Computed in double as the paper has it, then rounded.
Recursion make_recursion();

/// The columns [begin, end) of a row of this width that are filtered four steps at once; the others
/// are filtered step by step.
struct Blocks {
  std::int64_t begin, end;
};
SIMILIS_HOST_DEVICE Blocks blocks_of(std::int64_t width) {
  constexpr std::int64_t begin = 8;
  const std::int64_t last = width - 4 - 4;  // the largest n that a block may begin at
  return {begin, last < begin ? begin : begin + (last - begin) / 4 * 4 + 4};
}

/// In exact arithmetic the recursion is this filter, the middle tap first; mode fast.
constexpr int kTaps = 5;
struct Taps {
  float weights[kTaps] = {.26462110548819856f, .21292859201042219f, .10933537277746029f,
      .036011114658364374f, .0094143678096537328f};
};

/// One output from the nine samples around it, the first ones first.
SIMILIS_HOST_DEVICE float filtered(const Taps& taps, float a4, float a3, float a2, float a1,
    float middle, float b1, float b2, float b3, float b4) {
  float y = taps.weights[4] * a4;
  y = fused(taps.weights[3], a3, y);
  y = fused(taps.weights[2], a2, y);
  y = fused(taps.weights[1], a1, y);
  y = fused(taps.weights[0], middle, y);
  y = fused(taps.weights[1], b1, y);
  y = fused(taps.weights[2], b2, y);
  y = fused(taps.weights[3], b3, y);
  return fused(taps.weights[4], b4, y);
}

}  // namespace similis::ssimulacra2_internal
