// SPDX-License-Identifier: Apache-2.0
#include "src/cli/page/compare_page.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "src/cli/page/page.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"

namespace similis::cli {
namespace {

constexpr std::size_t kMostFiles = 2000;  // that a page names with their SHA-256

// The inputs, each once.
std::vector<std::string> files_of(const Report& report) {
  std::vector<std::string> files;
  for (const ScoredPair& pair : report.pairs) {
    if (report.compared == Compared::directories || files.empty()) {
      files.push_back(pair.files.reference);
    }
    files.push_back(pair.files.distorted);
  }
  return files;
}

}  // namespace

void write_compare_page(
    const Report& report, const std::string& command, PageImages& images, const std::string& path) {
  constexpr std::size_t kScoreBytes = 3600000;  // of the page; the rest is Chart.js and pictures
  Json section = page_section(report_document(report), kScoreBytes);
  images.move_into(section);
  section["command"] = command;
  const std::vector<std::string> files = files_of(report);
  if (files.size() <= kMostFiles) {
    section["files"] = page_files(files);
  } else {
    section["notes"].push_back(
        fmt::format("The SHA-256 of {} files are left out; a page names those of up to {}.",
            files.size(), kMostFiles));
  }
  const std::string target = report.error.empty() ? path : path + ".partial";
  write_output(page_html({section}), target);
  if (!report.error.empty()) print_note(fmt::format("the page of these scores is in {}", target));
}

}  // namespace similis::cli
