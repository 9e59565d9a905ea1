// SPDX-License-Identifier: Apache-2.0
// The arguments of the fast path's kernels. fast_path.cu chooses them, parts.h divides the work.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/lncc/cuda/plan.h"

namespace similis::lncc_internal {

constexpr int kOutputs = 8;  // outputs per thread: windows that begin one line after the other
constexpr int kWindowThreads = 384;    // on a multiprocessor at once with 168 registers each,
constexpr int kGradientThreads = 384;  // in one block or several

/// The number of pixels that are copied together: those of 16 bytes, of halves or of f32.
SIMILIS_HOST_DEVICE constexpr int pixels_together(bool are_halves) { return are_halves ? 8 : 4; }

/// [first, last) along an axis.
struct Range {
  int first, last;

  SIMILIS_HOST_DEVICE int length() const { return last - first; }
  SIMILIS_HOST_DEVICE bool holds(int position) const {
    return position >= first && position < last;
  }
};

/// A box of centres or of pixels.
struct Box {
  Range planes, rows, columns;
};

/// Derivatives of one centre, for the gradient to one image: the window sums of
/// by_covariance·(other image) + by_variance·(own image) - rest are the gradient. `rest` cancels
/// the two others to many digits and is f64 even if they are f32.
template <class Value> struct alignas(2 * sizeof(Value)) CentreDerivatives {
  Value by_covariance, by_variance;
  double rest;
};

/// The same in f64, or window sums of it.
struct DerivativeSums {
  double by_covariance, by_variance, rest;

  __device__ __forceinline__ void operator+=(const DerivativeSums& s) {
    by_covariance += s.by_covariance, by_variance += s.by_variance, rest += s.rest;
  }
  __device__ __forceinline__ void operator-=(const DerivativeSums& s) {
    by_covariance -= s.by_covariance, by_variance -= s.by_variance, rest -= s.rest;
  }
};

/// Store and load derivatives; those of f32 in one instruction.
__device__ __forceinline__ void store_centre(
    CentreDerivatives<float>* to, float by_covariance, float by_variance, double rest) {
  *reinterpret_cast<double2*>(to) = {
      __hiloint2double(__float_as_int(by_variance), __float_as_int(by_covariance)), rest};
}
__device__ __forceinline__ void store_centre(
    CentreDerivatives<double>* to, double by_covariance, double by_variance, double rest) {
  *to = {by_covariance, by_variance, rest};
}
__device__ __forceinline__ DerivativeSums load_centre(const CentreDerivatives<float>* from) {
  const double2 derivative = *reinterpret_cast<const double2*>(from);
  return {__int_as_float(__double2loint(derivative.x)),
      __int_as_float(__double2hiint(derivative.x)), derivative.y};
}
__device__ __forceinline__ DerivativeSums load_centre(const CentreDerivatives<double>* from) {
  return {from->by_covariance, from->by_variance, from->rest};
}

/// Derivatives of a box of centres, for the gradients to one image or both, of some volumes
/// (channels of images): [volume][plane][column][row], rows fastest, for the sliding window and
/// [volume][plane][row][column] for filters. Planes before `first_plane`
/// have memory of their own.
struct DerivativeMaps {
  static constexpr std::int64_t kAlignment = 16;

  char* data[2] = {};   ///< plane `first_plane`, for each image
  char* early[2] = {};  ///< plane kept.planes.first
  int images = 0;       ///< 0 if no derivatives are asked for
  int first_plane = 0;
  Box kept = {};
  std::int64_t plane_bytes = 0, early_plane_bytes = 0, volume_bytes = 0;

  /// Returns the first byte of a plane of a volume, counted from the first volume at work.
  SIMILIS_HOST_DEVICE char* plane(int volume, int image, int z) const {
    if (z < first_plane) return early[image] + (z - kept.planes.first) * early_plane_bytes;
    char* const start = data[image] + volume * volume_bytes + (z - first_plane) * plane_bytes;
    const auto past = reinterpret_cast<std::uintptr_t>(start) % kAlignment;
    return past == 0 ? start : start + (kAlignment - static_cast<std::int64_t>(past));
  }
};

/// The chunks of planes along z: those of several segments, each with chunks of one length. Sums
/// begin anew with every chunk, so their bits depend on where chunks begin.
struct Chunks {
  static constexpr int kMostSegments = 24;
  struct Segment {
    int first_plane, chunk_planes, first_chunk;
  };

  int segments = 0, count = 0, last_plane = 0;
  Segment segment[kMostSegments] = {};

  SIMILIS_HOST_DEVICE Range planes(int chunk) const {
    int i = segments - 1;
    while (chunk < segment[i].first_chunk) --i;
    const Segment& s = segment[i];
    const int first = s.first_plane + (chunk - s.first_chunk) * s.chunk_planes;
    const int end = i + 1 < segments ? segment[i + 1].first_plane : last_plane;
    return {first, first + s.chunk_planes < end ? first + s.chunk_planes : end};
  }
};

/// The outputs of a tile along the axis of which it sees `halo` places more: whole runs of
/// kOutputs. Runs then begin at multiples of kOutputs of the image in every tile and part, so that
/// neither changes a bit of a sum.
SIMILIS_HOST_DEVICE int whole_runs(int threads_across, int halo) {
  return (threads_across - halo) / kOutputs * kOutputs;
}

/// The size of a block's tile, and the number of tiles. A block has threads_across threads side by
/// side along one axis; along the other axis it has threads_along threads of kOutputs windows each.
struct Tiles {
  int threads_across = 0, threads_along = 0;
  int count_x = 0, count_y = 0;  // number of tiles along x and y
  int chunk_planes = 1;          // the most planes of a chunk
  int volumes = 1;               // volumes that a launch takes
  Chunks chunks = {};
  std::int64_t first_volume = 0;

  int threads() const { return threads_across * threads_along; }
  /// Number of sums in the shared tile, whose lines have one sum more than threads, an odd number.
  SIMILIS_HOST_DEVICE int shared_sums() const {
    return threads_along * kOutputs * (threads_across + 1) + kOutputs;
  }
  std::int64_t blocks() const { return std::int64_t{count_x} * count_y * chunks.count * volumes; }
};

/// The tile of a block.
struct BlockTile {
  int x, y, chunk, volume;

  __device__ explicit BlockTile(const Tiles& tiles) {
    unsigned rest = blockIdx.x;
    x = static_cast<int>(rest % static_cast<unsigned>(tiles.count_x));
    rest /= static_cast<unsigned>(tiles.count_x);
    y = static_cast<int>(rest % static_cast<unsigned>(tiles.count_y));
    rest /= static_cast<unsigned>(tiles.count_y);
    chunk = static_cast<int>(rest % static_cast<unsigned>(tiles.chunks.count));
    volume = static_cast<int>(rest / static_cast<unsigned>(tiles.chunks.count));
  }
};

struct WindowArguments {
  Problem problem;
  Tiles tiles;
  DerivativeMaps derivatives;
  Box centres;       // those of derivatives, and rows before them so that a run of outputs begins
  Box owned;         // the centres that add to values
  double scale;      // 1 / the number of taps
  double* partials;  // [volume][slots]; null with a map
  int slots, first_slot;
  bool has_f32_formula, has_f64_derivatives;  // of filters
  bool has_whole_copies;   // rows of both images begin and end at multiples of 16 bytes
  bool has_whole_runs;     // runs of outputs begin at such places of what centres load and store
  bool has_whole_weights;  // rows of valid_mask begin and end so
};

struct GradientArguments {
  Problem problem;
  Tiles tiles;
  DerivativeMaps derivatives;
  Box pixels;
  Values values;  // the last blocks write them, after all else
};

/// The form of a pass. Sliding windows: f32 and half for f32 images and those of f16 and bf16 whose
/// planes 32 bits can index; f64 for others; far for windows so wide that a block has no room for
/// the pixels or derivatives under them; valid for f32 images under a valid_mask. filter: any taps,
/// up to kMostTaps. none: the fast path does not take it.
enum class Form : std::uint8_t { f32, half, f64, far, valid, filter, none };

/// Kinds of centres of the sliding window's kernel. The f32 formula reduces those of the first four
/// kinds to a number:
///   plain, is_signed   all weigh and average alike; the exact gradient, if any
///   weighted           the same as plain with weights (those of valid_mask in a kernel of their
///                      own) or with windows that average what they have
///   ants               the squared measure, with ANTs' gradient to x
///   any                all else
enum class Kind : std::uint8_t { plain, is_signed, weighted, ants, any };
Kind kind_of(const Pass& pass, Form form);
/// Returns true if tiles hold whole runs of outputs, which begin at multiples of kOutputs columns:
/// centres of these kinds load from memory, or store to it, by rows.
SIMILIS_HOST_DEVICE constexpr bool takes_whole_runs(Kind kind) {
  return kind == Kind::weighted || kind == Kind::ants;
}

/// The taps of a filter along z, y and x, the same from both ends.
constexpr int kMostTaps = 11;
/// Filters have kernels of up to 7, 9 and kMostTaps taps.
SIMILIS_HOST_DEVICE constexpr int filter_window_threads(int taps) { return taps <= 7 ? 192 : 256; }
constexpr int kFilterGradientThreads = 256;
/// Number of such blocks on a multiprocessor at once, as registers allow.
SIMILIS_HOST_DEVICE constexpr int filter_window_blocks(int taps) { return taps <= 7 ? 2 : 1; }
SIMILIS_HOST_DEVICE constexpr int filter_gradient_blocks(int taps) { return taps <= 9 ? 2 : 1; }
struct FilterTaps {
  double along[3][kMostTaps] = {};  // 0 beyond count
  int count[3] = {};
};

/// Number of threads of windows under valid_mask on a multiprocessor at once.
int valid_threads();

/// Queue one kernel.
void launch_filter_windows(
    const CudaPlan& plan, const WindowArguments& arguments, const FilterTaps& taps);
void launch_filter_gradient(
    const CudaPlan& plan, const GradientArguments& arguments, const FilterTaps& taps);
void launch_windows(const CudaPlan& plan, const WindowArguments& arguments, Form form);
void launch_gradient(const CudaPlan& plan, const GradientArguments& arguments, Form form);
void launch_valid_windows(const CudaPlan& plan, const WindowArguments& arguments);
void launch_valid_gradient(const CudaPlan& plan, const GradientArguments& arguments);

/// Return the bytes of shared memory that a block of either kernel needs under a window of these
/// radii (z, y, x).
std::int64_t window_bytes(const Tiles& tiles, const int (&radius)[3], Form form);
std::int64_t valid_window_bytes(const Tiles& tiles, const int (&radius)[3]);
std::int64_t gradient_bytes(const Tiles& tiles, const int (&radius)[3], Form form);

/// An offset within a plane, of 32 bits if they are known to be enough.
template <class Value>
using Offset = std::conditional_t<sizeof(Value) == sizeof(float), int, std::int64_t>;

/// The values that pixels are counted from, so that sums of squares keep their digits: those of
/// each volume's middle pixel.
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
