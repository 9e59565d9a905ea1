// SPDX-License-Identifier: Apache-2.0
// float_ssim and float_ms_ssim on the CPU: pairs one after the other, tiles of a pair on all
// threads. The planes of a scale are kept as f32; averages only in a tile.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/libvmaf_ssim/float/cpu.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

#include <memory>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/tensor/memory.h"
#include "src/libvmaf_ssim/float/plan.h"
#include "src/libvmaf_ssim/float/tile-inl.h"
#include "src/libvmaf_ssim/libvmaf_ssim.h"

HWY_BEFORE_NAMESPACE();
namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE {

SsimSums ssim_of_tile(const FloatPlane& x, const FloatPlane& y, const FloatTile& tile) {
  return SsimTile().run(x, y, tile);
}

void halve_tile(
    const FloatPlane& plane, const FloatTile& tile, float* out, std::int64_t row_stride) {
  HalvingTile().run(plane, tile, out, row_stride);
}

// The box of scale·scale samples about each scale-th of a row, added up in raster order.
void shrink_row(
    const FloatPlane& plane, int scale, std::int64_t row, std::int64_t width, float* out) {
  const std::int64_t before = scale / 2, after = scale / 2 - (scale % 2 == 0 ? 1 : 0);
  const float tap = 1.0f / static_cast<float>(scale * scale);
  std::vector<float> samples(static_cast<std::size_t>(width * scale));
  std::vector<double> sums(static_cast<std::size_t>(width), 0.0);
  for (std::int64_t v = -before; v <= after; ++v) {
    plane.load(mirrored(row * scale + v, plane.height), -before, width * scale, samples.data());
    for (std::int64_t u = 0; u < scale; ++u) {
      const float* HWY_RESTRICT from = samples.data() + u;
      double* HWY_RESTRICT to = sums.data();
      for (std::int64_t i = 0; i < width; ++i) to[i] += static_cast<double>(from[i * scale] * tap);
    }
  }
  for (std::int64_t i = 0; i < width; ++i) {
    out[i] = static_cast<float>(sums[static_cast<std::size_t>(i)]);
  }
}

}  // namespace similis::libvmaf_ssim_internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace similis::libvmaf_ssim_internal {
namespace {

HWY_EXPORT(ssim_of_tile);
HWY_EXPORT(halve_tile);
HWY_EXPORT(shrink_row);

FloatPlane plane_of(const TensorView& planes, std::int64_t index, int bit_depth) {
  const std::int64_t offset = index * planes.strides[0];
  return {.data = static_cast<const char*>(planes.data()) +
                  offset * static_cast<std::int64_t>(size_bytes(planes.dtype)),
      .dtype = planes.dtype,
      .row_stride = planes.strides[1],
      .column_stride = planes.strides[2],
      .height = planes.shape[1],
      .width = planes.shape[2],
      .divisor = static_cast<float>(1 << (bit_depth - 8))};
}

// A plane of f32, and its memory.
struct OwnedPlane {
  FloatPlane plane;
  std::shared_ptr<void> memory;

  float* row(std::int64_t index) const {
    return static_cast<float*>(memory.get()) + index * plane.row_stride;
  }
};

OwnedPlane new_plane(std::int64_t height, std::int64_t width, const Execution& exec) {
  const std::size_t bytes = static_cast<std::size_t>(height * width) * sizeof(float);
  OwnedPlane result{.memory = allocate_bytes(bytes, {}, exec)};
  result.plane = {.data = result.memory.get(),
      .dtype = DType::f32,
      .row_stride = width,
      .column_stride = 1,
      .height = height,
      .width = width};
  return result;
}

OwnedPlane halved(const FloatPlane& plane, const Execution& exec) {
  OwnedPlane result = new_plane((plane.height + 1) / 2, (plane.width + 1) / 2, exec);
  const FloatTiles tiles(result.plane.height, result.plane.width);
  parallel_for(exec, tiles.count(), [&](std::int64_t index) {
    const FloatTile tile = tiles.tile(index);
    float* out = result.row(tile.row) + tile.column;
    HWY_DYNAMIC_DISPATCH(halve_tile)(plane, tile, out, result.plane.row_stride);
  });
  return result;
}

OwnedPlane shrunk(const FloatPlane& plane, int scale, const Execution& exec) {
  if (scale == 1) return {.plane = plane};
  OwnedPlane result =
      new_plane(shrunk_side(plane.height, scale), shrunk_side(plane.width, scale), exec);
  parallel_for(exec, result.plane.height, [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(shrink_row)(plane, scale, row, result.plane.width, result.row(row));
  });
  return result;
}

SsimMeans means_of(const FloatPlane& x, const FloatPlane& y, const Execution& exec) {
  const std::int64_t height = x.height - 2 * kGaussRadius, width = x.width - 2 * kGaussRadius;
  const FloatTiles tiles(height, width);
  std::vector<SsimSums> of_tiles(static_cast<std::size_t>(tiles.count()));
  parallel_for(exec, tiles.count(), [&](std::int64_t index) {
    of_tiles[static_cast<std::size_t>(index)] =
        HWY_DYNAMIC_DISPATCH(ssim_of_tile)(x, y, tiles.tile(index));
  });
  SsimSums all;
  for (const SsimSums& sums : of_tiles) {
    all.ssim += sums.ssim;
    all.luminance += sums.luminance;
    all.contrast += sums.contrast;
    all.structure += sums.structure;
  }
  const double windows = static_cast<double>(height) * static_cast<double>(width);
  return {.ssim = static_cast<float>(all.ssim / windows),
      .luminance = static_cast<float>(all.luminance / windows),
      .contrast = static_cast<float>(all.contrast / windows),
      .structure = static_cast<float>(all.structure / windows)};
}

}  // namespace

void float_ssim_cpu(const PlanePairs& planes, int scale, SsimMeans* means, const Execution& exec) {
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    const OwnedPlane x = shrunk(plane_of(planes.x, i, planes.bit_depth), scale, exec);
    const OwnedPlane y = shrunk(plane_of(planes.y, i, planes.bit_depth), scale, exec);
    means[i] = means_of(x.plane, y.plane, exec);
  }
}

void float_ms_ssim_cpu(const PlanePairs& planes, MsSsimMeans* means, const Execution& exec) {
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    OwnedPlane x{.plane = plane_of(planes.x, i, planes.bit_depth)};
    OwnedPlane y{.plane = plane_of(planes.y, i, planes.bit_depth)};
    for (std::size_t scale = 0; scale < means[i].size(); ++scale) {
      if (scale > 0) {
        x = halved(x.plane, exec);
        y = halved(y.plane, exec);
      }
      means[i][scale] = means_of(x.plane, y.plane, exec);
    }
  }
}

}  // namespace similis::libvmaf_ssim_internal
#endif
