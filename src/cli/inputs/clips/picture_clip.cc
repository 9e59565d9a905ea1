// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/clips/picture_clip.h"

#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "src/core/counted.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

constexpr int kByteBits = 8, kWordBits = 16;

int rgb_bits(const media::VideoFormat& format) {
  return format.pixels.bit_depth > kByteBits ? kWordBits : kByteBits;
}

const char* matrix_name(media::YuvMatrix matrix) {
  switch (matrix) {
    case media::YuvMatrix::bt601: return "bt601";
    case media::YuvMatrix::bt2020: return "bt2020";
    case media::YuvMatrix::bt709: break;
  }
  return "bt709";
}

template <class Sample>
void quantize(const float* values, std::size_t count, std::vector<Sample>& samples) {
  constexpr float kLargest = static_cast<Sample>(-1);
  samples.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i] = static_cast<Sample>(std::lround(values[i] * kLargest));
  }
}

}  // namespace

RgbFrames::RgbFrames(const media::VideoFormat& format, const std::string& name)
    : format_(format), color_(media::resolve_color(format, {}, name)) {}

media::Image RgbFrames::picture(const media::VideoFrame& frame, const Execution& exec) const {
  media::Image image{.width = format_.width,
      .height = format_.height,
      .channels = 3,
      .bit_depth = rgb_bits(format_),
      .source_bit_depth = format_.pixels.bit_depth,
      .format = "video"};
  image.color.cicp = media::Cicp{.primaries = color_.primaries, .transfer = color_.transfer};
  const Tensor rgb = media::to_rgb(frame, format_, color_, exec);
  const auto count = static_cast<std::size_t>(rgb.shape.count());
  if (image.bit_depth == kByteBits) {
    quantize(rgb.elements<float>(), count, image.samples8);
  } else {
    quantize(rgb.elements<float>(), count, image.samples16);
  }
  return image;
}

std::string RgbFrames::words() const {
  return fmt::format("frames converted from YUV ({}, {} range) to RGB of {} bits",
      matrix_name(color_.matrix), color_.range == media::SampleRange::full ? "full" : "limited",
      rgb_bits(format_));
}

PictureReader::PictureReader(
    PictureClip clip, std::function<bool(std::int64_t)> is_wanted, bool reads_ahead)
    : name_(clip.name), frames_(clip.frames), expected_(clip.frames) {
  if (clip.video) {
    video_ = std::move(clip.video);
    expected_ = video_->expected_frames();
    rate_ = video_->format().rate;
  }
  pictures_.emplace(reader_of(std::move(clip), std::move(is_wanted)), reads_ahead);
}

std::function<void(const media::TakePicture&)> PictureReader::reader_of(
    PictureClip clip, std::function<bool(std::int64_t)> is_wanted) {
  if (video_) {
    const RgbFrames rgb(video_->format(), name_);
    conversion_ = rgb.words();
    return [video = video_, rgb, is_wanted = std::move(is_wanted)](const media::TakePicture& take) {
      const Execution on_this_thread{.runner = serial_runner()};
      media::VideoFrame frame;
      while (video->read(frame)) {
        const bool shows = is_wanted(frame.number);
        if (!take(shows ? rgb.picture(frame, on_this_thread) : media::Image())) return;
      }
    };
  }
  if (clip.files.empty()) {
    return [clip = std::make_shared<const PictureClip>(std::move(clip))](
               const media::TakePicture& take) {
      media::read_pictures(clip->bytes, clip->name, take);
    };
  }
  return [files = std::move(clip.files), first = std::move(clip.first),
             is_wanted = std::move(is_wanted)](const media::TakePicture& take) mutable {
    for (std::size_t i = 0; i < files.size(); ++i) {
      media::Image picture;
      if (is_wanted(static_cast<std::int64_t>(i))) {
        picture = i == 0 && first ? *first : media::read_image(files[i]);
      }
      first.reset();
      require(picture.frames == 1, "{} has {}; a sequence takes pictures of one frame", files[i],
          counted(picture.frames, "frame"));
      if (!take(std::move(picture))) return;
    }
  };
}

std::shared_ptr<const media::Image> PictureReader::picture(std::int64_t number) {
  if (frames_ && number >= *frames_) return nullptr;
  for (;;) {
    std::optional<media::Image> taken = pictures_->next();
    if (!taken && video_) {
      frames_ = read_;
      return nullptr;
    }
    require(taken.has_value(), "cannot read {}: it says that it has {} but has only {}", name_,
        counted(*frames_, "frame"), read_);
    if (read_++ == number) return std::make_shared<const media::Image>(*std::move(taken));
  }
}

void PictureReader::read_rest() {
  while (!frames_) {
    if (pictures_->next()) {
      ++read_;
    } else {
      frames_ = read_;
    }
  }
}

void PictureReader::cancel() {
  if (video_) video_->cancel();
}

}  // namespace similis::cli
