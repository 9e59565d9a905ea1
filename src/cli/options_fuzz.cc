// SPDX-License-Identifier: Apache-2.0
// Each text is accepted as an option or refused in one line; accepted options are written as
// JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "similis/error.hpp"
#include "src/cli/inputs/background.h"
#include "src/cli/inputs/frame_selection.h"
#include "src/cli/maps/raw_map.h"
#include "src/cli/metrics/metric_request.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/usage_error.h"
#include "src/cli/vmaf/vmaf_feature.h"

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
  } catch (const similis::InvalidArgument& error) {  // of a model's file
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
    require(!map.path.empty());  // of directories and encodes it is a folder
    require_map_file(map);
    require(map.path.ends_with(".png") || is_raw_map(map.path));
  });
  take_or_refuse([&] { parse_color(text); });
  take_or_refuse([&] { requested_feature(text); });
  take_or_refuse([&] {
    const FrameSelection selection = parse_frame_selection(text, "", "");
    require(selection.next(0) >= selection.first && selection.count(10, 10) <= 10);
  });
  take_or_refuse([&] { require(parse_frame_selection("", text, text).every >= 1); });
  take_or_refuse([&] { require(text.empty() || parse_rate(text).is_known()); });
  take_or_refuse([&] {
    const auto raw = parse_raw_video(text, "gray");
    require(!raw || (raw->width >= 1 && raw->height >= 1));
  });
  take_or_refuse([&] { parse_raw_video("4x4", text); });
  return 0;
}
