// SPDX-License-Identifier: Apache-2.0
#include "src/cli/encodes/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "src/cli/usage_error.h"
#include "src/core/counted.h"

namespace similis::cli {
namespace {

constexpr std::size_t kFewestPoints = 4;

// The curve's points, or why one is missing.
struct Points {
  std::vector<RatePoint> points;
  std::string missing;
};

Points points_of(const Report& report, const Curve& curve, std::size_t name) {
  Points result;
  for (const std::string& file : curve.files) {
    const auto pair = std::find_if(report.pairs.begin(), report.pairs.end(),
        [&](const ScoredPair& scored) { return scored.files.distorted == file; });
    if (pair == report.pairs.end() || !pair->error.empty()) {
      result.missing = fmt::format("{} is not scored", file);
      break;
    }
    const std::optional<double> rate = pair->size ? pair->size->rate() : std::nullopt;
    const double quality = statistics_of(report, *pair, name).mean;
    if (!rate) {
      result.missing = fmt::format("the bitrate of {} is not known", file);
      break;
    }
    result.points.push_back({*rate, report.kinds[name].is_error ? -quality : quality});
  }
  return result;
}

}  // namespace

std::vector<CurveDifference> curve_differences(const Report& report) {
  std::vector<CurveDifference> differences;
  for (std::size_t i = 1; i < report.curves.size(); ++i) {
    for (std::size_t name = 0; name < report.names.size(); ++name) {
      const Points base = points_of(report, report.curves.front(), name);
      const Points points = points_of(report, report.curves[i], name);
      CurveDifference result{report.curves[i].name, report.names[name], {}};
      if (base.missing.empty() && points.missing.empty()) {
        result.difference = bd_difference(base.points, points.points);
        if (report.kinds[name].is_error && result.difference.quality) {
          *result.difference.quality = -*result.difference.quality;
        }
      } else {
        result.difference.note = base.missing.empty() ? points.missing : base.missing;
      }
      differences.push_back(std::move(result));
    }
  }
  return differences;
}

std::vector<Curve> parse_curves(const std::vector<std::string>& texts) {
  std::vector<Curve> curves;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw UsageError(fmt::format("--curve {}: write --curve NAME=FILE,FILE,…", text));
    }
    Curve curve{.name = text.substr(0, equals), .files = {}};
    for (std::size_t at = equals + 1; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      curve.files.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    const auto is_same = [&](const Curve& other) { return other.name == curve.name; };
    if (std::any_of(curves.begin(), curves.end(), is_same)) {
      throw UsageError(fmt::format("--curve {} is given twice", curve.name));
    }
    if (std::find(curve.files.begin(), curve.files.end(), "") != curve.files.end()) {
      throw UsageError(fmt::format("--curve {}: a file name is empty", curve.name));
    }
    if (curve.files.size() < kFewestPoints) {
      throw UsageError(fmt::format("--curve {} has {}; a curve needs at least {}", curve.name,
          counted(curve.files.size(), "file"), kFewestPoints));
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace similis::cli
