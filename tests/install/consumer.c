/* SPDX-License-Identifier: Apache-2.0
 * SSIM of two binary PPM pictures, in C. */
#include <similis/similis.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t shape[4] = {1, 3}, strides[4] = {0, 1, 0, 3}; /* channels interleaved */
static similis_tensor read_picture(const char* file) {
  FILE* stream = fopen(file, "rb");
  if (!stream || fscanf(stream, "P6 %ld %ld 255", &shape[3], &shape[2]) != 2) exit(1);
  strides[2] = 3 * shape[3];
  fgetc(stream);
  void* pixels = malloc(strides[2] * shape[2]);
  if (fread(pixels, strides[2], shape[2], stream) != (size_t)shape[2]) exit(1);
  return (similis_tensor){pixels, {SIMILIS_CPU, 0}, 4, SIMILIS_UINT8, shape, strides, 0};
}
int main(int count, char** arguments) {
  if (count != 3) return 2;
  const similis_tensor x = read_picture(arguments[1]), y = read_picture(arguments[2]);
  float ssim;
  const similis_tensor value = {&ssim, {SIMILIS_CPU, 0}, 0, SIMILIS_FLOAT32, NULL, NULL, 0};
  if (similis_ssim(&x, &y, NULL, NULL, &value, NULL, NULL, NULL)) return puts(similis_last_error());
  return printf("%.17g\n", ssim) < 0;
}
