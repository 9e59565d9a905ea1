/* SPDX-License-Identifier: Apache-2.0
 * VMAF of clips; vmaf.hpp defines it and lists its refusals. Planes are uint8 or uint16, on the
 * CPU or on one GPU (CUDA). */
#ifndef SIMILIS_C_VMAF_H
#define SIMILIS_C_VMAF_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct similis_vmaf_options {
  size_t struct_size;
  const char* const* models; /**< as VmafOptions::models; NULL: vmaf_v0.6.1 alone */
  int64_t model_count;
  const char* const* features; /**< as VmafOptions::features */
  int64_t feature_count;
  int32_t bit_depth; /**< bits per sample: 8, 10, 12 or 16; 0: 8 for uint8, 16 for uint16 */
  int32_t reserved;  /**< 0 */
} similis_vmaf_options;
#define SIMILIS_VMAF_DEFAULTS \
  { sizeof(similis_vmaf_options), NULL, 0, NULL, 0, 0, 0 }

/** VMAF of each frame by the first model. reference, distorted: [N,H,W] or [H,W]; value: float64,
 * dense, [N] or []. */
SIMILIS_API similis_status similis_vmaf(const similis_tensor* reference,
    const similis_tensor* distorted, const similis_vmaf_options* options,
    const similis_tensor* value, const similis_execution* execution);

/** Scores a clip frame by frame. */
typedef struct similis_vmaf_scorer similis_vmaf_scorer;
SIMILIS_API similis_status similis_vmaf_scorer_create(int64_t height, int64_t width,
    const similis_vmaf_options* options, similis_vmaf_scorer** scorer);
/** NULL is allowed. */
SIMILIS_API void similis_vmaf_scorer_destroy(similis_vmaf_scorer* scorer);
/** The number of columns, and their names, valid as long as the scorer; NULL beyond the last. */
SIMILIS_API int64_t similis_vmaf_scorer_column_count(const similis_vmaf_scorer* scorer);
SIMILIS_API const char* similis_vmaf_scorer_column(
    const similis_vmaf_scorer* scorer, int64_t column);
/** Takes the next frame's planes [H,W], or those of several frames [N,H,W]. */
SIMILIS_API similis_status similis_vmaf_scorer_push(similis_vmaf_scorer* scorer,
    const similis_tensor* reference, const similis_tensor* distorted,
    const similis_execution* execution);
/** Says that no frame comes any more. */
SIMILIS_API similis_status similis_vmaf_scorer_finish(similis_vmaf_scorer* scorer);
/** Writes the number of the next frame that is ready, and its values, one for each column; frame is
 * -1 if none is ready. */
SIMILIS_API similis_status similis_vmaf_scorer_pop(
    similis_vmaf_scorer* scorer, int64_t* frame, double* values);

#ifdef __cplusplus
}
#endif

#endif
