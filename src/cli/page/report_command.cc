// SPDX-License-Identifier: Apache-2.0
#include "src/cli/page/report_command.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "similis/error.hpp"
#include "src/cli/page/page.h"
#include "src/cli/terminal/output.h"

namespace similis::cli {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  return std::move(text).str();
}

// The lines of one pair's frames, or of a list's pairs, as one document.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path) {}

  Json document(const std::string& text) {
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) break;  // a torn line: its run is under way
      take(Json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
               text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false),
          ++number);
      at = end + 1;
    }
    if (!document_.is_object()) fail("it is empty");
    if (!frames_.empty() && !document_.contains("metrics"))
      fail("it has no summary; it is cut off");
    if (!frames_.empty()) document_["frames"] = std::move(frames_);
    if (!pairs_.empty()) document_["pairs"] = std::move(pairs_);
    return std::move(document_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("{} holds no results of similis compare: {}", path_, why));
  }
  void take(Json line, std::size_t number) {
    if (!line.is_object()) fail(fmt::format("line {} is not a JSON object", number));
    if (number == 1) {
      if (!line.contains("similis")) fail("line 1 has no \"similis\"");
      document_ = std::move(line);
    } else if (line.contains("frame")) {
      frames_.push_back(std::move(line));
    } else if (line.contains("id")) {
      pairs_.push_back(std::move(line));
    } else if (line.contains("summary")) {
      for (auto& item : line["summary"].items()) document_[item.key()] = std::move(item.value());
    } else {
      fail(fmt::format("line {} is neither a frame, a pair nor a summary", number));
    }
  }

  const std::string& path_;
  Json document_, frames_ = Json::array(), pairs_ = Json::array();
};

bool has_scores(const Json& document, const char* list) {
  const auto found = document.find(list);
  return found != document.end() && found->is_array() && !found->empty();
}

Json document_in(const std::string& path) {
  const std::string text = content_of(path);
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("similis")) document = Lines(path).document(text);
  const bool is_of_one = document.contains("metrics") && document["metrics"].is_object();
  if (is_of_one || has_scores(document, "pairs") || has_scores(document, "encodes"))
    return document;
  throw Error(fmt::format("{} has no scores", path));
}

}  // namespace

int make_report(const ReportOptions& options) {
  require_pages("similis report");
  require_writable("-o", options.output, options.scores);
  constexpr std::size_t kScoreBytes = 4400000;  // of the page; the rest is Chart.js
  std::vector<Json> sections;
  for (const std::string& path : options.scores) {
    try {
      sections.push_back(page_section(document_in(path), kScoreBytes / options.scores.size()));
    } catch (const Json::exception&) {  // a member of another kind
      throw Error(fmt::format("{} holds no results of similis compare", path));
    }
    sections.back()["files"] = page_files({path});
  }
  write_output(page_html(sections), options.output);
  return 0;
}

}  // namespace similis::cli
