// SPDX-License-Identifier: Apache-2.0
// Video through the programs: ffprobe, or ffmpeg alone, says what a file is, ffmpeg writes all its
// frames raw into a pipe, in the file's own samples: never scaled, repeated or dropped. A file that
// changes its size or pixel format half way is an error, where ffmpeg by itself would scale. Only
// local files are opened, so that a playlist cannot reach the network.
#include <fmt/core.h>

#include <array>
#include <utility>

#include "src/media/io/ffmpeg.h"
#include "src/media/picture/reader.h"
#include "src/media/video/stream_source.h"

namespace similis::media {
namespace {

constexpr const char* kNeed = "video other than y4m and raw YUV";

// A name that ffmpeg cannot take for an option or a protocol.
std::string file_argument(const std::string& path) { return "file:" + path; }

std::vector<std::string> input_options(const File& file) {
  return {"-protocol_whitelist", "file", "-i", file_argument(file.name)};
}

Probe probe_video(const File& file) {
  auto probed = probe_by_programs({.input = input_options(file),
      .entries = {"-show_pixel_formats", "-show_entries",
          "stream=codec_name,width,height,pix_fmt,nb_frames,avg_frame_rate,r_frame_rate,color_"
          "range,"
          "color_space,color_transfer,"
          "color_primaries,chroma_location:stream_side_data=rotation:format=format_name"},
      .require_size = [&](std::int64_t width, std::int64_t height) {
        require_size(file, width, height);
      }});
  if (!probed) refuse_without_ffmpeg(file, kNeed);
  const ProgramResult& result = probed->result;
  if (result.succeeded && probed->probe) return *std::move(probed->probe);
  std::string message = result.succeeded ? "no video stream" : last_message(result);
  const std::string name = file_argument(file.name) + ": ";  // the refusal names the file itself
  if (message.starts_with(name)) message.erase(0, name.size());
  refuse(file,
      "unrecognized format: neither similis nor ffmpeg can read it ({}); raw video needs --size "
      "WxH and --pix-fmt FORMAT",
      message);
}

// Animations and video in RGB are pictures too, of several frames.
bool is_picture(const Probe& probe) {
  const std::string& pixels = probe.pixel_format;
  const bool is_rgb = pixels.find("rgb") != pixels.npos || pixels.find("bgr") != pixels.npos ||
                      pixels.starts_with("gbr") || pixels == "pal8";
  return probe.container.ends_with("_pipe") || probe.container == "image2" ||
         probe.container == "gif" || probe.container == "apng" || is_rgb;
}

// Formats that differ from a planar one in nothing but the order of their bytes.
std::string planar_name(const std::string& name) {
  using Pair = std::pair<std::string_view, const char*>;
  static constexpr std::array kPlanar = {Pair{"nv12", "yuv420p"}, Pair{"nv21", "yuv420p"},
      Pair{"yuyv422", "yuv422p"}, Pair{"uyvy422", "yuv422p"}};
  for (const auto& [packed, planar] : kPlanar) {
    if (name == packed) return planar;
  }
  if (name.ends_with("be")) return name.substr(0, name.size() - 2) + "le";
  return name;
}

class FfmpegSource : public StreamSource {
 public:
  FfmpegSource(std::unique_ptr<RunningProgram> program, const std::string& name,
      VideoFormat video_format, std::int64_t expected_frames)
      : StreamSource(std::make_unique<ByteStream>(program->take_output(), name), video_format),
        program_(std::move(program)) {
    if (expected_frames > 0) expected_frames_ = expected_frames;
  }

 private:
  bool begin_frame() override {
    if (!stream().at_end()) return true;
    if (!stream().is_cancelled()) require_success();
    return false;
  }
  std::string truncation_message(std::size_t bytes) override {
    require_success();
    return StreamSource::truncation_message(bytes);
  }
  // Some decoders report damage and go on with made-up pixels, after that report.
  void check_frame() override {
    const std::string errors = program_->errors();
    if (!errors.empty()) refuse_damaged_frame({.errors = errors});
  }
  void require_success() {
    if (std::exchange(is_checked_, true)) return;
    const ProgramResult result = program_->wait();
    if (!result.succeeded || !result.errors.empty()) refuse_damaged_frame(result);
  }
  [[noreturn]] void refuse_damaged_frame(const ProgramResult& result) {
    refuse({.bytes = {}, .name = name_}, "it is cut off or damaged at or after frame {} ({})",
        next_frame_, last_message(result));
  }

  std::unique_ptr<RunningProgram> program_;
  bool is_checked_ = false;
};

}  // namespace

std::unique_ptr<FrameSource> open_by_ffmpeg(const std::string& path) {
  const File file{.bytes = {}, .name = path};
  const Probe probe = probe_video(file);
  if (is_picture(probe)) return nullptr;
  const std::string name = planar_name(probe.pixel_format);
  const std::optional<PixelFormat> pixels = pixel_format(name);
  if (!pixels) {
    refuse(file, "its pixel format is {}, as ffmpeg calls it, which is neither planar YUV nor RGB",
        probe.pixel_format);
  }
  const VideoFormat format{.width = probe.is_turned ? probe.height : probe.width,
      .height = probe.is_turned ? probe.width : probe.height,
      .pixels = *pixels,
      .color = {.range = probe.range,
          .matrix = probe.matrix,
          .transfer = probe.transfer,
          .primaries = probe.primaries,
          .siting = probe.siting},
      .rate = parse_frame_rate(probe.rate)};
  require_size(file, format.width, format.height);
  // crop leaves every frame as it is, and fails on one of another size.
  std::vector<std::string> arguments = {
      ffmpeg_command(), "-nostdin", "-v", "error", "-xerror", "-err_detect", "explode"};
  const std::vector<std::string> input = input_options(file);
  arguments.insert(arguments.end(), input.begin(), input.end());
  arguments.insert(arguments.end(),
      {"-map", "0:V:0", keep_all_frames_option(), "passthrough", "-noautoscale", "-vf",
          fmt::format("crop=w='if(eq(iw,{0})*eq(ih,{1}),{0},-1)':h={1}:exact=1", format.width,
              format.height)});
  if (name == probe.pixel_format) arguments.push_back("-noauto_conversion_filters");
  arguments.insert(arguments.end(), {"-pix_fmt", name, "-f", "rawvideo", "pipe:1"});
  auto program = start_program(arguments);
  if (!program) refuse_without_ffmpeg(file, kNeed);
  return std::make_unique<FfmpegSource>(std::move(program), path, format, probe.expected_frames);
}

}  // namespace similis::media
