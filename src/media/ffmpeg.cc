// SPDX-License-Identifier: Apache-2.0
// Everything that no library here reads, through the programs: ffprobe says what a file is, ffmpeg
// writes its first frame raw. Both read standard input and may open nothing else, so a playlist
// cannot reach other files or the network, and the file's name means nothing to them. Anything that
// ffmpeg calls an error is one here, since it ends with status 0 after half a picture.
#include "src/media/ffmpeg.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/media/program.h"
#include "src/media/reader.h"

namespace similis::media {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMaxProbeBytes = std::size_t{1} << 22;  // it prints about 200 kB

ProgramResult run(const File& file, std::vector<std::string> arguments, std::size_t bytes) {
  const std::string program = arguments.front();
  auto result = run_program(arguments, file.bytes, {.output_bytes = bytes});
  if (!result) {
    refuse(file,
        "a file that is no PNG, JPEG, WebP, AVIF, JXL or TIFF needs ffmpeg, and there is no {} on "
        "PATH; install it (on Debian: apt install ffmpeg)",
        program);
  }
  return *std::move(result);
}

// The last line without what names ffmpeg's own parts: "[bmp @ 0x5581] ", "pipe:0: ".
std::string last_words(const ProgramResult& result) {
  std::string_view words = result.errors;
  while (!words.empty() && words.back() == '\n') words.remove_suffix(1);
  words.remove_prefix(words.rfind('\n') + 1);
  if (words.starts_with('[') && words.find("] ") != std::string_view::npos) {
    words.remove_prefix(words.find("] ") + 2);
  }
  if (words.starts_with("pipe:0: ")) words.remove_prefix(8);
  return words.empty() ? result.end : std::string(words);
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

// 0 for what is no integer.
std::int64_t number(const Json& parent, const char* key) {
  const Json& value = member(parent, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
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

// How ffmpeg describes the named format: its channels, depth and whether it holds floats. False if
// it does not know the name, or means no picture.
bool describe_pixels(const Json& root, const std::string& name, Probe& probe) {
  constexpr std::int64_t kMaxComponents = 4, kMaxBitDepth = 64;
  for (const Json* format : objects(root, "pixel_formats")) {
    if (text(*format, "name") != name) continue;
    const std::int64_t components = number(*format, "nb_components");
    const bool has_alpha = number(member(*format, "flags"), "alpha") != 0;
    std::int64_t bit_depth = 0;
    for (const Json* component : objects(*format, "components")) {
      bit_depth = std::max(bit_depth, number(*component, "bit_depth"));
    }
    if (components < 1 || components > kMaxComponents || bit_depth < 1 || bit_depth > kMaxBitDepth)
      return false;
    probe.channels = (components - has_alpha <= 1 ? 1 : 3) + has_alpha;
    probe.bit_depth = static_cast<int>(bit_depth);
    probe.is_float = name.find("f16") != name.npos || name.find("f32") != name.npos;
    return true;
  }
  return false;
}

// A QOI file ends in a marker of its own; ffmpeg 5.1 makes up what is missing before it in silence.
void require_end_of_qoi(const File& file) {
  static constexpr std::string_view kStart("qoif", 4), kEnd("\0\0\0\0\0\0\0\1", 8);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  if (text.starts_with(kStart) && !text.ends_with(kEnd))
    refuse_damaged(file, "QOI without its end");
}

struct RawFormat {
  std::string name;
  int channels, bit_depth;
  bool is_planar;  // green, blue, red, alpha
};

// The format to ask for: the file's own depth where ffmpeg has it, so that grey and RGB come as
// they are, else 16.
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

Probe probe_file(const File& file) {
  const ProgramResult result = run(file,
      {"ffprobe", "-v", "error", "-protocol_whitelist", "pipe", "-max_pixels",
          std::to_string(file.max_pixels), "-select_streams", "V:0", "-count_packets",
          "-show_pixel_formats", "-show_entries",
          "stream=codec_name,width,height,pix_fmt,color_primaries,color_transfer,nb_read_packets:"
          "stream_side_data=rotation",
          "-of", "json", "-i", "pipe:0"},
      kMaxProbeBytes);
  const std::string_view json(
      reinterpret_cast<const char*>(result.output.data()), result.output.size());
  auto probe = parse_probe(json);
  if (!result.succeeded || !probe) {
    refuse(file, "it is no picture that is known here or to ffmpeg ({})",
        result.succeeded ? "no video stream" : last_words(result));
  }
  if (!result.errors.empty()) refuse_damaged(file, last_words(result));
  return *std::move(probe);
}

// ffmpeg does not hand profiles over, and says that there is one only with the frame.
void require_no_profile(const File& file) {
  const ProgramResult result = run(file,
      {"ffprobe", "-v", "error", "-protocol_whitelist", "pipe", "-max_pixels",
          std::to_string(file.max_pixels), "-select_streams", "V:0", "-read_intervals", "%+#1",
          "-show_entries", "frame_side_data=side_data_type", "-of", "compact", "-i", "pipe:0"},
      kMaxProbeBytes);
  const std::string_view words(
      reinterpret_cast<const char*>(result.output.data()), result.output.size());
  if (words.find("ICC profile") != words.npos) {
    refuse(file, "it has an ICC profile, which ffmpeg does not hand over; convert it to PNG");
  }
}

}  // namespace

std::optional<Probe> parse_probe(std::string_view json) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!root.is_object()) return std::nullopt;
  const std::vector<const Json*> streams = objects(root, "streams");
  if (streams.empty()) return std::nullopt;
  const Json& stream = *streams.front();
  Probe probe{.codec = text(stream, "codec_name", "?"),
      .width = number(stream, "width"),
      .height = number(stream, "height"),
      .primaries = text(stream, "color_primaries"),
      .transfer = text(stream, "color_transfer")};
  for (const Json* side_data : objects(stream, "side_data_list")) {
    probe.is_turned = probe.is_turned || number(*side_data, "rotation") % 180 != 0;
  }
  const std::string packets = text(stream, "nb_read_packets");
  std::from_chars(packets.data(), packets.data() + packets.size(), probe.frames);
  const bool has_pixels = describe_pixels(root, text(stream, "pix_fmt"), probe);
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
  require_end_of_qoi(file);
  const Probe probe = probe_file(file);
  require_size(file, probe.width, probe.height);
  require_density(file, probe.width, probe.height);
  if (probe.is_float || probe.bit_depth > 16) {
    refuse(file, "it has {}-bit {} samples; they must be integers of at most 16 bits",
        probe.bit_depth, probe.is_float ? "floating-point" : "integer");
  }
  const auto cicp = code_points(probe);
  if (!cicp) {
    refuse(file, "its colours are {} and {} in ffmpeg's words, which are not known here",
        probe.primaries, probe.transfer);
  }
  require_no_profile(file);
  const RawFormat raw = raw_format(probe);
  Image image{.width = probe.is_turned ? probe.height : probe.width,
      .height = probe.is_turned ? probe.width : probe.height,
      .channels = raw.channels,
      .bit_depth = raw.bit_depth > 8 ? 16 : 8,
      .source_bit_depth = raw.bit_depth > 8 ? raw.bit_depth : probe.bit_depth,
      .format = probe.codec,
      .frames = std::max<std::int64_t>(probe.frames, 1)};
  if (*cicp != Cicp{}) image.color.cicp = cicp;
  const auto bytes =
      static_cast<std::size_t>(image.width * image.height * image.channels * (image.bit_depth / 8));
  ProgramResult result = run(file,
      {"ffmpeg", "-nostdin", "-v", "error", "-xerror", "-err_detect", "explode",
          "-protocol_whitelist", "pipe", "-max_pixels", std::to_string(file.max_pixels), "-i",
          "pipe:0", "-map", "0:V:0", "-frames:v", "1", "-sws_flags",
          "bicubic+accurate_rnd+full_chroma_int+full_chroma_inp+bitexact", "-pix_fmt", raw.name,
          "-f", "rawvideo", "pipe:1"},
      bytes);
  if (!result.succeeded || !result.errors.empty() || result.output.size() != bytes) {
    refuse_damaged(file, last_words(result));
  }
  if (image.bit_depth == 8) {
    image.samples8 = std::move(result.output);
  } else {
    image.samples16 = wide_samples(result.output, raw);
    rescale_to_16(image.samples16, raw.bit_depth);
  }
  return image;
}

std::string ffmpeg_program() {
  const auto result = run_program({"ffmpeg", "-version"}, {}, {.output_bytes = kMaxProbeBytes});
  if (!result || !result->succeeded) return {};
  // "ffmpeg version 5.1.9-0+deb12u1 Copyright …"
  const std::string words(result->output.begin(), result->output.end());
  const std::size_t number = std::min(words.find("version "), words.size() - 8) + 8;
  return "ffmpeg " + words.substr(number, words.find(' ', number) - number);
}

}  // namespace similis::media
