#version 460
#extension GL_GOOGLE_include_directive : require
// SPDX-License-Identifier: Apache-2.0
// X, Y, B ─> products blurred across by the recursion; a thread takes a row of one product.
// Neighbouring threads have neighbouring rows, and a row's quads of columns lie a plane's height
// apart, so that all threads together read and write without gaps. Each quad is on its way while
// three others are worked on. 16 B a pixel of a product are read and written, 16 more of x·y.
#include "src/gpu/glsl/prelude.glsl"
#include "src/ssimulacra2/vulkan/words.glsl"
#include "src/ssimulacra2/vulkan/recursion.glsl"
#include "src/ssimulacra2/vulkan/jobs.glsl"

const int kThreads = 64, kQuadsAhead = 3, kSections = 3;

layout(local_size_x = kThreads) in;
layout(push_constant) uniform Push {
  float one;
  int job_count, xyb_image, across_image;  // of an image, in quads
};
layout(std430, binding = 1) readonly buffer Planes { vec4 xyb[]; };
layout(std430, binding = 2) writeonly buffer Across { vec4 blurred[]; };

// The recursion's state in a row.
struct RowState {
  float y1[kSections], y2[kSections];
};

float step_of(float sum, inout RowState row) {
  float y_1 = step_across(SECTION(k1), sum, row.y1[0], row.y2[0]);
  float y_3 = step_across(SECTION(k3), sum, row.y1[1], row.y2[1]);
  float y_5 = step_across(SECTION(k5), sum, row.y1[2], row.y2[2]);
  return sum_of_sections(y_1, y_3, y_5);
}

vec4 block_of(vec4 sums, inout RowState row) {
  vec4 y_1 = sums, y_3 = sums, y_5 = sums;
  block_across(SECTION(k1), y_1.x, y_1.y, y_1.z, y_1.w, row.y1[0], row.y2[0]);
  block_across(SECTION(k3), y_3.x, y_3.y, y_3.z, y_3.w, row.y1[1], row.y2[1]);
  block_across(SECTION(k5), y_5.x, y_5.y, y_5.z, y_5.w, row.y1[2], row.y2[2]);
  return vec4(sum_of_sections(y_1.x, y_3.x, y_5.x), sum_of_sections(y_1.y, y_3.y, y_5.y),
      sum_of_sections(y_1.z, y_3.z, y_5.z), sum_of_sections(y_1.w, y_3.w, y_5.w));
}

void main() {
  int group = int(gl_WorkGroupID.x), image = int(gl_WorkGroupID.y);
  int index = 0;
  while (index + 1 < job_count && group >= jobs[index + 1].first_across) ++index;
  int width = jobs[index].width, height = jobs[index].height, products = jobs[index].products;
  group -= jobs[index].first_across;
  int product = group % products;
  int row = group / products * kThreads + int(gl_LocalInvocationID.x);
  if (row >= height) return;
  int x = image * xyb_image + jobs[index].x + row, y = image * xyb_image + jobs[index].y + row;
  int a = product == 1 || product == 3 ? y : x, b = product == 2 ? x : y;
  bool is_product = product >= kMeans;
  int quads = (width + 3) / 4;
  int to = image * across_image + jobs[index].across + product * quads * height + row;
  // Columns [8, end) are filtered four at once, as blocks_of() in blur.h has it.
  int end = width < 16 ? 8 : 8 + (width - 16) / 4 * 4 + 4;

  vec4 ahead_a[kQuadsAhead + 1], ahead_b[kQuadsAhead + 1];
  [[unroll]] for (int i = 0; i <= kQuadsAhead; ++i) {
    ahead_a[i] = i < quads ? xyb[a + i * height] : vec4(0.0);
    ahead_b[i] = i < quads && is_product ? xyb[b + i * height] : vec4(1.0);
  }
  RowState state = RowState(float[3](0.0, 0.0, 0.0), float[3](0.0, 0.0, 0.0));
  // Samples n - 6 to n + 3, where n is the quad's first column: -4 and on.
  float s0 = 0.0, s1 = 0.0;
  vec4 s2 = vec4(0.0), s6 = vec4(0.0);
  for (int quad = -1; quad < quads; ++quad) {
    vec4 fresh = ahead_a[0];
    if (is_product) fresh *= ahead_b[0];
    [[unroll]] for (int i = 0; i < kQuadsAhead; ++i) {
      ahead_a[i] = ahead_a[i + 1];
      ahead_b[i] = ahead_b[i + 1];
    }
    int next = quad + kQuadsAhead + 2;
    ahead_a[kQuadsAhead] = next < quads ? xyb[a + next * height] : vec4(0.0);
    if (is_product) ahead_b[kQuadsAhead] = next < quads ? xyb[b + next * height] : vec4(0.0);
    vec4 sums = vec4(s0 + fresh.x, s1 + fresh.y, s2.x + fresh.z, s2.y + fresh.w);
    s0 = s2.z;
    s1 = s2.w;
    s2 = s6;
    s6 = fresh;
    vec4 y;
    if (4 * quad >= 8 && 4 * quad < end) {
      y = block_of(sums, state);
    } else {
      y.x = step_of(sums.x, state);
      y.y = step_of(sums.y, state);
      y.z = step_of(sums.z, state);
      y.w = step_of(sums.w, state);
    }
    if (quad >= 0) blurred[to + quad * height] = y;
  }
}
