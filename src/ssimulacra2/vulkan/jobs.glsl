// SPDX-License-Identifier: Apache-2.0
// The work on all scales in one kernel: a job is a channel of a scale whose terms count. Places are
// those in an image, a pair over one background.
struct Job {
  int first_across, first_down;  // its first workgroup in the kernels across and down
  int width, height;
  int x, y;      // its planes of X, Y or B, in quads: [quad of columns][row]
  int across;    // its products blurred across, in quads: [product][quad of columns][row]
  int products;  // 2, the means of x and y, or 5: those of x², y² and xy as well
  int terms;     // bit t is set if term t has a weight
  int partials;  // its sums, in f64: [stripe of rows][group of columns][term][norm]
  int sums;      // those of all stripes: [group][term][norm]
};
const int kMeans = 2, kProducts = 5;
const int kStripe = 32, kGroup = 32, kNorms = 2, kSums = 6;  // score.h

layout(std430, binding = 0) readonly buffer Jobs { Job jobs[]; };
