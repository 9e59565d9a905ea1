// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/frame_selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "src/cli/usage_error.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

constexpr std::int64_t kMaxFrame = std::int64_t{1} << 40;

std::optional<std::int64_t> parse_frame(const std::string& text) {
  const std::optional<std::int64_t> frame = parse_number<std::int64_t>(text);
  if (!frame || *frame < 0 || *frame > kMaxFrame) return std::nullopt;
  return frame;
}

void parse_range(const std::string& text, FrameSelection& selection) {
  const std::size_t colon = text.find(':');
  const std::string first = text.substr(0, colon);
  const std::string end = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto first_frame = first.empty() ? std::optional<std::int64_t>(0) : parse_frame(first);
  if (!end.empty()) selection.end = parse_frame(end);
  const bool is_read = colon != std::string::npos && first_frame && (end.empty() || selection.end);
  if (!is_read || (selection.end && *selection.end <= *first_frame)) {
    throw UsageError(fmt::format(
        "--frames is \"{}\"; it must be A:B, the first frame and the one after the last", text));
  }
  selection.first = *first_frame;
}

}  // namespace

bool FrameSelection::has(std::int64_t frame) const {
  return frame >= first && frame + offset >= 0 && (!end || frame < *end) &&
         (frame - first) % every == 0;
}

std::int64_t FrameSelection::next(std::int64_t frame) const {
  const std::int64_t from = std::max({frame, first, -offset});
  return first + (from - first + every - 1) / every * every;
}

std::int64_t FrameSelection::count(
    std::int64_t reference_frames, std::int64_t distorted_frames) const {
  const std::int64_t behind =
      std::min({end.value_or(reference_frames), reference_frames, distorted_frames - offset});
  return std::max<std::int64_t>(0, (behind - next(0) + every - 1) / every);
}

FrameSelection parse_frame_selection(
    const std::string& frames, const std::string& every, const std::string& offset) {
  FrameSelection selection;
  if (!frames.empty()) parse_range(frames, selection);
  if (!every.empty()) {
    const auto step = parse_frame(every);
    if (!step || *step < 1) {
      throw UsageError(fmt::format("--every is \"{}\"; it must be a whole number above 0", every));
    }
    selection.every = *step;
  }
  if (!offset.empty()) {
    const auto shift = parse_frame(offset.starts_with('-') ? offset.substr(1) : offset);
    if (!shift) {
      throw UsageError(fmt::format(
          "--offset is \"{}\"; it must be a number of frames, such as 3 or -3", offset));
    }
    selection.offset = offset.starts_with('-') ? -*shift : *shift;
  }
  return selection;
}

media::FrameRate parse_rate(const std::string& text) {
  constexpr double kMostRate = 1e6;
  if (text.empty()) return {};
  media::FrameRate rate = media::parse_frame_rate(text);
  const std::optional<double> number = parse_number<double>(text);
  if (number && *number > 0 && *number <= kMostRate) {
    constexpr std::int64_t kThousandths = 1000;
    rate = {std::llround(*number * kThousandths), kThousandths};
  }
  if (rate.is_known() && rate.value() <= kMostRate) return rate;
  throw UsageError(fmt::format(
      "--fps is \"{}\"; it must be a number of frames per second, such as 24, 23.976 or "
      "24000/1001",
      text));
}

std::optional<media::RawVideo> parse_raw_video(
    const std::string& size, const std::string& pixel_format) {
  if (size.empty() && pixel_format.empty()) return std::nullopt;
  if (size.empty()) throw UsageError("--pix-fmt is given without --size; raw video needs both");
  if (pixel_format.empty()) {
    throw UsageError("--size is given without --pix-fmt; raw video needs both");
  }
  const std::vector<std::int64_t> sides = parse_size(size);
  if (sides.size() != 2) {
    throw UsageError(fmt::format("--size is \"{}\"; it must be WxH, such as 1920x1080", size));
  }
  std::optional<media::RawVideo> raw = media::raw_video(pixel_format);
  if (!raw) {
    throw UsageError(
        fmt::format("--pix-fmt is \"{}\"; it must be one of ffmpeg's YUV formats, such as yuv420p, "
                    "yuv422p10le, nv12, p010le or gray",
            pixel_format));
  }
  raw->width = sides[0];
  raw->height = sides[1];
  return raw;
}

}  // namespace similis::cli
