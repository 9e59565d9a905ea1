// SPDX-License-Identifier: Apache-2.0
// Resamples slabs of a few slices, so that their coordinates (24 B per voxel) stay small.
#include "src/cli/warp/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "src/cli/device.h"
#include "src/cli/terminal/progress.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

constexpr std::int64_t kSlabVoxels = std::int64_t{1} << 19;
// Larger, because each slab of a cubic spline computes the image's coefficients anew.
constexpr std::int64_t kCubicSlabVoxels = std::int64_t{1} << 25;

bool keeps_type(const media::Volume& image, ResampleMode mode) {
  const bool is_chosen = mode == ResampleMode::nearest || mode == ResampleMode::label;
  return is_chosen && !image.is_scaled;
}

template <class T> bool are_integers(const Tensor& values) {
  const T* begin = values.elements<T>();
  return std::all_of(
      begin, begin + values.shape.count(), [](T value) { return value == std::floor(value); });
}

void check(const media::Volume& image, const std::string& name, const ResampleOptions& options) {
  const bool is_wide = image.values.dtype == DType::f64;
  require(options.mode != ResampleMode::label ||
              (is_wide ? are_integers<double>(image.values) : are_integers<float>(image.values)),
      "{} has values that are not integers; --mode label takes an image of labels", name);
  require(!keeps_type(image, options.mode) || holds(image.type, options.background),
      "--background is {}, which the {} samples of {} cannot represent", options.background,
      media::name(image.type), name);
}

media::Volume empty_output(const media::Volume& image, const media::Grid& grid, ResampleMode mode) {
  media::Volume output = image;
  output.grid = grid;
  output.is_scaled = output.forms_differ = false;
  output.values =
      allocate({image.components, image.frames, grid.size[2], grid.size[1], grid.size[0]},
          image.values.dtype);
  if (!keeps_type(image, mode)) {
    const bool is_wide = image.values.dtype == DType::f64;
    output.type = is_wide ? media::SampleType::f64 : media::SampleType::f32;
  }
  return output;
}

// [C,T,Z,Y,X] as [1,C·T,Z,Y,X].
TensorView as_channels(const Tensor& values) {
  const Extents& shape = values.shape;
  return {values.data, Extents{1, shape[0] * shape[1], shape[2], shape[3], shape[4]}, values.dtype,
      values.device};
}

TensorView slices(const TensorView& channels, std::int64_t first, std::int64_t count) {
  TensorView slab = channels;
  slab.shape[2] = count;
  slab.data = static_cast<std::uint8_t*>(channels.data) +
              static_cast<std::size_t>(first * channels.strides[2]) * size_bytes(channels.dtype);
  return slab;
}

// Writes the background where coordinates are NaN; returns the number of such voxels in a channel.
template <class T>
std::int64_t fill_outside(const Tensor& coordinates, double background, const TensorView& slab) {
  const std::int64_t voxels = coordinates.shape.count() / 3;
  const double* at = coordinates.elements<double>();
  std::int64_t outside = 0;
  for (std::int64_t i = 0; i < voxels; ++i) {
    if (!std::isnan(at[3 * i])) continue;
    ++outside;
    for (std::int64_t c = 0; c < slab.shape[1]; ++c) {
      static_cast<T*>(slab.data)[c * slab.strides[1] + i] = static_cast<T>(background);
    }
  }
  return outside;
}

// Positions outside are NaN, so the padding mode applies to the half voxel around the image.
Outside padding_of(const ResampleOptions& options) {
  if (options.padding != Outside::zeros) return options.padding;
  return options.mode == ResampleMode::cubic ? Outside::reflection : Outside::border;
}

void sample_slab(const TensorView& image, const Tensor& coordinates, const ResampleOptions& options,
    const TensorView& slab, const Execution& exec) {
  SampleOptions sampling{.grid = coordinates, .padding_mode = padding_of(options)};
  if (options.mode == ResampleMode::label) {
    sample_labels_into(image, {.label = slab}, sampling, {.background = options.background}, exec);
    return;
  }
  if (options.mode == ResampleMode::nearest) sampling.mode = Interpolation::nearest;
  if (options.mode == ResampleMode::cubic) sampling.mode = Interpolation::cubic;
  sample_into(image, {.output = slab}, sampling, exec);
}

// Samples on the image's device: copies the coordinates there and the samples back.
void sample_slab_on_device(const TensorView& image, const Tensor& coordinates,
    const ResampleOptions& options, const TensorView& slab, const Execution& exec) {
  if (image.device == slab.device) return sample_slab(image, coordinates, options, slab, exec);
  const Tensor there = allocate(slab.shape, slab.dtype, image.device, exec);
  sample_slab(image, on_device(coordinates, image.device, exec), options, there, exec);
  const Tensor here = on_device(there, slab.device, exec);
  const std::size_t element = size_bytes(slab.dtype);
  const auto channel_bytes = static_cast<std::size_t>(here.strides[1]) * element;
  for (std::int64_t c = 0; c < slab.shape[1]; ++c) {
    std::memcpy(static_cast<std::byte*>(slab.data) +
                    static_cast<std::size_t>(c * slab.strides[1]) * element,
        static_cast<const std::byte*>(here.data) + static_cast<std::size_t>(c) * channel_bytes,
        channel_bytes);
  }
}

}  // namespace

Resampled resample(const media::Volume& image, const std::string& image_name,
    const media::Grid& grid, const std::vector<SpatialTransform>& transforms,
    const ResampleOptions& options, const Execution& exec) {
  check(image, image_name, options);
  const VoxelMap map(grid, transforms, image.grid);
  Resampled result{empty_output(image, grid, options.mode)};
  const Tensor values = on_device(image.values, options.device, exec);
  const TensorView from = as_channels(values), to = as_channels(result.volume.values);
  const bool is_cubic = options.mode == ResampleMode::cubic;
  const bool marks_outside = options.padding == Outside::zeros;
  const std::int64_t slice_voxels = grid.size[0] * grid.size[1], depth = grid.size[2];
  const std::int64_t step = std::clamp<std::int64_t>(
      (is_cubic ? kCubicSlabVoxels : kSlabVoxels) / slice_voxels, 1, depth);
  Progress progress("slabs", (depth + step - 1) / step);
  for (std::int64_t first = 0; first < depth; first += step) {
    const std::int64_t count = std::min(step, depth - first);
    const Tensor coordinates = map.coordinates(first, count, marks_outside, exec);
    const TensorView slab = slices(to, first, count);
    sample_slab_on_device(from, coordinates, options, slab, exec);
    result.outside += slab.dtype == DType::f64
                          ? fill_outside<double>(coordinates, options.background, slab)
                          : fill_outside<float>(coordinates, options.background, slab);
    progress.step();
  }
  return result;
}

}  // namespace similis::cli
