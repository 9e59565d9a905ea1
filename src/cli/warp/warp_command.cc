// SPDX-License-Identifier: Apache-2.0
#include "src/cli/warp/warp_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "similis/version.h"
#include "src/cli/device.h"
#include "src/cli/inputs/media_pair.h"
#include "src/cli/metrics/named_value.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/threads.h"
#include "src/cli/usage_error.h"
#include "src/cli/warp/resample.h"
#include "src/core/number_text.h"
#include "src/core/require.h"

namespace similis::cli {
namespace {

const NamedValues<ResampleMode> kModes = {{"linear", ResampleMode::linear},
    {"nearest", ResampleMode::nearest}, {"cubic", ResampleMode::cubic},
    {"label", ResampleMode::label}};
// The names that antsApplyTransforms has, with the options that say what `similis warp` does.
const NamedValues<ResampleMode> kAntsModes = {{"Linear", ResampleMode::linear},
    {"NearestNeighbor", ResampleMode::nearest}, {"BSpline", ResampleMode::cubic},
    {"BSpline[3]", ResampleMode::cubic}, {"GenericLabel", ResampleMode::label},
    {"GenericLabel[Linear]", ResampleMode::label}};
const NamedValues<Outside> kPaddings = {
    {"zeros", Outside::zeros}, {"border", Outside::border}, {"reflection", Outside::reflection}};

template <class E>
E parse_choice(const char* option, const std::string& text, const NamedValues<E>& choices) {
  const std::optional<E> value = NamedValue<E>::parse(text, choices);
  if (value) return *value;
  throw UsageError(
      fmt::format("{} is \"{}\"; it must be {}", option, text, NamedValue<E>::takes(choices)));
}

ResampleMode parse_mode(const std::string& text) {
  const std::optional<ResampleMode> of_ants = NamedValue<ResampleMode>::parse(text, kAntsModes);
  return of_ants ? *of_ants : parse_choice("--mode", text, kModes);
}

ResampleOptions parse_options(const WarpOptions& options) {
  ResampleOptions parsed{.mode = parse_mode(options.mode),
      .padding = parse_choice("--padding", options.padding, kPaddings),
      .device = parse_device(options.device)};
  if (options.background.empty()) return parsed;
  const std::optional<double> number = parse_number<double>(options.background);
  if (!number) {
    throw UsageError(
        fmt::format("--background is \"{}\"; it must be a number", options.background));
  }
  if (parsed.padding != Outside::zeros) {
    throw UsageError("--background is only for --padding zeros; leave one of them out");
  }
  parsed.background = *number;
  return parsed;
}

// IMAGE and --input are two ways to say the same.
std::string image_path(const WarpOptions& options) {
  if (options.image.empty() && options.input.empty()) {
    throw UsageError("IMAGE is missing; similis warp --help shows how to call it");
  }
  if (!options.image.empty() && !options.input.empty()) {
    throw UsageError(fmt::format("the volume to warp is given twice, as {} and as --input {}",
        options.image, options.input));
  }
  return options.image.empty() ? options.input : options.image;
}

void check_dimensions(
    const std::string& dimensions, const std::string& path, const media::Grid& grid) {
  if (dimensions != "2" || grid.size[2] == 1) return;
  throw UsageError(fmt::format("--dimensions is 2 but {} has {} slices; leave --dimensions out",
      display_name(path), grid.size[2]));
}

// Refuses options that do not fit together, before any file is read.
void check(const WarpOptions& options) {
  if (!options.dimensions.empty() && options.dimensions != "2" && options.dimensions != "3") {
    throw UsageError(fmt::format("--dimensions is \"{}\"; it must be 2 or 3", options.dimensions));
  }
  std::vector<std::string> inputs = {options.image, options.reference};
  for (const std::string& text : options.transforms) inputs.push_back(transform_file(text).path);
  if (std::count(inputs.begin(), inputs.end(), "-") > 1) {
    throw UsageError("only one of IMAGE, --reference and --transform can be standard input");
  }
  if (!media::has_nifti_name(options.output)) {
    throw UsageError(fmt::format("-o {}: its name must end in .nii or .nii.gz", options.output));
  }
  require_writable("-o", options.output, inputs);
}

media::Volume read_volume(const std::string& path) {
  media::Volume volume = media::read_volume(path);
  if (volume.forms_differ) {
    print_note(fmt::format("{}: qform and sform differ; the sform is used", display_name(path)));
  }
  return volume;
}

std::string numbers_text(const media::Point& numbers) {
  return fmt::format("{:.6g} × {:.6g} × {:.6g}", numbers[0], numbers[1], numbers[2]);
}

// "96 × 116 × 128 voxels of 2 × 2 × 2 mm"
std::string grid_text(const media::Grid& grid) {
  return fmt::format("{} × {} × {} voxels of {} mm", grid.size[0], grid.size[1], grid.size[2],
      numbers_text(grid.spacing()));
}

std::string values_text(
    const Resampled& result, const WarpOptions& options, const media::Volume& image) {
  std::string text = fmt::format("{}, {}", media::name(result.volume.type), options.mode);
  if (image.frames > 1) text += fmt::format(", {} frames", image.frames);
  if (image.components > 1) text += fmt::format(", {} components per voxel", image.components);
  if (options.padding != "zeros") return text + ", padding " + options.padding;
  const double share =
      static_cast<double>(result.outside) / static_cast<double>(result.volume.grid.voxels());
  return text + fmt::format(", {:.3g} % outside the image", 100 * share);
}

using Lines = std::vector<std::pair<std::string, std::string>>;

Lines summary(const WarpOptions& options, const Device& device, const media::Volume& image,
    const std::vector<SpatialTransform>& transforms, const Resampled& result, double seconds) {
  Lines lines = {{"output", options.output}, {"grid", grid_text(result.volume.grid)},
      {"values", values_text(result, options, image)}};
  for (const SpatialTransform& transform : transforms) {
    lines.emplace_back(&transform == &transforms.front() ? "transforms" : "",
        fmt::format("{} ({})", transform.name, transform.kind()));
  }
  if (transforms.empty()) lines.emplace_back("transforms", "none (identity)");
  lines.emplace_back("device", device_name(device));
  lines.emplace_back("time", fmt::format("{:.2f} s", seconds));
  return lines;
}

std::string text_of(const Lines& lines) {
  std::size_t width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : lines) text += fmt::format("{:{}}  {}\n", name, width, value);
  return text;
}

}  // namespace

int warp(const WarpOptions& given) {
  WarpOptions options = given;
  options.image = image_path(given);
  const ResampleOptions resampling = parse_options(options);
  const int threads = parse_threads(options.threads);
  check(options);
  std::optional<ThreadPool> pool;
  Execution exec;
  if (threads > 0) exec.runner = pool.emplace(threads).runner();

  const auto start = std::chrono::steady_clock::now();
  std::vector<SpatialTransform> transforms;
  for (const std::string& text : options.transforms) {
    for (SpatialTransform& transform : read_transforms(text)) {
      if (auto* field = std::get_if<DisplacementField>(&transform.map)) {
        field->displacement = on_device(field->displacement, resampling.device, exec);
      }
      transforms.push_back(std::move(transform));
    }
  }
  const media::Grid grid = read_volume(options.reference).grid;
  check_dimensions(options.dimensions, options.reference, grid);
  const media::Volume image = read_volume(options.image);
  check_dimensions(options.dimensions, options.image, image.grid);
  const Resampled result =
      resample(image, display_name(options.image), grid, transforms, resampling, exec);
  media::write_volume(options.output, result.volume, "similis " SIMILIS_VERSION " warp", exec);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::fputs(text_of(summary(options, resampling.device, image, transforms, result, taken.count()))
                 .c_str(),
      stderr);
  return 0;
}

}  // namespace similis::cli
