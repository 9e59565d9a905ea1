// SPDX-License-Identifier: Apache-2.0
// The passes of libvmaf's SSIM family as they are handed to a backend, checked.
#pragma once

#include <array>
#include <cstdint>

#include "similis/execution.hpp"
#include "similis/libvmaf_ssim.hpp"
#include "similis/tensor.hpp"
#include "src/core/operation.h"

namespace similis::libvmaf_ssim_internal {

/// Planes to compare one by one: [N,H,W], u8 or u16, alike in all but their strides; no sample is
/// above 2^bit_depth - 1.
struct PlanePairs {
  TensorView x, y;
  int bit_depth = 8;

  std::int64_t count() const { return x.shape[0]; }
  std::int64_t height() const { return x.shape[1]; }
  std::int64_t width() const { return x.shape[2]; }
};

/// Writes the score of each pair.
void integer_ssim_cpu(const PlanePairs& planes, double* scores, const Execution& exec);

/// The same on planes' GPU, queued on exec.queue; NaN for a pair with a sample above 2^bit_depth
/// - 1.
void integer_ssim_cuda(const PlanePairs& planes, double* scores, const Execution& exec);

/// The same through Vulkan, on the planes' device or, if they are on the CPU, on that of
/// exec.queue: then the scores are there when it returns, and a sample above 2^bit_depth - 1 is
/// refused.
void integer_ssim_vulkan(const PlanePairs& planes, const TensorView& value, const Execution& exec);

/// The sum of the weights of a plane's windows, by which integer SSIM divides.
double total_weight(std::int64_t height, std::int64_t width);

/// Means over the valid windows of one pair, as libvmaf rounds them.
struct SsimMeans {
  float ssim, luminance, contrast, structure;
};

/// The scale by which float_ssim shrinks planes of this size if none is given.
int automatic_scale(std::int64_t height, std::int64_t width);

/// A side of the planes that float_ssim compares, once it is shrunk. For odd sides that is one more
/// than fits, as in libvmaf.
constexpr std::int64_t shrunk_side(std::int64_t side, int scale) {
  return scale == 1 ? side : side / scale + side % 2;
}

/// Writes the means of each pair after shrinking by scale ≥ 1.
void float_ssim_cpu(const PlanePairs& planes, int scale, SsimMeans* means, const Execution& exec);

using MsSsimMeans = std::array<SsimMeans, kFloatMsSsimScales>;

/// Writes the means of each pair at each scale.
void float_ms_ssim_cpu(const PlanePairs& planes, MsSsimMeans* means, const Execution& exec);

/// The score that these means make.
double ms_ssim_of(const MsSsimMeans& means);

/// Passes as the operations' tables take them.
struct IntegerSsimPass {
  PlanePairs planes;
  TensorView value;  ///< the score of each pair
};
struct FloatSsimPass {
  PlanePairs planes;
  int scale;
  SsimMeans* means;
};
struct FloatMsSsimPass {
  PlanePairs planes;
  MsSsimMeans* means;
};
struct PsnrPass {
  PlanePairs planes;
  double* errors;  ///< the mean squared error of each pair
};
extern const Operation<IntegerSsimPass> kIntegerSsim;
extern const Operation<FloatSsimPass> kFloatSsim;
extern const Operation<FloatMsSsimPass> kFloatMsSsim;
extern const Operation<PsnrPass> kLibvmafPsnr;

}  // namespace similis::libvmaf_ssim_internal
