// SPDX-License-Identifier: Apache-2.0
// What the march kernel is given, and who queues it.
#pragma once

#include <cstdint>

#include "src/ssim/cuda/plan.h"

namespace similis::ssim_internal {

/// Planes in memory that the copy engine can walk: rows of unit stride, all else at multiples of 16
/// bytes. Strides count elements.
struct PlaneArray {
  const void* data = nullptr;
  std::int64_t row_stride = 0, channel_stride = 0, image_stride = 0;
};

/// What a segment adds to its plane: halves of Σ (1 - SSIM), and Σ |x - y|.
struct Partial {
  double term, l1;
};

/// How partials become values, in the last block to arrive; `value` is null where other kernels do.
struct SlidingWindowFinish {
  void* value;
  DType dtype;
  std::int64_t groups, planes_each;
  double bias, term, l1;  ///< value = bias + term·Σ (1 - SSIM) + l1·Σ |x - y|
  unsigned* arrived;      ///< how many blocks are done; 0 before the launch
};

/// What few calls want.
struct SlidingWindowExtras {
  bool sums_l1 = false;
  float difference_sign = 1;          ///< of x - y as memory holds it: -1 for the gradient by y
  gpu::View map;                      ///< where the map goes
  float map_bias = 0, map_slope = 0;  ///< map = mask·(map_bias + map_slope·(1 - SSIM))
  gpu::View upstream, mask;           ///< of each map element; the mask is as large as the images
  gpu::View halved_sum, halved_difference;  ///< where they go; without data if nowhere
  gpu::View any_gradient;  ///< where it goes if SlidingWindow::gradient has no data
};

/// Planes, and where their map lies. Work is counted in pairs of rows of strips of columns: `rows`
/// of each strip, `strips` a plane, and `lead` before a strip's first, for what it costs a block to
/// begin there with another strip behind it. Blocks take equal shares of them in order, and a
/// block's share of a strip is a segment.
struct SlidingWindow {
  PlaneArray x, y;
  gpu::View any_x, any_y;  ///< the same for kernels that take any strides and dtype
  std::int64_t planes, images, channels;
  int width, height;
  int strips, rows, lead;       ///< rows and lead are an even number together
  int owned;                    ///< columns of a strip that it answers for
  bool is_whole;                ///< a gradient's strip is a whole image, with nothing beside it
  int first_column, first_row;  ///< of what the first strip loads; outside the image too
  int map_x0, map_x1, map_y0, map_y1;  ///< pixels that windows are centred on
  float taps[6];                       ///< the first half and the middle one
  float c1, c2;                        ///< 2·C1, infinite for the contrast term alone, and 2·C2
  PlaneSlope slope;
  PlaneArray gradient;  ///< by x
  DType gradient_dtype;
  Partial* partials;  ///< [block + strip's number]; null if nothing is summed
  double blocks_a_pair;
  SlidingWindowFinish finish;
  SlidingWindowExtras extras;

  SIMILIS_HOST_DEVICE std::int64_t pairs_a_strip() const { return (rows + lead) / 2; }
  SIMILIS_HOST_DEVICE std::int64_t pairs() const { return planes * strips * pairs_a_strip(); }
};

/// One instance of the kernel, and what its strips are like.
struct SlidingWindowVariant {
  int owned, loaded;  ///< columns of a strip
  int owned_alone;    ///< of the only strip: all that it sees the windows of
  int align;          ///< copies begin at multiples of so many columns
  int lead;           ///< rows that a segment marches beside its own
  int shared_bytes;
  int (*blocks)(const SlidingWindow& window, Device device);  ///< how many a launch takes
  void (*launch)(const SlidingWindow& window, int blocks, const Execution& exec);
};

/// What an instance of the kernel can do. Conditions that few calls need cost all of them 20 %.
enum class Scope : std::uint8_t {
  plain,     ///< means and sums, their gradient in the images' dtype
  training,  ///< with |x - y|, and with halved images on the way
  all,       ///< with masks, maps and their upstream, and gradients of any dtype and strides
};

/// What is asked for; the instance may do more, and know one width only.
struct SlidingWindowKind {
  bool gradient;
  Scope scope;
  bool wide;
};
SlidingWindowVariant sliding_window_of_f32(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_f16(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_bf16(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_u8(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_sums(SlidingWindowKind kind);
SlidingWindowVariant sliding_window_of_any(SlidingWindowKind kind);

}  // namespace similis::ssim_internal
