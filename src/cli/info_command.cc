// SPDX-License-Identifier: Apache-2.0
#include "src/cli/info_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "similis/info.hpp"
#include "src/cli/device.h"
#include "src/cli/gpu_report.h"
#include "src/cli/usage_error.h"
#include "src/core/joined.h"
#include "src/gpu/device.h"
#include "src/media/picture/decode.h"
#include "src/media/transform/itk_transform.h"

namespace similis::cli {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

void add_cpu(const Info& info, Lines& lines) {
  lines.emplace_back(
      "SIMD in use", fmt::format("{} ({})", info.simd_target, info.simd_target_reason));
  lines.emplace_back("SIMD targets", joined(info.simd_targets, ", "));
  if (!info.unsupported_simd_targets.empty()) {
    lines.emplace_back("not on this processor", joined(info.unsupported_simd_targets, ", "));
  }
  lines.emplace_back("threads", fmt::format("{}", info.threads));
}

void add_formats(Lines& lines) {
  for (const media::FormatReader& format : media::format_readers()) {
    const char* const missing = format.format == "others" ? "install ffmpeg" : "not in this build";
    lines.emplace_back(format.format, format.reader.empty() ? missing : format.reader);
  }
  const std::string hdf5 = media::transform_library();
  lines.emplace_back("HDF5", hdf5.empty() ? "not in this build" : hdf5);
}

Lines lines_of_build(const Info& info) {
  Lines lines = {{"version", info.version}};
  add_cpu(info, lines);
  for (const GpuBackend& backend : info.gpu_backends) {
    lines.emplace_back("GPU", gpu::examine(backend.kind));
  }
  add_formats(lines);
  return lines;
}

Lines lines_of(Device device, const Info& info) {
  Lines lines;
  if (device.kind == DeviceKind::cpu) {
    add_cpu(info, lines);
  } else {
    lines.emplace_back("GPU", gpu::examine(device));
  }
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

std::string info_text(const InfoOptions& options) {
  const Info info = similis::info();
  if (options.device.empty())
    return text_of(lines_of_build(info)) + (options.report ? gpu_report() : "");
  const Device device = parse_device(options.device);
  const bool is_vulkan = device.kind == DeviceKind::vulkan;
  if (options.report && !is_vulkan) {
    throw UsageError(fmt::format(
        "--device is {}; with --report it must be vulkan or vulkan:N", device_name(device)));
  }
  return text_of(lines_of(device, info)) + (options.report ? gpu_report(device.index) : "");
}

}  // namespace similis::cli
