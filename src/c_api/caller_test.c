/* SPDX-License-Identifier: Apache-2.0
 * A caller that is C and nothing else: the headers compile as C11, the macros initialise, and a
 * call gives the number that the formula gives. c_api_test.cc runs it. */
#include <math.h>
#include <string.h>

#include "similis/similis.h"

/* Two flat images: no variance, so that SSIM is (2ab + C1) / (a² + b² + C1). */
static const char* complain_about_flat_images(similis_runner runner) {
  enum { kSide = 16 };
  static float x[kSide * kSide], y[kSide * kSide];
  for (int i = 0; i < kSide * kSide; ++i) {
    x[i] = 0.25f;
    y[i] = 0.5f;
  }
  int64_t shape[4] = {1, 1, kSide, kSide};
  const similis_tensor x_tensor = {
      .data = x, .device = {SIMILIS_CPU, 0}, .ndim = 4, .dtype = SIMILIS_FLOAT32, .shape = shape};
  similis_tensor y_tensor = x_tensor;
  y_tensor.data = y;
  float value = 0;
  const similis_tensor value_tensor = {
      .data = &value, .device = {SIMILIS_CPU, 0}, .ndim = 0, .dtype = SIMILIS_FLOAT32};

  similis_ssim_options options = SIMILIS_SSIM_DEFAULTS;
  options.padding = SIMILIS_PADDING_REFLECT;
  similis_execution execution = SIMILIS_EXECUTION_DEFAULTS;
  execution.runner = runner;
  if (similis_ssim(&x_tensor, &y_tensor, &options, NULL, &value_tensor, NULL, NULL, &execution) !=
      SIMILIS_OK) {
    return similis_last_error();
  }
  const double c1 = 1e-4, expected = (2 * 0.25 * 0.5 + c1) / (0.25 * 0.25 + 0.5 * 0.5 + c1);
  return fabs(value - expected) < 1e-6 ? "" : "SSIM of flat images is not what the formula says";
}

const char* complaint_of_a_c_caller(void);
const char* complaint_of_a_c_caller(void) {
  if (strcmp(similis_version(), SIMILIS_VERSION) != 0) return "the versions differ";
  similis_thread_pool* pool = NULL;
  if (similis_thread_pool_create(2, &pool) != SIMILIS_OK) return similis_last_error();
  const char* complaint = complain_about_flat_images(similis_thread_pool_runner(pool));
  similis_thread_pool_destroy(pool);
  return complaint;
}
