// SPDX-License-Identifier: Apache-2.0
// Opens a file whatever it holds: a video, a volume or a picture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/media/picture/image.h"
#include "src/media/video/video.h"
#include "src/media/volume/volume.h"

namespace similis::media {

/// A file's content; exactly one of `video`, `volume` and `picture` is set.
struct OpenedMedia {
  std::unique_ptr<FrameSource> video;
  std::optional<Volume> volume;
  std::optional<Image> picture;     ///< the first, if the file has several
  std::vector<std::uint8_t> bytes;  ///< the whole file, of a picture
  std::vector<std::string> files;   ///< of an image sequence; its pictures are `picture`'s frames
};

/// Opens the file at `path`, or the image sequence that sequence_files() finds there; "-" is
/// standard input. The file is taken for the first that fits:
///   y4m or NIfTI        if its first bytes say so
///   raw video           if `raw` is given and the file is no MP4, Matroska, WebM or AVI
///   a picture           if read_image() knows the format
///   what ffmpeg decodes: video in its own samples; animations and video in RGB as pictures
/// A pipe can be any of these except video that ffmpeg decodes.
/// Throws InvalidArgument, in one line that names the file.
OpenedMedia open_media(const std::string& path, const std::optional<RawVideo>& raw = {});

}  // namespace similis::media
