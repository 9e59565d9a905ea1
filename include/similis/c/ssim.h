/* SPDX-License-Identifier: Apache-2.0
 * Structural similarity; see ssim.hpp for the formula, its source and the refusals. */
#ifndef SIMILIS_C_SSIM_H
#define SIMILIS_C_SSIM_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct similis_ssim_options {
  size_t struct_size;
  double data_range;  /**< largest minus smallest value a pixel can take; 0: 1 for floats and
                           bool, 255 for uint8, 65535 for uint16; int16 and int32 need one */
  double sigma[3];    /**< standard deviation of a Gaussian window along z, y, x, in pixels */
  double k1, k2;      /**< C1 = (k1·data_range)², C2 = (k2·data_range)² */
  double ssim_weight; /**< multiplies SSIM, or 1 - SSIM in a loss */
  double l1_weight;   /**< adds l1_weight·|x - y|, reduced as the map is, over all pixels */
  const similis_tensor* mask;       /**< weights on the map; NULL: none */
  const similis_tensor* valid_mask; /**< weights of the pixels; 0 leaves a pixel out; NULL: none */
  int32_t window_size[3];     /**< along z, y, x, in pixels, odd; z is not read for [N,C,H,W] */
  int32_t padding;            /**< SIMILIS_PADDING_… */
  int32_t reduction;          /**< SIMILIS_REDUCTION_… */
  int32_t form;               /**< SIMILIS_FORM_… */
  int32_t window;             /**< SIMILIS_WINDOW_… */
  int32_t sample_covariance;  /**< 1: variances and covariance times n / (n - 1), n the window's
                                   pixels */
  int64_t first_row, end_row; /**< the centres that count along the first spatial axis, without
                                   end_row; 0 and 0: all */
  int32_t sums;     /**< 1: value is [2,N,C] in float64, or [4,N,C] with |x - y|: sums, weights */
  int32_t reserved; /**< 0 */
  const similis_tensor* middle; /**< [N,C] in float32, dense: half of x + y at about the middle of
                                     the volume of which x and y are a part; NULL: of x and y */
} similis_ssim_options;
#define SIMILIS_SSIM_DEFAULTS                                                                 \
  {                                                                                           \
    sizeof(similis_ssim_options), 0.0, {1.5, 1.5, 1.5}, 0.01, 0.03, 1.0, 0.0, NULL, NULL,     \
        {11, 11, 11}, SIMILIS_PADDING_VALID, SIMILIS_REDUCTION_MEAN, SIMILIS_FORM_SIMILARITY, \
        SIMILIS_WINDOW_GAUSSIAN, 0, 0, 0, 0, 0, NULL                                          \
  }

/** SSIM of x and y and the gradients of Σ upstream·value, in one pass.
 * x, y: [N,C,H,W] or [N,C,D,H,W]; of any type on the CPU, on a GPU uint8, float16, bfloat16,
 * float32 or float64; alike in all but their strides.
 * upstream: shaped as value, or NULL for 1. value: dense, float32 or float64 (a map: float64
 * for float64 and int32 images alone), NULL if not wanted; without axes, [N], [N,C] or the map, by
 * reduction.
 * x_gradient, y_gradient: shaped and typed as x, or NULL if not wanted. */
SIMILIS_API similis_status similis_ssim(const similis_tensor* x, const similis_tensor* y,
    const similis_ssim_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
