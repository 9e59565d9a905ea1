// SPDX-License-Identifier: Apache-2.0
#include "src/cli/vmaf/vmaf_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "similis/version.h"
#include "src/cli/compare/clip_scoring.h"
#include "src/cli/device.h"
#include "src/cli/inputs/media_pair.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/terminal/progress.h"
#include "src/cli/usage_error.h"
#include "src/cli/vmaf/test_conditions.h"
#include "src/cli/vmaf/vmaf_feature.h"
#include "src/cli/vmaf/vmaf_output.h"
#include "src/core/joined.h"
#include "src/core/number_text.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/vmaf/clip.h"
#include "src/vmaf/gpu_meter.h"

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

using vmaf_internal::Clip;
using vmaf_internal::ClipFrame;
using vmaf_internal::FeatureRequest;
using vmaf_internal::Model;

// The features that are computed: those asked for by themselves, and those that models read or that
// look at several frames, in the order in which their columns stand.
struct Work {
  std::vector<VmafFeature> alone;
  std::vector<FeatureRequest> requests;
  std::vector<Model> models;
  std::vector<AnyVmafFeature> order;
};

std::unique_ptr<VideoPair> open_videos(const VmafOptions& options, const Work& work,
    const std::optional<media::RawVideo>& raw, const Walk& walk, int threads,
    const Execution& exec) {
  const bool reads_chroma = std::any_of(work.alone.begin(), work.alone.end(),
      [](const VmafFeature& feature) { return feature.reads_chroma; });
  MediaPair media = open_media_pair({options.reference, options.distorted},
      {.raw = raw, .selection = walk.selection, .kept_planes = reads_chroma ? 3 : 1}, threads,
      exec);
  auto* videos = std::get_if<std::unique_ptr<VideoPair>>(&media);
  require(videos != nullptr, "{} is not a video; similis vmaf takes videos", options.reference);
  return std::move(*videos);
}

std::vector<Model> models_of(const VmafOptions& options) {
  std::vector<std::string> texts = options.models;
  if (texts.empty() && !options.has_no_prediction) texts = {"version=vmaf_v0.6.1"};
  std::vector<vmaf_internal::ModelRequest> requests;
  for (const std::string& text : texts) {
    try {
      requests.push_back(vmaf_internal::parse_model_request(text));
    } catch (const InvalidArgument& error) {
      throw UsageError(fmt::format("--model {}: {}", text, error.what()));
    }
    for (const auto& other : std::span(requests).first(requests.size() - 1)) {
      if (other.name != requests.back().name) continue;
      throw UsageError(
          fmt::format("--model {}: another model is named {} too; give one a name with name=", text,
              other.name));
    }
  }
  std::vector<Model> models;
  for (const auto& request : requests) models.push_back(load_model(request));
  return models;
}

Work work_of(const VmafOptions& options) {
  const std::vector<AnyVmafFeature> features = requested_features(options.features);
  Work work{.models = models_of(options)};
  work.requests = requests_of(work.models, {});
  for (const FeatureRequest& request : work.requests) work.order.emplace_back(request);
  for (const AnyVmafFeature& feature : features) {
    if (const auto* request = std::get_if<FeatureRequest>(&feature)) {
      const std::size_t count = work.requests.size();
      add_request(work.requests, *request);
      if (work.requests.size() == count) continue;  // it has the columns of another
    } else {
      work.alone.push_back(std::get<VmafFeature>(feature));
    }
    work.order.push_back(feature);
  }
  return work;
}

std::vector<std::string> columns_of(const Work& work, const media::VideoFormat& format) {
  std::vector<std::string> columns;
  const auto add = [&](const std::vector<std::string>& names) {
    columns.insert(columns.end(), names.begin(), names.end());
  };
  auto next_request = work.requests.begin();
  for (const AnyVmafFeature& feature : work.order) {
    const auto* alone = std::get_if<VmafFeature>(&feature);
    add(alone != nullptr ? alone->columns(format) : (*next_request++).columns());
  }
  for (const FeatureRequest& request : work.requests) add(request.late_columns());
  for (const Model& model : work.models) columns.push_back(model.name);
  for (const Model& model : work.models) add(model.member_columns());
  return columns;
}

// The numbers of a frame in the order of columns_of(). alone: those of each feature by itself.
std::vector<double> values_of(
    const Work& work, const ClipFrame& frame, const std::vector<std::vector<double>>& alone) {
  std::vector<double> values;
  const auto add = [&](const std::vector<double>& numbers) {
    values.insert(values.end(), numbers.begin(), numbers.end());
  };
  auto next_alone = alone.begin();
  auto next_request = frame.features.begin();
  for (const AnyVmafFeature& feature : work.order) {
    add(std::holds_alternative<FeatureRequest>(feature) ? *next_request++ : *next_alone++);
  }
  for (const std::vector<double>& late : frame.late) add(late);
  add(frame.scores);
  for (const std::vector<double>& members : frame.members) add(members);
  return values;
}

// Frames go in one by one; their numbers come out when they are known.
class Scorer {
 public:
  Scorer(const Work& work, const VideoPair& videos, Device device)
      : work_(work),
        clip_(work.requests, work.models, videos.format().width, videos.format().height) {
    if (device.kind != DeviceKind::cpu && !work.requests.empty()) {
      gpu_meter_ = vmaf_internal::make_gpu_meter(clip_.plan(), device);
    }
  }

  void push(const VideoPair& videos, std::int64_t number, bool is_shown, const Execution& exec) {
    if (!work_.requests.empty()) push_luma(luma_of(videos), is_shown, exec);
    if (!is_shown) {
      for (const VmafFeature& feature : work_.alone) {
        if (feature.observe) feature.observe(videos, exec);
      }
      return;
    }
    std::vector<std::vector<double>>& alone = alone_.emplace_back();
    for (const VmafFeature& feature : work_.alone) alone.push_back(feature.scores(videos, exec));
    numbers_.push_back(number);
  }
  void finish() { clip_.finish(); }

  void pop_into(std::vector<VmafFrame>& frames) {
    while (!numbers_.empty()) {
      ClipFrame numbers;
      if (!work_.requests.empty()) {
        auto ready = clip_.pop();
        if (!ready) return;
        numbers = std::move(*ready);
      }
      frames.push_back({numbers_.front(), values_of(work_, numbers, alone_.front())});
      numbers_.pop_front();
      alone_.pop_front();
    }
  }

 private:
  void push_luma(const vmaf_internal::PlanePair& planes, bool is_shown, const Execution& exec) {
    if (!gpu_meter_) return clip_.push(planes, is_shown, exec);
    const std::span distorted(&planes.distorted, is_shown ? 1u : 0u);
    const auto sums = gpu_meter_->measure(planes.reference, distorted, exec);
    clip_.push(sums, is_shown ? sums.pairs.data() : nullptr);
  }

  const Work& work_;
  Clip clip_;
  std::unique_ptr<vmaf_internal::GpuMeter> gpu_meter_;  // null on the CPU
  std::deque<std::int64_t> numbers_;                    // shown frames that wait
  std::deque<std::vector<std::vector<double>>> alone_;  // and what is known of them
};

// Throws if there is no frame, as vmaf fails then.
VmafResults score(const Work& work, VideoPair& videos, const VmafOptions& options, const Walk& walk,
    Device device, const Execution& exec) {
  VmafResults results{.version = "similis " SIMILIS_VERSION,
      .width = videos.format().width,
      .height = videos.format().height};
  const auto start = std::chrono::steady_clock::now();
  Progress progress("frames", options.is_quiet ? 0 : videos.expected_pairs());
  Scorer scorer(work, videos, device);
  std::int64_t frames = 0;
  for (; videos.next(); ++frames, progress.step()) {
    const bool is_shown = frames % walk.subsample == 0 && !work.order.empty();
    scorer.push(videos, frames, is_shown, exec);
    scorer.pop_into(results.frames);
  }
  scorer.finish();
  scorer.pop_into(results.frames);
  videos.read_rest();
  progress.clear();
  note_shorter_video(options, videos, walk);
  require(frames > 0, "no frame to compare in {} and {}", options.reference, options.distorted);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  results.frames_per_second = static_cast<double>(frames) / seconds.count();
  for (const VmafFeature& feature : work.alone) {
    if (!feature.aggregates) continue;
    for (auto& number : feature.aggregates()) results.aggregates.push_back(std::move(number));
  }
  if (results.frames.empty()) return results;  // vmaf names a column with its first number
  results.columns = columns_of(work, videos.format());
  return results;
}

// On a terminal a line for each model, as vmaf shows it to a person; elsewhere the first model's,
// in the words of ffmpeg's filter, which programs look for.
void print_scores(const Work& work, const VmafResults& results, const VmafOptions& options) {
  if (options.is_quiet) return;
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  for (const Model& model : work.models) {
    const auto column = std::find(results.columns.begin(), results.columns.end(), model.name);
    double sum = 0;
    for (const VmafFrame& frame : results.frames) {
      sum += frame.values[static_cast<std::size_t>(column - results.columns.begin())];
    }
    const double mean = sum / static_cast<double>(results.frames.size());
    const std::string name = is_terminal ? one_line(model.source) : "VMAF score";
    std::fputs(fmt::format("{}: {:.6f}\n", name, mean).c_str(), stderr);
    if (!is_terminal) return;
  }
}

void check(const VmafOptions& options) {
  if (!options.precision.empty() && options.precision != "max") {
    throw UsageError(fmt::format("--precision is \"{}\"; it must be max", options.precision));
  }
  if (options.reference == "-" && options.distorted == "-") {
    throw UsageError("only one of --reference and --distorted can be standard input");
  }
}

// The device, and a note of what it does not compute.
Device device_for(const Work& work, const VmafOptions& options) {
  const Device device = parse_device(options.device);
  if (device.kind == DeviceKind::cpu) return device;
  std::vector<std::string> others;
  for (const VmafFeature& feature : work.alone) others.push_back(feature.name);
  for (const FeatureRequest& request : work.requests) {
    if (request.kind() == vmaf_internal::FeatureKind::cambi) others.emplace_back(request.name());
  }
  if (!others.empty()) {
    print_note(
        fmt::format("--device {}: adm, motion and vif are computed there, and on the CPU: {}",
            options.device, joined(others, ", ")));
  }
  return device;
}

}  // namespace

int vmaf(const VmafOptions& given) {
  const VmafOptions options = with_test_conditions(given);
  check(options);
  const Work work = work_of(options);
  const Device device = device_for(work, options);
  const std::optional<media::RawVideo> raw = parse_raw(options);
  const Walk walk = parse_walk(options);
  const Writer writer = find_writer(options);
  const auto threads =
      static_cast<int>(std::min<std::int64_t>(parse_count("--threads", options.threads), 1024));
  std::optional<ThreadPool> pool;
  Execution exec;
  if (threads > 0) exec.runner = pool.emplace(threads).runner();

  const auto videos =
      open_videos(options, work, raw, walk, threads > 0 ? threads : default_threads(), exec);
  VmafResults results = score(work, *videos, options, walk, device, exec);
  results.is_shortest = !options.precision.empty();
  print_scores(work, results, options);
  if (!options.output.empty()) {
    write_output(writer(results), options.output);
  } else {
    print_note("the results are not written; give a file with -o");
  }
  return 0;
}

}  // namespace similis::cli
