// SPDX-License-Identifier: Apache-2.0
// The term of each pixel of integer SSIM, as the bits of an f64, and about what each block of terms
// adds up to. A thread moves a window down its column (integer/column.h); sums across add the sums
// down of neighbouring threads.
//   samples ─> sums down          registers
//           ─> sums across ─> term    two rows of shared memory; 8 B a pixel written
// A kernel that includes this defines the sums (SUM, kProducts, term_of()) and what a thread keeps
// of its column's last nine rows (WINDOW, clear(), add_row(), sums_of()).
const int kRadius = 4, kWindow = 9;
const int kThreads = 128, kColumns = kThreads - 2 * kRadius;  // the others feed their neighbours

layout(local_size_x = kThreads) in;
layout(constant_id = 0) const int kSampleBytes = 1;
layout(push_constant) uniform Push {
  float one;
  int width, height, bit_depth;
  u64 c1, c2;  // f64: the constants of a window of weight 1
  int rows;    // of a stripe
  int offset_x, strides_x[3];  // in samples: to the first; of frames, rows and columns
  int offset_y, strides_y[3];
};
layout(std430, binding = 0) readonly buffer X { uint words_x[]; };
layout(std430, binding = 1) readonly buffer Y { uint words_y[]; };
layout(std430, binding = 2) writeonly buffer Terms { u64 terms[]; };         // [frame][row][column]
layout(std430, binding = 3) writeonly buffer TileSums { float tile_sums[]; };  // [frame][stripe][tile]
layout(std430, binding = 4) buffer Exceeded { uint exceeded[]; };  // [frame]: 1 if a sample is too large

const int kTaps[kWindow] = int[kWindow](2, 9, 28, 55, 68, 55, 28, 9, 2);

// A window's weight, and the constants that follow from it.
struct Weight {
  i64 whole;
  u64 w, c1, c2;
};

shared SUM sums_down[2][kProducts][kThreads];
shared float partial_sums[kThreads];

int sample_of(uint word, int index) {
  return kSampleBytes == 1 ? int(word >> (8 * (index & 3)) & 255u)
                           : int(word >> (16 * (index & 1)) & 65535u);
}
int word_of(int index) { return kSampleBytes == 1 ? index >> 2 : index >> 1; }

int weight_inside(int position, int extent) {
  int weight = 0;
  [[unroll]] for (int k = 0; k < kWindow; ++k) {
    int at = position + k - kRadius;
    weight += at >= 0 && at < extent ? kTaps[k] : 0;
  }
  return weight;
}

Weight weight_of(int whole) {
  Weight weight;
  weight.whole = i64(whole);
  weight.w = f64_of_int(weight.whole);
  weight.c1 = f64_product(f64_product(c1, weight.w), weight.w);
  weight.c2 = f64_product(f64_product(c2, weight.w), weight.w);
  return weight;
}

void clear(out WINDOW window);
// A row outside the picture has x = y = 0 and is no sample.
void add_row(inout WINDOW window, int x, int y, bool is_sample);
// The sums down of the last nine rows.
void sums_of(WINDOW window, out SUM sums[kProducts]);
u64 term_of(i64 moments[kProducts], Weight weight);

// An f64 as an f32, about.
float about(u64 bits) {
  int exponent = f64_exponent(bits) - 1023 + 127;
  if (exponent <= 0) return 0.0;
  uint sign = uint(bits >> 32) & 0x80000000u;
  return float_of(sign | uint(min(exponent, 254)) << 23 | (uint(bits >> 29) & 0x7fffffu));
}

i64 sum_across(int buffer_index, int product, int t) {
  i64 sum = i64(sums_down[buffer_index][product][t]) * i64(kTaps[kRadius]);
  [[unroll]] for (int k = 1; k <= kRadius; ++k) {
    sum += i64(sums_down[buffer_index][product][t - k] + sums_down[buffer_index][product][t + k]) *
           i64(kTaps[kRadius + k]);
  }
  return sum;
}

void main() {
  int t = int(gl_LocalInvocationID.x), frame = int(gl_WorkGroupID.z);
  int tile = int(gl_WorkGroupID.x), stripe = int(gl_WorkGroupID.y);
  int column = tile * kColumns + t - kRadius;
  int first = stripe * rows, end = min(first + rows, height);
  bool is_inside = column >= 0 && column < width;
  bool owns = t >= kRadius && t < kThreads - kRadius && column < width;
  int peak = (1 << bit_depth) - 1;
  int at_x = offset_x + frame * strides_x[0] + column * strides_x[2];
  int at_y = offset_y + frame * strides_y[0] + column * strides_y[2];
  int weight_across = weight_inside(column, width), weight_down = -1;
  Weight weight = Weight(i64(0), U64(0), U64(0), U64(0));
  WINDOW window;
  clear(window);
  float sum = 0.0;
  bool has_exceeded = false;
  // The next row's words are on their way while a row is worked on.
  uint next_x = 0u, next_y = 0u;
  for (int row = first - kRadius - 1; row < end + kRadius; ++row) {
    uint word_x = next_x, word_y = next_y;
    int ix = at_x + row * strides_x[1], iy = at_y + row * strides_y[1];
    if (is_inside && row + 1 >= 0 && row + 1 < height) {
      next_x = words_x[word_of(ix + strides_x[1])];
      next_y = words_y[word_of(iy + strides_y[1])];
    }
    if (row < first - kRadius) continue;
    bool is_sample = is_inside && row >= 0 && row < height;
    int x = is_sample ? sample_of(word_x, ix) : 0, y = is_sample ? sample_of(word_y, iy) : 0;
    has_exceeded = has_exceeded || x > peak || y > peak;
    add_row(window, x, y, is_sample);
    int done = row - kRadius, buffer_index = done & 1;  // two rows: one barrier a row is enough
    if (done < first) continue;
    SUM sums[kProducts];
    sums_of(window, sums);
    [[unroll]] for (int p = 0; p < kProducts; ++p) sums_down[buffer_index][p][t] = sums[p];
    barrier();
    if (!owns) continue;
    int next = weight_inside(done, height);
    if (next != weight_down) {
      weight_down = next;
      weight = weight_of(weight_across * weight_down);
    }
    i64 moments[kProducts];
    [[unroll]] for (int p = 0; p < kProducts; ++p) moments[p] = sum_across(buffer_index, p, t);
    u64 term = term_of(moments, weight);
    terms[(frame * height + done) * width + column] = term;
    sum += about(term);
  }
  if (has_exceeded) atomicOr(exceeded[frame], 1u);
  partial_sums[t] = sum;
  barrier();
  if (t != 0) return;
  float total = 0.0;
  for (int i = 0; i < kThreads; ++i) total += partial_sums[i];
  int tiles = int(gl_NumWorkGroups.x), stripes = int(gl_NumWorkGroups.y);
  tile_sums[(frame * stripes + stripe) * tiles + tile] = total;
}
