// SPDX-License-Identifier: Apache-2.0
// Clips of pictures: animations, files of several pages, image sequences, and videos beside these,
// whose frames become RGB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/media/picture/pictures_ahead.h"
#include "src/media/video/video.h"
#include "src/media/video/video_color.h"

namespace similis::cli {

/// Frames of video as encoded RGB: 8 bits a sample for 8, else 16, in the colours that their tags,
/// or the defaults of resolve_color(), say.
class RgbFrames {
 public:
  /// Throws InvalidArgument, naming the video, if a tag is not supported.
  RgbFrames(const media::VideoFormat& format, const std::string& name);

  media::Image picture(const media::VideoFrame& frame, const Execution& exec) const;
  /// "frames converted from YUV (bt709, limited range) to RGB of 8 bits"
  std::string words() const;

 private:
  media::VideoFormat format_;
  media::VideoColor color_;
};

/// A clip, not yet read: bytes, files or a video.
struct PictureClip {
  std::string name;
  std::vector<std::uint8_t> bytes = {};
  std::vector<std::string> files = {};
  std::shared_ptr<const media::Image> first = {};  ///< of `files`, if it was read already
  std::unique_ptr<media::FrameSource> video = {};
  std::optional<std::int64_t> frames = {};  ///< empty: known at the end of the video
};

/// Reads a clip once, from its first picture to its last.
class PictureReader {
 public:
  /// Pictures of a sequence or a video that are not wanted are not decoded. With `reads_ahead` the
  /// next picture is read while the last one is used.
  PictureReader(PictureClip clip, std::function<bool(std::int64_t)> is_wanted, bool reads_ahead);

  const std::string& name() const { return name_; }
  /// The picture of this number, which was not passed yet; null if the clip has fewer. Throws what
  /// reading throws.
  std::shared_ptr<const media::Image> picture(std::int64_t number);
  /// The number of pictures; of a video, empty before read_rest().
  std::optional<std::int64_t> frames() const { return frames_; }
  /// Reads a video to its end.
  void read_rest();
  /// The number of pictures if it is known before the end, exactly or nearly.
  std::optional<std::int64_t> expected_frames() const { return expected_; }
  media::FrameRate rate() const { return rate_; }  ///< of a video
  /// The conversion of a video's frames, in words; empty for other clips.
  const std::string& conversion() const { return conversion_; }
  void cancel();

 private:
  std::function<void(const media::TakePicture&)> reader_of(
      PictureClip clip, std::function<bool(std::int64_t)> is_wanted);

  std::string name_, conversion_;
  std::optional<std::int64_t> frames_, expected_;
  media::FrameRate rate_;
  std::int64_t read_ = 0;  // number of pictures taken so far
  std::shared_ptr<media::FrameSource> video_;
  std::optional<media::PicturesAhead> pictures_;
};

}  // namespace similis::cli
