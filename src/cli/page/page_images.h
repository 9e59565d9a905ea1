// SPDX-License-Identifier: Apache-2.0
// The pictures that a report shows of its inputs: pictures, middle slices of volumes, worst frames
// of video, each as large as its share of the page allows, with maps and their histograms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/inputs/frame_pair.h"
#include "src/cli/metrics/metric.h"
#include "src/cli/terminal/json_text.h"
#include "src/media/picture/image.h"
#include "src/media/video/video.h"

namespace similis::cli {

/// The same picture with 8 bits a sample, each pixel the mean of factor x factor, or of fewer at
/// the right and lower border.
media::Image shrunk(const media::Image& image, std::int64_t factor);

/// A frame of video as a picture. PQ and HLG are shown as if they were not.
media::Image shown_frame(
    const media::VideoFrame& frame, const media::VideoFormat& format, const Execution& exec);

class PageImages {
 public:
  /// Adds a pair of pictures or volumes with the maps of the measures that have one; measures that
  /// cannot draw one of these are left out.
  void add_pair(
      const FramePair& frames, const std::vector<Measure>& measures, const Execution& exec);

  /// A frame of a clip, and the planes or the frame that `measure` takes, if it has a map.
  struct WorstFrame {
    std::string name;
    std::int64_t number = 0;
    double value = 0;
    media::Image reference, distorted;
    const Measure* measure = nullptr;
    FramePair frames;
  };
  /// `count`: how many of these the page has.
  void add_worst(const WorstFrame& worst, std::size_t count, const Execution& exec);

  /// Puts them into a section of the page.
  void move_into(Json& section);

 private:
  Json pair_, worst_ = Json::array();
};

}  // namespace similis::cli
