/* SPDX-License-Identifier: Apache-2.0
 * Normalised cross-correlation of whole images; see ncc.hpp for the formula and the refusals. */
#ifndef SIMILIS_C_NCC_H
#define SIMILIS_C_NCC_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct similis_ncc_options {
  size_t struct_size;
  double weight;     /**< multiplies the correlation: -1 for the loss */
  int32_t reduction; /**< SIMILIS_REDUCTION_…, not NONE */
  int32_t reserved;  /**< 0 */
} similis_ncc_options;
#define SIMILIS_NCC_DEFAULTS \
  { sizeof(similis_ncc_options), 1.0, SIMILIS_REDUCTION_MEAN, 0 }

/** NCC of each channel of x and y and the gradients of Σ upstream·value.
 * x, y: [N,C,H,W] or [N,C,D,H,W]; of any type on the CPU, on a GPU uint8, float16, bfloat16,
 * float32 or float64; alike in all but their strides.
 * upstream: shaped as value, or NULL for 1. value: dense, float32 or float64, or NULL if not
 * wanted. x_gradient, y_gradient: shaped and typed as x, or NULL if not wanted. */
SIMILIS_API similis_status similis_ncc(const similis_tensor* x, const similis_tensor* y,
    const similis_ncc_options* options, const similis_tensor* upstream, const similis_tensor* value,
    const similis_tensor* x_gradient, const similis_tensor* y_gradient,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
