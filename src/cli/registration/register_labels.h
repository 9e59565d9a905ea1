// SPDX-License-Identifier: Apache-2.0
// Maps of labels of both images, and how well they lie over one another.
#pragma once

#include <string>
#include <vector>

#include "src/cli/registration/register_files.h"

namespace similis::cli {

/// A volume of labels on its image's grid. Throws InvalidArgument, in one line that names the file,
/// if it lies on another grid or a value is not an integer.
media::Volume read_labels(const std::string& path, const RegisterInput& image);

/// 2·|a ∩ b| / (|a| + |b|) of one label.
struct LabelOverlap {
  double label = 0, before = 0, after = 0;
};

/// One for each label but 0 that fixed or moving has, in ascending order. before, after: moving's
/// labels on fixed's grid.
std::vector<LabelOverlap> label_overlaps(
    const media::Volume& fixed, const media::Volume& before, const media::Volume& after);

}  // namespace similis::cli
