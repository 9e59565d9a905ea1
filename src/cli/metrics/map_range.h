// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace similis::cli {

/// The values of a metric's map: `best` where the frames are equal, `worst` at the largest loss.
struct MapRange {
  double best = 1;
  double worst = 0;
};

}  // namespace similis::cli
