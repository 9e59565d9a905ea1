// SPDX-License-Identifier: Apache-2.0
#include "src/cli/bench/bench_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "similis/info.hpp"
#include "similis/version.h"
#include "src/cli/device.h"
#include "src/cli/inputs/picture_pair.h"
#include "src/cli/metrics/metric_request.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/results/statistics.h"
#include "src/cli/terminal/aligned_rows.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/terminal/progress.h"
#include "src/cli/threads.h"
#include "src/cli/usage_error.h"
#include "src/core/joined.h"
#include "src/core/number_text.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/gpu/device.h"
#include "src/media/picture/decode.h"

namespace similis::cli {
namespace {

constexpr double kMaxSeconds = 60;

using Size = std::vector<std::int64_t>;  // width, height and, of volumes, depth

struct Timing {
  Measure measure;
  std::vector<double> calls_ms = {};
};

struct BenchReport {
  Size size;
  Device device;
  int threads = 1;
  double data_range = 255;
  std::vector<Timing> timings;
};

bool is_volume(const Size& size) { return size.size() == 3; }

std::int64_t pixels(const Size& size) {
  std::int64_t count = 1;
  for (const std::int64_t side : size) count *= side;
  return count;
}

// Has the limits of the readers of pictures.
Size requested_size(const std::string& text) {
  const Size size = parse_size(text);
  if (size.size() != 2 && size.size() != 3) {
    throw UsageError(fmt::format(
        "--size is \"{}\"; it must be WxH, such as 1920x1080, or WxHxD of volumes", text));
  }
  std::int64_t room = media::kMaxPixels;
  for (const std::int64_t side : size) {
    if (side > media::kMaxSide || side > room) {
      throw UsageError(fmt::format("--size is {}; it must be at most {} per side and {} in all",
          text, media::kMaxSide, media::kMaxPixels));
    }
    room /= side;
  }
  return size;
}

double requested_seconds(const std::string& text) {
  const std::optional<double> seconds = parse_number<double>(text);
  if (!seconds || *seconds < 0 || *seconds > kMaxSeconds) {
    throw UsageError(
        fmt::format("--seconds is \"{}\"; it must be a number from 0 to {}", text, kMaxSeconds));
  }
  return *seconds;
}

using Writer = std::string (*)(const BenchReport&);
std::string to_table(const BenchReport& report);
std::string to_json(const BenchReport& report);

Writer find_writer(const std::string& format) {
  if (format == "table") return to_table;
  if (format == "json") return to_json;
  throw UsageError(fmt::format("--format is \"{}\"; it must be table or json", format));
}

// Uniform noise of 8-bit code values, and the same with other noise added.
template <class T> void fill_with_noise(T* reference, T* distorted, std::int64_t count) {
  std::mt19937 generator;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t code = generator() >> 24, other = generator() >> 24;
    reference[i] = static_cast<T>(code);
    distorted[i] = static_cast<T>((3 * code + other) / 4);
  }
}

FramePair noise_volumes(const Size& size, const Execution& exec) {
  const Extents shape = {1, 1, size[2], size[1], size[0]};
  FramePair frames{.reference = allocate(shape, DType::f32, {}, exec),
      .distorted = allocate(shape, DType::f32, {}, exec)};
  fill_with_noise(
      frames.reference.elements<float>(), frames.distorted.elements<float>(), pixels(size));
  return frames;
}

// Frames of noise for measures of whole frames of video.
struct NoiseVideo {
  explicit NoiseVideo(const Size& size)
      : format{.width = size[0], .height = size[1], .pixels = *media::pixel_format("yuv420p")} {
    for (media::VideoFrame& frame : frames) frame.bytes.resize(format.frame_bytes());
    fill_with_noise(frames[0].bytes.data(), frames[1].bytes.data(),
        static_cast<std::int64_t>(format.frame_bytes()));
    for (std::size_t i = 0; i < frames.size(); ++i) sides[i] = {&frames[i], &format, "noise"};
  }
  media::VideoFormat format;
  std::array<media::VideoFrame, 2> frames;
  std::array<VideoFrameAsRead, 2> sides{};
};

FramePair noise_pictures(const Size& size, const Execution& exec) {
  media::Image reference{.width = size[0], .height = size[1]}, distorted = reference;
  const auto samples = static_cast<std::size_t>(pixels(size) * reference.channels);
  reference.samples8.resize(samples);
  distorted.samples8.resize(samples);
  fill_with_noise(reference.samples8.data(), distorted.samples8.data(), pixels(size) * 3);
  FramePair frames =
      pair_pictures(std::move(reference), std::move(distorted), "reference", "distorted", {}, exec)
          .frames;
  const auto luma = [&](std::size_t side) {  // a plane of the same noise bytes
    return TensorView(
        (*frames.as_read.pictures)[side].image.samples8.data(), {size[1], size[0]}, DType::u8);
  };
  frames.luma = {luma(0), luma(1)};
  const auto video = std::make_shared<const NoiseVideo>(size);
  frames.as_read.video = {video, &video->sides};
  return frames;
}

// The measures that can run. Each is called once, which claims memory, loads kernels and starts
// threads.
std::vector<Timing> warmed_up(const std::vector<Measure>& measures, bool by_default,
    const FramePair& frames, const Execution& exec) {
  std::vector<Timing> timings;
  for (const Measure& measure : measures) {
    try {
      require_runs_on(measure, frames.device);
      all_values(measure, frames, exec);
      timings.push_back({measure});
    } catch (const InvalidArgument& error) {
      if (!by_default) throw;
      print_note(fmt::format("{} skipped: {}", measure.name, error.what()));
    }
  }
  return timings;
}

std::vector<double> time_calls(
    const Measure& measure, const FramePair& frames, double seconds, const Execution& exec) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> calls_ms;
  const Clock::time_point start = Clock::now();
  Clock::time_point begin = start, end = start;
  while (calls_ms.empty() || std::chrono::duration<double>(end - start).count() < seconds) {
    all_values(measure, frames, exec);  // returns numbers, so a GPU has finished
    end = Clock::now();
    calls_ms.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
    begin = end;
  }
  return calls_ms;
}

const char* input_of(const Timing& timing, const Size& size) {
  if (is_volume(size)) return "volume";
  if (timing.measure.takes_luma) return "luma";
  const bool takes_video = timing.measure.video_planes == VideoPlanes::frame;
  return takes_video && !timing.measure.takes_as_read ? "YUV" : "RGB";
}

// Pairs per second, and millions of their pixels per second.
std::pair<double, double> rates(const Timing& timing, const Size& size) {
  const double pairs = 1000 / statistics(timing.calls_ms).median;
  return {pairs, pairs * static_cast<double>(pixels(size)) * 1e-6};
}

std::string to_table(const BenchReport& report) {
  const Info info = similis::info();
  std::string text = fmt::format("pairs of {} on {}, {} thread{}, {} ({})\n",
      joined(report.size, "×"), report.device, report.threads, report.threads == 1 ? "" : "s",
      info.simd_target, info.simd_target_reason);
  if (report.device.kind != DeviceKind::cpu) text += gpu::describe(report.device.kind) + "\n";
  std::vector<Row> rows = {
      {"metric", "input", "ms/pair", "pairs/s", is_volume(report.size) ? "Mvoxel/s" : "Mpixel/s"}};
  for (const Timing& timing : report.timings) {
    const auto [pairs, megapixels] = rates(timing, report.size);
    rows.push_back({timing.measure.name, input_of(timing, report.size),
        fmt::format("{:.3f}", statistics(timing.calls_ms).median), fmt::format("{:.1f}", pairs),
        fmt::format("{:.1f}", megapixels)});
  }
  return text + "\n" + aligned(rows);
}

Json settings_json(const BenchReport& report) {
  const Info info = similis::info();
  Json json = {
      {"size", report.size}, {"threads", report.threads}, {"simd_target", info.simd_target}};
  if (report.device.kind != DeviceKind::cpu) json["gpu"] = gpu::describe(report.device.kind);
  json["metrics"] = Json::object();
  for (const Timing& timing : report.timings) {
    Json& entry = json["metrics"][timing.measure.name] = Json::object();
    for (const auto& [name, value] : timing.measure.settings(report.data_range)) {
      entry[name] = Json::parse(value);
    }
  }
  return json;
}

std::string to_json(const BenchReport& report) {
  Json json = {{"similis", SIMILIS_VERSION}, {"device", device_name(report.device)},
      {"settings", settings_json(report)}, {"metrics", Json::object()}};
  for (const Timing& timing : report.timings) {
    const Statistics times = statistics(timing.calls_ms);
    const auto [pairs, megapixels] = rates(timing, report.size);
    json["metrics"][timing.measure.name] = {{"input", input_of(timing, report.size)},
        {"calls", timing.calls_ms.size()}, {"median_ms", times.median}, {"min_ms", times.min},
        {"max_ms", times.max}, {"pairs_per_second", pairs},
        {is_volume(report.size) ? "megavoxels_per_second" : "megapixels_per_second", megapixels}};
  }
  return json_text(json);
}

}  // namespace

int bench(const BenchOptions& options) {
  const Writer writer = find_writer(options.format);
  BenchReport report{.size = requested_size(options.size), .device = parse_device(options.device)};
  const double seconds = requested_seconds(options.seconds);
  const bool by_default = options.metrics.empty();
  const std::vector<Measure> measures =
      requested_measures(by_default ? metric_names() : split_metrics(options.metrics));
  const int threads = parse_threads(options.threads);
  if (!is_standard_output(options.output)) require_writable("-o", options.output, {});

  std::optional<ThreadPool> pool;
  Execution exec{.queue = queue_of(report.device)};
  if (threads > 0) exec.runner = pool.emplace(threads).runner();
  report.threads = threads > 0 ? threads : default_threads();

  const FramePair noise =
      is_volume(report.size) ? noise_volumes(report.size, exec) : noise_pictures(report.size, exec);
  const FramePair frames = frames_on_device(noise, report.device, exec);
  report.data_range = frames.data_range;
  report.timings = warmed_up(measures, by_default, frames, exec);
  require(!report.timings.empty(), "no metric can run on pairs of {}", options.size);
  {
    Progress progress("metrics", static_cast<std::int64_t>(report.timings.size()));
    for (Timing& timing : report.timings) {
      timing.calls_ms = time_calls(timing.measure, frames, seconds, exec);
      progress.step();
    }
  }
  write_output(writer(report), options.output);
  return 0;
}

}  // namespace similis::cli
