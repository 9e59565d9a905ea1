// SPDX-License-Identifier: Apache-2.0
#include "src/cli/page/page_images.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "similis/error.hpp"
#include "src/cli/device.h"
#include "src/cli/maps/grey_reference.h"
#include "src/cli/maps/heat_map.h"
#include "src/cli/maps/middle_slices.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/page/page.h"
#include "src/media/picture/formats/png_writer.h"
#include "src/media/video/video_color.h"

namespace similis::cli {
namespace {

// Bytes of PNG files, which a page holds as base64, a third longer.
constexpr std::size_t kPairBytes = 1900000, kMapsBytes = 1500000, kFramesBytes = 700000;
constexpr std::size_t kBins = 40;
// PNG seldom makes samples smaller than this; what cannot fit is not tried. Maps are smooth.
constexpr std::size_t kMostCompression = 4, kMostMapCompression = 12;

struct Drawn {
  std::string src;
  std::int64_t factor = 1, width = 0, height = 0;
};

std::size_t sample_count(const media::Image& image) {
  return static_cast<std::size_t>(image.width * image.height * image.channels);
}

// The smallest factor at which all fit together.
std::vector<Drawn> fitted(const std::vector<media::Image>& images, std::size_t most_bytes,
    std::size_t most_compression = kMostCompression) {
  std::size_t samples = 0;
  for (const media::Image& image : images) samples += sample_count(image);
  std::int64_t factor = 1;
  while (samples / static_cast<std::size_t>(factor * factor) > most_compression * most_bytes) {
    ++factor;
  }
  for (;; ++factor) {
    std::vector<Drawn> drawn;
    std::size_t bytes = 0;
    for (const media::Image& image : images) {
      const media::Image small = shrunk(image, factor);
      const std::vector<std::uint8_t> png = media::encode_png(small);
      bytes += png.size();
      drawn.push_back({"data:image/png;base64," +
                           base64({reinterpret_cast<const char*>(png.data()), png.size()}),
          factor, small.width, small.height});
    }
    if (bytes <= most_bytes || factor >= 1000) return drawn;
    const double over = std::sqrt(static_cast<double>(bytes) / static_cast<double>(most_bytes));
    factor = std::max(factor, static_cast<std::int64_t>(static_cast<double>(factor) * over) - 1);
  }
}

template <class T> double mean_of_channels(const Tensor& map, std::int64_t y, std::int64_t x) {
  double sum = 0;
  for (std::int64_t c = 0; c < map.shape[1]; ++c) {
    sum += map.elements<T>()[(c * map.shape[2] + y) * map.shape[3] + x];
  }
  return sum / static_cast<double>(map.shape[1]);
}

double mean_of_channels(const Tensor& map, std::int64_t y, std::int64_t x) {
  return map.dtype == DType::f64 ? mean_of_channels<double>(map, y, x)
                                 : mean_of_channels<float>(map, y, x);
}

// The map's mean over channels, [1,1,H,W] in f32, each pixel the mean of factor x factor.
Tensor shrunk_map(const Tensor& map, std::int64_t factor) {
  const std::int64_t rows = map.shape[2], columns = map.shape[3];
  const Tensor small =
      allocate({1, 1, (rows + factor - 1) / factor, (columns + factor - 1) / factor}, DType::f32);
  float* out = small.elements<float>();
  for (std::int64_t y = 0; y < rows; y += factor) {
    for (std::int64_t x = 0; x < columns; x += factor) {
      double sum = 0;
      const std::int64_t end_y = std::min(rows, y + factor), end_x = std::min(columns, x + factor);
      for (std::int64_t v = y; v < end_y; ++v) {
        for (std::int64_t u = x; u < end_x; ++u) sum += mean_of_channels(map, v, u);
      }
      *out++ = static_cast<float>(sum / static_cast<double>((end_y - y) * (end_x - x)));
    }
  }
  return small;
}

// The share of pixels in each part of the range, from best to worst; values beyond it are in the
// outermost parts.
Json histogram_json(const Tensor& map, const MapRange& range) {
  std::array<std::int64_t, kBins> counts{};
  std::int64_t all = 0;
  for (std::int64_t y = 0; y < map.shape[2]; ++y) {
    for (std::int64_t x = 0; x < map.shape[3]; ++x) {
      const double value = mean_of_channels(map, y, x);
      if (std::isnan(value)) continue;
      const double loss =
          std::clamp((value - range.best) / (range.worst - range.best), 0.0, 1.0 - 1e-9);
      ++counts[static_cast<std::size_t>(loss * static_cast<double>(kBins))];
      ++all;
    }
  }
  Json shares = Json::array();
  for (const std::int64_t count : counts) {
    shares.push_back(
        static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(all, 1)));
  }
  return {{"best", range.best}, {"worst", range.worst}, {"shares", shares}};
}

const Metric* metric_of(const Measure& measure) {
  return find_metric(measure.name.substr(0, measure.name.find('=')));
}

bool has_map(const Measure& measure) {
  const Metric* metric = metric_of(measure);
  return measure.map && metric != nullptr && metric->map_range;
}

struct Map {
  Tensor values;  // [1,C,H,W] on the CPU
  MapRange range;
  std::vector<Label> labels;
};

Map map_of(const Measure& measure, const FramePair& pair, const Execution& exec) {
  const FramePair frames = frames_on_device(pair, pair.device, exec);
  const Tensor values = on_device(measure.map(frames, exec), {}, exec);
  return {middle_slices(values, pair.voxel_mm),
      for_data_range(*metric_of(measure)->map_range, pair.data_range),
      slice_labels(values.shape, pair.voxel_mm, pair.toward)};
}

media::Image drawn_map(const Map& map, const std::string& title, std::size_t most_bytes) {
  for (std::int64_t factor = 1;; ++factor) {
    MapFrame frame{.range = map.range, .title = title, .labels = map.labels};
    for (Label& label : frame.labels) {
      label.x /= factor;
      label.y /= factor;
    }
    media::Image image = heat_map(shrunk_map(map.values, factor), frame);
    if (sample_count(image) <= kMostMapCompression * most_bytes || factor >= 1000) return image;
  }
}

// The middle slices of two volumes, the reference's range from black to white.
std::vector<media::Image> slices_of(const FramePair& pair) {
  const auto [least, largest] = finite_limits(pair.reference);
  std::vector<media::Image> images;
  for (const Tensor* side : {&pair.reference, &pair.distorted}) {
    const Tensor slices = middle_slices(grey(*side, least, largest), pair.voxel_mm);
    media::Image image{.width = slices.shape[3], .height = slices.shape[2], .channels = 1};
    for (std::int64_t i = 0; i < slices.shape.count(); ++i) {
      const double share = slices.elements<float>()[i];
      const double shown = std::isnan(share) ? 0.5 : std::clamp(share, 0.0, 1.0);
      image.samples8.push_back(static_cast<std::uint8_t>(std::lround(shown * 255)));
    }
    draw_labels(slice_labels(side->shape, pair.voxel_mm, pair.toward), dot_for(image.width), image);
    images.push_back(std::move(image));
  }
  return images;
}

}  // namespace

media::Image shrunk(const media::Image& image, std::int64_t factor) {
  if (factor == 1 && image.bit_depth == 8) return image;
  constexpr int kDropped = 8;  // bits of 16
  media::Image small{.width = (image.width + factor - 1) / factor,
      .height = (image.height + factor - 1) / factor,
      .channels = image.channels,
      .color = image.color};
  const auto sample = [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    if (image.has_floats()) {  // 0 is black and 1 white
      const double shown = std::clamp(static_cast<double>(image.samples_float[i]), 0.0, 1.0);
      return static_cast<std::uint32_t>(std::isnan(shown) ? 0 : std::lround(shown * 255));
    }
    return image.bit_depth == 8 ? image.samples8[i]
                                : static_cast<std::uint32_t>(image.samples16[i] >> kDropped);
  };
  for (std::int64_t y = 0; y < image.height; y += factor) {
    for (std::int64_t x = 0; x < image.width; x += factor) {
      const std::int64_t end_y = std::min(image.height, y + factor);
      const std::int64_t end_x = std::min(image.width, x + factor);
      const auto count = static_cast<std::uint64_t>((end_y - y) * (end_x - x));
      for (int c = 0; c < image.channels; ++c) {
        std::uint64_t sum = 0;
        for (std::int64_t v = y; v < end_y; ++v) {
          for (std::int64_t u = x; u < end_x; ++u) {
            sum += sample((v * image.width + u) * image.channels + c);
          }
        }
        small.samples8.push_back(static_cast<std::uint8_t>((sum + count / 2) / count));
      }
    }
  }
  return small;
}

media::Image shown_frame(
    const media::VideoFrame& frame, const media::VideoFormat& format, const Execution& exec) {
  media::VideoFormat shown = format;
  shown.color.transfer.clear();
  shown.color.primaries.clear();
  const Tensor rgb =
      media::to_rgb(frame, shown, media::resolve_color(shown, {}, "the video"), exec);
  media::Image image{.width = format.width, .height = format.height, .channels = 3};
  const float* values = rgb.elements<float>();
  for (std::int64_t i = 0; i < format.width * format.height * 3; ++i) {
    image.samples8.push_back(static_cast<std::uint8_t>(std::lround(values[i] * 255)));
  }
  return image;
}

void PageImages::add_pair(
    const FramePair& pair, const std::vector<Measure>& measures, const Execution& exec) {
  const bool is_volume = !pair.as_read.pictures;
  std::vector<media::Image> images;
  if (is_volume) {
    images = slices_of(pair);
  } else {
    for (const PictureAsRead& side : *pair.as_read.pictures) images.push_back(side.image);
  }
  const std::vector<Drawn> drawn = fitted(images, kPairBytes);
  pair_ = {{"reference", drawn[0].src}, {"distorted", drawn[1].src}, {"shrunk", drawn[0].factor},
      {"width", images[0].width}, {"height", images[0].height}, {"maps", Json::array()}};
  std::string words;
  if (is_volume) {
    words =
        "The middle slices across z, y and x, from the reference's least value (black) to its "
        "largest (white). ";
  }
  if (drawn[0].factor > 1) {
    words += fmt::format(
        "Shown at 1/{} of its size, so that this page stays small; scores are of the whole.",
        drawn[0].factor);
  }
  pair_["words"] = words;
  const auto count = static_cast<std::size_t>(
      std::count_if(measures.begin(), measures.end(), [](const Measure& m) { return has_map(m); }));
  for (const Measure& measure : measures) {
    if (!has_map(measure) || (!pair.refusal.empty() && !measure.takes_as_read)) continue;
    try {
      const Map map = map_of(measure, pair, exec);
      const std::size_t bytes = kMapsBytes / count;
      const Drawn heat =
          fitted({drawn_map(map, measure.name, bytes)}, bytes, kMostMapCompression).front();
      pair_["maps"].push_back({{"name", measure.name}, {"src", heat.src},
          {"histogram", histogram_json(map.values, map.range)}});
    } catch (const InvalidArgument&) {  // too small for its window: its score says so
    }
  }
}

void PageImages::add_worst(const WorstFrame& worst, std::size_t count, const Execution& exec) {
  const std::size_t bytes = kFramesBytes / std::max<std::size_t>(count, 1);
  const std::vector<Drawn> frames = fitted({worst.reference, worst.distorted}, bytes / 3 * 2);
  Json shown = {{"name", worst.name}, {"frame", worst.number}, {"value", worst.value},
      {"reference", frames[0].src}, {"distorted", frames[1].src}};
  if (worst.measure != nullptr && has_map(*worst.measure)) {
    const Map map = map_of(*worst.measure, worst.frames, exec);
    const media::Image drawn = drawn_map(map, worst.measure->name, bytes / 3);
    shown["map"] = fitted({drawn}, bytes / 3, kMostMapCompression).front().src;
    shown["map_name"] = worst.measure->name;
  }
  worst_.push_back(std::move(shown));
}

void PageImages::move_into(Json& section) {
  if (!pair_.is_null()) section["images"] = std::move(pair_);
  if (!worst_.empty()) section["worst"] = std::move(worst_);
}

}  // namespace similis::cli
