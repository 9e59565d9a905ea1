// SPDX-License-Identifier: Apache-2.0
#include "src/cli/inputs/auto_crop.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "src/core/require.h"
#include "src/media/black_bars.h"

namespace similis::cli {
namespace {

Bars bars_of_video(const std::string& path, const std::optional<media::RawVideo>& raw) {
  std::error_code unknown;
  require(path != "-" && std::filesystem::is_regular_file(path, unknown),
      "--crop auto reads a video twice, but {} is not a regular file; give --crop L,R,T,B",
      path == "-" ? "standard input" : path);
  const media::OpenedMedia again = media::open_media(path, raw);
  const media::VideoFormat& format = again.video->format();
  media::BlackBars bars;
  media::VideoFrame frame;
  try {
    while (again.video->read(frame)) bars.add(frame, format);
  } catch (const InvalidArgument&) {
    // The frames before the damage are scored, and then the damage is an error.
  }
  const std::int64_t x = std::int64_t{1} << format.pixels.chroma_x_shift;
  const std::int64_t y = std::int64_t{1} << format.pixels.chroma_y_shift;
  const bool is_grey = format.pixels.color_planes == 1;
  return {bars.margins(is_grey ? 1 : x, is_grey ? 1 : y), format.width, format.height};
}

Bars bars_of_pictures(const std::string& path, const media::OpenedMedia& media) {
  constexpr std::size_t kMostPictures = 48;
  media::BlackBars bars;
  bars.add(*media.picture);
  if (!media.files.empty()) {
    const std::size_t step = (media.files.size() + kMostPictures - 1) / kMostPictures;
    for (std::size_t i = step; i < media.files.size(); i += step) {
      bars.add(media::read_image(media.files[i]));
    }
  } else if (media.picture->frames > 1) {
    media::read_pictures(media.bytes, path, [&](const media::Image& picture) {
      bars.add(picture);
      return true;
    });
  }
  return {bars.margins(), media.picture->width, media.picture->height};
}

}  // namespace

Bars find_bars(const std::string& path, const media::OpenedMedia& media,
    const std::optional<media::RawVideo>& raw) {
  return media.picture ? bars_of_pictures(path, media) : bars_of_video(path, raw);
}

void crop_bars(const Bars& reference, const Bars& distorted, Adaptation& adaptation) {
  adaptation.crop = reference.margins;
  adaptation.crop_distorted = distorted.margins;
  if (reference.width != distorted.width || reference.height != distorted.height) return;
  const media::Crop &x = reference.margins, &y = distorted.margins;
  adaptation.crop = {.left = std::min(x.left, y.left),
      .right = std::min(x.right, y.right),
      .top = std::min(x.top, y.top),
      .bottom = std::min(x.bottom, y.bottom)};
  adaptation.crop_distorted = adaptation.crop;
}

}  // namespace similis::cli
