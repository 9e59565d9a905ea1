// SPDX-License-Identifier: Apache-2.0
// Both images as the stages see them: intensities in [0, 1], and smaller copies for coarse levels.
#pragma once

#include "similis/register.hpp"
#include "src/registration/geometry.h"

namespace similis::registration_internal {

/// A voxel of a mask between others counts from here on.
constexpr float kInsideMask = 0.999f;

struct Image {
  Grid grid;
  Tensor values;  ///< [1,C,…], f32 or f64, dense, in [0, 1]; 0 where the mask is
  Tensor mask;    ///< [1,1,…], of the same type: 1 or 0; empty where all voxels count

  std::int64_t channels() const { return values.empty() ? 0 : values.shape[1]; }
  Tensor allocated(std::int64_t components, const Execution& exec) const {
    return allocate(grid.image_shape(components), values.dtype, grid.device, exec);
  }
  /// The mask in f32.
  const float* mask_elements() const { return mask.empty() ? nullptr : mask.elements<float>(); }
  /// Those that count.
  std::int64_t count(const Execution& exec) const;
};

/// A mask on its image's grid as floats [1,1,…]: 1 or 0; empty where there is none. Refuses what
/// register_images() refuses of masks. name: fixed or moving.
Tensor mask_of(const char* name, const TensorView& mask, const Grid& grid, const Execution& exec);

/// Refuses what register_images() refuses of an image, and prepares it. name: fixed or moving.
Image prepared(const char* name, const Volume& volume, const TensorView& mask, bool mask_not_finite,
    const Execution& exec);

/// Maps of labels as images with a channel for each label that both have, 1 where it is and 0
/// elsewhere.
struct LabelChannels {
  Image fixed, moving;
};
/// Those of the options' labels; without channels where no metric is dice. fixed, moving: as
/// prepared. Refuses what register_images() refuses of labels.
LabelChannels label_channels(
    const RegisterOptions& options, const Image& fixed, const Image& moving, const Execution& exec);

/// The image on coarsened(grid, millimetres), smoothed by `softness` times each axis' shrinking, in
/// f64. Voxels outside the mask add nothing to others.
Image shrunk(const Image& image, double millimetres, double softness, const Execution& exec);

/// The image smoothed by so many millimetres, on its own grid, in f64.
Image blurred(const Image& image, double millimetres, const Execution& exec);

/// The standard deviation of the noise that differs from voxel to voxel, in the image's tissue: the
/// median of its second differences along all axes in turn, which most edges do not reach. Noise
/// that is smooth, and what clips it, are not seen. 0 without tissue.
double noise_of(const Image& image, const Execution& exec);

/// Its centre of mass in the world, rounded so far that devices which differ in the last digits of
/// their sums find the same one.
Point centre_of_mass(const Image& image, const Execution& exec);

/// sample()'s matrices for a map of voxels: of coordinates, and of displacements in voxels of the
/// grid that the map begins at. On the device of `to`.
Tensor coordinate_matrix(
    const Map& voxels, const Grid& from, const Grid& to, const Execution& exec);
Tensor displacement_matrix(const Map& voxels, const Grid& to, const Execution& exec);

/// values of `image` at voxels of `grid` moved by `voxels` and u (in voxels; empty for 0).
void sample_at(const TensorView& values, const Grid& from, const Map& voxels, const Grid& grid,
    const TensorView& u, bool replicates, const TensorView& output, const Execution& exec);

/// A field on another grid: u in voxels becomes that of `to`, rounded once to dtype.
Tensor resampled_field(
    const TensorView& u, const Grid& from, const Grid& to, DType dtype, const Execution& exec);

/// [1,Y,X,2] as [1,2,Y,X], and [1,Z,Y,X,3] likewise.
TensorView components_first(const TensorView& field);

}  // namespace similis::registration_internal
