/* SPDX-License-Identifier: Apache-2.0
 * Mean squared error, mean absolute error and peak signal-to-noise ratio; see pixel_error.hpp. */
#ifndef SIMILIS_C_PIXEL_ERROR_H
#define SIMILIS_C_PIXEL_ERROR_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct similis_pixel_error_options {
  size_t struct_size;
  double data_range;          /**< read by similis_psnr; 0: as in similis_ssim_options */
  int32_t reduction;          /**< SIMILIS_REDUCTION_…, not NONE; for similis_psnr not SUM */
  int32_t reserved;           /**< 0 */
  const similis_tensor* mask; /**< weights of the pixels; NULL: none */
} similis_pixel_error_options;
#define SIMILIS_PIXEL_ERROR_DEFAULTS \
  { sizeof(similis_pixel_error_options), 0.0, SIMILIS_REDUCTION_MEAN, 0, NULL }

/** The mean of (x - y)² and the gradients of Σ upstream·value.
 * x, y: [N,C,…] of any type, alike in all but their strides.
 * upstream: shaped as value, or NULL for 1. value: dense, float32 or float64, or NULL if not
 * wanted. x_gradient, y_gradient: shaped and typed as x, or NULL if not wanted. */
SIMILIS_API similis_status similis_mse(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution);

/** The mean of |x - y|, as similis_mse. */
SIMILIS_API similis_status similis_mae(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution);

/** 10·log10(data_range² / MSE) in dB; infinite if x and y are equal. */
SIMILIS_API similis_status similis_psnr(const similis_tensor* x, const similis_tensor* y,
    const similis_pixel_error_options* options, const similis_tensor* value,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
