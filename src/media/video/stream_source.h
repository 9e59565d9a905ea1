// SPDX-License-Identifier: Apache-2.0
// The part shared by all video that comes as bytes, from a file, a pipe or ffmpeg.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/media/io/byte_stream.h"
#include "src/media/video/video.h"

namespace similis::media {

class StreamSource : public FrameSource {
 public:
  bool is_plain_file() const override { return stream_->size().has_value(); }
  void cancel() override { stream_->cancel(); }

 protected:
  StreamSource(std::unique_ptr<ByteStream> stream, VideoFormat format);
  ByteStream& stream() { return *stream_; }

  /// Reads the header of a frame, if the format has one; false at the end of the video.
  virtual bool begin_frame() { return !stream_->at_end(); }

  /// Puts the samples of a frame that was just read into their planes.
  virtual void arrange(std::vector<std::uint8_t>&) {}

  /// True if samples may exceed the format's depth as they are stored.
  virtual bool may_exceed_depth() const {
    return format_.pixels.bit_depth != 8 && format_.pixels.bit_depth != 16;
  }

  /// Throws if the frame that was just read cannot be trusted.
  virtual void check_frame() {}

  /// The error for a video that ends `bytes` bytes into the next frame.
  virtual std::string truncation_message(std::size_t bytes);

 private:
  bool read_bytes(std::vector<std::uint8_t>& bytes) override;
  std::size_t read_over(std::size_t count);

  std::unique_ptr<ByteStream> stream_;
};

/// The line up to its end, which is read too; empty if it is longer than `limit` or cut off.
std::optional<std::string> read_line(ByteStream& stream, std::size_t limit);

std::unique_ptr<FrameSource> open_y4m(std::unique_ptr<ByteStream> stream);
std::unique_ptr<FrameSource> open_raw(std::unique_ptr<ByteStream> stream, const RawVideo& raw);
/// Null if ffmpeg takes it for a picture.
std::unique_ptr<FrameSource> open_by_ffmpeg(const std::string& path);

}  // namespace similis::media
