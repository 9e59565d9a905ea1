// SPDX-License-Identifier: Apache-2.0
// Converts samples or light to X, Y, B and the light of the next scale; a thread takes 2×2 pixels
// of one side.
#pragma once

#include <type_traits>

#include "src/gpu/cuda/view.h"
#include "src/ssimulacra2/cuda/scale.cuh"

namespace similis::ssimulacra2_internal {

// One side of a batch.
struct Side {
  const void* data;
  DType dtype;
  int channels;
  bool is_linear;
  std::int64_t strides[4];

  explicit Side(const Pictures& pictures)
      : data(pictures.samples.data()),
        dtype(pictures.samples.dtype),
        channels(pictures.channels()),
        is_linear(pictures.transfer == Ssimulacra2Transfer::linear) {
    for (int axis = 0; axis < 4; ++axis) strides[axis] = pictures.samples.strides[axis];
  }
};

struct Source {
  Side x, y;
  int backgrounds;
  float background[2];
};

// Chooses one of two member by member, which keeps them in registers; a reference would refer to a
// copy in memory.
__device__ inline Side either(bool is_first, const Side& first, const Side& second) {
  Side side = second;
  side.data = is_first ? first.data : second.data;
  side.dtype = is_first ? first.dtype : second.dtype;
  side.channels = is_first ? first.channels : second.channels;
  side.is_linear = is_first ? first.is_linear : second.is_linear;
  for (int axis = 0; axis < 4; ++axis) {
    side.strides[axis] = is_first ? first.strides[axis] : second.strides[axis];
  }
  return side;
}

struct Rgb {
  float r, g, b;
};
struct Quad {
  Rgb of[2][2];
};

// A pixel of three planes.
template <class T> struct InPlanes {
  T* at[3];

  __device__ InPlanes(T* first, std::int64_t plane) : at{first, first + plane, first + 2 * plane} {}
  __device__ __forceinline__ void move(std::int64_t elements) {
    for (T*& each : at) each += elements;
  }
};

// The first of 2×2 pixels. At an odd edge the pixels outside repeat those inside.
struct QuadPlace {
  std::int64_t row, column;
  bool has_right;
};

// Gives the light of bytes without alpha. `table` has the light of the 256 bytes.
class ByteReader {
 public:
  static constexpr bool is_positive = true;
  __device__ ByteReader(
      const Scale&, const Source& source, const Side& side, const QuadPlace& place)
      : samples_(static_cast<const std::uint8_t*>(side.data) +
                     blockIdx.z / kSides / source.backgrounds * side.strides[0] +
                     place.row * side.strides[2] + place.column * side.strides[3],
            side.channels == 1 ? 0 : side.strides[1]),
        row_(side.strides[2]),
        right_(place.has_right ? side.strides[3] : 0) {}

  __device__ __forceinline__ Quad load(const float* table, bool has_below) const {
    const std::int64_t below = has_below ? row_ : 0;
    Quad quad;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t away = (i < 2 ? 0 : below) + (i % 2 == 0 ? 0 : right_);
      quad.of[i / 2][i % 2] = {
          table[samples_.at[0][away]], table[samples_.at[1][away]], table[samples_.at[2][away]]};
    }
    return quad;
  }
  __device__ __forceinline__ void move(int rows) { samples_.move(rows * row_); }

 private:
  InPlanes<const std::uint8_t> samples_;
  std::int64_t row_, right_;
};

// Gives the light of any samples.
class SampleReader {
 public:
  static constexpr bool is_positive = false;
  __device__ SampleReader(
      const Scale&, const Source& source, const Side& side, const QuadPlace& place)
      : side_(side),
        offset_(blockIdx.z / kSides / source.backgrounds * side.strides[0] +
                place.row * side.strides[2] + place.column * side.strides[3]),
        right_(place.has_right ? side.strides[3] : 0),
        background_(source.background[blockIdx.z / kSides % source.backgrounds]) {}

  __device__ Quad load(const float*, bool has_below) const {
    const std::int64_t below = has_below ? side_.strides[2] : 0;
    return {{{pixel(offset_), pixel(offset_ + right_)},
        {pixel(offset_ + below), pixel(offset_ + below + right_)}}};
  }
  __device__ void move(int rows) { offset_ += rows * side_.strides[2]; }

 private:
  __device__ Rgb pixel(std::int64_t offset) const {
    const int colors = side_.channels <= 2 ? 1 : 3;
    float values[3];
    float alpha = 1;
    const float scale = side_.dtype == DType::u8    ? 1 / 255.0f
                        : side_.dtype == DType::u16 ? 1 / 65535.0f
                                                    : 1.0f;
    const bool has_alpha = side_.channels % 2 == 0;
    const auto sample = [&](int channel) {
      return gpu::load_element_f32(side_.data, side_.dtype, offset + channel * side_.strides[1]) *
             scale;
    };
    if (has_alpha) alpha = sample(colors);
    for (int c = 0; c < 3; ++c) {
      if (c >= colors) {
        values[c] = values[0];
        continue;
      }
      float value = sample(c);
      if (has_alpha) value = blended(value, alpha, background_);
      values[c] = side_.is_linear ? value : linear_of_srgb(value);
    }
    return {values[0], values[1], values[2]};
  }

  const Side& side_;
  std::int64_t offset_, right_;
  float background_;
};

// Gives the light that the scale above left; that of bytes is_positive, 0 included.
template <bool positive> class LightReader {
 public:
  static constexpr bool is_positive = positive;
  __device__ LightReader(const Scale& s, const Source&, const Side&, const QuadPlace& place)
      : light_(
            s.light + blockIdx.z * std::int64_t{3} * s.plane() + place.row * s.pitch + place.column,
            s.plane()),
        pitch_(s.pitch),
        has_right_(place.has_right) {}

  __device__ __forceinline__ Quad load(const float*, bool has_below) const {
    Quad quad;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::int64_t below = i > 0 && has_below ? pitch_ : 0;
      const float2 r = pair(light_.at[0] + below), g = pair(light_.at[1] + below),
                   b = pair(light_.at[2] + below);
      quad.of[i][0] = {r.x, g.x, b.x};
      quad.of[i][1] = {r.y, g.y, b.y};
    }
    return quad;
  }
  __device__ __forceinline__ void move(int rows) { light_.move(rows * pitch_); }

 private:
  __device__ __forceinline__ float2 pair(const float* at) const {
    return has_right_ ? *reinterpret_cast<const float2*>(at) : make_float2(*at, *at);
  }
  InPlanes<const float> light_;
  std::int64_t pitch_;
  bool has_right_;
};

constexpr int kConvertThreads = 256, kConvertRows = 2 * kConvertThreads / kLanes;
// Returns the number of times that a thread goes down by kConvertRows: more with bytes, so that
// each table serves more of them.
template <class Reader> constexpr int kConvertTurns = 1;
template <> constexpr int kConvertTurns<ByteReader> = 4;

// Rows of X, Y and B are written up to a multiple of four columns, so that they can be read by
// fours.
template <class Reader>
__global__ __launch_bounds__(kConvertThreads) void convert_kernel(
    SIMILIS_GRID_CONSTANT const Scale s, SIMILIS_GRID_CONSTANT const Source source) {
  __shared__ float table[256];
  constexpr int turns = kConvertTurns<Reader>;
  const int t = static_cast<int>(threadIdx.x);
  if constexpr (std::is_same_v<Reader, ByteReader>) {
    table[t] = linear_of_srgb(static_cast<float>(t) * (1 / 255.0f));
    __syncthreads();
  }
  const std::int64_t column = (blockIdx.x * std::int64_t{kLanes} + t % kLanes) * 2;
  if (column >= (s.extent.width + 3) / 4 * 4) return;
  const bool is_inside = column < s.extent.width;
  std::int64_t row = blockIdx.y * std::int64_t{turns * kConvertRows} + t / kLanes * 2;
  const Side side = either(blockIdx.z % kSides != 0, source.y, source.x);
  Reader reader(s, source, side,
      {row, is_inside ? column : column - 2, is_inside && column + 1 < s.extent.width});
  const std::int64_t first_plane = blockIdx.z * std::int64_t{3};
  InPlanes<float> xyb(s.xyb + first_plane * s.plane() + row * s.pitch + column, s.plane());
  InPlanes<float> next(
      s.next_light + first_plane * s.next_plane() + row / 2 * s.next_pitch + column / 2,
      s.next_plane());
#pragma unroll 1
  for (int turn = 0; turn < turns && row < s.extent.height; ++turn, row += kConvertRows) {
    const bool has_below = row + 1 < s.extent.height;
    const Quad light = reader.load(table, has_below);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i == 1 && !has_below) break;
      const Rgb(&pixels)[2] = light.of[i];
      const Xyb a = positive_xyb<Reader::is_positive>(pixels[0].r, pixels[0].g, pixels[0].b);
      const Xyb b = positive_xyb<Reader::is_positive>(pixels[1].r, pixels[1].g, pixels[1].b);
      const std::int64_t below = i * s.pitch;
      *reinterpret_cast<float2*>(xyb.at[0] + below) = make_float2(a.x, b.x);
      *reinterpret_cast<float2*>(xyb.at[1] + below) = make_float2(a.y, b.y);
      *reinterpret_cast<float2*>(xyb.at[2] + below) = make_float2(a.b, b.b);
    }
    if (s.next_light != nullptr && is_inside) {
      const Rgb &tl = light.of[0][0], &tr = light.of[0][1], &bl = light.of[1][0],
                &br = light.of[1][1];
      *next.at[0] = quarter(tl.r, tr.r, bl.r, br.r);
      *next.at[1] = quarter(tl.g, tr.g, bl.g, br.g);
      *next.at[2] = quarter(tl.b, tr.b, bl.b, br.b);
    }
    reader.move(kConvertRows);
    xyb.move(kConvertRows * s.pitch);
    next.move(kConvertRows / 2 * s.next_pitch);
  }
}

}  // namespace similis::ssimulacra2_internal
