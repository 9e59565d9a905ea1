// SPDX-License-Identifier: Apache-2.0
#include "src/cli/metric.h"

namespace similis::cli {

Metric metric(const char* name, const char* description, PlainMetricFunction function) {
  Metric result{.name = name, .description = description};
  result.configure = [function](const Settings&) {
    Measure measure;
    measure.value = [function](const FramePair& pair, const Execution& exec) {
      return item(function(pair.reference, pair.distorted, Reduction::mean, exec));
    };
    measure.settings = [](std::optional<double>) { return Settings{}; };
    return measure;
  };
  return result;
}

}  // namespace similis::cli
