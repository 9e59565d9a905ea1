// SPDX-License-Identifier: Apache-2.0
// Transforms that --transform names, and their composition as a map from voxels to voxels.
//
// A transform maps points of the fixed image's space to the moving one's, in mm with ITK's axes
// (left, posterior, superior). If there are several, a point goes through the first one first, as
// in antsApplyTransforms, which reads its command line backwards.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "similis/execution.hpp"
#include "src/media/volume/volume.h"

namespace similis::cli {

/// p ↦ p + u(p), where u is interpolated linearly inside the field and 0 outside, as in ITK.
struct DisplacementField {
  Tensor displacement;  ///< [1,2 or 3,Z,Y,X], mm, on any device; of a 2D field z is left as it is
  std::array<std::int64_t, 3> size;
  media::Affine point_to_voxel;
};

struct SpatialTransform {
  std::string name;  ///< as it was typed
  std::variant<media::Affine, DisplacementField> map;
  const char* kind() const { return map.index() == 0 ? "affine" : "displacement"; }
};

/// The argument of a --transform: PATH, [PATH,0] or, for the inverse of an affine map, [PATH,1].
struct TransformFile {
  std::string path;
  bool is_inverse = false;
};
TransformFile transform_file(const std::string& text);

/// Reads the transform that a --transform names; several if it is a composite with a field. The
/// first is applied first. Throws InvalidArgument, in one line that names the file, if it holds
/// neither affine maps nor displacement fields, or if it cannot be inverted as asked.
std::vector<SpatialTransform> read_transforms(const std::string& text);

/// Maps voxels of one grid to those of another.
class VoxelMap {
 public:
  /// `transforms` must outlive the map.
  VoxelMap(const media::Grid& from, const std::vector<SpatialTransform>& transforms,
      const media::Grid& to);

  /// The positions of the voxels of slices [first, first + count), for similis::sample():
  /// [1,count,Y,X,3] in f64, between -1 and 1 as with align_corners. The inside reaches half a
  /// voxel beyond the centres of the outermost voxels, as in ITK; with `marks_outside` positions
  /// outside are NaN.
  Tensor coordinates(
      std::int64_t first, std::int64_t count, bool marks_outside, const Execution& exec) const;

 private:
  struct Step {
    media::Affine before;
    const DisplacementField* field;
  };
  std::array<std::int64_t, 3> from_size_, to_size_;
  std::vector<Step> steps_;
  media::Affine last_;
};

}  // namespace similis::cli
