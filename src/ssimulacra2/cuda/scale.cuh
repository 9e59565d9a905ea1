// SPDX-License-Identifier: Apache-2.0
// Parts that the kernels of SSIMULACRA 2 share: the scales of a batch as they lie in memory, and
// the place where each block of a kernel over all of them works.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/gpu/cuda/vendor.h"
#include "src/ssimulacra2/blur.h"
#include "src/ssimulacra2/ssimulacra2.h"

namespace similis::ssimulacra2_internal {

constexpr int kProducts = 5;  // in this order: means of x, y, x², y², xy
constexpr int kMeans = 2;     // the first of them; edges take no others
constexpr int kSides = 2;
constexpr int kLanes = 32;  // of a warp: the columns of a group, the rows that it filters
constexpr int kSums = kTerms * kNorms, kSumsOfScale = kChannels * kSums;

// One scale. An image is a pair over one background.
struct Scale {
  Extent extent, next;
  std::int64_t pitch, next_pitch;  // of rows, in elements, multiples of kLanes
  unsigned terms[kChannels];       // bit t is set if term t has a weight
  int products[kChannels];         // number of products: none, both means, or all
  int first_slot[kChannels];       // the plane of its first product among an image's slots
  int slots;
  const float* light;  // [image][side][3] planes; null at the first scale
  float* next_light;   // null at the last
  float* xyb;          // [image][side][3] planes
  float* across;       // [image][slot] planes; mode exact
  double* partials;    // [image][stripe][group][channel][term][norm]

  __host__ __device__ std::int64_t plane() const { return extent.height * pitch; }
  __host__ __device__ std::int64_t next_plane() const { return next.height * next_pitch; }
  __host__ __device__ std::int64_t stripes() const {
    return (extent.height + kStripe - 1) / kStripe;
  }
  __host__ __device__ std::int64_t groups() const { return (extent.width + kGroup - 1) / kGroup; }

  __device__ const float* x_plane(std::int64_t image, int channel) const {
    return xyb + (image * kSides * kChannels + channel) * plane();
  }
  /// Returns the distance from a pixel of x to that of y.
  __device__ std::int64_t from_x_to_y() const { return kChannels * plane(); }
  __device__ float* across_plane(std::int64_t image, int channel, int product) const {
    return across + (image * slots + first_slot[channel] + product) * plane();
  }
  __device__ double* partial(
      std::int64_t image, std::int64_t stripe, std::int64_t group, int channel) const {
    const std::int64_t at = ((image * stripes() + stripe) * groups() + group) * kChannels;
    return partials + (at + channel) * kSums;
  }
};

// A channel of a scale, and the first block of an image that works on it.
struct Job {
  int scale, channel;
  unsigned first_block;
};

// The blocks of a kernel over all scales and channels of all images. The blocks of the longest jobs
// come first, for all images, so that the short jobs fill the multiprocessors at the end.
struct Work {
  Scale scales[kMaxScales];
  Job jobs[kMaxScales * kChannels];
  int job_count = 0;
  unsigned images = 0, blocks_an_image = 0;

  void add(int scale, int channel, std::int64_t blocks) {
    jobs[job_count++] = {scale, channel, blocks_an_image};
    blocks_an_image += static_cast<unsigned>(blocks);
  }
  dim3 grid() const { return dim3(images * blocks_an_image); }
};

// The place where a block works.
struct Place {
  int scale, channel;
  std::int64_t image, block;

  __device__ explicit Place(const Work& work) {
    const unsigned index = blockIdx.x / work.images;
    int job = 0;
    while (job + 1 < work.job_count && index >= work.jobs[job + 1].first_block) ++job;
    scale = work.jobs[job].scale;
    channel = work.jobs[job].channel;
    image = blockIdx.x % work.images;
    block = index - work.jobs[job].first_block;
  }
};

}  // namespace similis::ssimulacra2_internal
