// SPDX-License-Identifier: Apache-2.0
// The changes that the user allows to make two inputs comparable: --resize, --crop, --depth,
// --range, --match-rate. Nothing of it happens unasked, and what happened stands in the results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/inputs/clips/rate_match.h"
#include "src/cli/terminal/json_text.h"
#include "src/media/crop.h"
#include "src/media/resample/resample.h"
#include "src/media/video/code_mapping.h"

namespace similis::cli {

/// Full against limited range in code values: refused, converted, or compared as they are.
enum class RangeRule : std::uint8_t { must_agree, match, as_stored };

struct Adaptation {
  std::optional<media::Resampling> resize;
  media::Crop crop, crop_distorted;
  bool crops_bars = false;  ///< the margins are those of black bars, to be found in each pair
  bool matches_depth = false;
  RangeRule range = RangeRule::must_agree;
  bool matches_rate = false;
  friend bool operator==(const Adaptation&, const Adaptation&) = default;
};

/// The options as typed; empty: not given.
struct AdaptationTexts {
  std::string resize, crop, crop_distorted, depth, range, match_rate;
};

/// Throws UsageError, naming the option.
Adaptation parse_adaptation(const AdaptationTexts& texts);

/// The end of the error for sizes that differ.
const char* sizes_must_match(const std::optional<Adaptation>& adaptation);

/// The text that was given, for the settings of a list's results.
Json adaptation_document(const Adaptation& adaptation);

/// One thing that was done to a side: {"side", "step", numbers…, "words"}.
using Done = std::vector<Json>;

/// Crops and resizes a pair of pictures, and says so in `done`. Throws InvalidArgument, naming the
/// file, if a crop leaves nothing or a picture to be resized has transparent pixels.
void adapt_pictures(media::Image& reference, media::Image& distorted,
    const std::string& reference_name, const std::string& distorted_name,
    const Adaptation& adaptation, const Execution& exec, Done& done);

/// Crops, converts and resizes the frames of one side.
class FrameAdapter {
 public:
  /// Ends in `to`, which has the depth, range and size that are wanted.
  FrameAdapter(const media::VideoFormat& from, const media::Crop& crop,
      const media::VideoFormat& to, const std::optional<media::Resampling>& resize);

  /// The frame itself if there is nothing to do, else one that the next call overwrites.
  const media::VideoFrame& adapted(const media::VideoFrame& frame, const Execution& exec);

 private:
  media::VideoFormat from_;
  media::Crop crop_;
  bool crops_;
  std::optional<media::CodeMapping> codes_;
  std::optional<media::FrameResampler> resampler_;
  media::VideoFrame cropped_, mapped_, resized_;
};

/// Two videos' formats as they are compared.
struct AdaptedFormats {
  media::VideoFormat reference, distorted;
  Done done;
  std::optional<RateMatch> match = {};
};
AdaptedFormats adapted_formats(const media::VideoFormat& reference,
    const media::VideoFormat& distorted, const std::string& reference_name,
    const std::string& distorted_name, const Adaptation& adaptation);

}  // namespace similis::cli
