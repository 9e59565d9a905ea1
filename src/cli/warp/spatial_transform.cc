// SPDX-License-Identifier: Apache-2.0
#include "src/cli/warp/spatial_transform.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "similis/warp.hpp"
#include "src/cli/device.h"
#include "src/core/counted.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/media/io/byte_stream.h"
#include "src/media/transform/itk_transform.h"

namespace similis::cli {
namespace {

using media::Affine;
using media::Point;

constexpr std::size_t kMaxAffineBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxFieldBytes = std::size_t{1} << 36;
constexpr double kSmallestDeterminant = 1e-12;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

DisplacementField field_of(const media::Volume& volume, const std::string& name) {
  require(volume.frames == 1 && (volume.components == 3 || volume.components == 2),
      "cannot read {}: it has {} with {} per voxel; a displacement field has 1 frame with 3 (or 2) "
      "components, as its fifth dimension",
      name, counted(volume.frames, "frame"), counted(volume.components, "component"));
  const auto& size = volume.grid.size;
  DisplacementField field{.size = size};
  TensorView view = volume.values;
  view.shape = {1, volume.components, size[2], size[1], size[0]};
  view.strides = dense_strides(view.shape);
  field.displacement = Tensor(view, std::make_shared<Tensor>(volume.values));
  field.point_to_voxel = inverse(media::kTurnRasLps * volume.grid.voxel_to_world);
  return field;
}

// NIfTI's own displacements point to the right and to the front, ITK's (vectors) to the left and to
// the back.
void turn_to_lps(const media::Volume& volume) {
  if (volume.intent != media::Intent::displacement_vector) return;
  const std::int64_t count = volume.grid.voxels() * 2;
  for (std::int64_t i = 0; i < count; ++i) {
    if (volume.values.dtype == DType::f64) {
      volume.values.elements<double>()[i] *= -1;
    } else {
      volume.values.elements<float>()[i] *= -1;
    }
  }
}

// Calls visit_row(number of the row, x, y and z of each of its points).
template <class Visitor>
void for_rows(const Tensor& points, const Execution& exec, const Visitor& visit_row) {
  const std::int64_t rows = points.shape[1] * points.shape[2], columns = points.shape[3];
  parallel_for(exec, rows, [&](std::int64_t row) {
    visit_row(row, std::span(points.elements<double>() + row * columns * 3,
                       static_cast<std::size_t>(columns * 3)));
  });
}

void transform_points(const Affine& map, const Tensor& points, const Execution& exec) {
  for_rows(points, exec, [&](std::int64_t, std::span<double> row) {
    for (std::size_t i = 0; i < row.size(); i += 3) {
      const Point image = map({row[i], row[i + 1], row[i + 2]});
      std::copy(image.begin(), image.end(), row.begin() + static_cast<std::ptrdiff_t>(i));
    }
  });
}

// Turns positions in voxels into the coordinates of sample().
void to_unit(const std::array<std::int64_t, 3>& size, bool marks_outside, const Tensor& points,
    const Execution& exec) {
  constexpr double kOutside = std::numeric_limits<double>::quiet_NaN();
  for_rows(points, exec, [&](std::int64_t, std::span<double> row) {
    for (std::size_t i = 0; i < row.size(); i += 3) {
      bool is_inside = true;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        double& at = row[i + axis];
        const auto extent = static_cast<double>(size[axis]);
        is_inside = is_inside && at >= -0.5 && at < extent - 0.5;
        at = size[axis] == 1 ? 0 : 2 * at / (extent - 1) - 1;
      }
      if (marks_outside && !is_inside) row[i] = row[i + 1] = row[i + 2] = kOutside;
    }
  });
}

Tensor copy_of(const Tensor& points, const Execution& exec) {
  const Tensor copy = allocate(points.shape, points.dtype, {}, exec);
  std::copy_n(points.elements<double>(), points.shape.count(), copy.elements<double>());
  return copy;
}

void displace(const DisplacementField& field, const Tensor& points, const Execution& exec) {
  const Tensor at = copy_of(points, exec);
  transform_points(field.point_to_voxel, at, exec);
  to_unit(field.size, true, at, exec);
  const std::int64_t components = field.displacement.shape[1];
  const std::int64_t columns = points.shape[3], voxels = points.shape.count() / 3;
  const Device device = field.displacement.device;
  const Tensor there = allocate(
      {1, components, points.shape[1], points.shape[2], columns}, DType::f64, device, exec);
  sample_into(field.displacement, {.output = there},
      {.grid = on_device(at, device, exec), .padding_mode = Outside::border}, exec);
  const Tensor moved = on_device(there, {}, exec);
  for_rows(points, exec, [&](std::int64_t number, std::span<double> row) {
    const double* u = moved.elements<double>() + number * columns;
    const double* from = at.elements<double>() + number * columns * 3;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::isnan(from[i])) continue;  // outside the field, whose displacement there is 0
      const auto component = static_cast<std::int64_t>(i % 3);
      if (component < components)
        row[i] += u[component * voxels + static_cast<std::int64_t>(i / 3)];
    }
  });
}

}  // namespace

TransformFile transform_file(const std::string& text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return {text};
  const std::string_view inside = std::string_view(text).substr(1, text.size() - 2);
  const std::size_t comma = inside.rfind(',');
  if (comma == inside.npos) return {text};
  const std::string_view path = trimmed(inside.substr(0, comma));
  const std::string_view flag = trimmed(inside.substr(comma + 1));
  if (path.empty() || (flag != "0" && flag != "1")) return {text};
  return {std::string(path), flag == "1"};
}

std::vector<SpatialTransform> read_transforms(const std::string& text) {
  const TransformFile argument = transform_file(text);
  media::ByteStream stream(argument.path);
  const std::vector<std::uint8_t>& start = stream.peek(media::kNiftiStartBytes);
  std::vector<media::SpaceMap> maps;
  if (media::is_nifti(start)) {
    const media::Volume volume = media::read_volume(stream, argument.path);
    turn_to_lps(volume);
    maps.push_back(volume);
  } else {
    const std::vector<std::uint8_t> bytes =
        stream.read_to_end(media::is_hdf5(start) ? kMaxFieldBytes : kMaxAffineBytes);
    maps = media::read_itk_transforms({bytes, stream.name()});
  }
  std::vector<SpatialTransform> transforms;
  for (const media::SpaceMap& map : maps) {
    if (const auto* field = std::get_if<media::Volume>(&map)) {
      require(!argument.is_inverse,
          "{} is a displacement field, which similis cannot invert; give the inverse field that "
          "ANTs writes",
          argument.path);
      transforms.push_back({text, field_of(*field, stream.name())});
      continue;
    }
    const Affine& affine = std::get<Affine>(map);
    require(!argument.is_inverse || std::abs(determinant(affine)) > kSmallestDeterminant,
        "{} has no inverse: its determinant is {}", argument.path, determinant(affine));
    transforms.push_back({text, argument.is_inverse ? inverse(affine) : affine});
  }
  return transforms;
}

VoxelMap::VoxelMap(
    const media::Grid& from, const std::vector<SpatialTransform>& transforms, const media::Grid& to)
    : from_size_(from.size), to_size_(to.size) {
  Affine pending = media::kTurnRasLps * from.voxel_to_world;
  for (const SpatialTransform& transform : transforms) {
    if (const auto* affine = std::get_if<Affine>(&transform.map)) {
      pending = *affine * pending;
    } else {
      steps_.push_back({pending, &std::get<DisplacementField>(transform.map)});
      pending = Affine();
    }
  }
  last_ = inverse(media::kTurnRasLps * to.voxel_to_world) * pending;
}

Tensor VoxelMap::coordinates(
    std::int64_t first, std::int64_t count, bool marks_outside, const Execution& exec) const {
  const Tensor points = allocate({1, count, from_size_[1], from_size_[0], 3}, DType::f64, {}, exec);
  for_rows(points, exec, [&](std::int64_t number, std::span<double> row) {
    const auto y = static_cast<double>(number % from_size_[1]);
    const auto z = static_cast<double>(first + number / from_size_[1]);
    for (std::size_t i = 0; i < row.size(); i += 3) {
      row[i] = static_cast<double>(i / 3);
      row[i + 1] = y;
      row[i + 2] = z;
    }
  });
  for (const Step& step : steps_) {
    transform_points(step.before, points, exec);
    displace(*step.field, points, exec);
  }
  transform_points(last_, points, exec);
  to_unit(to_size_, marks_outside, points, exec);
  return points;
}

}  // namespace similis::cli
