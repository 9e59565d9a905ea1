/* SPDX-License-Identifier: Apache-2.0
 * Registration: the map that lays one image over another; register.hpp defines what it computes and
 * lists its refusals. */
#ifndef SIMILIS_C_REGISTER_H
#define SIMILIS_C_REGISTER_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SIMILIS_REGISTER_TRANSLATION = 0,
  SIMILIS_REGISTER_RIGID = 1,
  SIMILIS_REGISTER_SIMILARITY = 2,
  SIMILIS_REGISTER_AFFINE = 3,
  SIMILIS_REGISTER_DEFORMABLE = 4, /**< greedy */
  SIMILIS_REGISTER_SYMMETRIC = 5   /**< instead of it */
};
enum {
  SIMILIS_REGISTER_LNCC = 0,
  SIMILIS_REGISTER_NCC = 1,
  SIMILIS_REGISTER_MI = 2,
  SIMILIS_REGISTER_MSE = 3,
  SIMILIS_REGISTER_DICE = 4 /**< of labels; only of the deformable stages */
};
enum { SIMILIS_REGISTER_QUICK = 0, SIMILIS_REGISTER_BALANCED = 1, SIMILIS_REGISTER_ACCURATE = 2 };
enum {
  SIMILIS_REGISTER_START_AUTO = 0,
  SIMILIS_REGISTER_START_CENTERS = 1,
  SIMILIS_REGISTER_START_MOMENTS = 2,
  SIMILIS_REGISTER_START_IDENTITY = 3,
  SIMILIS_REGISTER_START_GIVEN = 4 /**< the options' initial */
};

/** An image and its place: rows of 3 factors and an addend take voxel numbers (x, y, z) to
 * millimetres. */
typedef struct similis_volume {
  const similis_tensor* data; /**< [1,C,Y,X] or [1,C,Z,Y,X], both on one device */
  double to_world[12];
} similis_volume;

/** One term of what a stage maximises. */
typedef struct similis_metric_term {
  int32_t metric;      /**< SIMILIS_REGISTER_LNCC and so on */
  int32_t window_size; /**< of lncc, in voxels, odd */
  int32_t num_bins;    /**< of mi */
  int32_t reserved;    /**< 0 */
  double weight;
  double sampling; /**< of mi: share of the voxels that are counted */
  uint64_t seed;   /**< which voxels these are */
} similis_metric_term;
#define SIMILIS_METRIC_TERM_DEFAULTS \
  { SIMILIS_REGISTER_LNCC, 5, 48, 0, 1.0, 1.0, 0 }

/** The state after an iteration. */
typedef struct similis_register_progress {
  int32_t stage;      /**< SIMILIS_REGISTER_RIGID and so on */
  int32_t shrink;     /**< factor of the level; 0 in linear stages */
  int32_t iteration;  /**< from 0 */
  int32_t iterations; /**< of the level, at most */
  double loss;
  double min_jacobian; /**< least determinant of the field that the loss is of; 1 without one */
} similis_register_progress;

typedef struct similis_register_options {
  size_t struct_size;
  const int32_t* stages; /**< NULL: rigid, affine and deformable */
  int64_t stage_count;
  const similis_metric_term* metrics; /**< NULL: lncc and ncc */
  int64_t metric_count;
  const int32_t* iterations; /**< per level, coarse to fine; NULL: the preset's */
  int64_t iteration_count;
  const int32_t* levels; /**< shrink factors; NULL: 4, 2, 1, more for large images */
  int64_t level_count;
  similis_metric_term linear_metric;
  double initial[12]; /**< read with SIMILIS_REGISTER_START_GIVEN */
  double fluid;       /**< in voxels; negative: 3 and up to 1 for noise, or 4 where mi is alone */
  double elastic;     /**< in voxels; negative: 0.25 */
  double step, min_jacobian, tolerance;
  const similis_tensor* fixed_mask;  /**< [Y,X] or [Z,Y,X]; NULL: all voxels count */
  const similis_tensor* moving_mask; /**< likewise on the moving grid */
  const char* fixed_name;            /**< in messages; NULL: "fixed" */
  const char* moving_name;           /**< NULL: "moving" */
  int32_t start;                     /**< SIMILIS_REGISTER_START_… */
  int32_t preset;                    /**< SIMILIS_REGISTER_QUICK and so on */
  int32_t mask_not_finite;           /**< 1: NaN and infinity are outside the mask */
  int32_t reserved;                  /**< 0 */
  /** Called after each iteration (on a GPU up to 10 iterations later), on the thread of the caller;
   * 0 ends the registration with the last valid field. NULL: not called. */
  int32_t (*progress)(void* context, const similis_register_progress* progress);
  void* progress_context;
  const similis_tensor* fixed_labels;  /**< integers, shaped as a mask; read with the metric dice */
  const similis_tensor* moving_labels; /**< likewise on the moving grid */
} similis_register_options;
#define SIMILIS_REGISTER_DEFAULTS                                                                 \
  {                                                                                               \
    sizeof(similis_register_options), NULL, 0, NULL, 0, NULL, 0, NULL, 0,                         \
        {SIMILIS_REGISTER_MI, 5, 32, 0, 1.0, 1.0, 0}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, -1.0, \
        -1.0, 0.5, 0.1, 1e-5, NULL, NULL, NULL, NULL, SIMILIS_REGISTER_START_AUTO,                \
        SIMILIS_REGISTER_BALANCED, 0, 0, NULL, NULL, NULL, NULL                                   \
  }

/** The result of a registration. */
typedef struct similis_registration similis_registration;

/** Registers moving to fixed. The result is the caller's, who destroys it. */
SIMILIS_API similis_status similis_register(const similis_volume* fixed,
    const similis_volume* moving, const similis_register_options* options,
    similis_registration** registration, const similis_execution* execution);
/** NULL is allowed. */
SIMILIS_API void similis_registration_destroy(similis_registration* registration);

/** The affine map A: rows of 3 factors and an addend. */
SIMILIS_API similis_status similis_registration_affine(
    const similis_registration* registration, double affine[12]);
/** 1 if there is a displacement, 0 without a deformable stage. */
SIMILIS_API int32_t similis_registration_has_displacement(const similis_registration* registration);
/** Copies of u, of the inverse's w, and of the moving image on the fixed grid. output: float32,
 * dense, [1,Y,X,2] or [1,Z,Y,X,3], in mm, and [1,C,Y,X] or [1,C,Z,Y,X]; on the CPU, or on the
 * images' GPU. They return when the copy is there. */
SIMILIS_API similis_status similis_registration_displacement(
    const similis_registration* registration, const similis_tensor* output);
SIMILIS_API similis_status similis_registration_inverse_displacement(
    const similis_registration* registration, const similis_tensor* output);
SIMILIS_API similis_status similis_registration_warped(
    const similis_registration* registration, const similis_tensor* output);

/** Settings, stages with their losses, similarity before and after, determinants and warnings in
 * JSON, as report.json of `similis register` has them. fixed, moving and their masks, which may be
 * NULL: those of the registration; fixed and moving both NULL leaves out the similarity and the
 * determinants, which take as long as a few iterations. Voxels outside a mask are not compared.
 * Sets *json to a text that is valid until the next call or as long as the registration. */
SIMILIS_API similis_status similis_registration_report(similis_registration* registration,
    const similis_volume* fixed, const similis_volume* moving, const similis_tensor* fixed_mask,
    const similis_tensor* moving_mask, const char** json, const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
