// SPDX-License-Identifier: Apache-2.0
// Reads what a file is from the log of ffmpeg itself, for machines without ffprobe. One run copies
// the packets to the muxer framecrc, which prints codec, size and a line for each; then another
// decodes the first frame into the filter showinfo, which logs its format. Lines of the log begin
// with their source and level, so a title that looks like a log line is not mistaken for one.
#include <algorithm>
#include <charconv>
#include <utility>

#include "src/media/io/ffmpeg.h"

namespace similis::media {
namespace {

constexpr std::size_t kMaxReportBytes = std::size_t{1} << 26;  // 60 bytes per packet

// Calls take(line) for each line, until it returns false.
template <class Take> void for_each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!take(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The first word after a mark; empty if there is none.
std::string word_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return {};
  text.remove_prefix(at + mark.size());
  return std::string(text.substr(0, text.find_first_of(" \n\r")));
}

bool read_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

// "64x48"
bool read_size(std::string_view text, Probe& probe) {
  if (!read_number(text, probe.width) || !text.starts_with('x')) return false;
  text.remove_prefix(1);
  return read_number(text, probe.height) && text.empty();
}

// From the line of a format in what `ffmpeg -pix_fmts` prints:
//   IO... yuva420p10le           4             25      10-10-10-10
// Those with an even number of components have alpha; before ffmpeg 5 there are no depths.
bool read_pixels(std::string_view table, Probe& probe) {
  PixelLayout layout;
  bool is_known = false;
  for_each_line(table, [&](std::string_view line) {
    if (word_after(line, " ") != probe.pixel_format) return true;
    layout.has_palette = line.size() > 3 && line[3] == 'P';
    line.remove_prefix(line.find(probe.pixel_format) + probe.pixel_format.size());
    const auto next = [&](std::int64_t& number) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      return read_number(line, number);
    };
    std::int64_t bits_a_pixel = 0, depth = 0;
    is_known = next(layout.components) && next(bits_a_pixel) && next(depth);
    layout.has_alpha = layout.components % 2 == 0;
    while (is_known) {
      layout.bit_depth = std::max(layout.bit_depth, depth);
      if (!line.starts_with('-')) break;
      line.remove_prefix(1);
      is_known = read_number(line, depth);
    }
    return false;
  });
  return is_known && describe_pixels(layout, probe);
}

constexpr std::string_view kFilter = "[Parsed_showinfo_";

// The log's errors, each on a line, without their level.
std::string errors_in(std::string_view log) {
  std::string errors;
  for_each_line(log, [&](std::string_view line) {
    for (const std::string_view level : {"[error] ", "[fatal] ", "[panic] "}) {
      // Before it stands at most one other pair of brackets, such as "[bmp @ 0x5581] ".
      const std::size_t at = line.find(level);
      const bool is_level =
          at == 0 || (at != line.npos && line.starts_with('[') && line.find("] ") + 2 == at);
      if (!is_level) continue;
      errors.append(line.substr(0, at)).append(line.substr(at + level.size())).append("\n");
    }
    return true;
  });
  return errors;
}

std::string_view as_text(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<Probe> parse_report(
    std::string_view log, std::string_view packets, std::string_view pixel_formats) {
  Probe probe{.codec = word_after(packets, "#codec_id 0: "), .has_profile = false};
  for_each_line(log, [&](std::string_view line) {
    const std::string_view input = "[info] Input #0, ";
    if (line.starts_with(input) && probe.container.empty()) {
      line.remove_prefix(input.size());
      probe.container = line.substr(0, line.find(", from "));
    }
    if (!line.starts_with(kFilter)) return true;
    // By its number before ffmpeg 6.
    probe.has_profile = *probe.has_profile || line.find("- ICC profile") != line.npos ||
                        line.find("side data type 15 ") != line.npos;
    if (probe.rate.empty()) probe.rate = word_after(line, " frame_rate: ");
    const bool is_frame = line.find(" fmt:") != line.npos;
    if (is_frame && !probe.pixel_format.empty()) return false;  // the second
    if (is_frame) {
      probe.pixel_format = word_after(line, " fmt:");
      if (!read_size(word_after(line, " s:"), probe)) probe.width = 0;
      probe.siting = said(word_after(line, " cl:"));
    }
    if (line.find("color_primaries:") == line.npos) return true;
    probe.primaries = word_after(line, "color_primaries:");
    probe.transfer = word_after(line, "color_trc:");
    probe.matrix = said(word_after(line, "color_space:"));
    probe.range = said(word_after(line, "color_range:"));
    return true;
  });
  for_each_line(packets, [&](std::string_view line) {
    probe.frames += !line.empty() && line.front() != '#';
    return true;
  });
  const bool is_picture = !probe.pixel_format.empty() && probe.width >= 1 && probe.height >= 1;
  if (!is_picture || !read_pixels(pixel_formats, probe)) return std::nullopt;
  return probe;
}

std::optional<Probed> probe_by_ffmpeg(const ProbeRequest& request) {
  const std::string program = ffmpeg_command();
  const auto run = [&](const std::vector<std::string>& output) {
    std::vector<std::string> arguments = {
        program, "-nostdin", "-hide_banner", "-nostats", "-v", "level+info"};
    arguments.insert(arguments.end(), request.input.begin(), request.input.end());
    arguments.insert(arguments.end(), {"-map", "0:V:0"});
    arguments.insert(arguments.end(), output.begin(), output.end());
    return run_program(arguments, request.bytes, {.output_bytes = kMaxReportBytes});
  };
  std::vector<std::string> copy = {"-c", "copy", "-f", "framecrc", "pipe:1"};
  if (!request.counts_frames) copy.insert(copy.begin(), {"-frames:v", "1"});
  const auto packets = run(copy);
  if (!packets) return std::nullopt;
  Probe header;
  if (packets->succeeded && request.require_size &&
      read_size(word_after(as_text(packets->output), "#dimensions 0: "), header)) {
    request.require_size(header.width, header.height);
  }
  const auto frame = run({"-frames:v", "1", "-vf", "showinfo", "-f", "null", "-"});
  const auto formats = run_program(
      {program, "-hide_banner", "-v", "error", "-pix_fmts"}, {}, {.output_bytes = kMaxProbeBytes});
  if (!frame || !formats) return std::nullopt;
  Probed probed{.result = packets->succeeded ? *frame : *packets};
  const bool is_whole = std::max(packets->errors.size(), frame->errors.size()) < kMaxErrorBytes;
  probed.result.errors = is_whole ? errors_in(packets->errors) + errors_in(frame->errors)
                                  : "ffmpeg says more of it than is read";
  if (is_whole) {
    probed.probe = parse_report(frame->errors, as_text(packets->output), as_text(formats->output));
  }
  return probed;
}

}  // namespace similis::media
