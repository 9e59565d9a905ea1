// SPDX-License-Identifier: Apache-2.0
// Video as planes of code values, a frame at a time: y4m, raw YUV, and what ffmpeg decodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "similis/tensor.hpp"

namespace similis::media {

/// The layout of a frame's samples: planes one after the other, rows dense; a sample has one byte
/// up to 8 bits, and two bytes, the lower first, above.
struct PixelFormat {
  int bit_depth = 8;       ///< 8 to 16
  int color_planes = 3;    ///< 1 for grey
  int chroma_x_shift = 1;  ///< a chroma plane has width / 2^shift columns, rounded up
  int chroma_y_shift = 1;
  bool has_alpha = false;  ///< a plane more, as large as the first; frames must be opaque
  friend bool operator==(const PixelFormat&, const PixelFormat&) = default;
};

/// "420", "422", "444", "440", "411", "410", or "400" for grey.
std::string chroma_name(const PixelFormat& format);

/// The format that ffmpeg's name stands for, such as yuv420p10le, gray, yuva444p; the "le" may be
/// left out. Empty for names of packed, big-endian, RGB and floating-point formats.
std::optional<PixelFormat> pixel_format(const std::string& name);

/// The colour tags of a stream, as ffmpeg names them: "tv", "bt709", "left". Empty if not tagged.
struct ColorTags {
  std::string range, matrix, transfer, primaries, siting;
  friend bool operator==(const ColorTags&, const ColorTags&) = default;
};

/// Frames per second as a fraction, such as 30000/1001; 0/0 if a stream does not say.
struct FrameRate {
  std::int64_t numerator = 0, denominator = 0;
  bool is_known() const { return numerator > 0 && denominator > 0; }
  double value() const {
    return is_known() ? static_cast<double>(numerator) / static_cast<double>(denominator) : 0;
  }
  friend bool operator==(const FrameRate&, const FrameRate&) = default;
};

/// Reads two positive numbers with ':' or '/' between them; 0/0 for any other text.
FrameRate parse_frame_rate(std::string_view text);

struct VideoFormat {
  std::int64_t width = 0;
  std::int64_t height = 0;
  PixelFormat pixels;
  ColorTags color = {};
  FrameRate rate = {};
  friend bool operator==(const VideoFormat&, const VideoFormat&) = default;

  std::int64_t plane_width(int plane) const;
  std::int64_t plane_height(int plane) const;
  std::size_t plane_bytes(int plane) const;
  std::size_t frame_bytes() const;  ///< of all planes, alpha included
};

/// One frame's bytes as its VideoFormat lays them out.
struct VideoFrame {
  std::int64_t number = 0;  ///< from 0, in the file
  std::vector<std::uint8_t> bytes;

  /// [height, width] of u8 or u16, valid as long as `bytes` is untouched. The plane must be kept.
  TensorView plane(const VideoFormat& format, int plane) const;
};

/// Frames from first to last. Not for use by several threads, cancel() apart.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  const VideoFormat& format() const { return format_; }
  const std::string& name() const { return name_; }  ///< for errors and notes
  /// The number of frames if it is known before the end, exactly or nearly; for progress only.
  std::optional<std::int64_t> expected_frames() const { return expected_frames_; }

  /// Reads the next frame into `frame`, whose memory is used again. False at the end of the video.
  /// Throws InvalidArgument, in one line that names the file, if it is cut off or damaged there, or
  /// has a code value beyond its depth or a transparent pixel.
  bool read(VideoFrame& frame);

  /// From the next read() on, frames hold their first `count` planes only; the others are read
  /// over. Frames that must be opaque are kept whole.
  void keep_planes(int count);

  /// True if frames come from a file as they are, so that each takes the same time to read.
  virtual bool is_plain_file() const { return false; }

  /// Makes a read() that waits on another thread, and all later ones, end at once.
  virtual void cancel() = 0;

 protected:
  FrameSource(VideoFormat format, std::string name)
      : format_(format), name_(std::move(name)), kept_bytes_(format_.frame_bytes()) {}
  /// Fills `bytes`, which hold the kept planes of a frame; false at the end.
  virtual bool read_bytes(std::vector<std::uint8_t>& bytes) = 0;
  std::size_t kept_bytes() const { return kept_bytes_; }
  /// Throws InvalidArgument if a sample of the next frame has more bits than its format's depth.
  void require_depth(const std::uint8_t* samples, std::size_t bytes) const;

  VideoFormat format_;
  std::string name_;
  std::optional<std::int64_t> expected_frames_;
  std::int64_t next_frame_ = 0;

 private:
  std::size_t kept_bytes_;
};

/// The order of raw video's chroma: in planes, or in pairs of Cb and Cr or of Cr and Cb.
enum class ChromaOrder : std::uint8_t { planes, cb_cr, cr_cb };

/// The format of raw video, from --size and --pix-fmt.
struct RawVideo {
  std::int64_t width = 0;
  std::int64_t height = 0;
  PixelFormat pixels;
  ChromaOrder chroma = ChromaOrder::planes;
  int unused_bits = 0;         ///< below each sample's, as p010le has six
  bool is_full_range = false;  ///< its name says so: yuvj420p
  FrameRate rate = {};         ///< 0/0 if it was not given
};

/// The format of this name, without a size: a planar one, nv12, nv21, nv16, nv24, nv42, p010le,
/// p012le, p016le, p210le or p216le.
std::optional<RawVideo> raw_video(const std::string& name);

/// Puts a frame that is stored so, or its luma alone, into planes, samples in the low bits.
void unpack(const RawVideo& raw, std::vector<std::uint8_t>& bytes);

}  // namespace similis::media
