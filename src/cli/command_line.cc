// SPDX-License-Identifier: Apache-2.0
#include "src/cli/command_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>

#include "similis/version.h"
#include "src/cli/help_texts.h"
#include "src/cli/inputs/background.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/registration/register_arguments.h"
#include "src/cli/vmaf/vmaf_feature.h"
#include "src/core/joined.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kOptionColumns = 30;  // CLI11's, left of the descriptions

std::string metric_lines() {
  std::size_t width = 0;
  for (const Metric& metric : metrics()) width = std::max(width, metric.name.size());
  std::string text = "Metrics (--list-metrics shows their options):\n";
  for (const Metric& metric : metrics()) {
    text += fmt::format("  {:{}}  {}\n", metric.name, width, metric.description);
  }
  return text;
}

constexpr const char* kDevices = "auto|cpu|gpu|cuda[:N]|vulkan[:N]";

void add_device(CLI::App& app, std::string* device) {
  app.add_option("--device", *device,
         "device to compute on (default: auto, which is the CPU "
         "unless SIMILIS_BACKEND is cuda or vulkan)")
      ->type_name(kDevices);
}

void add_threads(CLI::App& app, std::string* threads) {
  app.add_option("--threads", *threads, "number of threads (default: one per core)")
      ->type_name("N");
}

void add_metrics(
    CLI::App& app, std::vector<std::string>* metrics, const std::string& unless_given) {
  app.add_option("-m,--metric", *metrics,
         fmt::format(
             "metric, optionally with options; repeat for several\n(default: {})", unless_given))
      ->type_name("METRIC[=OPTION=VALUE:…]")
      ->allow_extra_args(false);
  app.add_flag_callback(
      "--list-metrics", [] { throw CLI::CallForVersion(describe_metrics(), 0); },
      "show all metrics and their options, and exit");
}

// Puts options under a heading of --help, so that a section fits a terminal.
void group_options(
    CLI::App& app, const std::string& heading, std::initializer_list<const char*> names) {
  for (const char* name : names) app.get_option(name)->group(heading);
}

void add_compare(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "compare", "Scores how alike two pictures, videos, volumes or directories are");
  CompareOptions& options = line.compare_options;
  line.compare = &app;
  app.add_option("REF", options.reference,
         "the reference: a picture, a video, a volume, a directory, or - for stdin")
      ->type_name("");
  app.add_option("DIST", options.first_distorted,
         "the distorted input, which is scored; several are scored in one pass over REF")
      ->type_name("");
  app.add_option("MORE", options.distorted, "further distorted inputs")->type_name("");
  add_metrics(app, &options.metrics,
      fmt::format(
          "{}; metrics that need a larger picture are skipped", joined(default_metrics(), ", ")));
  add_device(app, &options.device);
  add_threads(app, &options.threads);
  app.add_option("--format", options.format, "format of the results (default: table)")
      ->type_name("table|json|jsonl|csv|xml");
  app.add_option("-o,--output", options.output,
         "write the results to FILE, complete or not at all; a run "
         "that fails leaves its scores so far in FILE.partial. Its "
         "ending chooses the format if --format does not")
      ->type_name("FILE");
  app.add_option("--curve", options.curves,
         "the encodes of one encoder, at least 4; repeat: each curve "
         "gets its BD-rate against the first")
      ->type_name("NAME=FILE,FILE,…")
      ->allow_extra_args(false);
  app.add_option("--pairs", options.pairs,
         "score the pairs that FILE lists (.jsonl, .csv or .tsv with "
         "reference, distorted and, optionally, id) into -o X.jsonl; "
         "the same command again scores those that are missing")
      ->type_name("FILE");
  app.add_option("--shard", options.shard, "only the Ith of N parts of the list")->type_name("I/N");
  app.add_option(
         "--retries", options.retries, "tries of a pair whose files cannot be opened (default: 1)")
      ->type_name("N");
  app.add_flag("--frames-in-rows", options.frames_in_rows,
      "write each frame's scores to the rows of --pairs too");
  app.add_option("--worst", options.worst, "list the N worst frames of a video (default: 1)")
      ->type_name("N");
  app.add_option("--fail-below", options.fail_below,
         "exit with status 3 if a score of any pair is lower; STAT is mean, min, "
         "p5, … as in JSON (default: mean)")
      ->type_name("METRIC[.STAT]=VALUE")
      ->allow_extra_args(false);
  app.add_option("--fail-above", options.fail_above, "the same for errors, such as mse")
      ->type_name("METRIC[.STAT]=VALUE")
      ->allow_extra_args(false);
  app.add_option("--report", options.report,
         "write the results with curves, pictures and maps to FILE, one HTML page that loads "
         "nothing")
      ->type_name("FILE");
  app.add_option("--map", options.maps,
         fmt::format("draw a heat map of the loss; brighter is worse; of a video "
                     "its luma in the worst frame, or in FRAME; repeat for several; for: {}. "
                     "One pixel for each of the picture, and a legend below; "
                     "windows that do not fit (padding=valid) are cut at the border. "
                     "FILE is .png, or the values as floats: .pfm, .tiff, .npy, and .nii.gz of "
                     "volumes; of directories and encodes a folder for a .png of each",
             joined(metric_names_with_maps(), ", ")))
      ->type_name("METRIC[@FRAME]=FILE")
      ->allow_extra_args(false);
  app.add_option("--map-max", options.map_max,
         "the loss that is brightest, such as 0.1 of ssim; auto: the largest of each map (default: "
         "a scale that is the same for all)")
      ->type_name("auto|LOSS");
  app.add_flag("--overlay", options.is_overlay, "draw maps over the reference in grey");
  app.add_flag(
      "--no-legend", options.has_no_legend, "draw maps without a legend, as large as the picture");
  app.add_option("--nan", options.not_finite,
         "values that are not finite: refuse them, or mask them, which leaves out their pixels "
         "(default: error)")
      ->type_name("error|mask");
  app.add_flag("-q,--quiet", options.is_quiet, "print neither notes nor progress");
  app.set_version_flag("-V,--version", "similis " SIMILIS_VERSION);
  app.add_option("--background", options.background,
         fmt::format("colour behind transparent pixels:\n{}", kColorForms))
      ->type_name("COLOR");
  app.add_option("--frames", options.frames,
         "score frames A to B - 1 of the reference; A or B may be omitted")
      ->type_name("A:B");
  app.add_option("--every", options.every, "score every Nth of these frames")->type_name("N");
  app.add_option("--offset", options.offset, "compare reference frame i with distorted frame i + N")
      ->type_name("N");
  app.add_option("--resize", options.adaptation.resize,
         "resize the distorted pictures or video to the reference's size")
      ->type_name("lanczos|spline36|bicubic|bilinear");
  app.add_option("--crop", options.adaptation.crop,
         "leave out so many pixels at the left, right, top and bottom of both sides; auto: the "
         "bars "
         "that are black in all frames, for which videos are read twice")
      ->type_name("auto|L,R,T,B");
  app.add_option("--crop-distorted", options.adaptation.crop_distorted,
         "the same of the distorted side alone, in its own pixels, before --resize")
      ->type_name("L,R,T,B");
  app.add_option("--depth", options.adaptation.depth,
         "convert the video with fewer bits per sample to the depth of the other")
      ->type_name("match");
  app.add_option("--range", options.adaptation.range,
         "full against limited range: convert the distorted video, or compare its code values as "
         "they are stored")
      ->type_name("match|as-stored");
  app.add_option("--match-rate", options.adaptation.match_rate,
         "compare each frame of the reference with the distorted frame nearest in time")
      ->type_name("nearest");
  app.add_option("--size", options.size, "frame size of raw video")->type_name("WxH");
  app.add_option("--pix-fmt", options.pixel_format,
         "pixel format of raw video (ffmpeg's name): yuv420p, yuv422p10le, nv12, p010le, gray12le, "
         "…")
      ->type_name("FORMAT");
  group_options(app, "Results",
      {"--format", "--output", "--report", "--worst", "--fail-below", "--fail-above", "--quiet"});
  group_options(app, "Maps", {"--map", "--map-max", "--overlay", "--no-legend"});
  group_options(
      app, "Encodes and lists", {"--curve", "--pairs", "--shard", "--retries", "--frames-in-rows"});
  group_options(app, "Meeting halfway",
      {"--resize", "--crop", "--crop-distorted", "--depth", "--range", "--match-rate"});
  app.add_option(
         "--fps", options.fps, "frames per second of image sequences, animations and raw video")
      ->type_name("RATE");
  group_options(app, "Video", {"--frames", "--every", "--offset", "--size", "--pix-fmt", "--fps"});
  app.footer(fmt::format("{}\n{}\n{}\n{}\n{}", kCompareExamples, metric_lines(),
      wrapped(kDifferences, kColumns), wrapped(kResults, kColumns), kExitStatus));
}

void add_vmaf_inputs(CLI::App& app, VmafOptions& options) {
  app.add_option("-r,--reference", options.reference,
         "the reference video; raw YUV needs -w, -h, -p and -b")
      ->required()
      ->type_name("FILE");
  app.add_option("-d,--distorted", options.distorted, "the distorted video")
      ->required()
      ->type_name("FILE");
  app.add_option("-w,--width", options.width, "frame width of raw video")->type_name("N");
  app.add_option("-h,--height", options.height, "frame height of raw video")->type_name("N");
  app.add_option("-p,--pixel_format", options.pixel_format, "chroma subsampling of raw video")
      ->type_name("420|422|444|400");
  app.add_option("-b,--bitdepth", options.bit_depth, "bits per sample of raw video")
      ->type_name("8|10|12|16");
  app.add_option("--frame_cnt", options.frame_count, "stop after N frames")->type_name("N");
  app.add_option(
         "--frame_skip_ref", options.skip_reference, "skip the first N frames of the reference")
      ->type_name("N");
  app.add_option("--frame_skip_dist", options.skip_distorted,
         "skip the first N frames of the distorted video")
      ->type_name("N");
  app.add_option("--subsample", options.subsample, "score every Nth frame")->type_name("N");
}

void add_vmaf(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "vmaf", "Scores two videos with the flags and the output of libvmaf's vmaf");
  VmafOptions& options = line.vmaf_options;
  line.vmaf = &app;
  app.set_help_flag("--help", "Print this help message and exit");
  add_vmaf_inputs(app, options);
  app.add_option("--feature", options.features, "feature to compute; repeat for several")
      ->type_name("FEATURE[=OPTION=VALUE:…]")
      ->allow_extra_args(false);
  app.add_option("-m,--model", options.models,
         "model to score with (default: version=vmaf_v0.6.1); repeat for several, with different "
         "names; parts: version=NAME or path=FILE, name=NAME, disable_clip, enable_transform, "
         "FEATURE.OPTION=VALUE")
      ->type_name("PART[:PART…]")
      ->allow_extra_args(false);
  app.add_option("--aom_ctc", options.aom_ctc,
         "the models and features of the Alliance for Open Media's common test conditions")
      ->type_name("v1.0|…|v7.0");
  app.add_option(
         "--nflx_ctc", options.nflx_ctc, "the models and features of Netflix's test conditions")
      ->type_name("v1.0");
  app.add_flag("-n,--no_prediction", options.has_no_prediction,
      "compute features only, without the default model");
  add_device(app, &options.device);
  add_threads(app, &options.threads);
  app.add_option("-o,--output", options.output, "write the results to FILE, complete or not at all")
      ->type_name("FILE");
  app.add_flag("--xml", options.is_xml, "write XML (default)");
  app.add_flag("--json", options.is_json, "write JSON");
  app.add_flag("--csv", options.is_csv, "write CSV");
  app.add_flag("--sub", options.is_sub, "write subtitles");
  app.add_option("--precision", options.precision,
         "digits of numbers (default: six, as vmaf writes); max: as many as needed to read back "
         "the same number")
      ->type_name("max");
  for (const char* mask : {"--cpumask", "--gpumask"}) {
    app.add_option(mask, options.mask, "taken for vmaf's sake, of no effect")->type_name("MASK");
  }
  app.add_flag("-q,--quiet", options.is_quiet, "show no progress on a terminal");
  app.set_version_flag("-v,--version", "similis " SIMILIS_VERSION);
  app.footer(fmt::format(
      "{}\nFeatures and their options:\n{}\n{}", kVmafExamples, describe_features(), kExitStatus));
}

void add_warp(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "warp", "Resamples a volume on another's grid, through ITK and ANTs transforms");
  WarpOptions& options = line.warp_options;
  line.warp = &app;
  app.add_option("IMAGE", options.image, "the volume to warp, or - for stdin")->type_name("");
  app.add_option("-i,--input", options.input, "the same, as antsApplyTransforms has it; give one")
      ->type_name("FILE");
  app.add_option(
         "-r,--reference", options.reference, "the volume whose grid the output gets; required")
      ->required()
      ->type_name("FILE");
  app.add_option("-t,--transform", options.transforms,
         "transform from points of the reference to points of IMAGE: "
         "an affine map or a displacement field; [FILE,1] is the "
         "inverse of an affine map; repeat for several, which are "
         "applied to a point in this order (default: identity)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("-o,--output", options.output,
         "write the warped volume to FILE, .nii or .nii.gz, complete or not at all; required")
      ->required()
      ->type_name("FILE");
  app.add_option("-n,--mode", options.mode,
         "interpolation (default: linear); cubic is a B-spline, "
         "label takes the label with the largest linear weight; "
         "the names of antsApplyTransforms are known too: "
         "Linear, NearestNeighbor, BSpline and GenericLabel")
      ->type_name("linear|nearest|cubic|label");
  app.add_option("--padding", options.padding,
         "values outside IMAGE (default: zeros, or --background, from "
         "half a voxel outside on); border repeats the outermost "
         "voxel, reflection mirrors")
      ->type_name("zeros|border|reflection");
  app.add_option(
         "--background", options.background, "value that --padding zeros fills in (default: 0)")
      ->type_name("NUMBER");
  app.add_option("-d,--dimensions", options.dimensions,
         "2 or 3, as antsApplyTransforms has it: with 2, IMAGE and the reference must be slices "
         "(default: what the files have)")
      ->type_name("2|3");
  add_device(app, &options.device);
  add_threads(app, &options.threads);
  app.footer(fmt::format("{}\n{}\n{}", kWarpExamples, wrapped(kWarpFiles, kColumns), kExitStatus));
}

void add_register(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "register", "Finds the affine map and the warp that lay one volume over another");
  line.registration = &app;
  add_register_arguments(app, line.register_command);
  add_device(app, &line.register_command.device);
  add_threads(app, &line.register_command.threads);
  app.add_option("--format", line.register_command.format,
         "format of the report on stdout (default: table)")
      ->type_name("table|json");
  app.footer(fmt::format(
      "{}\n{}\n{}", kRegisterExamples, wrapped(kRegisterFiles, kColumns), kWholeExitStatus));
}

void add_merge(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "merge", "Puts the results of the shards of a list of pairs together");
  MergeOptions& options = line.merge_options;
  line.merge = &app;
  app.add_option(
         "PART", options.parts, "the results of compare --pairs, as many files as there are")
      ->required()
      ->type_name("");
  app.add_option("--pairs", options.pairs, "the list; required")->required()->type_name("FILE");
  app.add_option("-o,--output", options.output,
         "write one row for each pair to FILE, .jsonl, .json or .csv, "
         "complete or not at all (default: stdout, JSON Lines)")
      ->type_name("FILE");
  app.footer(fmt::format("{}\n{}", kMergeExamples, kExitStatus));
}

void add_report(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "report", "Makes an HTML page of results that compare wrote, without pictures");
  ReportOptions& options = line.report_options;
  line.report = &app;
  app.add_option("SCORES", options.scores,
         "results in JSON or JSON Lines, of a pair, encodes, directories or a list; a section each")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", options.output, "write the page to FILE; required")
      ->required()
      ->type_name("FILE");
  app.footer(fmt::format("{}\n{}", kReportExamples, kExitStatus));
}

void add_bench(CommandLine& line) {
  CLI::App& app = *line.app.add_subcommand(
      "bench", "Measures how fast metrics are on this machine, without any files");
  BenchOptions& options = line.bench_options;
  line.bench = &app;
  add_metrics(app, &options.metrics, "all; metrics that cannot run are skipped");
  app.add_option("--size", options.size,
         "size of the pictures (default: 1920x1080), or of volumes, such as 192x192x160")
      ->type_name("WxH[xD]");
  add_device(app, &options.device);
  add_threads(app, &options.threads);
  app.add_option("--seconds", options.seconds, "seconds to measure each metric for (default: 1)")
      ->type_name("S");
  app.add_option("--format", options.format, "format of the results (default: table)")
      ->type_name("table|json");
  app.add_option("-o,--output", options.output, "write the results to FILE, complete or not at all")
      ->type_name("FILE");
  app.footer(
      fmt::format("{}\n{}\n{}", kBenchExamples, wrapped(kBenchTimes, kColumns), kExitStatus));
}

void add_completion(CommandLine& line) {
  line.completion = line.app.add_subcommand("completion", "Prints a completion script for a shell");
  line.completion->add_option("SHELL", line.shell, "the shell")
      ->required()
      ->type_name("bash|zsh|fish");
  line.completion->footer(R"(Examples:
  similis completion bash > ~/.local/share/bash-completion/completions/similis
  similis completion zsh > "${fpath[1]}/_similis"
  similis completion fish > ~/.config/fish/completions/similis.fish)");
}

}  // namespace

std::unique_ptr<CommandLine> make_command_line() {
  auto line = std::make_unique<CommandLine>();
  CLI::App& app = line->app;
  app.description("similis measures how alike two images are.");
  app.name("similis");
  app.set_version_flag("-V,--version", "similis " SIMILIS_VERSION);
  app.require_subcommand(1);
  app.footer(fmt::format("{}\n{}", kProgramExamples, kExitStatus));
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("REQUIRED", "");  // usage lines show it: REF, not [REF]
  add_compare(*line);
  add_vmaf(*line);
  add_warp(*line);
  add_register(*line);
  add_merge(*line);
  add_report(*line);
  add_bench(*line);
  line->info = app.add_subcommand("info", "Shows what this build can use on this machine");
  line->info->footer("");
  line->info->add_option("--device", line->info_options.device, "tell of this device alone")
      ->type_name(kDevices);
  line->info->add_flag("--report", line->info_options.report,
      "also run each Vulkan device, and compare its bits with the CPU's");
  add_completion(*line);
  for (CLI::App* command : app.get_subcommands({})) {
    command->group("Commands");
    for (CLI::Option* option : command->get_options()) {
      std::string text = wrapped(option->get_description(), kColumns - kOptionColumns - 1);
      text.pop_back();  // the last line's end
      option->description(text);
    }
  }
  return line;
}

std::vector<std::string> value_choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("METRIC[@")) return metric_names_with_maps();
  if (type.starts_with("METRIC")) return metric_names();
  std::vector<std::string> choices;
  for (const std::string& form : CLI::detail::split(type, '|')) {
    const std::string choice = form.substr(0, form.find('['));
    const bool is_word = std::all_of(choice.begin(), choice.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
    if (is_word && !choice.empty()) choices.push_back(choice);  // not N or L,R,T,B
  }
  return choices;
}

}  // namespace similis::cli
