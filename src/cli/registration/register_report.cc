// SPDX-License-Identifier: Apache-2.0
#include "src/cli/registration/register_report.h"

#include <fmt/core.h>

#include <vector>

#include "similis/version.h"
#include "src/cli/device.h"
#include "src/cli/registration/register_options.h"
#include "src/cli/terminal/aligned_rows.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

Json dice_json(const std::vector<LabelOverlap>& overlaps) {
  Json dice = Json::object();
  for (const LabelOverlap& overlap : overlaps) {
    dice[shortest(overlap.label)] = {{"before", overlap.before}, {"after", overlap.after}};
  }
  return dice;
}

}  // namespace

Json report_json(const RegisterReport& report) {
  Json json = {{"similis", SIMILIS_VERSION}, {"fixed", report.fixed.name},
      {"moving", report.moving.name}, {"device", device_name(report.device)},
      {"seconds", report.seconds}};
  json.update(registration_internal::report_of(
      report.result, report.options, &report.similarity, report.jacobian));
  const std::string start = start_file(report.command);
  if (!start.empty()) json["settings"]["init"] = start;
  if (!report.dice.empty()) json["dice"] = dice_json(report.dice);
  return json;
}

std::string report_table(const Json& report) {
  std::vector<Row> stages = {{"stage", "seconds", "iterations", "loss"}};
  for (const Json& stage : report["stages"]) {
    std::int64_t iterations = 0;
    std::string loss = "–";
    for (const Json& level : stage["levels"]) {
      iterations += level["iterations"].get<std::int64_t>();
      if (!level["loss"].empty()) loss = fmt::format("{:.4f}", level["loss"].back().get<double>());
    }
    stages.push_back({stage["name"], fmt::format("{:.2f}", stage["seconds"].get<double>()),
        std::to_string(iterations), loss});
  }
  std::vector<Row> similarity = {{"similarity", "before", "affine", "after"}};
  for (const char* metric : {"ncc", "mi", "lncc"}) {
    Row row = {metric};
    for (const char* when : {"before", "affine", "after"}) {
      row.push_back(fmt::format("{:.4f}", report["similarity"][metric][when].get<double>()));
    }
    similarity.push_back(row);
  }
  std::string text = aligned(stages) + "\n" + aligned(similarity) + "\n";
  if (report.contains("jacobian")) {
    const Json& jacobian = report["jacobian"];
    text +=
        fmt::format("folds 0, smallest corner determinant {:.3f}; determinants {:.3f} to {:.3f}\n",
            report["corner_jacobian_min"].get<double>(), jacobian["min"].get<double>(),
            jacobian["max"].get<double>());
    text += fmt::format(
        "displacement {:.2f} mm on average, {:.2f} mm at most; inverse within "
        "{:.4f} mm on average, {:.4f} mm at 99 %\n",
        report["displacement_mm"]["mean"].get<double>(),
        report["displacement_mm"]["max"].get<double>(),
        report["inverse_consistency_mm"]["mean"].get<double>(),
        report["inverse_consistency_mm"]["p99"].get<double>());
  }
  if (report.contains("dice")) {
    std::vector<Row> dice = {{"label", "Dice before", "after"}};
    for (const auto& [label, values] : report["dice"].items()) {
      dice.push_back({label, fmt::format("{:.4f}", values["before"].get<double>()),
          fmt::format("{:.4f}", values["after"].get<double>())});
    }
    text += "\n" + aligned(dice) + "\n";
  }
  for (const Json& warning : report["warnings"]) {
    text += fmt::format("warning: {}\n", warning.get<std::string>());
  }
  return text + fmt::format("{:.1f} s\n", report["seconds"].get<double>());
}

}  // namespace similis::cli
