/* SPDX-License-Identifier: Apache-2.0
 * Multi-scale SSIM; see ms_ssim.hpp for the formula, its source and the refusals. */
#ifndef SIMILIS_C_MS_SSIM_H
#define SIMILIS_C_MS_SSIM_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The halving of an image between levels: averages of 2×2 (2×2×2) pixels, and at odd sides: */
enum {
  SIMILIS_DOWNSAMPLE_VAINF = 0, /**< a rim of zeros, counted in the average (pytorch-msssim) */
  SIMILIS_DOWNSAMPLE_CEIL = 1,  /**< the last row or column is repeated (MATLAB, TensorFlow) */
  SIMILIS_DOWNSAMPLE_FLOOR = 2, /**< the last row or column is left out (torchmetrics) */
  SIMILIS_DOWNSAMPLE_PIQ = 3    /**< a row and a column are repeated at the top and left (piq) */
};

typedef struct similis_ms_ssim_options {
  size_t struct_size;
  double data_range; /**< as in similis_ssim_options */
  double sigma[3];   /**< along z, y, x, in pixels */
  double k1, k2;
  const double* weights;  /**< one per level, finest first; NULL: the five of the paper */
  size_t weight_count;    /**< 0 with weights NULL */
  int32_t window_size[3]; /**< along z, y, x, in pixels, odd; z is not read for [N,C,H,W] */
  int32_t padding;        /**< SIMILIS_PADDING_…, applied to each level */
  int32_t reduction;      /**< SIMILIS_REDUCTION_…, over the values of all channels; not NONE */
  int32_t downsample;     /**< SIMILIS_DOWNSAMPLE_… */
  int32_t form;           /**< SIMILIS_FORM_… */
  int32_t reserved;       /**< 0 */
  const similis_tensor* mask; /**< weights of the pixels, halved with the images; NULL: none */
} similis_ms_ssim_options;
#define SIMILIS_MS_SSIM_DEFAULTS                                                              \
  {                                                                                           \
    sizeof(similis_ms_ssim_options), 0.0, {1.5, 1.5, 1.5}, 0.01, 0.03, NULL, 0, {11, 11, 11}, \
        SIMILIS_PADDING_VALID, SIMILIS_REDUCTION_MEAN, SIMILIS_DOWNSAMPLE_VAINF,              \
        SIMILIS_FORM_SIMILARITY, 0, NULL                                                      \
  }

/** MS-SSIM of x and y and the gradients of Σ upstream·value, as similis_ssim. */
SIMILIS_API similis_status similis_ms_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_ms_ssim_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
