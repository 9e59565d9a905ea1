#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// Products blurred across ─> averages ─> terms ─> sums of 32 × 32 pixels. A workgroup takes a group
// of 32 columns from the top, eight rows at a time:
//   filter   a thread a column of one product: averages of eight rows       shared
//   terms    a thread a pixel: how far from 1 and how edges change           shared
//   sums     a thread a column of one sum, which it adds in order of rows    registers
// A recursion is a chain of latencies, and so is a sum; the terms between them are the most work, and
// of eight rows they are made at once. A value is read once: the sample that a step reads again ten
// rows later waits in a register.
#include "src/gpu/glsl/prelude.glsl"
#include "src/gpu/glsl/soft_double.glsl"
#define SIMILIS_HAS_DOUBLES
#include "src/ssimulacra2/vulkan/words.glsl"
#include "src/ssimulacra2/vulkan/recursion.glsl"
#include "src/ssimulacra2/vulkan/jobs.glsl"

const int kRows = 8, kThreads = kRows * kGroup, kSections = 3;
const int kFirstOfSums = kThreads - kSums * kGroup;  // the first thread that adds; fewer filter too
const int kBehind = 6, kAhead = 4, kKept = kBehind + kAhead;
// Rows of shared memory lie so that neither a column of threads nor four columns of eight rows meet
// in a bank.
const int kPitch = kGroup + 4;
const int kDissimilarity = 0, kRinging = 1, kBlurring = 2;  // bits of Job::terms

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int job_count, xyb_image, across_image;  // of an image, in quads
  int partials_image;                      // likewise, in f64
};
layout(std430, binding = 1) readonly buffer Planes { float xyb[]; };
layout(std430, binding = 2) readonly buffer Across { float blurred[]; };
layout(std430, binding = 3) writeonly buffer Partials { u64 partials[]; };

shared float averages[kProducts][kRows][kPitch];
shared u64 dissimilarities[kRows][kPitch], edge_changes[kRows][kPitch];
shared u64 sums_of_columns[kSums][kGroup];

// The recursion's state in a column of one product, and the samples of rows n - 6 to n + 3.
struct ColumnState {
  float y1[kSections], y2[kSections];
  float kept[kKept];
};

float step_of(float sum, inout ColumnState state) {
  float y_1 = step_down(k1_n2, k1_d1, sum, state.y1[0], state.y2[0]);
  float y_3 = step_down(k3_n2, k3_d1, sum, state.y1[1], state.y2[1]);
  float y_5 = step_down(k5_n2, k5_d1, sum, state.y1[2], state.y2[2]);
  return sum_of_sections(y_1, y_3, y_5);
}

// Eight averages, with the samples of rows n + 4 to n + 11.
void filter_rows(int product, int column, float fresh[kRows], inout ColumnState state) {
  // No loop: spirv-opt drops the seal of arithmetic in a loop that it unrolls.
#define STEP(i) averages[product][i][column] = step_of(state.kept[i] + fresh[i], state);
  STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
  state.kept[0] = state.kept[kRows];
  state.kept[1] = state.kept[kRows + 1];
  [[unroll]] for (int i = 0; i < kRows; ++i) state.kept[i + 2] = fresh[i];
}

void write_terms(int terms, int row, int column, float x, float y) {
  float mean_x = averages[0][row][column], mean_y = averages[1][row][column];
  if ((terms >> kDissimilarity & 1) != 0) {
    dissimilarities[row][column] = dissimilarity(mean_x, mean_y, averages[2][row][column],
        averages[3][row][column], averages[4][row][column]);
  }
  if (terms >> kRinging != 0) edge_changes[row][column] = edge_change(x, mean_x, y, mean_y);
}

// Adds `rows` rows of a column to a sum: of a term, or of its fourth powers.
u64 with_rows(u64 sum, int term, bool is_fourth, int rows, int column) {
  for (int row = 0; row < rows; ++row) {
    u64 value = dissimilarities[row][column];
    if (term != kDissimilarity) {
      u64 change = edge_changes[row][column];
      value = term == kRinging ? ringing(change) : blurring(change);
    }
    if (is_fourth) value = fourth_power(value);
    sum = f64_sum(sum, value);
  }
  return sum;
}

// Adds the columns by halves. All threads call it.
void write_partials(int sum_index, int column, u64 sum, int to) {
  bool has_sum = sum_index >= 0;
  if (has_sum) sums_of_columns[sum_index][column] = sum;
  barrier();
  for (int distance = kGroup / 2; distance > 0; distance /= 2) {
    if (has_sum && column < distance) {
      sums_of_columns[sum_index][column] =
          f64_sum(sums_of_columns[sum_index][column], sums_of_columns[sum_index][column + distance]);
    }
    barrier();
  }
  if (has_sum && column == 0) partials[to + sum_index] = sums_of_columns[sum_index][0];
}

void main() {
  int group = int(gl_WorkGroupID.x), image = int(gl_WorkGroupID.y);
  int t = int(gl_LocalInvocationID.x), index = 0;
  while (index + 1 < job_count && group >= jobs[index + 1].first_down) ++index;
  int width = jobs[index].width, height = jobs[index].height, terms = jobs[index].terms;
  group -= jobs[index].first_down;
  int quads = (width + 3) / 4, first = group * kGroup, groups = (width + kGroup - 1) / kGroup;
  int partial = image * partials_image + jobs[index].partials + group * kSums;

  // As a filter: a product and a column.
  int product = t / kGroup, column = t % kGroup;
  bool filters = product < jobs[index].products && first + column < width;
  int from = 4 * (image * across_image + jobs[index].across + product * quads * height +
                     (first + column) / 4 * height) + (first + column) % 4;
  // As a pixel: neighbours in memory, four columns of eight rows.
  int pixel_row = t / 4 % kRows, pixel_column = t / (4 * kRows) * 4 + t % 4;
  bool has_pixel = first + pixel_column < width;
  int in_plane = ((first + pixel_column) / 4 * height + pixel_row) * 4 + pixel_column % 4;
  int x = 4 * (image * xyb_image + jobs[index].x) + in_plane;
  int y = 4 * (image * xyb_image + jobs[index].y) + in_plane;
  // As a sum.
  int sum_index = t < kFirstOfSums ? -1 : (t - kFirstOfSums) / kGroup;
  int term = sum_index / kNorms;
  bool is_fourth = sum_index % kNorms != 0;
  bool adds = sum_index >= 0 && (terms >> term & 1) != 0 && first + column < width;

  u64 sum = U64(0);
  ColumnState state;
  [[unroll]] for (int i = 0; i < kSections; ++i) {
    state.y1[i] = 0.0;
    state.y2[i] = 0.0;
  }
  [[unroll]] for (int i = 0; i < kKept; ++i) state.kept[i] = 0.0;
  // Rows from -8 on, of which those above -4 are all 0.
  float fresh[kRows];
  [[unroll]] for (int i = 0; i < kRows; ++i) {
    int row = i - kRows + kAhead;
    fresh[i] = filters && row >= 0 && row < height ? blurred[from + 4 * row] : 0.0;
  }
  for (int n = -kRows; n < height; n += kRows) {
    // The pixel and the next rows are on their way while averages, terms and sums are made.
    bool is_inside = has_pixel && n >= 0 && n + pixel_row < height;
    float of_x = is_inside ? xyb[x + 4 * n] : 0.0, of_y = is_inside ? xyb[y + 4 * n] : 0.0;
    if (filters) filter_rows(product, column, fresh, state);
    [[unroll]] for (int i = 0; i < kRows; ++i) {
      int row = n + kRows + kAhead + i;
      fresh[i] = filters && row < height ? blurred[from + 4 * row] : 0.0;
    }
    barrier();
    if (n < 0) continue;
    if (is_inside) write_terms(terms, pixel_row, pixel_column, of_x, of_y);
    barrier();
    if (adds) sum = with_rows(sum, term, is_fourth, min(kRows, height - n), column);
    int end = min(n + kRows, height);
    if (end % kStripe == 0 || end == height) {
      write_partials(sum_index, column, sum, partial + (end - 1) / kStripe * groups * kSums);
      sum = U64(0);
    }
  }
}
