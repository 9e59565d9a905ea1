#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// SSIM's value, map and gradients in one kernel, for windows of up to 11. A workgroup owns a strip
// of columns and moves down its rows, a batch of 4 at a time:
//   V1  down      a column a thread: running sums of s, d, s², d² ─> averages, shared
//   H1  across    4 windows a thread: moments ─ formula ─> sum, map; derivatives ─> fields, shared
//   V2  down      running sums of the derivatives ─> fields, in place
//   H2  across    4 pixels a thread, with x and y once more ─> gradients
// Running sums are a[k] = tap·v + a[k + 1]: one fused multiply-add a tap. s and d are x + y and x - y
// less what they are at one pixel of the strip, so that variances keep their digits in f32. Shared
// memory: 16 KiB with both gradients, 14 with one, 8 without.
//
// Specialization constants: below. Workgroups: (strips, segments, planes), where
//   rim = gradients > 0 ? 2·radius : radius, a strip owns kColumns - 2·rim_x columns, a segment
//   `rows` rows. Together they cover the image; for gradients with padding reflect or replicate
//   (kFoldsLater) the image and `radius` positions on each side: the gradient of a position beyond
//   the image has a negative index, or one above, and is folded back by fold.comp.
// Buffers: 0 x, 1 y: words; 2 layouts: 5 integers for each of x, y, x_gradient, y_gradient, map and
//   upstream: offset of the first element and strides of images, channels, rows and columns, all in
//   elements; 3 sums: one f32 a workgroup, [plane][segment][strip], of
//   weight·(1 - SSIM) + l1_weight·|x - y|; 4 map: f32; 5 upstream: words, or with kOfSums the ground;
//   6 x_gradient, 7 y_gradient: words. 8 to 11 are x, y, x_gradient and y_gradient again, in vectors
//   of four. A buffer that the options do not need may be any other.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/elements.glsl"

const int kBatch = 4;   // rows
const int kEach = 4;    // neighbours that a thread averages across
const int kTaps = 11;   // at most
const int kValid = 0, kSame = 1, kReflect = 2, kReplicate = 3, kRenormalize = 4;
// Bits of `options`.
const int kHasMap = 1, kHasL1 = 2, kUpstreamOfPlanes = 4, kUpstreamOfMap = 8, kContrast = 16;

layout(local_size_x_id = 0) in;                      // threads, each loads a column
const int kColumns = int(gl_WorkGroupSize.x);
layout(constant_id = 1) const int kDtype = kF32;     // of x and y
layout(constant_id = 2) const int kGradients = 0;    // 0; 1: by x alone; 2: by x and y
layout(constant_id = 3) const int kRadiusX = 5;      // of the window
layout(constant_id = 4) const int kRadiusY = 5;
// 0: any padding and options. Else, but for kUpstreamOfPlanes, no options and padding valid or same
// (1), kHasL1 and padding valid or same (2), or no options and any padding (3).
layout(constant_id = 5) const int kForm = 0;
layout(constant_id = 6) const int kInVectors = 0;    // 1: rows of x, y and gradients, 2: of
                                                     // gradients alone are dense f32 from
                                                     // multiples of 16 B on
layout(constant_id = 7) const int kOfSums = 0;       // 1: x holds x + y and y holds x - y, in f32,
                                                     // less two numbers a plane, the ground, which
                                                     // then is in the place of an upstream
layout(constant_id = 8) const int kGradientDtype = kF32;
layout(constant_id = 9) const int kUpstreamDtype = kF32;

layout(push_constant) uniform Push {
  float one;
  int width, height, channels, rows;
  int padding, options;
  float c1, c2;                       // twice C1 and C2, and not 0
  float taps_x[6], taps_y[6];         // by their distance from the centre
  float bias, weight, l1_weight;      // the map holds bias + weight·(1 - SSIM) + l1_weight·|x - y|
  float slope;                        // 4 times that of the sum of results by each 1 - SSIM
  float l1_slope;                     // and its slope by each |x - y|
  float sign;                         // of_sums: y holds sign·(x - y)
};
layout(std430, binding = 0) readonly buffer X { uint words_x[]; };
layout(std430, binding = 1) readonly buffer Y { uint words_y[]; };
layout(std430, binding = 2) readonly buffer Layouts { int layouts[]; };
layout(std430, binding = 3) writeonly buffer Sums { float sums[]; };
layout(std430, binding = 4) writeonly buffer Map { float map[]; };
layout(std430, binding = 5) readonly buffer Upstream { uint words_upstream[]; };
layout(std430, binding = 6) buffer XGradient { uint x_gradient[]; };
layout(std430, binding = 7) buffer YGradient { uint y_gradient[]; };
layout(std430, binding = 8) readonly buffer XVectors { vec4 vectors_x[]; };
layout(std430, binding = 9) readonly buffer YVectors { vec4 vectors_y[]; };
layout(std430, binding = 10) writeonly buffer XGradientVectors { vec4 x_gradient_vectors[]; };
layout(std430, binding = 11) writeonly buffer YGradientVectors { vec4 y_gradient_vectors[]; };

const int kFields = kGradients == 0 ? 0 : kGradients == 1 ? 3 : 4;
const int kChunks = kColumns / kEach;                 // of a row
const int kField0 = 4 * kBatch * kChunks;             // chunks of averages before the fields
// Rows of four columns a vector: [4 averages, fields][rows of a batch][chunks], and what the last
// chunks read beyond a row.
shared vec4 shared_rows[kField0 + kFields * kBatch * kChunks + 3];

const int kRimX = kGradients > 0 ? 2 * kRadiusX : kRadiusX;
const int kRimY = kGradients > 0 ? 2 * kRadiusY : kRadiusY;

bool has(int option) {
  return kForm == 0 ? (options & option) != 0 : kForm == 2 && option == kHasL1;
}
bool takes_padding() { return kForm == 0 || kForm == 3; }
bool folds_later() {
  return takes_padding() && kGradients > 0 && (padding == kReflect || padding == kReplicate);
}
float tap_x(int k) { return taps_x[abs(k - kRadiusX)]; }
float tap_y(int k) { return taps_y[abs(k - kRadiusY)]; }

bool is_finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

// The pixel that a position shows; -1 for none.
int shown(int position, int extent, int radius) {
  if (position >= 0 && position < extent) return position;
  if (!takes_padding() || position < -radius || position >= extent + radius) return -1;
  if (padding == kReplicate) return clamp(position, 0, extent - 1);
  if (padding == kReflect) return position < 0 ? -position : 2 * (extent - 1) - position;
  return -1;
}

// A tensor's elements in this workgroup's plane.
struct Plane {
  int first, row, column;
};
Plane plane_of(int tensor, int image, int channel) {
  int at = 5 * tensor;
  return Plane(layouts[at] + image * layouts[at + 1] + channel * layouts[at + 2], layouts[at + 3],
      layouts[at + 4]);
}
int at(Plane plane, int row, int column) {
  return plane.first + row * plane.row + column * plane.column;
}
float x_at(int index) { return element_of(kDtype, words_x[word_of(kDtype, index)], index); }
float y_at(int index) { return element_of(kDtype, words_y[word_of(kDtype, index)], index); }
float upstream_at(int index) {
  return element_of(kUpstreamDtype, words_upstream[word_of(kUpstreamDtype, index)], index);
}

// A pixel of the strip: what is in memory, its x + y and x - y there, and these with the ground. x and
// y are apart where their difference is rounded and their contrast is small beside it.
struct Level {
  vec2 stored;
  float s, d, full_s, full_d;
  bool are_apart;
};

// s and d of what is in memory, less the level.
vec2 centred(vec2 v, Level level) {
  if (kOfSums != 0) return vec2(v.x - level.s, fma(sign, v.y, -level.d));
  float x = v.x - level.stored.x, y = v.y - level.stored.y;  // exact where the contrast is small
  return vec2(x + y, mix((v.x - v.y) - level.d, x - y, level.are_apart));  // and no branch
}

// The average that is complete with v, and the state moved on by one row.
#define PUSH(vector, state, value, complete)                                      \
  {                                                                               \
    vector pushed = value;                                                        \
    complete = tap_y(0) * pushed;                                                 \
    if (kRadiusY > 0) complete = fma(vector(tap_y(0)), pushed, state[0]);         \
    [[unroll]] for (int k = 0; k < kTaps - 1; ++k) {                              \
      vector later = vector(0.0);                                                 \
      if (k + 1 < kTaps - 1 && k + 1 < 2 * kRadiusY) later = state[min(k + 1, kTaps - 2)]; \
      if (k < 2 * kRadiusY) state[k] = fma(vector(tap_y(k + 1)), pushed, later);  \
    }                                                                             \
  }

// Averages across of four neighbours, from the chunk `first` on.
vec4 across(int first) {
  float v[16];
  [[unroll]] for (int j = 0; j < 4; ++j) {
    vec4 chunk = shared_rows[first + j];
    v[4 * j] = chunk.x;
    v[4 * j + 1] = chunk.y;
    v[4 * j + 2] = chunk.z;
    v[4 * j + 3] = chunk.w;
  }
  vec4 average = tap_x(0) * vec4(v[0], v[1], v[2], v[3]);
  [[unroll]] for (int k = 1; k < kTaps; ++k) {
    if (k <= 2 * kRadiusX) {
      average = fma(vec4(tap_x(k)), vec4(v[k], v[k + 1], v[k + 2], v[k + 3]), average);
    }
  }
  return average;
}

// The sum of the taps that lie inside the image.
float inside_x(int column) {
  float sum = 0.0;
  [[unroll]] for (int k = 0; k < kTaps; ++k) {
    int position = column - kRadiusX + k;
    if (k <= 2 * kRadiusX && position >= 0 && position < width) sum += tap_x(k);
  }
  return sum;
}
float inside_y(int row) {
  float sum = 0.0;
  [[unroll]] for (int k = 0; k < kTaps; ++k) {
    int position = row - kRadiusY + k;
    if (k <= 2 * kRadiusY && position >= 0 && position < height) sum += tap_y(k);
  }
  return sum;
}

void main() {
  int t = int(gl_LocalInvocationID.x), plane = int(gl_WorkGroupID.z);
  int image = plane / channels, channel = plane % channels;
  Plane of_x = plane_of(0, image, channel), of_y = plane_of(1, image, channel);
  int margin_x = folds_later() ? kRadiusX : 0, margin_y = folds_later() ? kRadiusY : 0;
  int end_x = width + margin_x;
  int owned = kColumns - 2 * kRimX;
  int first_owned = int(gl_WorkGroupID.x) * owned - margin_x;
  int column0 = first_owned - kRimX;  // of the first thread
  int first = int(gl_WorkGroupID.y) * rows - margin_y, end = min(first + rows, height + margin_y);
  int map_x0 = padding == kValid ? kRadiusX : 0, map_x1 = width - map_x0;
  int map_y0 = padding == kValid ? kRadiusY : 0, map_y1 = height - map_y0;

  int near_x = clamp(first_owned + owned / 2, 0, width - 1);
  int near_y = clamp((first + end) / 2, 0, height - 1);
  float stored_x = x_at(at(of_x, near_y, near_x)), stored_y = y_at(at(of_y, near_y, near_x));
  bool is_level = is_finite(stored_x) && is_finite(stored_y);
  stored_x = is_level ? stored_x : 0.0;
  stored_y = is_level ? stored_y : 0.0;
  float level_s = kOfSums != 0 ? stored_x : stored_x + stored_y;
  float level_d = kOfSums != 0 ? sign * stored_y : stored_x - stored_y;
  Level level = Level(vec2(stored_x, stored_y), level_s, level_d, level_s, level_d, false);
  vec2 ground = vec2(0.0);
  if (kOfSums != 0) {
    int at_ground = plane_of(5, image, channel).first;
    ground = vec2(upstream_at(at_ground), upstream_at(at_ground + 1));
    level.full_s += ground.x;
    level.full_d += sign * ground.y;
  } else {  // a second pixel tells of the contrast
    int other_x = clamp(first_owned, 0, width - 1), other_y = clamp(first, 0, height - 1);
    float contrast = abs(x_at(at(of_x, other_y, other_x)) - stored_x) +
                     abs(y_at(at(of_y, other_y, other_x)) - stored_y);
    level.are_apart = abs(level.d) > min(abs(stored_x), abs(stored_y)) &&
                      16.0 * contrast < abs(level.d);
  }
  // Pixels outside are 0, or have no weight: then s and d are the level's.
  bool is_weightless = takes_padding() && padding == kRenormalize;
  vec2 outside = is_weightless ? vec2(stored_x, stored_y) : -ground;

  int own_pixel = shown(column0 + t, width, kRadiusX);
  int own_x = of_x.first + own_pixel * of_x.column, own_y = of_y.first + own_pixel * of_y.column;
  bool is_l1_column = column0 + t >= max(first_owned, 0) &&
                      column0 + t < min(first_owned + owned, width);
  vec2 next[kBatch];
#define FETCH(from)                                                            \
  [[unroll]] for (int i = 0; i < kBatch; ++i) {                                \
    int pixel_row = shown((from) + i, height, kRadiusY);                       \
    next[i] = outside;                                                         \
    if (own_pixel >= 0 && pixel_row >= 0) {                                    \
      next[i] = vec2(x_at(own_x + pixel_row * of_x.row), y_at(own_y + pixel_row * of_y.row)); \
    }                                                                          \
  }

  int task = t % kChunks, task_row = t / kChunks;
  int window0 = column0 + kRadiusX + kEach * task;  // the first of this thread's windows
  int pixel0 = column0 + kRimX + kEach * task;      // and of its pixels
  vec4 state[kTaps - 1], derivative_state[kTaps - 1];
  [[unroll]] for (int k = 0; k < kTaps - 1; ++k) {
    state[k] = vec4(0.0);
    derivative_state[k] = vec4(0.0);
  }
  float sum = 0.0, lost = 0.0, l1_sum = 0.0;
  float plane_slope = slope, plane_l1_slope = l1_slope;
  if (kGradients > 0 && (options & kUpstreamOfPlanes) != 0) {
    float upstream = upstream_at(plane_of(5, image, channel).first);
    plane_slope *= upstream;
    plane_l1_slope *= upstream;
  }
  // Windows above are of no use to this segment.
  int first_window = first - (kGradients > 0 ? kRadiusY : 0);
  int row = first - kRimY;
  FETCH(row)
  for (; row < end + kRimY; row += kBatch) {
    [[unroll]] for (int i = 0; i < kBatch; ++i) {  // V1
      vec2 v = centred(next[i], level);
      if (has(kHasL1) && is_l1_column && row + i >= max(first, 0) && row + i < min(end, height)) {
        l1_sum += abs(next[i].x - next[i].y);
      }
      vec4 average;
      PUSH(vec4, state, vec4(v, v * v), average)
      int to = i * kChunks + (t >> 2);
      shared_rows[to][t & 3] = average.x;
      shared_rows[to + kBatch * kChunks][t & 3] = average.y;
      shared_rows[to + 2 * kBatch * kChunks][t & 3] = average.z;
      shared_rows[to + 3 * kBatch * kChunks][t & 3] = average.w;
    }
    barrier();
    if (row + kBatch - 1 - kRadiusY < first_window) {
      FETCH(row + kBatch)
      continue;
    }
    int window_row = row + task_row - kRadiusY;  // H1
    int at_task = task_row * kChunks + task;
    vec4 mean_s = across(at_task), mean_d = across(at_task + kBatch * kChunks);
    vec4 mean_ss = across(at_task + 2 * kBatch * kChunks);
    vec4 mean_dd = across(at_task + 3 * kBatch * kChunks);
    vec4 inside = vec4(1.0);
    if (takes_padding() && padding == kRenormalize) {
      float of_row = inside_y(window_row);
      [[unroll]] for (int o = 0; o < kEach; ++o) {
        inside[o] = max(of_row * inside_x(window0 + o), 1e-30);
      }
      mean_s /= inside;
      mean_d /= inside;
      mean_ss /= inside;
      mean_dd /= inside;
    }
    bool is_row = window_row >= map_y0 && window_row < map_y1;
    bool is_owned_row = is_row && window_row >= first && window_row < end;
    Plane of_upstream, of_map;
    if (has(kUpstreamOfMap)) of_upstream = plane_of(5, image, channel);
    if (has(kHasMap)) of_map = plane_of(4, image, channel);
    float values[kEach];
    vec4 by_s, by_d, by_ss, by_dd;
    [[unroll]] for (int o = 0; o < kEach; ++o) {
      // Halves of p, q and 1 - SSIM (formula.h) by products with reciprocals of 2a and 2b.
      float s = mean_s[o], d = mean_d[o];
      float var_s = max(0.0, fma(-s, s, mean_ss[o])), var_d = max(0.0, fma(-d, d, mean_dd[o]));
      float full_s = s + level.full_s, full_d = d + level.full_d, squared = full_d * full_d;
      float ra = 1.0 / fma(full_s, full_s, squared + c1), rb = 1.0 / (var_s + (var_d + c2));
      if (has(kContrast)) ra = 0.0;
      float p = squared * ra, q = var_d * rb, rest_p = fma(-2.0, p, 1.0);
      float value = fma(q, rest_p, p);
      int column = window0 + o;
      bool is_window = is_row && column >= map_x0 && column < map_x1;
      bool is_owned = is_owned_row && is_window && column >= first_owned &&
                      column < first_owned + owned;
      values[o] = is_owned ? 2.0 * value : 0.0;
      if (has(kHasMap) && is_owned) {
        float l1 = 0.0;
        if (has(kHasL1)) {
          l1 = abs(x_at(at(of_x, window_row, column)) - y_at(at(of_y, window_row, column)));
        }
        map[at(of_map, window_row - map_y0, column - map_x0)] =
            fma(l1_weight, l1, fma(weight, 2.0 * value, bias));
      }
      if (kGradients > 0) {
        // A quarter of the derivatives of 1 - SSIM by the averages, for what they are made from.
        float k = fma(-2.0, q, 1.0) * ra, g = rest_p * rb;
        float f1 = g * q, f2 = fma(-g, q, g);
        float fs = fma(s, f1, -k * p * full_s), fd = fma(-d, f2, k * fma(-p, full_d, full_d));
        float factor = 1.0 / inside[o];
        if (has(kUpstreamOfMap) && is_window) {
          factor *= upstream_at(at(of_upstream, window_row - map_y0, column - map_x0));
        }
        if (takes_padding()) {
          fs *= factor;
          fd *= factor;
          f1 *= factor;
          f2 *= factor;
        }
        by_s[o] = is_window ? (kGradients == 1 ? fs + fd : fs) : 0.0;
        by_d[o] = is_window ? fd : 0.0;
        by_ss[o] = is_window ? f1 : 0.0;
        by_dd[o] = is_window ? f2 : 0.0;
      }
    }
    {  // Kahan's sum: f32 else drifts where the map is constant
      float term = ((values[0] + values[1]) + (values[2] + values[3])) - lost;
      float longer = sum + term;
      lost = (longer - sum) - term;
      sum = longer;
    }
    if (kGradients > 0) {
      int to = kField0 + at_task;
      shared_rows[to] = by_s;
      shared_rows[to + kBatch * kChunks] = by_ss;
      shared_rows[to + 2 * kBatch * kChunks] = by_dd;
      if (kGradients == 2) shared_rows[to + 3 * kBatch * kChunks] = by_d;
    }
    barrier();
    FETCH(row + kBatch)
    if (kGradients == 0) continue;
    [[unroll]] for (int i = 0; i < kBatch; ++i) {  // V2
      int own = kField0 + i * kChunks + (t >> 2);
      vec4 v = vec4(shared_rows[own][t & 3], shared_rows[own + kBatch * kChunks][t & 3],
          shared_rows[own + 2 * kBatch * kChunks][t & 3], 0.0);
      if (kGradients == 2) v.w = shared_rows[own + 3 * kBatch * kChunks][t & 3];
      vec4 complete;
      PUSH(vec4, derivative_state, v, complete)
      shared_rows[own][t & 3] = complete.x;
      shared_rows[own + kBatch * kChunks][t & 3] = complete.y;
      shared_rows[own + 2 * kBatch * kChunks][t & 3] = complete.z;
      if (kGradients == 2) shared_rows[own + 3 * kBatch * kChunks][t & 3] = complete.w;
    }
    barrier();
    int pixel_row = row + task_row - kRimY;  // H2
    int shown_row = shown(pixel_row, height, kRadiusY);
    if (pixel_row < first || pixel_row >= end || kEach * task >= owned || pixel0 >= end_x) continue;
    vec4 in_x = vec4(0.0), in_y = vec4(0.0);
    if (kInVectors == 1) {
      in_x = vectors_x[at(of_x, pixel_row, pixel0) >> 2];
      in_y = vectors_y[at(of_y, pixel_row, pixel0) >> 2];
    } else {
      [[unroll]] for (int o = 0; o < kEach; ++o) {
        int shown_column = shown(pixel0 + o, width, kRadiusX);
        if (shown_column >= 0) {
          in_x[o] = x_at(at(of_x, shown_row, shown_column));
          in_y[o] = y_at(at(of_y, shown_row, shown_column));
        }
      }
    }
    vec4 g_s = across(kField0 + at_task), g_ss = across(kField0 + at_task + kBatch * kChunks);
    vec4 g_dd = across(kField0 + at_task + 2 * kBatch * kChunks), g_d = vec4(0.0);
    if (kGradients == 2) g_d = across(kField0 + at_task + 3 * kBatch * kChunks);
    vec4 by_x, by_y;
    [[unroll]] for (int o = 0; o < kEach; ++o) {
      vec2 v = centred(vec2(in_x[o], in_y[o]), level);
      float part_s = fma(-v.x, g_ss[o], g_s[o]);
      by_x[o] = plane_slope * fma(v.y, g_dd[o], kGradients == 1 ? part_s : part_s + g_d[o]);
      if (kGradients == 2) by_y[o] = plane_slope * (part_s - fma(v.y, g_dd[o], g_d[o]));
      if (has(kHasL1) && pixel0 + o >= 0 && pixel0 + o < width && pixel_row >= 0 &&
          pixel_row < height) {
        float l1 = in_x[o] > in_y[o] ? plane_l1_slope : in_x[o] < in_y[o] ? -plane_l1_slope : 0.0;
        if (has(kUpstreamOfMap)) {
          l1 *= upstream_at(at(plane_of(5, image, channel), pixel_row, pixel0 + o));
        }
        by_x[o] += l1;
        if (kGradients == 2) by_y[o] -= l1;
      }
    }
    Plane of_x_gradient = plane_of(2, image, channel), of_y_gradient = of_x_gradient;
    if (kGradients == 2) of_y_gradient = plane_of(3, image, channel);
    if (kInVectors != 0) {
      x_gradient_vectors[at(of_x_gradient, pixel_row, pixel0) >> 2] = by_x;
      if (kGradients == 2) y_gradient_vectors[at(of_y_gradient, pixel_row, pixel0) >> 2] = by_y;
    } else {
      [[unroll]] for (int o = 0; o < kEach; ++o) {
        int to_x = at(of_x_gradient, pixel_row, pixel0 + o);
        int to_y = at(of_y_gradient, pixel_row, pixel0 + o);
        if (pixel0 + o < end_x) STORE_ELEMENT(x_gradient, kGradientDtype, to_x, by_x[o])
        if (pixel0 + o < end_x && kGradients == 2) {
          STORE_ELEMENT(y_gradient, kGradientDtype, to_y, by_y[o])
        }
      }
    }
  }
  barrier();
  float total = weight * sum;
  if (has(kHasL1)) total = fma(l1_weight, l1_sum, total);
  shared_rows[t >> 2][t & 3] = total;
  barrier();
  for (int half_count = kColumns / 2; half_count > 0; half_count /= 2) {
    if (t < half_count) {
      int other = t + half_count;
      total += shared_rows[other >> 2][other & 3];
      shared_rows[t >> 2][t & 3] = total;
    }
    barrier();
  }
  if (t != 0) return;
  int tile = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  sums[plane * int(gl_NumWorkGroups.x * gl_NumWorkGroups.y) + tile] = total;
}
