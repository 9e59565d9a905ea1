// SPDX-License-Identifier: Apache-2.0
// The scores of many frames, packed for a page.
#pragma once

#include <cstddef>
#include <string>

#include "src/cli/terminal/json_text.h"

namespace similis::cli {

/// The precision of scores that a page's budget allows.
struct SeriesForm {
  int bits = 32;              ///< 32: as floats; 16: in steps of 1/65534 of their range
  std::size_t per_point = 1;  ///< frames of a point; of several their least and largest score
};

/// The most exact form in which `values` scores take at most `bytes` as base64.
SeriesForm series_form(std::size_t values, std::size_t bytes);

/// frames: [{"frame", "time", NAME…}], not empty, as results have them. Returns {"label", "bits",
/// "per", "count", "first" and "step" or "frames", "seconds" of a frame if times are known, "note"
/// unless floats of every frame are kept, "data": {NAME: {"min", "max", "values"}}}. A score that
/// is null is NaN, or 65535.
Json packed_series(const std::string& label, const Json& frames, const SeriesForm& form);

/// The number of scores in such frames.
std::size_t score_count(const Json& frames);

}  // namespace similis::cli
