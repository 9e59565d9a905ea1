// SPDX-License-Identifier: Apache-2.0
#include "src/cli/info_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "similis/info.hpp"
#include "src/core/joined.h"
#include "src/gpu/device.h"
#include "src/media/picture/decode.h"
#include "src/media/transform/itk_transform.h"

namespace similis::cli {

std::string describe_build() {
  const Info info = similis::info();
  std::vector<std::pair<std::string, std::string>> lines = {{"version", info.version},
      {"SIMD in use", fmt::format("{} ({})", info.simd_target, info.simd_target_reason)},
      {"SIMD targets", joined(info.simd_targets, ", ")}};
  if (!info.unsupported_simd_targets.empty()) {
    lines.emplace_back("not on this processor", joined(info.unsupported_simd_targets, ", "));
  }
  lines.emplace_back("threads", fmt::format("{}", info.threads));
  for (const GpuBackend& backend : info.gpu_backends) {
    lines.emplace_back("GPU", gpu::examine(backend.kind));
  }
  for (const media::FormatReader& format : media::format_readers()) {
    const char* const missing = format.format == "others" ? "install ffmpeg" : "not in this build";
    lines.emplace_back(format.format, format.reader.empty() ? missing : format.reader);
  }
  const std::string hdf5 = media::transform_library();
  lines.emplace_back("HDF5", hdf5.empty() ? "not in this build" : hdf5);
  std::size_t width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : lines) text += fmt::format("{:{}}  {}\n", name, width, value);
  return text;
}

}  // namespace similis::cli
