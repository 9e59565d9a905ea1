// SPDX-License-Identifier: Apache-2.0
#include "src/cli/page/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "src/cli/page/page_parts.h"
#include "src/cli/page/page_series.h"
#include "src/cli/page/sha256.h"
#include "src/cli/usage_error.h"
#include "src/core/counted.h"
#include "src/media/picture/sequence.h"

namespace similis::cli {
namespace {

namespace fs = std::filesystem;

// Takes "frames" out of each document that has some; with their labels.
using LabelledFrames = std::vector<std::pair<std::string, Json>>;

void take_frames(const std::string& label, Json& of, LabelledFrames& all) {
  const auto found = of.find("frames");
  if (found == of.end() || !found->is_array()) return;
  if (!found->empty()) all.emplace_back(label, std::move(*found));
  of.erase("frames");
}

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string title_of(const Json& document) {
  const std::string reference = text_in(document, "reference");
  if (document.contains("pairs")) return fmt::format("{} pairs", document["pairs"].size());
  if (document.contains("encodes")) {
    return fmt::format("{} encodes of {}", document["encodes"].size(), reference);
  }
  return fmt::format("{} against {}", text_in(document, "distorted"), reference);
}

// A list of pairs that is too long for the page becomes that of its first metric's worst pairs.
std::string shorten_pairs(Json& document, std::size_t bytes) {
  Json& pairs = document["pairs"];
  for (Json& pair : pairs) {  // what the page shows of a score
    pair.erase("settings");
    if (!pair.contains("metrics")) continue;
    for (auto& metric : pair["metrics"].items()) {
      Json statistics = {{"mean", metric.value().value("mean", Json())}};
      if (metric.value().contains("harmonic_mean")) statistics["harmonic_mean"] = nullptr;
      metric.value() = statistics;
    }
  }
  const std::size_t each = pairs.empty() ? 1 : json_line(pairs).size() / pairs.size() + 1;
  const std::size_t most = std::max<std::size_t>(bytes / each, 1), all = pairs.size();
  if (all <= most) return {};
  std::string name;
  for (const Json& pair : pairs) {
    if (!pair.contains("metrics") || pair["metrics"].empty()) continue;
    name = pair["metrics"].begin().key();
    break;
  }
  const auto loss = [&](const Json& pair) {
    if (!pair.contains("metrics") || !pair["metrics"].contains(name)) return 1e300;  // an error
    const Json& metric = pair["metrics"][name];
    if (!metric["mean"].is_number()) return -1e300;
    return metric.contains("harmonic_mean") ? -metric["mean"].get<double>()
                                            : metric["mean"].get<double>();
  };
  std::vector<Json> sorted = std::move(pairs).get<std::vector<Json>>();
  std::stable_sort(sorted.begin(), sorted.end(),
      [&](const Json& a, const Json& b) { return loss(a) > loss(b); });
  sorted.resize(most);
  pairs = sorted;
  return fmt::format(
      "So that this page stays small, it has the {} of {} pairs with the worst {}, errors first.",
      most, all, name);
}

bool is_nested(const Json& value) {
  return value.is_object() ||
         (value.is_array() && std::any_of(value.begin(), value.end(), is_nested));
}

std::string words_of(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.dump();
}

// The settings as rows of a name and words, "ssim · window_size" and "11"; sizes as "8 × 6".
void add_settings(const Json& settings, const std::string& path, Json& rows) {
  for (const auto& item : settings.items()) {
    const std::string name = path + item.key();
    const Json& value = item.value();
    if (is_nested(value)) {
      add_settings(value, name + " · ", rows);
      continue;
    }
    const bool is_size = name.ends_with("voxels") || name.ends_with("size");
    std::string words;
    if (value.is_array()) {
      for (const Json& each : value) {
        words += (words.empty() ? "" : is_size ? " × " : ", ") + words_of(each);
      }
    } else {
      words = words_of(value);
    }
    rows.push_back({name, words});
  }
}

Json with_settings(std::vector<Json> sections) {
  for (Json& section : sections) {
    section["settings"] = Json::array();
    const Json& document = section["document"];
    if (document.contains("settings")) {
      add_settings(document["settings"], {}, section["settings"]);
    }
  }
  return {{"sections", std::move(sections)}};
}

// JSON that cannot end the script element that it stands in.
std::string for_script(const Json& json) {
  std::string text;
  for (const char c : json_line(json)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

// Adds the size and the SHA-256 of the files' bytes one after the other, unless one cannot be read.
void add_sum(const std::vector<std::string>& paths, Json& file) {
  constexpr std::size_t kChunk = 1 << 20;
  std::vector<char> chunk(kChunk);
  Sha256 sum;
  std::int64_t bytes = 0;
  for (const std::string& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream.is_open()) return;
    while (stream.read(chunk.data(), kChunk) || stream.gcount() > 0) {
      sum.add({chunk.data(), static_cast<std::size_t>(stream.gcount())});
      bytes += stream.gcount();
    }
  }
  file["bytes"] = bytes;
  file["sha256"] = sum.finish();
}

}  // namespace

void require_pages(std::string_view argument) {
  if (*kChart_js != '\0') return;
  throw UsageError(fmt::format(
      "{}: this build has no Chart.js; install libjs-chart.js and build similis again", argument));
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

Json page_section(Json document, std::size_t bytes) {
  Json section = {{"title", title_of(document)}};
  LabelledFrames all;
  take_frames(text_in(document, "distorted"), document, all);
  if (document.contains("encodes")) {
    for (Json& encode : document["encodes"]) take_frames(text_in(encode, "distorted"), encode, all);
  }
  if (document.contains("pairs")) {
    LabelledFrames unused;  // a directory's page has a row for each pair
    for (Json& pair : document["pairs"]) take_frames({}, pair, unused);
    const std::string note = shorten_pairs(document, bytes);
    if (!note.empty()) section["notes"] = {note};
  } else if (all.size() == 1) {
    document["frames_scored"] = all.front().second.size();
  }
  std::size_t values = 0;
  bool is_moving = false;
  for (const auto& [label, frames] : all) {
    values += score_count(frames);
    is_moving = is_moving || frames.size() > 1;
  }
  section["document"] = std::move(document);
  if (!is_moving) return section;
  const SeriesForm form = series_form(values, bytes);
  for (const auto& [label, frames] : all) {
    section["series"].push_back(packed_series(label, frames, form));
  }
  return section;
}

std::string page_html(const std::vector<Json>& sections) {
  const bool has_registration = std::any_of(sections.begin(), sections.end(),
      [](const Json& section) { return section.contains("registration"); });
  const std::vector<std::pair<std::string, std::string>> parts = {{"style", kPage_css},
      {"data", for_script(with_settings(sections))}, {"chart_licence", kChartLicence},
      {"chart", kChart_js},
      {"script",
          std::string(kPage_js) + (has_registration ? kRegistration_js : "") + kSections_js}};
  std::string page;
  std::string_view left = kPage_html;
  for (const auto& [name, text] : parts) {  // in the page's order
    const std::string place = "{{" + name + "}}";
    const std::size_t at = left.find(place);
    page += left.substr(0, at);
    page += text;
    left.remove_prefix(at + place.size());
  }
  return page.append(left);
}

Json page_files(const std::vector<std::string>& paths) {
  Json files = Json::array();
  for (const std::string& path : paths) {
    Json file = {{"path", path}};
    std::vector<std::string> parts = media::sequence_files(path);
    if (parts.empty()) {
      parts = {path};
    } else {
      file["path"] =
          fmt::format("{} ({}, one after the other)", path, counted(parts.size(), "file"));
    }
    std::error_code error;
    const bool are_regular = std::all_of(parts.begin(), parts.end(),
        [&](const std::string& part) { return part != "-" && fs::is_regular_file(part, error); });
    if (are_regular) add_sum(parts, file);
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace similis::cli
