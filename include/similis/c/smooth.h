/* SPDX-License-Identifier: Apache-2.0
 * Gaussian smoothing of images and vector fields; smooth.hpp defines what it computes. */
#ifndef SIMILIS_C_SMOOTH_H
#define SIMILIS_C_SMOOTH_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SIMILIS_SMOOTH_PADDING_REPLICATE = 0, /**< outside are the values of the outermost voxel */
  SIMILIS_SMOOTH_PADDING_ZEROS = 1
};

typedef struct similis_smooth_options {
  size_t struct_size;
  double sigma[3]; /**< z, y, x, in voxels; 0 leaves an axis as it is; z is read for volumes only */
  double truncate; /**< radius of the taps in standard deviations */
  int32_t padding; /**< SIMILIS_SMOOTH_PADDING_… */
  int32_t field;   /**< 1: a vector field, [N,Y,X,2] or [N,Z,Y,X,3] */
  int32_t adjoint; /**< 1: the gradient to x for an upstream gradient given as x */
  int32_t reserved; /**< 0 */
} similis_smooth_options;
#define SIMILIS_SMOOTH_DEFAULTS                                                                   \
  {                                                                                               \
    sizeof(similis_smooth_options), {1.0, 1.0, 1.0}, 3.0, SIMILIS_SMOOTH_PADDING_REPLICATE, 0, 0, \
        0                                                                                         \
  }

/** x smoothed along every spatial axis, or the adjoint of that. output: shaped as x, float16,
 * bfloat16, float32 or float64, any strides; may be x. */
SIMILIS_API similis_status similis_smooth(const similis_tensor* x,
    const similis_smooth_options* options, const similis_tensor* output,
    const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
