// SPDX-License-Identifier: Apache-2.0
// Whatever -m, --map and --background are given is taken or refused in one line, and what is taken
// comes back as JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/cli/background.h"
#include "src/cli/json_text.h"
#include "src/cli/metric_request.h"
#include "src/cli/usage_error.h"

namespace {

using namespace similis::cli;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Parse> void take_or_refuse(const Parse& parse) {
  try {
    parse();
  } catch (const UsageError& error) {
    require(error.what()[0] != '\0');
  }
}

void check_settings(const Measure& measure) {
  require(!measure.name.empty());
  for (const auto& [name, value] : measure.settings(255)) {
    require(!Json::parse(value).is_null());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  take_or_refuse([&] {
    for (const Measure& measure : requested_measures({text, "mse"})) check_settings(measure);
  });
  take_or_refuse([&] {
    const MapRequest map = requested_map(text, {"ssim", "ssim=sigma=2"});
    check_settings(map.measure);
    require(map.path.ends_with(".png"));
  });
  take_or_refuse([&] { parse_color(text); });
  return 0;
}
