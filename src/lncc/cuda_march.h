// SPDX-License-Identifier: Apache-2.0
// The march: what its two kernels are told. cuda_march.cu deals the work out.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/lncc/cuda_plan.h"

namespace similis::lncc_internal {

constexpr int kEight = 8;              // windows of a thread
constexpr int kWindowThreads = 384;    // on a multiprocessor at once, with 168 registers each,
constexpr int kGradientThreads = 192;  // and half of them

/// Of the gradient to one image, in f32 where images are f32.
template <class Value> struct alignas(2 * sizeof(Value)) FieldPair {
  Value by_covariance, by_variance;
};

/// Three fields of the gradient to each image, for planes of some volumes (channels of images):
/// window sums of by_covariance·(other image) + by_variance·(own image) - rest are the gradient.
/// `rest` cancels the two others to many digits and is f64. A ring along z, rows along y fastest:
/// [volume][image][plane % slots][column][row].
struct Fields {
  void* pairs;  // of FieldPair
  double* rests;
  int images, slots;       // how many gradients; planes in the ring
  int columns;             // as many as the image has
  std::int64_t row_first;  // the first row that is kept,
  int rows;                // and how many

  SIMILIS_HOST_DEVICE std::int64_t plane_size() const { return std::int64_t{columns} * rows; }
  /// Where a plane of a volume (counted from the first of those at work) begins.
  SIMILIS_HOST_DEVICE std::int64_t plane(int volume, int image, int z) const {
    return ((std::int64_t{volume} * images + image) * slots + z % slots) * plane_size();
  }
};

/// What a block takes, and how many of them there are. Along one axis a thread is a lane; along the
/// other it has eight windows.
struct Tiles {
  int lanes = 0, eights = 0;         // of a block
  int across = 0, down = 0;          // tiles along x and y
  int chunk_planes = 1, chunks = 1;  // along z
  int volumes = 1;                   // at once
  std::int64_t first_volume = 0;

  int threads() const { return lanes * eights; }
  std::int64_t blocks() const { return std::int64_t{across} * down * chunks * volumes; }
};

/// Which tile a block has.
struct Tile {
  int across, down, chunk, volume;

  __device__ explicit Tile(const Tiles& tiles) {
    unsigned rest = blockIdx.x;
    across = static_cast<int>(rest % static_cast<unsigned>(tiles.across));
    rest /= static_cast<unsigned>(tiles.across);
    down = static_cast<int>(rest % static_cast<unsigned>(tiles.down));
    rest /= static_cast<unsigned>(tiles.down);
    chunk = static_cast<int>(rest % static_cast<unsigned>(tiles.chunks));
    volume = static_cast<int>(rest / static_cast<unsigned>(tiles.chunks));
  }
};

/// [first, last) along an axis.
struct Range {
  int first, last;

  SIMILIS_HOST_DEVICE int length() const { return last - first; }
  SIMILIS_HOST_DEVICE bool holds(int position) const {
    return position >= first && position < last;
  }
};

struct WindowMarch {
  Measure measure;
  Tiles tiles;
  Fields fields;       // images == 0: only values are asked for, or ANTs' gradient
  Range planes, rows;  // of centres
  Range owned_rows;    // those that add to values
  double scale;        // 1 / the number of taps
  double* partials;    // [volume][slots]; null with a map
  int slots, first_slot;
};

struct GradientMarch {
  Measure measure;
  Tiles tiles;
  Fields fields;
  Range planes, rows;  // of pixels
};

/// Queue one kernel; `is_f32`: of images that are f32, and whose planes 32 bits can index.
void launch_windows(const CudaPlan& plan, const WindowMarch& march, bool is_f32);
void launch_gradient(const CudaPlan& plan, const GradientMarch& march, bool is_f32);

/// Bytes of shared memory that a block of either needs.
std::int64_t window_bytes(const Tiles& tiles);
std::int64_t gradient_bytes(const Tiles& tiles);

/// Where a pixel of a plane lies: 32 bits where they are known to do.
template <class Value>
using Offset = std::conditional_t<sizeof(Value) == sizeof(float), int, std::int64_t>;

/// One plane of an image in a kernel.
template <class Value> class PixelPlane {
 public:
  __device__ PixelPlane(const gpu::View& view, std::int64_t offset)
      : data_(static_cast<const char*>(view.data)), dtype_(view.dtype), offset_(offset) {
    if constexpr (sizeof(Value) == sizeof(float)) {
      data_ += offset * static_cast<std::int64_t>(sizeof(float));
    }
  }
  __device__ __forceinline__ Value load(Offset<Value> offset) const {
    if constexpr (sizeof(Value) == sizeof(float)) {
      return reinterpret_cast<const float*>(data_)[offset];
    } else {
      return gpu::load_element(data_, dtype_, offset_ + offset);
    }
  }

 private:
  const char* data_;
  DType dtype_;
  std::int64_t offset_;
};

/// What pixels are counted from, so that sums of squares keep their digits: each volume's middle.
struct Shift {
  double x, y;
};
__device__ inline Shift shift_of(const Measure& m, std::int64_t volume) {
  const Geometry& g = m.geometry;
  const Place middle{
      volume / g.channels, volume % g.channels, g.extent[0] / 2, g.extent[1] / 2, g.extent[2] / 2};
  const double x = Measure::load(m.x, middle), y = Measure::load(m.y, middle);
  return {x - x == 0 ? x : 0, y - y == 0 ? y : 0};
}

}  // namespace similis::lncc_internal
