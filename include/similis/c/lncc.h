/* SPDX-License-Identifier: Apache-2.0
 * Local normalised cross-correlation; see lncc.hpp for the formula, its source and the refusals.
 */
#ifndef SIMILIS_C_LNCC_H
#define SIMILIS_C_LNCC_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** exact: the derivative of the value. ants: the term of each pixel's own window, with constant
 * means. */
enum { SIMILIS_LNCC_GRADIENT_EXACT = 0, SIMILIS_LNCC_GRADIENT_ANTS = 1 };
/** Memory for an exact gradient on a GPU. auto: up to 16 bytes a pixel and 1 GiB in all. small: a
 * twelfth of a byte. */
enum { SIMILIS_LNCC_WORKSPACE_AUTO = 0, SIMILIS_LNCC_WORKSPACE_SMALL = 1 };

typedef struct similis_lncc_options {
  size_t struct_size;
  double sigma[3];  /**< standard deviation of a Gaussian window along z, y, x, in pixels */
  double smooth_nr; /**< times the number of taps: added to the numerator */
  double smooth_dr; /**< times the taps: added to the denominator, and the least variance */
  double weight;    /**< multiplies the correlation: -1 for the loss */
  const similis_tensor* mask;       /**< weights on the map; NULL: none */
  const similis_tensor* valid_mask; /**< weights of the pixels; 0 leaves a pixel out; NULL: none */
  int32_t window_size[3];     /**< along z, y, x, in pixels, odd; z is not read for [N,C,H,W] */
  int32_t window;             /**< SIMILIS_WINDOW_… */
  int32_t padding;            /**< SIMILIS_PADDING_VALID, _SAME or _RENORMALIZE */
  int32_t reduction;          /**< SIMILIS_REDUCTION_… */
  int32_t is_signed;          /**< 0: squared correlation; 1: signed correlation in [-1, 1] */
  int32_t gradient;           /**< SIMILIS_LNCC_GRADIENT_… */
  int32_t workspace;          /**< SIMILIS_LNCC_WORKSPACE_… */
  int32_t sums;               /**< 1: value is [2,N,C] in float64: sums, weights */
  int64_t first_row, end_row; /**< the centres that count along the first spatial axis, without
                                   end_row; 0 and 0: all */
} similis_lncc_options;
#define SIMILIS_LNCC_DEFAULTS                                                              \
  {                                                                                        \
    sizeof(similis_lncc_options), {1.5, 1.5, 1.5}, 1e-5, 1e-5, 1.0, NULL, NULL, {3, 3, 3}, \
        SIMILIS_WINDOW_BOX, SIMILIS_PADDING_SAME, SIMILIS_REDUCTION_MEAN, 0,               \
        SIMILIS_LNCC_GRADIENT_EXACT, SIMILIS_LNCC_WORKSPACE_AUTO, 0, 0, 0                  \
  }

/** LNCC of x and y and the gradients of Σ upstream·value, in one pass.
 * x, y: [N,C,H,W] or [N,C,D,H,W]; of any type on the CPU, on a GPU uint8, float16, bfloat16,
 * float32 or float64; alike in all but their strides.
 * upstream: shaped as value, or NULL for 1. value: dense, float32 or float64 (a map: float64
 * for float64 and int32 images alone), NULL if not wanted; without axes, [N], [N,C] or the map, by
 * reduction.
 * x_gradient, y_gradient: shaped and typed as x, or NULL if not wanted. */
SIMILIS_API similis_status similis_lncc(const similis_tensor* x, const similis_tensor* y,
    const similis_lncc_options* options, const similis_tensor* upstream,
    const similis_tensor* value, const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
