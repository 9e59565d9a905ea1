// SPDX-License-Identifier: Apache-2.0
// The pictures of a registration's page: the middle slices of its volumes, edges, the warped grid
// and the determinants.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/cli/registration/register_files.h"
#include "src/media/picture/image.h"

namespace similis::cli {

/// A middle slice. Its pixels have the sides of the grid's shortest voxel side, or a multiple of it
/// that keeps the picture small; each shows the voxel that it lies in.
class MiddleSlice {
 public:
  /// Axes are 0, 1, 2 for x, y, z. Voxels along `up` go downwards where they go to the back or the
  /// feet, as in files of ITK's axes.
  MiddleSlice(const media::Grid& grid, std::size_t right, std::size_t up);

  char across() const { return "xyz"[across_]; }  ///< the axis that it lies across
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  std::size_t right() const { return right_; }
  std::size_t up() const { return up_; }
  bool goes_down() const { return goes_down_; }
  /// The number of the voxel, x fastest, that a pixel shows; row 0 is the upper one.
  std::int64_t voxel(std::int64_t row, std::int64_t column) const;

 private:
  std::array<std::int64_t, 3> size_;
  std::size_t right_, up_, across_;
  bool goes_down_;
  std::int64_t width_ = 1, height_ = 1;
};

/// Across z, y and x; of a volume of one slice that slice alone.
std::vector<MiddleSlice> middle_slices_of(const media::Grid& grid);

/// The least value and the one below which 99.9 % lie; values that are not finite are left out.
std::pair<double, double> grey_range(const media::Volume& volume);

/// From black to white over the range.
media::Image grey_slice(
    const media::Volume& volume, const MiddleSlice& slice, const std::pair<double, double>& range);

/// Transparent but for the strongest edges of a grey picture.
media::Image edges_of(const media::Image& grey);

/// Transparent but for the lines of a regular grid of the moved space, `step` voxels apart, where
/// p + u(p) reaches them.
media::Image warped_grid(const Tensor& displacement, const RegisterInput& fixed,
    const MiddleSlice& slice, std::int64_t step);
std::int64_t grid_step(const media::Grid& grid);

/// The logarithm of the determinants, from -limit (blue) over 0 (white) to limit (red).
media::Image log_jacobian_slice(const Tensor& jacobian, const MiddleSlice& slice, double limit);
/// The limit that 99 % of the logarithms lie within.
double log_jacobian_limit(const Tensor& jacobian);

}  // namespace similis::cli
