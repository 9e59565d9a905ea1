// SPDX-License-Identifier: Apache-2.0
// Scores the measures of videos that look at several frames.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/compare/scores.h"
#include "src/cli/inputs/clips/video_pair.h"
#include "src/vmaf/clip.h"
#include "src/vmaf/gpu_meter.h"

namespace similis::cli {

/// The luma planes of the pair's current frames.
vmaf_internal::PlanePair luma_of(const VideoPair& videos);

/// Measures frames of the videos that are compared with one reference in step. On the CPU, what
/// depends on the reference alone is computed once. On a GPU the reference is copied there once,
/// and its motion is computed once.
class ClipGroup {
 public:
  explicit ClipGroup(Device device) : device_(device) {}

  /// Adds a video's current frame. Planes must stay until run().
  void add(vmaf_internal::Clip& clip, const vmaf_internal::PlanePair& planes, bool is_shown);
  /// Measures the frames that were added since the last call, which are of one time. Throws
  /// DeviceError if the GPU fails.
  void run(const Execution& exec);

 private:
  vmaf_internal::FrameSums measure(const Execution& exec);

  Device device_;
  std::optional<vmaf_internal::ClipMeter> meter_;       // empty on a GPU
  std::unique_ptr<vmaf_internal::GpuMeter> gpu_meter_;  // null on the CPU
  vmaf_internal::Plane reference_;
  std::vector<vmaf_internal::Clip*> clips_;
  std::vector<vmaf_internal::Plane> distorted_;  // empty if the frame is not shown
};

/// The clip of two videos, with all measures that look at several frames.
class ClipScorer {
 public:
  /// Throws InvalidArgument if the frames are too small for a measure.
  ClipScorer(const std::vector<Measure>& measures, const media::VideoFormat& format);

  bool is_empty() const { return measures_.empty(); }
  void add_to(ClipGroup& group, const VideoPair& videos, bool is_shown) {
    group.add(*clip_, luma_of(videos), is_shown);
  }
  void finish() { clip_->finish(); }
  /// The numbers of the next shown frame, once all are known.
  std::optional<FrameValues> pop();

 private:
  struct Scored {
    std::size_t measure;
    const ClipMeasure* clip;
    std::size_t place;  // of the model among models, or of the request among requests
  };
  std::vector<Scored> measures_;
  std::optional<vmaf_internal::Clip> clip_;
};

}  // namespace similis::cli
