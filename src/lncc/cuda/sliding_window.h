// SPDX-License-Identifier: Apache-2.0
// The march: what its two kernels are told. cuda_march.cu deals the work out.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/lncc/cuda/plan.h"

namespace similis::lncc_internal {

constexpr int kOutputs = 8;            // windows of a thread
constexpr int kWindowThreads = 384;    // on a multiprocessor at once, with 168 registers each,
constexpr int kGradientThreads = 384;  // in one block or several
constexpr int kQuad = 4;               // pixels that are copied together

/// [first, last) along an axis.
struct Range {
  int first, last;

  SIMILIS_HOST_DEVICE int length() const { return last - first; }
  SIMILIS_HOST_DEVICE bool holds(int position) const {
    return position >= first && position < last;
  }
};

/// Of centres or of pixels.
struct Box {
  Range planes, rows, columns;
};

/// Of the gradient to one image at one centre: window sums of by_covariance·(other image) +
/// by_variance·(own image) - rest are the gradient. `rest` cancels the two others to many digits
/// and is f64 where they are f32.
template <class Value> struct alignas(2 * sizeof(Value)) CentreDerivatives {
  Value by_covariance, by_variance;
  double rest;
};

/// Fields of a box of centres, of the gradients to one image or both, for some volumes (channels of
/// images): [volume][plane][column][row], rows fastest. Planes before `first_plane` stand by
/// themselves.
struct DerivativeMaps {
  static constexpr std::int64_t kAlignment = 16;

  char* data[2] = {};   ///< of plane `first_plane`, for each image
  char* early[2] = {};  ///< of plane kept.planes.first
  int images = 0;       ///< 0: no derivatives are asked for
  int first_plane = 0;
  Box kept = {};
  std::int64_t plane_bytes = 0, early_plane_bytes = 0, volume_bytes = 0;

  /// Where a plane of a volume (counted from the first of those at work) begins.
  SIMILIS_HOST_DEVICE char* plane(int volume, int image, int z) const {
    if (z < first_plane) return early[image] + (z - kept.planes.first) * early_plane_bytes;
    char* const start = data[image] + volume * volume_bytes + (z - first_plane) * plane_bytes;
    const auto past = reinterpret_cast<std::uintptr_t>(start) % kAlignment;
    return past == 0 ? start : start + (kAlignment - static_cast<std::int64_t>(past));
  }
};

/// What a block takes, and how many of them there are. Along one axis a thread is a lane; along the
/// other it has eight windows.
struct Tiles {
  int threads_across = 0, threads_along = 0;
  int count_x = 0, count_y = 0;
  int chunk_planes = 1, chunks = 1;  // along z
  int volumes = 1;                   // at once
  std::int64_t first_volume = 0;

  int threads() const { return threads_across * threads_along; }
  std::int64_t blocks() const { return std::int64_t{count_x} * count_y * chunks * volumes; }
};

/// Which tile a block has.
struct BlockTile {
  int x, y, chunk, volume;

  __device__ explicit BlockTile(const Tiles& tiles) {
    unsigned rest = blockIdx.x;
    x = static_cast<int>(rest % static_cast<unsigned>(tiles.count_x));
    rest /= static_cast<unsigned>(tiles.count_x);
    y = static_cast<int>(rest % static_cast<unsigned>(tiles.count_y));
    rest /= static_cast<unsigned>(tiles.count_y);
    chunk = static_cast<int>(rest % static_cast<unsigned>(tiles.chunks));
    volume = static_cast<int>(rest / static_cast<unsigned>(tiles.chunks));
  }
};

struct WindowArguments {
  Problem problem;
  Tiles tiles;
  DerivativeMaps derivatives;
  Box centres;
  Box owned;         // those that add to values
  double scale;      // 1 / the number of taps
  double* partials;  // [volume][slots]; null with a map
  int slots, first_slot;
  bool has_quads;  // rows of both images begin at multiples of 16 bytes and have whole quads
};

struct GradientArguments {
  Problem problem;
  Tiles tiles;
  DerivativeMaps derivatives;
  Box pixels;
};

/// How a pass is computed: of images that are f32 and whose planes 32 bits can index; of others;
/// and of any under windows so wide that a block has no room for the pixels or derivatives under
/// them.
enum class Form : std::uint8_t { f32, f64, far };

/// Queue one kernel.
void launch_windows(const CudaPlan& plan, const WindowArguments& arguments, Form form);
void launch_gradient(const CudaPlan& plan, const GradientArguments& arguments, Form form);

/// Bytes of shared memory that a block of either needs under a window of these radii (z, y, x).
std::int64_t window_bytes(const Tiles& tiles, const int (&radius)[3], Form form);
std::int64_t gradient_bytes(const Tiles& tiles, const int (&radius)[3], Form form);

/// Where a pixel of a plane lies: 32 bits where they are known to do.
template <class Value>
using Offset = std::conditional_t<sizeof(Value) == sizeof(float), int, std::int64_t>;

/// What pixels are counted from, so that sums of squares keep their digits: each volume's middle.
struct Shift {
  double x, y;
};
__device__ inline Shift shift_of(const Problem& m, std::int64_t volume) {
  const Geometry& g = m.geometry;
  const Place middle{
      volume / g.channels, volume % g.channels, g.extent[0] / 2, g.extent[1] / 2, g.extent[2] / 2};
  const double x = Problem::load(m.x, middle), y = Problem::load(m.y, middle);
  return {x - x == 0 ? x : 0, y - y == 0 ? y : 0};
}

}  // namespace similis::lncc_internal
