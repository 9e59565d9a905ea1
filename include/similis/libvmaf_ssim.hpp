// SPDX-License-Identifier: Apache-2.0
// The SSIM family of libvmaf, and its PSNR, on planes of video: the numbers that `vmaf --feature
// ssim | float_ssim | float_ms_ssim | psnr` prints for a frame.
#pragma once

#include <cstdint>
#include <optional>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

// Every function below takes, returns and throws:
//   x, y     one plane [H,W] or a batch of planes [N,H,W], of luma unless it says otherwise; u8, or
//            u16 with samples in the low bits; alike in all but their strides
//   returns  f64: a scalar, or [N]; on the planes' device
//   throws   InvalidArgument if x and y are not that, if bit_depth does not fit their dtype, or if
//            a sample is above 2^bit_depth - 1. Only integer_ssim() takes planes on a GPU.

struct IntegerSsimOptions {
  std::optional<int> bit_depth = {};  ///< 8, 10, 12 or 16; empty: 8 for u8, 16 for u16
};

/// libvmaf's `ssim`: SSIM of raw samples under a 9×9 window of integers that is cut at the borders,
/// each pixel weighted by the part of its window that is left (Xiph's daala; libvmaf's
/// integer_ssim).
/// All 64 bits are those of one sum in raster order, whatever the vector target, the number of
/// threads or the device. At 16 bits, where libvmaf's own integers overflow, it is the same formula
/// without overflow. On a GPU work is queued on exec.queue and not waited for, and a pair with a
/// sample above 2^bit_depth - 1 scores NaN. Workspace: at most 1 B a pixel on the CPU; on a GPU 9 B
/// a pixel of as many planes as have 2^26 pixels, or of one. Throws also if a plane has more than
/// 2^36 samples.
SIMILIS_API Tensor integer_ssim(const TensorView& x, const TensorView& y,
    const IntegerSsimOptions& options = {}, const Execution& exec = {});

/// value: shaped as integer_ssim()'s result, f64, dense.
SIMILIS_API void integer_ssim_into(const TensorView& x, const TensorView& y,
    const TensorView& value, const IntegerSsimOptions& options = {}, const Execution& exec = {});

struct FloatSsimOptions {
  std::optional<int> bit_depth = {};  ///< 8, 10, 12 or 16; empty: 8 for u8, 16 for u16
  int scale = 0;  ///< factor to shrink by first, 1 to 10; 0: the shorter side / 256, rounded
  bool enable_db = false;  ///< decibels, -10·log10(1 - score), infinite for a score of 1
  bool clip_db = false;    ///< at most ceil(10·log10(peak² / (0.5 / (W·H)))) decibels
};

/// The results of one call; empty views are not computed. All are f64, dense, [] or [N].
struct FloatSsimRequest {
  TensorView value = {};
  TensorView luminance = {}, contrast = {}, structure = {};  ///< libvmaf's enable_lcs
};

/// libvmaf's `float_ssim`: the mean of luminance · contrast · structure under an 11×11 Gaussian of
/// f32 weights, valid windows only, on samples scaled to 0…255 (Tom Distler's iqa).
/// Workspace: 8 B a pixel of the shrunk planes. Throws also if scale is not 0 to 10 or a side of
/// the shrunk planes is below 11.
SIMILIS_API Tensor float_ssim(const TensorView& x, const TensorView& y,
    const FloatSsimOptions& options = {}, const Execution& exec = {});
SIMILIS_API void float_ssim_into(const TensorView& x, const TensorView& y,
    const FloatSsimRequest& request, const FloatSsimOptions& options = {},
    const Execution& exec = {});

inline constexpr int kFloatMsSsimScales = 5;
inline constexpr std::int64_t kFloatMsSsimSmallestSide = 176;

struct FloatMsSsimOptions {
  std::optional<int> bit_depth = {};  ///< 8, 10, 12 or 16; empty: 8 for u8, 16 for u16
  bool enable_db = false;  ///< decibels, -10·log10(1 - score), infinite for a score of 1
  bool clip_db = false;    ///< at most ceil(10·log10(peak² / (0.5 / (W·H)))) decibels
};

/// The results of one call; empty views are not computed. All are f64 and dense.
struct FloatMsSsimRequest {
  TensorView value = {};                                     ///< [] or [N]
  TensorView luminance = {}, contrast = {}, structure = {};  ///< means of each scale: [5] or [N,5]
};

/// libvmaf's `float_ms_ssim`: five scales of float_ssim's means, each halved from the last by a 9×9
/// low-pass, to their powers and multiplied. NaN where a mean is negative, as in libvmaf.
/// Workspace: 3 B a pixel. Throws also if a side is below 176.
SIMILIS_API Tensor float_ms_ssim(const TensorView& x, const TensorView& y,
    const FloatMsSsimOptions& options = {}, const Execution& exec = {});
SIMILIS_API void float_ms_ssim_into(const TensorView& x, const TensorView& y,
    const FloatMsSsimRequest& request, const FloatMsSsimOptions& options = {},
    const Execution& exec = {});

struct LibvmafPsnrOptions {
  std::optional<int> bit_depth = {};  ///< 8, 10, 12 or 16; empty: 8 for u8, 16 for u16
};

/// libvmaf's `psnr_y`, `psnr_cb` or `psnr_cr`, of a plane of either: 10·log10(peak² / MSE) in
/// decibels with peak 2^bit_depth - 1, and at most 6·bit_depth + 12, which equal planes have.
SIMILIS_API Tensor libvmaf_psnr(const TensorView& x, const TensorView& y,
    const LibvmafPsnrOptions& options = {}, const Execution& exec = {});
SIMILIS_API void libvmaf_psnr_into(const TensorView& x, const TensorView& y,
    const TensorView& value, const LibvmafPsnrOptions& options = {}, const Execution& exec = {});

}  // namespace similis
