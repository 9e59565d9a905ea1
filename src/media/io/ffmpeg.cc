// SPDX-License-Identifier: Apache-2.0
// Reads formats without a library through the programs: ffprobe, or without it ffmpeg
// (ffmpeg_report.cc), tells what a file is, and ffmpeg writes its first frame raw. Both read
// standard input and may open nothing else, so a playlist cannot reach other files or the network,
// and the file's name means nothing to them. Every error that ffmpeg logs is an error here, since
// it exits with status 0 after half a picture.
#include "src/media/io/ffmpeg.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/media/io/byte_stream.h"
#include "src/media/io/child_process.h"
#include "src/media/picture/reader.h"

namespace similis::media {
namespace {

using Json = nlohmann::json;
constexpr const char* kSeekableInput = "file:/proc/self/fd/0";
constexpr const char* kNeed =
    "a picture other than PNG, JPEG, WebP, AVIF, JXL, TIFF, PNM, PAM, PFM, BMP and QOI";

ProgramResult run(const File& file, const std::vector<std::string>& arguments, std::size_t bytes) {
  auto result = run_program(arguments, file.bytes, {.output_bytes = bytes});
  if (!result) refuse_without_ffmpeg(file, kNeed);
  return *std::move(result);
}

// The value under this key; null if there is none.
const Json& member(const Json& parent, const char* key) {
  static const Json kNull;
  const auto found = parent.find(key);
  return found == parent.end() ? kNull : *found;
}

std::string text(const Json& parent, const char* key, const char* otherwise = "") {
  const Json& value = member(parent, key);
  return value.is_string() ? value.get<std::string>() : otherwise;
}

// An integer; 0 for any other value.
std::int64_t number(const Json& parent, const char* key) {
  const Json& value = member(parent, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

// A number that ffprobe prints as text; 0 for any other text.
std::int64_t decimal(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The objects in the array under this key; none for anything else. Not copied, since a copy
// recurses as deeply as its lists are nested.
std::vector<const Json*> objects(const Json& parent, const char* key) {
  std::vector<const Json*> found;
  const Json& list = member(parent, key);
  if (!list.is_array()) return found;
  for (const Json& item : list) {
    if (item.is_object()) found.push_back(&item);
  }
  return found;
}

// Writes the layout of the named format. False if ffprobe does not know it or it is no picture.
bool find_pixels(const Json& root, const std::string& name, Probe& probe) {
  for (const Json* format : objects(root, "pixel_formats")) {
    if (text(*format, "name") != name) continue;
    const Json& flags = member(*format, "flags");
    PixelLayout layout{.components = number(*format, "nb_components"),
        .has_alpha = number(flags, "alpha") != 0,
        .has_palette = number(flags, "palette") != 0};
    for (const Json* component : objects(*format, "components")) {
      layout.bit_depth = std::max(layout.bit_depth, number(*component, "bit_depth"));
    }
    return describe_pixels(layout, probe);
  }
  return false;
}

// True if a GIF's blocks reach its trailer; without it ffmpeg 5.1 takes any cut for the end.
bool is_whole_gif(Bytes bytes) {
  constexpr std::size_t kHeader = 13, kImageHeader = 10;
  const auto byte = [&](std::size_t at) { return at < bytes.size() ? bytes[at] : 0; };
  const auto table_bytes = [](int flags) {
    return flags & 0x80 ? std::size_t{3} << ((flags & 7) + 1) : 0;
  };
  std::size_t at = kHeader + table_bytes(byte(10));
  while (at < bytes.size() && byte(at) != ';') {
    const bool is_image = byte(at) == ',';
    if (!is_image && byte(at) != '!') return false;
    at += is_image ? kImageHeader + table_bytes(byte(at + 9)) + 1 : 2;
    while (byte(at) != 0) at += std::size_t{1} + byte(at);  // blocks of data, the last one empty
    ++at;
  }
  return at < bytes.size();
}

void require_end_of_gif(const File& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (text.starts_with("GIF8") && !is_whole_gif(file.bytes))
    refuse_damaged(file, "the end of the GIF is missing");
}

struct RawFormat {
  std::string name;
  int channels, bit_depth;
  bool is_planar;  // green, blue, red, alpha
};

// The format to ask for: the file's own depth if ffmpeg offers it, so that grey and RGB are not
// converted, else 16 bits.
RawFormat raw_format(const Probe& probe) {
  static constexpr std::array kNarrow = {"gray", "ya8", "rgb24", "rgba"};
  static constexpr std::array kWide = {"gray", "ya", "gbrp", "gbrap"};
  static constexpr std::array<std::array<int, 5>, 4> kDepths = {
      {{9, 10, 12, 14, 16}, {16}, {9, 10, 12, 14, 16}, {10, 12, 16}}};
  const auto kind = static_cast<std::size_t>(probe.channels - 1);
  if (probe.bit_depth <= 8) return {kNarrow[kind], probe.channels, 8, false};
  const auto& depths = kDepths[kind];
  const bool has_own = std::find(depths.begin(), depths.end(), probe.bit_depth) != depths.end();
  const int depth = has_own ? probe.bit_depth : 16;
  return {fmt::format("{}{}le", kWide[kind], depth), probe.channels, depth, probe.channels >= 3};
}

// Little-endian pairs of bytes, planes in the order green, blue, red, alpha, as interleaved
// samples.
std::vector<std::uint16_t> wide_samples(Bytes raw, const RawFormat& format) {
  static constexpr std::array<std::size_t, 4> kPlane = {2, 0, 1, 3};
  const std::size_t count = raw.size() / 2, channels = static_cast<std::size_t>(format.channels);
  const std::size_t pixels = count / channels;
  std::vector<std::uint16_t> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = format.is_planar ? kPlane[i % channels] * pixels + i / channels : i;
    samples[i] = static_cast<std::uint16_t>(raw[2 * at] | raw[2 * at + 1] << 8);
  }
  return samples;
}

// ffmpeg reads some formats only where it can seek: 5.1 long GIFs, and any those that do not say
// where a picture ends. Their name for ffmpeg by their first bytes; empty for others.
const char* seekable_format(const File& file) {
  using Format = std::pair<std::string_view, const char*>;
  using namespace std::string_view_literals;
  static constexpr std::array kFormats = {Format{"GIF8", "gif"}, Format{"\x01\xda", "sgi_pipe"},
      Format{"\x59\xa6\x6a\x95", "sunrast_pipe"}, Format{"\x0a\x05\x01", "pcx_pipe"}};
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  for (const auto& [start, format] : kFormats) {
    if (text.starts_with(start)) return format;
  }
  constexpr std::string_view kVersion =
      "\0\0\0\7"sv;  // of X's window dumps, after the header's size
  return text.substr(std::min<std::size_t>(text.size(), 4)).starts_with(kVersion) ? "xwd_pipe" : "";
}

// A demuxer that must seek opens its standard input, a file, by name. The format is given, so that
// no playlist is read like this.
std::vector<std::string> input_options(const File& file) {
  const std::string format = seekable_format(file);
  std::vector<std::string> options = {"-protocol_whitelist", format.empty() ? "pipe" : "file",
      "-max_pixels", std::to_string(file.max_pixels)};
  if (format.empty()) {
    options.insert(options.end(), {"-i", "pipe:0"});
  } else {
    options.insert(options.end(), {"-f", format, "-i", kSeekableInput});
  }
  return options;
}

Probe probe_file(const File& file) {
  const auto require_room = [&](std::int64_t width, std::int64_t height) {
    require_size(file, width, height);
    require_density(file, width, height);
  };
  auto probed = probe_by_programs({.input = input_options(file),
      .entries = {"-count_packets", "-show_pixel_formats", "-show_entries",
          "stream=codec_name,width,height,pix_fmt,color_primaries,color_transfer,nb_read_packets:"
          "stream_side_data=rotation"},
      .bytes = file.bytes,
      .counts_frames = true,
      .require_size = require_room});
  if (!probed) refuse_without_ffmpeg(file, kNeed);
  const ProgramResult& result = probed->result;
  if (!result.succeeded || !probed->probe) {
    refuse(file, "unrecognized format: neither similis nor ffmpeg can read it ({})",
        result.succeeded ? "no video stream" : last_message(result));
  }
  if (!result.errors.empty()) refuse_damaged(file, last_message(result));
  require_room(probed->probe->width, probed->probe->height);
  return *std::move(probed->probe);
}

// ffprobe of the same install as ffmpeg, since another's version may not read what this one does:
// that in the folder of the first ffmpeg on PATH. Empty if there is none there, or if
// SIMILIS_FFMPEG chooses a program.
std::string ffprobe_command() {
  const char* const path = std::getenv("PATH");
  if (ffmpeg_command() != "ffmpeg" || path == nullptr) return {};
  std::string_view folders = path;
  for (;;) {
    const std::size_t colon = folders.find(':');
    const std::string folder = std::string(folders.substr(0, colon)) + "/";
    if (access((folder + "ffmpeg").c_str(), X_OK) == 0) {
      const std::string ffprobe = folder + "ffprobe";
      return access(ffprobe.c_str(), X_OK) == 0 ? ffprobe : std::string();
    }
    if (colon == std::string_view::npos) return {};
    folders.remove_prefix(colon + 1);
  }
}

// ffprobe reports a profile only with the frame.
bool has_profile(const File& file) {
  std::vector<std::string> arguments = {ffprobe_command(), "-v", "error", "-select_streams", "V:0",
      "-read_intervals", "%+#1", "-show_entries", "frame_side_data=side_data_type", "-of",
      "compact"};
  const std::vector<std::string> input = input_options(file);
  arguments.insert(arguments.end(), input.begin(), input.end());
  const ProgramResult result = run(file, arguments, kMaxProbeBytes);
  const std::string_view words(
      reinterpret_cast<const char*>(result.output.data()), result.output.size());
  return words.find("ICC profile") != words.npos;
}

// ffmpeg does not pass on profiles.
void require_no_profile(const File& file, const Probe& probe) {
  if (probe.has_profile ? *probe.has_profile : has_profile(file)) {
    refuse(file,
        "it has an ICC profile, which ffmpeg does not pass on; convert the picture to PNG first");
  }
}

// The layout in which ffmpeg is to write a file's pictures, and an Image without their samples.
struct RawPictures {
  Image header;
  RawFormat raw;
  std::size_t bytes = 0;  // of each picture

  Image picture(std::vector<std::uint8_t> samples) const {
    Image image = header;
    if (image.bit_depth == 8) {
      image.samples8 = std::move(samples);
    } else {
      image.samples16 = wide_samples(samples, raw);
      rescale_to_16(image.samples16, raw.bit_depth);
    }
    return image;
  }
};

RawPictures raw_pictures(const File& file, const Probe& probe) {
  if (probe.is_float || probe.bit_depth > 16) {
    refuse(file, "it has {}-bit {} samples; they must be integers of at most 16 bits",
        probe.bit_depth, probe.is_float ? "floating-point" : "integer");
  }
  const auto cicp = code_points(probe);
  if (!cicp) {
    refuse(file, "its primaries {} or its transfer {}, as ffmpeg calls them, are not supported",
        probe.primaries, probe.transfer);
  }
  const RawFormat raw = raw_format(probe);
  Image header{.width = probe.is_turned ? probe.height : probe.width,
      .height = probe.is_turned ? probe.width : probe.height,
      .channels = raw.channels,
      .bit_depth = raw.bit_depth > 8 ? 16 : 8,
      .source_bit_depth = raw.bit_depth > 8 ? raw.bit_depth : probe.bit_depth,
      .format = probe.codec,
      .frames = std::max<std::int64_t>(probe.frames, 1)};
  if (*cicp != Cicp{}) header.color.cicp = cicp;
  const std::int64_t bytes =
      header.width * header.height * header.channels * (header.bit_depth / 8);
  return {std::move(header), raw, static_cast<std::size_t>(bytes)};
}

// The last argument is the output.
std::vector<std::string> raw_arguments(const File& file, const RawFormat& raw) {
  std::vector<std::string> arguments = {
      ffmpeg_command(), "-nostdin", "-v", "error", "-xerror", "-err_detect", "explode"};
  const std::vector<std::string> input = input_options(file);
  arguments.insert(arguments.end(), input.begin(), input.end());
  arguments.insert(
      arguments.end(), {"-map", "0:V:0", "-sws_flags",
                           "bicubic+accurate_rnd+full_chroma_int+full_chroma_inp+bitexact",
                           "-pix_fmt", raw.name, "-f", "rawvideo", "pipe:1"});
  return arguments;
}

// ffmpeg reads animated PNG only where it can seek: it opens its standard input, a file, by name.
// No other format is read like this, so that no playlist is.
void read_as_seekable_png(std::vector<std::string>& arguments) {
  const auto whitelist = std::find(arguments.begin(), arguments.end(), "pipe");
  *whitelist = "file";
  const auto input = std::find(arguments.begin(), arguments.end(), "-i");
  *(input + 1) = kSeekableInput;
  arguments.insert(input, {"-f", "apng"});
}

}  // namespace

bool describe_pixels(const PixelLayout& layout, Probe& probe) {
  constexpr std::int64_t kMaxComponents = 4, kMaxBitDepth = 64;
  const std::string& name = probe.pixel_format;
  if (layout.components < 1 || layout.components > kMaxComponents || layout.bit_depth < 1 ||
      layout.bit_depth > kMaxBitDepth)
    return false;
  const bool is_grey = layout.components - layout.has_alpha <= 1;
  probe.channels = (is_grey ? 1 : 3) + layout.has_alpha;
  if (layout.has_palette) probe.channels = 4;  // one component, which names a colour
  probe.bit_depth = static_cast<int>(layout.bit_depth);
  probe.is_float = name.find("f16") != name.npos || name.find("f32") != name.npos;
  return true;
}

std::string ffmpeg_command() {
  const char* const chosen = std::getenv("SIMILIS_FFMPEG");
  return chosen == nullptr || *chosen == '\0' ? "ffmpeg" : chosen;
}

void refuse_without_ffmpeg(const File& file, const char* what) {
  const std::string command = ffmpeg_command();
  const bool is_chosen = command != "ffmpeg";
  refuse(file, "{} needs ffmpeg, but there is no {}; {}", what,
      is_chosen ? command : "ffmpeg on PATH",
      is_chosen ? "SIMILIS_FFMPEG names it" : "install it (on Debian: apt install ffmpeg)");
}

std::optional<Probed> probe_by_programs(const ProbeRequest& request) {
  const std::string ffprobe = ffprobe_command();
  if (ffprobe.empty()) return probe_by_ffmpeg(request);
  std::vector<std::string> arguments = {ffprobe, "-v", "error", "-select_streams", "V:0"};
  arguments.insert(arguments.end(), request.entries.begin(), request.entries.end());
  arguments.insert(arguments.end(), {"-of", "json"});
  arguments.insert(arguments.end(), request.input.begin(), request.input.end());
  auto result = run_program(arguments, request.bytes, {.output_bytes = kMaxProbeBytes});
  if (!result) return probe_by_ffmpeg(request);
  const std::string_view json(
      reinterpret_cast<const char*>(result->output.data()), result->output.size());
  auto probe = parse_probe(json);
  return Probed{std::move(probe), *std::move(result)};
}

// The last line without ffmpeg's own prefixes: "[bmp @ 0x5581] ", "pipe:0: ".
std::string last_message(const ProgramResult& result) {
  std::string_view words = result.errors;
  while (!words.empty() && words.back() == '\n') words.remove_suffix(1);
  words.remove_prefix(words.rfind('\n') + 1);
  if (words.starts_with('[') && words.find("] ") != std::string_view::npos) {
    words.remove_prefix(words.find("] ") + 2);
  }
  for (const std::string& input : {std::string("pipe:0: "), kSeekableInput + std::string(": ")}) {
    if (words.starts_with(input)) words.remove_prefix(input.size());
  }
  return words.empty() ? result.end : std::string(words);
}

std::string said(const std::string& word) {
  return word == "unknown" || word == "unspecified" || word == "reserved" ? "" : word;
}

std::optional<Probe> parse_probe(std::string_view json) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!root.is_object()) return std::nullopt;
  const std::vector<const Json*> streams = objects(root, "streams");
  if (streams.empty()) return std::nullopt;
  const Json& stream = *streams.front();
  Probe probe{.codec = text(stream, "codec_name", "?"),
      .container = text(member(root, "format"), "format_name"),
      .pixel_format = text(stream, "pix_fmt"),
      .width = number(stream, "width"),
      .height = number(stream, "height"),
      .primaries = text(stream, "color_primaries"),
      .transfer = text(stream, "color_transfer"),
      .matrix = said(text(stream, "color_space")),
      .range = said(text(stream, "color_range")),
      .siting = said(text(stream, "chroma_location"))};
  for (const Json* side_data : objects(stream, "side_data_list")) {
    probe.is_turned = probe.is_turned || number(*side_data, "rotation") % 180 != 0;
  }
  probe.frames = decimal(text(stream, "nb_read_packets"));
  probe.expected_frames = decimal(text(stream, "nb_frames"));
  probe.rate = text(stream, "avg_frame_rate");
  if (probe.rate.starts_with("0/")) probe.rate = text(stream, "r_frame_rate");
  const bool has_pixels = find_pixels(root, probe.pixel_format, probe);
  if (!has_pixels || probe.width < 1 || probe.height < 1) return std::nullopt;
  return probe;
}

std::optional<Cicp> code_points(const Probe& probe) {
  using Name = std::pair<std::string_view, std::uint8_t>;
  static constexpr std::array kPrimaries = {Name{"", 2}, Name{"unknown", 2}, Name{"bt709", 1},
      Name{"bt470m", 4}, Name{"bt470bg", 5}, Name{"smpte170m", 6}, Name{"smpte240m", 7},
      Name{"bt2020", 9}, Name{"smpte431", 11}, Name{"smpte432", 12}};
  static constexpr std::array kTransfers = {Name{"", 2}, Name{"unknown", 2}, Name{"bt709", 1},
      Name{"bt470m", 4}, Name{"bt470bg", 5}, Name{"smpte170m", 6}, Name{"linear", 8},
      Name{"iec61966-2-1", 13}, Name{"bt2020-10", 14}, Name{"bt2020-12", 15}, Name{"smpte2084", 16},
      Name{"arib-std-b67", 18}};
  const auto find = [](const auto& names, std::string_view name) {
    return std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.first == name; });
  };
  const auto primaries = find(kPrimaries, probe.primaries);
  const auto transfer = find(kTransfers, probe.transfer);
  if (primaries == kPrimaries.end() || transfer == kTransfers.end()) return std::nullopt;
  return Cicp{.primaries = primaries->second, .transfer = transfer->second};
}

Image read_by_ffmpeg(const File& file) {
  require_end_of_gif(file);
  const Probe probe = probe_file(file);
  const RawPictures pictures = raw_pictures(file, probe);
  require_no_profile(file, probe);
  std::vector<std::string> arguments = raw_arguments(file, pictures.raw);
  arguments.insert(arguments.end() - 1, {"-frames:v", "1"});
  ProgramResult result = run(file, arguments, pictures.bytes);
  if (!result.succeeded || !result.errors.empty() || result.output.size() != pictures.bytes) {
    refuse_damaged(file, last_message(result));
  }
  return pictures.picture(std::move(result.output));
}

void read_frames_by_ffmpeg(const File& file, const Image& first, const TakePicture& take) {
  RawPictures pictures{.header = first,
      .raw = raw_format({.channels = first.channels, .bit_depth = first.source_bit_depth})};
  pictures.bytes = first.bit_depth == 8 ? first.samples8.size() : 2 * first.samples16.size();
  pictures.header.samples8 = {};
  pictures.header.samples16 = {};
  std::vector<std::string> arguments = raw_arguments(file, pictures.raw);
  arguments.insert(arguments.end() - 1, {keep_all_frames_option(), "passthrough"});
  if (first.format == "PNG") read_as_seekable_png(arguments);
  const auto program = start_program(arguments, file.bytes);
  if (!program) refuse_without_ffmpeg(file, kNeed);
  ByteStream stream(program->take_output(), file.name);
  std::vector<std::uint8_t> bytes;
  while (stream.read_frame(bytes, pictures.bytes) == pictures.bytes) {
    const std::string errors = program->errors();
    if (!errors.empty()) refuse_damaged(file, last_message({.errors = errors}));
    if (!take(pictures.picture(std::exchange(bytes, {})))) return;
  }
  const ProgramResult result = program->wait();
  if (!result.succeeded || !result.errors.empty() || !bytes.empty()) {
    refuse_damaged(file, last_message(result));
  }
}

// ffmpeg 5.1 added -fps_mode, which replaces the deprecated -vsync.
const char* keep_all_frames_option() {
  const std::string words = ffmpeg_program();  // "ffmpeg 5.1.9-0+deb12u1"
  int major = 6;                               // builds without a number are newer
  const std::size_t digits = std::min(words.size(), std::string_view("ffmpeg ").size());
  std::from_chars(words.data() + digits, words.data() + words.size(), major);
  return major >= 6 ? "-fps_mode" : "-vsync";
}

std::string ffmpeg_program() {
  const auto result =
      run_program({ffmpeg_command(), "-version"}, {}, {.output_bytes = kMaxProbeBytes});
  if (!result || !result->succeeded) return {};
  // "ffmpeg version 5.1.9-0+deb12u1 Copyright …"
  const std::string words(result->output.begin(), result->output.end());
  const std::size_t number = std::min(words.find("version "), words.size() - 8) + 8;
  return "ffmpeg " + words.substr(number, words.find(' ', number) - number);
}

}  // namespace similis::media
