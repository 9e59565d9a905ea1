// SPDX-License-Identifier: Apache-2.0
// Linear light to X, Y, B and the light of the next scale. A workgroup takes 16 × 8 pixels of one
// picture, a thread a pixel; threads are ordered as X, Y and B lie in memory, four columns of all
// rows after the other: [quad of columns][row][column], 0 beyond the picture's width.
// A kernel that includes this declares the push constants, Xyb and Light.
const int kColumns = 16, kRows = 8, kThreads = kColumns * kRows;

layout(local_size_x = kThreads) in;

shared float light[3][kThreads];

struct Pixel {
  int image, side, row, column;
};
Pixel pixel_of_thread() {
  int t = int(gl_LocalInvocationID.x), image_and_side = int(gl_WorkGroupID.z);
  return Pixel(image_and_side >> 1, image_and_side & 1,
      int(gl_WorkGroupID.y) * kRows + t / 4 % kRows,
      int(gl_WorkGroupID.x) * kColumns + t / (4 * kRows) * 4 + t % 4);
}
int thread_of(int row, int column) { return (column / 4 * kRows + row) * 4 + column % 4; }

void write_xyb(Pixel p) {
  int t = int(gl_LocalInvocationID.x), quads = (width + 3) / 4;
  if (p.row >= height || p.column >= 4 * quads) return;
  Xyb value = Xyb(0.0, 0.0, 0.0);
  if (p.column < width) {
    float r = light[0][t], g = light[1][t], b = light[2][t];
    float l = response(0, false, r, g, b), m = response(1, false, r, g, b);
    value = xyb_of_responses(l, m, response(2, false, r, g, b));
  }
  int plane = 4 * quads * height;
  int at = 4 * (p.image * xyb_image + xyb_first) + 3 * p.side * plane +
           (p.column / 4 * height + p.row) * 4 + p.column % 4;
  xyb[at] = value.x;
  xyb[at + plane] = value.y;
  xyb[at + 2 * plane] = value.b;
}

// By 96 threads, each of which has a channel of one of the next scale's 8 × 4 pixels.
void write_next_light(Pixel p) {
  const int kNextColumns = kColumns / 2, kNextPixels = kNextColumns * kRows / 2;
  barrier();
  int t = int(gl_LocalInvocationID.x), channel = t / kNextPixels, of_channel = t % kNextPixels;
  int next_width = (width + 1) / 2, next_height = (height + 1) / 2;
  int row = of_channel / kNextColumns, column = of_channel % kNextColumns;
  int next_row = int(gl_WorkGroupID.y) * kRows / 2 + row;
  int next_column = int(gl_WorkGroupID.x) * kNextColumns + column;
  if (next_first < 0 || channel >= 3 || next_row >= next_height || next_column >= next_width)
    return;
  // At an odd edge the pixels outside repeat those inside.
  int bottom = 2 * row + (2 * next_row + 1 < height ? 1 : 0);
  int right = 2 * column + (2 * next_column + 1 < width ? 1 : 0);
  int plane = next_width * next_height;
  light_of_scales[p.image * light_image + next_first + (3 * p.side + channel) * plane +
                  next_row * next_width + next_column] =
      quarter(light[channel][thread_of(2 * row, 2 * column)],
          light[channel][thread_of(2 * row, right)], light[channel][thread_of(bottom, 2 * column)],
          light[channel][thread_of(bottom, right)]);
}
