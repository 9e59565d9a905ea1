// SPDX-License-Identifier: Apache-2.0
// The parts of the kernels for any window: what they are given, how a thread averages neighbours
// down a column or along a row, and how it loads and stores runs of pixels.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "src/ssim/cuda/formula.cuh"
#include "src/ssim/cuda/plan.h"

namespace similis::ssim_internal::any_window {

constexpr int kThreads = 256;
constexpr int kLoaded = 128;  // columns that a tile loads; it owns all but the rim that windows see
constexpr int kGroups = 4;    // of rows of a tile; a thread averages a column of one
constexpr int kMostRadius = 16, kMostTaps = 2 * kMostRadius + 1;
constexpr int kDerivatives = 3;

/// The layout of a tile in shared memory, by the type that sums have. A row is chunks of 16 bytes,
/// first the even ones and then the odd ones: threads that read two chunks each as neighbours in a
/// warp then use different banks, and so do threads that write a column each.
template <class T> struct Tiling {
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  static constexpr int kOutputs = 2 * kChunk;  // of a thread, along a column or a row
  static constexpr int kHigh = kGroups * kOutputs;
  static constexpr int kRuns = kLoaded / kOutputs;  // of a row
  static constexpr int kHalf = kLoaded / 2 + 64 / static_cast<int>(sizeof(T));
  static constexpr int kPitch = 2 * kHalf;
  static constexpr int kArray = kHigh * kPitch;
  static_assert(kLoaded * kGroups == kHigh * kRuns);
  static constexpr int kTasks = kLoaded * kGroups;
  __device__ static int word_of(int column) {
    const int chunk = column / kChunk;
    return (chunk & 1) * kHalf + (chunk >> 1) * kChunk + column % kChunk;
  }
};

/// The weights with which the windows that see a pixel of the rim take it, where they see it more
/// than once: a row for each pixel of the rim along an axis, radius + 1 at either end, as reflect
/// has windows at the edge see the pixel behind the radius twice; and the plain taps.
constexpr int kRimRows = 2 * (kMostRadius + 1) + 1, kPlain = kRimRows - 1;
template <class T> using RimTable = T[kRimRows][kMostTaps];

/// Axes of slices, and the one across them.
enum Axes : int { kDown, kAcross, kDeep, kAxes };

template <class T> struct Work {
  gpu::View x, y, mask, valid_mask, map, upstream, gradient;
  int extent[kAxes], map_extent[kAxes];
  int first_centre[kAxes], radius[kAxes];
  int pitch;                                   // of a row of averages and derivatives
  int owned;                                   // columns of a tile
  int across, down;                            // tiles of a slice
  std::int64_t channels, first_plane, planes;  // planes in memory
  T taps[kAxes][kMostTaps];
  Constants<T> constants;  // as point() takes them if they are f32
  Padding padding;
  bool contrast, reduces, of_sums;
  const float* middle;  // of each plane, to shift its s by; null: a voxel of x and y
  T sign;               // of d: -1 for the gradient by y
  T bias, term_weight, l1_weight;
  PlaneSlope slope;
  T* averages;       // [slice][4, or 5 with valid_mask][slice's array]; null for a 2-D image
  T* derivatives;    // [slice][3][slice's array]; null if not wanted
  double* partials;  // [plane][blocks]; null if nothing is summed

  __device__ std::int64_t slice_array() const { return std::int64_t{map_extent[kDown]} * pitch; }
  __device__ bool folds() const {
    return padding == Padding::reflect || padding == Padding::replicate;
  }
};

/// Returns the pixel that a window sees at an index, or -1.
SIMILIS_HOST_DEVICE int seen_pixel(int index, int extent, Padding padding) {
  if (static_cast<unsigned>(index) < static_cast<unsigned>(extent)) return index;
  int pixel = -1;
  if (padding == Padding::reflect) pixel = index < 0 ? -index : 2 * (extent - 1) - index;
  if (padding == Padding::replicate) pixel = index < 0 ? 0 : extent - 1;
  return pixel < extent ? pixel : -1;
}

/// Calls function(std::type_identity<E>) with the type of a dtype; f64 alone where T is double.
template <class T, class Function>
__device__ __forceinline__ void visit(DType dtype, const Function& function) {
  if constexpr (std::is_same_v<T, double>) {
    if (dtype == DType::f64) return function(std::type_identity<double>());
  }
  switch (dtype) {
    case DType::u8: return function(std::type_identity<std::uint8_t>());
    case DType::u16: return function(std::type_identity<std::uint16_t>());
    case DType::f16: return function(std::type_identity<F16>());
    case DType::bf16: return function(std::type_identity<BF16>());
    case DType::f64: return function(std::type_identity<double>());
    default: return function(std::type_identity<float>());
  }
}
template <class T, class E> __device__ __forceinline__ T element(const E* from) {
  if constexpr (std::is_same_v<T, float> && !std::is_same_v<E, double>) {
    return gpu::to_float(*from);
  } else {
    return static_cast<T>(load(*from));
  }
}

/// A slice of a plane of the images, its first element in each array, and the shift of s, which all
/// slices of a plane share.
template <class T> struct Slice {
  std::int64_t plane, image, channel;
  int index, map_index;  // in the images and in the map
  T half_shift = 0;

  __device__ Slice(const Work<T>& w, std::int64_t of_plane, int slice, int map_slice)
      : plane(of_plane),
        image(static_cast<unsigned>(of_plane) / static_cast<unsigned>(w.channels)),
        channel(of_plane - image * w.channels),
        index(slice),
        map_index(map_slice) {}
  __device__ std::int64_t of(const gpu::View& view) const {
    return view.plane(image, channel) + index * view.strides[2];
  }
  __device__ std::int64_t in_map(const gpu::View& view) const {
    return view.plane(image, channel) + map_index * view.strides[2];
  }

  /// Finds the shift: half of x + y at the first of 32 places of a box that exists and is finite,
  /// so that what a window does not see has no influence; unchanged if there is none. All threads
  /// of the block call it.
  __device__ void find_shift(
      const Work<T>& w, const int (&box_first)[kAxes], const int (&box_extent)[kAxes]) {
    if constexpr (std::is_same_v<T, double>) return;  // f64 has digits to spare
    const int lane = static_cast<int>(threadIdx.x) % gpu::kSubgroup;
    const int from_middle = (lane & 1) == 0 ? lane / 2 : -(lane / 2) - 1;
    const auto at = [&](Axes axis) {
      return box_first[axis] +
             static_cast<int>(std::int64_t{box_extent[axis]} * (33 + 2 * from_middle) / 66);
    };
    const auto load = [&](const gpu::View& view) {
      return view.load_f32(view.plane(image, channel) + view.at(at(kDeep), at(kDown), at(kAcross)));
    };
    const float half = (w.of_sums ? load(w.x) : load(w.x) + load(w.y)) / 2;
    const bool exists =
        fabsf(half) < INFINITY && (w.valid_mask.data == nullptr || load(w.valid_mask) > 0);
    const int first = gpu::first_lane(exists);
    if (first < gpu::kSubgroup) {
      half_shift = static_cast<T>(gpu::value_of(static_cast<double>(half), first));
    }
  }
  __device__ void find_shift_of_plane(const Work<T>& w) {
    if (std::is_same_v<T, float> && w.middle != nullptr) {
      const float middle = w.middle[plane];
      half_shift = fabsf(middle) < INFINITY ? static_cast<T>(middle) : T(0);
      return;
    }
    const int origin[kAxes] = {};
    find_shift(w, origin, w.extent);
  }
  __device__ T sum(const Work<T>& w, T x, T y) const {
    return w.of_sums ? x - 2 * half_shift : (x - half_shift) + (y - half_shift);
  }
  __device__ T difference(const Work<T>& w, T x, T y) const { return w.of_sums ? y : x - y; }
};

/// Averages inputs with taps: out[f][o] = Σ taps[k]·input[f][o + k], k < count. No input is
/// multiplied that an output does not see, so that one that is not finite reaches no other output.
/// `source` fetches kFetched inputs, and hands them out one by one.
template <int fields, int outputs, class T, class Source>
__device__ __forceinline__ void average(
    const T (&taps)[kMostTaps], int count, Source& source, T (&out)[fields][outputs]) {
  constexpr int kFetched = Source::kFetched;
  T window[fields][outputs];  // input k + o is at o + k modulo outputs
#pragma unroll
  for (int u = 0; u < outputs; ++u) {
    if (u % kFetched == 0) source.fetch(0, u);
    T input[fields];
    source.take(u % kFetched, input);
#pragma unroll
    for (int f = 0; f < fields; ++f) {
      window[f][u] = input[f];
      out[f][u] = 0;
    }
  }
#pragma unroll 1
  for (int k = 0; k < count; k += outputs) {
#pragma unroll
    for (int u = 0; u < outputs; ++u) {
      if (k + u >= count) break;
      if (u % kFetched == 0) source.fetch(k + outputs, u);
      const T tap = taps[k + u];
#pragma unroll
      for (int o = 0; o < outputs; ++o) {
#pragma unroll
        for (int f = 0; f < fields; ++f) {
          out[f][o] = fma(tap, window[f][(u + o) % outputs], out[f][o]);
        }
      }
      T input[fields];
      source.take(u % kFetched, input);
#pragma unroll
      for (int f = 0; f < fields; ++f) window[f][u] = input[f];
    }
  }
}

/// Does the same with taps of their own for each output: out[f][o] = Σ taps[o][k]·input[f][o + k].
template <int fields, int outputs, class T, class Source>
__device__ __forceinline__ void average_rim(
    const T* const (&taps)[outputs], int count, Source& source, T (&out)[fields][outputs]) {
  constexpr int kFetched = Source::kFetched;
#pragma unroll
  for (int o = 0; o < outputs; ++o) {
#pragma unroll
    for (int f = 0; f < fields; ++f) out[f][o] = 0;
  }
#pragma unroll 1
  for (int first = 0; first < count - 1 + outputs; first += outputs) {
#pragma unroll
    for (int u = 0; u < outputs; ++u) {
      if (u % kFetched == 0) source.fetch(first, u);
      T input[fields];
      source.take(u % kFetched, input);
#pragma unroll
      for (int o = 0; o < outputs; ++o) {
        const int k = first + u - o;
        if (k < 0 || k >= count) continue;
        const T tap = taps[o][k];
#pragma unroll
        for (int f = 0; f < fields; ++f) out[f][o] = fma(tap, input[f], out[f][o]);
      }
    }
  }
}

/// A run of a row in shared memory.
template <class T, int fields> struct SharedRow {
  using Layout = Tiling<T>;
  static constexpr int kFetched = Layout::kChunk;
  const T* first;  // of the thread's first input
  T fetched[fields][kFetched];

  __device__ SharedRow(const T* rows, int row, int run)
      : first(rows + row * Layout::kPitch + run * Layout::kChunk) {}
  __device__ __forceinline__ void fetch(int group, int u) {
    struct alignas(16) Chunk {
      T of[kFetched];
    };
    const T* const from =
        first + u / kFetched * Layout::kHalf + group / Layout::kOutputs * Layout::kChunk;
#pragma unroll
    for (int f = 0; f < fields; ++f) {
      const Chunk chunk = *reinterpret_cast<const Chunk*>(from + f * Layout::kArray);
#pragma unroll
      for (int i = 0; i < kFetched; ++i) fetched[f][i] = chunk.of[i];
    }
  }
  __device__ __forceinline__ void take(int i, T (&input)[fields]) const {
#pragma unroll
    for (int f = 0; f < fields; ++f) input[f] = fetched[f][i];
  }
};

/// Columns of a tile that a thread averages, on their way to shared memory.
template <class T, int fields>
__device__ __forceinline__ void store_column(
    T* rows, int group, int column, const T (&values)[fields][Tiling<T>::kOutputs]) {
  using Layout = Tiling<T>;
  T* const to = rows + group * Layout::kOutputs * Layout::kPitch + Layout::word_of(column);
#pragma unroll
  for (int o = 0; o < Layout::kOutputs; ++o) {
#pragma unroll
    for (int f = 0; f < fields; ++f) to[f * Layout::kArray + o * Layout::kPitch] = values[f][o];
  }
}

/// Loads neighbours in a row, 16 bytes at once if they lie so; the last ones may not exist, and are
/// 0 then.
template <class T, int count>
__device__ __forceinline__ void load_run(
    const gpu::View& view, std::int64_t offset, int existing, T (&out)[count]) {
  const std::int64_t stride = view.strides[4];
  visit<T>(view.dtype, [&]<class E>(std::type_identity<E>) {
    constexpr int kAtOnce =
        count < 16 / static_cast<int>(sizeof(E)) ? count : 16 / static_cast<int>(sizeof(E));
    struct alignas(kAtOnce * sizeof(E)) Pack {
      E of[kAtOnce];
    };
    const E* const from = static_cast<const E*>(view.data) + offset;
    if (existing == count && stride == 1 &&
        reinterpret_cast<std::uintptr_t>(from) % sizeof(Pack) == 0) {
#pragma unroll
      for (int j = 0; j < count / kAtOnce; ++j) {
        const Pack pack = reinterpret_cast<const Pack*>(from)[j];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) out[j * kAtOnce + i] = element<T>(&pack.of[i]);
      }
      return;
    }
#pragma unroll
    for (int o = 0; o < count; ++o) {
      out[o] = o < existing ? element<T>(from + o * stride) : T(0);
    }
  });
}

template <class T, int count>
__device__ __forceinline__ void store_run(
    const gpu::View& view, std::int64_t offset, int existing, const T (&values)[count]) {
  const std::int64_t stride = view.strides[4];
  const auto as = [&]<class E>(std::type_identity<E>) {
    constexpr int kAtOnce =
        count < 16 / static_cast<int>(sizeof(E)) ? count : 16 / static_cast<int>(sizeof(E));
    struct alignas(kAtOnce * sizeof(E)) Pack {
      E of[kAtOnce];
    };
    E* const to = static_cast<E*>(view.data) + offset;
    if (existing == count && stride == 1 &&
        reinterpret_cast<std::uintptr_t>(to) % sizeof(Pack) == 0) {
#pragma unroll
      for (int j = 0; j < count / kAtOnce; ++j) {
        Pack pack;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) store(values[j * kAtOnce + i], &pack.of[i]);
        reinterpret_cast<Pack*>(to)[j] = pack;
      }
      return;
    }
#pragma unroll
    for (int o = 0; o < count; ++o) {
      if (o < existing) store(values[o], to + o * stride);
    }
  };
  switch (view.dtype) {
    case DType::f16: return as(std::type_identity<F16>());
    case DType::bf16: return as(std::type_identity<BF16>());
    case DType::f64: return as(std::type_identity<double>());
    default: return as(std::type_identity<float>());
  }
}

// The tile of a block: its slice, counted from the first in memory, and its first row and column.
template <class T> struct Tile {
  unsigned slice, in_slice;
  int row, column;
  __device__ explicit Tile(const Work<T>& w) {
    const auto tiles = static_cast<unsigned>(w.across * w.down);
    slice = blockIdx.x / tiles;
    in_slice = blockIdx.x - slice * tiles;
    const int at = static_cast<int>(in_slice) / w.across;
    row = at * Tiling<T>::kHigh;
    column = (static_cast<int>(in_slice) - at * w.across) * w.owned;
  }
  __device__ Slice<T> found(const Work<T>& w) const {
    const auto depth = static_cast<unsigned>(w.extent[kDeep]);
    const unsigned plane = slice / depth;
    const auto index = static_cast<int>(slice - plane * depth);
    Slice<T> result(w, w.first_plane + plane, index, index);
    result.find_shift_of_plane(w);
    return result;
  }
};

// The row of the rim table for a pixel; the rim is `rim` pixels at either end.
__device__ __forceinline__ int rim_row(int pixel, int extent, int rim) {
  const int last = min(pixel, extent - 1);
  if (last < rim) return last;
  const int behind = last - (extent - rim);
  return behind < 0 ? kPlain : rim + behind;
}

// Fills the table of an axis with all threads of the block.
template <class T> __device__ void fill_rim(const Work<T>& w, Axes axis, RimTable<T>& table) {
  const T(&taps)[kMostTaps] = w.taps[axis];
  const int radius = w.radius[axis], extent = w.extent[axis];
  const int count = 2 * radius + 1, rim = radius + 1;
  for (int i = static_cast<int>(threadIdx.x); i < (2 * rim + 1) * count; i += kThreads) {
    const int row = i / count, k = i - row * count;
    if (row == 2 * rim) {
      table[kPlain][k] = taps[k];
      continue;
    }
    const int pixel = row < rim ? row : extent - rim + (row - rim);
    const int centre = pixel - radius + k;
    T weight = 0;
    if (pixel >= 0 && pixel < extent && centre >= 0 && centre < extent) {
      for (int j = 0; j < count; ++j) {
        if (seen_pixel(centre - radius + j, extent, w.padding) == pixel) weight += taps[j];
      }
    }
    table[row][k] = weight;
  }
}

// Sums the derivatives of the windows that see the outputs, by the axis's table if one is in the
// rim.
template <class T, class Source, int outputs>
__device__ __forceinline__ void sum_derivatives(const Work<T>& w, Axes axis, int first_pixel,
    const RimTable<T>& table, Source& source, T (&sums)[kDerivatives][outputs]) {
  const int extent = w.extent[axis], count = 2 * w.radius[axis] + 1, rim = w.radius[axis] + 1;
  const bool in_rim = w.folds() && (first_pixel < rim || first_pixel + outputs > extent - rim);
  if (!in_rim) return average(w.taps[axis], count, source, sums);
  const T* taps[outputs];
#pragma unroll
  for (int o = 0; o < outputs; ++o) taps[o] = table[rim_row(first_pixel + o, extent, rim)];
  average_rim(taps, count, source, sums);
}

}  // namespace similis::ssim_internal::any_window
