/* SPDX-License-Identifier: Apache-2.0
 * Exponentials, inverses and Jacobian determinants of vector fields; fields.hpp defines what each
 * function computes, the coordinates and the shapes. */
#ifndef SIMILIS_C_FIELDS_H
#define SIMILIS_C_FIELDS_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

struct similis_warp_options; /* in similis/c/warp.h; NULL takes SIMILIS_WARP_DEFAULTS */

/** exp(v), by n squarings. Reads align_corners of the options. */
SIMILIS_API similis_status similis_exponentiate(const similis_tensor* v, int32_t n,
    const struct similis_warp_options* options, const similis_tensor* output,
    const similis_execution* execution);

/** The displacement that undoes u, and its residual, [N] or NULL. Reads align_corners and tolerance
 * of the options, and for a part of a field image_rows of u and rows_start of output. */
SIMILIS_API similis_status similis_invert(const similis_tensor* u, int32_t iterations,
    const struct similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* residual, const similis_execution* execution);

/** The determinant of the derivative of x + u(x), and folds, [N]: the number of voxels where it is
 * not above 0, NaN included. Reads align_corners, min_coords and max_coords of the options, and for
 * a part of a field image_rows of u and rows_start of determinant. */
SIMILIS_API similis_status similis_jacobian_determinant(const similis_tensor* u,
    const struct similis_warp_options* options, const similis_tensor* determinant,
    const similis_tensor* folds, const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
