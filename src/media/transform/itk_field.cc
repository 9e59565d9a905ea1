// SPDX-License-Identifier: Apache-2.0
// A field's fixed parameters are its size, origin, spacing and direction (row by row); its
// parameters are the vectors, x fastest. Source: itk::DisplacementFieldTransform.
#include "src/media/transform/itk_field.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "src/core/counted.h"

namespace similis::media {
namespace {

// Those of ITK and ANTs that are a displacement at each voxel, however it was found.
constexpr std::array<std::string_view, 3> kFields = {"DisplacementFieldTransform",
    "GaussianSmoothingOnUpdateDisplacementFieldTransform",
    "BSplineSmoothingOnUpdateDisplacementFieldTransform"};

std::size_t dimension_of(const ItkTransform& transform) {
  return transform.type.ends_with("_2_2") ? 2 : 3;
}

Grid grid_of(const ItkTransform& transform, const File& file) {
  const std::size_t n = dimension_of(transform);
  const std::vector<double>& fixed = transform.fixed;
  if (fixed.size() != n * (n + 3)) {
    refuse(file, "its {} has {}; it must have {}", one_line(transform.type),
        counted(fixed.size(), "fixed parameter"), n * (n + 3));
  }
  Grid grid;
  grid.is_flat = n == 2;
  double voxels = 1;
  for (std::size_t axis = 0; axis < n; ++axis) {
    const double size = fixed[axis];
    if (!(size >= 1) || size != std::floor(size) || !(size <= static_cast<double>(kMaxVoxels))) {
      refuse(file, "its {} has {} voxels along an axis", one_line(transform.type), size);
    }
    grid.size[axis] = static_cast<std::int64_t>(size);
    voxels *= size;
  }
  if (static_cast<double>(transform.parameters.size()) != voxels * static_cast<double>(n)) {
    refuse(file, "its {} has {}; it must have {} for each of {} voxels", one_line(transform.type),
        counted(transform.parameters.size(), "parameter"), n, voxels);
  }
  Affine to_lps;
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t axis = 0; axis < n; ++axis) {
      to_lps.rows[row][axis] = fixed[3 * n + row * n + axis] * fixed[2 * n + axis];
    }
    to_lps.rows[row][3] = fixed[n + row];
  }
  if (!(std::abs(determinant(to_lps)) > 0)) {
    refuse(file, "its {} does not place the voxels in space", one_line(transform.type));
  }
  grid.voxel_to_world = kTurnRasLps * to_lps;
  return grid;
}

// Element c·voxels + i of the volume is element i·n + c of the parameters.
template <class T>
void take_apart(const std::vector<double>& parameters, std::size_t n, T* components) {
  const std::size_t voxels = parameters.size() / n;
  for (std::size_t i = 0; i < voxels; ++i) {
    for (std::size_t c = 0; c < n; ++c) {
      components[c * voxels + i] = static_cast<T>(parameters[i * n + c]);
    }
  }
}

}  // namespace

bool is_displacement_field(const ItkTransform& transform) {
  return std::find(kFields.begin(), kFields.end(), class_name(transform)) != kFields.end();
}

Volume field_of(const ItkTransform& transform, const File& file) {
  const std::size_t n = dimension_of(transform);
  Volume field{.grid = grid_of(transform, file),
      .components = static_cast<std::int64_t>(n),
      .intent = Intent::vector};
  const bool are_floats = std::all_of(transform.parameters.begin(), transform.parameters.end(),
      [](double u) { return static_cast<double>(static_cast<float>(u)) == u; });
  const auto& size = field.grid.size;
  field.type = are_floats ? SampleType::f32 : SampleType::f64;
  field.values = allocate(
      {field.components, 1, size[2], size[1], size[0]}, are_floats ? DType::f32 : DType::f64);
  if (are_floats) {
    take_apart(transform.parameters, n, field.values.elements<float>());
  } else {
    take_apart(transform.parameters, n, field.values.elements<double>());
  }
  return field;
}

}  // namespace similis::media
