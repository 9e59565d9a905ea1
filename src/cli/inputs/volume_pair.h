// SPDX-License-Identifier: Apache-2.0
// Two volumes of one grid, side by side: their frames one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/cli/inputs/clips/video_pair.h"
#include "src/cli/inputs/frame_pair.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/media/volume/volume.h"

namespace similis::cli {

class VolumePair {
 public:
  /// Throws InvalidArgument, in one line that names both, if their voxels do not lie in the
  /// same places, to a hundredth of a voxel, or their numbers of components differ.
  VolumePair(media::Volume reference, media::Volume distorted, const std::string& reference_name,
      const std::string& distorted_name, const FrameSelection& selection,
      bool masks_not_finite = false);

  /// The next frames that are selected, as [1,C,Z,Y,X], or [1,C,Y,X] for volumes of one slice;
  /// empty after the last. Voxels that are not finite are masked if the user says so. Throws
  /// InvalidArgument otherwise, naming the file and the first place.
  std::optional<FramePair> next();

  std::int64_t frame() const { return frame_; }  ///< of the last next(), in the reference
  std::int64_t expected_pairs() const;
  FrameCounts counts() const { return {reference_.frames, distorted_.frames}; }

  const media::Grid& grid() const { return reference_.grid; }
  int channels() const { return static_cast<int>(reference_.components); }
  /// Largest minus smallest finite value of the reference, in all its frames.
  double data_range() const { return data_range_; }
  const Differences& differences() const { return differences_; }

 private:
  media::Volume reference_, distorted_;
  std::string reference_name_, distorted_name_;
  FrameSelection selection_;
  bool masks_not_finite_;
  double data_range_;
  Differences differences_;
  std::int64_t frame_ = -1, taken_ = 0;
};

}  // namespace similis::cli
