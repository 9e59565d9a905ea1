/* SPDX-License-Identifier: Apache-2.0
 * Mutual information; see mutual_information.hpp for the formula, its sources and the refusals.
 */
#ifndef SIMILIS_C_MUTUAL_INFORMATION_H
#define SIMILIS_C_MUTUAL_INFORMATION_H

#include "similis/c/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Values of options.kernel. */
enum {
  SIMILIS_PARZEN_B_SPLINE = 0, /**< cubic B-spline: 4 bins */
  SIMILIS_PARZEN_GAUSSIAN = 1, /**< Gaussian with a standard deviation of sigma_ratio / 2 bins */
  SIMILIS_PARZEN_DELTA = 2     /**< the bin that holds the value; no gradient */
};

/** Values of options.range. */
enum {
  SIMILIS_RANGE_PER_IMAGE = 0,     /**< limits of a channel of an image, for x and y separately */
  SIMILIS_RANGE_COMMON = 1,        /**< the same, for x and y together */
  SIMILIS_RANGE_FIXED = 2,         /**< low and high */
  SIMILIS_RANGE_UNIT_OR_COMMON = 3 /**< 0 and 1 if all values lie there, else limits of all */
};

/** Values of options.method. */
enum {
  SIMILIS_HISTOGRAM_EXACT = 0, /**< voxels are counted by the kernel's weights */
  SIMILIS_HISTOGRAM_BINNED = 1 /**< each voxel counts in one bin, then the histogram is blurred */
};

/** Values of options.form. */
enum {
  SIMILIS_MUTUAL_INFORMATION_MEASURE = 0,
  SIMILIS_MUTUAL_INFORMATION_LOSS = 1 /**< the negative */
};

typedef struct similis_mutual_information_options {
  size_t struct_size;
  double sigma_ratio;          /**< twice the Gaussian's standard deviation, in bins */
  double low, high;            /**< read with SIMILIS_RANGE_FIXED */
  double smooth_nr, smooth_dr; /**< log((p_ab + nr) / (p_a p_b + dr) + dr) if either is above 0 */
  double sampling;             /**< share of the voxels that are counted */
  uint64_t seed;               /**< chooses them */
  const similis_tensor* mask;  /**< voxels with a mask above 0 are counted; NULL: all */
  const similis_tensor* histogram; /**< of the whole image; NULL: of x and y */
  int32_t num_bins;                /**< 4 to 256 */
  int32_t kernel;                  /**< SIMILIS_PARZEN_… */
  int32_t range;                   /**< SIMILIS_RANGE_… */
  int32_t normalized;              /**< 1: (H(x) + H(y)) / H(x,y) */
  int32_t method;                  /**< SIMILIS_HISTOGRAM_… */
  int32_t reduction;               /**< SIMILIS_REDUCTION_…, over N and C; NONE is [N,C] */
  int32_t form;                    /**< SIMILIS_MUTUAL_INFORMATION_… */
  int32_t reserved;                /**< 0 */
  const similis_tensor* limits; /**< [N,C,4] in float64: those of x and of y; NULL: as range says */
} similis_mutual_information_options;
#define SIMILIS_MUTUAL_INFORMATION_DEFAULTS                                                      \
  {                                                                                              \
    sizeof(similis_mutual_information_options), 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0, NULL, NULL, 32, \
        SIMILIS_PARZEN_B_SPLINE, SIMILIS_RANGE_PER_IMAGE, 0, SIMILIS_HISTOGRAM_EXACT,            \
        SIMILIS_REDUCTION_MEAN, SIMILIS_MUTUAL_INFORMATION_MEASURE, 0, NULL                      \
  }

/** Mutual information of x and y in nats, and the gradients of Σ upstream·value.
 * x, y: [N,C,…] of 3 to 8 axes and any type, alike in all but their strides.
 * upstream: shaped as value, or NULL for 1. value: dense, float32 or float64, or NULL if not
 * wanted; without axes, [N] or [N,C], as options.reduction says. x_gradient, y_gradient: shaped
 * and typed as x, or NULL if not wanted. */
SIMILIS_API similis_status similis_mutual_information(const similis_tensor* x,
    const similis_tensor* y, const similis_mutual_information_options* options,
    const similis_tensor* upstream, const similis_tensor* value, const similis_tensor* x_gradient,
    const similis_tensor* y_gradient, const similis_execution* execution);

/** The joint histogram in voxels, into [N,C,bins,bins], dense, float64. */
SIMILIS_API similis_status similis_histogram(const similis_tensor* x, const similis_tensor* y,
    const similis_mutual_information_options* options, const similis_tensor* histogram,
    const similis_execution* execution);

/** The mutual information of a histogram, or of a sum of them. It reads the options sigma_ratio,
 * smooth_nr, smooth_dr, normalized, method and reduction. value: dense, float32 or float64. */
SIMILIS_API similis_status similis_mutual_information_from_histogram(
    const similis_tensor* histogram, const similis_mutual_information_options* options,
    const similis_tensor* value, const similis_execution* execution);

#ifdef __cplusplus
}
#endif

#endif
