// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/video_planes.h"

#include <algorithm>
#include <cstdint>

#include "src/core/parallel.h"

namespace similis::cli {
namespace {

constexpr std::array<const char*, 3> kPlaneNames = {"y", "cb", "cr"};

}  // namespace

const char* plane_name(int plane) { return kPlaneNames[static_cast<std::size_t>(plane)]; }

bool is_plane_name(std::string_view text) {
  return std::find(kPlaneNames.begin(), kPlaneNames.end(), text) != kPlaneNames.end();
}

Tensor VideoPlanePairs::samples(
    const media::VideoFrame& frame, int plane, Tensor& wide, const Execution& exec) {
  const TensorView stored = frame.plane(format_, plane);
  const std::int64_t height = stored.shape[0], width = stored.shape[1];
  const Extents shape = {1, 1, height, width};
  if (stored.dtype == DType::u8) return {stored.reshaped(shape, dense_strides(shape)), nullptr};
  if (wide.empty()) wide = allocate(shape, DType::f32, {}, exec);
  const auto* from = static_cast<const std::uint16_t*>(stored.data());
  parallel_for(exec, height, [&](std::int64_t y) {
    float* to = wide.elements<float>() + y * width;
    for (std::int64_t x = 0; x < width; ++x) to[x] = from[y * width + x];
  });
  return wide;
}

FramePair VideoPlanePairs::plane(const media::VideoFrame& reference,
    const media::VideoFrame& distorted, int plane, const Execution& exec) {
  std::array<Tensor, 2>& wide = wide_[static_cast<std::size_t>(plane)];
  const double largest = (1 << format_.pixels.bit_depth) - 1;
  FramePair pair{.reference = samples(reference, plane, wide[0], exec),
      .distorted = samples(distorted, plane, wide[1], exec),
      .data_range = largest};
  if (plane == 0) {
    pair.luma = {
        reference.plane(format_, 0), distorted.plane(format_, 0), format_.pixels.bit_depth};
  }
  return pair;
}

}  // namespace similis::cli
