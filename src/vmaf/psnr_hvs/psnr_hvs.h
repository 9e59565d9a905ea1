// SPDX-License-Identifier: Apache-2.0
// PSNR-HVS-M of a plane: the error of an 8×8 cosine transform, weighted by the eye's contrast
// sensitivity and masked by the block's own contrast, in libvmaf's floats.
//
// Blocks lie 7 samples apart. A block's mask is sqrt(Σ t²·M·g)/32 of its coefficients t but the
// first, where g compares the variances of its quarters with that of the whole; what lies below the
// mask is not seen. Errors are added up block by block in one float, whose rounding is part of the
// score.
// Source: Ponomarenko et al., "On between-coefficient contrast masking of DCT basis functions",
// VPQM 2007; the sensitivities are those of Xiph.Org's daala (see NOTICE).
#pragma once

#include <cmath>
#include <cstdint>

#include "similis/execution.hpp"
#include "src/vmaf/plane.h"

namespace similis::vmaf_internal {

constexpr std::int64_t kPsnrHvsSmallestSide = 8;
constexpr int kPsnrHvsMostBits = 12;
constexpr std::int64_t kPsnrHvsStep = 7;

/// The mean squared error that is seen, of 1 as the largest sample. component: 0 of luma, 1 of Cb,
/// 2 of Cr. By loops as the definition has them.
float reference_psnr_hvs(const PlanePair& planes, int component);

/// The same bits in vectors of blocks, on exec's threads.
float psnr_hvs_cpu(const PlanePair& planes, int component, const Execution& exec);

inline double psnr_hvs_decibels(double error) { return 10 * -std::log10(error); }
/// The error of a frame, from those of its planes.
inline double psnr_hvs_of_planes(double y, double cb, double cr) {
  return y * 0.8 + 0.1 * (cb + cr);
}

}  // namespace similis::vmaf_internal
