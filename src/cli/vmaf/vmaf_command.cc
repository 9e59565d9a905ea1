// SPDX-License-Identifier: Apache-2.0
#include "src/cli/vmaf/vmaf_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

#include "similis/version.h"
#include "src/cli/inputs/media_pair.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/terminal/progress.h"
#include "src/cli/usage_error.h"
#include "src/cli/vmaf/vmaf_feature.h"
#include "src/cli/vmaf/vmaf_output.h"
#include "src/core/number_text.h"
#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;

std::int64_t parse_count(const char* option, const std::string& text) {
  if (text.empty()) return 0;
  const auto count = parse_number<std::int64_t>(text);
  if (!count || *count < 0 || *count > kMaxCount) {
    throw UsageError(fmt::format("{} is \"{}\"; it must be a number", option, text));
  }
  return *count;
}

// -w, -h, -p and -b: all of them, or none for y4m.
std::optional<media::RawVideo> parse_raw(const VmafOptions& options) {
  const std::string &chroma = options.pixel_format, &depth = options.bit_depth;
  const bool has_some = !(options.width + options.height + chroma + depth).empty();
  if (!has_some) return std::nullopt;
  if (options.width.empty() || options.height.empty() || chroma.empty() || depth.empty()) {
    throw UsageError("raw video needs all of --width, --height, --pixel_format and --bitdepth");
  }
  if (chroma != "420" && chroma != "422" && chroma != "444" && chroma != "400") {
    throw UsageError(
        fmt::format("--pixel_format is \"{}\"; it must be 420, 422, 444 or 400", chroma));
  }
  if (depth != "8" && depth != "10" && depth != "12" && depth != "16") {
    throw UsageError(fmt::format("--bitdepth is \"{}\"; it must be 8, 10, 12 or 16", depth));
  }
  const std::string family = chroma == "400" ? "gray" : "yuv" + chroma + "p";
  const media::RawVideo raw{.width = parse_count("--width", options.width),
      .height = parse_count("--height", options.height),
      .pixels = *media::pixel_format(depth == "8" ? family : family + depth)};
  if (raw.width < 1 || raw.height < 1) throw UsageError("--width and --height must be above 0");
  return raw;
}

using Writer = std::string (*)(const VmafResults&);

Writer find_writer(const VmafOptions& options) {
  if (options.is_xml + options.is_json + options.is_csv + options.is_sub > 1) {
    throw UsageError("only one of --xml, --json, --csv and --sub can be given");
  }
  if (options.is_json) return to_vmaf_json;
  if (options.is_csv) return to_vmaf_csv;
  if (options.is_sub) return to_vmaf_subtitles;
  return to_vmaf_xml;
}

// Frames are counted from the first that is not skipped, on both sides.
struct Walk {
  FrameSelection selection;
  std::int64_t subsample = 1;
};

Walk parse_walk(const VmafOptions& options) {
  const std::int64_t first = parse_count("--frame_skip_ref", options.skip_reference);
  const std::int64_t count = parse_count("--frame_cnt", options.frame_count);
  Walk walk{.selection = {.first = first,
                .offset = parse_count("--frame_skip_dist", options.skip_distorted) - first},
      .subsample = std::max<std::int64_t>(1, parse_count("--subsample", options.subsample))};
  if (count > 0) walk.selection.end = first + count;
  return walk;
}

std::unique_ptr<VideoPair> open_videos(const VmafOptions& options,
    const std::optional<media::RawVideo>& raw, const Walk& walk, int threads,
    const Execution& exec) {
  MediaPair media = open_media_pair({options.reference, options.distorted},
      {.raw = raw, .selection = walk.selection}, threads, exec);
  auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media);
  require(videos != nullptr, "{} is not a video; similis vmaf takes videos", options.reference);
  return std::move(*videos);
}

// Prints vmaf's line for a side that is shorter.
void note_shorter_video(const VmafOptions& options, const VideoPair& videos, const Walk& walk) {
  const FrameCounts counts = videos.counts();
  if (!counts.reference) return;
  const std::int64_t skipped = walk.selection.first;
  const std::int64_t reference = std::max<std::int64_t>(0, *counts.reference - skipped);
  const std::int64_t distorted =
      std::max<std::int64_t>(0, *counts.distorted - skipped - walk.selection.offset);
  if (reference == distorted) return;
  const bool is_reference = reference < distorted;
  const std::string& shorter = is_reference ? options.reference : options.distorted;
  const std::string& longer = is_reference ? options.distorted : options.reference;
  std::fputs(
      fmt::format("\n\"{}\" ended before \"{}\".\n", one_line(shorter), one_line(longer)).c_str(),
      stderr);
}

// Throws if there is no frame, as vmaf fails then.
VmafResults score(const std::vector<VmafFeature>& features, VideoPair& videos,
    const VmafOptions& options, const Walk& walk, const Execution& exec) {
  VmafResults results{.version = "similis " SIMILIS_VERSION,
      .width = videos.format().width,
      .height = videos.format().height};
  const auto start = std::chrono::steady_clock::now();
  Progress progress("frames", options.is_quiet ? 0 : videos.expected_pairs());
  std::int64_t frames = 0;
  for (; videos.next(); ++frames, progress.step()) {
    if (frames % walk.subsample != 0 || features.empty()) continue;
    VmafFrame frame{.number = frames};
    for (const VmafFeature& feature : features) {
      const std::vector<double> values = feature.scores(videos, exec);
      frame.values.insert(frame.values.end(), values.begin(), values.end());
    }
    results.frames.push_back(std::move(frame));
  }
  videos.read_rest();
  progress.clear();
  note_shorter_video(options, videos, walk);
  require(frames > 0, "no frame to compare in {} and {}", options.reference, options.distorted);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  results.frames_per_second = static_cast<double>(frames) / seconds.count();
  if (results.frames.empty()) return results;  // vmaf names a column with its first number
  for (const VmafFeature& feature : features) {
    const std::vector<std::string> columns = feature.columns(videos.format());
    results.columns.insert(results.columns.end(), columns.begin(), columns.end());
  }
  return results;
}

void check(const VmafOptions& options) {
  if (!options.model.empty()) {
    throw UsageError(
        fmt::format("--model {}: VMAF models are not supported; pass -n, and name what to compute "
                    "with --feature",
            options.model));
  }
  if (!options.has_no_prediction) {
    throw UsageError(
        "VMAF models are not supported; pass -n, and name what to compute with --feature");
  }
  if (!options.precision.empty() && options.precision != "max") {
    throw UsageError(fmt::format("--precision is \"{}\"; it must be max", options.precision));
  }
  if (options.reference == "-" && options.distorted == "-") {
    throw UsageError("only one of --reference and --distorted can be standard input");
  }
}

}  // namespace

int vmaf(const VmafOptions& options) {
  check(options);
  const std::vector<VmafFeature> features = requested_features(options.features);
  const std::optional<media::RawVideo> raw = parse_raw(options);
  const Walk walk = parse_walk(options);
  const Writer writer = find_writer(options);
  const auto threads =
      static_cast<int>(std::min<std::int64_t>(parse_count("--threads", options.threads), 1024));
  std::optional<ThreadPool> pool;
  Execution exec;
  if (threads > 0) exec.runner = pool.emplace(threads).runner();

  const auto videos =
      open_videos(options, raw, walk, threads > 0 ? threads : default_threads(), exec);
  VmafResults results = score(features, *videos, options, walk, exec);
  results.is_shortest = !options.precision.empty();
  if (!options.output.empty()) {
    write_output(writer(results), options.output);
  } else {
    print_note("the results are not written; give a file with -o");
  }
  return 0;
}

}  // namespace similis::cli
