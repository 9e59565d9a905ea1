// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <variant>

#include "src/cli/inputs/media_pair.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/core/counted.h"
#include "src/core/require.h"
#include "src/core/tensor/doubles.h"
#include "src/media/io/byte_stream.h"
#include "src/media/picture/reader.h"

namespace similis::cli {
namespace {

using media::Affine;

constexpr double kSameGrid = 0.01;  // voxels
constexpr double kTilt = 1e-4;      // of a slice, per voxel

AffineRows rows_of(const Affine& map) {
  AffineRows rows;
  for (std::size_t r = 0; r < 3; ++r) {
    std::copy_n(map.rows[r].begin(), 4, rows.begin() + static_cast<std::ptrdiff_t>(4 * r));
  }
  return rows;
}

Affine affine_of(const AffineRows& rows) {
  Affine map;
  for (std::size_t r = 0; r < 3; ++r) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(4 * r), 4, map.rows[r].begin());
  }
  return map;
}

Affine to_lps(const media::Grid& grid) { return media::kTurnRasLps * grid.voxel_to_world; }

// [components,Z,Y,X] of a field whose components lie beside one another.
Tensor components_apart(const Tensor& field, const media::Grid& grid, std::int64_t components) {
  const std::int64_t voxels = grid.voxels();
  const Tensor apart =
      allocate({components, 1, grid.size[2], grid.size[1], grid.size[0]}, DType::f32);
  const float* in = field.elements<float>();
  float* const out = apart.elements<float>();
  for (std::int64_t i = 0; i < voxels; ++i) {
    for (std::int64_t c = 0; c < components; ++c) out[c * voxels + i] = *in++;
  }
  return apart;
}

SpatialTransform field_transform(
    const Tensor& field, const RegisterInput& fixed, const std::string& name) {
  const media::Grid& grid = fixed.file.grid;
  const Tensor apart = components_apart(field, grid, fixed.rank());
  TensorView view = apart;
  view.shape = {1, fixed.rank(), grid.size[2], grid.size[1], grid.size[0]};
  view.strides = dense_strides(view.shape);
  return {name, DisplacementField{.displacement = Tensor(view, std::make_shared<Tensor>(apart)),
                    .size = grid.size,
                    .point_to_voxel = inverse(to_lps(grid))}};
}

}  // namespace

void add_channel(const std::string& path, RegisterInput& image) {
  const media::Volume channel = read_on_grid(path, image, "a further channel");
  const TensorView& own = image.view.data;
  TensorView both = own;
  both.shape[1] += 1;
  both.strides = dense_strides(both.shape);
  both.dtype =
      own.dtype == DType::f64 || channel.values.dtype == DType::f64 ? DType::f64 : DType::f32;
  const Tensor stacked = allocate(both.shape, both.dtype);
  std::vector<double> values = to_doubles(own);
  const std::vector<double> further = to_doubles(channel.values);
  values.insert(values.end(), further.begin(), further.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (both.dtype == DType::f64) {
      stacked.elements<double>()[i] = values[i];
    } else {
      stacked.elements<float>()[i] = static_cast<float>(values[i]);
    }
  }
  image.channels = stacked;
  image.view.data = stacked;
}

media::Volume read_register_volume(const std::string& path) {
  constexpr std::size_t kSignatureBytes = 32;
  media::ByteStream stream(path);
  const std::string_view picture = media::known_format(stream.peek(kSignatureBytes));
  require(picture.empty(),
      "cannot read {}: it is a picture ({}), and similis register takes volumes: NIfTI, MetaImage "
      "or NRRD, also of one slice. similis.register() in Python and register_images() in C++ "
      "register pictures, as arrays",
      stream.name(), picture);
  return media::read_volume(stream, path);
}

RegisterInput read_register_input(const std::string& path) {
  RegisterInput input{.name = display_name(path), .file = read_register_volume(path)};
  const media::Volume& file = input.file;
  require(file.frames == 1 && file.components == 1,
      "{} has {} with {} per voxel; similis register takes 1 frame with 1 component", input.name,
      counted(file.frames, "frame"), counted(file.components, "component"));
  if (file.forms_differ) {
    print_note(fmt::format("{}: qform and sform differ; the sform is used", input.name));
  }
  if (file.grid.world_code == 0) {
    print_note(
        fmt::format("{}: it does not say where its voxels lie; the first is taken as the world's "
                    "origin, and its axes as those to the left, back and top",
            input.name));
  }
  const auto& size = file.grid.size;
  for (std::size_t a = 0; a < 2; ++a) {
    require(size[a] > 1,
        "{} has one voxel along {}; similis register takes volumes, and slices of one voxel along "
        "z",
        input.name, "xy"[a]);
  }
  const Affine to_world = to_lps(file.grid);
  const bool is_slice = size[2] == 1;
  input.view.to_world = rows_of(to_world);
  TensorView data = file.values;
  data.shape =
      is_slice ? Extents{1, 1, size[1], size[0]} : Extents{1, 1, size[2], size[1], size[0]};
  data.strides = dense_strides(data.shape);
  input.view.data = data;
  if (is_slice) {
    const media::Point spacing = file.grid.spacing();
    require(std::abs(to_world.rows[2][0]) <= kTilt * spacing[0] &&
                std::abs(to_world.rows[2][1]) <= kTilt * spacing[1],
        "{} is a slice that is not parallel to the x-y plane of the world; similis register takes "
        "volumes, and slices in that plane",
        input.name);
  }
  return input;
}

media::Volume read_on_grid(const std::string& path, const RegisterInput& image, const char* what) {
  media::Volume volume = read_register_volume(path);
  const std::string name = display_name(path);
  require(volume.frames == 1 && volume.components == 1,
      "{} has {} with {} per voxel; {} has 1 frame with 1 component", name,
      counted(volume.frames, "frame"), counted(volume.components, "component"), what);
  const auto &own = volume.grid.size, &size = image.file.grid.size;
  require(own == size,
      "{} has {} × {} × {} voxels but {} has {} × {} × {}; {} lies on its image's grid", name,
      own[0], own[1], own[2], image.name, size[0], size[1], size[2], what);
  const double distance = media::grid_distance(image.file.grid, volume.grid);
  require(distance <= kSameGrid, "{} lies {:.3g} voxels beside {}; {} lies on its image's grid",
      name, distance, image.name, what);
  return volume;
}

Tensor read_mask(const std::string& path, const RegisterInput& image) {
  if (path.empty()) return {};
  const media::Volume mask = read_on_grid(path, image, "a mask");
  const auto& size = mask.grid.size;
  TensorView view = mask.values;
  view.shape = image.rank() == 2 ? Extents{size[1], size[0]} : Extents{size[2], size[1], size[0]};
  view.strides = dense_strides(view.shape);
  return Tensor(view, std::make_shared<Tensor>(mask.values));
}

AffineRows read_start(const std::string& path) {
  const std::vector<SpatialTransform> transforms = read_transforms(path);
  const auto* map = std::get_if<Affine>(&transforms.front().map);
  require(transforms.size() == 1 && map != nullptr,
      "{} has a displacement field; --init takes an affine map", path);
  return rows_of(*map);
}

RegisterTransforms transforms_of(
    const Registration& result, const RegisterInput& fixed, const RegisterInput& moving) {
  Affine map = affine_of(result.affine);
  if (fixed.rank() == 2) {
    // The library leaves z as it is; the slices may lie at different heights.
    map.rows[2] = {
        0, 0, 1, to_lps(moving.file.grid).rows[2][3] - to_lps(fixed.file.grid).rows[2][3]};
  }
  RegisterTransforms transforms{.affine = {"0GenericAffine.mat", map}};
  transforms.backward.push_back({"[0GenericAffine.mat,1]", inverse(map)});
  if (!result.displacement.empty()) {
    transforms.forward.push_back(field_transform(result.displacement, fixed, "1Warp"));
    transforms.backward.push_back(
        field_transform(result.inverse_displacement, fixed, "1InverseWarp"));
  }
  transforms.forward.push_back(transforms.affine);
  return transforms;
}

media::Volume field_volume(const Tensor& field, const RegisterInput& fixed) {
  media::Volume volume;
  volume.grid = fixed.file.grid;
  volume.components = fixed.rank();
  volume.values = components_apart(field, volume.grid, volume.components);
  volume.intent = media::Intent::vector;
  return volume;
}

}  // namespace similis::cli
