/* SPDX-License-Identifier: Apache-2.0
 * SSIMULACRA 2.1; ssimulacra2.hpp defines it and lists its refusals.
 * x, y: the reference and the distorted picture, [C,H,W] or [N,C,H,W], of 1 to 4 channels. */
#ifndef SIMILIS_C_SSIMULACRA2_H
#define SIMILIS_C_SSIMULACRA2_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SIMILIS_SSIMULACRA2_EXACT = 0, /**< the reference program's 8 decimals */
  SIMILIS_SSIMULACRA2_FAST = 1   /**< a finite filter for its recursive blur */
};

/** The meaning of samples. */
enum {
  SIMILIS_TRANSFER_SRGB = 0,  /**< encoded as sRGB */
  SIMILIS_TRANSFER_LINEAR = 1 /**< linear light with sRGB's primaries */
};

typedef struct similis_ssimulacra2_options {
  size_t struct_size;
  int32_t mode;
  int32_t transfer;
} similis_ssimulacra2_options;
#define SIMILIS_SSIMULACRA2_DEFAULTS \
  { sizeof(similis_ssimulacra2_options), SIMILIS_SSIMULACRA2_EXACT, SIMILIS_TRANSFER_SRGB }

/** value: float64, dense, [] for [C,H,W] and [N] for [N,C,H,W]. */
SIMILIS_API similis_status similis_ssimulacra2(const similis_tensor* x, const similis_tensor* y,
    const similis_ssimulacra2_options* options, const similis_tensor* value,
    const similis_execution* execution);

/** The same, and a map of the loss; on the CPU. map: float32, dense, [H,W] or [N,H,W].
 * value: NULL if not wanted. */
SIMILIS_API similis_status similis_ssimulacra2_map(const similis_tensor* x, const similis_tensor* y,
    const similis_ssimulacra2_options* options, const similis_tensor* value,
    const similis_tensor* map, const similis_execution* execution);

/** One reference picture, prepared for comparison with many. */
typedef struct similis_ssimulacra2_reference similis_ssimulacra2_reference;
/** x: [C,H,W], on the CPU; it is not needed afterwards. */
SIMILIS_API similis_status similis_ssimulacra2_reference_create(const similis_tensor* x,
    const similis_ssimulacra2_options* options, const similis_execution* execution,
    similis_ssimulacra2_reference** reference);
/** Several threads may score at once. */
SIMILIS_API similis_status similis_ssimulacra2_reference_score(
    const similis_ssimulacra2_reference* reference, const similis_tensor* y,
    const similis_tensor* value, const similis_execution* execution);
/** No call may be using the reference. NULL is allowed. */
SIMILIS_API void similis_ssimulacra2_reference_destroy(similis_ssimulacra2_reference* reference);

#ifdef __cplusplus
}
#endif

#endif
