// SPDX-License-Identifier: Apache-2.0
#include "src/cli/page/page_series.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/cli/page/page.h"

namespace similis::cli {
namespace {

constexpr std::uint16_t kMissing = 0xffff;
constexpr double kSteps = 65534;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::size_t base64_bytes(std::size_t bytes) { return (bytes + 2) / 3 * 4; }

std::vector<std::string> names_of(const Json& frames) {
  std::vector<std::string> names;
  for (const auto& item : frames.front().items()) {
    if (item.key() != "frame" && item.key() != "time") names.push_back(item.key());
  }
  return names;
}

double number_in(const Json& frame, const std::string& name) {
  const auto found = frame.find(name);
  if (found == frame.end() || !found->is_number()) return kNaN;
  const double value = found->get<double>();
  return std::isfinite(value) ? value : kNaN;  // as null, which files have instead
}

// One number a point, or the least and the largest; NaN where no frame of a point has a score.
std::vector<double> points_of(const Json& frames, const std::string& name, std::size_t per_point) {
  std::vector<double> points;
  for (std::size_t first = 0; first < frames.size(); first += per_point) {
    double least = kNaN, largest = kNaN;
    for (std::size_t i = first; i < std::min(frames.size(), first + per_point); ++i) {
      const double value = number_in(frames[i], name);
      least = std::fmin(least, value);  // a number if one of the two is
      largest = std::fmax(largest, value);
    }
    points.push_back(least);
    if (per_point > 1) points.push_back(largest);
  }
  return points;
}

// The lower byte first, as pages read it.
template <class Bits> void append(Bits bits, std::string& bytes) {
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> (8 * i)));
  }
}

Json packed(const std::vector<double>& points, int bits) {
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  for (const double value : points) {
    least = std::fmin(least, value);
    largest = std::fmax(largest, value);
  }
  if (least > largest) least = largest = 0;  // there is none
  const double scale = largest > least ? kSteps / (largest - least) : 0;
  std::string bytes;
  for (const double value : points) {
    if (bits == 32) {
      append(std::bit_cast<std::uint32_t>(static_cast<float>(value)), bytes);
    } else {
      append(std::isnan(value) ? kMissing
                               : static_cast<std::uint16_t>(std::lround((value - least) * scale)),
          bytes);
    }
  }
  return {{"min", least}, {"max", largest}, {"values", base64(bytes)}};
}

// "first" and "step" if frames are evenly spaced, else each point's first frame.
void add_places(const Json& frames, std::size_t per_point, Json& series) {
  std::vector<std::int64_t> places;
  for (const Json& frame : frames) places.push_back(frame.value("frame", std::int64_t{0}));
  const std::int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  bool is_even = step > 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    is_even = is_even && places[i] - places[i - 1] == step;
  }
  if (is_even) {
    series["first"] = places.front();
    series["step"] = step * static_cast<std::int64_t>(per_point);
    return;
  }
  Json all = Json::array();
  for (std::size_t i = 0; i < places.size(); i += per_point) all.push_back(places[i]);
  series["frames"] = all;
}

void add_seconds(const Json& frames, Json& series) {
  const Json& last = frames.back();
  const double frame = number_in(last, "frame"), time = number_in(last, "time");
  if (frame > 0 && time > 0) series["seconds"] = time / frame;
}

}  // namespace

std::size_t score_count(const Json& frames) {
  return frames.empty() ? 0 : frames.size() * names_of(frames).size();
}

SeriesForm series_form(std::size_t values, std::size_t bytes) {
  if (base64_bytes(values * sizeof(float)) <= bytes) return {};
  SeriesForm form{.bits = 16};
  const auto takes = [&] {
    const std::size_t points = (values + form.per_point - 1) / form.per_point;
    return base64_bytes(points * sizeof(std::uint16_t) * (form.per_point > 1 ? 2 : 1));
  };
  while (takes() > bytes && form.per_point < values) form.per_point += form.per_point > 1 ? 1 : 2;
  return form;
}

Json packed_series(const std::string& label, const Json& frames, const SeriesForm& form) {
  Json series = {{"label", label}, {"bits", form.bits}, {"per", form.per_point},
      {"count", (frames.size() + form.per_point - 1) / form.per_point}};
  add_places(frames, form.per_point, series);
  add_seconds(frames, series);
  if (form.per_point > 1) {
    series["note"] = fmt::format(
        "So that this page stays small, each point stands for {} frames: their least and their "
        "largest score, in steps of 1/65534 of the range of all.",
        form.per_point);
  } else if (form.bits == 16) {
    series["note"] =
        "So that this page stays small, the curves have steps of 1/65534 of the range of all "
        "scores; tables are exact.";
  }
  for (const std::string& name : names_of(frames)) {
    series["data"][name] = packed(points_of(frames, name, form.per_point), form.bits);
  }
  return series;
}

}  // namespace similis::cli
