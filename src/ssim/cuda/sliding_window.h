// SPDX-License-Identifier: Apache-2.0
// The arguments of the sliding window kernel, and the functions that queue it.
#pragma once

#include <cstdint>

#include "src/ssim/cuda/plan.h"

namespace similis::ssim_internal {

/// Planes in memory that the copy engine can walk: rows have unit stride, all else lies at
/// multiples of 16 bytes. Strides count elements.
struct PlaneArray {
  const void* data = nullptr;
  std::int64_t row_stride = 0, channel_stride = 0, image_stride = 0;
};

/// The amount that a segment adds to its plane: half of Σ (1 - SSIM), and Σ |x - y|.
struct Partial {
  double term, l1;
};

/// The last block to arrive turns partials into values by this; `value` is null if another kernel
/// does.
struct SlidingWindowFinish {
  void* value;
  DType dtype;
  std::int64_t groups, planes_each;
  double bias, term, l1;  ///< value = bias + term·Σ (1 - SSIM) + l1·Σ |x - y|
  unsigned* arrived;      ///< number of blocks that are done; 0 before the launch
};

/// The weights of pixels and windows under a valid_mask, which planes may share. Rows of pixels
/// begin with column 0, at a multiple of 16 bytes; a row of windows has two f32 for each: the
/// inverse of what it sees, and its weight in a mean, both 0 for a window of weight 0. Strides
/// count f32.
struct ValidWeights {
  /// Windows of a row begin with the one centred so many pixels before the image.
  static constexpr int kBefore = 13;

  const float* pixels = nullptr;
  const float* windows = nullptr;
  std::int64_t pixel_row = 0, window_row = 0, pixel_plane = 0, window_plane = 0;
  std::int64_t image_planes = 0, channel_planes = 0;  ///< planes to the next; 0 if they share one

  SIMILIS_HOST_DEVICE const float* pixels_of(std::int64_t image, std::int64_t channel) const {
    return pixels + (image * image_planes + channel * channel_planes) * pixel_plane;
  }
  SIMILIS_HOST_DEVICE const float* windows_of(std::int64_t image, std::int64_t channel) const {
    return windows + (image * image_planes + channel * channel_planes) * window_plane;
  }
};

/// Outputs and inputs that few calls have.
struct SlidingWindowExtras {
  bool sums_l1 = false;
  float difference_sign = 1;                ///< of the x - y in memory: -1 for the gradient by y
  gpu::View map;                            ///< the map to write
  float map_bias = 0, map_slope = 0;        ///< map = mask·(map_bias + map_slope·(1 - SSIM))
  gpu::View upstream, mask;                 ///< upstream is shaped as the map, mask as the images
  gpu::View halved_sum, halved_difference;  ///< to write; without data if not wanted
  gpu::View any_gradient;                   ///< the gradient to write if `gradient` has no data
  ValidWeights valid;                       ///< for the instances that weigh pixels
};

/// Planes, their map, and the division of the work. Work is counted in pairs of rows of strips of
/// columns: each plane has `strips` strips, each strip `rows` rows, and `lead` rows count before a
/// strip's first row, for the cost to a block of beginning there after another strip. Blocks take
/// equal shares in order; the part of a share that lies in one strip is a segment.
struct SlidingWindow {
  PlaneArray x, y;
  gpu::View any_x, any_y;  ///< the same for instances that take any strides and dtype
  std::int64_t planes, images, channels;
  int width, height;
  int strips, rows, lead;              ///< rows + lead is even
  int owned;                           ///< number of columns that a strip writes
  bool is_whole;                       ///< a gradient's only strip is a whole image
  int first_column, first_row;         ///< first that a strip loads; may lie outside the image
  int map_x0, map_x1, map_y0, map_y1;  ///< pixels that windows are centred on
  float taps[11];                      ///< the first half and the middle one of the instance's
  float c1, c2;                        ///< 2·C1, infinite for the contrast term alone, and 2·C2
  PlaneSlope slope;
  PlaneArray gradient;  ///< by x
  DType gradient_dtype;
  Partial* partials;  ///< [block + number of the strip]; null if nothing is summed
  double blocks_a_pair;
  SlidingWindowFinish finish;
  SlidingWindowExtras extras;

  SIMILIS_HOST_DEVICE std::int64_t pairs_a_strip() const { return (rows + lead) / 2; }
  SIMILIS_HOST_DEVICE std::int64_t pairs() const { return planes * strips * pairs_a_strip(); }
};

/// One instance of the kernel, and the size of its strips.
struct SlidingWindowVariant {
  int radius;         ///< of its windows; outer taps of smaller ones are 0
  int owned, loaded;  ///< columns of a strip
  int owned_alone;    ///< columns that a single strip owns
  int align;          ///< copies begin at multiples of so many columns
  int lead;           ///< rows that a segment takes beside its own
  int shared_bytes;
  int (*blocks)(const SlidingWindow& window, Device device);  ///< number of blocks of a launch
  void (*launch)(const SlidingWindow& window, int blocks, const Execution& exec);
};

/// The calls that an instance can take. Conditions that few calls need would cost all of them 20 %.
enum class Scope : std::uint8_t {
  plain,     ///< means and sums, their gradient in the images' dtype
  training,  ///< with |x - y|, and with halved images on the way
  all,       ///< with masks, maps and their upstream, and gradients of any dtype and strides
  masked,    ///< as plain, with weights of pixels; f32 alone
};

/// The instance that is asked for; the one that is given may do more, and have one width only.
struct SlidingWindowKind {
  bool gradient;
  Scope scope;
  bool wide;
  int radius = 5;  ///< or 10, which plain calls of f32 have in one width
};
SlidingWindowVariant sliding_window_of_f32(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_f16(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_bf16(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_u8(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_sums(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_any(SlidingWindowKind kind);

}  // namespace similis::ssim_internal
