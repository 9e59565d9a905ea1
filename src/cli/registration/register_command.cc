// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_command.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <system_error>

#include "similis/version.h"
#include "src/cli/device.h"
#include "src/cli/inputs/media_pair.h"
#include "src/cli/page/page.h"
#include "src/cli/registration/register_files.h"
#include "src/cli/registration/register_labels.h"
#include "src/cli/registration/register_options.h"
#include "src/cli/registration/register_outputs.h"
#include "src/cli/registration/register_page.h"
#include "src/cli/registration/register_progress.h"
#include "src/cli/registration/register_report.h"
#include "src/cli/terminal/interruption.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/threads.h"
#include "src/cli/usage_error.h"
#include "src/cli/warp/resample.h"
#include "src/core/require.h"
#include "src/media/io/whole_file.h"
#include "src/media/transform/itk_transform_writer.h"

namespace similis::cli {
namespace {

constexpr const char* kDescription = "similis " SIMILIS_VERSION " register";

// An image that --transform-also names.
struct Also : FurtherOutput {
  media::Volume volume;
};

std::vector<Also> read_also(const RegisterCommand& command) {
  std::vector<Also> images;
  for (const FurtherOutput& output : further_outputs(command)) {
    images.push_back({output, read_register_volume(output.path)});
  }
  return images;
}

// A volume that is computed, to be written once all are.
struct Output {
  std::string path;
  media::Volume volume;
};

media::Volume jacobian_volume(const Tensor& jacobian, const RegisterInput& fixed) {
  media::Volume volume;
  volume.grid = fixed.file.grid;
  const auto& size = volume.grid.size;
  TensorView view = jacobian;
  view.shape = {1, 1, size[2], size[1], size[0]};
  view.strides = dense_strides(view.shape);
  volume.values = Tensor(view, std::make_shared<Tensor>(jacobian));
  return volume;
}

// The files that are read beside both images.
struct Further {
  Tensor fixed_mask, moving_mask;
  std::optional<media::Volume> fixed_labels, moving_labels;
  std::vector<Also> also;
};

Further read_further(const RegisterCommand& command, RegisterInput& fixed, RegisterInput& moving) {
  Further further{.fixed_mask = read_mask(command.fixed_mask, fixed),
      .moving_mask = read_mask(command.moving_mask, moving),
      .also = read_also(command)};
  if (!command.fixed_labels.empty()) {
    further.fixed_labels = read_labels(command.fixed_labels, fixed);
  }
  if (!command.moving_labels.empty()) {
    further.moving_labels = read_labels(command.moving_labels, moving);
  }
  for (const auto& [own, other] : command.channels) {
    add_channel(own, fixed);
    add_channel(other, moving);
  }
  return further;
}

// [Z,Y,X], or [Y,X] of a slice.
TensorView voxels_of(const media::Volume& volume, int rank) {
  const auto& size = volume.grid.size;
  TensorView voxels = volume.values;
  voxels.shape = rank == 2 ? Extents{size[1], size[0]} : Extents{size[2], size[1], size[0]};
  voxels.strides = dense_strides(voxels.shape);
  return voxels;
}

// Everything that the program writes, computed before the first file.
struct Results {
  RegisterTransforms transforms;
  std::vector<Output> outputs;
  Json report;
  std::string page;  // empty with --no-report
};

Results results_of(RegisterReport& report, const Further& further,
    std::chrono::steady_clock::time_point start, const Execution& exec) {
  const RegisterCommand& command = report.command;
  const RegisterInput &fixed = report.fixed, &moving = report.moving;
  Results results{.transforms = transforms_of(report.result, fixed, moving)};
  const RegisterTransforms& by = results.transforms;
  const auto add = [&](const std::string& name, const media::Volume& volume) {
    results.outputs.push_back({register_volume_path(command, name), volume});
  };
  const auto resampled = [&](const media::Volume& image, const std::string& name,
                             const media::Grid& grid, const std::vector<SpatialTransform>& map,
                             ResampleMode mode = ResampleMode::linear) {
    return resample(image, name, grid, map, {.mode = mode}, exec).volume;
  };
  const media::Grid& grid = fixed.file.grid;
  const media::Volume warped = resampled(moving.file, moving.name, grid, by.forward);
  report.similarity = registration_internal::reported_similarity(report.result, fixed.view,
      moving.view, {.fixed = further.fixed_mask, .moving = further.moving_mask}, exec);
  if (!report.result.displacement.empty()) {
    add("1Warp", field_volume(report.result.displacement, fixed));
    add("1InverseWarp", field_volume(report.result.inverse_displacement, fixed));
    report.jacobian = registration_jacobian(report.result, fixed.view, exec);
    if (command.writes_jacobian) add("Jacobian", jacobian_volume(report.jacobian, fixed));
  }
  add("Warped", warped);
  add("InverseWarped", resampled(fixed.file, fixed.name, moving.file.grid, by.backward));
  for (const Also& image : further.also) {
    add(image.name,
        resampled(image.volume, display_name(image.path), grid, by.forward, image.mode));
  }
  if (further.moving_labels) {
    const std::string name = display_name(command.moving_labels);
    const auto labels = [&](const std::vector<SpatialTransform>& map) {
      return resampled(*further.moving_labels, name, grid, map, ResampleMode::label);
    };
    add("Labels", labels(by.forward));
    if (further.fixed_labels) {
      report.dice =
          label_overlaps(*further.fixed_labels, labels({}), results.outputs.back().volume);
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  results.report = report_json(report);
  if (!command.has_no_page) {
    const media::Volume before = resampled(moving.file, moving.name, grid, {}),
                        affine = resampled(moving.file, moving.name, grid, {by.affine});
    results.page =
        register_page_html({report, results.report, before, affine, warped, command.command});
  }
  return results;
}

// Registers images on the CPU by a device; the result is on the CPU.
Registration registered_on(Device device, const Volume& fixed, const Volume& moving,
    const RegisterOptions& options, const Execution& exec) {
  const auto there = [&](const TensorView& array) {
    return array.empty() ? Tensor() : on_device(Tensor(array, nullptr), device, exec);
  };
  const Tensor own = there(fixed.data), other = there(moving.data),
               own_mask = there(options.fixed_mask), other_mask = there(options.moving_mask),
               own_labels = there(options.fixed_labels),
               other_labels = there(options.moving_labels);
  RegisterOptions by = options;
  by.fixed_mask = own_mask;
  by.moving_mask = other_mask;
  by.fixed_labels = own_labels;
  by.moving_labels = other_labels;
  Registration result = register_images({own, fixed.to_world}, {other, moving.to_world}, by, exec);
  for (Tensor* const array : {&result.displacement, &result.inverse_displacement, &result.warped}) {
    if (!array->empty()) *array = on_device(*array, {}, exec);
  }
  return result;
}

// The folder of the results, which goes again if nothing came into it.
class ResultFolder {
 public:
  explicit ResultFolder(const std::string& prefix) {
    if (prefix.ends_with('/') && std::filesystem::create_directory(prefix)) made_ = prefix;
  }
  ~ResultFolder() {
    std::error_code error;
    if (!made_.empty()) std::filesystem::remove(made_, error);  // only an empty one
  }
  ResultFolder(const ResultFolder&) = delete;
  ResultFolder& operator=(const ResultFolder&) = delete;

 private:
  std::string made_;
};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// All files, or none if one cannot be written or a signal comes before all are.
void write_all(const RegisterCommand& command, const Results& results, int rank,
    const std::function<bool()>& is_interrupted, const Execution& exec) {
  const ResultFolder folder(command.output);
  media::WholeFiles files;
  const auto* affine = std::get_if<media::Affine>(&results.transforms.affine.map);
  // A map of slices at different heights moves z, which ITK's maps of 2 dimensions do not.
  const bool is_flat = rank == 2 && affine->rows[2][3] == 0;
  files.add(register_path(command, "0GenericAffine.mat"),
      media::encode_itk_affine(*affine, is_flat ? 2 : 3));
  for (const Output& output : results.outputs) {
    if (is_interrupted()) return;
    files.add(
        output.path, media::volume_file_bytes(output.path, output.volume, kDescription, exec));
  }
  files.add(register_path(command, "report.json"), bytes_of(json_text(results.report)));
  if (!results.page.empty()) {
    files.add(register_path(command, "report.html"), bytes_of(results.page));
  }
  if (!is_interrupted()) files.commit();
}

}  // namespace

int register_volumes(const RegisterCommand& command) {
  Interruption interruption;  // before any thread
  const Interruption::Keep keep(&interruption);
  RegisterOptions options = parse_register_options(command);
  const Device device = parse_device(command.device);
  if (device.kind == DeviceKind::vulkan) {
    throw UsageError(fmt::format(
        "--device {}: similis register runs on the CPU and on CUDA devices", command.device));
  }
  if (!command.has_no_page) require_pages("report.html, which --no-report leaves out");
  if (!command.fixed_labels.empty() && command.moving_labels.empty()) {
    throw UsageError("--fixed-labels: give --moving-labels too, with which they are compared");
  }
  const int threads = parse_threads(command.threads);
  require_writable_outputs(command, options.stages.back() >= RegisterStage::deformable);
  std::optional<ThreadPool> pool;
  Execution exec;
  if (threads > 0) exec.runner = pool.emplace(threads).runner();

  const auto start = std::chrono::steady_clock::now();
  if (!start_file(command).empty()) options.initial = read_start(start_file(command));
  RegisterInput fixed = read_register_input(command.fixed),
                moving = read_register_input(command.moving);
  require(fixed.rank() == moving.rank(), "{} is a {} but {} is a {}; register two of one kind",
      fixed.name, fixed.rank() == 2 ? "slice" : "volume", moving.name,
      moving.rank() == 2 ? "slice" : "volume");
  const Further further = read_further(command, fixed, moving);
  options.fixed_name = fixed.name;
  options.moving_name = moving.name;
  options.fixed_mask = further.fixed_mask;
  options.moving_mask = further.moving_mask;
  if (further.fixed_labels) options.fixed_labels = voxels_of(*further.fixed_labels, fixed.rank());
  if (further.moving_labels) {
    options.moving_labels = voxels_of(*further.moving_labels, moving.rank());
  }
  const auto interrupted = [&] {
    if (interruption.signal() == 0) return false;
    print_error(interruption.words());
    return true;
  };

  Registration result;
  {
    RegisterProgressLine line(registration_internal::deformable_settings(
                                  options, registration_internal::grid_of(fixed.view)),
        fixed.rank());
    options.progress = [&](const RegisterProgress& at) {
      line.show(at);
      return interruption.signal() == 0;
    };
    result = registered_on(device, fixed.view, moving.view, options, exec);
  }
  if (interrupted()) return 128 + interruption.signal();
  RegisterReport report{command, options, fixed, moving, result, device, {}, {}, {}};
  const Results results = results_of(report, further, start, exec);
  if (interrupted()) return 128 + interruption.signal();
  write_all(
      command, results, fixed.rank(), [&] { return interruption.signal() != 0; }, exec);
  if (interrupted()) return 128 + interruption.signal();
  write_output(command.format == "json" ? json_text(results.report) : report_table(results.report));
  return 0;
}

}  // namespace similis::cli
