/* SPDX-License-Identifier: Apache-2.0
 * Sampling images and labels, composing transforms and affine grids; warp.hpp defines what each
 * function computes, the coordinates and the shapes. */
#ifndef SIMILIS_C_WARP_H
#define SIMILIS_C_WARP_H

#include "similis/c/core.h"
#include "similis/c/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SIMILIS_INTERPOLATION_LINEAR = 0,
  SIMILIS_INTERPOLATION_NEAREST = 1,
  SIMILIS_INTERPOLATION_CUBIC = 2
};
enum { SIMILIS_OUTSIDE_ZEROS = 0, SIMILIS_OUTSIDE_BORDER = 1, SIMILIS_OUTSIDE_REFLECTION = 2 };

/** The options of all functions here; each function reads some of them. */
typedef struct similis_warp_options {
  size_t struct_size;
  const similis_tensor* affine;        /**< for similis_sample, _labels, _compose; NULL: identity */
  const similis_tensor* displacement;  /**< for similis_sample, _labels, _affine_grid; or NULL */
  const similis_tensor* grid;          /**< for similis_sample, _labels; NULL if there is none */
  const similis_tensor* grid_affine;   /**< likewise; NULL: the identity */
  int64_t out_shape[3];                /**< [Y,X] or [Z,Y,X], if out_rank is 2 or 3 */
  double min_coords[3], max_coords[3]; /**< (x,y,z), read if has_min_coords, has_max_coords */
  double background;                   /**< for similis_sample_labels */
  double smallest_label;               /**< for similis_sample_labels, if has_smallest_label */
  int32_t has_min_coords, has_max_coords;
  int32_t out_rank;      /**< 0: the field's shape, or the image's */
  int32_t mode;          /**< SIMILIS_INTERPOLATION_… */
  int32_t padding_mode;  /**< SIMILIS_OUTSIDE_… */
  int32_t align_corners; /**< 0 or 1 */
  int32_t prefilter;     /**< 0 or 1 */
  int32_t accumulate; /**< 1: adds to what output holds; without one, on GPUs, to grid_gradient */
  int32_t deterministic; /**< 1: an image's gradient has the same bits in every run on a GPU too */
  int32_t has_smallest_label;
  double tolerance; /**< for similis_invert: of the residual, in voxels */
  /** Parts of the first spatial axis; an extent of 0: the array has all of it. */
  int64_t rows_start, rows_extent;             /**< of the output: its first row; of how many */
  int64_t image_rows_start, image_rows_extent; /**< likewise of the image or field */
  int64_t first_cell, end_cell;                /**< cells that count; 0 and 0: all */
  /** For similis_sample, or NULL: where voxels look whose cells do not count, dense f32
   * [rows of output + 1, 2], 0 before. With c those cells of the whole axis that voxels of rows i
   * to i + 7 of the output, or fewer, begin in, row i becomes the largest 2^20 - c and the largest
   * c + 2. The last row becomes (1, 1) if anything was noted: a GPU's fast path for values does. */
  const similis_tensor* elsewhere;
  /** The notes of an earlier call on the same voxels, or NULL: a call that adds to its result may
   * leave out 8 rows without a note. */
  const similis_tensor* noted;
  /** With elsewhere: voxels whose cells are not among these become NaN, and the last element of
   * elsewhere 2; 0 and 0: all are. A call that cannot note them is refused. */
  int64_t first_reached, end_reached;
} similis_warp_options;
#define SIMILIS_WARP_DEFAULTS                                                                    \
  {                                                                                              \
    sizeof(similis_warp_options), NULL, NULL, NULL, NULL, {0, 0, 0}, {0.0, 0.0, 0.0},            \
        {0.0, 0.0, 0.0}, 0.0, 0.0, 0, 0, 0, SIMILIS_INTERPOLATION_LINEAR, SIMILIS_OUTSIDE_ZEROS, \
        1, 1, 0, 0, 0, 0.01, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0                                  \
  }

/** The image at A·x + S·u(x) or S·v(x), and the gradients of Σ upstream·output. Tensors that are
 * NULL are not computed; upstream is needed for gradients. grid_gradient is that of displacement or
 * grid, whichever is given. */
SIMILIS_API similis_status similis_sample(const similis_tensor* image,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* image_gradient,
    const similis_tensor* affine_gradient, const similis_tensor* grid_gradient,
    const similis_tensor* grid_affine_gradient, const similis_execution* execution);

/** u(A·x + v(x)) and its gradients. */
SIMILIS_API similis_status similis_compose(const similis_tensor* u, const similis_tensor* v,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* u_gradient,
    const similis_tensor* v_gradient, const similis_tensor* affine_gradient,
    const similis_execution* execution);

/** A·x + displacement(x), and the gradient to A. */
SIMILIS_API similis_status similis_affine_grid(const similis_tensor* affine,
    const similis_warp_options* options, const similis_tensor* output,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_execution* execution);

/** The label with the largest sum of weights, that sum, and the gradients of Σ upstream·weight. */
SIMILIS_API similis_status similis_sample_labels(const similis_tensor* image,
    const similis_warp_options* options, const similis_tensor* label, const similis_tensor* weight,
    const similis_tensor* upstream, const similis_tensor* affine_gradient,
    const similis_tensor* grid_gradient, const similis_tensor* grid_affine_gradient,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
