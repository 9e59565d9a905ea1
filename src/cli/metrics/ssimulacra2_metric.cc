// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metrics/ssimulacra2_metric.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "similis/ssimulacra2.hpp"
#include "src/cli/device.h"
#include "src/core/require.h"
#include "src/media/picture/color.h"
#include "src/media/video/video_color.h"
#include "src/ssimulacra2/samples.h"

namespace similis::cli {
namespace {

using media::ChromaSiting;
using media::ChromaUpsampling;
using media::SampleRange;
using media::YuvMatrix;

struct ProgramOptions {
  Ssimulacra2Options own;
  std::optional<YuvMatrix> matrix;
  std::optional<std::uint8_t> transfer, primaries;  // numbers of H.273
  std::optional<SampleRange> range;
  std::optional<ChromaSiting> siting;
  ChromaUpsampling upsampling = ChromaUpsampling::bilinear;
};

const NamedValues<std::optional<YuvMatrix>> kMatrices = {{"auto", std::nullopt},
    {"bt601", YuvMatrix::bt601}, {"bt709", YuvMatrix::bt709}, {"bt2020", YuvMatrix::bt2020}};
const NamedValues<std::optional<std::uint8_t>> kTransfers = {{"auto", std::nullopt}, {"srgb", 13},
    {"bt709", 1}, {"smpte170m", 6}, {"smpte240m", 7}, {"bt2020", 14}, {"bt2020-12", 15},
    {"gamma22", 4}, {"gamma28", 5}, {"linear", 8}};
const NamedValues<std::optional<std::uint8_t>> kPrimaries = {{"auto", std::nullopt}, {"bt709", 1},
    {"bt470m", 4}, {"bt470bg", 5}, {"smpte170m", 6}, {"smpte240m", 7}, {"bt2020", 9},
    {"dci-p3", 11}, {"display-p3", 12}};
const NamedValues<std::optional<SampleRange>> kRanges = {
    {"auto", std::nullopt}, {"limited", SampleRange::limited}, {"full", SampleRange::full}};
const NamedValues<std::optional<ChromaSiting>> kSitings = {{"auto", std::nullopt},
    {"left", ChromaSiting::left}, {"center", ChromaSiting::center},
    {"topleft", ChromaSiting::topleft}};
const NamedValues<ChromaUpsampling> kUpsamplings = {
    {"bilinear", ChromaUpsampling::bilinear}, {"nearest", ChromaUpsampling::nearest}};

std::vector<Option<ProgramOptions>> all_options() {
  auto options = options_of<ProgramOptions>(
      *operation("ssimulacra2").table, [](auto& of_program) -> auto& { return of_program.own; });
  options.emplace_back("matrix", &ProgramOptions::matrix, kMatrices,
      "YUV matrix of a video; auto: as its file says, else by its number of lines");
  options.emplace_back("transfer", &ProgramOptions::transfer, kTransfers,
      "transfer function of a video; auto: as its file says, else srgb");
  options.emplace_back("primaries", &ProgramOptions::primaries, kPrimaries,
      "primaries of a video; auto: as its file says, else bt709");
  options.emplace_back("range", &ProgramOptions::range, kRanges,
      "range of a video's samples; auto: as its file says, else limited");
  options.emplace_back("siting", &ProgramOptions::siting, kSitings,
      "position of chroma samples; auto: as the file says, else left");
  options.emplace_back(
      "upsampling", &ProgramOptions::upsampling, kUpsamplings, "interpolation of chroma samples");
  return options;
}

const std::vector<Option<ProgramOptions>>& program_options() {
  static const std::vector<Option<ProgramOptions>> options = all_options();
  return options;
}

// One side as the library takes it: samples, [C,H,W], and the memory that holds them.
struct Prepared {
  TensorView samples;
  std::vector<float> memory;
};

Prepared interleaved(
    std::vector<float> samples, std::int64_t height, std::int64_t width, std::int64_t channels) {
  Prepared side{.samples = {}, .memory = std::move(samples)};
  side.samples = {
      side.memory.data(), {channels, height, width}, {1, width * channels, channels}, DType::f32};
  return side;
}

TensorView stored(const media::Image& image) {
  const bool is_bytes = image.bit_depth == 8;
  const void* samples = is_bytes ? static_cast<const void*>(image.samples8.data())
                                 : static_cast<const void*>(image.samples16.data());
  return {samples, {image.channels, image.height, image.width},
      {1, image.width * image.channels, image.channels}, is_bytes ? DType::u8 : DType::u16};
}

// Samples from 0 to 1, as the library makes them of integers.
std::vector<float> floats(const media::Image& image) {
  const auto scaled = [](const auto& samples, float scale) {
    std::vector<float> result(samples.begin(), samples.end());
    for (float& sample : result) sample *= scale;
    return result;
  };
  return image.bit_depth == 8 ? scaled(image.samples8, 1 / 255.0f)
                              : scaled(image.samples16, 1 / 65535.0f);
}

bool is_srgb(const media::ColorSpace& color) { return media::same_color(color, {}); }

// Linear light of encoded samples of 1 or 3 channels.
Prepared to_linear_light(std::vector<float> encoded, int channels, std::int64_t height,
    std::int64_t width, const media::ColorSpace& color, const std::string& name,
    const Execution& exec) {
  if (is_srgb(color)) {
    ssimulacra2_linearize(encoded);
    return interleaved(std::move(encoded), height, width, channels);
  }
  media::LinearLight light = media::linear_light(color, channels, encoded, name, exec);
  return interleaved(std::move(light.samples), height, width, light.channels);
}

Prepared to_linear_light(const PictureAsRead& picture, float background, const Execution& exec) {
  const media::Image& image = picture.image;
  std::vector<float> encoded = floats(image);
  int channels = image.channels;
  if (image.has_alpha()) encoded = ssimulacra2_blend(encoded, channels--, background);
  return to_linear_light(
      std::move(encoded), channels, image.height, image.width, image.color, picture.name, exec);
}

// A pair of arrays, given to the library on the device that is asked for.
struct Call {
  Ssimulacra2Options options;
  Device device;
  const Execution& exec;
  TensorView map = {};  // [H,W], if it is wanted

  double operator()(const TensorView& x, const TensorView& y) const {
    if (!map.empty()) {  // on the CPU alone, whatever the queue is
      const Tensor value = allocate({}, DType::f64);
      ssimulacra2_into(x, y, {.value = value, .map = map}, options, {.runner = exec.runner});
      return item(value);
    }
    const auto moved = [&](const TensorView& view) {
      return on_device({view, nullptr}, device, exec);
    };
    return item(ssimulacra2(moved(x), moved(y), options, exec));
  }
};

double score_pictures(const std::array<PictureAsRead, 2>& sides, Call call) {
  const PictureAsRead &x = sides[0], &y = sides[1];
  for (const PictureAsRead& side : sides) {
    require(!side.image.has_floats(),
        "ssimulacra2: {} has floating-point samples; it takes pictures of 8 or 16 bits", side.name);
  }
  if (is_srgb(x.image.color) && is_srgb(y.image.color)) {
    if (x.image.bit_depth == y.image.bit_depth) return call(stored(x.image), stored(y.image));
    const auto prepared = [](const media::Image& image) {
      return interleaved(floats(image), image.height, image.width, image.channels);
    };
    const Prepared of_x = prepared(x.image), of_y = prepared(y.image);
    return call(of_x.samples, of_y.samples);
  }
  // Blending is of encoded samples, so it comes before the profile.
  call.options.transfer = Ssimulacra2Transfer::linear;
  const std::span<const float> backgrounds = ssimulacra2_backgrounds(x.image.has_alpha());
  const TensorView map = std::exchange(call.map, {});
  const auto score = [&](float background) {
    const Prepared of_x = to_linear_light(x, background, call.exec);
    const Prepared of_y = to_linear_light(y, background, call.exec);
    return call(of_x.samples, of_y.samples);
  };
  float worst = backgrounds.front();
  double lowest = score(worst);
  for (const float background : backgrounds.subspan(1)) {
    const double value = score(background);
    if (!(value < lowest)) continue;
    lowest = value;
    worst = background;
  }
  call.map = map;
  return map.empty() ? lowest : score(worst);
}

Prepared light_of(
    const VideoFrameAsRead& side, const media::VideoColor& color, const Execution& exec) {
  const Tensor rgb = media::to_rgb(*side.frame, *side.format, color, exec);
  const float* first = rgb.elements<float>();
  const media::ColorSpace space{
      .cicp = media::Cicp{.primaries = color.primaries, .transfer = color.transfer}};
  return to_linear_light({first, first + rgb.shape.count()}, 3, side.format->height,
      side.format->width, space, side.name, exec);
}

using Resolved = std::array<media::VideoColor, 2>;

Resolved resolve(const std::array<VideoFrameAsRead, 2>& sides, const ProgramOptions& options) {
  const media::VideoColorChoices choices{.matrix = options.matrix,
      .range = options.range,
      .siting = options.siting,
      .transfer = options.transfer,
      .primaries = options.primaries,
      .upsampling = options.upsampling};
  return {media::resolve_color(*sides[0].format, choices, sides[0].name),
      media::resolve_color(*sides[1].format, choices, sides[1].name)};
}

bool is_srgb(const media::VideoColor& color) {
  return is_srgb({.cicp = media::Cicp{.primaries = color.primaries, .transfer = color.transfer}});
}

double score_video(
    const std::array<VideoFrameAsRead, 2>& sides, const Resolved& colors, Call call) {
  if (is_srgb(colors[0]) && is_srgb(colors[1])) {
    const auto rgb = [&](std::size_t i) {
      Tensor made = media::to_rgb(*sides[i].frame, *sides[i].format, colors[i], call.exec);
      const std::int64_t height = made.shape[0], width = made.shape[1];
      made.shape = {3, height, width};
      made.strides = {1, 3 * width, 3};
      return made;
    };
    const Tensor x = rgb(0), y = rgb(1);
    return call(x, y);
  }
  call.options.transfer = Ssimulacra2Transfer::linear;
  const Prepared x = light_of(sides[0], colors[0], call.exec);
  const Prepared y = light_of(sides[1], colors[1], call.exec);
  return call(x.samples, y.samples);
}

// The options, with each "auto" replaced by the choice that was resolved for a video.
ProgramOptions with_resolved(ProgramOptions options, const media::VideoColor& color) {
  options.matrix = color.matrix;
  options.transfer = color.transfer;
  options.primaries = color.primaries;
  options.range = color.range;
  options.siting = color.siting;
  return options;
}

// The settings of a pair follow from its files: pictures need no choices of colour; of video they
// name what was resolved, for the distorted side too where it differs from the reference.
Settings media_settings(const AsRead& media, const ProgramOptions& chosen) {
  const auto& options = program_options();
  Settings settings = settings_of(chosen, options);
  if (media.pictures) settings.resize(1);  // mode
  if (!media.video) return settings;
  const Resolved colors = resolve(*media.video, chosen);
  settings = settings_of(with_resolved(chosen, colors[0]), options);
  for (const auto& of_distorted : settings_of(with_resolved(chosen, colors[1]), options)) {
    if (std::find(settings.begin(), settings.end(), of_distorted) == settings.end())
      settings.emplace_back("distorted_" + of_distorted.first, of_distorted.second);
  }
  return settings;
}

double score(const FramePair& pair, const ProgramOptions& options, const Call& call) {
  if (pair.as_read.pictures) return score_pictures(*pair.as_read.pictures, call);
  require(pair.as_read.video != nullptr,
      "ssimulacra2: volumes have no colours; compare pictures or video");
  return score_video(*pair.as_read.video, resolve(*pair.as_read.video, options), call);
}

Measure configured(const Settings& settings) {
  const ProgramOptions options = with_settings(settings, program_options());
  Measure measure{.takes_as_read = true};
  measure.value = [=](const FramePair& pair, const Execution& exec) {
    return score(pair, options, {{.mode = options.own.mode}, pair.device, exec});
  };
  measure.map = [=](const FramePair& pair, const Execution& exec) {
    std::int64_t height = 0, width = 0;
    if (pair.as_read.pictures) {
      const media::Image& image = (*pair.as_read.pictures)[0].image;
      height = image.height;
      width = image.width;
    } else if (pair.as_read.video) {
      const media::VideoFormat& format = *(*pair.as_read.video)[0].format;
      height = format.height;
      width = format.width;
    }
    Tensor map = allocate({height, width}, DType::f32, {}, exec);
    score(pair, options, {{.mode = options.own.mode}, {}, exec, map});
    map.shape = {1, 1, height, width};
    map.strides = dense_strides(map.shape);
    return map;
  };
  measure.settings = [=](std::optional<double>) { return settings_of(options, program_options()); };
  measure.media_settings = [=](const AsRead& media) { return media_settings(media, options); };
  return measure;
}

}  // namespace

Metric ssimulacra2_metric() {
  return {.name = "ssimulacra2",
      .description = "SSIMULACRA 2.1, how visible the difference is; 100 if equal",
      .options = described(program_options()),
      .map_range = MapRange{.best = 0, .worst = 100, .unit = "points lost here"},
      .video_planes = VideoPlanes::frame,
      .runs_on_gpu = true,
      .runs_on_vulkan = true,
      .configure = configured};
}

}  // namespace similis::cli
