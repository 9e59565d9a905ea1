/* SPDX-License-Identifier: Apache-2.0
 * The SSIM family of libvmaf, and its PSNR; libvmaf_ssim.hpp defines each and lists its refusals.
 * x, y: a plane [H,W] or planes [N,H,W], uint8 or uint16, alike in all but their strides.
 * Results: float64, dense, [] for a plane and [N] for planes; NULL if not wanted. */
#ifndef SIMILIS_C_LIBVMAF_SSIM_H
#define SIMILIS_C_LIBVMAF_SSIM_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct similis_integer_ssim_options {
  size_t struct_size;
  int32_t bit_depth; /**< bits per sample: 8, 10, 12 or 16; 0: 8 for uint8, 16 for uint16 */
  int32_t reserved;  /**< 0 */
} similis_integer_ssim_options;
#define SIMILIS_INTEGER_SSIM_DEFAULTS \
  { sizeof(similis_integer_ssim_options), 0, 0 }

/** libvmaf's ssim, exact in all bits. value must not be NULL. */
SIMILIS_API similis_status similis_integer_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_integer_ssim_options* options, const similis_tensor* value,
    const similis_execution* execution);

typedef struct similis_float_ssim_options {
  size_t struct_size;
  int32_t bit_depth; /**< as in similis_integer_ssim_options */
  int32_t scale;     /**< factor to shrink by first, 1 to 10; 0: the shorter side / 256, rounded */
  int32_t enable_db; /**< 1: the score in decibels; 0: as it is */
  int32_t clip_db;   /**< 1: at most the decibels of half a squared error in all; 0: any */
} similis_float_ssim_options;
#define SIMILIS_FLOAT_SSIM_DEFAULTS \
  { sizeof(similis_float_ssim_options), 0, 0, 0, 0 }

/** libvmaf's float_ssim, and the means of its three factors. */
SIMILIS_API similis_status similis_float_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_float_ssim_options* options, const similis_tensor* value,
    const similis_tensor* luminance, const similis_tensor* contrast,
    const similis_tensor* structure, const similis_execution* execution);

typedef struct similis_float_ms_ssim_options {
  size_t struct_size;
  int32_t bit_depth; /**< as in similis_integer_ssim_options */
  int32_t enable_db; /**< as in similis_float_ssim_options */
  int32_t clip_db;   /**< as in similis_float_ssim_options */
  int32_t reserved;  /**< 0 */
} similis_float_ms_ssim_options;
#define SIMILIS_FLOAT_MS_SSIM_DEFAULTS \
  { sizeof(similis_float_ms_ssim_options), 0, 0, 0, 0 }

/** libvmaf's float_ms_ssim, and the means of its five scales: [5] for a plane, [N,5] for planes. */
SIMILIS_API similis_status similis_float_ms_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_float_ms_ssim_options* options, const similis_tensor* value,
    const similis_tensor* luminance, const similis_tensor* contrast,
    const similis_tensor* structure, const similis_execution* execution);

typedef struct similis_libvmaf_psnr_options {
  size_t struct_size;
  int32_t bit_depth; /**< as in similis_integer_ssim_options */
  int32_t reserved;  /**< 0 */
} similis_libvmaf_psnr_options;
#define SIMILIS_LIBVMAF_PSNR_DEFAULTS \
  { sizeof(similis_libvmaf_psnr_options), 0, 0 }

/** libvmaf's psnr_y, psnr_cb or psnr_cr of planes of either. value must not be NULL. */
SIMILIS_API similis_status similis_libvmaf_psnr(const similis_tensor* x, const similis_tensor* y,
    const similis_libvmaf_psnr_options* options, const similis_tensor* value,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
