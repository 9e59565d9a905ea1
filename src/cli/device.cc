// SPDX-License-Identifier: Apache-2.0
#include "src/cli/device.h"

#include <fmt/format.h>

#include <optional>

#include "similis/error.hpp"
#include "src/cli/number_text.h"
#include "src/cli/usage_error.h"
#include "src/core/require.h"

namespace similis::cli {

Device parse_device(std::string_view text) {
  if (text == "auto" || text == "cpu") return {};
  const bool has_index = text.starts_with("cuda:");
  const auto index = has_index ? parse_number<int>(text.substr(5)) : std::optional<int>(0);
  if ((!has_index && text != "cuda") || !index || *index < 0) {
    throw UsageError(fmt::format("--device is \"{}\"; it must be auto, cpu, cuda or cuda:N", text));
  }
  throw DeviceError(
      fmt::format("--device {}: this version of the program scores on the CPU alone", text));
}

std::string device_name(const Device& device) { return fmt::format("{}", device); }

}  // namespace similis::cli
