#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// SSIM of each window of images, and sums over tiles. A workgroup takes a tile of the map:
//   x, y ─> s = (x - h) + (y - h), d = x - y shared: the tile and the window's radius around it
//        ─> averages across of s, d, s², d²  shared: the tile's columns, those rows
//        ─> averages down ─> 1 - SSIM        registers; 4 B a pixel written if a map is wanted
// h is about the mean of x and y at one pixel of the tile, so that variances in f32 do not cancel.
#include "src/gpu/vulkan/prelude.glsl"

const int kRadius = 5;  // the largest
const int kColumns = 32, kRows = 8, kThreads = 128;
const int kLoadedColumns = kColumns + 2 * kRadius, kLoadedRows = kRows + 2 * kRadius;
const int kValid = 0, kSame = 1, kReflect = 2, kReplicate = 3, kRenormalize = 4;
const int kU8 = 0, kF16 = 2, kBf16 = 3, kF32 = 4;  // DType

layout(local_size_x = kThreads) in;
layout(constant_id = 0) const int kDtype = kF32;
layout(push_constant) uniform Push {
  float one;
  int width, height, map_width, map_height;
  int radius_x, radius_y, padding, channels;
  int offset_x, strides_x[4];  // in elements: to the first; of images, channels, rows, columns
  int offset_y, strides_y[4];
  float c1, c2;
  float bias, weight;  // a map holds bias + weight·(1 - SSIM)
  int has_map, map_offset;
};
layout(std430, binding = 0) readonly buffer X { uint words_x[]; };
layout(std430, binding = 1) readonly buffer Y { uint words_y[]; };
layout(std430, binding = 2) readonly buffer Taps { float taps[]; };  // [x, y][distance from the centre]
layout(std430, binding = 3) writeonly buffer Sums { float sums[]; };  // [plane][tile], of 1 - SSIM
layout(std430, binding = 4) writeonly buffer Values { float map[]; };

shared vec2 loaded[kLoadedRows][kLoadedColumns];
shared vec4 across[kLoadedRows][kColumns];
shared float weights_x[kColumns], weights_y[kRows];  // of the window inside the image
shared float partial_sums[kThreads];

int word_of(int index) {
  return kDtype == kU8 ? index >> 2 : kDtype == kF32 ? index : index >> 1;
}
float element_of(uint word, int index) {
  if (kDtype == kF32) return float_of(word);
  if (kDtype == kU8) return float(word >> (8 * (index & 3)) & 255u);
  uint half_word = word >> (16 * (index & 1)) & 65535u;
  return kDtype == kF16 ? unpackHalf2x16(half_word).x : float_of(half_word << 16);
}

float tap_x(int offset) { return taps[abs(offset)]; }
float tap_y(int offset) { return taps[kRadius + 1 + abs(offset)]; }

// The pixel that a padded position shows; -1 for none.
int shown(int position, int extent) {
  if (position >= 0 && position < extent) return position;
  if (padding == kReplicate) return clamp(position, 0, extent - 1);
  if (padding == kReflect) return position < 0 ? -position : 2 * (extent - 1) - position;
  return -1;
}

// x and y at a padded position.
vec2 pixel(int image, int channel, int row, int column) {
  int y = shown(row, height), x = shown(column, width);
  if (x < 0 || y < 0) return vec2(0.0);
  int ix = offset_x + image * strides_x[0] + channel * strides_x[1] + y * strides_x[2] +
           x * strides_x[3];
  int iy = offset_y + image * strides_y[0] + channel * strides_y[1] + y * strides_y[2] +
           x * strides_y[3];
  return vec2(element_of(words_x[word_of(ix)], ix), element_of(words_y[word_of(iy)], iy));
}

float quotient(float numerator, float denominator) {
  return numerator / (denominator > 0.0 ? denominator : 1.0);
}

// 1 - SSIM (formula.h) from averages of s - shift, shift = 2h, and d; a and b twice those of the formula.
float dissimilarity(vec4 mean, float shift) {
  float mean_s = mean.x + shift, mean_d = mean.y;
  float var_s = max(0.0, fma(-mean.x, mean.x, mean.z));
  float var_d = max(0.0, fma(-mean_d, mean_d, mean.w));
  float square_d = mean_d * mean_d;
  float a = fma(mean_s, mean_s, square_d) + 2.0 * c1, b = var_s + var_d + 2.0 * c2;
  float p = quotient(2.0 * square_d, a), q = quotient(2.0 * var_d, b);
  return p + fma(-p, q, q);
}

// Sums of the taps that lie inside the image: 1 but for padding renormalize.
void fill_weights(int t, int column, int row) {
  if (t < kColumns) {
    float sum = 0.0;
    for (int k = -radius_x; k <= radius_x; ++k) {
      int at = column + t + k;
      if (at >= 0 && at < width) sum += tap_x(k);
    }
    weights_x[t] = padding == kRenormalize ? sum : 1.0;
  }
  if (t < kRows) {
    float sum = 0.0;
    for (int k = -radius_y; k <= radius_y; ++k) {
      int at = row + t + k;
      if (at >= 0 && at < height) sum += tap_y(k);
    }
    weights_y[t] = padding == kRenormalize ? sum : 1.0;
  }
}

void main() {
  int t = int(gl_LocalInvocationID.x), plane = int(gl_WorkGroupID.z);
  int image = plane / channels, channel = plane % channels;
  int map_column = int(gl_WorkGroupID.x) * kColumns, map_row = int(gl_WorkGroupID.y) * kRows;
  // The centre of the tile's first window.
  int column = map_column + (padding == kValid ? radius_x : 0);
  int row = map_row + (padding == kValid ? radius_y : 0);
  vec2 near = pixel(image, channel, min(row, height - 1), min(column, width - 1));
  float h = 0.5 * (near.x + near.y);
  if ((bits_of(h) & 0x7f800000u) == 0x7f800000u) h = 0.0;  // it is not finite
  int rows = kRows + 2 * radius_y, columns = kColumns + 2 * radius_x;
  for (int i = t; i < rows * columns; i += kThreads) {
    int r = i / columns, c = i % columns;
    int at_row = row - radius_y + r, at_column = column - radius_x + c;
    vec2 s_and_d = vec2(0.0);
    // Windows of the map's last tiles may end before the tile does.
    if (at_row < height + radius_y && at_column < width + radius_x) {
      vec2 v = pixel(image, channel, at_row, at_column);
      bool is_outside = shown(at_row, height) < 0 || shown(at_column, width) < 0;
      if (padding != kRenormalize || !is_outside) {
        s_and_d = vec2((v.x - h) + (v.y - h), v.x - v.y);
      }
    }
    loaded[r][c] = s_and_d;
  }
  fill_weights(t, column, row);
  barrier();
  for (int i = t; i < rows * kColumns; i += kThreads) {
    int r = i / kColumns, c = i % kColumns;
    float s = 0.0, d = 0.0, ss = 0.0, dd = 0.0;
    for (int k = -radius_x; k <= radius_x; ++k) {
      vec2 v = loaded[r][c + radius_x + k];
      float tap = tap_x(k);
      s = fma(tap, v.x, s);
      d = fma(tap, v.y, d);
      ss = fma(tap, v.x * v.x, ss);
      dd = fma(tap, v.y * v.y, dd);
    }
    across[r][c] = vec4(s, d, ss, dd);
  }
  barrier();
  float sum = 0.0;
  for (int i = t; i < kRows * kColumns; i += kThreads) {
    int r = i / kColumns, c = i % kColumns;
    if (map_row + r >= map_height || map_column + c >= map_width) continue;
    float s = 0.0, d = 0.0, ss = 0.0, dd = 0.0;
    for (int k = -radius_y; k <= radius_y; ++k) {
      vec4 v = across[r + radius_y + k][c];
      float tap = tap_y(k);
      s = fma(tap, v.x, s);
      d = fma(tap, v.y, d);
      ss = fma(tap, v.z, ss);
      dd = fma(tap, v.w, dd);
    }
    float inside = weights_x[c] * weights_y[r];
    float value = dissimilarity(vec4(s / inside, d / inside, ss / inside, dd / inside), 2.0 * h);
    sum += value;
    if (has_map != 0) {
      int at = (plane * map_height + map_row + r) * map_width + map_column + c;
      map[map_offset + at] = fma(weight, value, bias);
    }
  }
  partial_sums[t] = sum;
  barrier();
  if (t != 0) return;
  float total = 0.0;
  for (int i = 0; i < kThreads; ++i) total += partial_sums[i];
  int tile = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  sums[plane * int(gl_NumWorkGroups.x * gl_NumWorkGroups.y) + tile] = total;
}
